"""agentkernel_kb's tools in the OpenAI Agents SDK."""

from agentkernel_kb_openai.builder import OpenAIToolBuilder

__all__ = ["OpenAIToolBuilder"]
