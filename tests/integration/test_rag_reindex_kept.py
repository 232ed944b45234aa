"""What a corpus made anew keeps of the old one: its notes, and every source, whatever its documents are called (X19)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from rag_world import STORES, made, pages

from agentkernel_kb.embed import CallableEmbedder, HashEmbedder
from agentkernel_kb.rag import (
    Chunk,
    Document,
    InMemoryVectorStore,
    Knowledge,
    RecursiveCharacterSplitter,
    SQLiteVectorStore,
    create_knowledge,
)
from agentkernel_kb.rag.reindex import reindexed

SAME, OTHER = "Refunds take thirty days.", "Trains are booked by the travel desk."
PAIRS = {
    "two sources, one text": [Document(SAME, "a.md", id="1"), Document(SAME, "b.md", id="1")],
    "two sources, two texts": [Document(SAME, "a.md", id="1"), Document(OTHER, "b.md", id="1")],
    "a source and none": [Document(SAME, "a.md", id="1"), Document(SAME, id="1")],
}


class Numbering:
    """A splitter that calls the passages of every document alike."""

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        return [Chunk(each.text, each.id, 0, each.source, id="passage-0") for each in documents]


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def anew(knowledge: Knowledge, sources: list[Any]) -> Any:
    """Make a corpus anew and keep what is not among the sources, as `ingest --rebuild` does."""
    return asyncio.run(reindexed(knowledge.indexer, sources, metadata=None, progress=None, delete_missing=False))


@pytest.mark.parametrize("documents", PAIRS.values(), ids=PAIRS)
def test_documents_of_one_name_in_two_sources_are_two(kind: str, tmp_path: Path, documents: list[Document]):
    knowledge = made(kind, tmp_path)
    assert knowledge.sync.add(documents).documents == 2
    assert (knowledge.sync.verify().ok, knowledge.sync.refresh(documents).unchanged) == (True, 2)
    assert knowledge.sync.reindex(documents).documents == 2
    assert (knowledge.sync.verify().ok, len(knowledge.sync.search("refunds and trains", k=9))) == (True, 2)
    knowledge.sync.reindex()
    assert (knowledge.sync.verify().chunks, knowledge.sync.refresh(documents).unchanged) == (2, 2)


def test_passages_that_a_chunker_calls_alike_are_told_and_the_rest_is_indexed(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path, splitter=Numbering())
    documents = PAIRS["two sources, two texts"]
    for report in (knowledge.sync.add(documents), knowledge.sync.reindex(documents)):
        assert [(each.source, "a passage of 'a.md' has the same id" in each.reason) for each in report.failed] == [
            ("b.md", True)
        ]
        assert (knowledge.sync.verify().ok, knowledge.sync.list_documents()[0].source) == (True, "a.md")


class Marked:
    """A splitter that calls the one passage of a document by its first word."""

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        return [Chunk(each.text, each.id, 0, each.source, id=each.text.split()[0]) for each in documents]


def held(knowledge: Knowledge) -> dict[str, str]:
    """Return the text of each source."""
    return {each.source or "": each.text for each in knowledge.sync.search("lunch", k=99)}


def test_a_passage_is_not_lost_to_a_later_source_with_the_same_id(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path, splitter=Marked())
    first, later = Document("p1 is lunch in a.", "a.md"), Document("p1 is lunch in b.", "b.md")
    knowledge.sync.add(first)
    for given in (later, [later, Document("p2 is lunch in c.", "c.md")]):
        report = knowledge.sync.add(given)
        assert [(each.source, "'a.md' has the same id" in each.reason) for each in report.failed] == [("b.md", True)]
    assert held(knowledge) == {"a.md": first.text, "c.md": "p2 is lunch in c."}
    assert knowledge.sync.refresh([first, later], delete_missing=True).failed
    assert (held(knowledge), knowledge.sync.verify().ok) == ({"a.md": first.text}, True)


@pytest.mark.parametrize("others", [0, 2_000], ids=["in one batch", "in many batches"])
def test_a_source_that_cannot_be_embedded_keeps_the_passage_whose_id_another_takes(kind: str, tmp_path: Path, others: int):
    def embed(texts: list[str]) -> list[list[float]]:
        if "p2 is unreadable." in texts:
            raise ValueError
        return HashEmbedder(8)(texts)

    knowledge = made(kind, tmp_path, splitter=Marked(), embedder=CallableEmbedder(embed, model_id="picky"))
    knowledge.sync.add(Document("p1 is lunch in a.", "a.md"))
    between = [Document(f"q{number} is a page.", f"{number}.md") for number in range(others)]
    later = [Document("p2 is unreadable.", "a.md"), *between, Document("p1 is lunch in b.", "b.md")]
    assert [each.source for each in knowledge.sync.add(later).failed] == ["a.md", "b.md"]
    assert held(knowledge)["a.md"] == "p1 is lunch in a."


MOVES = {
    "renamed": ({"a.md": "p1 lunch"}, {"b.md": "p1 lunch"}),
    "moved into a file before": ({"b.md": "p1 lunch"}, {"a.md": "p1 lunch", "b.md": "p2 lunch"}),
    "moved into a file behind": ({"a.md": "p1 lunch"}, {"a.md": "p2 lunch", "b.md": "p1 lunch"}),
    "changed with each other": ({"a.md": "p1 lunch", "b.md": "p2 lunch"}, {"a.md": "p2 lunch", "b.md": "p1 lunch"}),
}


@pytest.mark.parametrize(("before", "after"), MOVES.values(), ids=MOVES)
def test_an_id_goes_with_its_passage_into_another_source(
    kind: str, tmp_path: Path, before: dict[str, str], after: dict[str, str]
):
    knowledge = made(kind, tmp_path, splitter=Marked())
    knowledge.sync.add([Document(text, source) for source, text in before.items()])
    report = knowledge.sync.refresh([Document(text, source) for source, text in after.items()], delete_missing=True)
    assert (report.failed, held(knowledge), knowledge.sync.verify().ok) == ([], after, True)


@pytest.mark.parametrize("is_same", [True, False], ids=["same chunker", "another chunker"])
def test_what_is_kept_or_cannot_be_read_keeps_its_note(kind: str, tmp_path: Path, is_same: bool):
    folder = pages(tmp_path / "docs")
    store = InMemoryVectorStore() if kind == "memory" else SQLiteVectorStore(tmp_path / "kb.db")
    before = create_knowledge("vector", store=store)
    tenant = create_knowledge("vector", store=store, where={"tenant": "a"})
    record = Document("Lunch is served at noon in the canteen.", id="agent")
    before.sync.add([folder, record])
    tenant.sync.add(Document("The tenant's own page is about lunch.", "own.md"))
    (folder / "refunds.md").write_bytes(b"\x00\x01\x02\x03" * 100)
    options: dict[str, Any] = {} if is_same else {"splitter": RecursiveCharacterSplitter(20, 0)}
    knowledge = create_knowledge("vector", store=store, **options)
    assert [Path(each.source).name for each in anew(knowledge, [folder]).failed] == ["refunds.md"]
    assert (knowledge.sync.verify().ok, knowledge.sync.verify().sources) == (True, 5)
    pages(folder)
    assert knowledge.sync.refresh([folder, record]).unchanged == (4 if is_same else 2)  # What was cut otherwise is cut anew.
    assert knowledge.sync.verify().ok
