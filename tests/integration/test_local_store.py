"""What a folder does to a store: names, depth, modes and a root that goes away (A14, A15)."""

from __future__ import annotations

import errno
import gc
import os
import resource
import stat
import subprocess
import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_folders import made_root, names, skipped

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgePathError,
    LocalDocumentStore,
)
from agentkernel_kb.testing.stores.samples import operations, outcome


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a store, with a little in it and a secret beside it."""
    return made_root(tmp_path)


@pytest.fixture
def store(root: Path) -> LocalDocumentStore:
    """The store of that root."""
    return LocalDocumentStore(root)


def run_python(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


# Names.


def test_hidden_names_are_neither_listed_nor_reached(store: LocalDocumentStore, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git/config").write_bytes(b"[remote]")
    (root / "a/.DS_Store").write_bytes(b"")
    assert (store.list(), skipped(store)) == (["a/b/y.md", "a/x.md"], {})
    assert outcome(lambda: store.read_bytes(".git/config")) is KnowledgePathError


@pytest.mark.parametrize("name", [b"latin-\xe9.md", b"back\\slash.md", b"new\nline.md", b"C:drive.md", b"\xff"])
def test_names_that_cannot_be_paths_are_passed_over_and_named(store: LocalDocumentStore, root: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"odd")
    assert store.list() == ["a/b/y.md", "a/x.md"]
    (path,) = skipped(store)
    path.encode()


def test_documents_that_differ_only_in_unicode_form_are_each_reached_by_their_own(
    store: LocalDocumentStore, root: Path
) -> None:
    composed, decomposed = "caf\u00e9.md", "cafe\u0301.md"
    (root / composed).write_bytes(b"composed")
    (root / decomposed).write_bytes(b"decomposed")
    if len(list(root.iterdir())) < 3:
        pytest.skip("this file system holds one form only")
    assert (store.read_bytes(composed), store.read_bytes(decomposed)) == (b"composed", b"decomposed")


def test_a_name_that_could_be_two_documents_is_refused(store: LocalDocumentStore, root: Path) -> None:
    forms = ("\u1e9b\u0323.md", "\u017f\u0323\u0307.md", "\u017f\u0307\u0323.md")
    assert len({unicodedata.normalize("NFC", form) for form in forms}) == 1
    for form in forms[1:]:
        (root / form).write_bytes(b"")
    assert len(list(root.iterdir())) == 3
    with pytest.raises(KnowledgePathError, match="2 documents"):
        store.read_bytes(forms[0])


def test_folders_are_found_under_either_form(store: LocalDocumentStore, root: Path) -> None:
    (root / "u\u0308ber/cafe\u0301").mkdir(parents=True)
    (root / "u\u0308ber/cafe\u0301/x.md").write_bytes(b"found")
    composed = "\u00fcber/caf\u00e9/x.md"
    assert store.read_bytes(composed) == b"found"
    assert store.stat(composed).path == "u\u0308ber/cafe\u0301/x.md"
    assert store.list("\u00fcber") == ["u\u0308ber/cafe\u0301/x.md"]
    store.write_bytes("\u00fcber/new.md", b"")
    assert len(list(root.iterdir())) == 2


def test_a_name_of_255_bytes_is_written_and_one_more_is_refused(store: LocalDocumentStore) -> None:
    store.write_bytes("\U0001f389" * 63 + ".md", b"longest")
    assert store.read_bytes("\U0001f389" * 63 + ".md") == b"longest"
    for operation in (store.read_bytes, store.exists, store.stat, store.list, lambda path: store.write_bytes(path, b"")):
        with pytest.raises(KnowledgePathError):
            operation("x" * 256)


# Depth.


@pytest.fixture
def removed(root: Path) -> Iterator[None]:
    """Remove the folder in the end: Python, and with it pytest, can't remove what is that deep."""
    yield
    subprocess.run(["rm", "-rf", str(root)], check=True)


@pytest.mark.usefixtures("removed")
def test_a_tree_of_a_thousand_levels_is_walked_with_few_descriptors(root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    for _ in range(1_000):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
        os.close(os.open("x.md", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder))
    os.close(folder)
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = Path("/proc/self/fd")
    used = len(list(descriptors.iterdir())) if descriptors.exists() else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, used + 100), hard))
    try:
        listed = LocalDocumentStore(root).list("d")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))
    assert (len(listed), listed == sorted(listed)) == (1_000, True)
    assert LocalDocumentStore(root).read_bytes("d/" * 1_000 + "x.md") == b""


@pytest.mark.usefixtures("removed")
def test_what_is_deeper_than_a_path_may_be_is_passed_over(store: LocalDocumentStore, root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    assert store.list() == ["a/b/y.md", "a/x.md"]
    assert ["bytes" in reason for reason in skipped(store).values()] == [True]


# Rights, and a root that is not what it was.

AS_NOBODY = """
    import os, sys
    from agentkernel_kb import KnowledgeBackendError, KnowledgeConnectionError, LocalDocumentStore
    import fcntl
    if os.geteuid() == 0:  # Who may do all is refused nothing.
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
    store, skipped = LocalDocumentStore(sys.argv[1]), {}
    assert [found.path for found in store.scan(on_skip=skipped.__setitem__)] == ["open.md"], store.list()
    assert sorted(skipped) == ["locked", "locked.md"], skipped
    assert store.exists("locked.md")
    for path in ("locked.md", "locked/x.md"):
        try:
            store.read_bytes(path)
        except KnowledgeBackendError as error:
            assert "Permission denied" in str(error), error
        else:
            raise AssertionError(path)
    assert store.writable is False
    declared = LocalDocumentStore(sys.argv[1], writable=True)
    try:
        declared.write_bytes("open.md", b"new")
    except KnowledgeBackendError as error:
        assert "read-only" in str(error), error
    else:
        raise AssertionError("written")
    try:
        LocalDocumentStore(sys.argv[1] + "/locked").list()
    except KnowledgeConnectionError as error:
        assert error.state == "unauthorized", error.state
    else:
        raise AssertionError("listed")
"""


def test_what_may_not_be_read_is_passed_over_and_clear_where_it_is_asked_for(tmp_path: Path) -> None:
    root = tmp_path / "bundle"
    (root / "locked").mkdir(parents=True)
    for name in ("open.md", "locked.md", "locked/x.md"):
        (root / name).write_bytes(b"old")
    for name, mode in {"open.md": 0o444, "locked.md": 0, "locked": 0, ".": 0o555}.items():
        (root / name).chmod(mode)
    for folder in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and folder.stat().st_uid == 0 and folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o001)
    try:
        finished = run_python(AS_NOBODY, root)
    finally:
        (root / "locked").chmod(0o755)
        root.chmod(0o755)
    assert finished.returncode == 0, finished.stderr


def test_a_root_that_is_not_there_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name, fault in {"nowhere": "is not there", "file": "is no folder"}.items():
        with pytest.raises(AKConfigError, match=fault):
            LocalDocumentStore(tmp_path / name)


def test_a_root_that_went_away_is_a_failure_and_not_an_empty_store(store: LocalDocumentStore, root: Path) -> None:
    root.rename(root.with_name("moved"))
    for operation in (store.list, lambda: store.read_bytes("a/x.md"), lambda: store.exists("a"), lambda: store.list("a")):
        with pytest.raises(KnowledgeConnectionError) as caught:
            operation()
        assert caught.value.state == "missing"
    with pytest.raises(KnowledgeConnectionError):
        store.write_bytes("x.md", b"")
    root.with_name("moved").rename(root)
    assert store.list() == ["a/b/y.md", "a/x.md"]


def test_a_root_that_goes_away_in_the_middle_of_a_walk_is_a_failure(store: LocalDocumentStore, root: Path) -> None:
    walk = store.scan()
    next(walk)
    root.rename(root.with_name("moved"))
    with pytest.raises(KnowledgeConnectionError):
        list(walk)


def test_a_relative_root_does_not_move_with_the_working_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    store = LocalDocumentStore("bundle")
    monkeypatch.chdir("/")
    assert store.read_bytes("a/x.md") == b"x"


# Writes.


def test_a_write_keeps_the_mode_of_what_it_replaces(store: LocalDocumentStore, root: Path) -> None:
    (root / "a/x.md").chmod(0o640)
    store.write_bytes("a/x.md", b"new")
    assert stat.S_IMODE((root / "a/x.md").stat().st_mode) == 0o640


def test_an_edit_that_restores_size_and_time_is_another_version(store: LocalDocumentStore, root: Path) -> None:
    before = store.stat("a/x.md")
    times = (root / "a/x.md").stat()
    (root / "a/x.md").write_bytes(b"z")
    os.utime(root / "a/x.md", ns=(times.st_atime_ns, times.st_mtime_ns))
    after = store.stat("a/x.md")
    assert (after.size, after.modified) == (before.size, before.modified)
    assert after.version != before.version


TOO_LARGE = """
    import resource, signal, sys
    from agentkernel_kb import KnowledgeBackendError, LocalDocumentStore
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    store = LocalDocumentStore(sys.argv[1])
    for path in ("a/x.md", "a/new.md"):
        try:
            store.write_bytes(path, b"n" * 100_000)
        except KnowledgeBackendError as error:
            assert path in str(error), error
        else:
            raise AssertionError("written")
"""


def test_a_write_that_finds_no_space_leaves_what_was_there(store: LocalDocumentStore, root: Path) -> None:
    finished = run_python(TOO_LARGE, root)
    assert finished.returncode == 0, finished.stderr
    assert (store.read_bytes("a/x.md"), store.list()) == (b"x", ["a/b/y.md", "a/x.md"])
    assert names(root / "a") == ["b", "x.md"]


def test_data_that_is_no_bytes_leaves_nothing(store: LocalDocumentStore, root: Path) -> None:
    with pytest.raises(TypeError):
        store.write_bytes("a/x.md", "text")  # pyright: ignore[reportArgumentType] - what an untyped caller hands over
    assert names(root / "a") == ["b", "x.md"]


def test_failing_calls_leave_no_descriptors_open(store: LocalDocumentStore, root: Path) -> None:
    (root / "out").symlink_to("/")
    (root / "ring").symlink_to("ring")
    os.mkfifo(root / "pipe.md")
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("descriptors are counted in /proc")
    gc.collect()  # What other tests left is not to be counted before and gone after.
    before = len(list(folder.iterdir()))
    for _ in range(20):
        for path in ("out/etc/passwd", "ring", "pipe.md", "nowhere/x.md", "a", "a/x.md/y", "x" * 300):
            for operation in operations(store, path).values():
                outcome(operation)
            with pytest.raises((KnowledgePathError, FileNotFoundError)):
                store.delete(path)
        walk = store.scan()
        next(walk)
        del walk
    assert len(list(folder.iterdir())) == before


def test_an_error_of_the_system_names_the_document_and_nothing_of_the_machine(store: LocalDocumentStore, root: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        store.read_bytes("a/nowhere.md")
    assert (caught.value.errno, str(root) in str(caught.value)) == (errno.ENOENT, False)
    (root / "out").symlink_to("../secret")
    with pytest.raises(KnowledgePathError) as refused:
        store.read_bytes("out/secret.md")
    assert str(root) not in str(refused.value)
    assert not isinstance(refused.value, KnowledgeBackendError)
