"""Retrievers, rerankers, thresholds and what only searches: each through Knowledge (P1, P2, P5, P6, P12, P13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rag_world import STORES, CountingEmbedder, made

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag import (
    CallableRetriever,
    Chunk,
    Document,
    HashEmbedder,
    InMemoryVectorStore,
    Knowledge,
    Retriever,
    SearchHit,
    create_knowledge,
    retriever,
)

FACTS = [
    Document("Refunds are paid within thirty days.", "refunds.md", {"department": "finance", "revision": {"year": 2026}}),
    Document("Refunds of train tickets are paid by the travel desk.", "travel.md", {"department": "travel"}),
    Document("Cats sleep all day.", "cats.md", {"department": "zoo"}),
]


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def sources(hits: Sequence[SearchHit]) -> list[str | None]:
    return [hit.source for hit in hits]


def test_filters_and_limits_hold(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path, sources=FACTS, default_k=1)
    assert len(knowledge.sync.search("refunds")) == 1
    assert sources(knowledge.sync.search("refunds", k=5, where={"department": {"$in": ["travel"]}})) == ["travel.md"]
    assert sources(knowledge.sync.search("refunds", k=5, where={"revision.year": {"$gte": 2026}})) == ["refunds.md"]


@pytest.mark.parametrize("where", [{"department": {"$regex": "x"}}, {"$or": []}, "department"], ids=str)
def test_a_faulty_filter_is_refused(kind: str, tmp_path: Path, where: Any):
    with pytest.raises(AKConfigError):
        made(kind, tmp_path, sources=FACTS).sync.search("refunds", where=where)


@pytest.mark.parametrize("k", [0, -1, True, 10_001, "5"])
def test_a_faulty_number_of_hits_is_refused(tmp_path: Path, k: Any):
    with pytest.raises(AKConfigError, match="k must be"):
        made("memory", tmp_path, sources=FACTS).sync.search("refunds", k=k)


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_scores_lie_between_0_and_1_and_a_threshold_leaves_weak_hits_out(kind: str, tmp_path: Path, mode: Any):
    hits = made(kind, tmp_path, sources=FACTS, mode=mode).sync.search("refunds thirty days")
    scores = [hit.score or 0.0 for hit in hits]
    assert all(0 < score <= 1 for score in scores)
    assert (scores, sources(hits)[0]) == (sorted(scores, reverse=True), "refunds.md")
    strict = made("memory", tmp_path, sources=FACTS, mode=mode, score_threshold=scores[0])
    assert sources(strict.sync.search("refunds thirty days")) == ["refunds.md"]


def test_diversity_prefers_the_unlike(tmp_path: Path):
    alike = [Document(f"Refunds are paid within thirty days. {n}", f"{n}.md") for n in range(4)]
    knowledge = made("memory", tmp_path, sources=[*alike, *FACTS], fetch_k=7, mmr_lambda=0.2)
    assert "travel.md" in sources(knowledge.sync.search("refunds paid", k=2))


@pytest.mark.parametrize(
    "options",
    [{"fetch_k": 9}, {"mmr_lambda": 2}, {"mode": "magic"}, {"score_threshold": -1}, {"default_k": 0}, {"name": " "}],
    ids=str,
)
def test_faulty_options_are_refused_when_it_is_made(options: dict[str, Any]):
    with pytest.raises(ValueError):  # noqa: PT011 - the message names the option
        create_knowledge("memory", **options)


def test_unknown_arguments_are_refused_by_name():
    with pytest.raises(AKConfigError, match=r"'memory' has no argument 'chunk_size'"):
        create_knowledge("memory", chunk_size=3)
    with pytest.raises(AKConfigError, match=r"path, namespace"):
        create_knowledge("sqlite", path="x.db", pth="y")
    with pytest.raises(AKConfigError, match="needs path"):
        create_knowledge("sqlite")
    with pytest.raises(AKConfigError, match="Did you mean 'sqlite'"):
        create_knowledge("sqlit")
    with pytest.raises(AKConfigError, match="'vector' needs it"):
        create_knowledge("vector")


@pytest.mark.parametrize(
    "option", [{"mode": "keyword"}, {"store": InMemoryVectorStore()}, {"mmr_lambda": 0.5}, {"sources": ["x"]}]
)
def test_what_a_retriever_cannot_heed_is_refused_and_not_ignored(option: dict[str, Any]):
    with pytest.raises(AKConfigError, match=next(iter(option))):
        create_knowledge(lambda query, *, k, where: [], **option)


def test_a_store_of_ones_own_is_managed():
    store = InMemoryVectorStore()
    knowledge = create_knowledge("vector", store=store, embedder=HashEmbedder(32), sources=FACTS)
    assert sources(knowledge.sync.search("cats", k=1)) == ["cats.md"]
    assert (knowledge.managed, knowledge.store) == (True, store)


RESULTS = {
    "hits": [SearchHit("Passage.", 0.5, "a.md")],
    "documents": [Document("Passage.", "a.md")],
    "chunks": [Chunk("Passage.", "d", 0, "a.md")],
    "mappings": [{"content": "Passage.", "source": "a.md", "score": "0.5", "page": 3}],
    "texts": ["Passage."],
    "nothing": None,
    "an iterator": iter(["Passage."]),
}


@pytest.mark.parametrize("name", RESULTS)
async def test_a_function_may_return_any_kind_of_passage(name: str):
    async def search(query: str, *, k: int = 5, where: Any = None) -> Any:
        return RESULTS[name]

    hits = await Knowledge.from_callable(search).search("x")
    assert [(hit.text, hit.rank) for hit in hits] == ([] if name == "nothing" else [("Passage.", 1)])


@pytest.mark.parametrize("returned", ["one text", 7, [7], [{"body": "x"}], [{"text": "x", "score": "high"}], {"text": "x"}])
async def test_what_is_no_passage_is_an_error_of_the_function(returned: Any):
    with pytest.raises(KnowledgeBackendError):
        await Knowledge.from_callable(lambda query, **_: returned).search("x")


async def test_what_a_function_raises_is_told_without_its_text():
    def search(query: str, **_: Any) -> Any:
        raise RuntimeError("password=hunter2")

    with pytest.raises(KnowledgeBackendError, match=r"^The search of 'docs' failed: RuntimeError\.$"):
        await Knowledge.from_callable(search, name="docs").search("x")


async def test_a_function_is_given_the_scope_which_nobody_widens():
    asked: list[Any] = []

    def search(query: str, *, k: int, where: Any) -> list[SearchHit]:
        asked.append((query, k, where))
        return [SearchHit("theirs", metadata={"tenant": "b"}), SearchHit("ours", metadata={"tenant": "a"}), SearchHit("unsaid")]

    knowledge = Knowledge.from_callable(search, where={"tenant": "a"})
    assert [hit.text for hit in await knowledge.search("x", k=3, where={"year": 2026})] == ["ours", "unsaid"]
    assert asked == [("x", 3, {"year": 2026, "tenant": "a"})]
    for where in ({"tenant": "b"}, {"tenant": {"$ne": "a"}}, {"$or": [{"tenant": "b"}]}):
        with pytest.raises(AKConfigError, match="bound"):
            await knowledge.search("x", where=where)
    assert len(asked) == 1


async def test_the_decorator_and_knowledge_itself_are_retrievers(tmp_path: Path):
    @retriever
    def search(query: str, *, k: int = 5, where: Any = None) -> list[str]:
        return [query] * 10

    assert isinstance(search, CallableRetriever)
    assert isinstance(made("memory", tmp_path), Retriever)
    assert len(await create_knowledge(search, default_k=2).retrieve("x")) == 2
    assert len(await create_knowledge(create_knowledge(search)).search("x", k=3)) == 3


async def test_lifecycle_calls_on_what_is_not_ours_are_unsupported():
    knowledge = create_knowledge(lambda query, **_: [], name="theirs")
    for call in (
        knowledge.add("x"),
        knowledge.add_text("x"),
        knowledge.upsert(FACTS),
        knowledge.delete(ids=["x"]),
        knowledge.refresh("x"),
        knowledge.sync_sources("x"),
        knowledge.list_documents(),
        knowledge.passages(ids=["x"]),
    ):
        with pytest.raises(UnsupportedKnowledgeOperationError, match="theirs"):
            await call
    assert (await knowledge.ready()).documents == 0
    assert not knowledge.managed


async def test_a_reranker_is_given_more_than_is_asked_for_and_has_the_last_word(tmp_path: Path):
    given: list[int] = []

    class Backwards:
        async def rerank(self, query: str, hits: Sequence[SearchHit], *, k: int) -> list[SearchHit]:
            given.append(len(hits))
            return list(hits)[::-1]

    knowledge = made("memory", tmp_path, sources=[Document(f"Refund {n}", f"{n}.md") for n in range(9)], reranker=Backwards())
    hits = await knowledge.search("refund", k=2)
    assert (given, len(hits), [hit.rank for hit in hits]) == ([9], 2, [1, 2])


async def test_several_questions_are_embedded_once_each(tmp_path: Path):
    asked: list[list[str]] = []

    class Batching(CountingEmbedder):
        async def embed_queries(self, texts: list[str]) -> list[list[float]]:
            asked.append(texts)
            return [self.embed_query(text) for text in texts]

    knowledge = made("memory", tmp_path, sources=FACTS, embedder=Batching())
    answers = await knowledge.search_all(["cats", "refunds", "cats", " "], k=1)
    assert [sources(hits) for hits in answers] == [["cats.md"], ["refunds.md"], ["cats.md"], []]
    assert asked == [["cats", "refunds"]]


@pytest.mark.parametrize("query", [None, 7, b"x"])
async def test_a_question_is_a_text(tmp_path: Path, query: Any):
    with pytest.raises(AKConfigError):
        await made("memory", tmp_path, sources=FACTS).search(query)


def test_descriptors_and_reprs_hold_no_secrets(tmp_path: Path):
    knowledge = made("sqlite", tmp_path, name="docs of hr", description="Rules.", where={"tenant": "s3cret"})
    assert knowledge.descriptor() == {
        "name": "docs of hr",
        "description": "Rules.",
        "managed": True,
        "tool_name": "search_docs_of_hr",
    }
    assert "s3cret" not in repr(knowledge) + repr(vars(knowledge)["_scope"])
