"""Every call that seed 000 documents on its guide pages, as written there, with the import prefix changed (P1-P7, P12, P13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb import Document, Knowledge, SearchHit, create_knowledge
from agentkernel_kb.rag import (
    CallableEmbedder,
    Chunk,
    HashEmbedder,
    InMemoryVectorStore,
    RecursiveCharacterSplitter,
    Retriever,
    UnsupportedKnowledgeOperationError,
    retriever,
)

HANDBOOK = [
    Document(
        text="Expense receipts must be submitted within 30 days.",
        source="expense-policy.md",
        metadata={"department": "finance"},
    ),
    "Security incidents must be reported immediately.",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the seed's examples name, as working directory."""
    texts = {
        "docs/manual.md": "# Device\n\nHold the button for ten seconds to reset a device.\n",
        "docs/current/policy.md": "Premium support answers within an hour.\n",
        "catalog/lamp.txt": "The lamp has a brass foot.\n",
        "faq.md": "Questions about shipping are answered here.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# P1: create_knowledge.


def test_p1_memory_over_a_folder(project: Path):
    knowledge = create_knowledge(
        "memory", name="product_docs", description="the product manual and troubleshooting guides", sources=["docs/"]
    )
    assert knowledge.sync.search("How do I reset a device?")[0].source == "docs/manual.md"


def test_p1_memory_over_documents_and_inline_texts_that_are_staged_until_they_are_needed():
    knowledge = create_knowledge("memory", name="handbook", description="the employee handbook", sources=HANDBOOK)
    assert knowledge.store is not None
    assert asyncio.run(knowledge.store.list_sources()) == []
    assert knowledge.sync.search("When must receipts be submitted?")[0].source == "expense-policy.md"
    assert "Security" in knowledge.sync.search("security incidents")[0].text


async def test_p1_ready_indexes_what_is_staged():
    report = await create_knowledge("memory", sources=HANDBOOK).ready()
    assert (report.documents, report.chunks, report.added, report.sources[0]) == (2, 2, 2, "expense-policy.md")


def test_p1_sqlite_with_a_namespace(project: Path):
    def production() -> Knowledge:
        return create_knowledge(
            "sqlite", path="support-knowledge.db", namespace="production", name="support_docs", sources=["docs/"]
        )

    assert production().sync.ready().documents == 2
    assert production().sync.ready().unchanged == 2
    other = create_knowledge("sqlite", path="support-knowledge.db", name="other")
    assert other.sync.search("reset a device") == []


def test_p1_the_namespace_is_the_name_where_none_is_given(project: Path):
    create_knowledge("sqlite", path="kb.db", name="one", sources=HANDBOOK).sync.ready()
    assert create_knowledge("sqlite", path="kb.db", namespace="one", name="two").sync.search("receipts")


def test_p1_a_store_and_an_embedder_of_ones_own(project: Path):
    my_vector_store, my_embedder = InMemoryVectorStore(), HashEmbedder(64)
    knowledge = create_knowledge("vector", name="catalog", store=my_vector_store, embedder=my_embedder, sources=["catalog/"])
    assert knowledge.sync.search("brass lamp")[0].source == "catalog/lamp.txt"
    assert create_knowledge("vector", store=my_vector_store).managed


# P3: sources.


def test_p3_a_path_and_a_path_as_a_string_are_the_same(project: Path):
    by_path, by_text = (create_knowledge("memory", sources=source) for source in (Path("faq.md"), "faq.md"))
    assert by_path.sync.search("shipping") == by_text.sync.search("shipping") != []


def test_p3_bytes_are_utf_8_with_replacement():
    knowledge = create_knowledge("memory", sources=[b"caf\xc3\xa9 and \xff"])
    assert knowledge.sync.search("café")[0].text == "café and �"


# P4: chunking and embeddings.


def test_p4_embedder_of_functions_and_splitter_with_sizes(project: Path):
    def my_embedding_batch(texts: list[str]) -> list[list[float]]:
        return HashEmbedder(32).embed_documents(texts)

    async def my_query_embedding(text: str) -> list[float]:
        return HashEmbedder(32).embed_query(text)

    embedder = CallableEmbedder(embed_documents=my_embedding_batch, embed_query=my_query_embedding)
    knowledge = create_knowledge(
        "sqlite",
        path="knowledge.db",
        embedder=embedder,
        splitter=RecursiveCharacterSplitter(chunk_size=700, chunk_overlap=100),
    )
    assert knowledge.sync.add(["docs/"]).chunks == 2
    assert knowledge.sync.search("reset a device")[0].source == "docs/manual.md"


def test_p4_defaults():
    splitter, embedder = RecursiveCharacterSplitter(), HashEmbedder()
    assert (splitter.chunk_size, splitter.chunk_overlap, embedder.dimensions) == (1000, 150, 384)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_p4_vectors_of_another_dimension_are_an_explicit_error(kind: str, project: Path):
    where: dict[str, Any] = {"path": "kb.db"} if kind == "sqlite" else {}
    knowledge = create_knowledge(kind, embedder=HashEmbedder(8), sources=HANDBOOK, **where)
    knowledge.sync.ready()
    assert knowledge.store is not None
    other = create_knowledge("vector", store=knowledge.store, embedder=HashEmbedder(16), mode="vector")
    with pytest.raises(ValueError, match=r"8.*16|16.*8"):
        other.sync.search("receipts")


# P2, P5, P6: search.


async def test_p2_search_with_k_and_where_and_retrieve_its_alias():
    knowledge = create_knowledge("memory", sources=HANDBOOK)
    hits = await knowledge.search("expense submission deadline", k=5, where={"department": "finance"})
    passage = "Expense receipts must be submitted within 30 days."
    assert [(hit.source, hit.text) for hit in hits] == [("expense-policy.md", passage)]
    assert all(0 < (hit.score or 0) <= 1 for hit in hits)
    assert await knowledge.retrieve("expense submission deadline", k=5, where={"department": "finance"}) == hits
    assert isinstance(knowledge, Retriever)


def test_p2_blocking_calls():
    knowledge = create_knowledge("memory", sources=HANDBOOK)
    assert knowledge.sync.search("receipts") == knowledge.sync.retrieve("receipts") != []


async def test_p2_blocking_calls_refuse_a_running_loop():
    with pytest.raises(RuntimeError, match="await"):
        create_knowledge("memory").sync.search("receipts")


def test_p5_modes_threshold_and_diversity():
    knowledge = create_knowledge("memory", mode="hybrid", score_threshold=0.15, fetch_k=24, mmr_lambda=0.7, sources=HANDBOOK)
    assert knowledge.sync.search("expense receipts")[0].source == "expense-policy.md"
    assert knowledge.sync.search("nothing of the kind") == []


def test_p5_fetch_k_requires_mmr_lambda():
    with pytest.raises(ValueError, match="mmr_lambda"):
        create_knowledge("memory", fetch_k=24)


async def test_p5_a_reranker_has_the_last_word():
    class MyReranker:
        async def rerank(self, query: str, hits: Sequence[SearchHit], *, k: int) -> list[SearchHit]:
            return sorted(hits, key=lambda hit: hit.text, reverse=True)[:k]

    knowledge = create_knowledge("memory", reranker=MyReranker(), sources=["must a", "must must must b"])
    assert [hit.text for hit in await knowledge.search("must", k=1)] == ["must must must b"]


def test_p6_filters():
    documents = [
        Document("Retention is ten years.", f"{name}-{year}.md", {"department": name, "revision": {"year": year}})
        for name in ("finance", "legal", "sales")
        for year in (2025, 2026)
    ]
    where = {"department": {"$in": ["finance", "legal"]}, "revision.year": {"$gte": 2026}}
    hits = create_knowledge("memory", sources=documents).sync.search("retention policy", where=where)
    assert {hit.source for hit in hits} == {"finance-2026.md", "legal-2026.md"}


@pytest.mark.parametrize(
    ("condition", "years"),
    [
        ({"$eq": 2}, [2]), ({"$ne": 2}, [1, 3]), ({"$in": [1, 3]}, [1, 3]), ({"$nin": [1]}, [2, 3]), ({"$gt": 1}, [2, 3]),
        ({"$gte": 2}, [2, 3]), ({"$lt": 2}, [1]), ({"$lte": 2}, [1, 2]),
    ],
    ids=str,
)  # fmt: skip
def test_p6_operators(condition: dict[str, Any], years: list[int]):
    sources = [Document("Text.", f"{year}.md", {"year": year}) for year in (1, 2, 3)]
    hits = create_knowledge("memory", sources=sources).sync.search("text", where={"year": condition})
    assert sorted(hit.metadata["year"] for hit in hits) == years


def test_p6_contains_is_of_containers_and_of_texts():
    sources = [Document("Text.", "a.md", {"tags": ["red", "blue"], "title": "The red book"})]
    knowledge = create_knowledge("memory", sources=sources)
    assert all(knowledge.sync.search("text", where={key: {"$contains": "red"}}) for key in ("tags", "title"))


def test_p6_the_scope_is_refined_and_never_overridden():
    sources = [Document("Text.", "a.md", {"year": 2026})]
    knowledge = create_knowledge("memory", sources=sources, where={"tenant": "a"})
    assert knowledge.sync.search("text", where={"year": 2026})
    assert knowledge.sync.search("text", where={"tenant": "b"}) == []


# P2, P7: lifecycle.


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_p7_the_lifecycle(kind: str, project: Path):
    where: dict[str, Any] = {"path": "kb.db"} if kind == "sqlite" else {}
    knowledge = create_knowledge(kind, **where)
    report = await knowledge.add(["docs/", "faq.md"])
    assert (report.documents, report.sources) == (3, ["docs/current/policy.md", "docs/manual.md", "faq.md"])
    report = await knowledge.add_text(
        "Premium support is available around the clock.", source="support-tiers.md", metadata={"tier": "premium"}
    )
    assert (report.documents, report.chunks, report.added) == (1, 1, 1)
    report = await knowledge.upsert(Document(text="Updated policy text", source="policy.md", metadata={"revision": 3}))
    report = await knowledge.upsert([Document(text="Updated again", source="policy.md", metadata={"revision": 4})])
    assert (report.added, report.deleted) == (1, 1)
    assert await knowledge.delete(sources=["support-tiers.md"]) == 1
    report = await knowledge.refresh(["docs/current/"], delete_missing=True)
    assert (report.unchanged, report.deleted) == (1, 3)
    assert (await knowledge.sync_sources(["docs/current/"], delete_missing=True)).unchanged == 1


def test_p7_every_lifecycle_call_has_a_blocking_twin(project: Path):
    knowledge = create_knowledge("memory").sync
    assert knowledge.ready().documents == 0
    assert knowledge.add("faq.md", metadata={"lang": "en"}).added == 1
    assert knowledge.add_text("x").added == 1
    assert knowledge.upsert(Document("y")).added == 1
    assert knowledge.refresh(["faq.md"], metadata={"lang": "en"}).unchanged == 1
    assert knowledge.sync_sources("faq.md", metadata={"lang": "de"}).added == 1
    assert knowledge.delete(where={"lang": "de"}) == 1


def test_p7_ids_make_repeated_upserts_deterministic():
    ids: list[list[str | None]] = []
    for _ in range(2):
        knowledge = create_knowledge("memory", sources=HANDBOOK)
        ids.append([hit.chunk_id for hit in knowledge.sync.search("must")])
    assert ids[0] == ids[1]


# P1, P2, P12: what searches only.


class CompanySearch:
    async def retrieve(self, query: str, *, k: int = 5, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        rows = [("Travel needs approval.", 0.9, "https://hr.example/travel", {"page": 3}, "c1")] * k
        return [
            SearchHit(text=text, score=score, source=url, metadata=metadata, chunk_id=identity)
            for text, score, url, metadata, identity in rows
        ]


async def test_p12_a_retriever_of_ones_own():
    knowledge = Knowledge(CompanySearch(), name="company_docs", description="private product and company documentation")
    hits = await knowledge.search("travel")
    assert (len(hits), hits[0].rank, hits[0].chunk_id) == (5, 1, "c1")
    assert not knowledge.managed


@pytest.mark.parametrize("passage", [SearchHit("x"), Document("x"), Chunk("x"), {"page_content": "x", "page": 3}, "x"])
async def test_p2_from_callable(passage: Any):
    async def search_company_docs(query: str, *, k: int = 5, where: Any = None) -> Any:
        return [passage]

    knowledge = Knowledge.from_callable(search_company_docs, name="company_docs", description="private company documentation")
    (hit,) = await knowledge.search("x")
    assert (hit.text, hit.metadata) == ("x", {"page": 3} if isinstance(passage, dict) else {})


async def test_p12_the_decorator():
    @retriever(name="company_docs", description="private company documentation")
    async def search_company_docs(query: str, *, k: int = 5, where: Any = None) -> Any:
        return [query]

    assert isinstance(search_company_docs, Knowledge)
    assert [hit.text for hit in await search_company_docs.search("x")] == ["x"]


async def test_p2_lifecycle_calls_on_what_is_not_ours_are_unsupported():
    knowledge = Knowledge(CompanySearch())
    for call in (knowledge.add("x"), knowledge.upsert(Document("x")), knowledge.delete(sources=["x"]), knowledge.refresh([])):
        with pytest.raises(UnsupportedKnowledgeOperationError):
            await call
