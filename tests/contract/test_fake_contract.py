"""The shipped suite run on `FakeKnowledgeBase`, in one class per mix of capabilities (A21)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from agentkernel_kb import KnowledgeBase, Record
from agentkernel_kb.model import Scalar
from agentkernel_kb.testing import FakeKnowledgeBase, KnowledgeBaseContract

RECORDS: list[Record] = [
    {"text": "Returns are free for thirty days.", "metadata": {"id": "policies/returns", "source": "handbook"}},
    {"text": "The guarantee covers parts for two years.", "metadata": {"id": "policies/guarantee", "source": "handbook"}},
    {"text": "Parts ship on two days a week.", "metadata": {"id": "shipping", "source": "handbook"}},
]


class FakeContract(KnowledgeBaseContract):
    search_query, search_expects = "what does the guarantee cover: parts?", "two years"
    read_statement, read_expects = "parts", "guarantee"
    empty_statement, bad_statement = "bicycles", "the customer's"
    write_statements = ("DELETE parts", "parts; drop returns")
    fetch_ids = ("policies/guarantee", "shipping")
    browse_path, browse_expects = "policies", "policies/returns"
    new_record: ClassVar[Record] = {"text": "Repairs take eleven weekdays.", "metadata": {"source": "test"}}


class TestEverything(FakeContract):
    declares = frozenset({"search", "query", "guard", "fetch", "browse", "write", "ids"})

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return FakeKnowledgeBase(
            "all", RECORDS, query_language="text", fetch=True, browse=True, writable=True, refused_words={"delete", "drop"}
        )


SCOPED: list[Record] = [{**record, "metadata": {**record["metadata"], "team": "sales", "floor": 2}} for record in RECORDS]


class TestScoped(FakeContract):
    declares = frozenset({"search", "query", "fetch", "browse", "write", "ids", "filters"})
    row_scope: ClassVar[Mapping[str, Scalar]] = {"team": "sales", "floor": 2}
    other_scope: ClassVar[Mapping[str, Scalar]] = {"team": "support", "floor": 2}

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return FakeKnowledgeBase("scoped", SCOPED, query_language="text", fetch=True, browse=True, writable=True, filters=True)


class TestSearchOnly(FakeContract):
    declares = frozenset({"search"})

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return FakeKnowledgeBase("search only", RECORDS, derives_schema=False).add_schema({"usage": "search"})


class TestUnguardedQueryOnly(FakeContract):
    declares = frozenset({"query"})

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return FakeKnowledgeBase("query only", RECORDS, search=False, query_language="text")


class TestFetchAndBrowse(FakeContract):
    declares = frozenset({"fetch", "browse"})

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return FakeKnowledgeBase("shelf", RECORDS, search=False, fetch=True, browse=True)


class TestWriteOnly(FakeContract):
    declares = frozenset({"write", "ids"})

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return FakeKnowledgeBase("drop box", RECORDS, search=False, writable=True)

    def find_written(self, backend: KnowledgeBase) -> list[Record]:
        assert isinstance(backend, FakeKnowledgeBase)
        return [record for record in backend.held() if record["text"] == self.new_record["text"]]
