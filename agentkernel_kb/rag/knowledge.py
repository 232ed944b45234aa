"""Knowledge: one corpus behind one object, searched and kept in step with its sources."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self, cast

from agentkernel_kb.embed.calls import call, texts_of
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers import ChunkerBase, SectionSplitter
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.fingerprint import ModelCheck
from agentkernel_kb.rag.ingest import Indexer
from agentkernel_kb.rag.protocols import AnyEmbedder, Loader, Reranker, Retriever, Splitter, VectorStore
from agentkernel_kb.rag.reindex import reindexed
from agentkernel_kb.rag.retrievers import CallableRetriever, VectorStoreRetriever, as_hits, mode_of
from agentkernel_kb.rag.runs import Progress
from agentkernel_kb.rag.scope import Scope, asked_of
from agentkernel_kb.rag.staging import Staging
from agentkernel_kb.rag.stores.arguments import MOST_HITS, check_hits, check_share
from agentkernel_kb.rag.sync import SyncKnowledge
from agentkernel_kb.rag.tool import tool_of
from agentkernel_kb.rag.values import Document, DocumentSummary, IndexReport, SearchHit, fill_ranks
from agentkernel_kb.rag.verify import VerifyReport, verified

_MOST_NAME_CHARS = 64
_DESCRIPTION = "Passages of documents, found by what they say."


class Knowledge:
    """One managed corpus, or one retriever that somebody else owns.

    Constructing it does nothing: staged sources are indexed by `ready()`, or before the first search.

    Args:
        retriever: What finds passages; a search function is taken too. Without one the store is searched.
        name: Name for agents.
        description: What the corpus holds, in plain words.
        default_k: Hits of a search that does not say.
        reranker: What puts hits into a better order; it is given four times as many as are asked for, at least 20.
        where: The application's scope: holds on every route, and can be refined and never widened.
        score_threshold: The least score of a hit.
        loader: What reads sources.
        splitter: What cuts documents; a chunker of sections is taken too.
        embedder: What makes vectors.
        store: What holds chunks.
        context_max_chars: Most characters of passages and their labels in a model's context.
        pending_sources: A source, or a list of them, to be indexed first.
        progress: Told after each batch of sources what was indexed so far.

    Raises:
        AKConfigError: There is nothing to search, or an argument is out of range.
    """

    def __init__(
        self,
        retriever: Retriever | Callable[..., Any] | None = None,
        *,
        name: str = "knowledge",
        description: str | None = None,
        default_k: int = 5,
        reranker: Reranker | None = None,
        where: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        loader: Loader | None = None,
        splitter: Splitter | ChunkerBase | None = None,
        embedder: AnyEmbedder | None = None,
        store: VectorStore | None = None,
        context_max_chars: int = 12_000,
        pending_sources: Any | Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise AKConfigError(f"Knowledge: name must be a name, not {name!r}.")
        check_hits("default_k", default_k)
        check_share("score_threshold", score_threshold)
        if not isinstance(context_max_chars, int) or isinstance(context_max_chars, bool) or context_max_chars < 1:
            raise AKConfigError(f"context_max_chars must be a whole number of at least 1, not {context_max_chars!r}.")
        self.name, self.description = name, description or _DESCRIPTION
        self.default_k, self.context_max_chars = default_k, context_max_chars
        self._threshold, self._reranker = score_threshold, reranker
        self._scope = Scope(where)
        self._store, self._progress = store, progress
        self._embedding = Embedding(embedder) if embedder is not None else None
        self._retriever = self._chosen(retriever)
        self._indexer = self._made(loader, splitter)
        self._staging = Staging(name, _listed(pending_sources))
        if self._staging.sources and self._indexer is None:
            raise AKConfigError("pending_sources can only be indexed with a loader, a splitter, an embedder and a store.")
        self._model = ModelCheck()

    @classmethod
    def from_callable(cls, function: Callable[..., Any], **options: Any) -> Self:
        """Make retrieval-only knowledge of a search function, plain or asynchronous: `search(query, *, k=5, where=None)`.

        Args:
            function: The function.
            options: As of the constructor.
        """
        return cls(CallableRetriever(function), **options)

    @property
    def managed(self) -> bool:
        """Whether this library indexes it: loader, splitter, embedder and store are all there."""
        return self._indexer is not None

    @property
    def store(self) -> VectorStore | None:
        """What holds its chunks; `None` for a retriever that somebody else owns."""
        return self._store

    @property
    def staged(self) -> list[Any]:
        """The sources that `ready()` indexes, or the first search; none once they are."""
        return list(self._staging.sources)

    @property
    def indexer(self) -> Indexer:
        """What indexes it. Asked of a corpus that is somebody else's, it raises `UnsupportedKnowledgeOperationError`."""
        return self._managed("indexer")

    @property
    def search_mode(self) -> Literal["semantic", "lexical"] | None:
        """How it ranks: by words, or by what a model makes of them; `None` where somebody else's retriever does."""
        own = self._retriever
        if not isinstance(own, VectorStoreRetriever):
            return None
        return "lexical" if own.mode == "keyword" or own.embedding.is_lexical else "semantic"

    @property
    def tool_name(self) -> str:
        """Name of its tool: `search_` and its own name, in letters, digits and underscores."""
        return f"search_{re.sub(r'[^A-Za-z0-9_]+', '_', self.name).strip('_') or 'knowledge'}"[:_MOST_NAME_CHARS]

    @property
    def sync(self) -> SyncKnowledge:
        """The same operations for code without an event loop."""
        return SyncKnowledge(self)

    async def ready(self) -> IndexReport:
        """Index the staged sources, once; what fails stays staged no longer and is in the report."""
        return await self._staging.index(lambda sources: self._indexed("ready", sources))

    async def search(self, query: str, *, k: int | None = None, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        """Return the passages that answer a question best, best first; nothing for a blank one.

        Args:
            query: The question.
            k: Most hits; `default_k` where it is not given.
            where: What hits have to meet, besides the application's scope.

        Raises:
            AKConfigError: An argument is faulty.
            KnowledgeBackendError: The retriever failed; or nothing is found, and none of the staged sources could be indexed.
        """
        (hits,) = await self.search_all([query], k=k, where=where)
        return hits

    async def search_all(
        self, queries: Sequence[str], *, k: int | None = None, where: Mapping[str, Any] | None = None
    ) -> list[list[SearchHit]]:
        """Search for several questions, and return the hits of each; their vectors are made in one batch."""
        most = self.default_k if k is None else k
        check_hits("k", most)
        texts = texts_of(f"The search of '{self.name}'", queries)
        asked = list(dict.fromkeys(text for text in texts if text.strip()))
        await self.ready()
        found = dict(zip(asked, await self._found(asked, most, where), strict=True)) if asked else {}
        if found and not any(found.values()):
            self._staging.check()
        return [found.get(text, []) for text in texts]

    async def retrieve(self, query: str, *, k: int | None = None, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        """`search`, under the name that the protocol `Retriever` asks for."""
        return await self.search(query, k=k, where=where)

    async def add(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> IndexReport:
        """Index a source, or a list of them; what was indexed of the same sources before is replaced.

        Raises:
            UnsupportedKnowledgeOperationError: The corpus is somebody else's.
        """
        return await self._indexed("add", _listed(source), metadata=metadata)

    async def add_text(self, text: str, *, source: str | None = None, metadata: Mapping[str, Any] | None = None) -> IndexReport:
        """Index one text."""
        return await self._indexed("add_text", [Document(text, source, dict(metadata or {}))])

    async def upsert(self, documents: Document | Sequence[Document]) -> IndexReport:
        """Index documents as they are, in place of what was indexed of the same sources or ids before."""
        listed = [documents] if isinstance(documents, Document) else list(documents)
        for document in cast("list[object]", listed):
            if not isinstance(document, Document):
                raise AKConfigError(f"upsert takes Document objects, not {type(document).__name__}.")
        return await self._indexed("upsert", listed)

    async def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        sources: Sequence[str] | None = None,
    ) -> int:
        """Delete the chunks that `ids`, `document_ids` or `sources` name and that meet `where`, and return how many.

        Raises:
            AKConfigError: No criterion is given.
            UnsupportedKnowledgeOperationError: The corpus is somebody else's.
        """
        return await self._managed("delete").delete(ids=ids, document_ids=document_ids, where=where, sources=sources)

    async def refresh(
        self, sources: Any | Sequence[Any], *, metadata: Mapping[str, Any] | None = None, delete_missing: bool = False
    ) -> IndexReport:
        """Bring the corpus in step with sources: what did not change is not read again.

        Args:
            sources: A source, or a list of them.
            metadata: Metadata for all of them.
            delete_missing: Delete what is indexed and not among these sources; those that cannot be read are kept.
        """
        return await self._indexed("refresh", _listed(sources), metadata=metadata, delete_missing=delete_missing)

    async def sync_sources(
        self, sources: Any | Sequence[Any], *, metadata: Mapping[str, Any] | None = None, delete_missing: bool = False
    ) -> IndexReport:
        """`refresh`, under another name."""
        return await self.refresh(sources, metadata=metadata, delete_missing=delete_missing)

    async def reindex(
        self, sources: Any | Sequence[Any] | None = None, *, metadata: Mapping[str, Any] | None = None
    ) -> IndexReport:
        """Make the corpus anew, under this model and chunker, and switch over once all of it is there.

        Searches see the old one, whole, until then. What a run that was cut off had made is not made again, and vectors of the
        same model are used again. What cannot be read stays as it was, and so does what other scopes have; it gets new vectors.

        Args:
            sources: All that is to be in the corpus. Where none are given, those that are staged; where none are staged, the
                passages that are there get new vectors.
            metadata: Metadata for all of the sources.

        Raises:
            AKConfigError: There are no sources, and the chunker is another one.
            KnowledgeBackendError: The new corpus is not whole, or a service failed. Then the old one stays.
            KnowledgeStateError: Somebody else makes it anew, or writes all the time. Then the old one stays.
            UnsupportedKnowledgeOperationError: The corpus is somebody else's, or its store cannot do this.
        """
        indexer = self._managed("reindex")
        given = (self._staging.sources or None) if sources is None else _listed(sources)
        report = await reindexed(indexer, given, metadata=metadata, progress=self._progress)
        self._staging.settle()
        return report

    async def verify(self, *, repair: bool = False) -> VerifyReport:
        """Compare what is noted about sources with the chunks that there are, within the application's scope.

        The notes of scopes within that one count too: without a scope, the whole corpus is compared, with all its tenants.

        Args:
            repair: Take back the notes that are not true, so that the next `refresh` reads these sources anew; and throw away
                what is left of a `reindex` that was cut off.

        Raises:
            UnsupportedKnowledgeOperationError: The corpus is somebody else's.
        """
        return await verified(self._managed("verify"), repair=repair)

    async def list_documents(self, where: Mapping[str, Any] | None = None) -> list[DocumentSummary]:
        """Return the documents of the corpus, by source.

        Raises:
            UnsupportedKnowledgeOperationError: The corpus is somebody else's, or its store keeps no list.
        """
        await self.ready()
        listing = getattr(self._store, "list_documents", None)
        if not callable(listing):
            raise UnsupportedKnowledgeOperationError(f"'{self.name}' cannot list its documents.")
        return await cast("Any", listing)(asked_of(self._store, self._scope.refined(where)))

    async def passages(
        self, *, ids: Sequence[str] = (), document_ids: Sequence[str] = (), where: Mapping[str, Any] | None = None
    ) -> list[Chunk]:
        """Return the chunks that are named, within the application's scope, by document and place.

        Raises:
            UnsupportedKnowledgeOperationError: The corpus is somebody else's, or its store cannot look chunks up.
        """
        await self.ready()
        look_up = getattr(self._store, "chunks", None)
        if not callable(look_up):
            raise UnsupportedKnowledgeOperationError(f"'{self.name}' cannot look passages up by their ids.")
        bounds = asked_of(self._store, self._scope.refined(where))
        return await cast("Any", look_up)(ids=ids, document_ids=document_ids, where=bounds)

    def as_tool(self) -> Callable[..., str]:
        """Return a tool that searches it: a plain function `(query, k=…, where=None)` that answers in text and never raises.

        Its passages stand under labels such as `[handbook:1]`, with their sources and scores and without other metadata, in at
        most `context_max_chars` characters, the labels included. Every adapter binds it, as a coroutine function where there is
        an event loop; the plain one works there too.
        """
        return tool_of(self)

    def descriptor(self) -> dict[str, Any]:
        """Return what can be written down about it: name, description and whether it is managed; no secrets, no objects."""
        return {"name": self.name, "description": self.description, "managed": self.managed, "tool_name": self.tool_name}

    async def close(self) -> None:
        """Close the store, where it can be closed. May be called twice."""
        close = getattr(self._store, "close", None)
        if callable(close):
            await cast("Any", close)()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Knowledge(name={self.name!r}, managed={self.managed})"

    def _chosen(self, retriever: Retriever | Callable[..., Any] | None) -> Retriever:
        if retriever is None:
            if self._store is None or self._embedding is None:
                raise AKConfigError("Knowledge needs a retriever, or a store with an embedder.")
            return VectorStoreRetriever(self._store, self._embedding, mode=mode_of(self._store))
        if isinstance(retriever, Retriever):
            return retriever
        return CallableRetriever(retriever)

    def _made(self, loader: Loader | None, splitter: Splitter | ChunkerBase | None) -> Indexer | None:
        if loader is None or splitter is None or self._embedding is None or self._store is None:
            return None
        cutting = splitter if isinstance(splitter, Splitter) else SectionSplitter(splitter)
        return Indexer(loader, cutting, self._embedding, self._store, self._scope)

    def _managed(self, operation: str) -> Indexer:
        if self._indexer is None:
            raise UnsupportedKnowledgeOperationError(
                f"'{self.name}' is searched and not indexed here, so {operation}() has nothing to work on: "
                "change it where it is kept, or create managed knowledge."
            )
        return self._indexer

    async def _indexed(self, operation: str, sources: list[Any], **options: Any) -> IndexReport:
        """Index sources, once it is sure that this corpus is made with this model and chunker.

        Raises:
            AKConfigError: It is made with others.
            UnsupportedKnowledgeOperationError: The corpus is somebody else's.
        """
        return self._staging.told(await self._managed(operation).index(sources, progress=self._progress, **options))

    async def _found(self, queries: list[str], k: int, where: Mapping[str, Any] | None) -> list[list[SearchHit]]:
        try:
            results = await self._retrieved(queries, k, where)
            return [await self._ordered(query, hits, k) for query, hits in zip(queries, results, strict=True)]
        except KnowledgeError:
            raise
        except Exception as error:  # A retriever or a reranker of the application may raise anything.
            raise KnowledgeBackendError(f"The search of '{self.name}' failed: {type(error).__name__}.") from error

    async def _retrieved(self, queries: list[str], k: int, where: Mapping[str, Any] | None) -> list[list[SearchHit]]:
        own = self._retriever
        if isinstance(own, VectorStoreRetriever):
            await self._model.check(own.store, own.embedding)
            hits = await own.retrieve_all(queries, k=self._candidates(k), where=self._scope.refined(where))
            await self._model.check(own.store, own.embedding)  # It may have been made anew by another model meanwhile.
            return hits
        asked = self._scope.added(where)
        found = await asyncio.gather(*(own.retrieve(query, k=k, where=asked) for query in queries))
        return [self._scope.kept(as_hits(hits)) for hits in found]

    def _candidates(self, k: int) -> int:
        """Return how many hits are looked for: more than asked for where they are put into another order."""
        return k if self._reranker is None else min(max(k * 4, 20), MOST_HITS)

    async def _ordered(self, query: str, hits: list[SearchHit], k: int) -> list[SearchHit]:
        kept = [hit for hit in hits if self._threshold is None or (hit.score or 0.0) >= self._threshold]
        if self._reranker is not None and kept:
            kept = as_hits(await call(self._reranker.rerank, query, kept, k=k))
        return fill_ranks(kept[:k])


def _listed(sources: Any | Sequence[Any] | None) -> list[Any]:
    """Return sources as a list; a text, bytes or a mapping is one source."""
    if sources is None:
        return []
    several = isinstance(sources, list | tuple | set | frozenset)
    return list(cast("Sequence[Any]", sources)) if several else [sources]
