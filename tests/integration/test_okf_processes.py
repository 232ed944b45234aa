"""One index of a bundle, used by several processes (X8): each sees what the others write, a fork has its own connections."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from okf_bundles import CountingStore, concept, ids, opened, write

from agentkernel_kb import OKFManager
from agentkernel_kb.okf import database

PATIENCE_S = 30.0
DOCUMENTS: dict[str, str | bytes] = {f"area{n % 7}/c{n:03}.md": concept(f"Title {n}", f"body{n} shared") for n in range(150)}


def index_file(folder: Path) -> Path:
    """Return the one index in a folder."""
    (file,) = folder.glob("*.db")
    return file


def counted(folder: Path, index: Path | None, **arguments: Any) -> tuple[CountingStore, OKFManager]:
    store = CountingStore(folder)
    return store, opened(folder, store=store, index=index, **arguments)


OPENER = """
import sys
from agentkernel_kb import LocalDocumentStore, OKFManager
backend = OKFManager(LocalDocumentStore(sys.argv[1]), index=sys.argv[2], refresh_seconds=0.0)
for _ in range(int(sys.argv[3])):
    assert len(backend.search("shared", limit=200)) == 150
    backend.add([{"text": f"Note of {sys.argv[4]} number {_}", "metadata": {}}])
    assert backend.search(f"note {sys.argv[4]} number")
backend.close()
"""


def test_x8_processes_share_one_index_and_see_what_the_others_write(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    command = [sys.executable, "-c", OPENER, str(tmp_path / "x"), str(tmp_path / "index"), "8"]
    started = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("one", "two", "three")]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert ended == [("", 0)] * 3
    _, backend = counted(tmp_path / "x", tmp_path / "index")
    assert backend.bundle.concept_count == 150 + 24
    assert len(list((tmp_path / "index").glob("*.db"))) == 1
    assert list((tmp_path / "index").glob("*.new-*")) == []
    backend.close()


def test_x8_an_index_that_another_process_replaced_is_taken_over(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    _, first = counted(tmp_path / "x", tmp_path / "index", refresh_seconds=None)
    shutil.copytree(tmp_path / "index", tmp_path / "copy")
    database.remove(index_file(tmp_path / "index"))
    _, second = counted(tmp_path / "x", tmp_path / "index", refresh_seconds=None)
    second.add([{"text": "Written by the second", "metadata": {}}])
    first.reload()
    assert len(first.search("written second")) == 1
    first.close()
    second.close()


def asked_in_a_fork(backend: OKFManager, answers: Any) -> None:
    answers.put(ids(backend.search("body42")))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_x8_a_fork_reads_through_connections_of_its_own(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    _, backend = counted(tmp_path / "x", tmp_path / "index", refresh_seconds=None)
    backend.search("shared")
    context = multiprocessing.get_context("fork")
    answers: Any = context.Queue()
    process = context.Process(target=asked_in_a_fork, args=(backend, answers))
    process.start()
    assert answers.get(timeout=PATIENCE_S) == ["area0/c042.md"]
    process.join()
    assert ids(backend.search("body42")) == ["area0/c042.md"]
    backend.close()
