"""create_knowledge: the one door to every kind of knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentkernel_kb.embed.hashed import HashEmbedder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.near import nearest
from agentkernel_kb.rag.chunkers import ChunkerBase, RecursiveCharacterSplitter
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.index.analysis import Analysis
from agentkernel_kb.rag.knowledge import Knowledge, Progress
from agentkernel_kb.rag.loading.loader import AutoLoader
from agentkernel_kb.rag.protocols import AnyEmbedder, Loader, Reranker, SearchMode, Splitter, VectorStore
from agentkernel_kb.rag.retrievers import VectorStoreRetriever, mode_of
from agentkernel_kb.rag.stores import LEXICAL_SHARE, SEMANTIC_SHARE, InMemoryVectorStore, SQLiteVectorStore

_OPTIONS = {"memory": ("language",), "sqlite": ("path", "namespace", "language"), "vector": ()}
"""The backends that are named, each with the arguments of its own."""


def create_knowledge(
    backend: str | Any = "memory",
    *,
    name: str = "knowledge",
    description: str | None = None,
    sources: Any | Sequence[Any] | None = None,
    default_k: int = 5,
    context_max_chars: int = 12_000,
    loader: Loader | None = None,
    splitter: Splitter | ChunkerBase | None = None,
    embedder: AnyEmbedder | None = None,
    store: VectorStore | None = None,
    reranker: Reranker | None = None,
    mode: SearchMode | None = None,
    score_threshold: float | None = None,
    fetch_k: int | None = None,
    mmr_lambda: float | None = None,
    where: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Knowledge:
    """Make managed knowledge, or wrap a retriever. Nothing is read or written before `ready()` or the first search.

    Args:
        backend: `memory`; `sqlite`, with `path=` and, if wanted, `namespace=`; `vector`, with `store=`; or a retriever, or a
            search function. The first two take a `language=`, such as `german`, whose inflections keyword search knows; the
            default is `english`. Scripts that one language stands for, such as Cyrillic, are known whatever it is.
        name: Name for agents; also the namespace in a file, where none is given.
        description: What the corpus holds, in plain words.
        sources: What to index first: paths, folders, URLs, texts, documents; or a list of them.
        default_k: Hits of a search that does not say.
        context_max_chars: Most characters of passages in a model's context.
        loader: What reads sources; `AutoLoader` by default.
        splitter: What cuts documents; `RecursiveCharacterSplitter` by default. A chunker of sections is taken too.
        embedder: What makes vectors; `HashEmbedder` by default.
        store: The application's own store, for `vector`.
        reranker: What puts hits into a better order.
        mode: `vector`, `keyword` or `hybrid`, which is the default of the local stores; of other stores it is `vector`.
        score_threshold: The least score of a hit, in [0, 1].
        fetch_k: How many candidates `mmr_lambda` chooses from.
        mmr_lambda: Relevance (1) against diversity (0).
        where: The application's scope: holds on every route, and can be refined and never widened.
        progress: Told after each batch of sources what was indexed so far.
        kwargs: The arguments of the backend.

    Raises:
        AKConfigError: The backend is not known, an argument is not its own, or is out of range.
    """
    general: dict[str, Any] = {
        "name": name,
        "description": description,
        "default_k": default_k,
        "context_max_chars": context_max_chars,
        "reranker": reranker,
        "where": where,
        "progress": progress,
    }
    if not isinstance(backend, str):
        managed = {
            "loader": loader,
            "splitter": splitter,
            "embedder": embedder,
            "store": store,
            "mode": mode,
            "sources": sources,
        }
        given = {**kwargs, **managed, "fetch_k": fetch_k, "mmr_lambda": mmr_lambda}
        _refuse(type(backend).__name__, (), {key: value for key, value in given.items() if value is not None})
        return Knowledge(backend, score_threshold=score_threshold, **general)
    if backend not in _OPTIONS:
        near = nearest(backend, _OPTIONS)
        meant = f" Did you mean '{near}'?" if near else ""
        raise AKConfigError(f"Unknown backend {backend!r}.{meant} Known: {', '.join(_OPTIONS)}, or a retriever of your own.")
    _refuse(backend, _OPTIONS[backend], kwargs)
    chosen = embedder if embedder is not None else HashEmbedder()
    share = LEXICAL_SHARE if Embedding(chosen).is_lexical else SEMANTIC_SHARE
    held = _store(backend, store, share, name, kwargs)
    retriever = VectorStoreRetriever(
        held, chosen, mode=mode or mode_of(held), score_threshold=score_threshold, fetch_k=fetch_k, mmr_lambda=mmr_lambda
    )
    return Knowledge(
        retriever,
        loader=loader or AutoLoader(),
        splitter=splitter or RecursiveCharacterSplitter(),
        embedder=chosen,
        store=held,
        pending_sources=sources,
        **general,
    )


def _store(backend: str, store: VectorStore | None, share: float, name: str, options: Mapping[str, Any]) -> VectorStore:
    if (store is not None) != (backend == "vector"):
        raise AKConfigError("store= goes with the backend 'vector', and 'vector' needs it.")
    if store is not None:
        return store
    language = options.get("language")
    analysis = None if language is None else Analysis(language, stemming=True)
    if backend == "memory":
        return InMemoryVectorStore(analysis=analysis, vector_share=share)
    path = options.get("path")
    if not isinstance(path, str | Path) or not str(path):
        raise AKConfigError(f"The backend 'sqlite' needs path=, the file that holds the corpus, not {path!r}.")
    return SQLiteVectorStore(path, options.get("namespace") or name, analysis=analysis, vector_share=share)


def _refuse(backend: str, known: Sequence[str], given: Mapping[str, Any]) -> None:
    if unknown := sorted(given.keys() - set(known)):
        own = f" It takes {', '.join(known)} besides the general ones." if known else " It takes only the general ones."
        raise AKConfigError(f"The backend '{backend}' has no argument {', '.join(map(repr, unknown))}.{own}")
