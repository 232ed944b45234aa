"""agentkernel_kb's tools in Google's Agent Development Kit."""

from agentkernel_kb_adk.builder import ADKToolBuilder

__all__ = ["ADKToolBuilder"]
