"""SQL databases as knowledge, read-only by two locks: the guard and the engine. SQLite so far; it needs the extra `sql`."""

from agentkernel_kb.sql.manager import SQLManager

__all__ = ["SQLManager"]
