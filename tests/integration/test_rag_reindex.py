"""A corpus made anew: beside the one that is searched, whole or not at all, with as little embedding as can be (X19)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rag_world import STORES, CountingEmbedder, made, pages

from agentkernel_kb.embed import CallableEmbedder, HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeStateError
from agentkernel_kb.rag import (
    Document,
    InMemoryVectorStore,
    Knowledge,
    RecursiveCharacterSplitter,
    SQLiteVectorStore,
    VectorStore,
    create_knowledge,
)
from agentkernel_kb.rag.index.analysis import Analysis

OLD = [Document(f"Rule {n} of the old book.", f"{n}.md", {"version": 0}) for n in range(12)]
NEW = [Document(f"Rule {n} of the new book.", f"{n}.md", {"version": 1}) for n in range(2, 15)]


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


class Stopped(BaseException):
    """What ends a run at once. An interrupt would leave the event loop where it is, with tasks that are told of it later."""


def shared(kind: str, folder: Path) -> VectorStore:
    """Return a store that several corpora of one process can be opened on."""
    return InMemoryVectorStore() if kind == "memory" else SQLiteVectorStore(folder / "kb.db")


def on(store: VectorStore, **options: Any) -> Knowledge:
    return create_knowledge("vector", store=store, **options)


def held(knowledge: Knowledge) -> list[tuple[str, str]]:
    async def read() -> list[tuple[str, str]]:
        listed = await knowledge.list_documents()
        chunks = await knowledge.passages(document_ids=[each.document_id for each in listed])
        return sorted((chunk.source or "", chunk.text) for chunk in chunks)

    return asyncio.run(read())


def texts(documents: list[Document]) -> list[tuple[str, str]]:
    return sorted((each.source or "", each.text) for each in documents)


def test_another_model_is_switched_to_by_the_call_that_the_error_names(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)
    other = on(store, embedder=HashEmbedder(99))
    with pytest.raises(AKConfigError, match=r"hash-384.*hash-99.*knowledge\.reindex\(sources\)"):
        other.sync.search("rule")
    assert other.sync.reindex(OLD).documents == 12
    assert len(other.sync.search("rule", k=20)) == 12
    assert (held(other), other.sync.verify().ok) == (texts(OLD), True)
    assert other.sync.refresh(OLD, delete_missing=True).unchanged == 12


def test_another_chunker_is_switched_to_and_the_sources_that_are_left_out_are_gone(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)
    report = on(store, splitter=RecursiveCharacterSplitter(20, 0)).sync.reindex(NEW)
    assert (report.documents, report.chunks) == (13, 26)
    assert {source for source, _ in held(on(store))} == {each.source for each in NEW}


def test_passages_get_new_vectors_without_their_sources(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add([*OLD, "An inline text."])
    embedder = CountingEmbedder(99)
    other = on(store, embedder=embedder)
    report = other.sync.reindex()
    assert (report.documents, report.chunks, len(embedder.embedded)) == (13, 13, 13)
    assert other.sync.refresh([*OLD, "An inline text."], delete_missing=True).unchanged == 13


def test_without_sources_another_chunker_is_refused_with_both_sides(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)
    with pytest.raises(AKConfigError, match=r"recursive-1000.*recursive-20-0.*have to be given"):
        on(store, splitter=RecursiveCharacterSplitter(20, 0)).sync.reindex()
    assert held(on(store)) == texts(OLD)


def test_staged_sources_are_what_a_corpus_is_made_of(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)
    other = on(store, embedder=HashEmbedder(99), sources=NEW)
    assert other.sync.reindex().documents == 13
    assert other.sync.ready().documents == 0
    assert held(other) == texts(NEW)


def test_searches_see_the_old_corpus_whole_until_the_new_one_is(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    reader = on(store)
    reader.sync.add(OLD)
    seen: list[set[int]] = []

    def look(texts: list[str]) -> list[list[float]]:
        seen.append({hit.metadata["version"] for hit in reader.sync.search("rule of the book", k=50)})
        return HashEmbedder()(texts)

    splitter = RecursiveCharacterSplitter(500, 0)
    on(store, embedder=CallableEmbedder(look, model_id="hash-384-v2"), splitter=splitter).sync.reindex(NEW)
    assert seen == [{0}]
    assert {hit.metadata["version"] for hit in reader.sync.search("rule of the book", k=50)} == {1}


def test_a_corpus_that_cannot_be_made_leaves_the_old_one(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)

    def broken(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("password=hunter2")

    other = on(store, embedder=CallableEmbedder(broken, model_id="broken"))
    with pytest.raises(KnowledgeBackendError) as raised:
        other.sync.reindex(NEW)
    assert "hunter2" not in str(raised.value)
    assert (held(on(store)), len(on(store).sync.search("rule", k=20))) == (texts(OLD), 12)


def test_what_was_made_before_a_failure_is_not_made_again(tmp_path: Path):
    made("sqlite", tmp_path).sync.add(OLD)
    given = [Document(f"Rule {n}.", f"{n}.md") for n in range(1_200)]
    calls: list[int] = []

    def choosy(texts: list[str]) -> list[list[float]]:
        if len(calls) in (4, 5, 6):
            calls.append(0)
            raise RuntimeError
        calls.append(len(texts))
        return HashEmbedder(16)(texts)

    def reindex() -> Any:
        embedder = CallableEmbedder(choosy, model_id="choosy", batch_size=100, concurrency=1)
        return made("sqlite", tmp_path, embedder=embedder, progress=stop).sync.reindex(given)

    def stop(report: Any) -> None:
        if report.chunks >= 256 and not stopped:
            stopped.append(report.chunks)
            raise Stopped

    stopped: list[int] = []
    with pytest.raises(Stopped):
        reindex()
    before = made("sqlite", tmp_path)
    assert before.sync.verify().unfinished == stopped[0]
    assert held(before) == texts(OLD)
    report = reindex()
    assert (report.unchanged, report.documents) == (stopped[0], 1_200 - stopped[0])
    assert made("sqlite", tmp_path).sync.verify().unfinished == 0


def test_metadata_that_changed_after_a_reindex_was_cut_off_are_those_of_the_new_corpus(tmp_path: Path):
    knowledge = made("sqlite", tmp_path)
    knowledge.sync.add(OLD)

    def stop(report: Any) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        made("sqlite", tmp_path, progress=stop).sync.reindex()
    assert knowledge.sync.verify().unfinished == 12
    knowledge.sync.upsert([Document(each.text, each.source, {"version": 7}) for each in OLD])
    knowledge.sync.reindex()
    assert {hit.metadata["version"] for hit in knowledge.sync.search("rule of the book", k=50)} == {7}


def test_documents_of_one_source_that_say_the_same_are_one_and_the_corpus_is_whole(kind: str, tmp_path: Path):
    twice = [Document("A row.", "rows.csv"), Document("Another row.", "rows.csv"), Document("A row.", "rows.csv")]
    knowledge = on(shared(kind, tmp_path))
    assert knowledge.sync.add(twice).chunks == 2
    assert (knowledge.sync.verify().ok, knowledge.sync.refresh(twice).unchanged) == (True, 1)
    assert knowledge.sync.reindex(twice).chunks == 2


def test_what_was_begun_under_another_model_is_thrown_away(tmp_path: Path):
    made("sqlite", tmp_path).sync.add(OLD)

    def stop(report: Any) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        made("sqlite", tmp_path, embedder=HashEmbedder(50), progress=stop).sync.reindex(OLD)
    assert made("sqlite", tmp_path, embedder=HashEmbedder(60)).sync.reindex(NEW).unchanged == 0
    assert held(made("sqlite", tmp_path)) == texts(NEW)
    assert namespaces(tmp_path) == ["knowledge"]


def namespaces(folder: Path) -> list[str]:
    connection = sqlite3.connect(folder / "kb.db")
    try:
        assert connection.execute("SELECT count(DISTINCT namespace) FROM chunks").fetchone() == (1,)
        return [name for (name,) in connection.execute("SELECT name FROM namespaces")]
    finally:
        connection.close()


def test_the_old_corpus_is_deleted_from_the_file(tmp_path: Path):
    knowledge = made("sqlite", tmp_path)
    knowledge.sync.add(OLD)
    knowledge.sync.reindex(NEW)
    assert (namespaces(tmp_path), held(knowledge)) == (["knowledge"], texts(NEW))


STUCK = """CREATE TRIGGER stuck BEFORE DELETE ON chunks
WHEN (SELECT name <> 'knowledge' FROM namespaces WHERE number = OLD.namespace) BEGIN SELECT raise(ABORT, 'no'); END"""


def test_a_switch_that_is_done_is_no_failure_where_the_old_corpus_cannot_be_deleted_yet(tmp_path: Path):
    knowledge = made("sqlite", tmp_path)
    knowledge.sync.add(OLD)
    with closing(sqlite3.connect(tmp_path / "kb.db")) as connection:
        connection.execute(STUCK)
        assert knowledge.sync.reindex(NEW).documents == 13
        assert held(made("sqlite", tmp_path)) == texts(NEW)
        connection.execute("DROP TRIGGER stuck")
    assert held(made("sqlite", tmp_path)) == texts(NEW)
    assert namespaces(tmp_path) == ["knowledge"]


def test_what_cannot_be_read_stays_as_it_was(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    knowledge = made(kind, tmp_path)
    knowledge.sync.add(folder)
    (folder / "refunds.md").write_bytes(b"\x00\x01\x02\x03" * 100)
    (folder / "travel.md").unlink()
    report = knowledge.sync.reindex(folder)
    assert [Path(each.source).name for each in report.failed] == ["refunds.md"]
    assert [Path(source).name for source, _ in held(knowledge)] == ["refunds.md", "cats.md"]
    pages(folder)
    assert (knowledge.sync.refresh(folder).unchanged, len(held(knowledge))) == (2, 3)


def test_a_folder_that_is_away_loses_nothing(kind: str, tmp_path: Path):
    folder = pages(tmp_path / "docs")
    knowledge = made(kind, tmp_path)
    knowledge.sync.add(folder)
    folder.rename(tmp_path / "away")
    assert len(knowledge.sync.reindex(folder).failed) == 1
    assert len(held(knowledge)) == 3


def test_other_scopes_keep_their_passages_and_get_new_vectors(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    alice, bob = (on(store, where={"tenant": name}) for name in ("alice", "bob"))
    for each in (alice, bob):
        each.sync.add([Document("The same words.", "same.md"), Document("Other words.", "other.md")])
    anew = on(store, where={"tenant": "alice"}, embedder=HashEmbedder(99))
    report = anew.sync.reindex([Document("The same words.", "same.md")])
    assert (report.documents, report.chunks, report.sources) == (1, 1, ["same.md"])
    assert held(anew) == [("same.md", "The same words.")]
    theirs = on(store, where={"tenant": "bob"}, embedder=HashEmbedder(99))
    assert (len(theirs.sync.search("words")), len(held(theirs)), theirs.sync.verify().ok) == (2, 2, True)
    assert theirs.sync.refresh([Document("The same words.", "same.md"), Document("Other words.", "other.md")]).unchanged == 2


def test_what_another_scope_writes_meanwhile_is_not_lost(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    alice, bob = (on(store, where={"tenant": name}) for name in ("alice", "bob"))
    alice.sync.add(OLD)
    bob.sync.add([Document("The first.", "first.md"), Document("The second.", "second.md")])
    turns = [
        lambda: bob.sync.add_text("The third.", source="third.md"),
        lambda: bob.sync.add_text("The second, changed.", source="second.md"),
        lambda: bob.sync.delete(sources=["first.md"]),
    ]

    def meanwhile(texts: list[str]) -> list[list[float]]:
        if turns:
            turns.pop()()
        return HashEmbedder(384)(texts)

    embedder = CallableEmbedder(meanwhile, model_id="another", batch_size=1, concurrency=1)
    on(store, where={"tenant": "alice"}, embedder=embedder).sync.reindex(OLD[:1])
    assert held(on(store, where={"tenant": "bob"})) == [("second.md", "The second, changed."), ("third.md", "The third.")]


def test_what_is_written_for_the_old_corpus_is_refused_once_there_is_a_new_one(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)
    other = on(store, embedder=HashEmbedder(99))

    def slow(texts: list[str]) -> list[list[float]]:
        if not held_up:
            held_up.append(other.sync.reindex(OLD).documents)
        return HashEmbedder(384)(texts)

    held_up: list[int] = []
    old = on(store, embedder=CallableEmbedder(slow, model_id="hash-384-v2"))
    with pytest.raises(KnowledgeStateError, match="anew"):
        old.sync.add_text("More.", source="more.md")
    assert (held_up, held(other)) == ([12], texts(OLD))


def test_a_run_for_the_old_corpus_is_refused_whatever_else_is_asked_of_the_same_object_meanwhile(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store).sync.add(OLD)
    other = on(store, embedder=CallableEmbedder(HashEmbedder(384), model_id="another"))

    def slow(texts: list[str]) -> list[list[float]]:
        other.sync.reindex(OLD)
        with pytest.raises(AKConfigError, match="another"):
            old.sync.add_text("Refused.", source="refused.md")
        return HashEmbedder(384)(texts)

    old = on(store, embedder=CallableEmbedder(slow, model_id="hash-384-v2"))
    with pytest.raises(KnowledgeStateError, match="anew"):
        old.sync.add_text("More.", source="more.md")
    assert held(other) == texts(OLD)


def test_who_searches_on_with_the_old_model_is_told(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    reader = on(store, embedder=CallableEmbedder(HashEmbedder(64), model_id="old"))
    reader.sync.add(OLD)
    assert reader.sync.search("rule")
    on(store, embedder=CallableEmbedder(HashEmbedder(64), model_id="new")).sync.reindex(OLD)
    with pytest.raises(AKConfigError, match=r"model old.*|model new.*model old"):
        reader.sync.search("rule")


def test_another_process_sees_the_new_corpus(tmp_path: Path):
    reader = made("sqlite", tmp_path)
    made("sqlite", tmp_path).sync.add(OLD)
    assert held(reader) == texts(OLD)
    made("sqlite", tmp_path, splitter=RecursiveCharacterSplitter(500, 0)).sync.reindex(NEW)
    assert held(reader) == texts(NEW)
    assert len(reader.sync.search("rule", k=50)) == 13


def test_vectors_of_the_same_model_are_used_again(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    on(store, embedder=CountingEmbedder()).sync.add(OLD)
    embedder = CountingEmbedder()
    on(store, embedder=embedder, splitter=RecursiveCharacterSplitter(999, 0)).sync.reindex([*OLD, Document("More.", "more.md")])
    assert embedder.embedded == ["More."]


def test_a_corpus_of_another_analysis_is_made_anew(tmp_path: Path):
    made("sqlite", tmp_path).sync.add(OLD)
    other = on(SQLiteVectorStore(tmp_path / "kb.db", "knowledge", analysis=Analysis(language="german")))
    with pytest.raises(AKConfigError, match=r"analysis.*reindex\(\)"):
        other.sync.search("rule")
    with pytest.raises(AKConfigError, match=r"analysis.*reindex\(\)"):
        other.sync.refresh(OLD)
    other.sync.reindex()
    assert len(other.sync.search("rule", k=20)) == 12


async def test_of_two_models_that_begin_a_corpus_at_once_one_is_refused(kind: str, tmp_path: Path):
    store = shared(kind, tmp_path)
    both = [on(store, embedder=HashEmbedder(dimensions)) for dimensions in (40, 50)]
    outcomes = await asyncio.gather(*(each.add(OLD) for each in both), return_exceptions=True)
    assert [type(each).__name__ for each in outcomes].count("AKConfigError") == 1


def test_a_namespace_may_not_be_called_like_a_generation(tmp_path: Path):
    with pytest.raises(AKConfigError, match="namespace"):
        SQLiteVectorStore(tmp_path / "kb.db", "\x1fnext\x1fknowledge")
