"""`StarburstManager`: Starburst or plain Trino, which a model may query and nothing else."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.deadline import DEFAULT_SECONDS, Deadline, deadline_of
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeQueryError,
    KnowledgeStateError,
)
from agentkernel_kb.guard import analyse_read
from agentkernel_kb.identity import current_identity, required_identity
from agentkernel_kb.model import KnowledgeCapabilities, Record, RecordPage
from agentkernel_kb.render import NOTHING_FOUND, table
from agentkernel_kb.rows import row_records, rows_of
from agentkernel_kb.starburst.asking import Asker, asker
from agentkernel_kb.starburst.described import DescribedTable
from agentkernel_kb.starburst.failures import failure_in
from agentkernel_kb.starburst.hints import HINT_SECONDS, hint_for
from agentkernel_kb.starburst.names import identifier, qualified
from agentkernel_kb.starburst.settings import read_settings
from agentkernel_kb.starburst.statement import DIALECT, prepared
from agentkernel_kb.starburst.tables import entries_at

if TYPE_CHECKING:
    from agentkernel_kb.starburst.attempt import Fetched
    from agentkernel_kb.starburst.server import Server

DESCRIBE_SECONDS = 10.0
_MOST_CORES = 1_000_000
_TABLE_PARTS = 3


class StarburstManager(KnowledgeBase):
    """Tables behind Starburst or plain Trino, read by SQL statements.

    Two locks hold, each without the other: the guard proves every statement to be a read before it is sent, and the server runs
    it in a transaction that was started as `READ ONLY`. Rows are streamed, never more than asked for; the server stops a query
    at its deadline, and one that nobody waits for any more is cancelled there.

    Args:
        host: Name or address of the coordinator, or its URL; `STARBURST_HOST` by default.
        port: Its port; `STARBURST_PORT` by default, else 443.
        user: The user; `STARBURST_USER` by default.
        password: The password; `STARBURST_PASSWORD` by default, none where that is not set either. It is sent over https only.
        catalog: Catalog of tables that a statement names without one.
        schema: Schema of such tables; it is kept as `db_schema`.
        table_name: A table whose columns the schema describes, in that catalog and schema or with its own, dots between.
        name: Name of the backend.
        description: What it holds, for whoever chooses between backends.
        http_scheme: `http` or `https`; by default `https` where there is a login or the port is 443.
        auth: An authentication of the `trino` client in place of a password, such as `trino.auth.JWTAuthentication(token)`,
            `OAuth2Authentication()` or `CertificateAuthentication(cert, key)`.
        verify: `False` takes any certificate; a path names the file or folder of those that are trusted.
        connect: `"eager"` reaches the server at once and raises if it cannot be used, `"lazy"` at first use.
        browse: Also declare browsing: catalogs, schemas, tables, columns.
        impersonate: The session's user becomes the principal that a call acts for. The server has to allow the login to do so.
        requires_identity: Refuse calls that act for nobody; by default whatever `impersonate` is.
        client_tags: Tags of every query on the server. Those of an identity come on top.
        roles: The role to take: one for the system, or by catalog.
        timezone: Time zone of the session; this machine's by default.
        session_properties: Session properties of every query.
        extra_credential: Further credentials that connectors ask for, as pairs.
        http_headers: Further headers of every request, such as a gateway asks for.
        source: What the server's list of queries names as their source.
        cpu_cores: A statement may use as much processor time as so many cores have until its deadline.

    Raises:
        AKConfigError: An argument is missing or contradicts another one; a login would go over http.
        KnowledgeDependencyError: The extra `starburst` is missing.
        KnowledgeConnectionError: The server cannot be used, unless it is opened lazily; `state` says why.
        KnowledgeTimeoutError: It did not answer in time.
    """

    db_system = "trino"

    def __init__(
        self,
        host: str | None = None,
        port: int | str | None = None,
        user: str | None = None,
        password: str | None = None,
        catalog: str = "",
        schema: str = "",
        table_name: str = "",
        name: str = "starburst",
        description: str | None = None,
        *,
        http_scheme: Literal["http", "https"] | None = None,
        auth: object = None,
        verify: bool | str = True,
        connect: Literal["eager", "lazy"] = "eager",
        browse: bool = False,
        impersonate: bool = False,
        requires_identity: bool | None = None,
        client_tags: Collection[str] = (),
        roles: Mapping[str, str] | str | None = None,
        timezone: str | None = None,
        session_properties: Mapping[str, str] | None = None,
        extra_credential: Sequence[tuple[str, str]] = (),
        http_headers: Mapping[str, str] | None = None,
        source: str = "agentkernel-kb",
        cpu_cores: int = 1_000,
    ) -> None:
        name = name or "starburst"
        super().__init__(
            KnowledgeCapabilities(
                kinds=["structured"], query=True, query_language="sql", browse=browse, derives_schema=bool(table_name)
            ),
            name,
        )
        if connect not in ("eager", "lazy"):
            raise AKConfigError(f"StarburstManager '{name}': connect is 'eager' or 'lazy', not {connect!r}.")
        if isinstance(cpu_cores, bool) or not isinstance(cpu_cores, int) or not 1 <= cpu_cores <= _MOST_CORES:
            raise AKConfigError(f"StarburstManager '{name}': cpu_cores is a whole number from 1, not {cpu_cores!r}.")
        self._settings = read_settings(
            name,
            host=host,
            port=port,
            user=user,
            password=password,
            http_scheme=http_scheme,
            auth=auth,
            verify=verify,
            catalog=catalog,
            db_schema=schema,
            source=source,
            client_tags=client_tags,
            roles=roles,
            timezone=timezone,
            session_properties={} if session_properties is None else session_properties,
            extra_credential=extra_credential,
            http_headers={} if http_headers is None else http_headers,
        )
        self.catalog, self.db_schema, self.table_name = catalog, schema, table_name
        self.requires_identity = impersonate if requires_identity is None else requires_identity
        self._impersonate, self._description, self._cores = impersonate, description, cpu_cores
        self._table = self._checked_table() if table_name else None
        self._server: Server | None = None
        _check_extra()
        self.connect()
        if connect == "eager":
            self._reach()

    def _checked_table(self) -> DescribedTable:
        given = [self.catalog, self.db_schema]
        parts = [*given, self.table_name] if all(given) else [*filter(None, given[:1]), *self.table_name.split(".")]
        if len(parts) != _TABLE_PARTS or not all(parts):
            raise AKConfigError(f"StarburstManager '{self.backend_name}': table_name needs a catalog and a schema.")
        return DescribedTable((parts[0], parts[1], parts[2]), is_default=all(given))

    def _reach(self) -> None:
        try:
            self.ping(timeout=DEFAULT_SECONDS)
        except KnowledgeError:
            self.close()
            raise

    def __repr__(self) -> str:
        # Neither the password nor what stands for one.
        settings = self._settings
        return (
            f"StarburstManager({settings.scheme}://{settings.address}, user={settings.user!r}, catalog={self.catalog!r}, "
            f"schema={self.db_schema!r}, name={self.backend_name!r})"
        )

    @property
    def backend_name(self) -> str:
        """The name given at construction."""
        return self._given_name

    # Connecting.

    def connect(self, **kwargs: Any) -> None:
        """Make the client ready. Called by the constructor; connections are made as they are needed."""
        if self._server is None:
            from agentkernel_kb.starburst.server import Server  # The SDK comes with it.

            self._server = Server(self._settings, self.backend_name, cores=self._cores)

    def close(self) -> None:
        """Close the connections. May be called twice; other calls then raise `KnowledgeStateError`."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _open_server(self) -> Server:
        if self._server is None:
            raise KnowledgeStateError(f"StarburstManager '{self.backend_name}' is closed.")
        return self._server

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the server with the login, look for the catalog and the schema, and return the server's version.

        Args:
            timeout: Seconds within which to answer; 30 by default.

        Raises:
            KnowledgeConnectionError: It cannot be used; `state` says why. A catalog or schema that is not there is `missing`.
            KnowledgeTimeoutError: No answer in time.
            KnowledgeStateError: The backend is closed.
        """
        deadline = deadline_of(timeout)
        version = self._ask("SELECT version()", 1, deadline, self._asker(must=False))[0][0]
        if self.catalog:
            # Neither lists anything; the server only looks whether the place is there.
            place = (
                f"TABLES FROM {qualified([self.catalog, self.db_schema])}"
                if self.db_schema
                else f"SCHEMAS FROM {identifier(self.catalog)}"
            )
            try:
                self._ask(f"SHOW {place} LIKE ''", 1, deadline, self._asker(must=False))
            except KnowledgeQueryError as error:
                raise KnowledgeConnectionError(str(error), state="missing") from error.__cause__
        return str(version)

    # Reading.

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
            statement: One statement of Trino's SQL that only reads: SELECT and its kin, SHOW, DESCRIBE, EXPLAIN.
            limit: Most rows where the statement has no outer LIMIT of its own, at least 1. One more is asked for.
            timeout: Seconds until the statement is stopped, here and on the server; 30 by default.
            allow: Names of further table functions that the statement may use.
            max_rows: Most rows whatever the statement's own LIMIT says; 1,000 by default, or `limit` where that is more.
            kwargs: Unknown arguments are ignored.

        Returns:
            A record per row: `text` has `column=value, …` on one line, `metadata["row"]` the values by column (names that
            repeat become `a`, `a_2`) as JSON can hold them, decimals, dates, times and intervals as the server's text, rows as
            mappings; `metadata["source"]` is the backend's name. `more` tells that the statement has further rows.

        Raises:
            KnowledgeGuardError: The statement is not provably a read, or the server found that it is none.
            KnowledgeIdentityError: The call acts for nobody where the backend demands somebody, or for somebody whom the server
                does not let this application act for.
            KnowledgeQueryError: The server rejected the statement; the place and near names are in the message.
            KnowledgeTimeoutError: Time was out; the query is cancelled on the server.
            KnowledgeConnectionError: The server cannot be used.
            KnowledgeStateError: The backend is closed.
        """
        who, deadline = self._asker(), deadline_of(timeout)
        server = self._open_server()
        sent, most = prepared(statement, limit, allow, max_rows)
        try:
            fetched = server.fetch(sent, most, deadline, who)
        except KnowledgeQueryError as error:
            raise self._with_hint(error, statement, deadline, who) from error.__cause__
        return self._page(fetched)

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
        """`query` without blocking the event loop; a call that is cancelled stops its query on the server."""
        who, deadline = self._asker(), deadline_of(timeout)
        server = self._open_server()
        sent, most = await self._kb_in_worker(prepared, statement, limit, allow, max_rows)
        try:
            fetched = await server.afetch(sent, most, deadline, who)
        except KnowledgeQueryError as error:
            raise await self._kb_in_worker(self._with_hint, error, statement, deadline, who) from error.__cause__
        return self._page(fetched)

    def _page(self, fetched: Fetched) -> RecordPage:
        return RecordPage(row_records(fetched.columns, fetched.rows, self.backend_name), more=fetched.more)

    def check_read(self, statement: str, *, allow: Collection[str] = (), timeout: float | None = None) -> None:
        """Prove that `statement` only reads.

        Args:
            statement: The statement.
            allow: Names of further table functions that it may use.
            timeout: Named because the proof ends by itself: its time is bounded by the size that a statement may have.

        Raises:
            KnowledgeGuardError: It cannot be proven.
        """
        analyse_read(statement, dialect=DIALECT, allow=allow)

    def browse(self, path: str = "", limit: int = 50, *, timeout: float | None = None, **kwargs: Any) -> RecordPage:
        """Return what stands at a path: catalogs at the root, then schemas, tables, and the columns of a table.

        Args:
            path: `catalog/schema/table`, or a beginning of it; `""` is the root.
            limit: Most entries, at least 1.
            timeout: Seconds within which to answer; 30 by default.
            kwargs: Unknown arguments are ignored.

        Returns:
            A record per entry. The text of a catalog, schema or table is its path, with the comment on it in brackets, and
            `metadata["kind"]` is `folder`; a column's is its name, type and comment. Empty where nothing is.

        Raises:
            KnowledgeCapabilityError: Browsing was not asked for at construction.
            KnowledgeTimeoutError: Time was out.
            KnowledgeConnectionError: The server cannot be used.
        """
        if not self.capabilities.browse:
            raise KnowledgeCapabilityError(self.backend_name, "browse")
        ask = partial(self._ask, deadline=deadline_of(timeout), who=self._asker())
        return entries_at(path, max(1, limit), ask, self.backend_name)

    def format_results(self, rows: Iterable[Record]) -> str:
        """Return rows as a compact table; records that are no rows are shown as any other backend's."""
        found = list(rows)
        if not found:
            return NOTHING_FOUND
        typed = rows_of(found)
        return super().format_results(found) if typed is None else table(typed)

    # What it says about itself.

    def get_description(self) -> str:
        """Return the backend's name and what it holds: the given description, or where its tables are."""
        if self._description:
            return f"{self.backend_name}: {self._description}"
        place = ".".join(filter(None, (self.catalog, self.db_schema, self.table_name)))
        return f"{self.backend_name}: tables to be read by Trino SQL" + (f", in {place}" if place else "")

    def _derived_schema(self) -> Mapping[str, Any]:
        place = {"dialect": DIALECT, "catalog": self.catalog, "schema": self.db_schema}
        known = {key: value for key, value in place.items() if value}
        return {**known, **self._described(self._table)} if self._table else known

    def reload(self) -> None:
        """Forget what is known about the table, so that the next schema is read anew."""
        if self._table is not None:
            self._table.forget()

    def _described(self, described: DescribedTable) -> Mapping[str, Any]:
        """Return the columns of the table; if they cannot be had, why not."""
        try:
            who = self._asker()
            return described.schema(who.user, partial(self._ask, deadline=Deadline(DESCRIBE_SECONDS), who=who))
        except KnowledgeError as error:
            return {"tables": {}, "note": f"The columns of {self.table_name} are not known: {error}"}

    # Asking.

    def _asker(self, *, must: bool = True) -> Asker:
        """Return who asks.

        Raises:
            KnowledgeIdentityError: A call `must` act for somebody and does not.
        """
        identity = required_identity(self.backend_name) if must and self.requires_identity else current_identity()
        return asker(self._settings, identity, impersonate=self._impersonate, backend=self.backend_name)

    def _ask(self, statement: str, most: int, deadline: Deadline, who: Asker) -> Sequence[Sequence[Any]]:
        return self._open_server().fetch(statement, most, deadline, who, read_only=False).rows

    def _with_hint(self, error: KnowledgeQueryError, statement: str, deadline: Deadline, who: Asker) -> KnowledgeError:
        """Return the error with what was probably meant, or as one of the deployment where its own catalog is missing."""
        failure = failure_in(error)
        own = {"CATALOG_NOT_FOUND": self.catalog, "SCHEMA_NOT_FOUND": self.db_schema}.get(failure.name)
        if own and f"'{own}'" in failure.message:
            return KnowledgeConnectionError(str(error), state="missing")
        ask = partial(self._ask, deadline=deadline.within(HINT_SECONDS), who=who)
        hint = hint_for(failure, statement, catalog=self.catalog, schema=self.db_schema, ask=ask)
        return KnowledgeQueryError(f"{str(error).rstrip('.')}. {hint}") if hint else error


def _check_extra() -> None:
    if any(importlib.util.find_spec(module) is None for module in ("requests", "sqlglot", "trino")):
        raise KnowledgeDependencyError("starburst", "StarburstManager")
