"""ChromaManager (row A11) among other processes and threads: one writer per folder, readers that keep up, no lost records."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import chromadb
import pytest
from chromadb.config import Settings

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import KnowledgeStateError

EMBEDDER = HashEmbedder(64)

WRITER = """
import sys
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder

manager = ChromaManager(sys.argv[1], embedding_function=HashEmbedder(64))
for line in sys.stdin:
    try:
        manager.write([{"text": text} for text in line.strip().split(";")])
        print("written", flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
manager.close()
"""

FORKING = """
import os, sys
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder

manager = ChromaManager(sys.argv[1], embedding_function=HashEmbedder(64))
manager.write([{"text": "text"}])
child = os.fork()
if child == 0:
    try:
        manager.search("text")
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
manager.close()
"""

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class OtherProcess:
    """A second process that writes to the folder: a line of texts, separated by semicolons, in one batch."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )

    def write(self, text: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.communicate(timeout=30)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[OtherProcess]:
    process = OtherProcess(tmp_path)
    yield process
    process.process.kill()
    process.close()


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[ChromaManager]:
    manager = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    yield manager
    manager.close()


def texts(kb: ChromaManager, query: str, limit: int = 100) -> list[str]:
    return sorted(found["text"] for found in kb.search(query, limit=limit))


def numbered(number: int) -> str:
    return f"first{number} second{number} third{number} fourth{number}"


def test_a_second_process_that_writes_is_refused_with_the_owners_name(kb: ChromaManager, other: OtherProcess):
    assert other.write("mine") == "written"

    with pytest.raises(KnowledgeStateError) as caught:
        kb.write([{"text": "yours"}])

    owner = f"process {other.process.pid} on {socket.gethostname()}"
    assert f"'chromadb' can't write: {owner} is writing to the Chroma folder" in str(caught.value)
    assert "run a Chroma server and use host= in both" in str(caught.value)


def test_the_other_process_is_refused_as_well_until_this_one_closes(kb: ChromaManager, other: OtherProcess):
    kb.write([{"text": "ours"}])
    assert other.write("theirs").startswith("KnowledgeStateError 'chromadb' can't write: process")

    kb.close()
    assert other.write("theirs") == "written"


def test_a_process_that_ended_without_closing_blocks_nobody(kb: ChromaManager, other: OtherProcess):
    other.write("theirs")
    other.process.kill()
    other.process.wait(timeout=100)

    kb.write([{"text": "ours"}])
    assert texts(kb, "ours theirs") == ["ours", "theirs"]


def test_a_process_that_only_reads_sees_what_another_writes_later(kb: ChromaManager, other: OtherProcess):
    other.write("first text")
    assert texts(kb, "text") == ["first text"]

    other.write("second text")
    assert texts(kb, "text") == ["first text", "second text"]


def test_a_given_client_that_has_read_before_sees_what_another_process_wrote_meanwhile(tmp_path: Path, other: OtherProcess):
    other.write("first text")
    client = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    early = ChromaManager(client=client, embedding_function=EMBEDDER)
    assert texts(early, "text") == ["first text"]
    early.close()

    other.write("second text")
    late = ChromaManager(client=client, embedding_function=EMBEDDER)
    assert texts(late, "text") == ["first text", "second text"]
    late.close()
    cast("Any", client).close()


def test_processes_that_write_in_turns_lose_nothing(kb: ChromaManager, other: OtherProcess, tmp_path: Path):
    other.write("text 1")
    assert texts(kb, "text") == ["text 1"]
    other.write("text 2")
    other.close()

    kb.write([{"text": "text 3"}])
    assert texts(kb, "text") == ["text 1", "text 2", "text 3"]
    kb.close()
    again = OtherProcess(tmp_path)
    assert again.write("text 4") == "written"
    again.close()
    kb.connect()
    assert texts(kb, "text") == ["text 1", "text 2", "text 3", "text 4"]


def test_managers_of_one_process_share_the_right_to_write(tmp_path: Path, other: OtherProcess):
    first, second = (ChromaManager(tmp_path, embedding_function=EMBEDDER) for _ in range(2))
    first.write([{"text": "one"}])
    second.write([{"text": "two"}])
    first.close()

    assert other.write("three").startswith("KnowledgeStateError")
    second.close()
    assert other.write("three") == "written"


def test_threads_can_write_and_search_at_once(kb: ChromaManager):
    def work(number: int) -> bool:
        kb.write([{"text": f"text {number} {part}"} for part in range(10)])
        return bool(kb.search(f"text {number}", limit=5))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(24)))

    assert len(kb.search("text", limit=1_000)) == 240


def test_threads_can_search_while_another_process_writes(kb: ChromaManager, other: OtherProcess):
    other.write("text 0")

    with ThreadPoolExecutor(4) as threads:
        searches = [threads.submit(texts, kb, "text") for _ in range(100)]
        answers = [other.write(f"text {number}") for number in range(1, 10)]

    assert answers == ["written"] * 9
    assert all(search.result()[0] == "text 0" for search in searches)
    assert len(texts(kb, "text")) == 10


def test_searching_is_safe_while_another_process_writes_the_index_to_disk(kb: ChromaManager, other: OtherProcess):
    """Chroma writes an index out after a thousand records; reading it from disk just then ended the process."""

    def search_until_written(_: int) -> int:
        done = 0
        while not written:
            done += len(kb.search(numbered(1), limit=1))
        return done

    written: list[str] = []
    with ThreadPoolExecutor(2) as threads:
        searches = threads.map(search_until_written, range(2))
        for start in range(0, 2_400, 100):
            assert other.write(";".join(map(numbered, range(start, start + 100)))) == "written"
        written.append("all")

    assert sum(searches) > 0
    assert [number for number in range(0, 2_400, 100) if numbered(number) not in texts(kb, numbered(number), limit=5)] == []


def test_closing_while_others_search_ends_in_results_or_a_clear_error(tmp_path: Path):
    kb = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    kb.write([{"text": "text"}])

    def search(_: int) -> str:
        try:
            return kb.search("text")[0]["text"]
        except KnowledgeStateError:
            return "closed"

    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(search, range(200))
        kb.close()

    assert set(answers) <= {"text", "closed"}


def test_a_forked_process_is_told_to_connect_by_itself(tmp_path: Path):
    forking = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path)], capture_output=True, text=True, check=True, env=ENVIRONMENT, timeout=100
    )

    assert forking.stdout == "'chromadb' was connected before this process was forked; construct it after the fork.\n"
