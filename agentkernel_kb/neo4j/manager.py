"""`Neo4jManager`: a graph on a Neo4j server, which a model may query, and write to, in Cypher."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.deadline import Deadline, deadline_of
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.graph_values import records, table_rows
from agentkernel_kb.graph_writes import not_stored, statement_of
from agentkernel_kb.guard.cypher import analyse_read_cypher, check_write_cypher
from agentkernel_kb.model import KnowledgeCapabilities, Record, RecordPage
from agentkernel_kb.neo4j import search, sessions
from agentkernel_kb.neo4j.arguments import (
    DatabaseOf,
    Scoping,
    check_database_of,
    check_names,
    check_number,
    check_text,
    target_of,
)
from agentkernel_kb.neo4j.calls import Calls, Manner
from agentkernel_kb.neo4j.catalogue import quoted
from agentkernel_kb.neo4j.catalogues import Catalogues
from agentkernel_kb.neo4j.search import EmbeddingFunction, SearchIndex
from agentkernel_kb.neo4j.verdicts import Verdicts
from agentkernel_kb.render import NOTHING_FOUND, metadata_of, table
from agentkernel_kb.rows import most_rows

ENGINE = "neo4j"
CONNECT_SECONDS = 10.0
_LABELS_IN_DESCRIPTION = 12
_NOTES = (
    "One statement that reads, without parameters. labels(n) are the labels of a node, type(r) is the type of a relationship. "
    "SHOW, LOAD CSV, USE, PROFILE, apoc.* and dbms.* are refused."
)


class Neo4jManager(KnowledgeBase):
    """A graph on a Neo4j server.

    Three locks hold on reads, each without the others: the guard proves every statement to be a read before it is sent, the
    server says of each statement that it sees for the first time what it does (`EXPLAIN`), and runs it in a transaction in
    READ mode. The statement is sent as it is; rows are streamed, never more than asked for. The server has a time limit for
    each transaction, and ends what the client gives up.

    Args:
        uri: The server, such as `neo4j+s://host` or `bolt://host:7687`, without a login; `NEO4J_URI` by default.
        user: The user; `NEO4J_USERNAME` by default. None for a server without logins.
        password: Its password; `NEO4J_PASSWORD` by default. Never shown.
        database: The database; the user's home database by default.
        name: Name of the backend; `"neo4j"` by default.
        description: What the graph holds, for whoever chooses between backends; its labels by default.
        allow: Names of further functions and procedures that reads may use, such as `apoc.text.clean`.
        connect: `"lazy"` connects at first use; `"eager"` when it is constructed.
        described: Most labels, and most types of relationships, that the schema describes; it says how many more there are.
        search_index: Name of a full-text or vector index, by which the backend then also declares `search`.
        embedding_function: Texts to vectors, for a vector index: an object with `embed_query`, or a callable from a list of
            texts to as many vectors.
        search_text: The property whose value a hit shows; by default those of a full-text index, or the whole node.
        certificates: Files of the authorities that are trusted, for `bolt://` and `neo4j://`, whose connections are then
            encrypted.
        requires_identity: Refuse a call for which the application bound no identity.
        impersonate: Run each call with the rights of its principal, which Neo4j's Enterprise edition offers. It requires an
            identity.
        database_of: The database of a tenant, a mapping or a function. It requires an identity with a tenant.

    Raises:
        AKConfigError: An argument is missing or wrong.
        KnowledgeConnectionError: The server cannot be used; `state` says why. Never with `connect="lazy"`.
        KnowledgeDependencyError: The extra `neo4j` is missing.
    """

    db_system = "neo4j"

    def __init__(
        self,
        uri: str | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        name: str = "",
        description: str | None = None,
        *,
        allow: Collection[str] = (),
        connect: Literal["eager", "lazy"] = "eager",
        described: int = 50,
        search_index: str | None = None,
        embedding_function: EmbeddingFunction | None = None,
        search_text: str | None = None,
        certificates: Iterable[str | Path] = (),
        requires_identity: bool = False,
        impersonate: bool = False,
        database_of: DatabaseOf | None = None,
    ) -> None:
        super().__init__(
            KnowledgeCapabilities(
                kinds=["graph", "structured"],
                search=search_index is not None,
                search_mode=None if search_index is None else "lexical" if embedding_function is None else "semantic",
                query=True,
                query_language="cypher",
                writable=True,
                derives_schema=True,
            ),
            name or "neo4j",
        )
        subject = self.backend_name
        if connect not in ("eager", "lazy"):
            raise AKConfigError(f"'{subject}': connect is 'eager' or 'lazy', not {connect!r}.")
        if search_index is None and (embedding_function is not None or search_text is not None):
            raise AKConfigError(f"'{subject}': embedding_function and search_text go with search_index.")
        check_text(subject, "search_index", search_index)
        check_text(subject, "search_text", search_text)
        check_database_of(subject, database_of)
        self._target = target_of(subject, uri=uri, user=user, password=password, database=database, certificates=certificates)
        self._description = description
        self._allow = check_names(subject, "allow", allow)
        self._index = None if search_index is None else SearchIndex(search_index, embedding_function, search_text)
        self.requires_identity = bool(requires_identity or impersonate or database_of is not None)
        scoping = Scoping(subject, database, bool(impersonate), database_of, self.requires_identity)
        self._calls = Calls(self._target, scoping)
        self._catalogues = Catalogues(self._calls, check_number(subject, "described", described, 0))
        self._verdicts = Verdicts()
        if connect == "eager":
            self.connect()

    def __repr__(self) -> str:
        return f"Neo4jManager({self._target.uri!r}, database={self._target.database!r}, name={self.backend_name!r})"

    @property
    def backend_name(self) -> str:
        """The name given at construction."""
        return self._given_name

    def connect(self, **kwargs: Any) -> None:
        """Reach the server, and open it again after `close`. Called by the constructor, unless it is told to be lazy.

        Raises:
            KnowledgeConnectionError: The server cannot be used; `state` says why.
            KnowledgeTimeoutError: It did not answer within ten seconds.
        """
        self._calls.reopen()
        if not self.requires_identity:
            self.ping(timeout=CONNECT_SECONDS)

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the database and return the server's version.

        Raises:
            KnowledgeConnectionError: It cannot be used; `state` says why.
            KnowledgeTimeoutError: No answer in time.
            KnowledgeIdentityError: The call acts for nobody, and has to act for somebody.
            KnowledgeStateError: The backend is closed.
        """
        return self._calls.run(sessions.version, deadline_of(timeout))

    def close(self) -> None:
        """Cancel what runs and close the connections. May be called twice; other calls then raise `KnowledgeStateError`."""
        self._calls.close()

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
            statement: One Cypher statement that only reads, without parameters. `EXPLAIN` gives its plan, a line per record.
            limit: Most rows where the statement has no outer LIMIT of its own, at least 1.
            timeout: Seconds until the statement is given up and stopped on the server; 30 by default.
            allow: Names of further functions and procedures that the statement may use.
            max_rows: Most rows whatever the statement's own LIMIT says; 1,000 by default, or `limit` where that is more.
            kwargs: Unknown arguments are ignored.

        Returns:
            A record per row: `text` has `column=value, …` on one line, with nodes, relationships and paths as Cypher draws
            them; `metadata["row"]` the values by column as JSON can hold them (names that repeat become `a`, `a_2`), a node
            being a mapping of its properties with its labels under `_labels`, a relationship one with its type under `_type`;
            `metadata["source"]` the backend's name. `more` tells that the statement has further rows, left out for their number
            or because those before took 16 MB. Empty when no row fits.

        Raises:
            KnowledgeGuardError: The statement is not provably a read, or the server does not take it for one.
            KnowledgeQueryError: The server rejected the statement, or finds nothing for a label that it does not have; near
                names are in the message.
            KnowledgeConnectionError: The server cannot be used; `state` says why.
            KnowledgeTimeoutError: Time was out.
            KnowledgeIdentityError: The call acts for nobody and has to act for somebody, or for whom the server does not take.
            KnowledgeStateError: The backend is closed.
        """
        deadline = deadline_of(timeout)
        fetched = self._calls.run(self._reading(statement, limit, allow, max_rows), deadline)
        if not fetched.rows and (fault := self._catalogues.fault_of_empty(statement, deadline)):
            raise fault
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
        """`query` without blocking the event loop, and without a thread of its own; cancelling it stops the statement."""
        deadline = deadline_of(timeout)
        fetched = await self._calls.arun(self._reading(statement, limit, allow, max_rows), deadline)
        if not fetched.rows and (fault := await self._kb_in_worker(self._catalogues.fault_of_empty, statement, deadline)):
            raise fault
        return self._page(fetched)

    def _reading(self, statement: str, limit: int, allow: Collection[str], max_rows: int | None) -> Manner[sessions.Fetched]:
        self._calls.link()
        read = analyse_read_cypher(statement, engine=ENGINE, allow=self._allowed(allow))
        most = most_rows(limit, max_rows, has_own=read.has_limit)
        return lambda driver, scope, deadline: sessions.read(driver, scope, statement, most, deadline, self._verdicts)

    def _page(self, fetched: sessions.Fetched) -> RecordPage:
        return RecordPage(records(fetched.columns, fetched.rows, self.backend_name), more=fetched.more)

    def check_read(self, statement: str, *, allow: Collection[str] = ()) -> None:
        """Prove that `statement` only reads, without asking the server.

        Raises:
            KnowledgeGuardError: It cannot be proven.
        """
        analyse_read_cypher(statement, engine=ENGINE, allow=self._allowed(allow))

    def _allowed(self, allow: Collection[str]) -> frozenset[str]:
        return self._allow | frozenset((allow,) if isinstance(allow, str) else allow)

    def format_results(self, rows: Iterable[Record]) -> str:
        """Return rows as a compact table; records that are no rows, hits of a search among them, are shown as any other's."""
        found = list(rows)
        if not found:
            return NOTHING_FOUND
        shown = None if any("score" in metadata_of(record) for record in found) else table_rows(found)
        return super().format_results(found) if shown is None else table(shown)

    # Searching.

    def search(self, query: str, limit: int = 3, *, timeout: float | None = None, **kwargs: Any) -> RecordPage:
        """Return the nodes or relationships that the search index finds, best first.

        Args:
            query: Plain words, none of which is syntax; blank text finds nothing.
            limit: Most records to return, at least 1.
            timeout: Seconds until it is given up; 30 by default.
            kwargs: Unknown arguments are ignored.

        Returns:
            `text` has the text properties, `metadata` the properties under `row`, the first label under `kind`, and the
            server's score, which is comparable within one search. `more` tells that there are further ones, left out because
            those before took 16 MB.

        Raises:
            KnowledgeCapabilityError: There is no `search_index`.
            AKConfigError: The server has no such index, or one of another type.
            KnowledgeConnectionError: The server cannot be used; `state` says why.
            KnowledgeTimeoutError: Time was out.
            KnowledgeStateError: The backend is closed.
        """
        index = self._index
        if index is None:
            raise KnowledgeCapabilityError(self.backend_name, "search")
        self._calls.link()
        if limit < 1:
            raise AKConfigError(f"limit must be at least 1, not {limit}.")
        if not query.strip():
            return RecordPage([])
        asked = index.question(query)
        return self._calls.run(
            lambda driver, scope, deadline: search.search(driver, scope, index, asked, limit, deadline, self.backend_name),
            deadline_of(timeout),
            {"query": query},
        )

    # Writing.

    def write(self, records: Iterable[Record], *, timeout: float | None = None, **kwargs: Any) -> None:
        """Run the statements of records, each in a transaction of its own, in order.

        A record's metadata has the statement under `query` and its parameters under `params`; `cypher_query` and
        `cypher_params` are understood too. A statement may write to the graph and change its indexes and constraints, and can
        reach nothing outside of it. A record without a statement is skipped, one that fails is left out, and the rest runs.

        Args:
            records: The records.
            timeout: Seconds until what is left is given up; 30 by default. What runs then is rolled back.
            kwargs: Unknown arguments are ignored.

        Raises:
            KnowledgeQueryError: A statement was rejected, by the server or because it reaches outside of the graph; the message
                says which and how many were not stored.
            KnowledgeError: Some records had no statement; the message says how many of how many were not stored.
            KnowledgeConnectionError: The server cannot be used; the message says from which record on nothing was stored.
            KnowledgeTimeoutError: Time was out.
            KnowledgeIdentityError: The call acts for nobody and has to act for somebody, or for whom the server does not take.
            KnowledgeStateError: The backend is closed.
        """
        self._calls.link()
        self._calls.scope()  # What may not be asked for anybody is refused as a whole.
        deadline = deadline_of(timeout)
        listed = list(records)
        failures: dict[int, KnowledgeError] = {}
        for number, record in enumerate(listed, start=1):
            try:
                self._write_one(record, deadline)
            except (KnowledgeTimeoutError, KnowledgeConnectionError) as error:
                raise _from_here(error, number, len(listed)) from error
            except KnowledgeError as error:
                failures[number] = error
        if failures:
            raise not_stored(failures, len(listed))

    def _write_one(self, record: Record, deadline: Deadline) -> None:
        text, parameters = statement_of(record)
        try:
            wanted = check_write_cypher(text, engine=ENGINE)
        except KnowledgeGuardError as error:  # Not the error of a read, which says that reads only read.
            raise KnowledgeQueryError(f"A write stays inside the graph. {error}") from error
        if missing := sorted(wanted - parameters.keys()):
            raise KnowledgeQueryError(f"The statement needs parameters that are not given: {', '.join(missing)}.")
        try:
            self._calls.run(
                lambda driver, scope, left: sessions.write(driver, scope, text, parameters, left), deadline, parameters
            )
        finally:
            self._catalogues.forget()

    # Describing.

    def get_description(self) -> str:
        """Return the backend's name and what the graph holds: the given description, or its labels."""
        if self._description:
            return f"{self.backend_name}: {self._description}"
        known = self._catalogues.known() if self._calls.is_open else None
        if known is None or not known.labels:
            return f"{self.backend_name}: property graph (Cypher)"
        shown = [quoted(label) for label in known.labels[:_LABELS_IN_DESCRIPTION]]
        more = ["…"] if len(known.labels) > len(shown) else []
        return f"{self.backend_name}: property graph (Cypher) with the nodes {', '.join([*shown, *more])}"

    def reload(self) -> None:
        """Forget what is known about the graph's schema, so that the next one is read anew."""
        self._catalogues.forget()

    def _derived_schema(self) -> Mapping[str, Any]:
        return {"dialect": "Cypher of Neo4j", **self._catalogues.current().schema(), "notes": _NOTES}


def _from_here(error: KnowledgeConnectionError | KnowledgeTimeoutError, number: int, total: int) -> KnowledgeError:
    message = f"Record {number} of {total} and those after it were not stored. {error}"
    if isinstance(error, KnowledgeConnectionError):
        return KnowledgeConnectionError(message if total > 1 else str(error), state=error.state)
    return KnowledgeTimeoutError(message)
