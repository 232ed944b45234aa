"""agentkernel_kb's tools in CrewAI."""

from agentkernel_kb_crewai.builder import CrewAIToolBuilder

__all__ = ["CrewAIToolBuilder"]
