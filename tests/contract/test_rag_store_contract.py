"""The shipped suite of vector stores run on memory and on SQLite, with numpy and without (P1, P5, P6, P7)."""

from __future__ import annotations

from pathlib import Path

from agentkernel_kb.rag import VectorStore
from agentkernel_kb.rag.index.arrays import PlainArithmetic
from agentkernel_kb.rag.index.index import ChunkIndex
from agentkernel_kb.rag.stores import InMemoryVectorStore, SQLiteVectorStore
from agentkernel_kb.testing import VectorStoreContract

ALL = frozenset({"replace", "count", "list", "keyword", "hybrid"})


class TestInMemoryVectorStore(VectorStoreContract):
    declares = ALL

    def make_store(self, tmp_path: Path) -> VectorStore:
        return InMemoryVectorStore()


class WithoutNumpy(InMemoryVectorStore):
    def __init__(self) -> None:
        super().__init__()
        self._index = ChunkIndex(use=PlainArithmetic())


class TestWithoutNumpy(VectorStoreContract):
    declares = ALL

    def make_store(self, tmp_path: Path) -> VectorStore:
        return WithoutNumpy()


class TestSQLiteVectorStore(VectorStoreContract):
    declares = ALL

    def make_store(self, tmp_path: Path) -> VectorStore:
        return SQLiteVectorStore(tmp_path / "corpus.db")


class TestSQLiteVectorStoreOfTwoNamespaces(VectorStoreContract):
    declares = ALL

    def make_store(self, tmp_path: Path) -> VectorStore:
        return SQLiteVectorStore(tmp_path / "corpus.db", "mine")
