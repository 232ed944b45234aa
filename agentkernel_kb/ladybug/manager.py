"""`LadybugManager`: a property graph inside the process, which a model may query and write to in Cypher."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.deadline import Deadline, deadline_of
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.graph_values import table_rows
from agentkernel_kb.graph_writes import not_stored, statement_of, without_values
from agentkernel_kb.guard.cypher import ReadCypher, analyse_read_cypher, check_write_cypher
from agentkernel_kb.ladybug.catalogue import Catalogue, quoted
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.failures import missing_name
from agentkernel_kb.ladybug.isolated import IsolatedGraph
from agentkernel_kb.ladybug.runner import Graph, Runner
from agentkernel_kb.ladybug.values import records
from agentkernel_kb.model import KnowledgeCapabilities, Record, RecordPage
from agentkernel_kb.render import NOTHING_FOUND, table
from agentkernel_kb.rows import most_rows

ENGINE = "ladybug"
CATALOGUE_SECONDS = 10.0
CATALOGUE_LIFETIME_SECONDS = 300.0
_LABELS_IN_DESCRIPTION = 12
_VERSION_QUERY = "CALL db_version() RETURN *"
_NOTES = (
    "Every label in a pattern has to exist. label(r) is the type of a relationship. "
    "Strings escape quotes with a backslash. CALL needs RETURN, as in CALL show_tables() RETURN *."
)


class _Limits(TypedDict):
    read_only: bool
    max_memory_bytes: int
    threads: int


class LadybugManager(KnowledgeBase):
    """A property graph in one file, or in memory, with no server.

    Two locks hold on reads, each without the other: the guard proves every statement to be a read before it is sent, and the
    engine runs it as the only statement of a read-only transaction, in a database that is itself read-only where asked for.
    The file belongs to one process that writes, or to any number that only read.

    Args:
        path: The database file, made if it is missing; `:memory:` for a graph that ends with the process.
        name: Name of the backend; `"ladybug"` by default.
        description: What the graph holds, for whoever chooses between backends; its labels by default.
        read_only: Open the database read-only. The backend is then not writable, and several processes can have it open.
        described_tables: Most labels that the schema describes; it says how many more there are.
        max_memory_bytes: Most memory for the engine's pages and intermediate results.
        threads: Most threads per statement, 0 for one per core.
        isolate: Run the engine in processes of its own, which a statement may bring down or fill without harm to this one.
            Without it everything is in this process, which then ends with a statement that the engine does not survive.

    Raises:
        AKConfigError: The path cannot be a database.
        KnowledgeConnectionError: The database cannot be opened, or another process or backend has it.
        KnowledgeDependencyError: The extra `ladybug` is missing.
    """

    db_system = "ladybug"

    def __init__(
        self,
        path: str | Path,
        name: str = "",
        description: str | None = None,
        *,
        read_only: bool = False,
        described_tables: int = 50,
        max_memory_bytes: int = 1_000_000_000,
        threads: int = 0,
        isolate: bool = True,
    ) -> None:
        super().__init__(
            KnowledgeCapabilities(
                kinds=["graph", "structured"],
                query=True,
                query_language="cypher",
                writable=not read_only,
                derives_schema=True,
            ),
            name or "ladybug",
        )
        if not str(path).strip():
            raise AKConfigError(f"LadybugManager '{self.backend_name}' needs the path of a database, or ':memory:'.")
        self._path = path
        self._description = description
        self._read_only = read_only
        self._described_tables = max(0, described_tables)
        self._max_memory_bytes = max_memory_bytes
        self._threads = threads
        self._isolate = isolate
        self._graph: Graph | None = None
        self._catalogue: tuple[float, Catalogue] | None = None
        self._catalogue_lock = threading.Lock()
        self.connect()

    def __repr__(self) -> str:
        return f"LadybugManager({str(self._path)!r}, name={self.backend_name!r})"

    @property
    def backend_name(self) -> str:
        """The name given at construction."""
        return self._given_name

    def connect(self, **kwargs: Any) -> None:
        """Open the database. Called by the constructor."""
        if self._graph is None:
            self._graph = self._opened()

    def _opened(self) -> Graph:
        limits: _Limits = {
            "read_only": self._read_only,
            "max_memory_bytes": self._max_memory_bytes,
            "threads": self._threads,
        }
        if self._isolate:
            return IsolatedGraph(self._path, self.backend_name, **limits)
        return Runner(GraphDatabase(self._path, self.backend_name, **limits), self.backend_name)

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the engine and return its version.

        Args:
            timeout: Seconds within which to answer; 30 by default.

        Raises:
            KnowledgeConnectionError: The database cannot be opened.
            KnowledgeTimeoutError: No answer in time.
            KnowledgeStateError: The backend is closed.
        """
        return f"{ENGINE} {self._open_graph().fetch(_VERSION_QUERY, 1, deadline_of(timeout)).rows[0][0]}"

    def close(self) -> None:
        """Stop what runs, close the database and give its file back. May be called twice; other calls then raise."""
        graph, self._graph = self._graph, None
        if graph is not None:
            graph.close()

    def _open_graph(self) -> Graph:
        if self._graph is None:
            raise KnowledgeStateError(f"LadybugManager '{self.backend_name}' is closed.")
        return self._graph

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
            statement: One Cypher statement that only reads, without parameters.
            limit: Most rows where the statement has no outer LIMIT of its own, at least 1.
            timeout: Seconds until the statement is stopped; 30 by default.
            allow: Names of further functions and procedures that the statement may use.
            max_rows: Most rows whatever the statement's own LIMIT says; 1,000 by default, or `limit` where that is more.
            kwargs: Unknown arguments are ignored.

        Returns:
            A record per row: `text` has `column=value, …` on one line, with nodes, relationships and paths as Cypher draws
            them; `metadata["row"]` the values by column (names that repeat become `a`, `a_2`), a node being a mapping of its
            properties with its label under `_label`, a relationship likewise under `_type`; `metadata["source"]` the
            backend's name. `more` tells that the statement has further rows. Empty when no row fits.

        Raises:
            KnowledgeGuardError: The statement is not provably a read.
            KnowledgeQueryError: The engine rejected the statement; near names are in the message.
            KnowledgeTimeoutError: Time was out.
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
        graph = self._open_graph()
        read = analyse_read_cypher(statement, engine=ENGINE, allow=allow)
        most = most_rows(limit, max_rows, has_own=read.has_limit)
        try:
            fetched = graph.fetch(_bounded(statement, read, most), most, deadline)
        except KnowledgeQueryError as error:
            raise self._with_near_names(error) from error.__cause__
        return RecordPage(records(fetched.columns, fetched.rows, self.backend_name), more=fetched.more)

    def check_read(self, statement: str, *, allow: Collection[str] = ()) -> None:
        """Prove that `statement` only reads.

        Raises:
            KnowledgeGuardError: It cannot be proven.
        """
        analyse_read_cypher(statement, engine=ENGINE, allow=allow)

    def format_results(self, rows: Iterable[Record]) -> str:
        """Return rows as a compact table; records that are no rows are shown as any other backend's."""
        found = list(rows)
        if not found:
            return NOTHING_FOUND
        shown = table_rows(found)
        return super().format_results(found) if shown is None else table(shown)

    def _with_near_names(self, error: KnowledgeQueryError) -> KnowledgeQueryError:
        name = missing_name(error)
        catalogue = self._known_catalogue() if name else None
        if name is None or catalogue is None:
            return error
        near = catalogue.near(name)
        known = ", ".join(map(quoted, catalogue.names[:30])) or "none yet"
        return KnowledgeQueryError(f"{error} Did you mean {' or '.join(near)}?" if near else f"{error} Labels: {known}.")

    # Writing.

    def write(self, records: Iterable[Record], *, timeout: float | None = None, **kwargs: Any) -> None:
        """Run the statements of records, each in a transaction of its own, in order.

        A record's metadata has the statement under `query` and its parameters under `params`; `cypher_query` and
        `cypher_params` are understood too. A statement may write to the graph and change its schema, and can reach nothing
        outside of it. A record without a statement is skipped, one that fails is left out, and the rest runs.

        Args:
            records: The records.
            timeout: Seconds until what is left is given up; 30 by default. What runs then is rolled back.
            kwargs: Unknown arguments are ignored.

        Raises:
            KnowledgeQueryError: A statement was rejected, by the engine or because it reaches outside of the graph; the message
                says which and how many were not stored.
            KnowledgeError: Some records had no statement; the message says how many of how many were not stored.
            KnowledgeTimeoutError: Time was out.
            KnowledgeStateError: The backend is closed.
        """
        if self._read_only:
            super().write(records)
        graph = self._open_graph()
        deadline = deadline_of(timeout)
        listed = list(records)
        failures: dict[int, KnowledgeError] = {}
        for number, record in enumerate(listed, start=1):
            try:
                self._write_one(graph, record, deadline)
            except KnowledgeTimeoutError as error:
                raise KnowledgeTimeoutError(
                    f"Record {number} of {len(listed)} and those after it were not stored. {error}"
                ) from error
            except KnowledgeError as error:
                failures[number] = error
        if failures:
            raise not_stored(failures, len(listed))

    def _write_one(self, graph: Graph, record: Record, deadline: Deadline) -> None:
        statement = statement_of(record)
        try:
            wanted = check_write_cypher(statement.text, engine=ENGINE)
        except KnowledgeGuardError as error:  # Not the error of a read, which says that reads only read.
            raise KnowledgeQueryError(f"A write stays inside the graph. {error}") from error
        if missing := sorted(wanted - statement.parameters.keys()):
            raise KnowledgeQueryError(f"The statement needs parameters that are not given: {', '.join(missing)}.")
        try:
            graph.write(statement.text, statement.parameters, deadline)
        except KnowledgeQueryError as error:
            safe = KnowledgeQueryError(without_values(str(error), statement.parameters))
            raise self._with_near_names(safe) from error.__cause__
        finally:
            self._catalogue = None

    # Describing.

    def get_description(self) -> str:
        """Return the backend's name and what the graph holds: the given description, or its labels."""
        if self._description:
            return f"{self.backend_name}: {self._description}"
        catalogue = self._known_catalogue()
        if catalogue is None or not catalogue.names:
            return f"{self.backend_name}: property graph (Cypher)"
        nodes = _listed(catalogue.labels(relationships=False))
        relationships = _listed(catalogue.labels(relationships=True))
        return f"{self.backend_name}: property graph (Cypher) with the nodes {nodes} and the relationships {relationships}"

    def reload(self) -> None:
        """Forget what is known about the graph's tables, so that the next schema is read anew."""
        self._catalogue = None

    def _derived_schema(self) -> Mapping[str, Any]:
        return {"dialect": "Cypher of Ladybug", **self._current_catalogue().schema(), "notes": _NOTES}

    def _known_catalogue(self) -> Catalogue | None:
        """Return the catalogue where it can be had; who asks does without it."""
        try:
            return self._current_catalogue()
        except KnowledgeError:
            return None

    def _current_catalogue(self) -> Catalogue:
        graph = self._open_graph()
        with self._catalogue_lock:
            known = self._catalogue
            if known is None or time.monotonic() > known[0]:
                catalogue = graph.catalogue(self._described_tables, CATALOGUE_SECONDS)
                known = self._catalogue = (time.monotonic() + CATALOGUE_LIFETIME_SECONDS, catalogue)
            return known[1]


def _bounded(statement: str, read: ReadCypher, most: int) -> str:
    """Return the statement with a LIMIT of one row more than is asked for, where the proof found a place for it."""
    if read.limit_goes is not None:
        return f"{statement[: read.limit_goes]} LIMIT {most + 1}{statement[read.limit_goes :]}"
    if read.limit_span is not None and read.limit is not None and read.limit > most + 1:
        start, end = read.limit_span
        return f"{statement[:start]}{most + 1}{statement[end:]}"
    return statement


def _listed(labels: list[str]) -> str:
    shown = labels[:_LABELS_IN_DESCRIPTION]
    return ", ".join([*shown, *(["…"] if len(labels) > len(shown) else [])]) or "none"
