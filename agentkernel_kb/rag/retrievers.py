"""Retrievers: a store with its embedder, or the application's own search function, as the one protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from agentkernel_kb.embed.calls import call
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.protocols import SearchMode, VectorStore
from agentkernel_kb.rag.scope import asked_of, is_whole, only
from agentkernel_kb.rag.stores.arguments import MOST_HITS, check_hits, check_search
from agentkernel_kb.rag.values import Document, SearchHit, fill_ranks
from agentkernel_kb.rag.where import Filter, parse_where

if TYPE_CHECKING:
    from agentkernel_kb.rag.knowledge import Knowledge

_TEXT_KEYS = ("text", "content", "page_content")
_HIT_KEYS = ("score", "source", "document_id", "chunk_id")
_WIDER = 4


class VectorStoreRetriever:
    """Searches a store with the vectors of an embedder.

    Args:
        store: Where to search.
        embedder: What embeds questions; the one that the store's vectors are from.
        mode: `vector`, `keyword` or `hybrid`.
        where: What hits have to meet besides what is asked for.
        score_threshold: The least score of a hit, in [0, 1].
        fetch_k: How many candidates `mmr_lambda` chooses from.
        mmr_lambda: Relevance (1) against diversity (0).

    Attributes:
        store: Where it searches.
        embedding: What embeds questions, as it is called.
        mode: How it ranks.

    Raises:
        AKConfigError: Something is out of range, or `fetch_k` is given without `mmr_lambda`.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Any,
        *,
        mode: SearchMode = "hybrid",
        where: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        fetch_k: int | None = None,
        mmr_lambda: float | None = None,
    ) -> None:
        check_search(1, mode, score_threshold, fetch_k, mmr_lambda)
        if not isinstance(store, VectorStore):
            raise AKConfigError(f"A store has upsert, delete, search and list_sources; {type(store).__name__} has not.")
        self.store, self.embedding = store, embedder if isinstance(embedder, Embedding) else Embedding(embedder)
        self.mode: SearchMode = mode
        self._where = parse_where(where)
        self._options: dict[str, Any] = {"score_threshold": score_threshold, "mmr_lambda": mmr_lambda}
        self._fetch_k = fetch_k

    async def retrieve(self, query: str, *, k: int = 5, where: Mapping[str, Any] | Filter | None = None) -> list[SearchHit]:
        """Return at most `k` hits, best first; nothing for a blank question.

        Raises:
            AKConfigError: `k` or `where` is faulty.
            KnowledgeBackendError: The embedder or the store failed.
        """
        return (await self.retrieve_all([query], k=k, where=where))[0]

    async def retrieve_all(
        self, queries: Sequence[str], *, k: int = 5, where: Mapping[str, Any] | Filter | None = None
    ) -> list[list[SearchHit]]:
        """Return the hits of each of several questions, whose vectors are made in one batch.

        Raises:
            AKConfigError: As for `retrieve`.
            KnowledgeBackendError: As for `retrieve`.
        """
        asked = [query for query in queries if query.strip()]
        none = [None] * len(asked)
        vectors: Sequence[Sequence[float] | None] = none if self.mode == "keyword" else await self.embedding.queries(asked)
        found = await self.found(list(zip(asked, vectors, strict=True)), k=k, where=where)
        by_query = dict(zip(asked, found, strict=True))
        return [by_query.get(query, []) for query in queries]

    async def found(
        self,
        questions: Sequence[tuple[str, Sequence[float] | None]],
        *,
        k: int,
        where: Mapping[str, Any] | Filter | None = None,
    ) -> list[list[SearchHit]]:
        """Search for each question with its vector, and return the hits of each."""
        check_hits("k", k)
        condition = self._where & (where if isinstance(where, Filter) else parse_where(where))
        bounds = asked_of(self.store, condition)
        said = bounds is condition or is_whole(condition)
        most = k if said else min(k * _WIDER, MOST_HITS)
        asked: dict[str, Any] = {
            "k": most,
            "where": bounds,
            "mode": self.mode,
            "fetch_k": None if self._fetch_k is None else max(self._fetch_k, most),
            **self._options,
        }
        hits = await asyncio.gather(
            *(self.store.search(query_vector=vector, query_text=text, **asked) for text, vector in questions)
        )
        return [fill_ranks(only(each, condition)[:k]) for each in hits]

    def __repr__(self) -> str:
        return f"VectorStoreRetriever({self.store!r}, mode={self.mode!r})"


def mode_of(store: VectorStore) -> SearchMode:
    """Return the mode of a search that does not say: `hybrid` where a store says in `modes` that it can, else `vector`."""
    return "hybrid" if "hybrid" in getattr(store, "modes", ()) else "vector"


class CallableRetriever:
    """A search function of the application, plain or asynchronous: `search(query, *, k=5, where=None)`.

    It may return `SearchHit`, `Document`, `Chunk`, mappings with `text`, `content` or `page_content`, or texts.

    Args:
        function: The function.

    Raises:
        AKConfigError: It cannot be called.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise AKConfigError(
                f"CallableRetriever takes a function search(query, *, k, where), not {type(function).__name__}."
            )
        self._function = function

    async def retrieve(self, query: str, *, k: int = 5, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        """Return at most `k` of what the function found, in its order.

        Raises:
            KnowledgeBackendError: It returned something else.
        """
        returned = await call(self._function, query, k=k, where=where)
        return fill_ranks(as_hits(returned)[:k])

    def __repr__(self) -> str:
        return f"CallableRetriever({getattr(self._function, '__name__', type(self._function).__name__)})"


@overload
def retriever(function: Callable[..., Any], /) -> CallableRetriever: ...
@overload
def retriever(**options: Any) -> Callable[[Callable[..., Any]], Knowledge]: ...
def retriever(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> CallableRetriever | Callable[[Callable[..., Any]], Knowledge]:
    """Make a retriever of a function, as a decorator: `@retriever`; or knowledge: `@retriever(name=…, description=…)`.

    Args:
        function: The search function.
        options: As of `Knowledge`.
    """
    if function is not None:
        return CallableRetriever(function)
    from agentkernel_kb.rag.knowledge import Knowledge  # Its module builds on this one.

    return lambda decorated: Knowledge.from_callable(decorated, **options)


def as_hits(returned: object) -> list[SearchHit]:
    """Return what a search function returned as hits.

    Raises:
        KnowledgeBackendError: It is no list of passages.
    """
    if returned is None:
        return []
    if not isinstance(returned, Iterable) or isinstance(returned, str | Mapping):
        raise KnowledgeBackendError(
            f"A search function returns a list of passages, not {type(cast('object', returned)).__name__}."
        )
    return [_hit(each) for each in cast("Iterable[object]", returned)]


def _hit(value: object) -> SearchHit:
    match value:
        case SearchHit():
            return value
        case Document():
            return SearchHit(value.text, None, value.source, value.metadata, value.id)
        case Chunk():
            return SearchHit(value.text, None, value.source, value.metadata, value.document_id, value.id)
        case str():
            return SearchHit(value)
        case Mapping():
            return _hit_of_mapping(cast("Mapping[str, Any]", value))
        case _:
            raise KnowledgeBackendError(f"A search function returned a {type(value).__name__} among its passages.")


def _hit_of_mapping(value: Mapping[str, Any]) -> SearchHit:
    name = next((key for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
    if name is None:
        raise KnowledgeBackendError(f"A passage that is a mapping has its text under one of {', '.join(_TEXT_KEYS)}.")
    inner: Any = value.get("metadata") if isinstance(value.get("metadata"), Mapping) else {}
    rest = {key: each for key, each in value.items() if key not in (name, "metadata", "rank", *_HIT_KEYS)}
    return SearchHit(value[name], **_said(value), metadata={**rest, **inner})


def _said(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a mapping says of its passage.

    Raises:
        KnowledgeBackendError: Its score is no number.
    """
    said = {key: value.get(key) for key in _HIT_KEYS}
    score = said["score"]
    try:
        said["score"] = None if score is None else float(score)
    except (TypeError, ValueError):
        raise KnowledgeBackendError("A passage's score is a number.") from None
    return {key: each if each is None or key == "score" else str(each) for key, each in said.items()}
