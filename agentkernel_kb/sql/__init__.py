"""SQL databases as knowledge, read-only by two locks: the guard and the engine. Needs the extra `sql`, for DuckDB `duckdb`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentkernel_kb.sql.manager import SQLManager

__all__ = ["SQLManager"]


def __getattr__(name: str) -> Any:
    # Not at once: a child that runs an engine needs neither the manager nor what proves statements.
    if name != "SQLManager":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agentkernel_kb.sql.manager import SQLManager

    return SQLManager
