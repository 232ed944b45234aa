"""A page of a statement's rows: no more of them than asked for, none of them larger than memory can bear."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentkernel_kb.errors import KnowledgeGuardError, KnowledgeQueryError
from agentkernel_kb.guard.postgres import POSTGRES
from agentkernel_kb.sql.postgres_types import measure, teach_types

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.pq.abc import PGresult

    from agentkernel_kb.sql.postgres_connections import PostgresSession
    from agentkernel_kb.sql.postgres_scope import PostgresScope

MAX_ROW_BYTES = 16_000_000
_QUERIES = frozenset(["(", "SELECT", "TABLE", "VALUES", "WITH"])
_EXPLANATIONS = frozenset(["EXPLAIN", "SHOW"])
# PostgreSQL lets a query have 1,664 columns, and each is measured by another.
_MOST_MEASURED_COLUMNS = 800


class PostgresRows:
    """The rows of one statement, which the server makes as they are asked for.

    Args:
        session: A session that has begun.
        statement: The statement.
        most: How many rows will be asked for, and one more.
        max_value_bytes: Largest value that a row may have.
        scope: What the statement may read; `None` for all.

    Raises:
        psycopg.Error: PostgreSQL does not take the statement.
        KnowledgeGuardError: It is none that a session for reading takes, or reads what it may not.
    """

    def __init__(
        self, session: PostgresSession, statement: str, most: int, max_value_bytes: int, scope: PostgresScope | None
    ) -> None:
        self._most = most
        self._max_value_bytes = max_value_bytes
        self._given = 0
        text, is_query = _checked(statement)
        columns = columns_of(session.connection, text)
        if scope is not None:  # Before the transaction reads anything else.
            scope.check(session.connection)
        self.description = [(name,) for name, _, _ in columns]
        teach_types(session.connection, {number for _, number, _ in columns}, session.types)
        measures = [measure(session.connection, number, modifier) for _, number, modifier in columns] if is_query else []
        self._is_measured = any(measures) and len(columns) <= _MOST_MEASURED_COLUMNS
        sent = text
        if self._is_measured:
            sent = _measured(text, measures, most + 1, max_value_bytes)
        elif is_query:
            sent = f"SELECT * FROM (\n{text}\n) AS page LIMIT {most + 1}"  # noqa: S608 - the statement is what is to be sent
        self._rows = self._streamed(session.connection, sent)

    def _streamed(self, connection: Connection[Any], statement: str) -> Generator[tuple[Any, ...]]:
        """Send a statement as one, never several, and give its rows as they arrive."""
        with connection.cursor() as cursor:
            yield from cursor.stream(statement.encode())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for row in self._rows:
            self._given += 1
            yield self._checked_row(row) if self._is_measured else row

    def _checked_row(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        *values, largest, total = row
        if largest is not None and largest > self._max_value_bytes:
            raise KnowledgeQueryError(f"A value is larger than {self._max_value_bytes:,} bytes. Select less of it.")
        if total > MAX_ROW_BYTES:
            raise KnowledgeQueryError(f"A row is larger than {MAX_ROW_BYTES:,} bytes. Select fewer columns or less of them.")
        return tuple(values)

    def close(self) -> None:
        """End the work: a server that has more to give is asked to stop, and a page that is whole is read to its end."""
        if self._given > self._most:
            next(self._rows, None)
        self._rows.close()


def _checked(statement: str) -> tuple[str, bool]:
    """Return a statement without what follows its last word, and whether it is a query.

    Raises:
        KnowledgeGuardError: It is neither a query nor an explanation.
    """
    tokens = [token for token in POSTGRES.lexer.read(statement).tokens if token.text != ";"]
    first = (tokens[0].keyword or tokens[0].text) if tokens else ""
    if first not in _QUERIES | _EXPLANATIONS:
        raise KnowledgeGuardError("A session for reading does not take this statement", part=first)
    return statement[: tokens[-1].end], first in _QUERIES


def columns_of(connection: Connection[Any], statement: str) -> list[tuple[str, int, int]]:
    """Return name, type and modifier of each column of a statement, which the server reads and does not run.

    Raises:
        psycopg.Error: PostgreSQL does not take it: it is not one statement, or uses a name that is not there.
    """
    pgconn = connection.pgconn
    pgconn.send_prepare(b"", statement.encode())
    _answer(connection)
    pgconn.send_describe_prepared(b"")
    described = _answer(connection)
    return [_column(described, place) for place in range(described.nfields)]


def _answer(connection: Connection[Any]) -> PGresult:
    """Wait for what the server says to the request that was made.

    psycopg's own waiting lets other threads run, the one that keeps the deadline among them. `describe_prepared` would hold up
    the whole process while the server is silent: psycopg 3.3 calls libpq there without releasing the interpreter's lock.
    """
    from psycopg.errors import error_from_result
    from psycopg.generators import execute
    from psycopg.pq import ExecStatus

    (result,) = connection.wait(execute(connection.pgconn))
    if result.status != ExecStatus.COMMAND_OK:
        raise error_from_result(result, "utf-8")
    return result


def _column(described: PGresult, place: int) -> tuple[str, int, int]:
    name = (described.fname(place) or b"").decode("utf-8", "replace")
    return name, described.ftype(place), described.fmod(place)


def _measured(statement: str, measures: Sequence[str | None], rows: int, max_value_bytes: int) -> str:
    """Return a query of at most so many rows of a statement, with the largest value's and the row's bytes behind each of them.

    The values of a row that is too large are left out: what is too large never leaves the server. A LIMIT between the levels
    keeps the planner from measuring twice.
    """
    values = [f"c{place}" for place in range(len(measures))]
    sizes = {f"s{place}": found.format(f"c{place}") for place, found in enumerate(measures) if found}
    size_columns = ", ".join(f"{measured} AS {name}" for name, measured in sizes.items())
    total = " + ".join(f"coalesce({name}, 0)::int8" for name in sizes)
    fits = f"coalesce(largest, 0) <= {max_value_bytes} AND total <= {MAX_ROW_BYTES}"
    given = ", ".join(f"CASE WHEN {fits} THEN {value} END" for value in values)
    # In the outermost query the statement's own names and order do not matter any more.
    return (
        f"SELECT {given}, largest, total FROM ("  # noqa: S608 - the statement is what is to be sent
        f"SELECT *, greatest({', '.join(sizes)}) AS largest, {total} AS total FROM ("
        f"SELECT *, {size_columns} FROM (\n{statement}\n) AS page ({', '.join(values)}) LIMIT {rows}"
        f") AS sized OFFSET 0) AS judged"
    )
