"""SQL databases as knowledge, read-only by two locks: the guard and the engine. Needs the extra `sql`, for DuckDB `duckdb`."""

from agentkernel_kb.sql.manager import SQLManager

__all__ = ["SQLManager"]
