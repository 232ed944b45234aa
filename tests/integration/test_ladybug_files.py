"""The embedded graph's file: threads, processes and managers that want it at once, and what is left behind (X15, X21)."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from graphs import RUNAWAY, fill, record, rows

from agentkernel_kb import (
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.runner import Runner


@pytest.fixture
def graph() -> Iterator[LadybugManager]:
    graph = fill(LadybugManager(":memory:", name="people", threads=2))
    yield graph
    graph.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "people.lbug"
    fill(LadybugManager(path, threads=1)).close()
    return path


def test_readers_and_a_writer_at_once(graph: LadybugManager) -> None:
    """Eight threads read whole transactions while another writes: nobody fails, and nobody sees half a write."""
    statement = "UNWIND [1, 2] AS x CREATE (:City {name: $name + cast(x AS STRING)})"
    seen: list[int] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            seen.extend(rows(graph, "MATCH (c:City) RETURN count(*) AS total")[0]["total"] for _ in range(15))
        except BaseException as error:  # noqa: BLE001 - whatever a thread raises fails the test
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(15):
        graph.write([record(statement, name=f"c{number}-")])
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert {total % 2 for total in seen} == {1}
    assert rows(graph, "MATCH (c:City) RETURN count(*) AS total") == [{"total": 31}]


def test_what_is_written_is_there_when_the_file_is_opened_again(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    graph.write([record("CREATE (:City {name: 'Basel'})")])
    graph.close()
    graph.close()
    with pytest.raises(KnowledgeStateError, match="'ladybug' is closed"):
        graph.query("RETURN 1")
    again = LadybugManager(str(path), threads=1)
    assert rows(again, "MATCH (c:City) RETURN c.name ORDER BY c.name") == [{"c.name": "Basel"}, {"c.name": "Bern"}]
    again.close()


def test_closing_ends_what_runs(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    failures: list[str] = []

    def run() -> None:
        try:
            graph.query(RUNAWAY)
        except KnowledgeError as error:
            failures.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    graph.close()
    thread.join(10)
    assert failures
    assert in_another_process(path, read_only=False) == "[[4]]"


def in_another_process(path: Path, *, read_only: bool) -> str:
    """Return what another process reads from the file with the bare engine, or the last line of its failure."""
    script = (
        "import ladybug, sys\n"
        f"database = ladybug.Database(sys.argv[1], read_only={read_only}, max_num_threads=1)\n"
        "print(ladybug.Connection(database).execute('MATCH (n) RETURN count(*)').get_all())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=False)
    return (done.stdout or done.stderr).strip()


def test_a_writer_keeps_others_out_and_closing_lets_them_in(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    assert "Could not set lock" in in_another_process(path, read_only=False)
    graph.close()
    assert in_another_process(path, read_only=False) == "[[4]]"


def test_a_reader_keeps_writers_out_and_lets_readers_in(path: Path) -> None:
    first = LadybugManager(path, read_only=True, threads=1)
    second = LadybugManager(path, name="second", read_only=True, threads=1)
    assert "Could not set lock" in in_another_process(path, read_only=False)
    assert in_another_process(path, read_only=True) == "[[4]]"
    second.close()
    assert "Could not set lock" in in_another_process(path, read_only=False)
    first.close()
    assert in_another_process(path, read_only=False) == "[[4]]"


HOLDER = """
import ladybug, sys
database = ladybug.Database(sys.argv[1], max_num_threads=1)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("read_only", "message"), [(False, "open in another process"), (True, "open for writing in another")])
def test_a_file_that_another_process_writes_is_named(path: Path, read_only: bool, message: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(KnowledgeConnectionError, match=message) as caught:
            LadybugManager(path, read_only=read_only, threads=1)
        assert str(path) in str(caught.value)
        holder.communicate("")
    LadybugManager(path, read_only=read_only, threads=1).close()


def test_one_process_opens_a_file_for_writing_once(path: Path, tmp_path: Path) -> None:
    """The engine itself would let it, and lose data."""
    graph = LadybugManager(path, name="first", threads=1)
    link = tmp_path / "link.lbug"
    link.symlink_to(path)
    for other, read_only in ((path, False), (path, True), (link, False)):
        with pytest.raises(KnowledgeConnectionError, match="already open in this process by the backend 'first'"):
            LadybugManager(other, read_only=read_only)
    graph.close()
    reader = LadybugManager(path, read_only=True, threads=1)
    with pytest.raises(KnowledgeConnectionError, match="by a read-only backend"):
        LadybugManager(path)
    reader.close()
    LadybugManager(link, threads=1).close()


def test_a_backend_that_is_dropped_gives_its_file_back(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    rows(graph, "RETURN 1")
    del graph
    LadybugManager(path, threads=1).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_wrong_paths_are_errors_at_construction(tmp_path: Path, read_only: bool) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a graph, but text that is long enough to look at " * 200)
    for path in (tmp_path, tmp_path / "missing" / "x.lbug", other, ""):
        with pytest.raises((AKConfigError, KnowledgeConnectionError)):
            LadybugManager(path, read_only=read_only)
    assert other.read_text().startswith("not a graph")


def test_a_missing_graph_is_made_unless_it_is_read_only(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeConnectionError, match="There is no graph at"):
        LadybugManager(tmp_path / "new.lbug", read_only=True)
    with pytest.raises(AKConfigError, match="would stay empty"):
        LadybugManager(":memory:", read_only=True)
    LadybugManager(tmp_path / "new.lbug", threads=1).close()
    assert (tmp_path / "new.lbug").exists()


def test_work_that_nothing_interrupts_is_left_behind(path: Path) -> None:
    """The caller gets its answer in time and other calls go on; closing waits for what is left. The guard refuses such work."""
    stubborn = "MATCH (c:City) WITH repeat(c.name, 5000) AS a, repeat('nreB', 5000) AS b RETURN levenshtein(a, b)"
    runner = Runner(GraphDatabase(path, "x", read_only=False, max_memory_bytes=128_000_000, threads=2), "x")
    with pytest.raises(KnowledgeTimeoutError):
        runner.fetch(stubborn, 1, 0.2)
    assert runner.fetch("MATCH (c:City) RETURN count(*)", 1, 5).rows == [[1]]
    runner.close()
    graph = LadybugManager(path, threads=1)
    with pytest.raises(KnowledgeGuardError):
        graph.query(stubborn)
    graph.close()
