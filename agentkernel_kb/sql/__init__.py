"""SQL databases as knowledge, read-only by two locks: the guard and the engine. SQLite and DuckDB so far; they need the extra `sql` or `duckdb`."""

from agentkernel_kb.sql.manager import SQLManager

__all__ = ["SQLManager"]
