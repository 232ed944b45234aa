"""`SQLManager`: a SQL database that a model may query and nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.deadline import Deadline, deadline_of
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
)
from agentkernel_kb.guard import ReadStatement, analyse_read, with_limit
from agentkernel_kb.guard.lexer import folded
from agentkernel_kb.identity import required_identity
from agentkernel_kb.model import KnowledgeCapabilities, Record, RecordPage
from agentkernel_kb.render import NOTHING_FOUND, table
from agentkernel_kb.rows import most_rows, row_records, rows_of
from agentkernel_kb.sql.acting import ActingRules, RoleOf
from agentkernel_kb.sql.catalogue import Catalogue
from agentkernel_kb.sql.duckdb_isolated import IsolatedReader, reader_for
from agentkernel_kb.sql.locks import SERVERS, VERSION_QUERIES, EngineLock, lock_for
from agentkernel_kb.sql.reader import Reader

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

CONNECT_SECONDS = 15.0
CATALOGUE_SECONDS = 10.0
CATALOGUE_LIFETIME_SECONDS = 300.0
_TABLES_IN_DESCRIPTION = 12
_MOST = 1_000_000_000  # More bytes than SQLite can hold in one value.


class SQLManager(KnowledgeBase):
    """A SQL database, read by statements in its own dialect: SQLite, DuckDB or PostgreSQL.

    Two locks hold, each without the other: the guard proves every statement to be a read before it is sent, and the engine is
    opened so that it only reads. Rows are streamed, never more than asked for. The engine itself stops at the deadline.

    Args:
        url: SQLAlchemy URL of the database, such as `sqlite:///cities.db`, `duckdb:///cities.duckdb` or
            `postgresql://reader:…@host/cities`.
        name: Name of the backend; `"sql"` by default.
        description: What the database holds, for whoever chooses between backends; its tables by default.
        tables: Names of the tables and views that are described and may be read, `None` for all. A view may be listed
            without the tables that it reads.
        described_tables: Most tables that the schema describes; it says how many more there are.
        max_value_bytes: Largest value that a statement may read or compute.
        connect: `"eager"` reaches for a server when the backend is constructed, `"lazy"` when it is first used.
        requires_identity: Refuse calls that act for nobody; by default where one of the next two is given.
        role_of: PostgreSQL: returns the role as which a call runs that acts for an identity.
        settings_prefix: PostgreSQL: the settings `<prefix>.principal`, `.tenant` and `.roles` hold the identity of a call.
        isolate: DuckDB: run the engine in processes of its own, which a statement may bring down or fill without harm to this
            one. Without it everything is in this process.

    Raises:
        AKConfigError: The URL cannot be read, its dialect is not supported, or it names no database.
        KnowledgeDependencyError: The extra `sql`, `duckdb` or `postgres` is missing.
        KnowledgeConnectionError: The server cannot be used; `state` says why.
        KnowledgeTimeoutError: The server did not answer.
    """

    def __init__(
        self,
        url: str | URL,
        name: str = "",
        description: str | None = None,
        *,
        tables: Collection[str] | None = None,
        described_tables: int = 50,
        max_value_bytes: int = 1_000_000,
        connect: Literal["eager", "lazy"] = "eager",
        requires_identity: bool | None = None,
        role_of: RoleOf | None = None,
        settings_prefix: str | None = None,
        isolate: bool = True,
    ) -> None:
        super().__init__(
            KnowledgeCapabilities(kinds=["structured"], query=True, query_language="sql", derives_schema=True),
            name or "sql",
        )
        acting = ActingRules(role_of, settings_prefix)
        self.requires_identity = bool(acting) if requires_identity is None else requires_identity
        self._description = description
        self._tables = self._checked_tables(tables)
        self._described_tables = self._checked_number("described_tables", described_tables, 0)
        self._checked_number("max_value_bytes", max_value_bytes, 1)
        self._url, self._lock = self._locked(url, max_value_bytes, acting)
        self.db_system = {"postgres": "postgresql"}.get(self._lock.dialect, self._lock.dialect)
        self._isolate = isolate
        self._reader: Reader | IsolatedReader | None = None
        self._catalogue: tuple[float, Catalogue] | None = None
        self._catalogue_lock = threading.Lock()
        self._is_eager = self._checked_choice("connect", connect, ("eager", "lazy")) == "eager"
        self.connect()

    def _checked_tables(self, tables: object) -> tuple[str, ...] | None:
        if tables is None:
            return None
        if isinstance(tables, str | bytes) or not isinstance(tables, Collection):
            raise AKConfigError(f"SQLManager '{self.backend_name}': tables takes a list of names, not {tables!r}.")
        names = cast("Collection[object]", tables)
        for name in names:
            if not isinstance(name, str):
                raise AKConfigError(f"SQLManager '{self.backend_name}': tables takes names, not {name!r}.")
        return tuple(name for name in names if isinstance(name, str))

    def _checked_number(self, argument: str, value: object, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise AKConfigError(
                f"SQLManager '{self.backend_name}': {argument} is a whole number from {least} to {_MOST:,}, not {value!r}."
            )
        return value

    def _checked_choice(self, argument: str, value: object, choices: tuple[str, ...]) -> str:
        if not isinstance(value, str) or value not in choices:
            raise AKConfigError(f"SQLManager '{self.backend_name}': {argument} is one of {choices}, not {value!r}.")
        return value

    def __repr__(self) -> str:
        # Neither the user, the host nor the query: drivers take passwords and tokens there.
        return f"SQLManager({self._lock.dialect}, database={self._url.database!r}, name={self.backend_name!r})"

    def _locked(self, url: str | URL, max_value_bytes: int, acting: ActingRules) -> tuple[URL, EngineLock]:
        try:
            import sqlglot  # noqa: F401  # pyright: ignore[reportUnusedImport] - the guard's; better missed now than at first use
            from sqlalchemy.engine import make_url
            from sqlalchemy.exc import ArgumentError
        except ImportError as error:
            raise KnowledgeDependencyError(_extra_for(url), "SQLManager") from error
        try:
            parsed = make_url("" if _is_torn(url) else url)
        except (ArgumentError, ValueError, TypeError):
            # The cause is left out: the text may hold a password.
            raise AKConfigError(
                f"SQLManager '{self.backend_name}' needs a SQLAlchemy URL, such as 'sqlite:///cities.db'."
            ) from None
        return parsed, lock_for(parsed, tables=self._tables, max_value_bytes=max_value_bytes, acting=acting)

    @property
    def backend_name(self) -> str:
        """The name given at construction."""
        return self._given_name

    def connect(self, **kwargs: Any) -> None:
        """Make the database ready; a server is reached for unless that was to wait. Called by the constructor.

        Raises:
            KnowledgeConnectionError: The server cannot be used.
            KnowledgeTimeoutError: The server did not answer.
        """
        if self._reader is not None:
            return
        self._reader = reader_for(self._lock, self.backend_name, isolate=self._isolate)
        if self._is_eager and self._lock.dialect in SERVERS:
            try:
                self.ping(timeout=CONNECT_SECONDS)
            except KnowledgeError:
                self.close()
                raise

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the database and return its engine's version.

        Args:
            timeout: Seconds within which to answer; 30 by default.

        Raises:
            KnowledgeConnectionError: It cannot be used; `state` says why.
            KnowledgeTimeoutError: No answer in time.
            KnowledgeStateError: The backend is closed.
        """
        fetched = self._open_reader().fetch(VERSION_QUERIES[self._lock.dialect], 1, deadline_of(timeout))
        return f"{self._lock.dialect} {fetched.rows[0][0]}"

    def close(self) -> None:
        """Close the connections. May be called twice.

        Afterwards `query` and `schema` raise `KnowledgeStateError`; the description and the diagnostics do without tables.
        """
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _open_reader(self) -> Reader | IsolatedReader:
        if self._reader is None:
            raise KnowledgeStateError(f"SQLManager '{self.backend_name}' is closed.")
        return self._reader

    def query(
        self,
        statement: str,
        limit: int = 3,
        *,
        timeout: float | None = None,
        allow: Collection[str] = (),
        max_rows: int | None = None,
        **kwargs: Any,
    ) -> RecordPage:
        """Return the rows that a reading statement selects.

        Args:
            statement: One SQL statement that only reads, in the database's dialect.
            limit: Most rows where the statement has no outer LIMIT of its own, at least 1.
            timeout: Seconds until the statement is stopped; 30 by default.
            allow: Names of further table functions that the statement may use.
            max_rows: Most rows whatever the statement's own LIMIT says; 1,000 by default, or `limit` where that is more.
            kwargs: Unknown arguments are ignored.

        Returns:
            A record per row: `text` has `column=value, …` on one line, `metadata["row"]` the typed values by column (names
            that repeat become `a`, `a_2`), `metadata["source"]` the backend's name. `more` tells that the statement has
            further rows. Empty when no row fits.

        Raises:
            KnowledgeGuardError: The statement is not provably a read, or reads what it may not.
            KnowledgeQueryError: The database rejected the statement; near names are in the message.
            KnowledgeTimeoutError: Time was out, or a writer held the database until then.
            KnowledgeConnectionError: The database cannot be read.
            KnowledgeIdentityError: The call acts for nobody and has to, or for somebody that the database does not take.
            KnowledgeStateError: The backend is closed.
        """
        return self._query(statement, limit, deadline_of(timeout), allow, max_rows)

    async def aquery(
        self,
        statement: str,
        limit: int = 3,
        *,
        timeout: float | None = None,
        allow: Collection[str] = (),
        max_rows: int | None = None,
        **kwargs: Any,
    ) -> RecordPage:
        """`query` without blocking the event loop; a statement whose call is cancelled is stopped."""
        deadline = deadline_of(timeout)
        try:
            return await self._kb_in_worker(self._query, statement, limit, deadline, allow, max_rows)
        finally:
            deadline.end()

    def _query(
        self, statement: str, limit: int, deadline: Deadline, allow: Collection[str], max_rows: int | None
    ) -> RecordPage:
        reader = self._open_reader()
        if self.requires_identity:
            required_identity(self.backend_name)
        read = self._proven(statement, allow)
        most = most_rows(limit, max_rows, has_own=read.has_limit)
        # PostgreSQL's rows are bounded by a query around the statement, which measures them too.
        sent = statement if self._lock.dialect in SERVERS else with_limit(statement, read, most + 1)
        try:
            fetched = reader.fetch(sent, most, deadline)
        except KnowledgeQueryError as error:
            raise self._with_near_names(error) from error.__cause__
        return RecordPage(row_records(fetched.columns, fetched.rows, self.backend_name), more=fetched.more)

    def check_read(self, statement: str, *, allow: Collection[str] = (), timeout: float | None = None) -> None:
        """Prove that `statement` only reads, and only from the tables that may be read.

        Args:
            statement: The statement.
            allow: Names of further table functions that it may use.
            timeout: Named because the proof ends by itself: its time is bounded by the size that a statement may have, and is
                less than a second.

        Raises:
            KnowledgeGuardError: It cannot be proven.
        """
        self._proven(statement, allow)

    def _proven(self, statement: str, allow: Collection[str]) -> ReadStatement:
        read = analyse_read(statement, dialect=self._lock.dialect, allow=allow)
        if self._tables is not None:
            outside = sorted(read.tables - {*self._tables, *map(folded, self._tables)})
            if outside:
                known = ", ".join(self._tables)
                raise KnowledgeGuardError(f"Only these tables may be read: {known}", part=outside[0])
        return read

    def _with_near_names(self, error: KnowledgeQueryError) -> KnowledgeQueryError:
        name = self._lock.missing_name(error)
        catalogue = self._known_catalogue() if name else None
        if name is None or catalogue is None:
            return error
        near = catalogue.near(name)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Tables: {', '.join(catalogue.labels()[:30])}"
        return KnowledgeQueryError(f"{error}. {hint}")

    def format_results(self, rows: Iterable[Record]) -> str:
        """Return rows as a compact table; records that are no rows are shown as any other backend's."""
        found = list(rows)
        if not found:
            return NOTHING_FOUND
        typed = rows_of(found)
        return super().format_results(found) if typed is None else table(typed)

    def get_description(self) -> str:
        """Return the backend's name and what the database holds: the given description, or its tables."""
        if self._description:
            return f"{self.backend_name}: {self._description}"
        catalogue = self._known_catalogue()
        names = catalogue.labels() if catalogue else []
        shown = ", ".join(names[:_TABLES_IN_DESCRIPTION]) + (", …" if len(names) > _TABLES_IN_DESCRIPTION else "")
        return f"{self.backend_name}: SQL database ({self._lock.dialect})" + (f" with the tables {shown}" if shown else "")

    def get_diagnostics(self) -> Sequence[str]:
        """Return which listed tables are missing and which views are broken."""
        catalogue = self._known_catalogue()
        return catalogue.diagnostics() if catalogue else ()

    def reload(self) -> None:
        """Forget what is known about the tables, so that the next schema is read anew."""
        self._catalogue = None

    def _derived_schema(self) -> Mapping[str, Any]:
        return {"dialect": self._lock.dialect, **self._current_catalogue().schema()}

    def _known_catalogue(self) -> Catalogue | None:
        """Return the catalogue where it can be had; who asks does without it."""
        try:
            return self._current_catalogue()
        except KnowledgeError:
            return None

    def _current_catalogue(self) -> Catalogue:
        reader = self._open_reader()
        with self._catalogue_lock:
            if self._catalogue is None or time.monotonic() > self._catalogue[0]:
                catalogue = reader.catalogue(only=self._tables, most=self._described_tables, seconds=CATALOGUE_SECONDS)
                self._catalogue = (time.monotonic() + CATALOGUE_LIFETIME_SECONDS, catalogue)
            return self._catalogue[1]


def _extra_for(url: object) -> str:
    """Return the extra that brings all that a database needs, as far as its URL tells without SQLAlchemy."""
    return next((extra for extra in ("duckdb", "postgres") if str(url).startswith(extra)), "sql")


def _is_torn(url: object) -> bool:
    """Tell whether an '@' in a password makes a part of it the host, and a '?' a parameter of the rest, which is left out."""
    parameters = url.partition("@")[2].partition("?")[2] if isinstance(url, str) else ""
    return any("@" in part and "=" not in part for part in parameters.split("&"))
