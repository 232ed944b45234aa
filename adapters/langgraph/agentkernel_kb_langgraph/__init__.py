"""agentkernel_kb's tools in LangGraph and LangChain."""

from agentkernel_kb_langgraph.builder import LangGraphToolBuilder

__all__ = ["LangGraphToolBuilder"]
