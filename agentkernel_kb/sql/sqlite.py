"""SQLite's own lock: a file opened read-only, an authorizer, bounded values, and a deadline that the engine itself keeps."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote, urlencode

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.guard.lexer import folded
from agentkernel_kb.guard.sqlite import (
    HIDDEN_TABLES,
    PRAGMAS_ALONE,
    PRAGMAS_OF_OBJECTS,
    PRAGMAS_OF_TABLES,
    SQLITE_FUNCTIONS,
)
from agentkernel_kb.sql.reflection import ReflectedTables
from agentkernel_kb.sql.sqlite_functions import LinearFunctions
from agentkernel_kb.sql.sqlite_memory import MAX_WORKING_BYTES, Meter, memory_meter
from agentkernel_kb.sql.sqlite_scope import TABLE_FUNCTIONS, Scope

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

_FILE_HEADER = b"SQLite format 3\x00"
_STEPS_BETWEEN_CHECKS = 500
_STEPS_BETWEEN_MATCHES = 20  # One pattern takes up to half a second on a large value, and a row of such takes few steps.
_MATCHES = re.compile("like|glob", re.IGNORECASE)
_MAX_ROW_BYTES = 16_000_000
_MAX_PATTERN_BYTES = 128  # Patterns are matched in time proportional to text times pattern, without a check in between.
_MAX_SQL_BYTES = 1_000_000
_MAX_COLUMNS = 2_000
_SPARE_COLUMNS = 100  # A result has at most twice the columns of the widest table and these: it is held in memory row by row.
_WIDEST = "SELECT max((SELECT count(*) FROM pragma_table_xinfo(m.name))) FROM sqlite_master AS m WHERE type = ?"
_DRIVER_ARGUMENTS = frozenset({"uri", "timeout", "check_same_thread", "isolation_level", "detect_types", "cached_statements"})

# What statements call by an operator, and what full-text tables ask of the connection by themselves.
_FUNCTIONS = SQLITE_FUNCTIONS | {"->", "->>", "match"}
_OWN_PRAGMAS = frozenset({"data_version"})

# A journal or log has to be rolled back or replayed first, which takes a writer.
_UNRECOVERED = (sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY, sqlite3.SQLITE_READONLY_CANTINIT)

_MISSING = re.compile(r"no such (?:table|column|function): (?P<name>.+)")
# Told by the code: a message may hold words of the statement, which would else declare the database broken.
_BROKEN = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB})
_BROKEN_MESSAGE = "unsupported file format"  # Has the code of any error.


class SQLiteLock:
    """Opens one SQLite database for reading and nothing else.

    Args:
        url: Its SQLAlchemy URL: of a file that exists, or of an in-memory database that is shared by name.
        tables: Names of the tables and views that may be read, `None` for all.
        max_value_bytes: Largest value that may be read or computed.

    Raises:
        AKConfigError: The URL names no database that could hold anything, or no SQLite file.
    """

    dialect = "sqlite"

    def __init__(self, url: URL, *, tables: Collection[str] | None, max_value_bytes: int) -> None:
        self._uri = _read_only_uri(url)
        self._listed = None if tables is None else frozenset(map(folded, tables))
        self._max_value_bytes = max_value_bytes

    def make_engine(self, connections: int) -> Engine:
        """Return an engine with at most `connections` connections, each of them locked."""
        from sqlalchemy import create_engine, event
        from sqlalchemy.pool import QueuePool

        engine = create_engine(
            "sqlite+pysqlite://", creator=self._open, poolclass=QueuePool, pool_size=connections, max_overflow=0
        )

        # SQLAlchemy asks for the isolation level, and adds its own REGEXP, when it connects; after that the door is shut.
        @event.listens_for(engine, "connect")
        def lock(connection: Any, _: object) -> None:
            connection.lock()

        return engine

    def _open(self) -> ReadingConnection:
        connection = sqlite3.connect(
            self._uri,
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=0,
            factory=ReadingConnection,
        )
        connection.prepare(self._max_value_bytes)
        return connection

    @contextmanager
    def reading(self, connection: ReadingConnection, deadline: Deadline, *, whole: bool) -> Generator[None]:
        """Hold `connection` ready for one piece of work, which SQLite stops at the deadline."""
        connection.begin(deadline, None if whole else self._listed)
        try:
            yield
        finally:
            connection.finish()

    def driver(self, connection: Connection) -> ReadingConnection:
        """Return the driver's connection behind one of SQLAlchemy's."""
        return cast("ReadingConnection", connection.connection.driver_connection)

    def tables(self, connection: Connection) -> ReflectedTables:
        """Return what the connection tells about tables, without those in which virtual tables keep their content."""
        return ReflectedTables(connection, self.driver(connection).shadow_tables())

    def rows(self, connection: ReadingConnection, statement: str, most: int) -> BoundedRows:
        """Send a statement and return its rows, which SQLite makes as they are asked for; closing them ends the work."""
        connection.check_scope(statement)
        connection.look_often(statement)
        return BoundedRows(connection, statement)

    def translate(self, error: Exception, deadline: Deadline) -> KnowledgeError:
        """Return what an error of the driver means."""
        message = str(error)
        lowered = message.lower()
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_BUSY:
            return KnowledgeTimeoutError(f"The database stayed locked by a writer for {deadline.seconds:g} s.")
        if deadline.passed():
            return KnowledgeTimeoutError(f"The statement was stopped after {deadline.seconds:g} s. Narrow it.")
        if code == sqlite3.SQLITE_INTERRUPT:
            return KnowledgeQueryError(
                f"The statement needs more than {MAX_WORKING_BYTES:,} bytes of memory. Sort, group or collect fewer rows"
            )
        if code is not None and code & 0xFF == sqlite3.SQLITE_LOCKED:
            return KnowledgeConnectionError("The table is locked by a writer.")
        if code in _UNRECOVERED:
            return KnowledgeConnectionError(
                "The last writer of this database did not finish, and reading cannot recover it. Open it once with a program "
                "that may write to it, such as the sqlite3 shell."
            )
        if isinstance(error, UnicodeDecodeError):
            return KnowledgeQueryError("A name in this database is not UTF-8. Select the columns that are by their names")
        if "function: regexp" in lowered:
            return KnowledgeQueryError("This database has no REGEXP. Use LIKE or GLOB.")
        if "not authorized" in lowered or code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY) or "prohibited" in lowered:
            return KnowledgeGuardError(f"The database refused: {message}")
        if code == sqlite3.SQLITE_TOOBIG:
            return KnowledgeQueryError(f"A value is larger than {self._max_value_bytes:,} bytes. Select less of it.")
        if (code is not None and code & 0xFF in _BROKEN) or lowered == _BROKEN_MESSAGE:
            return KnowledgeConnectionError(f"SQLite says: {message}.")
        if isinstance(error, sqlite3.Error | ValueError):
            return KnowledgeQueryError(message[:300])
        return KnowledgeBackendError(f"The database failed ({type(error).__name__}).")

    def missing_name(self, error: KnowledgeError) -> str | None:
        """Return the table, column or function that a rejected statement names and the database does not have."""
        found = _MISSING.search(str(error))
        return found["name"] if found else None


class ReadingConnection(sqlite3.Connection):
    """A connection that reads: limits of the engine, an authorizer, and a deadline per piece of work."""

    _deadline: Deadline | None = None
    _scope: Scope | None = None
    _shadows: frozenset[str] = frozenset()
    _functions: LinearFunctions | None = None
    _bounded: bool = False
    _used: Meter | None = None
    _most_used: float = math.inf
    _row_bytes: int = 0

    def prepare(self, max_value_bytes: int) -> None:
        """Shut what stays shut, before any statement from outside."""
        self.text_factory = self._text
        self.execute("PRAGMA query_only = ON")
        self._used = memory_meter()
        if self._used is not None:  # What is sorted or kept for later stays in memory, where it is bounded; a disk is not.
            self.execute("PRAGMA temp_store = MEMORY")
        self._functions = LinearFunctions(self._give_up, max_value_bytes)
        # Schemas may use these functions, so they are trusted; the authorizer sees the functions of views as well.
        self._functions.install(self)
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_value_bytes)
        self.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_SQL_BYTES)
        self.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_PATTERN_BYTES)
        self.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)

    def lock(self) -> None:
        """Let through what only reads, from now on."""
        self.create_function("regexp", 2, None)  # It may run for ever on one row, holding up every thread.
        self.set_authorizer(self._authorize)

    def begin(self, deadline: Deadline, listed: frozenset[str] | None) -> None:
        """Start a piece of work.

        Args:
            deadline: When it has to be over.
            listed: Tables and views that it may read, folded; `None` for all.
        """
        self.set_authorizer(None)
        self._scope = None
        self._deadline = deadline
        self._most_used = math.inf if self._used is None else self._used() + MAX_WORKING_BYTES
        self.set_progress_handler(self._has_to_stop, _STEPS_BETWEEN_CHECKS)
        self.execute(f"PRAGMA busy_timeout = {int(deadline.left() * 1000)}")
        if not self._bounded:
            self._bound_columns()
            self._bounded = True
        if listed is not None:
            self._scope = Scope(self, listed)
            self._shadows = frozenset(map(folded, self.shadow_tables()))
        self.set_authorizer(self._authorize)

    def check_scope(self, statement: str) -> None:
        """Refuse a statement that reads more than it may, where that is not all there is.

        Raises:
            KnowledgeGuardError: It does.
            sqlite3.Error: SQLite does not take the statement.
        """
        if self._scope is not None:
            self._scope.check(self, statement)

    def look_often(self, statement: str) -> None:
        """Look at the time more often during a statement that may match patterns."""
        if _MATCHES.search(statement):
            self.set_progress_handler(self._has_to_stop, _STEPS_BETWEEN_MATCHES)

    def shadow_tables(self) -> frozenset[str]:
        """Return the names of the tables in which virtual tables keep their content."""
        return self._names("SELECT name FROM pragma_table_list WHERE type = 'shadow'")

    def _bound_columns(self) -> None:
        widths = [self._rows(_WIDEST, kind) for kind in ("table", "view")]
        widest = max((width or 0 for rows in widths for (width,) in rows), default=_MAX_COLUMNS)
        self.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, min(_MAX_COLUMNS, 2 * widest + _SPARE_COLUMNS))

    def _names(self, statement: str) -> frozenset[str]:
        return frozenset(str(name) for (name,) in self._rows(statement))

    def _rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        """Ask for oneself; what this SQLite or this schema cannot answer has no rows, but a locked database is an error."""
        try:
            return self.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            return []

    def finish(self) -> None:
        """End the piece of work."""
        self._deadline = None
        self.set_progress_handler(None, 0)

    def close(self) -> None:
        """Close the connection."""
        if self._functions is not None:
            self._functions.close()
        super().close()

    def start_row(self) -> None:
        """Count the bytes of a new row."""
        self._row_bytes = 0

    def _text(self, raw: bytes) -> str:
        self._row_bytes += len(raw)
        if self._row_bytes > _MAX_ROW_BYTES:
            raise KnowledgeQueryError(f"A row is larger than {_MAX_ROW_BYTES:,} bytes. Select fewer columns or less of them")
        return raw.decode("utf-8", "replace")

    def _has_to_stop(self) -> bool:
        return self._is_late() or (self._used is not None and self._used() > self._most_used)

    def _is_late(self) -> bool:
        return self._deadline is not None and self._deadline.passed()

    def _give_up(self) -> None:
        if self._is_late():
            raise TimeoutError

    def _authorize(self, action: int, first: str | None, second: str | None, _: str | None, view: str | None) -> int:
        """Answer SQLite, which asks about every table, column, function and pragma of a statement while it prepares it."""
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                allowed = True
            case sqlite3.SQLITE_FUNCTION:
                allowed = (second or "").lower() in _FUNCTIONS
            case sqlite3.SQLITE_READ:
                allowed = self._may_read(folded(first or ""), second or "", folded(view or ""))
            case sqlite3.SQLITE_PRAGMA:
                allowed = self._may_ask((first or "").lower(), second)
            case sqlite3.SQLITE_UPDATE:
                # SQLite asks this when it sets up a virtual table or a table function, which writes nothing. The schema itself
                # cannot be updated: the pragma that would open it is denied.
                allowed = first == "sqlite_master"
            case _:
                allowed = False
        # No progress handler is called while a statement is prepared, so this is the place to see that time is out.
        return sqlite3.SQLITE_OK if allowed and not self._is_late() else sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str, view: str) -> bool:
        if table in HIDDEN_TABLES:
            return False
        scope = self._scope
        if scope is None or table in scope.listed or view in scope.views or table in TABLE_FUNCTIONS:
            return True
        if not column:  # A name of which no column is read: that of a CTE, or a table whose rows are counted.
            return table in scope.readable or not scope.is_taken(table)
        if (table, column) == ("sqlite_master", "ROWID"):  # SQLite asks this when it sets up a table function.
            return True
        return table in self._shadows and table.rpartition("_")[0] in scope.listed

    def _may_ask(self, pragma: str, argument: str | None) -> bool:
        if argument is None:
            return pragma in _OWN_PRAGMAS or (self._scope is None and pragma in PRAGMAS_ALONE)
        if self._scope is None:
            return pragma in PRAGMAS_OF_OBJECTS
        return pragma in PRAGMAS_OF_TABLES and folded(argument) in self._scope.listed


class BoundedRows:
    """The rows of one statement, none of which may be larger than memory can bear.

    Args:
        connection: Where the statement runs.
        statement: The statement.
    """

    def __init__(self, connection: ReadingConnection, statement: str) -> None:
        self._connection = connection
        self._cursor = connection.execute(statement)

    @property
    def description(self) -> Any:
        """The columns, as every driver tells them."""
        return self._cursor.description

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._connection.start_row()
        for row in self._cursor:
            yield row
            self._connection.start_row()

    def close(self) -> None:
        """End the statement."""
        self._cursor.close()


def _read_only_uri(url: URL) -> str:
    """Return the URI by which SQLite opens the database of `url` for reading, after a look at the file."""
    database = url.database or ""
    options = {key: value for key, value in url.query.items() if key not in _DRIVER_ARGUMENTS}
    path = unquote(database.removeprefix("file:")) if database.startswith("file:") else database
    if options.get("mode") == "memory" and options.get("cache") == "shared" and database.startswith("file:"):
        return f"file:{quote(path)}?{urlencode(options)}"
    if not path or path == ":memory:" or options.get("mode") == "memory":
        raise AKConfigError(
            "A private in-memory SQLite database holds nothing to read. Name a file, as in 'sqlite:///cities.db', or share "
            "the database by name: 'sqlite:///file:cities?mode=memory&cache=shared&uri=true'."
        )
    _check_file(Path(path))
    return f"{Path(path).absolute().as_uri()}?{urlencode({**options, 'mode': 'ro'})}"


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise AKConfigError(f"There is no SQLite database '{path}'.")
    try:
        with path.open("rb") as file:
            header = file.read(len(_FILE_HEADER))
    except OSError as error:
        raise AKConfigError(f"The SQLite database '{path}' cannot be read: {error.strerror}.") from error
    if header and header != _FILE_HEADER:
        raise AKConfigError(f"'{path}' is not a SQLite database.")
