"""What every store of vectors promises to who writes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentkernel_kb.rag.chunk import Chunk, VectorRecord
from agentkernel_kb.rag.content import DataBlock
from agentkernel_kb.rag.protocols import VectorStore
from agentkernel_kb.testing.gating import requires
from agentkernel_kb.testing.vectors.samples import EAST, NORTH, RECORDS, WEST, VectorStoreSamples, found, record

_ODD = (
    ("empty source", "a.md\n../../etc"),
    ("quote", "it's; DROP TABLE chunks --"),
    ("emoji", "🦄/ünïcode.md"),
    ("long", "x" * 5_000),
    ("a name of a file that is no text", "caf\udce9.md"),
)


class WriteTests(VectorStoreSamples):
    """Tests of writing, replacing and deleting."""

    async def test_what_is_written_is_counted_and_listed(self, store: VectorStore) -> None:
        """Sources come sorted and once; a chunk without one is in none."""
        assert await store.upsert([record("new", "New.", NORTH, "new.md"), record("newer", "Newer.", NORTH, "new.md")]) == 2
        assert await store.list_sources() == ["new.md", "policy.md", "travel.md"]

    async def test_the_same_chunk_is_there_once(self, store: VectorStore) -> None:
        """The last one written."""
        await store.upsert([record("east", "Dogs bark.", WEST, "dogs.md")])
        assert await found(store, query_vector=EAST) == ["northeast"]
        assert sorted(await found(store, query_vector=WEST)) == ["east", "west"]
        assert (await store.search(query_vector=WEST, query_text="", where={"id": "east"}))[0].text == "Dogs bark."

    async def test_of_one_chunk_written_twice_at_once_the_last_counts(self, store: VectorStore) -> None:
        """As if they were written one after the other."""
        await store.upsert([record("twice", "first", NORTH), record("twice", "second", EAST)])
        assert "twice" in await found(store, query_vector=EAST)
        assert (await store.search(query_vector=EAST, query_text="", where={"id": "twice"}))[0].text == "second"

    async def test_writing_nothing_is_no_fault(self, store: VectorStore) -> None:
        """And changes nothing."""
        assert await store.upsert([]) == 0
        assert await store.list_sources() == ["policy.md", "travel.md"]

    async def test_a_vector_of_another_length_is_refused_and_nothing_is_written(self, store: VectorStore) -> None:
        """The message names both lengths."""
        for wrong in ([record("a", "a", [1.0, 0.0])], [record("a", "a", EAST), record("b", "b", [1.0])]):
            with pytest.raises(ValueError, match="3"):
                await store.upsert(wrong)
        assert await found(store, query_vector=EAST, where={"id": "a"}) == []

    @pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}], ids=["nan", "object", "set"])
    async def test_metadata_that_is_no_json_is_refused_and_nothing_is_written(self, store: VectorStore, value: Any) -> None:
        """It could not be filtered."""
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the store's own
            await store.upsert([record("good", "good", EAST), record("bad", "bad", EAST, key=value)])
        assert await found(store, where={"id": "good"}) == []

    @pytest.mark.parametrize(("name", "text"), _ODD, ids=[name for name, _ in _ODD])
    async def test_any_text_is_kept_as_it_is(self, store: VectorStore, name: str, text: str) -> None:
        """As a chunk's text, its source, its id and its metadata."""
        await store.upsert([record(text, text, EAST, text, note=text, **{text[:20]: 1})])
        (hit,) = await store.search(query_vector=EAST, query_text="", where={"note": text})
        assert (hit.text, hit.source, hit.chunk_id, hit.metadata["note"]) == (text, text, text, text)
        assert text in await store.list_sources()

    async def test_data_is_found_by_its_vector(self, store: VectorStore) -> None:
        """And has no text."""
        await store.upsert([VectorRecord(Chunk(DataBlock(b"\x89PNG", "image/png"), "d", 0, "cat.png", id="image"), list(WEST))])
        assert "image" in await found(store, query_vector=WEST)

    @pytest.mark.parametrize(
        ("criteria", "left"),
        [
            ({"ids": ["east", "nobody"]}, "north northeast west"),
            ({"document_ids": ["policy.md"]}, "northeast west"),
            ({"sources": ["travel.md", "none.md"]}, "east north west"),
            ({"where": {"tenant": "b"}}, "east north"),
            ({"sources": ["policy.md"], "where": {"year": 2024}}, "north northeast west"),
            ({"ids": ["west"], "sources": ["travel.md"]}, "east north"),
            ({"ids": []}, "east north northeast west"),
            ({"sources": [], "where": {"tenant": "a"}}, "east north northeast west"),
        ],
        ids=str,
    )
    async def test_what_the_criteria_name_is_deleted(self, store: VectorStore, criteria: dict[str, Any], left: str) -> None:
        """That and nothing else, and the number is told."""
        assert await store.delete(**criteria) == len(RECORDS) - len(left.split())
        both = [*await found(store, query_vector=[1.0, 1.0, 0.0]), *await found(store, query_vector=WEST)]
        assert set(both) == set(left.split())

    @pytest.mark.parametrize("criteria", [{}, {"where": {}}, {"where": None, "ids": None}], ids=str)
    async def test_deleting_without_a_criterion_is_refused(self, store: VectorStore, criteria: dict[str, Any]) -> None:
        """It never means everything."""
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the store's own
            await store.delete(**criteria)
        assert await found(store) == ["east", "northeast"]

    @pytest.mark.parametrize("criteria", [{"ids": "east"}, {"sources": [None]}, {"where": {"a": {"$x": 1}}}], ids=str)
    async def test_a_faulty_criterion_is_refused(self, store: VectorStore, criteria: dict[str, Any]) -> None:
        """A text is not taken for its characters."""
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the store's own
            await store.delete(**criteria)
        assert await found(store) == ["east", "northeast"]

    async def test_what_was_deleted_can_be_written_again(self, store: VectorStore) -> None:
        """As if it had never been there."""
        await store.delete(where={"tenant": {"$in": ["a", "b"]}})
        assert (await found(store), await store.list_sources()) == ([], [])
        await store.upsert(RECORDS)
        assert await found(store) == ["east", "northeast"]

    async def test_the_old_chunks_of_a_source_can_be_told_from_the_new(self, store: VectorStore) -> None:
        """By their ids, so that the new are written first and the old deleted then, and none is missing in between."""
        new = [record("new", "Refunds are paid at once.", EAST, "policy.md"), record("east", "Trains.", NORTH, "policy.md")]
        await store.upsert(new)
        assert await store.delete(sources=["policy.md"], where={"id": {"$nin": ["new", "east"]}}) == 1
        assert set(await found(store, query_vector=[1.0, 1.0, 0.0])) == {"new", "east", "northeast"}

    async def test_tasks_at_once_do_not_lose_each_others_work(self, store: VectorStore) -> None:
        """Writers and readers of one store."""
        writers = (store.upsert([record(f"{n}-{m}", "text", EAST, f"s{n}.md") for m in range(5)]) for n in range(8))
        readers = (store.search(query_vector=EAST, query_text="text", k=3) for _ in range(8))
        await asyncio.gather(*writers, *readers)
        assert len(await found(store, k=100, where={"source": {"$contains": "s"}})) == 40

    @requires("replace")
    async def test_a_source_is_replaced_in_one_step(self, store: Any) -> None:
        """What is not among the new chunks is gone, and nothing of another source."""
        new = [record("east", "Refunds are paid at once.", EAST, "policy.md"), record("extra", "More.", NORTH, "policy.md")]
        assert await store.replace(new, sources=["policy.md"]) == (2, 1)
        assert set(await found(store, query_vector=[1.0, 1.0, 0.0])) == {"east", "extra", "northeast"}

    @requires("replace")
    async def test_a_document_is_replaced_in_one_step(self, store: Any) -> None:
        """By its identifier, and by nothing for nothing."""
        assert await store.replace([], document_ids=["travel.md"]) == (0, 1)
        assert await found(store) == ["east"]

    @requires("replace")
    async def test_a_replacement_that_fails_changes_nothing(self, store: Any) -> None:
        """The old version stays whole."""
        with pytest.raises(ValueError, match="3"):
            await store.replace([record("new", "new", [1.0])], sources=["policy.md"])
        assert set(await found(store, query_vector=[1.0, 1.0, 0.0])) == {"east", "north", "northeast"}

    @requires("replace")
    async def test_who_searches_meanwhile_sees_one_version(self, store: Any) -> None:
        """The old one or the new one, never parts of both."""
        versions = [[record(f"v{v}-{n}", f"version {v}", EAST, "doc.md", version=v) for n in range(4)] for v in range(2)]
        await store.replace(versions[0], sources=["doc.md"])

        async def swap() -> None:
            for turn in range(20):
                await store.replace(versions[(turn + 1) % 2], sources=["doc.md"])

        async def look() -> list[set[Any]]:
            seen: list[set[Any]] = []
            for _ in range(40):
                hits = await store.search(query_vector=EAST, query_text="", k=20, where={"source": "doc.md"})
                seen.append({(hit.metadata["version"], len(hits)) for hit in hits})
            return seen

        _, *looks = await asyncio.gather(swap(), look(), look())
        assert {frozenset(each) for look in looks for each in look} <= {frozenset({(0, 4)}), frozenset({(1, 4)})}

    @requires("count")
    async def test_chunks_are_counted(self, store: Any) -> None:
        """All of them, or those under a filter."""
        assert (await store.count(), await store.count({"tenant": "a"}), await store.count({"tenant": "z"})) == (4, 2, 0)

    @requires("list")
    async def test_documents_are_listed_under_a_filter(self, store: Any) -> None:
        """With the number of their chunks that are under it."""
        assert [(each.document_id, each.source, each.chunk_count) for each in await store.list_documents()] == [
            ("west", "", 1),
            ("policy.md", "policy.md", 2),
            ("travel.md", "travel.md", 1),
        ]
        assert [(each.document_id, each.chunk_count) for each in await store.list_documents({"year": 2025})] == [
            ("policy.md", 1)
        ]
