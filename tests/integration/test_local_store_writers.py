"""Writers of one folder: killed at any moment, in several processes, beside whoever swaps folders for links (A14, A15)."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from killed_writers import KilledWriters

from agentkernel_kb import DocumentChangedError, KnowledgeError, KnowledgeTimeoutError, LocalDocumentStore

SECRET = b"what nobody may read"
KILLS = int(os.environ.get("KB_STRESS_KILLS", "12"))
RACES = int(os.environ.get("KB_STRESS_RACES", "1500"))


@contextmanager
def process(program: str, *arguments: str | Path) -> Generator[subprocess.Popen[str]]:
    """Run a program in a process of its own, which is ended when the test has."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                running.kill()


def names(folder: Path) -> list[str]:
    """Return all names in a folder, hidden ones included."""
    return sorted(found.name for found in folder.iterdir())


# Killed writers.

ENDLESS_WRITER = """
import itertools
from agentkernel_kb import LocalDocumentStore

def write(say, root, name, first):
    store = LocalDocumentStore(root)
    for number in itertools.count(int(first)):
        store.write_bytes("shared.md", f"{name} {number:09}\\n".encode() * 3_000)
        store.write_bytes(f"{name}/own.md", f"{number:09}\\n".encode() * 3_000)
        say(number)
"""


def test_a_killed_writer_leaves_the_old_document_or_the_new_one(tmp_path: Path) -> None:
    """Every write that was acknowledged is there, nothing is a mixture, and no other name is ever listed."""
    store = LocalDocumentStore(tmp_path)
    reached = {"one": 0, "two": 0}
    with KilledWriters(ENDLESS_WRITER) as writers:
        for _ in range(KILLS):
            said = writers.run({name: (str(tmp_path), name, str(first)) for name, first in reached.items()})
            for name, numbers in said.items():
                lines = store.read_bytes(f"{name}/own.md").split()
                assert (len(lines), len(set(lines))) == (3_000, 1)
                assert int(lines[0]) in (int(numbers[-1]), int(numbers[-1]) + 1)
                reached[name] = int(numbers[-1]) + 2
            shared = store.read_bytes("shared.md").splitlines()
            assert (len(shared), len(set(shared))) == (3_000, 1)
            assert store.list() == ["one/own.md", "shared.md", "two/own.md"]


def test_what_a_killed_writer_left_is_never_listed_and_is_cleaned_up(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    left, young, held = (tmp_path / f"a/.kb-{digit * 16}.tmp" for digit in "012")
    for file in (left, young, held):
        file.write_bytes(b"half a docu")
    for file in (left, held):
        os.utime(file, (1, 1))
    store = LocalDocumentStore(tmp_path)
    assert store.list() == store.list("a") == []
    with held.open() as filling:
        fcntl.flock(filling, fcntl.LOCK_EX)  # Its writer is alive, however long it takes.
        store.write_bytes("a/x.md", b"x")
    assert names(tmp_path / "a") == [young.name, held.name, "x.md"]
    LocalDocumentStore(tmp_path).write_bytes("a/x.md", b"x")
    assert names(tmp_path / "a") == [young.name, "x.md"]


def test_a_writer_leaves_nothing_but_the_document(tmp_path: Path) -> None:
    store = LocalDocumentStore(tmp_path)
    version = store.write_bytes("x.md", b"1").version
    store.write_bytes("x.md", b"2", if_version=version)
    with pytest.raises(DocumentChangedError):
        store.write_bytes("x.md", b"3", if_version=version)
    with pytest.raises(DocumentChangedError):
        store.write_bytes("new/folder/x.md", b"3", if_version=version)
    assert names(tmp_path) == ["x.md"]


# Several processes.

ADDER = """
    import sys
    from agentkernel_kb import DocumentChangedError, LocalDocumentStore
    store, added = LocalDocumentStore(sys.argv[1]), 0
    while added < 40:
        seen = store.stat("log.md").version
        text = store.read_bytes("log.md")
        try:
            store.write_bytes("log.md", text + f"{sys.argv[2]}-{added}\\n".encode(), if_version=seen)
        except DocumentChangedError:
            continue
        added += 1
    print("done")
"""


def test_no_change_is_lost_between_processes(tmp_path: Path) -> None:
    store = LocalDocumentStore(tmp_path)
    store.write_bytes("log.md", b"")
    with process(ADDER, tmp_path, "one") as one, process(ADDER, tmp_path, "two") as two:
        assert [writer.communicate(timeout=100)[0] for writer in (one, two)] == ["done\n", "done\n"]
    lines = store.read_bytes("log.md").decode().split()
    assert sorted(lines) == sorted(f"{name}-{number}" for name in ("one", "two") for number in range(40))


HOLDER = """
    import fcntl, os, sys, time
    folder = os.open(sys.argv[1], os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_writer_that_is_kept_waiting_gives_up_and_a_killed_one_keeps_nobody_waiting(tmp_path: Path) -> None:
    store = LocalDocumentStore(tmp_path, lock_timeout_s=0.2)
    store.write_bytes("x.md", b"old")
    with process(HOLDER, tmp_path) as holder:
        assert (holder.stdout or sys.stdin).readline() == "held\n"
        with pytest.raises(KnowledgeTimeoutError, match=r"0\.2 s"):
            store.write_bytes("x.md", b"new")
        with pytest.raises(KnowledgeTimeoutError):
            store.delete("x.md")
        assert (store.read_bytes("x.md"), names(tmp_path)) == (b"old", ["x.md"])
        store.write_bytes("elsewhere/x.md", b"another folder is free")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        store.write_bytes("x.md", b"new")
    assert store.read_bytes("x.md") == b"new"


def test_threads_that_write_one_folder_do_not_wait_for_each_other_forever(tmp_path: Path) -> None:
    store = LocalDocumentStore(tmp_path)
    threads = [
        threading.Thread(target=lambda: [store.write_bytes(f"{turn % 3}.md", b"%d" % turn) for turn in range(30)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert names(tmp_path) == ["0.md", "1.md", "2.md"]


# Swapped for links.


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A root whose folder `swap` and document `swap.md` have a twin outside."""
    for folder in ("outside/deep", "bundle/swap/deep"):
        (tmp_path / folder).mkdir(parents=True)
    for path in ("outside/x.md", "outside/deep/x.md", "outside/swap.md"):
        (tmp_path / path).write_bytes(SECRET)
    for path in ("bundle/swap/x.md", "bundle/swap/deep/x.md", "bundle/swap.md"):
        (tmp_path / path).write_bytes(b"inside")
    return tmp_path / "bundle"


@contextmanager
def swapping(real: Path, target: Path) -> Generator[None]:
    """Put a link to `target` in the place of `real`, and `real` back, over and over."""
    parked, link, stop = real.with_name(".parked"), real.with_name(".link"), threading.Event()

    def swap() -> None:
        while not stop.is_set():
            real.rename(parked)
            link.symlink_to(target)
            _take_place(link, real)
            real.unlink()
            _take_place(parked, real)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("operation", ["read", "prefix", "many", "stat", "list", "scan", "write", "write deep", "delete"])
def test_a15_a_folder_that_is_swapped_for_a_link_never_leads_out(trap: Path, operation: str) -> None:
    store = LocalDocumentStore(trap)
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: store.read_bytes("swap/x.md"),
        "prefix": lambda: store.read_prefix_bytes("swap/deep/x.md", 100),
        "many": lambda: tuple(data for _, data in store.read_many(["swap/x.md"] * 3) if isinstance(data, bytes)),
        "stat": lambda: store.stat("swap/x.md").size,
        "list": lambda: tuple(store.list("swap")),
        "scan": lambda: tuple(found.size for found in store.scan()),
        "write": lambda: store.write_bytes("swap/x.md", b"inside").size,
        "write deep": lambda: store.write_bytes("swap/new/folder/x.md", b"inside").size,
        "delete": lambda: store.delete("swap/deep/x.md"),
    }
    outside = trap.parent / "outside"
    before = _contents(outside)
    with swapping(trap / "swap", outside):
        seen = {_seen(calls[operation]) for _ in range(RACES if operation in ("read", "prefix", "stat") else RACES // 10)}
    assert seen - {KnowledgeError, FileNotFoundError, None} <= _inside(operation), seen
    assert _contents(outside) == before


def test_a15_a_document_that_is_swapped_for_a_link_never_leads_out(trap: Path) -> None:
    store = LocalDocumentStore(trap)
    outside = trap.parent / "outside"
    before = _contents(outside)
    with swapping(trap / "swap.md", outside / "swap.md"):
        read = {_seen(lambda: store.read_bytes("swap.md")) for _ in range(RACES)}
        sizes = {_seen(lambda: store.stat("swap.md").size) for _ in range(RACES)}
        for number in range(RACES // 10):
            _seen(partial(store.write_bytes, "swap.md", b"inside", if_missing=number % 2 == 0))
    refusals = {KnowledgeError, FileNotFoundError}
    assert read - refusals <= {b"inside"}
    assert sizes - refusals <= {6}
    assert _contents(outside) == before


def _take_place(name: Path, place: Path) -> None:
    """Give a file the name `place`, of which a writer may just have made a folder."""
    while True:
        try:
            name.rename(place)
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
        else:
            return


def _seen(call: Callable[[], object]) -> object:
    try:
        return call()
    except KnowledgeError:
        return KnowledgeError
    except FileNotFoundError:
        return FileNotFoundError


def _inside(operation: str) -> set[object]:
    """Return what an operation may see of the folder itself, whole or on its way in and out."""
    if operation == "list":
        return {(), ("swap/deep/x.md", "swap/x.md"), ("swap/x.md",), ("swap/deep/x.md",)}
    if operation == "many":
        return {(b"inside",) * count for count in range(4)}
    if operation == "scan":
        return {(6,) * count for count in range(4)}
    return {b"inside", 6}


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() if file.is_file() else b"" for file in folder.rglob("*")}
