"""`LadybugManager`: a property graph inside the process, asked and written in Cypher. It needs the extra `ladybug`."""

from agentkernel_kb.ladybug.manager import LadybugManager

__all__ = ["LadybugManager"]
