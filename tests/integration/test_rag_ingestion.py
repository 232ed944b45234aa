"""How sources become chunks: in stages that overlap, each once however it is spelled, the new before the old goes (P2, P7)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rag_world import STORES, CountingEmbedder, made, pages

from agentkernel_kb.embed import CallableEmbedder, HashEmbedder
from agentkernel_kb.errors import KnowledgeConnectionError
from agentkernel_kb.rag import (
    AutoLoader,
    Document,
    InMemoryVectorStore,
    Knowledge,
    RecursiveCharacterSplitter,
    VectorRecord,
    create_knowledge,
)
from agentkernel_kb.rag.loading.items import SourceItem
from agentkernel_kb.rag.pipeline import pipelined


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def sources(knowledge: Knowledge) -> list[str]:
    return [each.source for each in knowledge.sync.list_documents()]


# One source in any spelling.

SPELLINGS = ("docs", "./docs", "docs/", "docs/../docs", "link", "link/", "{whole}/docs", "{whole}/link/")


@pytest.mark.parametrize("first", ["docs", "{whole}/docs"])
@pytest.mark.parametrize("second", SPELLINGS)
def test_a_folder_is_one_source_in_any_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str):
    pages(tmp_path / "docs")
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    knowledge = made("memory", tmp_path)
    assert knowledge.sync.add(first.format(whole=tmp_path)).documents == 3
    report = knowledge.sync.refresh(second.format(whole=tmp_path), delete_missing=True)
    assert (report.unchanged, report.documents, report.deleted, len(sources(knowledge))) == (3, 0, 0, 3)


def test_a_file_given_twice_in_one_call_is_indexed_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = pages(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    report = made(kind, tmp_path).sync.add(["docs", folder / "travel.md", "docs/travel.md", "./docs/travel.md", folder])
    assert (report.documents, report.unchanged, report.skipped) == (3, 0, 0)


def test_a_changed_file_replaces_itself_under_another_spelling(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, embedder = pages(tmp_path / "docs"), CountingEmbedder()
    monkeypatch.chdir(tmp_path)
    knowledge = made(kind, tmp_path, embedder=embedder)
    knowledge.sync.add("docs")
    embedder.embedded.clear()
    (folder / "travel.md").write_text("Flights are booked by the travel desk.\n")
    os.utime(folder / "refunds.md", (1, 1))
    report = knowledge.sync.refresh(folder, delete_missing=True)
    assert (report.documents, report.deleted, embedder.embedded) == (2, 2, ["Flights are booked by the travel desk."])
    assert sorted(Path(each).name for each in sources(knowledge)) == ["cats.md", "refunds.md", "travel.md"]
    assert knowledge.sync.refresh("docs", delete_missing=True).unchanged == 3


def test_a_folder_that_is_away_under_another_spelling_loses_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = pages(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    knowledge = made(kind, tmp_path)
    knowledge.sync.add("docs/")
    folder.rename(tmp_path / "away")
    report = knowledge.sync.refresh(folder, delete_missing=True)
    assert (len(report.failed), report.deleted, len(sources(knowledge))) == (1, 0, 3)


def test_one_relative_path_in_two_folders_is_read_in_each(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    knowledge = made(kind, tmp_path)
    for name, text in (("a", "Text one."), ("b", "Text two.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text(text)
        os.utime(tmp_path / name / "note.md", (1_000, 1_000))
        monkeypatch.chdir(tmp_path / name)
        assert knowledge.sync.refresh("note.md").documents == 1
    assert [hit.text for hit in knowledge.sync.search("text")] == ["Text two."]


# Only what changed is read and embedded.


class Watched(AutoLoader):
    """A loader that remembers what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    async def items(self, source: Any, *, metadata: Any = None) -> AsyncGenerator[SourceItem]:
        async for item in super().items(source, metadata=metadata):
            yield replace(item, load=partial(self._load, item))

    async def _load(self, item: SourceItem) -> list[Document]:
        self.read.append(Path(item.source).name)
        return await item.load()


def test_what_did_not_change_is_not_opened(kind: str, tmp_path: Path):
    folder, loader = pages(tmp_path / "docs", {f"{n}.md": f"Text {n}." for n in range(40)}), Watched()
    knowledge = made(kind, tmp_path, loader=loader)
    knowledge.sync.add(folder)
    loader.read.clear()
    (folder / "7.md").write_text("Another text.")
    assert (knowledge.sync.refresh(folder, delete_missing=True).unchanged, loader.read) == (39, ["7.md"])


def test_a_batch_of_changed_and_unchanged_passages_embeds_the_changed(kind: str, tmp_path: Path):
    embedder = CountingEmbedder()
    knowledge = made(kind, tmp_path, embedder=embedder)
    knowledge.sync.upsert([Document(f"Text {n}.", f"{n}.md", {"year": 2025}) for n in range(20)])
    embedder.embedded.clear()
    changed = [Document(f"Text {n}." if n % 4 else f"New {n}.", f"{n}.md", {"year": 2026}) for n in range(20)]
    assert knowledge.sync.upsert(changed).documents == 20
    assert embedder.embedded == [f"New {n}." for n in range(0, 20, 4)]
    assert {hit.metadata["year"] for hit in knowledge.sync.search("text new", k=20)} == {2026}


# Stages.


async def test_reading_goes_on_while_a_batch_is_embedded_and_no_further_than_is_bounded():
    read: list[int] = []
    gate = asyncio.Event()

    class Endless:
        async def load(self, source: Any, *, metadata: Any = None) -> list[Document]:
            read.append(source)
            return [Document(f"Text {source}.", f"{source}.md")]

    async def embed(texts: list[str]) -> list[list[float]]:
        await gate.wait()
        return HashEmbedder(8)(texts)

    knowledge = create_knowledge("memory", loader=Endless(), embedder=CallableEmbedder(embed, model_id="gated"))
    indexing = asyncio.create_task(knowledge.add(list(range(4_000))))
    async with asyncio.timeout(30):
        while len(read) < 768:
            await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert 512 < len(read) < 2_000
    gate.set()
    assert (await indexing).documents == 4_000
    assert read == list(range(4_000))


async def test_storing_goes_on_while_the_next_batch_is_embedded():
    at_once: list[str] = []
    embedding = asyncio.Event()

    class Store(InMemoryVectorStore):
        async def replace_noted(self, records: Sequence[VectorRecord], **named: Any) -> tuple[int, int]:
            if len(records) and not at_once:
                await asyncio.wait_for(embedding.wait(), 30)
                at_once.append("stored while the second batch was embedded")
            return await super().replace_noted(records, **named)

    calls: list[int] = []

    async def embed(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        if len(calls) > 4:
            embedding.set()
        return HashEmbedder(8)(texts)

    embedder = CallableEmbedder(embed, model_id="told", batch_size=128)
    knowledge = create_knowledge("vector", store=Store(), embedder=embedder)
    report = await knowledge.add([Document(f"Text {n}.", f"{n}.md") for n in range(600)])
    assert (report.documents, len(at_once)) == (600, 1)


async def test_a_failing_stage_ends_the_others_and_what_was_sent():
    closed: list[bool] = []

    async def numbers():
        try:
            for number in range(1_000):
                yield number
        finally:
            closed.append(True)

    async def fail(number: int) -> None:
        if number == 3:
            raise ValueError(number)

    with pytest.raises(ValueError, match="3"):
        await pipelined(numbers(), fail, fail)
    assert closed == [True]


async def test_one_poisoned_text_among_many_is_found_in_few_calls(kind: str, tmp_path: Path):
    calls: list[int] = []

    def choosy(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        if any("poison" in text for text in texts):
            raise RuntimeError
        return HashEmbedder(8)(texts)

    embedder = CallableEmbedder(choosy, model_id="choosy", batch_size=10_000)
    knowledge = made(kind, tmp_path, embedder=embedder)
    given = [Document("poison" if n == 77 else f"Text {n}.", f"{n}.md") for n in range(200)]
    report = await knowledge.add(given)
    assert ([each.source for each in report.failed], report.documents) == (["77.md"], 199)
    assert len(calls) <= 17


async def test_a_model_that_is_gone_is_asked_once_and_what_is_stored_stays(kind: str, tmp_path: Path):
    calls: list[int] = []

    def goes(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        if len(calls) == 2:
            raise KnowledgeConnectionError("The model does not answer.")
        return HashEmbedder(8)(texts)

    embedder = CallableEmbedder(goes, model_id="goes", batch_size=10_000)
    knowledge = made(kind, tmp_path, embedder=embedder)
    given = [Document(f"Text {n}.", f"{n}.md") for n in range(1_500)]
    report = await knowledge.add(given)
    assert (report.documents + len(report.failed), len(calls)) == (1_500, 2)
    again = await knowledge.add(given)
    assert (again.unchanged, again.documents, again.failed) == (report.documents, len(report.failed), [])


async def test_a_long_source_is_embedded_in_parts_and_stored_in_one_step(kind: str, tmp_path: Path):
    calls: list[int] = []

    def counting(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        return HashEmbedder(8)(texts)

    embedder = CallableEmbedder(counting, model_id="counting", batch_size=10_000)
    knowledge = made(kind, tmp_path, embedder=embedder, splitter=RecursiveCharacterSplitter(20, 0))
    text = "\n\n".join(f"The lamp {n}." for n in range(1_300))
    steps: list[int] = []
    report = await knowledge.indexer.index([Document(text, "long.md")], progress=lambda done: steps.append(done.chunks))
    assert (report.chunks, set(steps)) == (1_300, {1_300})
    assert calls == [512, 512, 276]
    assert (await knowledge.search("lamp 1299"))[0].text == "The lamp 1299."


class RateLimitError(Exception):
    """What a client raises that has tried long enough."""

    status_code = 429


class AuthenticationError(Exception):
    status_code = 401


@pytest.mark.parametrize("error", [RateLimitError, AuthenticationError, ConnectionRefusedError, TimeoutError])
async def test_a_service_without_time_for_any_text_is_not_asked_for_each(tmp_path: Path, error: type[Exception]):
    calls: list[int] = []

    def busy(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        if len(calls) == 1:
            raise error("Bearer hunter2")
        return HashEmbedder(8)(texts)

    knowledge = made("sqlite", tmp_path, embedder=CallableEmbedder(busy, model_id="busy", batch_size=10_000))
    given = [Document(f"Text {n}.", f"{n}.md") for n in range(600)]
    report = await knowledge.add(given)
    assert (len(report.failed), calls) == (600, [256])
    assert {each.reason for each in report.failed} == {f"embed_documents failed: {error.__name__}."}
    assert (await knowledge.add(given)).documents == 600


# Stores without `replace`: the new first.


class Plain:
    """A store with nothing but what the protocol asks for, which remembers what was done."""

    def __init__(self) -> None:
        self.inner = InMemoryVectorStore()
        self.done: list[str] = []

    async def upsert(self, records: Sequence[VectorRecord]) -> int:
        self.done.append(f"write {len(records)}")
        return await self.inner.upsert(records)

    async def delete(self, **criteria: Any) -> int:
        left = await self.inner.count({"source": "a.md"})
        self.done.append(f"delete with {left} there")
        return await self.inner.delete(**criteria)

    async def search(self, **asked: Any) -> list[Any]:
        return await self.inner.search(**asked)

    async def list_sources(self) -> list[str]:
        return await self.inner.list_sources()


@pytest.mark.parametrize("where", [None, {"tenant": "a"}], ids=["unscoped", "scoped"])
async def test_without_replace_the_new_chunks_are_there_before_the_old_are_deleted(where: Any):
    store = Plain()
    knowledge = create_knowledge("vector", store=store, where=where)
    await knowledge.add_text("The old text.", source="a.md")
    store.done.clear()
    await knowledge.add_text("The new text.", source="a.md")
    assert store.done == ["write 1", "delete with 2 there"]
    assert [hit.text for hit in await knowledge.search("text")] == ["The new text."]


async def test_without_replace_a_write_that_fails_deletes_nothing():
    store = Plain()
    knowledge = create_knowledge("vector", store=store)
    await knowledge.add_text("The old text.", source="a.md")

    async def full(records: Sequence[VectorRecord]) -> int:
        raise OSError("disk full")

    store.upsert = full
    report = await knowledge.add_text("The new text.", source="a.md")
    assert ([each.reason for each in report.failed], await store.inner.count()) == (["OSError"], 1)


async def test_without_generations_a_corpus_is_made_anew_in_place():
    store, embedder = Plain(), CountingEmbedder(384)
    await create_knowledge("vector", store=store).add([Document("One.", "a.md"), Document("Two.", "b.md")])
    knowledge = create_knowledge("vector", store=store, embedder=embedder)
    report = await knowledge.reindex([Document("One.", "a.md")])
    assert (report.documents, report.deleted, embedder.embedded) == (1, 1, ["One."])
    assert (await store.list_sources(), (await knowledge.verify()).ok) == (["a.md"], True)
