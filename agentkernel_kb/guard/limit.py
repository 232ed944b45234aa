"""A LIMIT for the statements that have none, put where the proof says and not by appending text."""

from __future__ import annotations

from collections.abc import Collection

from agentkernel_kb.errors import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard.sql import analyse_read


def fallback_limit(statement: str, *, dialect: str, limit: int, allow: Collection[str] = ()) -> str:
    """Return the statement with `LIMIT limit` at the end of its outermost query, and otherwise as it is written.

    It comes back unchanged where it has a limit of its own (`LIMIT ALL` and `FETCH FIRST` too), where none can stand or none is
    needed (`SHOW`, `DESCRIBE`, `PRAGMA`, `EXPLAIN`, a bare `VALUES`), and where the longer statement cannot be proven.

    Args:
        statement: A statement as a model wrote it.
        dialect: One of `supported_dialects()`.
        limit: Most rows, at least 0; one more than will be shown tells that there are more.
        allow: As for `check_read_only`.

    Raises:
        KnowledgeGuardError: The statement cannot be proven to be a read.
        AKConfigError: The dialect is not supported, or the limit is negative.
        KnowledgeDependencyError: The extra `sql` is missing.
    """
    if limit < 0:
        raise AKConfigError(f"A limit is at least 0, not {limit}")
    place = analyse_read(statement, dialect=dialect, allow=allow).limit_at
    if place is None:
        return statement
    limited = f"{statement[:place]} LIMIT {limit}{statement[place:]}"
    try:
        proven = analyse_read(limited, dialect=dialect, allow=allow)
    except KnowledgeGuardError:  # It may have become too long.
        return statement
    return limited if proven.limit == limit else statement
