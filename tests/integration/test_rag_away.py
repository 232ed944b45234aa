"""Sources that are away: a folder that was moved, a file system that is not mounted; what is indexed of them stays (P2, P3)."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path

import pytest
from rag_world import STORES, made, pages

from agentkernel_kb.rag import HashEmbedder, InMemoryVectorStore, Knowledge, create_knowledge
from agentkernel_kb.rag.plan import planned


class Plain:
    """A store with nothing but what the protocol asks for, opened anew on what is there."""

    def __init__(self, inner: InMemoryVectorStore) -> None:
        self.upsert, self.delete, self.search, self.list_sources = inner.upsert, inner.delete, inner.search, inner.list_sources


class Listing(Plain):
    """One that lists its documents, too."""

    def __init__(self, inner: InMemoryVectorStore) -> None:
        super().__init__(inner)
        self.list_documents = inner.list_documents


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def knowledge(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Knowledge:
    """A corpus of the three pages in `docs`, beneath the working directory, which is the home folder too."""
    pages(tmp_path / "docs")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = made(kind, tmp_path)
    assert found.sync.add("docs").documents == 3
    return found


def synchronised(knowledge: Knowledge, *sources: str | Path) -> tuple[list[str], int, int]:
    """Return what failed, how much was added or deleted, and how many documents there are then."""
    report = knowledge.sync.refresh(sources, delete_missing=True)
    return [each.source for each in report.failed], report.added + report.deleted, len(knowledge.sync.list_documents())


@pytest.mark.parametrize("spelling", ["docs", "docs/", "./docs", "~/docs", "~/docs/", "{whole}/docs", "{whole}/docs/"])
def test_a_folder_that_is_gone_is_no_text_and_loses_nothing(knowledge: Knowledge, tmp_path: Path, spelling: str):
    source = spelling.format(whole=tmp_path)
    shutil.move(tmp_path / "docs", tmp_path / "away")
    assert synchronised(knowledge, source) == ([source], 0, 3)
    assert "There is no file or folder" in knowledge.sync.add(source).failed[0].reason


@pytest.mark.parametrize("spelling", ["docs/Makefile", "~/docs/Makefile", "{whole}/docs/Makefile"])
def test_a_file_that_is_gone_is_no_text_and_loses_nothing(knowledge: Knowledge, tmp_path: Path, spelling: str):
    (tmp_path / "docs/Makefile").write_text("all: build\n")
    assert synchronised(knowledge, "docs/Makefile")[1:] == (4, 1)
    (tmp_path / "docs/Makefile").unlink()
    source = spelling.format(whole=tmp_path)
    assert synchronised(knowledge, source) == ([source], 0, 1)


def test_a_relative_path_in_another_folder_loses_nothing(knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert synchronised(knowledge, "docs") == (["docs"], 0, 3)


@pytest.mark.parametrize("left", ["", ".mounted", "photo.jpg"])
def test_a_folder_in_which_nothing_is_left_loses_nothing(knowledge: Knowledge, tmp_path: Path, left: str):
    shutil.rmtree(tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    if left:
        (tmp_path / "docs" / left).write_bytes(b"\xff\xd8\xff")
    plan = asyncio.run(planned(knowledge.indexer, ["docs"], delete_missing=True))
    assert ([each.source for each in plan.failed], plan.removed) == (["docs"], [])
    assert synchronised(knowledge, tmp_path / "docs") == ([(tmp_path / "docs").as_posix()], 0, 3)
    assert knowledge.sync.refresh("docs").failed == []  # Nothing is deleted then.


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("dimensions", [384, 64])
def test_what_is_away_stays_in_a_corpus_that_is_made_anew(tmp_path: Path, *, is_there: bool, dimensions: int):
    folder = pages(tmp_path / "docs")
    made("sqlite", tmp_path).sync.add(folder)
    shutil.rmtree(folder)
    if is_there:
        folder.mkdir()
    anew = made("sqlite", tmp_path, embedder=HashEmbedder(dimensions))
    report = anew.sync.reindex([str(folder), "An inline text."])
    assert ([each.source for each in report.failed], len(anew.sync.list_documents())) == ([folder.as_posix()], 4)


@pytest.mark.parametrize("source", ["docs", "docs/"])
@pytest.mark.parametrize("is_there", [True, False], ids=["emptied", "gone"])
def test_a_store_without_notes_loses_nothing_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, *, is_there: bool
):
    pages(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    shared = InMemoryVectorStore()
    create_knowledge("vector", store=Plain(shared)).sync.add("docs")
    shutil.rmtree(tmp_path / "docs")
    if is_there:
        (tmp_path / "docs").mkdir()
    report = create_knowledge("vector", store=Plain(shared)).sync.refresh(source, delete_missing=True)
    assert ([each.source for each in report.failed], report.deleted) == ([source], 0)


@pytest.mark.parametrize("source", ["docs", "docs/"])
def test_a_tenant_in_a_store_without_notes_loses_nothing_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
):
    pages(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    shared = InMemoryVectorStore()
    opened = partial(create_knowledge, "vector", where={"tenant": "a"})
    opened(store=Listing(shared)).sync.add("docs")
    shutil.rmtree(tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    report = opened(store=Listing(shared)).sync.refresh(source, delete_missing=True)
    assert ([each.source for each in report.failed], report.deleted) == ([source], 0)
    (tmp_path / "docs").rmdir()
    other = create_knowledge("vector", store=Listing(shared), where={"tenant": "b"})
    assert other.sync.refresh("docs", delete_missing=True).failed == []  # To another one it is a word as any other.


def test_what_is_left_out_of_the_sources_is_deleted(knowledge: Knowledge, tmp_path: Path):
    shutil.rmtree(tmp_path / "docs")
    assert synchronised(knowledge, "A text.") == ([], 4, 1)


def test_a_word_that_was_no_path_before_is_a_text(knowledge: Knowledge):
    assert synchronised(knowledge, "docs", "docks", "sub", "text:docs") == ([], 3, 6)
    assert synchronised(knowledge, "docs", "docks", "sub", "text:docs") == ([], 0, 6)
