"""agentkernel_kb's tools in Pydantic AI."""

from agentkernel_kb_pydantic_ai.builder import PydanticAIToolBuilder

__all__ = ["PydanticAIToolBuilder"]
