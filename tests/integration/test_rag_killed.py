"""Indexing and indexing anew, killed at any moment (X19): whoever goes on has the index of an undisturbed run.

Readers meanwhile see whole versions. Each is killed twenty times, or as often as `KB_STRESS_RAG_KILLS` says (`make stress`).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from killed_writers import KilledWriters

from agentkernel_kb.rag import Document, Knowledge, create_knowledge

KILLS = int(os.environ.get("KB_STRESS_RAG_KILLS", "20"))
SOURCES, PASSAGES = 12, 5

CORPUS = f"""
    from agentkernel_kb.rag import Document, RecursiveCharacterSplitter, create_knowledge

    SPLITTER = RecursiveCharacterSplitter(chunk_size=60, chunk_overlap=0)

    def documents(version):
        # In each version every third source is missing, another one each time.
        numbers = [number for number in range({SOURCES}) if (number + version) % 3]
        return [Document(text(number, version), f"{{number}}.md", {{"version": version}}) for number in numbers]

    def text(number, version):
        return "\\n\\n".join(f"passage {{n}} of source {{number}} in version {{version:06}}" for n in range({PASSAGES}))
"""
INDEXER = """
    def write(say, path, version):
        knowledge = create_knowledge("sqlite", path=path, splitter=SPLITTER)
        knowledge.sync.search("passage")
        say("ready")
        for number in range(int(version), 1_000_000):
            knowledge.sync.refresh(documents(number), delete_missing=True)
            say(number)
"""
REMAKER = """
    def write(say, path, version):
        create_knowledge("sqlite", path=path).sync.search("passage")
        say("ready")
        for number in range(int(version), 1_000_000):
            splitter = RecursiveCharacterSplitter(chunk_size=60 + number % 2, chunk_overlap=0)
            create_knowledge("sqlite", path=path, splitter=splitter).sync.reindex(documents(number))
            say(number)
"""


@pytest.fixture(scope="module")
def corpus() -> dict[str, Any]:
    """What the writers index: `documents(version)`, and the splitter."""
    namespace: dict[str, Any] = {}
    exec(textwrap.dedent(CORPUS), namespace)
    return namespace


def contents(knowledge: Knowledge) -> list[tuple[Any, ...]]:
    """Return all that a corpus holds, and what it says of it."""

    async def read() -> list[tuple[Any, ...]]:
        listed = await knowledge.list_documents()
        chunks = await knowledge.passages(document_ids=[each.document_id for each in listed])
        return sorted((chunk.source, chunk.chunk_index, chunk.total_chunks, chunk.id, chunk.text) for chunk in chunks)

    return asyncio.run(read())


def killed_again_and_again(code: str, path: Path, look: Callable[[], object]) -> int:
    """Let processes index, each from where the one before was killed, while a reader looks; return the next version."""
    version = 1
    with KilledWriters(textwrap.dedent(CORPUS) + textwrap.dedent(code)) as writers:
        for _ in range(KILLS):
            with looking(look):
                said = writers.run({"indexer": [str(path), str(version)]})["indexer"]
            version = int(said[-1]) + 1 if said[-1] != "ready" else version
            look()
    return version


@contextmanager
def looking(look: Callable[[], object]) -> Generator[None]:
    """Look again and again in another thread, and raise what it saw that may not be."""
    done, raised = threading.Event(), list[BaseException]()

    def watch() -> None:
        try:
            while not done.wait(0.01):
                look()
        except BaseException as error:  # noqa: BLE001 - it is raised in the test's own thread
            raised.append(error)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if raised:
        raise raised[0]


def assert_whole_sources(knowledge: Knowledge) -> None:
    """Check that each source has all passages of one version."""
    hits = knowledge.sync.search("passage of source", k=100)
    versions = Counter((hit.source, hit.metadata["version"]) for hit in hits)
    assert set(versions.values()) <= {PASSAGES}
    assert len({source for source, _ in versions}) == len(versions)


def assert_one_version(knowledge: Knowledge) -> None:
    """Check that a search sees the whole corpus in one version."""
    hits = knowledge.sync.search("passage of source", k=100)
    (version,) = {hit.metadata["version"] for hit in hits}
    assert len(hits) == PASSAGES * sum(1 for number in range(SOURCES) if (number + version) % 3)


@pytest.mark.timeout(120 + 10 * KILLS)
def test_x19_killed_indexing_goes_on_to_the_index_of_an_undisturbed_run(corpus: dict[str, Any], tmp_path: Path):
    path, splitter = tmp_path / "kb.db", corpus["SPLITTER"]
    reader = create_knowledge("sqlite", path=path)
    given = corpus["documents"](killed_again_and_again(INDEXER, path, lambda: assert_whole_sources(reader)))
    resumed = create_knowledge("sqlite", path=path, splitter=splitter)
    undisturbed = create_knowledge("sqlite", path=tmp_path / "other.db", splitter=splitter)
    for knowledge in (resumed, undisturbed):
        assert knowledge.sync.refresh(given, delete_missing=True).failed == []
    assert contents(resumed) == contents(undisturbed) == contents(reader) != []
    query = "passage of source 7"
    assert resumed.sync.search(query, k=100) == undisturbed.sync.search(query, k=100)
    assert resumed.sync.refresh(given, delete_missing=True).documents == 0


@pytest.mark.timeout(120 + 10 * KILLS)
def test_x19_killed_indexing_anew_leaves_the_old_corpus_or_the_new_one_and_no_waste(corpus: dict[str, Any], tmp_path: Path):
    path, splitter = tmp_path / "kb.db", corpus["SPLITTER"]
    reader = create_knowledge("sqlite", path=path)
    create_knowledge("sqlite", path=path, splitter=splitter).sync.reindex(corpus["documents"](0))
    given = corpus["documents"](killed_again_and_again(REMAKER, path, lambda: assert_one_version(reader)))
    resumed = create_knowledge("sqlite", path=path, splitter=splitter)
    undisturbed = create_knowledge("sqlite", path=tmp_path / "other.db", splitter=splitter)
    assert [each.sync.reindex(given).failed for each in (resumed, undisturbed)] == [[], []]
    assert contents(resumed) == contents(undisturbed) == contents(reader) != []
    query = "passage of source 7"
    assert resumed.sync.search(query, k=100) == undisturbed.sync.search(query, k=100)
    report = resumed.sync.verify()
    assert (report.ok, report.unfinished, rows(path)) == (True, 0, [1, report.chunks])
    assert resumed.sync.refresh(given, delete_missing=True).documents == 0


def rows(path: Path) -> list[int]:
    """Return how many generations and how many chunks a file holds."""
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("namespaces", "chunks")]


def test_what_a_killed_run_had_stored_is_not_done_again(tmp_path: Path):
    stop_after = 600
    code = """
        import os, sys
        from agentkernel_kb.rag import Document, create_knowledge
        knowledge = create_knowledge("sqlite", path=sys.argv[1], progress=lambda report: os.kill(os.getpid(), 9))
        knowledge.sync.refresh([Document(f"text {n}", f"{n}.md") for n in range(int(sys.argv[2]))])
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "kb.db"), str(stop_after)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    assert subprocess.run(command, env=environment, check=False).returncode == -9
    knowledge = create_knowledge("sqlite", path=tmp_path / "kb.db")
    report = knowledge.sync.refresh([Document(f"text {n}", f"{n}.md") for n in range(stop_after)])
    assert report.unchanged > 0
    assert report.unchanged + report.documents == stop_after
    assert len(knowledge.sync.list_documents()) == stop_after
