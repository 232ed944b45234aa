"""Engines in children (X1, X21): what a child may do, nothing of it reaches this process, and it ends in time."""

from __future__ import annotations

import math
import os
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
from isolation_pools import HOLDS_THE_LOCK, LONG, MEMORY_BYTES, ask, has_ended, launch, pid_of, run_script

import agentkernel_kb
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.isolation import ChildEndedError, ChildPool, Launch


@pytest.fixture
def pool() -> Iterator[ChildPool]:
    pool = ChildPool(launch(), "engine", most=2)
    yield pool
    pool.close()


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
