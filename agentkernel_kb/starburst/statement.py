"""A statement as it is sent."""

from __future__ import annotations

from collections.abc import Collection

from agentkernel_kb.guard import analyse_read, fallback_limit
from agentkernel_kb.guard.trino import without_semicolon
from agentkernel_kb.rows import most_rows

DIALECT = "trino"


def prepared(statement: str, limit: int, allow: Collection[str], max_rows: int | None) -> tuple[str, int]:
    """Return the statement as it is sent, and how many of its rows are wanted.

    Args:
        statement: One statement.
        limit: Most rows of one without a LIMIT of its own.
        allow: Names of further table functions that it may use.
        max_rows: Most rows of any statement; `None` for the default of `most_rows`.

    Raises:
        KnowledgeGuardError: It cannot be proven to be a read.
        AKConfigError: A bound is below 1.
    """
    read = analyse_read(statement, dialect=DIALECT, allow=allow)
    most = most_rows(limit, max_rows, has_own=read.has_limit)
    limited = fallback_limit(statement, dialect=DIALECT, limit=most + 1, allow=allow)  # One row more tells of more.
    return without_semicolon(limited), most
