"""The shipped suite run on Chroma in a folder, with an embedder that needs no model (A11, A21)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from agentkernel_kb import KnowledgeBase, Record
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.model import Scalar
from agentkernel_kb.testing import KnowledgeBaseContract

RECORDS: list[Record] = [
    {"text": "Returns are free for thirty days.", "metadata": {"source": "handbook", "team": "sales"}},
    {"text": "The guarantee covers parts for two years.", "metadata": {"source": "handbook", "team": "sales"}},
    {"text": "Parts ship on two days a week.", "metadata": {"source": "handbook", "team": "sales"}},
]


class TestChromaManager(KnowledgeBaseContract):
    declares = frozenset({"search", "write", "ids", "filters"})
    search_query, search_expects = "what does the guarantee cover: parts?", "two years"
    row_scope: ClassVar[Mapping[str, Scalar]] = {"team": "sales"}
    other_scope: ClassVar[Mapping[str, Scalar]] = {"team": "support"}
    new_record: ClassVar[Record] = {"text": "Repairs take eleven weekdays.", "metadata": {"source": "test"}}

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        backend = ChromaManager(str(tmp_path / "chroma"), name="handbook", embedding_function=HashEmbedder())
        backend.write(RECORDS)
        return backend.add_schema({"usage": "Ask in plain words."})
