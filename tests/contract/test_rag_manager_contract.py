"""The shipped suite run on managed knowledge, in memory and in a file, and on somebody else's search function (P1, P2, A21)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from agentkernel_kb import KnowledgeBase, Record
from agentkernel_kb.model import Scalar
from agentkernel_kb.rag import Document, Knowledge, RAGManager, create_knowledge
from agentkernel_kb.testing import KnowledgeBaseContract

DOCUMENTS = [
    Document("Refunds are granted within thirty days of delivery.", "rules/refunds.md", {"region": "CH"}, id="refunds"),
    Document("Returns are free. Refunds follow.", "rules/returns.md", {"region": "CH"}, id="returns"),
    Document("The guarantee on spare parts is two years.", "rules/parts.md", {"region": "CH"}, id="parts"),
    Document("Anna repairs lamps.", "people/anna.md", {"region": "DE"}, id="anna"),
]


class TestRAGManagerInMemory(KnowledgeBaseContract):
    declares = frozenset({"search", "fetch", "browse", "write", "ids", "filters"})
    search_query, search_expects = "How many days for refunds?", "thirty days"
    fetch_ids = ("refunds", "parts", "returns")
    browse_path, browse_expects = "rules", "rules/returns.md"
    new_record: ClassVar[Record] = {"text": "Repairs take eleven weekdays.", "metadata": {"source": "test"}}
    row_scope: ClassVar[Mapping[str, Scalar]] = {"region": "CH"}
    other_scope: ClassVar[Mapping[str, Scalar]] = {"region": "DE"}

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return RAGManager(create_knowledge("memory", name="handbook", sources=DOCUMENTS))


class TestRAGManagerInAFile(TestRAGManagerInMemory):
    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return RAGManager(create_knowledge("sqlite", path=tmp_path / "kb.db", sources=DOCUMENTS), "handbook")


class TestRAGManagerOfAFunction(KnowledgeBaseContract):
    declares = frozenset({"search"})
    search_query, search_expects = "How many days for refunds?", "thirty days"

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        theirs = create_knowledge("memory", sources=DOCUMENTS)
        return RAGManager(Knowledge.from_callable(theirs.search, name="handbook"))
