"""DuckDB's own lock: a file opened read-only, cut off from files, network and Python, one reading statement at a time."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.render import one_line
from agentkernel_kb.sql.duckdb_catalogue import DEFAULT_SCHEMA, DuckDBTables
from agentkernel_kb.sql.duckdb_connections import DuckDBConnections, interrupted_at

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlalchemy.engine import URL

DEFAULT_MEMORY = "512MB"
DEFAULT_THREADS = 2

_MAGIC, _MAGIC_OFFSET = b"DUCK", 8
_MEMORY = re.compile(r"[1-9][0-9]{0,6}(?:\.[0-9]{1,3})?\s?[KMGT]i?B", re.IGNORECASE)
# What these say of tables is short, and no part of another query.
_LISTS = re.compile(r"\s*(?:SHOW|DESCRIBE)\b", re.IGNORECASE)
# Types whose values have no fixed size, by what measures them in bytes or more; `{0}` is the value.
_MEASURES = {
    "varchar": "strlen({0})",
    "blob": "octet_length({0})",
    "list": "greatest(len({0}), CASE WHEN len({0}) <= {1} THEN strlen({0}::VARCHAR) END)",
}
_ANY_MEASURE = "strlen({0}::VARCHAR)"
_FIXED = frozenset(
    """
    bigint boolean date decimal double enum float hugeint integer interval smallint sqlnull time time_ns time_tz timestamp
    timestamp_ms timestamp_ns timestamp_s timestamp_tz tinyint ubigint uhugeint uinteger usmallint utinyint uuid
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)
_TOO_LARGE = "A value is larger than"

_NAME_PART = re.compile(r'"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^."]+)')
_MISSING = re.compile(
    r'Table with name "?(?P<table>[^"\s]+)"? does not exist|Referenced (?:column|table) "(?P<column>[^"]+)" not found'
    r'|(?:does not have a column named|column named) "(?P<field>[^"]+)"|Column "(?P<other>[^"]+)" (?:does not exist|in)'
)
_EXPLANATION = re.compile(r"\s*(?:LINE \d+:|Candidate |Did you mean |Possible solutions).*", re.DOTALL)
_EXHAUSTED = (
    "Failed to allocate",
    "failed to allocate",
    "bad_alloc",
    "Allocation failure",
    "Cannot allocate memory",
    "Requested allocation size",
)
_REFUSED = ("read-only", "configuration has been locked", "disabled by configuration", "disabled through configuration")


class FileURL(NamedTuple):
    """What is needed of a database's URL, where there is no SQLAlchemy: the file, and the options."""

    database: str
    query: Mapping[str, str]


class DuckDBLock:
    """Opens one DuckDB file for reading and nothing else.

    Args:
        url: Its SQLAlchemy URL, or as much of one as is needed, of a file that exists; `memory_limit` and `threads` may stand
            in its query.
        tables: Names of the tables and views that may be read, `None` for all.
        max_value_bytes: Largest value that a result may have.
        asked_by: The process for which the file is read, where that is not this one.

    Raises:
        AKConfigError: The URL names no DuckDB file, or has other options.
        KnowledgeDependencyError: The driver is missing.
    """

    dialect = "duckdb"

    def __init__(
        self, url: URL | FileURL, *, tables: Collection[str] | None, max_value_bytes: int, asked_by: int | None = None
    ) -> None:
        if importlib.util.find_spec("duckdb") is None:  # Better missed now than at first use.
            raise KnowledgeDependencyError("duckdb", "SQLManager on DuckDB")
        self._path = _checked_path(url.database or "")
        self._limits = _checked_limits(dict(url.query))
        self._scope = None if tables is None else frozenset(map(str.lower, tables))
        self._readable: frozenset[str] | None = None
        self._max_value_bytes = max_value_bytes
        self._asked_by = asked_by

    @property
    def options(self) -> dict[str, Any]:
        """What opens the same lock in another process."""
        return {
            "path": str(self._path.absolute()),
            "limits": dict(self._limits),
            "tables": None if self._scope is None else sorted(self._scope),
            "max_value_bytes": self._max_value_bytes,
            "asked_by": os.getpid(),
        }

    @property
    def memory_limit(self) -> str:
        """How much memory the engine may take, as it is written."""
        return self._limits["memory_limit"]

    def make_engine(self, connections: int) -> DuckDBConnections:
        """Return what hands out locked connections; the file is opened when the first one is needed."""
        return DuckDBConnections(self._path, self._limits)

    def driver(self, connection: DuckDBPyConnection) -> DuckDBPyConnection:
        """Return the driver's connection, which `connection` is."""
        return connection

    @contextmanager
    def reading(self, connection: DuckDBPyConnection, deadline: Deadline, *, whole: bool) -> Generator[None]:
        """Hold `connection` ready for one piece of work, which is interrupted from the deadline on until it ends."""
        with interrupted_at(deadline, connection):
            yield

    def tables(self, connection: DuckDBPyConnection) -> DuckDBTables:
        """Return what the connection's catalogue tells about tables."""
        return DuckDBTables(connection)

    def rows(self, connection: DuckDBPyConnection, statement: str, most: int) -> DuckDBRows:
        """Send a statement and return its rows, which the engine makes as they are asked for.

        Raises:
            KnowledgeGuardError: DuckDB itself takes it for something else than one read, or of other tables.
        """
        kind = _kind(connection, statement)
        if self._scope is not None:
            self._check_tables(connection, statement, is_pivot=kind == "MULTI")
        if kind == "EXPLAIN":
            return DuckDBRows(connection.execute(statement), None)
        relation = connection.sql(statement)
        columns, kinds = list(relation.columns), [kind.id for kind in relation.types]
        if all(kind in _FIXED for kind in kinds) or kind == "MULTI" or _LISTS.match(statement):
            return DuckDBRows(connection.execute(statement), columns)
        # One SELECT for the engine's parser, see `_kind`; no view is made of it, which would be listed among the tables.
        return DuckDBRows(connection.execute(relation.project(self._bounded(kinds)).sql_query()), columns)

    def _bounded(self, kinds: list[str]) -> str:
        """Return columns that fail on a value which is too large, before Python sees it."""
        most = self._max_value_bytes
        columns: list[str] = []
        for position, kind in enumerate(kinds, 1):
            value = f"#{position}"
            size = _MEASURES.get(kind, _ANY_MEASURE).format(value, most)
            failure = f"error('{_TOO_LARGE}')"
            columns.append(value if kind in _FIXED else f"CASE WHEN {size} > {most} THEN {failure} ELSE {value} END")
        return ", ".join(columns)

    def _check_tables(self, connection: DuckDBPyConnection, statement: str, *, is_pivot: bool) -> None:
        """Refuse other tables than those that may be read, as DuckDB's own parser finds them, behind views and all."""
        if is_pivot:
            raise KnowledgeGuardError("Which tables this PIVOT reads cannot be told; add IN with the values to its ON")
        if self._readable is None:
            self._readable = self._with_tables_of_views(connection)
        outside = sorted(self._tables_in(connection, statement) - self._readable)
        if outside:
            raise KnowledgeGuardError("This table may not be read", part=outside[0][:40])

    def _with_tables_of_views(self, connection: DuckDBPyConnection) -> frozenset[str]:
        scope = self._scope or frozenset[str]()
        views = [table for table in DuckDBTables(connection).names() if table.is_view and table.name.lower() in scope]
        readable = scope
        for view in views:
            with suppress(KnowledgeGuardError):  # Who reads that view is told so.
                readable |= self._tables_in(connection, f"FROM {view.label}")
        return readable

    def _tables_in(self, connection: DuckDBPyConnection, statement: str) -> frozenset[str]:
        import duckdb

        try:
            names = connection.get_table_names(statement, qualified=True)
        except duckdb.BinderException as error:
            if "UNNEST" not in str(error):
                raise
            names = self._names_without_unnest(connection, statement)
        return frozenset(_plain_name(name, self._path.stem) for name in names)

    def _names_without_unnest(self, connection: DuckDBPyConnection, statement: str) -> set[str]:
        import duckdb

        try:
            return connection.get_table_names(_without_unnest(statement), qualified=True)
        except duckdb.BinderException as error:
            reason = "Which tables a view reads cannot be told where it has UNNEST behind FROM; LATERAL (SELECT unnest(…)) can"
            raise KnowledgeGuardError(reason) from error

    def translate(self, error: Exception, deadline: Deadline) -> KnowledgeError:
        """Return what an error of the driver means."""
        import duckdb

        message = str(error)
        if deadline.passed() or isinstance(error, duckdb.InterruptException):
            return KnowledgeTimeoutError(f"The statement was stopped after {deadline.seconds:g} s. Narrow it.")
        if isinstance(error, duckdb.OutOfMemoryException) or any(word in message for word in _EXHAUSTED):
            limit = self._limits["memory_limit"]
            return KnowledgeQueryError(f"The statement needs more memory than {limit}. Aggregate or narrow it.")
        speaks_of_names = isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ConversionException)
        if isinstance(error, duckdb.PermissionException) or (not speaks_of_names and any(word in message for word in _REFUSED)):
            return KnowledgeGuardError(f"The database refused: {_first_part(message)}")
        if _TOO_LARGE in message:
            return KnowledgeQueryError(f"{_TOO_LARGE} {self._max_value_bytes:,} bytes. Select less of it.")
        if isinstance(error, duckdb.IOException | duckdb.ConnectionException | duckdb.FatalException):
            return self._unreadable(message)
        # Told by how it begins: a message may hold words of the statement, which would else declare the database damaged.
        if message.startswith("Corrupt database"):
            return KnowledgeConnectionError(f"The DuckDB database '{self._path}' is damaged.")
        if isinstance(error, duckdb.InternalException):  # A statement can bring that about, which is no word on the database.
            return KnowledgeQueryError(
                "The engine could not go on with this statement, by a fault of its own. Write it otherwise"
            )
        if isinstance(error, OverflowError):
            return KnowledgeQueryError("A value is too large for Python, as a very long interval is. Cast it to text.")
        if isinstance(error, duckdb.Error | ValueError):
            return KnowledgeQueryError(_first_part(message))
        return KnowledgeBackendError(f"The database failed ({type(error).__name__}).")

    def _unreadable(self, message: str) -> KnowledgeConnectionError:
        if "Could not set lock" in message:
            holder = re.search(r"\(PID (\d+)\)", message)
            if holder and int(holder[1]) == self._asked_by:
                return self._open_otherwise()
            who = f"another process {holder[0]}" if holder else "another process"
            return KnowledgeConnectionError(f"The DuckDB database '{self._path}' is open for writing in {who}.")
        if "different configuration" in message:
            return self._open_otherwise()
        return KnowledgeConnectionError(f"The DuckDB database '{self._path}' cannot be read: {_first_part(message)}")

    def _open_otherwise(self) -> KnowledgeConnectionError:
        return KnowledgeConnectionError(
            f"This process has the DuckDB database '{self._path}' open in another way, which leaves no room for a locked "
            "connection. Close that, or read a copy."
        )

    def missing_name(self, error: KnowledgeError) -> str | None:
        """Return the name that a rejected statement uses and the database does not have."""
        found = _MISSING.search(str(error.__cause__ or error))
        return next((name for name in found.groups() if name), None) if found else None


class DuckDBRows:
    """Rows of one statement, as a driver's cursor.

    Args:
        result: The connection on which the statement was executed.
        columns: Names of the columns where they are not those of the result.
    """

    def __init__(self, result: DuckDBPyConnection, columns: list[str] | None) -> None:
        self._result = result
        described: list[Any] = list(result.description or ())
        self.description = [(name,) for name in columns] if columns is not None else described

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self._result.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """End the work; rows that were not asked for are not made.

        Giving a result up (`abort`, or closing its connection) waits for work that runs ahead, for ever where that is endless.
        So it is interrupted, until the engine says that it has stopped.
        """
        import duckdb

        with suppress(duckdb.Error):
            self._result.interrupt()
            while self._result.fetchone() is not None:
                self._result.interrupt()


def _kind(connection: DuckDBPyConnection, statement: str) -> str:
    """Return which kind of read the one statement is for DuckDB's own parser: SELECT, EXPLAIN, or MULTI for a dynamic PIVOT."""
    try:
        kinds = [found.type.name for found in connection.extract_statements(statement)]
    except ValueError:  # The driver has no name for some kinds of statements, none of which reads.
        kinds = ["UNKNOWN"]
    if len(kinds) != 1:
        raise KnowledgeGuardError(f"The database was sent {len(kinds)} statements, and takes one")
    if kinds[0] not in ("EXPLAIN", "MULTI", "SELECT"):
        raise KnowledgeGuardError("For the database this is not a read", part=kinds[0])
    return kinds[0]


def _without_unnest(statement: str) -> str:
    """Return a statement that names the same tables, with another function where `unnest` is called.

    DuckDB 2.0.1 finds no tables where `unnest` stands behind FROM, and does not care what another function gets there.

    Raises:
        KnowledgeGuardError: It cannot be read.
    """
    from agentkernel_kb.guard.duckdb import DUCKDB  # Only here: the engine's processes start without it.

    tokens = DUCKDB.lexer.read(statement).tokens
    names = [token for token, following in pairwise(tokens) if token.kind != "string" and following.text == "("]
    calls = [name for name in names if name.name == "unnest"]
    for call in reversed(calls):
        statement = f"{statement[: call.start]}range{statement[call.end :]}"
    return statement


def _plain_name(name: str, database: str) -> str:
    """Return a qualified name as DuckDB writes it as the catalogue and the list of readable tables know it."""
    parts = [found["plain"] or (found["quoted"] or "").replace('""', '"') for found in _NAME_PART.finditer(name)]
    if len(parts) == 3 and parts[0].lower() == database.lower():
        parts = parts[1:]
    if len(parts) == 2 and parts[0].lower() == DEFAULT_SCHEMA:
        parts = parts[1:]
    return ".".join(parts).lower()


def _first_part(message: str) -> str:
    """Return what went wrong without the statement and the engine's own list of candidates."""
    return one_line(_EXPLANATION.sub("", message)).rstrip("!. ")[:300]


def _checked_path(database: str) -> Path:
    if not database or database.startswith(":"):
        raise AKConfigError("An in-memory DuckDB database holds nothing to read. Name a file: 'duckdb:////path/cities.duckdb'.")
    path = Path(database)
    if not path.is_file():
        raise AKConfigError(f"There is no DuckDB database '{path}'.")
    try:
        with path.open("rb") as file:
            header = file.read(_MAGIC_OFFSET + len(_MAGIC))
    except OSError as error:
        raise AKConfigError(f"The DuckDB database '{path}' cannot be read: {error.strerror}.") from error
    if header[_MAGIC_OFFSET:] != _MAGIC:
        raise AKConfigError(f"'{path}' is not a DuckDB database.")
    return path


def _checked_limits(options: dict[str, Any]) -> dict[str, str]:
    limits = {"memory_limit": DEFAULT_MEMORY, "threads": str(DEFAULT_THREADS), **options}
    if unknown := sorted(limits.keys() - {"memory_limit", "threads"}):
        raise AKConfigError(f"The URL of a DuckDB database takes 'memory_limit' and 'threads', not {unknown}.")
    if not _MEMORY.fullmatch(str(limits["memory_limit"])):
        raise AKConfigError(f"memory_limit is a size such as '512MB' or '2GB', not {limits['memory_limit']!r}.")
    if not re.fullmatch(r"[1-9][0-9]{0,2}", str(limits["threads"])):
        raise AKConfigError(f"threads is a number from 1 to 999, not {limits['threads']!r}.")
    return limits
