"""Tenants in one corpus (S5): whatever they are called, index, ask and delete, none sees or changes what is another's.

Each run is compared with one in which every tenant has a corpus of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rag_world import STORES

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeError
from agentkernel_kb.rag import (
    Document,
    InMemoryVectorStore,
    Knowledge,
    SearchMode,
    SQLiteVectorStore,
    VectorStore,
    create_knowledge,
)

SCOPES = (
    {"tenant": "a"},
    {"tenant": "b"},
    {"tenant": 1},
    {"tenant": True},
    {"tenant": "1"},
    {"tenant": None},
    {"org.tenant": "a"},
    {"tenant": "a", "org.tenant": "a"},
)
"""Some of these contain others: `disjoint` says which of them can stand beside each other."""

WORDS = ("refund", "train", "cat", "lamp", "ramp", "refuse")
MISSPELT = ("refunt", "traim", "lamps", "damp", "refunds")
"""Nearest to the words of one tenant or of the other, depending on who has which."""

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
names = st.sampled_from(["same.md", "other.md", "third.md"])
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
questions = st.lists(st.sampled_from(WORDS + MISSPELT), min_size=1, max_size=3).map(" ".join)
documents = st.builds(
    lambda name, text, year, tenant: Document(text, name, {"year": year, **({} if tenant is None else {"tenant": tenant})}),
    st.none() | names,
    words,
    st.sampled_from([2025, 2026]),
    st.sampled_from([None, "a", "b", 1, True]),  # A document that claims to be another's.
)
operators = st.sampled_from(["$eq", "$ne", "$in", "$nin", "$gt", "$lte", "$contains"])
values = st.sampled_from(["a", "b", "1", 1, True, None, 2025, 2026, "same.md"])
filters = st.none() | st.dictionaries(
    st.sampled_from(["tenant", "org.tenant", "org", "year", "source", "id", "document_id", "$or"]),
    values | st.dictionaries(operators, values | st.lists(values, max_size=2), min_size=1, max_size=2),
    max_size=3,
)
criteria = st.fixed_dictionaries({}, optional={"sources": st.lists(names, max_size=2), "where": filters})
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(documents, min_size=1, max_size=3)),
    st.tuples(st.just("refresh"), st.lists(documents, max_size=2)),
    st.tuples(st.just("delete"), criteria),
    st.tuples(st.just("search"), st.tuples(questions, filters)),
    st.tuples(st.just("list"), filters),
)


def disjoint(pair: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    """Tell whether no document can be in both scopes: they bind one key to different values."""
    one, other = pair
    return any(key in other and (type(one[key]), one[key]) != (type(other[key]), other[key]) for key in one)


pairs = st.tuples(st.sampled_from(SCOPES), st.sampled_from(SCOPES)).filter(disjoint)


def store(kind: str, folder: str, name: str) -> VectorStore:
    return InMemoryVectorStore() if kind == "memory" else SQLiteVectorStore(Path(folder, f"{name}.db"))


def tenant(held: VectorStore, scope: dict[str, Any], mode: SearchMode = "hybrid") -> Knowledge:
    return create_knowledge("vector", store=held, embedder=HashEmbedder(32), mode=mode, where=scope, name="kb")


async def done(knowledge: Knowledge, step: tuple[str, Any]) -> Any:
    """Do a step and return all that its caller is told."""
    name, argument = step
    try:
        if name == "add":
            return (await knowledge.add(argument)).to_dict()
        if name == "refresh":
            return (await knowledge.refresh(argument, delete_missing=True)).to_dict()
        if name == "delete":
            return await knowledge.delete(**argument)
        if name == "list":
            return [each.to_dict() for each in await knowledge.list_documents(argument)]
        query, where = argument
        hits = sorted(await knowledge.search(query, k=50, where=where), key=lambda hit: hit.chunk_id or "")
        return [{**hit.to_dict(), "rank": None, "score": pytest.approx(hit.score, abs=1e-5)} for hit in hits]
    except KnowledgeError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=15, deadline=None, phases=PHASES)
@given(scopes=pairs, script=st.lists(st.tuples(st.integers(0, 1), steps), min_size=2, max_size=12))
def test_tenants_of_one_corpus_are_told_what_each_is_told_in_a_corpus_of_its_own(
    kind: str, mode: SearchMode, scopes: tuple[dict[str, Any], dict[str, Any]], script: list[tuple[int, tuple[str, Any]]]
):
    async def run(folder: str) -> None:
        shared = store(kind, folder, "shared")
        together = [tenant(shared, scope, mode) for scope in scopes]
        alone = [tenant(store(kind, folder, f"alone{number}"), scope, mode) for number, scope in enumerate(scopes)]
        for who, step in script:
            assert await done(together[who], step) == await done(alone[who], step)
        for one, other in zip(together, alone, strict=True):
            assert await done(one, ("search", (" ".join(WORDS), None))) == await done(
                other, ("search", (" ".join(WORDS), None))
            )
        for each in [*together, *alone]:
            await each.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@pytest.mark.parametrize("kind", STORES)
async def test_two_tenants_with_the_same_sources_and_texts_have_chunks_of_their_own(kind: str, tmp_path: Path):
    held = store(kind, str(tmp_path), "shared")
    given = [Document("Refunds take thirty days.", "policy.md"), Document("No source.")]
    one, two = (tenant(held, {"tenant": name}) for name in "ab")
    assert (await one.add(given)).added == (await two.add(given)).added == 2
    ids = [{chunk.id for chunk in await each.passages(document_ids=[given[0].id, given[1].id])} for each in (one, two)]
    assert [len(each) for each in ids] == [2, 2]
    assert not ids[0] & ids[1]
    assert await two.passages(ids=sorted(ids[0])) == []
    assert await two.delete(ids=sorted(ids[0])) == 0
    assert (await two.refresh([], delete_missing=True)).deleted == 2
    assert (await one.refresh(given)).unchanged == 2


@pytest.mark.parametrize("kind", STORES)
async def test_what_a_wider_scope_takes_away_is_indexed_again_by_the_narrower(kind: str, tmp_path: Path):
    held = store(kind, str(tmp_path), "shared")
    narrow = tenant(held, {"tenant": "a"})
    everybody = create_knowledge("vector", store=held, embedder=HashEmbedder(32), name="kb")
    await narrow.add(Document("The tenant's text.", "policy.md"))
    assert (await everybody.add(Document("Everybody's text.", "policy.md"))).deleted == 1
    assert (await narrow.add(Document("The tenant's text.", "policy.md"))).added == 1


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("where", [{"tenant": "b"}, {"tenant": {"$ne": "a"}}, {"tenant": {"$in": ["b", "c"]}}], ids=str)
async def test_a_filter_that_contradicts_the_scope_means_nothing_and_not_everything(kind: str, tmp_path: Path, where: Any):
    one = tenant(store(kind, str(tmp_path), "shared"), {"tenant": "a"})
    await one.add(Document("Refunds take thirty days.", "policy.md"))
    assert (await one.search("refunds", where=where), await one.list_documents(where)) == ([], [])
    assert await one.delete(where=where) == 0
    assert await one.delete(sources=["policy.md"], where=where) == 0
    assert len(await one.search("refunds")) == 1


@pytest.mark.parametrize("key", ["id", "chunk_id", "document_id", "source"])
def test_a_scope_is_of_metadata(key: str):
    with pytest.raises(AKConfigError, match="metadata"):
        create_knowledge("memory", where={key: "x"})


async def test_a_document_outside_of_a_scope_that_cannot_be_stamped_is_reported():
    knowledge = create_knowledge("memory", where={"tenant": {"$in": ["a", "b"]}})
    report = await knowledge.add([Document("In.", "in.md", {"tenant": "a"}), Document("Out.", "out.md", {"tenant": "c"})])
    assert ([each.source for each in report.failed], report.sources) == (["out.md"], ["in.md"])
