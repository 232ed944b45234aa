"""The reference page of seed 000: imports, signatures, attributes, values, protocols (P1, P2, P12, P13)."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import agentkernel_kb
from agentkernel_kb import Citation, Document, Knowledge, RAGAnswer, SearchHit, create_knowledge, rag
from agentkernel_kb.rag import (
    AtomicVectorStore,
    AutoLoader,
    CallableRetriever,
    Chunk,
    Embedder,
    HashEmbedder,
    IndexReport,
    InMemoryVectorStore,
    Loader,
    RecursiveCharacterSplitter,
    Reranker,
    Retriever,
    Splitter,
    SQLiteVectorStore,
    VectorStore,
    VectorStoreRetriever,
)

COMMON = "Citation Document Knowledge RAGAnswer SearchHit create_knowledge"
ADVANCED = (
    "AutoLoader AtomicVectorStore CallableEmbedder CallableRetriever Chunk Embedder HashEmbedder InMemoryVectorStore "
    "IndexReport Loader OpenAIEmbedder RecursiveCharacterSplitter Reranker Retriever SQLiteVectorStore Splitter VectorStore "
    "VectorStoreRetriever UnsupportedKnowledgeOperationError KnowledgeNotFoundError SyncKnowledge"
)


@pytest.mark.parametrize("name", COMMON.split())
def test_p1_the_common_names_come_from_the_root_and_are_those_of_rag(name: str):
    assert getattr(agentkernel_kb, name) is getattr(rag, name)


@pytest.mark.parametrize("name", ADVANCED.split())
def test_p12_the_advanced_names_come_from_rag(name: str):
    assert name in rag.__all__
    assert getattr(importlib.import_module("agentkernel_kb.rag"), name)


def defaults(function: Any) -> list[tuple[str, str, Any]]:
    """Return name, kind and default of each parameter; `...` for one without a default."""
    return [
        (each.name, each.kind.description, ... if each.default is inspect.Parameter.empty else each.default)
        for each in inspect.signature(function).parameters.values()
    ]


def test_p1_create_knowledge_has_the_signature_of_the_seed():
    keywords = {
        "name": "knowledge", "description": None, "sources": None, "default_k": 5, "context_max_chars": 12_000, "loader": None,
        "splitter": None, "embedder": None, "store": None, "reranker": None, "mode": None, "score_threshold": None,
        "fetch_k": None, "mmr_lambda": None, "where": None,
    }  # fmt: skip
    found = defaults(create_knowledge)
    assert found[0] == ("backend", "positional or keyword", "memory")
    assert found[1 : len(keywords) + 1] == [(name, "keyword-only", value) for name, value in keywords.items()]
    assert found[-1] == ("kwargs", "variadic keyword", ...)


def test_p2_knowledge_has_the_signature_of_the_seed():
    keywords = {
        "name": "knowledge", "description": None, "default_k": 5, "reranker": None, "where": None, "score_threshold": None,
        "loader": None, "splitter": None, "embedder": None, "store": None, "context_max_chars": 12_000, "pending_sources": None,
    }  # fmt: skip
    found = defaults(Knowledge)
    assert found[0] == ("retriever", "positional or keyword", None)
    assert found[1 : len(keywords) + 1] == [(name, "keyword-only", value) for name, value in keywords.items()]


METHODS = {
    "ready": [],
    "search": [("query", ...), ("k", None), ("where", None)],
    "retrieve": [("query", ...), ("k", None), ("where", None)],
    "add": [("source", ...), ("metadata", None)],
    "add_text": [("text", ...), ("source", None), ("metadata", None)],
    "upsert": [("documents", ...)],
    "delete": [("ids", None), ("document_ids", None), ("where", None), ("sources", None)],
    "refresh": [("sources", ...), ("metadata", None), ("delete_missing", False)],
    "sync_sources": [("sources", ...), ("metadata", None), ("delete_missing", False)],
}


@pytest.mark.parametrize("name", METHODS)
def test_p2_methods_and_their_blocking_twins_have_the_signatures_of_the_seed(name: str):
    knowledge = create_knowledge("memory")
    assert inspect.iscoroutinefunction(getattr(knowledge, name))
    for method in (getattr(knowledge, name), getattr(knowledge.sync, name)):
        assert [(each, value) for each, _, value in defaults(method)] == METHODS[name]
        assert all(kind == "keyword-only" for _, kind, value in defaults(method) if value is not ...)


def test_p2_attributes():
    knowledge = create_knowledge("memory", name="company policies", description="HR, travel, expense, and security policies")
    assert (knowledge.name, knowledge.description) == ("company policies", "HR, travel, expense, and security policies")
    assert (knowledge.managed, knowledge.tool_name) == (True, "search_company_policies")
    assert isinstance(knowledge.sync, rag.SyncKnowledge)
    assert isinstance(create_knowledge("memory").description, str)


def test_p2_managed_means_that_all_four_parts_are_there():
    parts: dict[str, Any] = {
        "loader": AutoLoader(),
        "splitter": RecursiveCharacterSplitter(),
        "embedder": HashEmbedder(),
        "store": InMemoryVectorStore(),
    }
    knowledge = Knowledge(**parts, pending_sources=["Lunch is at noon."])
    assert knowledge.managed
    assert [hit.text for hit in knowledge.sync.search("lunch")] == ["Lunch is at noon."]
    without: dict[str, dict[str, Any]] = {name: {**parts, name: None} for name in parts}
    assert not Knowledge(**without["loader"]).managed
    assert not Knowledge(**without["splitter"]).managed
    for missing in ("embedder", "store"):
        with pytest.raises(ValueError, match="store with an embedder"):
            Knowledge(**without[missing])


def test_p2_one_retriever_is_one_tool_of_its_own_name():
    tool = create_knowledge("memory", name="company_policies", sources=["Travel needs approval."]).as_tool()
    assert tool.__name__ == "search_company_policies"
    assert [name for name, _, _ in defaults(tool)] == ["query", "k", "where"]
    assert "[company_policies:1]" in tool("travel", k=5, where=None)


# P1: what a backend does not take is refused, and not ignored.


@pytest.mark.parametrize("arguments", [{"path": "x.db"}, {"namespace": "x"}, {"collection": "x"}, {"index": object()}])
def test_p1_memory_takes_no_arguments_of_other_backends(arguments: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        create_knowledge("memory", **arguments)


def test_p1_sqlite_requires_path_and_vector_a_store(tmp_path: Path):
    with pytest.raises(ValueError, match="path="):
        create_knowledge("sqlite")
    with pytest.raises(ValueError, match="store="):
        create_knowledge("vector")
    with pytest.raises(ValueError, match="store="):
        create_knowledge("sqlite", path=tmp_path / "kb.db", store=InMemoryVectorStore())


@pytest.mark.parametrize(
    "control", [{"mode": "keyword"}, {"fetch_k": 9, "mmr_lambda": 0.5}, {"splitter": RecursiveCharacterSplitter()}], ids=str
)
def test_p1_controls_of_local_search_are_refused_for_what_is_only_searched(control: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(control))):
        create_knowledge(lambda query, *, k=5, where=None: [], **control)


# P13: values.

FIELDS: dict[type, list[str]] = {
    Document: ["text", "source", "metadata", "id", "media_type"],
    Chunk: ["text", "document_id", "index", "source", "metadata", "id"],
    SearchHit: ["text", "score", "source", "metadata", "document_id", "chunk_id", "rank"],
    Citation: ["label", "source", "excerpt", "score", "document_id", "chunk_id", "metadata"],
    RAGAnswer: ["text", "citations", "hits", "query"],
    IndexReport: ["documents", "chunks", "added", "deleted", "skipped", "sources"],
}
HIT = SearchHit("Passage.", 0.5, "a.md", {"page": 3}, "d", "c", 1)
VALUES: list[Any] = [
    Document(text="Text.", source="a.md", metadata={"page": 3}),
    Chunk(text="Text.", document_id="d", index=2, source="a.md", metadata={"page": 3}),
    HIT,
    Citation.from_hit(HIT, 1),
    RAGAnswer("Answer [1].", [Citation.from_hit(HIT, 1)], [HIT], "question"),
    IndexReport(documents=1, chunks=2, added=2, sources=["a.md"]),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_p13_values_have_the_fields_of_the_seed_and_come_back_from_their_dictionaries(value: Any):
    assert all(hasattr(value, name) for name in FIELDS[type(value)])
    assert type(value).from_dict(value.to_dict()) == value


def test_p13_an_answer_reads_as_its_text():
    assert str(RAGAnswer("Answer.")) == "Answer."


def test_p13_a_page_is_found_in_the_metadata_of_a_citation():
    assert (Citation.from_hit(HIT, 1).label, Citation.from_hit(HIT, 1).metadata.get("page")) == ("[1]", 3)


# P12: protocols are structural, and checked at run time.


class Everything:
    async def load(self, source: Any, *, metadata: Any = None) -> list[Any]: ...
    def split(self, documents: Any) -> list[Any]: ...
    async def embed_documents(self, texts: Any) -> list[Any]: ...
    async def embed_query(self, text: str) -> list[float]: ...
    async def upsert(self, records: Any) -> int: ...
    async def delete(self, **_: Any) -> int: ...
    async def search(self, **_: Any) -> list[Any]: ...
    async def list_sources(self) -> list[str]: ...
    async def replace(self, records: Any, **_: Any) -> tuple[int, int]: ...
    async def retrieve(self, query: str, *, k: int = 5, where: Any = None) -> list[Any]: ...
    async def rerank(self, query: str, hits: Any, *, k: int) -> list[Any]: ...


@pytest.mark.parametrize(
    "protocol",
    [Loader, Splitter, Embedder, VectorStore, AtomicVectorStore, Retriever, Reranker],
    ids=lambda each: each.__name__,
)
def test_p12_whoever_has_the_methods_is_one(protocol: Any):
    assert isinstance(Everything(), protocol)
    assert not isinstance(object(), protocol)


def test_p12_the_parts_that_are_built_in_are_what_the_seed_says(tmp_path: Path):
    stores: list[Any] = [
        InMemoryVectorStore(),
        SQLiteVectorStore(tmp_path / "kb.db"),
        SQLiteVectorStore(str(tmp_path / "kb.db"), "n"),
    ]
    assert all(isinstance(store, AtomicVectorStore) for store in stores)
    assert isinstance(AutoLoader(), Loader)
    assert isinstance(RecursiveCharacterSplitter(), Splitter)
    assert isinstance(HashEmbedder(), Embedder)
    assert isinstance(CallableRetriever(lambda query, **_: []), Retriever)
    assert isinstance(VectorStoreRetriever(InMemoryVectorStore(), HashEmbedder(), mode="hybrid"), Retriever)


async def test_p5_a_store_with_its_embedder_is_a_retriever_with_filters_threshold_and_diversity():
    store = InMemoryVectorStore()
    await create_knowledge(
        "vector", store=store, embedder=HashEmbedder(), sources=["Trains leave at noon.", "Lunch is at noon."]
    ).ready()
    found = VectorStoreRetriever(store, HashEmbedder(), mode="hybrid", score_threshold=0.1, fetch_k=10, mmr_lambda=0.5)
    assert [hit.text for hit in await found.retrieve("trains noon", k=1, where={"source": {"$eq": None}})] == [
        "Trains leave at noon."
    ]


async def test_p7_a_store_that_cannot_replace_is_written_first_and_cleaned_afterwards():
    calls: list[str] = []

    class Plain:
        def __init__(self) -> None:
            self.inner = InMemoryVectorStore()

        async def upsert(self, records: Any) -> int:
            calls.append("upsert")
            return await self.inner.upsert(records)

        async def delete(self, **given: Any) -> int:
            calls.append("delete")
            return await self.inner.delete(**given)

        async def search(self, **given: Any) -> list[SearchHit]:
            return await self.inner.search(**given)

        async def list_sources(self) -> list[str]:
            return await self.inner.list_sources()

    knowledge = create_knowledge("vector", store=Plain(), embedder=HashEmbedder())
    await knowledge.upsert(Document("The old text.", "policy.md"))
    calls.clear()
    await knowledge.upsert(Document("The new text.", "policy.md"))
    assert calls[0] == "upsert"
    assert [hit.text for hit in await knowledge.search("text")] == ["The new text."]
