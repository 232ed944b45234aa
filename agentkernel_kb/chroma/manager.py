"""ChromaManager: text found by meaning, stored in Chroma."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.chroma.arguments import DEFAULT_PATH, ServerArguments, check_plain_arguments, choose_source
from agentkernel_kb.chroma.collection import BoundCollection
from agentkernel_kb.chroma.connection import Connection, require_chroma
from agentkernel_kb.chroma.embedding import Embedding, EmbeddingFunction
from agentkernel_kb.chroma.failures import translated
from agentkernel_kb.chroma.records import Distance, is_within, prepare, where_within
from agentkernel_kb.chroma.server import connect_seconds, within
from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.model import KnowledgeCapabilities, Record, Scalar

if TYPE_CHECKING:
    from pathlib import Path

    from chromadb.api import ClientAPI

T = TypeVar("T")

DEFAULT_NAME = "chromadb"
DEFAULT_DESCRIPTION = "Passages of text, found by what they mean rather than by exact words."


class ChromaManager(KnowledgeBase):
    """A collection of Chroma: search by meaning, and writing.

    Opens the collection when it is constructed, and makes it where it is missing. Nothing is downloaded and nothing is sent to
    anyone but the server that you name. Close it when you are done with it.

    Args:
        persist_path: Folder of an embedded Chroma; made where it is missing. Not together with `host` or `client`.
        name: Name of this backend; empty means `chromadb`.
        collection_name: The collection, 3 to 512 letters, digits, dots, underscores and hyphens.
        description: What the collection holds, for whoever chooses between backends.
        embedding_function: Texts to vectors: an embedding function of Chroma, `agentkernel_kb.embed.HashEmbedder()`, an object
            with `embed_documents` and `embed_query`, or any callable from a list of texts to as many vectors. `None` means
            Chroma's default model, if it is on this machine.
        host: Host of a Chroma server.
        port: Its port; `None` means 8000.
        ssl: Speak TLS to it.
        headers: Headers for each request to it, such as an authorisation; never shown.
        tenant: Tenant of Chroma; `None` means its default.
        database: Database of the tenant; `None` means its default.
        client: A ready synchronous client of Chroma, which this backend uses and does not close.
        distance: `cosine`, `l2` or `ip` for a new collection; `None` means what the collection has, and `cosine` for a new one.
        download: Chroma's default model may be fetched at first use where it is absent.
        min_score: Lowest score of what a search returns, itself included; `None` for any. Its range is that of the scores:
            up to 1 for `cosine` and `l2`, any number for `ip`.
        connect: `eager` opens the collection now; `lazy` at its first use, and again at the next one where that fails.

    Raises:
        AKConfigError: Arguments are wrong or contradict each other, the collection was built with another function or
            distance, or no score of its distance can reach `min_score`.
        KnowledgeDependencyError: Chroma is not installed.
        KnowledgeConnectionError: The folder or server cannot be opened; `state` says why.
        KnowledgeTimeoutError: The server did not answer within 10 seconds.
    """

    db_system = "chroma"

    def __init__(
        self,
        persist_path: str | Path = DEFAULT_PATH,
        name: str = "",
        collection_name: str = "knowledge_base",
        description: str = DEFAULT_DESCRIPTION,
        embedding_function: EmbeddingFunction | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        ssl: bool = False,
        headers: Mapping[str, str] | None = None,
        tenant: str | None = None,
        database: str | None = None,
        client: ClientAPI | None = None,
        distance: Distance | None = None,
        download: bool = False,
        min_score: float | None = None,
        connect: Literal["eager", "lazy"] = "eager",
    ) -> None:
        super().__init__(
            KnowledgeCapabilities(kinds=["vector"], search=True, search_mode="semantic", writable=True, filters=True),
            name or DEFAULT_NAME,
        )
        check_plain_arguments(
            self.backend_name,
            collection_name,
            description,
            distance,
            download=download,
            min_score=min_score,
            connect=connect,
        )
        self._description = description
        self._collection_name = collection_name
        self._distance: Distance | None = distance
        self._min_score = min_score
        self._source = choose_source(
            self.backend_name,
            persist_path=None if persist_path == DEFAULT_PATH else persist_path,
            server=ServerArguments(host, port, ssl=ssl, headers=headers),
            tenant=tenant,
            database=database,
            client=client,
        )
        self._embedding = Embedding(embedding_function, self.backend_name, download=download)
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._collection: BoundCollection | None = None
        self._is_closed = False
        if connect == "eager":
            self.connect()

    @property
    def backend_name(self) -> str:
        """The name by which tools and schemas refer to this backend."""
        return self._given_name

    def connect(self, **kwargs: Any) -> None:
        """Open the collection, or make it; does nothing while it is open, and opens it again after `close`.

        Raises:
            AKConfigError: The collection was built with another embedding function, dimension or distance.
            KnowledgeDependencyError: Chroma is not installed.
            KnowledgeConnectionError: The folder or server cannot be opened.
        """
        with self._locked():
            if self._collection is None:
                require_chroma(self.backend_name)
                connection = self._source.open(self.backend_name)
                try:
                    self._collection = self._bound(connection)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
            self._is_closed = False

    def _bound(self, connection: Connection, *, create: bool = True) -> BoundCollection:
        return BoundCollection(
            connection,
            self._collection_name,
            self._embedding,
            self._distance,
            self.backend_name,
            self._source.place,
            min_score=self._min_score,
            create=create,
        )

    def check_filters(self, filters: Mapping[str, Scalar]) -> None:
        """Say of a row scope that Chroma can't filter by it."""
        where_within(filters, None, self.backend_name)

    def get_description(self) -> str:
        """Return the backend's name and what its collection holds."""
        return f"{self.backend_name}: {self._description}"

    def search(
        self,
        query: str,
        limit: int = 3,
        *,
        where: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        filters: Mapping[str, Scalar] | None = None,
        **kwargs: Any,
    ) -> list[Record]:
        """Return the records whose text is most like `query`, best first.

        Args:
            query: Natural-language text; blank text finds nothing.
            limit: Most records to return; less than 1 means 1.
            where: A filter of Chroma over metadata, such as `{"year": {"$gte": 2024}}`.
            where_document: A filter of Chroma over the text, such as `{"$contains": "refund"}`.
            filters: The row scope of an agent: metadata that every record found has to have, besides `where`.
            kwargs: Unknown arguments are ignored. `timeout=` is how many seconds a server has for it; embedding, and an
                embedded Chroma, can't be interrupted, and so the router does not count on it.

        Returns:
            Records as they were written, with `metadata["id"]` and `metadata["score"]`, ties broken by id. The score is cosine
            similarity in [-1, 1]; for the distance `l2` it is 1 / (1 + squared distance) in (0, 1], for `ip` the inner product.
            Empty where nothing scores `min_score`, and where an embedding function that can tell (as `HashEmbedder` can) says
            that no record has anything in common with the query.

        Raises:
            AKConfigError: There is no embedding function, or its vectors do not fit the collection.
            KnowledgeQueryError: Chroma rejects the filter.
            KnowledgeBackendError: Chroma or the embedding function failed.
            KnowledgeStateError: The backend is closed.
        """
        with within(kwargs.get("timeout")):
            collection, _ = self._opened()
            if not query.strip():
                return []
            within_scope = where_within(filters, where, self.backend_name)
            vector = self._embedding.query(query)
            found = self._on_collection(
                "search", collection, lambda current: current.search(query, vector, max(1, limit), within_scope, where_document)
            )
        return [record for record in found if is_within(record["metadata"], filters or {})]  # The second of two locks.

    def write(self, records: Iterable[Record], *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any) -> None:
        """Store records; see `add`."""
        self.add(records, filters=filters, **kwargs)

    def add(self, records: Iterable[Record], *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any) -> list[str]:
        """Store records, each in place of the one with the same id.

        All are checked and embedded before the first is stored. Storing is one step for as many as Chroma takes at once
        (some thousands), and several steps beyond that.

        Args:
            records: The records. `metadata["id"]` is the id, if it is one line of text without a comma; otherwise the id is a
                digest of `metadata["source"]`, the text and the row scope.
            filters: The row scope of an agent: metadata that every record gets over its own. No record outside is replaced.
            kwargs: Unknown arguments are ignored. `timeout=` is how many seconds a server has for all of it.

        Returns:
            The ids of what was stored, in order, each once.

        Raises:
            KnowledgeQueryError: A record has blank text or is none (the message says which), or its id is that of a record
                outside of the row scope. Nothing was stored.
            AKConfigError: There is no embedding function, or its vectors do not fit the collection. Nothing was stored.
            KnowledgeStateError: The backend is closed, or another process writes to the folder. Nothing was stored.
            KnowledgeBackendError: Chroma or the embedding function failed.
        """
        with within(kwargs.get("timeout")):
            collection, connection = self._opened()
            where_within(filters, None, self.backend_name)  # What can't be found again is not stored.
            prepared = prepare(records, self.backend_name, filters)
            if not prepared:
                return []
            vectors = self._embedding.documents([one.text for one in prepared])

            def store(current: BoundCollection) -> None:
                with connection.writing():
                    current.store(prepared, vectors, filters)

            self._on_collection("write", collection, store)
        return [one.id for one in prepared]

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach Chroma and the collection, and return Chroma's version as it tells it.

        Args:
            timeout: Seconds that a server has; an embedded Chroma can't be interrupted.

        Raises:
            KnowledgeConnectionError: It cannot be used; `state` says why. `missing` also means that the collection was deleted.
            KnowledgeTimeoutError: No answer in time.
            KnowledgeStateError: The backend is closed.
        """
        with within(timeout):
            collection, _ = self._opened()
            with self._translated("answer a ping"):
                return collection.check()

    def close(self) -> None:
        """Release the folder or the connection. May be called twice; a client that was given stays open."""
        self._source.give_up()
        with self._lock:
            connection, self._connection, self._collection = self._connection, None, None
            self._is_closed = True
        if connection is not None:
            connection.close()

    def _opened(self) -> tuple[BoundCollection, Connection]:
        with self._locked():
            if self._is_closed:
                raise self._closed()
            if self._collection is None:
                self.connect()
            if self._collection is None or self._connection is None:
                raise self._closed()
            self._connection.check_process(self.backend_name)
            return self._collection, self._connection

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the lock; whoever waits for it, waits for a server to be connected, and no longer than for one itself."""
        if not self._lock.acquire(timeout=connect_seconds()):
            raise KnowledgeTimeoutError(f"Chroma at {self._source.place} is still being connected by '{self.backend_name}'.")
        try:
            yield
        finally:
            self._lock.release()

    def _on_collection(self, doing: str, collection: BoundCollection, work: Callable[[BoundCollection], T]) -> T:
        """Do something on the collection, and once more if it was deleted and made anew by somebody else meanwhile."""
        try:
            with self._translated(doing):
                return work(collection)
        except KnowledgeConnectionError as error:
            if error.state != "missing":
                raise
        with self._translated(doing):
            return work(self._made_anew(collection))

    def _made_anew(self, gone: BoundCollection) -> BoundCollection:
        with self._locked():
            if self._connection is None:
                raise self._closed()
            if self._collection is gone:
                self._collection = self._bound(self._connection, create=False)
            return self._collection or gone

    def _closed(self) -> KnowledgeStateError:
        return KnowledgeStateError(f"'{self.backend_name}' is closed; call connect() to open it again.")

    @contextmanager
    def _translated(self, doing: str) -> Generator[None]:
        try:
            with translated(self.backend_name, self._source.place, doing):
                yield
        except KnowledgeBackendError as error:
            if self._collection is None:  # It was closed by another thread meanwhile, which Chroma reports in many ways.
                raise self._closed() from error
            raise

    def __repr__(self) -> str:
        return f"ChromaManager({self.backend_name!r}, collection={self._collection_name!r}, at={self._source.place})"
