"""Children of a pool come and go (X1, X21): started as they are needed, replaced when they end, and gone with their parent."""

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
from isolation_pools import HOLDS_THE_LOCK, LONG, appears, ask, has_ended, launch, pid_of, run_script

import agentkernel_kb
from agentkernel_kb.errors import (
    KnowledgeConnectionError,
    KnowledgeStateError,
)
from agentkernel_kb.isolation import ChildEndedError, ChildPool


@pytest.fixture
def pool() -> Iterator[ChildPool]:
    pool = ChildPool(launch(), "engine", most=2)
    yield pool
    pool.close()


def test_children_are_started_as_they_are_needed_and_end_when_they_are_not() -> None:
    pool = ChildPool(launch(), "engine", most=3, idle_seconds=0.3)
    with ThreadPoolExecutor() as threads:
        pids = set(threads.map(lambda _: ask(pool, "pid after", 3.0), range(3)))
    assert len(pids) == 3
    until = time.monotonic() + 20
    while time.monotonic() < until and sum(not has_ended(pid, 0.1) for pid in pids) > 1:
        time.sleep(0.1)
    assert [pid for pid in pids if not has_ended(pid, 0.1)] == [pid_of(pool)], "the last one stays"
    pool.close()


def test_a_child_that_was_ended_from_outside_is_replaced_unseen(pool: ChildPool) -> None:
    pid = pid_of(pool)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert pid_of(pool) != pid


def ended_before_it_begins(pool: ChildPool) -> Any:
    """Ask a child that stands still, and end it before it can begin."""
    pid = pid_of(pool)
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(pid_of, pool)
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        return asked.result(LONG) != pid


def test_what_a_child_had_not_begun_when_it_ended_is_asked_again_of_another(pool: ChildPool) -> None:
    assert ended_before_it_begins(pool)


def test_where_nothing_is_repeated_the_error_says_that_nothing_was_done() -> None:
    pool = ChildPool(launch(), "engine", repeats=False)
    with pytest.raises(KnowledgeConnectionError, match=r"before it began .SIGKILL.\. Nothing was done") as caught:
        ended_before_it_begins(pool)
    assert caught.value.state == "unreachable"
    pool.close()


def test_what_ends_every_child_that_begins_it_is_not_repeated(pool: ChildPool, tmp_path: Path) -> None:
    with pytest.raises(ChildEndedError):
        ask(pool, "count and die", str(tmp_path / "began"))
    assert (tmp_path / "began").read_text() == "."


def test_closing_ends_all_children_and_lets_idle_ones_close_their_engine(tmp_path: Path) -> None:
    pool = ChildPool(launch(closed=str(tmp_path / "closed")), "engine", most=2)
    idle = pid_of(pool)
    with ThreadPoolExecutor() as threads:
        busy = threads.submit(ask, pool, "hold the lock", HOLDS_THE_LOCK)
        time.sleep(0.3)
        assert ask(pool, "echo", 1) == 1
        pool.close()
        pool.close()
        with pytest.raises(KnowledgeStateError, match="'engine' is closed"):
            busy.result(20)
    assert (tmp_path / "closed").read_text() == "closed"
    assert has_ended(idle)
    with pytest.raises(KnowledgeStateError, match="'engine' is closed"):
        ask(pool, "echo", 1)


def test_a_pool_that_is_dropped_takes_its_children_along() -> None:
    pool = ChildPool(launch(), "engine")
    pid = pid_of(pool)
    del pool
    assert has_ended(pid)


PARENT = """
import sys, threading
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.isolation import ChildPool, Launch
pool = ChildPool(Launch("isolation_engine", {"closed": sys.argv[1]}), "engine", most=1)
print(pool.call(["facts"], Deadline(60))["pid"], flush=True)
if sys.argv[2:]:
    threading.Thread(target=pool.call, args=([sys.argv[2], float(sys.argv[3])], Deadline(1.0)), daemon=True).start()
    threading.Event().wait(0.3)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("busy", [[], ["wait", "3600"], ["hold the lock", str(HOLDS_THE_LOCK)]], ids=["idle", "wait", "hold"])
def test_children_end_with_their_parent_however_it_ends(tmp_path: Path, busy: list[str]) -> None:
    """An idle child closes its engine; one that can be interrupted ends too; one that cannot ends soon after its deadline."""
    if busy[:1] == ["hold the lock"]:
        busy = ["hold the lock", "40"]
    script = PARENT.replace("float(sys.argv[3])", "int(sys.argv[3])")
    path = os.pathsep.join([str(Path(agentkernel_kb.__file__).parents[1]), str(Path(__file__).parents[1])])
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "closed"), *busy],
        env={"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
    assert has_ended(pid)
    assert (tmp_path / "closed").exists() == (busy[:1] != ["hold the lock"])


def test_an_engine_whose_parent_ends_while_it_opens_is_closed(tmp_path: Path) -> None:
    options = {"opening": str(tmp_path / "opening"), "closed": str(tmp_path / "closed")}
    script = "import sys; from agentkernel_kb.isolation import ChildPool, Launch; "
    script += f"ChildPool(Launch('isolation_engine', {options!r}), 'engine').start(60)"
    path = os.pathsep.join([str(Path(agentkernel_kb.__file__).parents[1]), str(Path(__file__).parents[1])])
    with subprocess.Popen([sys.executable, "-c", script], env={"PYTHONPATH": path}) as parent:
        assert appears(tmp_path / "opening")
        parent.kill()
    (tmp_path / "opening").unlink()
    assert appears(tmp_path / "closed")


FORK = """
import os, sys, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # Python 3.12 tells every fork so.
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.isolation import ChildPool, Launch
pool = ChildPool(Launch("isolation_engine"), "engine")
first = pool.call(["facts"], Deadline(60))["pid"]
forked = os.fork()
if not forked:
    second = pool.call(["facts"], Deadline(60))["pid"]
    sys.exit(0 if second != first else 1)
_, status = os.waitpid(forked, 0)
again = pool.call(["facts"], Deadline(60))["pid"]
pool.close()
print(status, again == first)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork_both_processes_have_children_of_their_own() -> None:
    path = os.pathsep.join([str(Path(agentkernel_kb.__file__).parents[1]), str(Path(__file__).parents[1])])
    done = run_script(FORK, path=path)
    assert (done.stdout, done.stderr) == ("0 True\n", "")


def test_many_threads_share_a_pool(pool: ChildPool) -> None:
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(lambda number: ask(pool, "echo", number), range(200))) == list(range(200))


async def test_a_call_from_an_event_loop_does_not_hold_it_up(pool: ChildPool) -> None:
    ticks = 0
    call = asyncio.ensure_future(asyncio.to_thread(ask, pool, "wait", 0.5))
    while not call.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert call.result() == "waited"
    assert ticks > 5
