"""verify(): what is noted compared with what there is, and mended (X19)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rag_world import STORES, CountingEmbedder, made

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import UnsupportedKnowledgeOperationError
from agentkernel_kb.rag import Chunk, Difference, Document, Knowledge, VectorRecord, VerifyReport, create_knowledge

LONG = "\n\n".join(f"Paragraph {n} says that trains are booked by desk {n}." for n in range(60))
GIVEN = [Document(LONG, "long.md"), Document("Refunds take thirty days.", "refunds.md"), Document("No source.", id="note")]


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def knowledge(kind: str, tmp_path: Path) -> Knowledge:
    """Three sources, one of several passages, in a scope: what others delete does not take its notes."""
    held = made(kind, tmp_path, where={"tenant": "a"})
    assert held.sync.add(GIVEN).chunks == 6
    return held


def store_of(knowledge: Knowledge) -> Any:
    return knowledge.store


def test_a_corpus_that_is_as_it_was_indexed_is_well(knowledge: Knowledge):
    report = knowledge.sync.verify()
    assert (report.ok, report.sources, report.chunks) == (True, 3, 6)
    assert report == VerifyReport(sources=3, chunks=6)


async def test_chunks_that_are_gone_are_told_and_the_next_refresh_brings_them_back(knowledge: Knowledge):
    first, *_ = await knowledge.passages(document_ids=[GIVEN[0].id])
    await store_of(knowledge).delete(ids=[first.id])
    await store_of(knowledge).delete(sources=["refunds.md"])
    report = await knowledge.verify()
    assert (report.ok, report.missing, report.differing) == (False, ["refunds.md"], [Difference("long.md", 4, 3)])
    assert (await knowledge.refresh(GIVEN)).unchanged == 1
    assert await knowledge.verify() == VerifyReport(sources=3, chunks=6)


async def test_what_was_deleted_by_the_corpus_itself_is_not_missing(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path)
    await knowledge.add(GIVEN)
    await knowledge.delete(sources=["refunds.md"])
    assert await knowledge.verify() == VerifyReport(sources=2, chunks=5)


async def test_repair_takes_back_the_notes_that_are_not_true_and_nothing_else(knowledge: Knowledge):
    await store_of(knowledge).delete(sources=["refunds.md"])
    report = await knowledge.verify(repair=True)
    assert (report.missing, report.repaired) == (["refunds.md"], True)
    assert await knowledge.verify() == VerifyReport(sources=2, chunks=5)
    assert (await knowledge.refresh(GIVEN)).added == 1


async def test_chunks_without_a_note_are_told(knowledge: Knowledge):
    chunk = Chunk("Written by somebody else.", "theirs", 0, "theirs.md", {"tenant": "a"})
    await store_of(knowledge).upsert([VectorRecord(chunk, HashEmbedder()([chunk.text])[0])])
    assert ((await knowledge.verify()).unknown, (await knowledge.verify(repair=True)).ok) == (["theirs.md"], False)
    await knowledge.refresh([*GIVEN, Document("Ours now.", "theirs.md")], delete_missing=True)
    assert (await knowledge.verify()).ok


def test_another_model_is_told_with_both_sides_and_the_call_that_mends_it(knowledge: Knowledge):
    other = create_knowledge("vector", store=knowledge.store, embedder=HashEmbedder(99), where={"tenant": "a"})
    report = other.sync.verify()
    assert all(part in report.fingerprint for part in ("hash-384", "hash-99", "knowledge.reindex(sources)"))
    assert (report.ok, report.missing, report.unknown, report.differing) == (False, [], [], [])


def test_only_the_scope_is_looked_at(kind: str, tmp_path: Path):
    first = made(kind, tmp_path, where={"tenant": "a"})
    other = create_knowledge("vector", store=first.store, where={"tenant": "b"})
    first.sync.add(GIVEN)
    other.sync.add(GIVEN[1:])
    assert (first.sync.verify().chunks, other.sync.verify().chunks) == (6, 2)
    assert other.sync.delete(sources=["refunds.md"]) == 1
    assert (first.sync.verify().ok, other.sync.verify().chunks) == (True, 1)


def test_what_a_scope_deletes_is_not_missing_there(knowledge: Knowledge):
    knowledge.sync.delete(sources=["refunds.md"])
    assert (knowledge.sync.verify().ok, knowledge.sync.verify().sources) == (True, 2)
    assert knowledge.sync.refresh(GIVEN[:1], delete_missing=True).deleted == 1
    assert (knowledge.sync.verify().ok, knowledge.sync.verify().sources) == (True, 1)


def tenants(kind: str, folder: Path) -> tuple[Knowledge, Knowledge, Knowledge]:
    """Return a corpus as a whole, and two tenants' parts of it, which have a source of one name."""
    whole = made(kind, folder)
    parts = [create_knowledge("vector", store=whole.store, where={"org": "x", "tenant": tenant}) for tenant in "ab"]
    whole.sync.add(GIVEN[1])
    parts[0].sync.add(GIVEN)
    parts[1].sync.add([Document(LONG, "other.md"), *GIVEN[1:]])
    return whole, parts[0], parts[1]


def test_the_whole_of_a_corpus_is_well_where_each_tenant_is(kind: str, tmp_path: Path):
    whole, *parts = tenants(kind, tmp_path)
    org = create_knowledge("vector", store=whole.store, where={"org": "x"})
    assert whole.sync.verify() == VerifyReport(sources=4, chunks=13)
    assert org.sync.verify() == VerifyReport(sources=4, chunks=12)
    assert [each.sync.verify() for each in parts] == [VerifyReport(sources=3, chunks=6)] * 2
    assert whole.sync.refresh(GIVEN[1]).unchanged == 1


async def test_the_whole_of_a_corpus_has_the_faults_of_all_its_tenants(kind: str, tmp_path: Path):
    whole, first, other = await asyncio.to_thread(tenants, kind, tmp_path)
    (chunk,) = await other.passages(document_ids=[GIVEN[1].id])
    theirs = Chunk("Written by somebody else.", "theirs", 0, "theirs.md", {"tenant": "c"})
    await store_of(whole).upsert([VectorRecord(theirs, HashEmbedder()([theirs.text])[0])])
    await store_of(whole).delete(ids=[chunk.id], scope="another program")
    await store_of(whole).delete(sources=["long.md"], scope="another program")
    report = await whole.verify()
    assert (report.unknown, report.missing, report.differing) == (
        ["theirs.md"], ["long.md"], [Difference("refunds.md", 3, 2)],
    )  # fmt: skip
    await whole.verify(repair=True)
    assert [(await each.verify()).missing for each in (first, other)] == [[], []]


def test_what_the_application_deletes_of_its_tenants_is_missing_nowhere(kind: str, tmp_path: Path):
    whole, first, other = tenants(kind, tmp_path)
    assert whole.sync.delete(where={"tenant": "b"}) == 6
    assert (whole.sync.verify(), other.sync.verify()) == (VerifyReport(sources=3, chunks=7), VerifyReport())
    assert first.sync.refresh(GIVEN).unchanged == 3
    assert whole.sync.upsert(Document("Refunds take sixty days.", "refunds.md")).deleted == 2
    assert (whole.sync.verify(), first.sync.verify()) == (VerifyReport(sources=3, chunks=6), VerifyReport(sources=2, chunks=5))


def test_a_damaged_file_is_told(tmp_path: Path):
    knowledge = made("sqlite", tmp_path)
    knowledge.sync.add(GIVEN)
    connection = sqlite3.connect(tmp_path / "kb.db")
    connection.execute("UPDATE chunks SET vector = x'00000000' WHERE source = 'refunds.md'")
    connection.commit()
    connection.close()
    assert knowledge.sync.verify().faults == ["Vectors of different lengths: [1, 384]."]


def test_a_report_can_be_written_down():
    report = VerifyReport(3, 5, ["a"], ["b"], [Difference("c", 2, 1)], "other", 4, ["torn"], True)
    assert VerifyReport.from_dict(report.to_dict()) == report


def test_what_is_not_managed_here_is_not_verified():
    theirs = Knowledge.from_callable(lambda query, **_: [], name="theirs")
    calls: list[Callable[[], Any]] = [theirs.sync.verify, theirs.sync.reindex]
    for call in calls:
        with pytest.raises(UnsupportedKnowledgeOperationError, match=r"verify\(\)|reindex\(\)"):
            call()


def test_one_changed_paragraph_costs_its_own_chunk(kind: str, tmp_path: Path):
    embedder = CountingEmbedder()
    knowledge = made(kind, tmp_path, embedder=embedder)
    assert knowledge.sync.add(GIVEN).chunks == 6
    embedder.embedded.clear()
    changed = LONG.replace("Paragraph 25 says", "Paragraph 25 said")
    report = knowledge.sync.refresh([Document(changed, "long.md"), *GIVEN[1:]], delete_missing=True)
    assert (report.documents, report.chunks, report.unchanged) == (1, 4, 2)
    assert [("Paragraph 25 said" in text) for text in embedder.embedded] == [True]
    assert knowledge.sync.verify().ok
    (hit, *_) = knowledge.sync.search("Paragraph 55 says that trains are booked by desk 55", k=1)
    assert "desk 55" in hit.text
