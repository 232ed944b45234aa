"""A LIMIT for the statements that have none, put where the proof says and not by appending text."""

from __future__ import annotations

from collections.abc import Collection

from agentkernel_kb.errors import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard.sql import ReadStatement, analyse_read


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
    read = analyse_read(statement, dialect=dialect, allow=allow)
    if read.limit_at is None:
        return statement
    limited = with_limit(statement, read, limit)
    try:
        proven = analyse_read(limited, dialect=dialect, allow=allow)
    except KnowledgeGuardError:  # It may have become too long.
        return statement
    return limited if proven.limit == limit else statement


def with_limit(statement: str, read: ReadStatement, limit: int) -> str:
    """Return a proven statement with `LIMIT limit` where its proof found a place for one, and else as it is.

    Unlike `fallback_limit` it does not prove the longer statement anew, which takes as long as the first time.

    Args:
        statement: The statement.
        read: What its proof found out.
        limit: Most rows, at least 0.
    """
    place = read.limit_at
    return statement if place is None else f"{statement[:place]} LIMIT {limit}{statement[place:]}"
