"""What every store of vectors promises to who searches it."""

from __future__ import annotations

from typing import Any

import pytest

from agentkernel_kb.rag.protocols import VectorStore
from agentkernel_kb.testing.gating import requires
from agentkernel_kb.testing.vectors.samples import EAST, NORTH, RECORDS, VectorStoreSamples, found, record

_FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"tenant": "a"}, "east north"),
    ({"tenant": {"$eq": "b"}}, "northeast west"),
    ({"tenant": {"$ne": "a"}}, "northeast west"),
    ({"year": {"$gt": 2024, "$lt": 2026}}, "north"),
    ({"year": {"$gte": 2025}, "tenant": "b"}, "northeast west"),
    ({"year": {"$lte": 2024}}, "east"),
    ({"year": {"$in": [2024, 2026]}}, "east northeast west"),
    ({"year": {"$nin": [2024, 2026]}}, "north"),
    ({"year": "2024"}, ""),
    ({"current": True}, "north"),
    ({"current": 1}, ""),
    ({"current": {"$ne": True}}, "east northeast west"),
    ({"owner": None}, "west"),
    ({"tags": {"$contains": "money"}}, "east"),
    ({"tags": {"$contains": "1"}}, ""),
    ({"tenant": {"$contains": "a"}}, "east north"),
    ({"by.name": "Ann"}, "northeast"),
    ({"source": "policy.md"}, "east north"),
    ({"document_id": "travel.md"}, "northeast"),
    ({"id": {"$in": ["east", "west", "nobody"]}}, "east west"),
    ({"no.such.key": {"$nin": [1]}}, "east north northeast west"),
    ({"no.such.key": {"$gt": 0}}, ""),
    ({}, "east north northeast west"),
]
_FAULTY: list[dict[str, Any]] = [
    {"$or": [{"tenant": "a"}]},
    {"tenant": {"$regex": "."}},
    {"tenant": {}},
    {"tenant": {"$in": "a"}},
    {"year": {"$gt": None}},
]


class SearchTests(VectorStoreSamples):
    """Tests of ranking, filters and bounds."""

    async def test_the_nearest_comes_first(self, store: VectorStore) -> None:
        """By cosine, which knows no lengths; what points elsewhere is no hit."""
        assert await found(store, query_vector=EAST) == ["east", "northeast"]
        assert await found(store, query_vector=[0.0, 5.0, 0.0]) == ["north", "northeast"]

    async def test_a_hit_says_where_it_is_from(self, store: VectorStore) -> None:
        """Text, source, metadata, identifiers, rank and a score in [0, 1]."""
        first, second = await store.search(query_vector=EAST, query_text="", k=2)
        assert (first.text, first.source, first.document_id, first.chunk_id, first.rank) == (
            RECORDS[0].chunk.text,
            "policy.md",
            "policy.md",
            "east",
            1,
        )
        assert first.metadata == {"tenant": "a", "year": 2024, "tags": ["money", 1]}
        assert (first.score, second.score) == (pytest.approx(1), pytest.approx(0.8, abs=1e-6))

    async def test_no_more_come_than_are_asked_for(self, store: VectorStore) -> None:
        """And the best of them."""
        assert await found(store, k=1) == ["east"]

    async def test_equals_come_by_their_ids(self, store: VectorStore) -> None:
        """So that the same question has the same answer, whatever order they were written in."""
        await store.upsert([record(name, name, NORTH) for name in ("z", "y", "x")])
        assert await found(store, query_vector=NORTH, k=4) == ["north", "x", "y", "z"]

    async def test_weak_hits_are_left_out(self, store: VectorStore) -> None:
        """Those below the threshold; one that is just as good stays."""
        assert await found(store, score_threshold=0.5) == ["east", "northeast"]
        assert await found(store, score_threshold=0.9) == ["east"]
        assert await found(store, score_threshold=0.0) == ["east", "northeast"]

    @pytest.mark.parametrize(("where", "expected"), _FILTERS, ids=lambda value: str(value)[:50])
    async def test_a_filter_lets_through_what_meets_it(self, store: VectorStore, where: dict[str, Any], expected: str) -> None:
        """Exactly that, and hits are looked for among it alone."""
        names = set(await found(store, query_vector=[1.0, 1.0, 0.0], where=where)) | set(
            await found(store, query_vector=[-1.0, 0.0, 0.0], where=where)
        )
        assert names == set(expected.split())

    async def test_a_filter_is_no_matter_of_how_many_are_asked_for(self, store: VectorStore) -> None:
        """A hit under the filter is found however many better ones are not under it."""
        await store.upsert([record(f"n{n}", "near", EAST, tenant="z") for n in range(50)])
        assert await found(store, k=1, where={"tenant": "b"}) == ["northeast"]

    @pytest.mark.parametrize("where", _FAULTY, ids=str)
    async def test_a_faulty_filter_is_refused(self, store: VectorStore, where: dict[str, Any]) -> None:
        """It never means everything."""
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the store's own
            await store.search(query_vector=EAST, query_text="", where=where)

    @pytest.mark.parametrize(
        "asked", [{"k": 0}, {"k": -1}, {"mode": "magic"}, {"fetch_k": 10}, {"score_threshold": 2}], ids=str
    )
    async def test_what_cannot_be_asked_is_refused(self, store: VectorStore, asked: dict[str, Any]) -> None:
        """Whatever is out of range; `fetch_k` without `mmr_lambda` is."""
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the store's own
            await found(store, **asked)

    async def test_a_question_of_another_length_is_refused_with_both_lengths(self, store: VectorStore) -> None:
        """It was embedded by another model."""
        with pytest.raises(ValueError, match=r"3.*2|2.*3"):
            await found(store, query_vector=[1.0, 0.0])

    async def test_a_changed_hit_changes_nothing(self, store: VectorStore) -> None:
        """Its metadata is the caller's own."""
        (hit,) = await store.search(query_vector=EAST, query_text="", k=1)
        hit.metadata["tags"].append("mine")
        (again,) = await store.search(query_vector=EAST, query_text="", k=1)
        assert again.metadata["tags"] == ["money", 1]

    async def test_diversity_takes_the_unlike_before_the_like(self, store: VectorStore) -> None:
        """With a low `mmr_lambda`; with 1 it is relevance alone."""
        await store.upsert([record("east2", "Refunds are paid within thirty days.", EAST)])
        asked = {"query_vector": [1.0, 0.4, 0.0], "k": 2, "fetch_k": 5}
        assert "north" in await found(store, **asked, mmr_lambda=0.1)
        assert set(await found(store, **asked, mmr_lambda=1.0)) == {"northeast", "east"}

    @requires("keyword")
    async def test_words_are_found_in_any_inflection_the_rarer_the_better(self, store: VectorStore) -> None:
        """And case does not count."""
        assert await found(store, query_vector=None, query_text="REFUND of a train", mode="keyword", k=1) == ["northeast"]
        assert set(await found(store, query_vector=None, query_text="refund", mode="keyword")) == {"east", "northeast"}

    @requires("keyword")
    async def test_a_question_without_a_known_word_finds_nothing(self, store: VectorStore) -> None:
        """Nor does a blank one."""
        for text in ("", "   ", "zzzqqqxxx", "???"):
            assert await found(store, query_vector=None, query_text=text, mode="keyword") == []

    @requires("keyword")
    async def test_scores_of_words_lie_between_0_and_1(self, store: VectorStore) -> None:
        """Whatever is asked."""
        for text in ("refund", "refund refund refund", "Cats sleep all day.", "train"):
            hits = await store.search(query_vector=None, query_text=text, mode="keyword")
            assert all(0 < (hit.score or 0) <= 1 for hit in hits)

    @requires("hybrid")
    async def test_words_and_vectors_are_weighed_together(self, store: VectorStore) -> None:
        """What both find comes before what one finds."""
        between = [1.0, 0.4, 0.0]
        assert (await found(store, query_vector=between, query_text="train tickets refund", mode="hybrid"))[0] == "northeast"
        assert "west" in await found(store, query_vector=EAST, query_text="cats", mode="hybrid")
