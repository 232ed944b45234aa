"""Knowledge from its door: staged sources, indexing, keeping in step with sources, and what is refused (P1, P2, P7, X19)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from rag_world import PAGES, STORES, CountingEmbedder, made, pages

from agentkernel_kb.embed import CallableEmbedder, HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeConnectionError, KnowledgeStateError
from agentkernel_kb.rag import Document, IndexReport, Knowledge, RecursiveCharacterSplitter, create_knowledge


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def found(knowledge: Knowledge, query: str, **options: Any) -> list[str | None]:
    return [hit.text for hit in knowledge.sync.search(query, **options)]


def sources(knowledge: Knowledge) -> list[str]:
    return [Path(each.source).name for each in knowledge.sync.list_documents()]


def test_construction_reads_and_writes_nothing(tmp_path: Path):
    create_knowledge("sqlite", path=tmp_path / "kb.db", sources=[tmp_path / "not there", "nowhere/"])
    assert list(tmp_path.iterdir()) == []


def test_staged_sources_are_indexed_before_the_first_search(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path, sources=[pages(tmp_path / "docs"), "Security incidents are reported at once."])
    assert found(knowledge, "how long do cats sleep", k=1) == [PAGES["sub/cats.md"].strip()]
    assert found(knowledge, "security incidents", k=1) == ["Security incidents are reported at once."]


def test_ready_reports_once(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path, sources=[pages(tmp_path / "docs")])
    report = knowledge.sync.ready()
    assert (report.documents, report.chunks, report.added, report.failed) == (3, 3, 3, [])
    assert knowledge.sync.ready() == IndexReport()


async def test_tasks_at_once_index_staged_sources_once(kind: str, tmp_path: Path):
    embedder = CountingEmbedder()
    knowledge = made(kind, tmp_path, sources=[pages(tmp_path / "docs")], embedder=embedder)
    answers = await asyncio.gather(*(knowledge.search("refunds", k=1) for _ in range(5)))
    assert {hits[0].text for hits in answers} == {PAGES["refunds.md"].strip()}
    assert len(embedder.embedded) == 3


def test_threads_at_once_index_staged_sources_once(kind: str, tmp_path: Path):
    embedder = CountingEmbedder()
    knowledge = made(kind, tmp_path, sources=[pages(tmp_path / "docs")], embedder=embedder)
    answers: list[list[str | None]] = []
    threads = [threading.Thread(target=lambda: answers.append(found(knowledge, "refunds", k=1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [[PAGES["refunds.md"].strip()]] * 4
    assert len(embedder.embedded) == 3


async def test_what_was_cut_off_while_it_was_indexed_is_indexed_later(kind: str, tmp_path: Path):
    gate = asyncio.Event()

    async def slow(texts: list[str]) -> list[list[float]]:
        await gate.wait()
        return HashEmbedder(8)(texts)

    embedder = CallableEmbedder(slow, model_id="slow")
    knowledge = made(kind, tmp_path, sources=["Refunds take thirty days."], embedder=embedder)
    first = asyncio.create_task(knowledge.ready())
    await asyncio.sleep(0.05)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.set()
    assert (await knowledge.ready()).added == 1


def test_unchanged_sources_are_neither_read_nor_embedded_again(kind: str, tmp_path: Path):
    folder, embedder = pages(tmp_path / "docs"), CountingEmbedder()
    knowledge = made(kind, tmp_path, embedder=embedder)
    texts = ["One inline text.", Document("A document.", "doc.md"), Document("Without a source.")]
    assert knowledge.sync.add([folder, *texts]).unchanged == 0
    embedder.embedded.clear()
    report = knowledge.sync.refresh([folder, *texts], delete_missing=True)
    assert (report.unchanged, report.documents, report.deleted, embedder.embedded) == (6, 0, 0, [])


def test_what_did_not_change_is_known_to_the_next_process(tmp_path: Path):
    folder = pages(tmp_path / "docs")
    made("sqlite", tmp_path).sync.add(folder)
    embedder = CountingEmbedder(384)
    report = made("sqlite", tmp_path, embedder=embedder).sync.refresh(folder)
    assert (report.unchanged, embedder.embedded) == (3, [])


def test_a_touched_file_is_read_and_not_embedded_again(kind: str, tmp_path: Path):
    folder, embedder = pages(tmp_path / "docs"), CountingEmbedder()
    knowledge = made(kind, tmp_path, embedder=embedder)
    knowledge.sync.add(folder)
    embedder.embedded.clear()
    pages(folder)
    assert (knowledge.sync.refresh(folder).unchanged, embedder.embedded) == (3, [])


def test_a_changed_source_replaces_what_it_was(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    knowledge = made(kind, tmp_path)
    knowledge.sync.add(folder)
    (folder / "refunds.md").write_text("Refunds are paid at once, whatever the sum.\n")
    report = knowledge.sync.refresh(folder)
    assert (report.documents, report.added, report.deleted, report.unchanged) == (1, 1, 1, 2)
    assert found(knowledge, "refunds paid") == ["Refunds are paid at once, whatever the sum."]


def test_an_emptied_source_has_no_passage_left(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    knowledge = made(kind, tmp_path)
    knowledge.sync.add(folder)
    (folder / "refunds.md").write_text("")
    assert knowledge.sync.refresh(folder).deleted == 1
    assert "refunds.md" not in sources(knowledge)


def test_omitted_sources_are_deleted_where_that_is_wanted(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    knowledge = made(kind, tmp_path)
    knowledge.sync.add([folder, "An inline text.", Document("Other.", "other.md")])
    (folder / "refunds.md").unlink()
    assert knowledge.sync.refresh(folder).deleted == 0
    assert knowledge.sync.sync_sources(folder, delete_missing=True).deleted == 3
    assert sources(knowledge) == ["cats.md", "travel.md"]


def test_a_source_that_cannot_be_read_is_not_deleted_as_missing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pages(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    knowledge = made(kind, tmp_path)
    knowledge.sync.add("./docs/")
    (tmp_path / "docs").rename(tmp_path / "away")
    report = knowledge.sync.refresh("./docs/", delete_missing=True)
    assert ([each.source for each in report.failed], report.deleted, len(sources(knowledge))) == (["./docs/"], 0, 3)


def test_what_was_deleted_in_any_way_is_indexed_again(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path)
    given = [Document("About cats.", "cats.md", {"topic": "cats"}), "About dogs."]
    knowledge.sync.add(given)
    ids = [hit.chunk_id or "" for hit in knowledge.sync.search("dogs", k=1)]
    each: list[dict[str, Any]] = [{"where": {"topic": "cats"}}, {"ids": ids}, {"sources": ["cats.md"]}]
    for criteria in each:
        assert knowledge.sync.delete(**criteria) == 1
        assert knowledge.sync.add(given).added == 1
    assert len(knowledge.sync.list_documents()) == 2


def test_one_bad_source_is_reported_and_the_others_are_indexed(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    report = made(kind, tmp_path).sync.add([tmp_path / "missing.md", 7, folder])
    assert [each.source for each in report.failed] == [(tmp_path / "missing.md").as_posix(), "7"]
    assert (report.documents, report.skipped) == (3, 0)


def test_skipped_is_not_failed_and_neither_is_indexed(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    report = made(kind, tmp_path).sync.add(folder)
    assert (report.skipped, report.failed, report.documents, len(report.sources)) == (1, [], 3, 3)
    assert [(Path(each.source).name, each.reason) for each in report.left_out] == [
        ("photo.jpg", "is of a kind that no parser reads")
    ]


def test_a_search_that_finds_nothing_says_so_where_no_staged_source_could_be_indexed(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path, name="handbook", sources=["no-such-folder/"])
    for _ in range(2):
        with pytest.raises(KnowledgeBackendError, match=r"None of the sources of 'handbook' .*no-such-folder"):
            knowledge.sync.search("refunds")
    knowledge.sync.add_text("Refunds are paid within thirty days.")
    assert (len(knowledge.sync.search("refunds")), knowledge.sync.search("cats", where={"a": 1})) == (1, [])


def test_a_corpus_that_is_there_is_searched_though_its_sources_are_gone(tmp_path: Path):
    folder = pages(tmp_path / "docs")
    made("sqlite", tmp_path, sources=[folder]).sync.ready()
    again = made("sqlite", tmp_path, sources=[tmp_path / "gone"])
    assert again.sync.search("refunds")[0].text == "Refunds are paid within thirty days."


def test_a_text_that_cannot_be_embedded_costs_only_its_own_source(kind: str, tmp_path: Path):
    def choosy(texts: list[str]) -> list[list[float]]:
        if any("poison" in text for text in texts):
            raise RuntimeError("password=hunter2")
        return HashEmbedder(16)(texts)

    embedder = CallableEmbedder(choosy, model_id="choosy")
    knowledge = made(kind, tmp_path, embedder=embedder)
    report = knowledge.sync.add([Document("poison", "bad.md"), Document("fine", "good.md"), Document("well", "well.md")])
    assert [(each.source, "hunter2" in each.reason) for each in report.failed] == [("bad.md", False)]
    assert (report.documents, sources(knowledge)) == (2, ["good.md", "well.md"])


def test_a_model_that_is_not_there_is_not_asked_for_each_source(tmp_path: Path):
    calls: list[int] = []

    def gone(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        raise KnowledgeConnectionError("The model does not answer.")

    knowledge = made("memory", tmp_path, embedder=CallableEmbedder(gone, model_id="gone"))
    report = knowledge.sync.add([Document(f"text {n}", f"{n}.md") for n in range(50)])
    assert (len(report.failed), calls) == (50, [50])
    assert {each.reason for each in report.failed} == {"The model does not answer."}


def test_documents_of_one_source_are_one_source(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path)
    first = [Document("Page one.", "book.pdf", {"page": 1}), Document("Page two.", "book.pdf", {"page": 2})]
    knowledge.sync.upsert([first[0], *(Document(f"between {n}", f"{n}.md") for n in range(600)), first[1]])
    assert set(found(knowledge, "page", where={"source": "book.pdf"})) == {"Page one.", "Page two."}
    assert knowledge.sync.upsert(Document("New page.", "book.pdf")).deleted == 2


async def test_pages_of_a_loader_of_ones_own_are_replaced_together(kind: str, tmp_path: Path):
    class Book:
        def __init__(self) -> None:
            self.pages = ["Page one.", "Page two."]

        async def load(self, source: Any, *, metadata: Any = None) -> list[Document]:
            return [Document(text, source, dict(metadata or {})) for text in self.pages]

    loader = Book()
    knowledge = made(kind, tmp_path, loader=loader)
    assert (await knowledge.add("book", metadata={"shelf": 3})).documents == 2
    assert (await knowledge.add("book", metadata={"shelf": 3})).unchanged == 1
    loader.pages.pop()
    assert (await knowledge.add("book", metadata={"shelf": 3})).deleted == 1
    assert [hit.metadata["shelf"] for hit in await knowledge.search("page")] == [3]


def test_a_document_with_an_id_of_its_own_is_replaced_by_it(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path)
    knowledge.sync.upsert(Document("The old text.", id="policy"))
    assert knowledge.sync.upsert(Document("The new text.", id="policy")).deleted == 1
    assert found(knowledge, "text") == ["The new text."]


def test_add_text_indexes_a_text_with_its_metadata(kind: str, tmp_path: Path):
    knowledge = made(kind, tmp_path)
    knowledge.sync.add_text("Premium support never sleeps.", source="tiers.md", metadata={"tier": "premium"})
    (hit,) = knowledge.sync.search("premium support")
    assert (hit.source, hit.metadata["tier"], hit.rank) == ("tiers.md", "premium", 1)


def test_progress_is_told_while_it_goes_on(tmp_path: Path):
    told: list[int] = []
    knowledge = made("memory", tmp_path, progress=lambda report: told.append(report.chunks))
    knowledge.sync.add([Document(f"text {n}", f"{n}.md") for n in range(600)])
    assert len(told) >= 2
    assert (told, told[-1]) == (sorted(told), 600)


@pytest.mark.parametrize("other", [{"embedder": HashEmbedder(99)}, {"splitter": RecursiveCharacterSplitter(chunk_size=777)}])
def test_another_model_or_chunker_is_refused_and_both_sides_are_named(tmp_path: Path, other: dict[str, Any]):
    made("sqlite", tmp_path).sync.add_text("Refunds take thirty days.", source="a")
    with pytest.raises(AKConfigError, match=r"made with (.*hash-384.*)this is .*(hash-99|777)"):
        made("sqlite", tmp_path, **other).sync.add_text("More.", source="b")


def test_searching_with_another_model_is_refused_and_with_another_chunker_is_not(tmp_path: Path):
    made("sqlite", tmp_path).sync.add_text("Refunds take thirty days.", source="a")
    with pytest.raises(AKConfigError, match=r"hash-384.*hash-99"):
        made("sqlite", tmp_path, embedder=HashEmbedder(99)).sync.search("refunds")
    assert found(made("sqlite", tmp_path, splitter=RecursiveCharacterSplitter(chunk_size=777)), "refunds")


def test_a_model_without_a_name_is_known_by_what_it_makes_of_a_text(tmp_path: Path):
    made("sqlite", tmp_path, embedder=CallableEmbedder(HashEmbedder(16))).sync.add_text("Refunds.", source="a")
    assert found(made("sqlite", tmp_path, embedder=CallableEmbedder(HashEmbedder(16))), "refunds")
    backwards = CallableEmbedder(lambda texts: [vector[::-1] for vector in HashEmbedder(16)(texts)])
    with pytest.raises(AKConfigError, match="made with"):
        made("sqlite", tmp_path, embedder=backwards).sync.search("refunds")


async def test_blocking_calls_are_refused_in_a_running_loop(tmp_path: Path):
    knowledge = made("memory", tmp_path)
    for call in (knowledge.sync.ready, lambda: knowledge.sync.search("x"), lambda: knowledge.sync.add("x")):
        with pytest.raises(KnowledgeStateError, match="await"):
            call()


async def test_a_closed_file_is_not_used_again(tmp_path: Path):
    async with made("sqlite", tmp_path) as knowledge:
        await knowledge.add_text("Refunds.", source="a")
    await knowledge.close()
    with pytest.raises(KnowledgeStateError):
        await knowledge.search("refunds")
    with pytest.raises(KnowledgeStateError):
        await knowledge.add_text("More.", source="b")
