"""Starburst and Trino as knowledge, read-only by two locks: the guard and the transaction. Needs the extra `starburst`."""

from agentkernel_kb.starburst.manager import StarburstManager

__all__ = ["StarburstManager"]
