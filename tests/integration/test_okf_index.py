"""The index of a bundle (X8): only what changed is read, old states go on serving, processes share it, damage is mended."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from okf_bundles import CountingStore, concept, ids, opened, write

from agentkernel_kb import KnowledgeBackendError, KnowledgeConnectionError, OKFManager
from agentkernel_kb.okf import database

PATIENCE_S = 30.0
DOCUMENTS: dict[str, str | bytes] = {f"area{n % 7}/c{n:03}.md": concept(f"Title {n}", f"body{n} shared") for n in range(150)}


def within_patience(holds: Callable[[], bool]) -> bool:
    """Wait until something holds; only a failing test waits long."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def counted(folder: Path, index: Path | None, **arguments: Any) -> tuple[CountingStore, OKFManager]:
    store = CountingStore(folder)
    return store, opened(folder, store=store, index=index, **arguments)


def index_file(folder: Path) -> Path:
    (found,) = folder.glob("*.db")
    return found


def test_x8_a_start_with_a_kept_index_reads_nothing(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    first, backend = counted(tmp_path / "x", tmp_path / "index")
    backend.close()
    second, backend = counted(tmp_path / "x", tmp_path / "index")
    assert (first.reads, second.reads) == (150, 0)
    assert ids(backend.search("body42")) == ["area0/c042.md"]
    backend.close()


def test_x8_a_start_reads_only_what_changed_and_forgets_what_is_gone(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    counted(tmp_path / "x", tmp_path / "index")[1].close()
    write(tmp_path / "x", {"area0/c042.md": concept("New title", "changed"), "new.md": concept("New", "fresh")})
    (tmp_path / "x/area1/c001.md").unlink()
    store, backend = counted(tmp_path / "x", tmp_path / "index")
    assert store.reads == 2
    assert [ids(backend.search(word)) for word in ("changed", "fresh", "body1", "body42")] == [
        ["area0/c042.md"],
        ["new.md"],
        [],
        [],
    ]
    assert backend.bundle.concept_count == 150
    backend.close()


def test_x8_an_index_made_at_once_says_what_one_that_grew_says(tmp_path: Path):
    body = "[a](/c{:03}.md) [b](c{:03}.md)\n知識 body{} shared"
    documents: dict[str, str | bytes] = {
        f"c{n:03}.md": concept(f"Título {n}", body.format(n * 7 % 230, n // 2, n), tags=f"[t{n % 9}, é]") for n in range(230)
    }
    documents |= {f"bad{n}.md": "---\ntype: [\n---\n" for n in range(3)}
    documents |= {"empty.md": "---\ntype: Note\n---\n", "log.md": "## x\n"}
    folder = write(tmp_path / "x", dict(list(documents.items())[:10]))
    grown = opened(folder, index=tmp_path / "grown")
    write(folder, documents)
    grown.reload()
    made = opened(folder, index=tmp_path / "made")
    for query in ("shared", "body42", "識", "título tag:é", "tag:t3 path:c0*", '"body7 shared"', "type:Note"):
        assert made.search(query, 300) == grown.search(query, 300) != []
    assert made.fetch(sorted(documents)) == grown.fetch(sorted(documents))
    assert made.bundle == grown.bundle
    assert made.bundle.diagnostic_count == 4
    made.close()
    grown.close()


def test_x8_large_documents_are_not_gathered_in_memory(tmp_path: Path):
    folder = write(tmp_path / "x", {f"c{n:02}.md": concept(f"Title {n}", "-" * (1 << 18)) for n in range(40)})
    tracemalloc.start()
    backend = opened(folder, index=tmp_path / "index")
    made = tracemalloc.get_traced_memory()[1]
    write(folder, {f"c{n:02}.md": concept(f"Title {n}", "=" * (1 << 18)) for n in range(40)})
    tracemalloc.reset_peak()
    backend.reload()
    refreshed = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(made, refreshed) < 9 << 20
    assert backend.bundle.concept_count == 40
    backend.close()


@pytest.mark.parametrize("kept", [True, False], ids=["on-disk", "in-memory"])
def test_x8_reload_sees_what_changed_was_added_moved_and_removed(tmp_path: Path, kept: bool):
    write(tmp_path / "x", DOCUMENTS)
    store, backend = counted(tmp_path / "x", tmp_path / "index" if kept else None, refresh_seconds=None)
    store.reads = 0
    write(tmp_path / "x", {"area0/c042.md": concept("New title", "changed")})
    (tmp_path / "x/area1/c001.md").rename(tmp_path / "x/moved.md")
    (tmp_path / "x/area2/c002.md").unlink()
    assert ids(backend.search("body1")) == ["area1/c001.md"]
    assert backend.reload().concept_count == 149
    assert store.reads == 2
    assert [ids(backend.search(word)) for word in ("changed", "body1", "body2")] == [["area0/c042.md"], ["moved.md"], []]
    backend.reload()
    assert store.reads == 2
    backend.close()


def test_x8_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a.md": concept("A", "first")}, refresh_seconds=None)
    before = (tmp_path / "x/a.md").stat()
    write(tmp_path / "x", {"a.md": concept("A", "other")})
    os.utime(tmp_path / "x/a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    backend.reload()
    assert ids(backend.search("other")) == ["a.md"]
    backend.close()


def test_x8_a_version_that_the_bundle_begins_to_declare_is_read_everywhere(tmp_path: Path):
    old = concept("A", verified="{by: human:a, at: 2026-01-01T00:00:00Z}", generated="{by: x/1, at: 2026-02-01T00:00:00Z}")
    backend = opened(tmp_path / "x", {"a.md": old, "README.md": "plain"}, refresh_seconds=None)
    assert (backend.browse()[0]["metadata"]["trust"], len(backend.get_diagnostics())) == ("human-reviewed", 1)
    write(tmp_path / "x", {"index.md": '---\nokf_version: "0.3"\n---\n# I\n'})
    backend.reload()
    assert (backend.search("type:Note")[0]["metadata"]["trust"], backend.get_diagnostics()) == ("unverified", [])
    backend.close()


# Refreshing.


def test_x8_a_call_that_is_due_sees_a_small_bundle_fresh(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a.md": concept("A")}, refresh_seconds=0.0)
    write(tmp_path / "x", {"b.md": concept("B", "newcomer")})
    assert within_patience(lambda: ids(backend.search("newcomer")) == ["b.md"])
    backend.close()


def test_x8_without_a_refresh_nothing_is_seen_before_reload(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a.md": concept("A")}, refresh_seconds=None)
    write(tmp_path / "x", {"b.md": concept("B", "newcomer")})
    assert list(backend.search("newcomer")) == []
    backend.reload()
    assert ids(backend.search("newcomer")) == ["b.md"]
    backend.close()


class SlowStore(CountingStore):
    """A folder whose walk waits until it is let go."""

    gate: threading.Event | None = None

    def scan(self, prefix: str = "", **options: Any) -> Any:
        if self.gate is not None:
            self.gate.wait(PATIENCE_S)
        return super().scan(prefix, **options)


def test_x8_readers_keep_the_old_state_while_a_refresh_goes_on(tmp_path: Path):
    write(tmp_path / "x", {"a.md": concept("A", "old words")})
    store = SlowStore(tmp_path / "x")
    backend = opened(tmp_path / "x", store=store, refresh_seconds=0.0)
    store.gate = threading.Event()
    write(tmp_path / "x", {"b.md": concept("B", "new words")})
    assert [ids(backend.search("words")) for _ in range(3)] == [["a.md"]] * 3
    store.gate.set()
    assert within_patience(lambda: len(backend.search("words")) == 2)
    backend.close()


@pytest.mark.parametrize("after", [None, 3], ids=["listing", "reading"])
@pytest.mark.parametrize("kept", [True, False], ids=["on-disk", "in-memory"])
def test_x8_an_outage_in_the_middle_leaves_the_old_state_serving_and_says_so(tmp_path: Path, after: int | None, kept: bool):
    write(tmp_path / "x", DOCUMENTS)
    store, backend = counted(tmp_path / "x", tmp_path / "index" if kept else None, refresh_seconds=0.0)
    write(tmp_path / "x", {path: concept("T", "changed") for path in list(DOCUMENTS)[:20]})
    store.reads, store.fails_after, store.failure = 0, after, KnowledgeConnectionError("The bucket does not answer.")
    assert within_patience(
        lambda: "The bucket does not answer" in " ".join([*ids(backend.search("x")), *backend.get_diagnostics()])
    )
    assert list(backend.search("changed")) == []
    assert backend.bundle.concept_count == 150
    assert "as of" in backend.get_diagnostics()[0]
    with pytest.raises(KnowledgeConnectionError):
        backend.reload()
    store.failure = None
    backend.reload()
    assert len(backend.search("changed", limit=30)) == 20
    assert backend.get_diagnostics() == []
    backend.close()


def test_x8_a_vanished_folder_is_an_outage_and_no_empty_bundle(tmp_path: Path):
    backend = opened(tmp_path / "x", {"a.md": concept("A", "words")}, refresh_seconds=0.0)
    (tmp_path / "x").rename(tmp_path / "away")
    assert within_patience(lambda: bool(backend.get_diagnostics()))
    assert ids(backend.search("words")) == ["a.md"]
    backend.close()


def test_x8_many_threads_read_while_the_bundle_changes(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    _, backend = counted(tmp_path / "x", tmp_path / "index", refresh_seconds=0.0)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(30):
                assert len(backend.search("shared", limit=200)) == 150
                assert len(backend.fetch(["area0/c042.md", "area1/c001.md"])) == 2
        except BaseException as error:  # noqa: BLE001 - whatever a thread meets fails the test
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for round_ in range(10):
        write(tmp_path, {"draft": concept(f"Round {round_}", "shared")})
        (tmp_path / "draft").replace(tmp_path / "x/area0/c042.md")
    for thread in threads:
        thread.join()
    backend.close()
    assert failures == []


# Damage.


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scribbled(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[8_192:] = b"\x5a" * (len(data) - 8_192)
    file.write_bytes(bytes(data))


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def replaced(file: Path) -> None:
    file.write_bytes(b"this is no database at all, but a text that somebody put here" * 100)


def another_database(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE meta (key TEXT, value)")
    other.close()


def removed(file: Path) -> None:
    file.unlink()


DAMAGES = [torn, scribbled, emptied, replaced, another_database, removed]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_x8_a_damaged_index_is_made_anew_at_the_start(tmp_path: Path, damage: Callable[[Path], None]):
    write(tmp_path / "x", DOCUMENTS)
    counted(tmp_path / "x", tmp_path / "index")[1].close()
    damage(index_file(tmp_path / "index"))
    _, backend = counted(tmp_path / "x", tmp_path / "index")
    assert ids(backend.search("body42")) == ["area0/c042.md"]
    assert len(backend.search("shared", limit=200)) == 150
    backend.close()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_x8_an_index_that_is_damaged_while_it_is_used_is_made_anew(tmp_path: Path, damage: Callable[[Path], None]):
    write(tmp_path / "x", DOCUMENTS)
    _, backend = counted(tmp_path / "x", tmp_path / "index", refresh_seconds=None)
    damage(index_file(tmp_path / "index"))
    write(tmp_path / "x", {"new.md": concept("New", "fresh")})
    backend.reload()
    assert ids(backend.search("fresh")) == ["new.md"]
    assert len(backend.search("shared", limit=200)) == 150
    backend.close()


def test_x8_a_draft_of_a_killed_process_is_cleared_away(tmp_path: Path):
    write(tmp_path / "x", DOCUMENTS)
    counted(tmp_path / "x", tmp_path / "index")[1].close()
    file = index_file(tmp_path / "index")
    draft = file.with_name(f"{file.name}.new-1-dead")
    draft.write_bytes(b"half an index")
    file.unlink()
    counted(tmp_path / "x", tmp_path / "index")[1].close()
    assert not draft.exists()


def test_x8_indexes_that_nobody_opened_for_long_are_cleared_away(tmp_path: Path):
    write(tmp_path / "old", {"a.md": concept("A")})
    counted(tmp_path / "old", tmp_path / "index")[1].close()
    old = index_file(tmp_path / "index")
    long_ago = time.time() - 40 * 86_400
    os.utime(old, (long_ago, long_ago))
    write(tmp_path / "x", {"a.md": concept("A")})
    counted(tmp_path / "x", tmp_path / "index")[1].close()
    assert not old.exists()
    assert index_file(tmp_path / "index")


# Where it is kept.


def test_x8_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    backend = opened(tmp_path / "x", {"a.md": concept("A", "words")}, index=tmp_path / "file" / "index")
    assert ids(backend.search("words")) == ["a.md"]
    assert "it is in memory" in backend.get_diagnostics()[0]
    backend.close()


def test_x8_the_cache_folder_of_the_user_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    opened(tmp_path / "x", {"a.md": concept("A")}, index="auto").close()
    assert index_file(tmp_path / "cache/agentkernel-kb/okf")
    assert sorted(place.name for place in (tmp_path / "x").iterdir()) == ["a.md"]


def test_x8_bundles_and_settings_have_indexes_of_their_own(tmp_path: Path):
    for name in ("x", "y"):
        opened(tmp_path / name, {"a.md": concept(name, f"in {name}")}, index=tmp_path / "index").close()
    opened(tmp_path / "x", index=tmp_path / "index", default_type="Page").close()
    assert len(list((tmp_path / "index").glob("*.db"))) == 3


def test_x8_an_sqlite_without_full_text_search_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database.schema, "TABLES", database.schema.TABLES.replace("fts5(", "fts5_that_is_not_there("))
    with pytest.raises(KnowledgeBackendError, match="no full-text search"):
        database.MemoryDatabase()


@pytest.mark.parametrize("kept", [True, False], ids=["on disk", "in memory"])
def test_x8_a_manager_that_is_dropped_closes_its_connections(tmp_path: Path, kept: bool):
    """Python says so from 3.13 on, where one is left to it."""
    backend = opened(tmp_path / "x", {"a.md": concept("A")}, index=tmp_path / "index" if kept else None)
    backend.search("a")
    with warnings.catch_warnings(record=True) as noted, unraisable() as raised:
        warnings.simplefilter("always")
        del backend
        gc.collect()
    assert (noted, raised) == ([], [])


@contextmanager
def unraisable() -> Generator[list[object]]:
    """Collect what is raised where nobody can catch it."""
    raised: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, raised.append
    try:
        yield raised
    finally:
        sys.unraisablehook = before
