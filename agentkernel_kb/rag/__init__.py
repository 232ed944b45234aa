"""Managed knowledge: sources to sections to chunks to vectors, owned by this library.

Names resolve lazily: importing the package loads no optional library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentkernel_kb.embed import (
        CallableEmbedder,
        HashEmbedder,
        Model2VecEmbedder,
        OnnxEmbedder,
        OpenAIEmbedder,
        SentenceTransformerEmbedder,
    )
    from agentkernel_kb.errors import KnowledgeNotFoundError, UnsupportedKnowledgeOperationError
    from agentkernel_kb.rag.chunk import Chunk, VectorRecord, VectorSearchResult
    from agentkernel_kb.rag.chunkers import ApproxTokenChunker, ChunkerBase, HeadingChunker, RecursiveCharacterSplitter
    from agentkernel_kb.rag.collections import CollectionStore, VectorStoreBase
    from agentkernel_kb.rag.content import DataBlock, TextBlock
    from agentkernel_kb.rag.create import create_knowledge
    from agentkernel_kb.rag.handle import KnowledgeBase
    from agentkernel_kb.rag.knowledge import Knowledge
    from agentkernel_kb.rag.loading import Fetcher
    from agentkernel_kb.rag.loading.loader import AutoLoader
    from agentkernel_kb.rag.manager import RAGManager
    from agentkernel_kb.rag.parsers import ParserBase, TextParser
    from agentkernel_kb.rag.protocols import (
        AtomicVectorStore,
        Embedder,
        Loader,
        Reranker,
        Retriever,
        SearchMode,
        Splitter,
        VectorStore,
    )
    from agentkernel_kb.rag.retrievers import CallableRetriever, VectorStoreRetriever, retriever
    from agentkernel_kb.rag.stores import InMemoryVectorStore, SQLiteVectorStore
    from agentkernel_kb.rag.sync import SyncKnowledge
    from agentkernel_kb.rag.values import (
        Citation,
        Document,
        DocumentSummary,
        Failure,
        IndexReport,
        RAGAnswer,
        SearchHit,
        Section,
    )
    from agentkernel_kb.rag.verify import Difference, VerifyReport

_HOMES = {
    "embed": (
        "CallableEmbedder",
        "HashEmbedder",
        "Model2VecEmbedder",
        "OnnxEmbedder",
        "OpenAIEmbedder",
        "SentenceTransformerEmbedder",
    ),
    "errors": ("KnowledgeNotFoundError", "UnsupportedKnowledgeOperationError"),
    "rag.chunk": ("Chunk", "VectorRecord", "VectorSearchResult"),
    "rag.chunkers": ("ApproxTokenChunker", "ChunkerBase", "HeadingChunker", "RecursiveCharacterSplitter"),
    "rag.collections": ("CollectionStore", "VectorStoreBase"),
    "rag.content": ("DataBlock", "TextBlock"),
    "rag.create": ("create_knowledge",),
    "rag.handle": ("KnowledgeBase",),
    "rag.knowledge": ("Knowledge",),
    "rag.loading.fetch": ("Fetcher",),
    "rag.loading.loader": ("AutoLoader",),
    "rag.manager": ("RAGManager",),
    "rag.parsers": ("ParserBase", "TextParser"),
    "rag.protocols": (
        "AtomicVectorStore",
        "Embedder",
        "Loader",
        "Reranker",
        "Retriever",
        "SearchMode",
        "Splitter",
        "VectorStore",
    ),
    "rag.retrievers": ("CallableRetriever", "VectorStoreRetriever", "retriever"),
    "rag.stores": ("InMemoryVectorStore", "SQLiteVectorStore"),
    "rag.sync": ("SyncKnowledge",),
    "rag.values": (
        "Citation",
        "Document",
        "DocumentSummary",
        "Failure",
        "IndexReport",
        "RAGAnswer",
        "SearchHit",
        "Section",
    ),
    "rag.verify": ("Difference", "VerifyReport"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ApproxTokenChunker",
    "AtomicVectorStore",
    "AutoLoader",
    "CallableEmbedder",
    "CallableRetriever",
    "Chunk",
    "ChunkerBase",
    "Citation",
    "CollectionStore",
    "DataBlock",
    "Difference",
    "Document",
    "DocumentSummary",
    "Embedder",
    "Failure",
    "Fetcher",
    "HashEmbedder",
    "HeadingChunker",
    "InMemoryVectorStore",
    "IndexReport",
    "Knowledge",
    "KnowledgeBase",
    "KnowledgeNotFoundError",
    "Loader",
    "Model2VecEmbedder",
    "OnnxEmbedder",
    "OpenAIEmbedder",
    "ParserBase",
    "RAGAnswer",
    "RAGManager",
    "RecursiveCharacterSplitter",
    "Reranker",
    "Retriever",
    "SQLiteVectorStore",
    "SearchHit",
    "SearchMode",
    "Section",
    "SentenceTransformerEmbedder",
    "Splitter",
    "SyncKnowledge",
    "TextBlock",
    "TextParser",
    "UnsupportedKnowledgeOperationError",
    "VectorRecord",
    "VectorSearchResult",
    "VectorStore",
    "VectorStoreBase",
    "VectorStoreRetriever",
    "VerifyReport",
    "create_knowledge",
    "retriever",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"agentkernel_kb.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
