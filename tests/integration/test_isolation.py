"""Engines in children (X1, X21): what a child may do, nothing of it reaches this process, and it ends in time."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

import agentkernel_kb
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.isolation import ChildEndedError, ChildPool, Launch

MEMORY_BYTES = 200_000_000
LONG = 60.0
HOLDS_THE_LOCK = 40
"""So many letters keep a regular expression, and with it the interpreter, busy for hours."""


def launch(**options: Any) -> Launch:
    return Launch("isolation_engine", options, MEMORY_BYTES)


@pytest.fixture
def pool() -> Iterator[ChildPool]:
    pool = ChildPool(launch(), "engine", most=2)
    yield pool
    pool.close()


def ask(pool: ChildPool, *request: Any, seconds: float = LONG) -> Any:
    return pool.call(list(request), Deadline(seconds))


def pid_of(pool: ChildPool) -> int:
    return ask(pool, "facts")["pid"]


def has_ended(pid: int, seconds: float = 20.0) -> bool:
    """Tell whether a process that is nobody's child any more, or was waited for, ends within some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def appears(file: Path, seconds: float = 20.0) -> bool:
    """Tell whether there is a file within some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not file.exists():
        time.sleep(0.02)
    return file.exists()


# Values.


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "Zürich \ud800 \x00 東京",
        2**70,
        -(2**63) - 1,
        1.5,
        math.inf,
        b"\x00\xff",
        [1, [2, (3, "x")], []],
        {1: {"a": None}, (1, 2): [b""], "map": {"x": 1}},
        date(2024, 2, 29),
        datetime(2024, 5, 1, 10, 0, 0, 7),
        datetime(2024, 5, 1, 10, tzinfo=UTC),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"), fold=1),
        clock(10, 30, tzinfo=timezone(timedelta(hours=2))),
        timedelta(days=-1, seconds=3, microseconds=4),
        Decimal("1.20"),
        UUID(int=7),
    ],
)
def test_a_value_comes_back_as_it_was(pool: ChildPool, value: object) -> None:
    returned = ask(pool, "echo", value)
    assert returned == value
    assert type(returned) is type(value)
    assert repr(returned) == repr(value)


def test_nan_comes_back_too(pool: ChildPool) -> None:
    assert math.isnan(ask(pool, "echo", math.nan))


def test_what_has_no_form_is_not_handed_over_and_the_child_goes_on(pool: ChildPool) -> None:
    before = pid_of(pool)
    with pytest.raises(TypeError, match="type object cannot be handed over"):
        ask(pool, "echo", object())
    with pytest.raises(KnowledgeBackendError, match="RecursionError"):
        ask(pool, "nest", 100_000)
    assert pid_of(pool) == before


# What the child is given.


def test_the_child_imports_the_same_package_and_sees_hardly_any_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("API_KEY", "swordfish")
    pool = ChildPool(launch(colour="red"), "engine")
    facts = ask(pool, "facts")
    pool.close()
    assert facts["pid"] != os.getpid()
    assert facts["options"] == {"colour": "red"}
    assert str(Path(agentkernel_kb.__file__).parents[1]) in facts["path"]
    assert "swordfish" not in str(facts["environment"])


SCRIPT = """
import sys
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.isolation import ChildPool, Launch
pool = ChildPool(Launch("isolation_engine"), "engine")
print(pool.call(["facts"], Deadline(60))["path"][:2], flush=True)
pool.call(["print", "noise"], Deadline(60))
"""


def run_script(script: str, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_child_imports_from_a_zip_file_and_says_nothing_on_the_terminal(tmp_path: Path) -> None:
    source = Path(agentkernel_kb.__file__).parent
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for file in source.rglob("*.py"):
            archive.write(file, Path("agentkernel_kb", file.relative_to(source)))
        archive.write(Path(__file__).parents[1] / "isolation_engine.py", "isolation_engine.py")
    done = run_script(SCRIPT, path=str(tmp_path / "app.zip"))
    assert done.stderr == ""
    assert str(tmp_path / "app.zip") in done.stdout
    assert "noise" not in done.stdout


def test_the_users_main_module_is_not_run_again(tmp_path: Path) -> None:
    """A script without the usual `if __name__ == "__main__"` works."""
    (tmp_path / "main.py").write_text(SCRIPT.replace("print(", "print('once', "))
    path = os.pathsep.join([str(Path(agentkernel_kb.__file__).parents[1]), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.count("once")) == (0, 1)


# What goes wrong.


@pytest.mark.parametrize(("request_", "how"), [(["die"], "SIGSEGV"), (["leave", 3], "exit status 3")])
def test_a_request_that_ends_its_child_is_one_error_and_the_next_call_gets_a_new_one(
    pool: ChildPool, request_: list[Any], how: str
) -> None:
    before = pid_of(pool)
    with pytest.raises(ChildEndedError, match=how) as caught:
        ask(pool, *request_)
    assert isinstance(caught.value, KnowledgeQueryError)
    assert pid_of(pool) != before


def test_other_calls_are_not_affected_by_the_end_of_a_child(pool: ChildPool) -> None:
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(ask, pool, "wait", 1.0)
        with pytest.raises(ChildEndedError):
            ask(pool, "die")
        assert slow.result() == "waited"


def test_an_error_of_the_engine_arrives_with_its_type_its_fields_and_its_cause(pool: ChildPool) -> None:
    with pytest.raises(KnowledgeQueryError, match="no such table") as caught:
        ask(pool, "fail", "query")
    assert str(caught.value.__cause__) == "said the engine"
    with pytest.raises(KnowledgeGuardError) as refused:
        ask(pool, "fail", "guard")
    assert (refused.value.reason, refused.value.part, refused.value.position) == ("This writes", "DROP", 7)
    with pytest.raises(KnowledgeConnectionError) as missing:
        ask(pool, "fail", "connection")
    assert missing.value.state == "missing"
    with pytest.raises(KnowledgeBackendError, match=r"The engine failed \(LookupError\)"):
        ask(pool, "fail", "other")


def test_an_engine_that_cannot_be_opened_says_why() -> None:
    for opening, kind, message in (
        ("refuse", AKConfigError, "there is no such file"),
        ("die", KnowledgeConnectionError, "ended while it was opened .SIGKILL."),
    ):
        pool = ChildPool(launch(opening=opening), "engine")
        with pytest.raises(kind, match=message):
            pool.start(LONG)
        pool.close()
    nowhere = ChildPool(Launch("no_such_engine"), "engine")
    with pytest.raises(KnowledgeBackendError, match="ModuleNotFoundError"):
        nowhere.start(LONG)
    nowhere.close()


@pytest.mark.skipif(sys.platform != "linux", reason="no other system bounds the memory of a process so")
def test_memory_is_bounded_and_a_child_that_keeps_much_of_it_is_replaced(pool: ChildPool) -> None:
    before = pid_of(pool)
    with pytest.raises(KnowledgeQueryError, match="more memory"):
        ask(pool, "fill", 10 * MEMORY_BYTES)
    assert pid_of(pool) == before
    assert ask(pool, "keep", MEMORY_BYTES * 2 // 3) == MEMORY_BYTES * 2 // 3
    assert pid_of(pool) != before


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_a_child_leaves_no_dump_of_its_memory(pool: ChildPool) -> None:
    limits = Path(f"/proc/{pid_of(pool)}/limits").read_text()
    (line,) = (line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert line.split()[4] in ("0", "1")


# Time.


@pytest.mark.parametrize("request_", [["wait", LONG], ["hold the lock", HOLDS_THE_LOCK]])
def test_a_call_ends_at_its_deadline_whatever_the_child_does(pool: ChildPool, request_: list[Any]) -> None:
    started = time.monotonic()
    pid = pid_of(pool)
    with pytest.raises(KnowledgeTimeoutError, match=r"within 0\.5 s"):
        ask(pool, *request_, seconds=0.5)
    assert time.monotonic() - started < LONG / 2
    assert ask(pool, "echo", 1) == 1
    if request_[0] == "hold the lock":
        assert has_ended(pid)
    else:
        assert pid_of(pool) == pid, "what can be interrupted goes on"


def test_no_time_left_is_said_at_once(pool: ChildPool) -> None:
    with pytest.raises(KnowledgeTimeoutError, match="no time left"):
        ask(pool, "echo", 1, seconds=0)


def test_a_call_that_finds_all_children_busy_waits_for_one(pool: ChildPool) -> None:
    with ThreadPoolExecutor() as threads:
        busy = [threads.submit(ask, pool, "wait", 2.0) for _ in range(2)]
        time.sleep(0.5)
        with pytest.raises(KnowledgeTimeoutError, match="All 2 processes of 'engine' were busy"):
            ask(pool, "echo", 1, seconds=0.2)
        assert ask(pool, "echo", 1) == 1
        assert [each.result() for each in busy] == ["waited", "waited"]


def test_a_deadline_that_is_brought_forward_frees_the_child(pool: ChildPool) -> None:
    deadline = Deadline(LONG)
    started = time.monotonic()
    threading.Timer(0.3, deadline.end).start()
    with pytest.raises(KnowledgeTimeoutError):
        pool.call(["wait", LONG], deadline)
    assert time.monotonic() - started < LONG / 2


# Children come and go.


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
