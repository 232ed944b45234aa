"""The embedded graph in processes of its own (X15, X1, X21): what ends its engine ends nothing else, and loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import agentkernel_kb
from agentkernel_kb import (
    KnowledgeBuilder,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
    Record,
)
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.ladybug.turns import Turns

ENDS_THE_ENGINE = "WITH null AS x RETURN nodes(x)"
STUBBORN = "RETURN size(replace(lpad('a',10000,'a'),'a',replace(lpad('b',10000,'b'),'b','cccccccccc')))"
RUNAWAY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c)"
LONG = 60.0

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="children are found in /proc")


def record(statement: str, **parameters: Any) -> Record:
    return {"text": "", "metadata": {"query": statement, "params": parameters}}


def write(graph: LadybugManager, statement: str, **parameters: Any) -> None:
    graph.write([record(statement, **parameters)])


def names(graph: LadybugManager) -> list[str]:
    return [row["metadata"]["row"]["name"] for row in graph.query("MATCH (p:P) RETURN p.name AS name ORDER BY name", limit=99)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.lbug"


@pytest.fixture
def graph(path: Path) -> Iterator[LadybugManager]:
    graph = LadybugManager(path, threads=1, max_memory_bytes=256_000_000)
    write(graph, "CREATE NODE TABLE P(name STRING PRIMARY KEY)")
    write(graph, "CREATE (:P {name: 'Ann'})")
    yield graph
    graph.close()


def children(parent: int) -> set[int]:
    """Return the processes of a parent that are not ending."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, its_parent = status.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(its_parent) == parent and state != "Z":
            found.add(int(status.parent.name))
    return found


def own_children() -> set[int]:
    return children(os.getpid())


def wait_until(is_so: Any, seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.05)
    return False


# What ends the engine.


def test_a_read_that_ends_the_engine_is_rejected_and_the_graph_goes_on(graph: LadybugManager) -> None:
    (read_kb,) = (tool for tool in KnowledgeBuilder([graph]).build() if tool.__name__ == "read_kb")
    answer = read_kb("ladybug", ENDS_THE_ENGINE)
    assert answer.startswith("Backend 'ladybug' rejected the statement: The statement ended the engine (SIGSEGV)")
    assert "Ann" in read_kb("ladybug", "MATCH (p:P) RETURN p")


def test_other_reads_and_writes_do_not_notice(graph: LadybugManager) -> None:
    def end_engines() -> None:
        for _ in range(3):
            with pytest.raises((KnowledgeQueryError, KnowledgeTimeoutError)):
                graph.query(ENDS_THE_ENGINE)

    with ThreadPoolExecutor() as threads:
        attacker = threads.submit(end_engines)
        for number in range(5):
            write(graph, "CREATE (:P {name: $name})", name=f"n{number}")
            assert len(names(graph)) == number + 2
        attacker.result()


def test_a_read_that_nothing_interrupts_ends_near_its_deadline(graph: LadybugManager) -> None:
    started = time.monotonic()
    with pytest.raises((KnowledgeTimeoutError, KnowledgeQueryError)):
        graph.query(STUBBORN, timeout=1)
    assert time.monotonic() - started < LONG / 2
    assert names(graph) == ["Ann"]


def test_a_write_that_ends_the_engine_says_that_it_may_have_been_stored(graph: LadybugManager) -> None:
    with pytest.raises(KnowledgeQueryError, match=r"ended the engine .*may have been stored"):
        write(graph, "WITH null AS x RETURN nodes(x)")
    write(graph, "CREATE (:P {name: 'Bob'})")
    assert names(graph) == ["Ann", "Bob"]


def test_a_cancelled_call_frees_its_child(graph: LadybugManager) -> None:
    async def cancel() -> None:
        call = asyncio.ensure_future(graph.aquery(RUNAWAY, timeout=LONG))
        await asyncio.sleep(0.5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    for _ in range(5):  # More often than there are children.
        asyncio.run(cancel())
    assert names(graph) == ["Ann"]


# What was written stays.


def test_what_was_written_outlives_every_process_of_the_engine(graph: LadybugManager, path: Path) -> None:
    for number in range(20):
        write(graph, "CREATE (:P {name: $name})", name=f"n{number:02}")
    for pid in own_children():
        os.kill(pid, signal.SIGKILL)
    assert names(graph) == ["Ann", *(f"n{number:02}" for number in range(20))]
    write(graph, "CREATE (:P {name: 'Zoe'})")
    graph.close()
    again = LadybugManager(path, read_only=True, threads=1)
    assert len(names(again)) == 22
    again.close()


WRITER = """
import sys
from agentkernel_kb.ladybug import LadybugManager
graph = LadybugManager(sys.argv[1], threads=1)
graph.write([{"text": "", "metadata": {"query": "CREATE NODE TABLE P(name STRING PRIMARY KEY)"}}])
for number in range(100_000):
    graph.write([{"text": "", "metadata": {"query": "CREATE (:P {name: $name})", "params": {"name": f"n{number}"}}}])
    print(number, flush=True)
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={"PYTHONPATH": str(Path(agentkernel_kb.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("with_the_engine", [False, True], ids=["the application alone", "its engine too"])
def test_a_write_that_was_acknowledged_outlives_a_killed_application(path: Path, with_the_engine: bool) -> None:
    with start(WRITER, str(path)) as application:
        assert application.stdout is not None
        for line in application.stdout:
            if int(line) == 60:
                break
        engines = children(application.pid)
        application.kill()
        if with_the_engine:
            for pid in engines:
                os.kill(pid, signal.SIGKILL)
        acknowledged = [60, *map(int, application.stdout.read().split())][-1]
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in engines))
    graph = LadybugManager(path, threads=1)
    found = graph.query("MATCH (p:P) RETURN count(*) AS total")[0]["metadata"]["row"]["total"]
    graph.close()
    assert acknowledged + 1 <= found <= acknowledged + 2


def test_a_long_log_of_writes_is_brought_into_the_file_before_a_read(graph: LadybugManager, path: Path) -> None:
    log = path.with_name(f"{path.name}.wal")
    write(graph, "UNWIND range(1, 1000) AS number CREATE (:P {name: $text + cast(number AS STRING)})", text="x" * 500)
    assert log.stat().st_size > 250_000
    assert len(names(graph)) == 99
    assert not log.exists() or log.stat().st_size < 250_000


# Whose files and processes.


def test_closing_ends_all_processes(path: Path) -> None:
    before = own_children()
    graph = LadybugManager(path, threads=1)
    with ThreadPoolExecutor() as threads:
        running = [threads.submit(graph.query, RUNAWAY) for _ in range(2)]
        assert wait_until(lambda: len(own_children() - before) >= 3)
        graph.close()
        for each in running:
            with pytest.raises(KnowledgeError):
                each.result(20)
    assert wait_until(lambda: own_children() <= before)


IN_MEMORY = """
import sys
from agentkernel_kb.ladybug import LadybugManager
graph = LadybugManager(":memory:", threads=1)
graph.write([{"text": "", "metadata": {"query": "CREATE NODE TABLE P(name STRING PRIMARY KEY)"}}])
print(len(graph.query("MATCH (p:P) RETURN p")), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ending", ["close", "end", "kill"])
def test_a_graph_in_memory_is_gone_with_its_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = IN_MEMORY + ("graph.close()" if ending == "close" else "")
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(Path(agentkernel_kb.__file__).parents[1]), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    ) as application:
        assert application.stdout is not None
        assert application.stdout.readline() == "0\n"
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        if ending == "kill":
            application.kill()
        else:
            application.communicate("")
    assert wait_until(lambda: not folder.exists())


def test_a_graph_in_memory_is_not_lost_with_its_engine() -> None:
    graph = LadybugManager(":memory:", threads=1)
    write(graph, "CREATE NODE TABLE P(name STRING PRIMARY KEY)")
    write(graph, "CREATE (:P {name: 'Ann'})")
    for pid in own_children():
        os.kill(pid, signal.SIGKILL)
    assert names(graph) == ["Ann"]
    graph.close()


def test_a_forked_process_is_told_who_has_the_graph(path: Path) -> None:
    script = """
import os, sys
from agentkernel_kb.ladybug import LadybugManager
graph = LadybugManager(sys.argv[1], threads=1)
graph.write([{"text": "", "metadata": {"query": "CREATE NODE TABLE P(name STRING PRIMARY KEY)"}}])
forked = os.fork()
if not forked:
    try:
        graph.write([{"text": "", "metadata": {"query": "CREATE (:P {name: 'b'})"}}])
    except Exception as error:
        print(error, flush=True)
    os._exit(len(graph.query("MATCH (p:P) RETURN p")))
print(os.waitpid(forked, 0)[1])
graph.write([{"text": "", "metadata": {"query": "CREATE (:P {name: 'c'})"}}])
print(len(graph.query("MATCH (p:P) RETURN p")))
graph.close()
"""
    with start(script, str(path)) as application:
        told, status, found = (application.communicate("")[0]).splitlines()
    assert "is open in another process" in told
    assert (status, found) == ("0", "1")


def test_without_isolation_the_engine_is_in_this_process() -> None:
    before = own_children()
    graph = LadybugManager(":memory:", threads=1, isolate=False)
    write(graph, "CREATE NODE TABLE P(name STRING PRIMARY KEY)")
    assert names(graph) == []
    assert graph.ping().startswith("ladybug ")
    assert own_children() == before
    graph.close()


def test_the_engine_is_not_imported_where_it_does_not_run() -> None:
    script = IN_MEMORY.replace("sys.stdin.read()", "print('ladybug' in sys.modules)")
    with start(script) as application:
        assert application.communicate("")[0].split() == ["0", "False"]


def test_a_ping_reaches_the_engine(graph: LadybugManager) -> None:
    assert graph.ping(timeout=LONG).startswith("ladybug 0.")


def test_a_child_that_cannot_be_opened_is_an_error_of_the_connection(path: Path) -> None:
    path.write_bytes(b"not a graph" * 1_000)
    with pytest.raises(KnowledgeConnectionError):
        LadybugManager(path)
    assert path.read_bytes().startswith(b"not a graph")


# Turns.


def test_a_write_waits_for_reads_and_reads_that_come_later_wait_for_it() -> None:
    turns, order = Turns(), list[str]()

    def read(name: str) -> None:
        with turns.reading(Deadline(LONG)):
            order.append(name)

    def change() -> None:
        with turns.writing(Deadline(LONG)):
            order.append("write")

    with ThreadPoolExecutor() as threads:
        with turns.reading(Deadline(LONG)), turns.reading(Deadline(LONG)):
            waiting = [threads.submit(change)]
            time.sleep(0.2)
            waiting.append(threads.submit(read, "later"))
            time.sleep(0.2)
            assert order == []
        for each in waiting:
            each.result(LONG)
    assert order == ["write", "later"]


def test_who_waits_in_vain_is_told_and_makes_room() -> None:
    turns = Turns()
    with turns.reading(Deadline(LONG)):
        with pytest.raises(KnowledgeTimeoutError, match=r"Another call held .* 0\.1 s"), turns.writing(Deadline(0.1)):
            pytest.fail("nobody may write")
        with turns.reading(Deadline(LONG)):
            pass
    with (
        turns.writing(Deadline(LONG)),
        pytest.raises(KnowledgeTimeoutError, match=r"A write held .* 0\.1 s"),
        turns.reading(Deadline(0.1)),
    ):
        pytest.fail("nobody may read")
