"""What links and what is no plain file do to the store of a folder: none leads out, none hangs it (A15)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from store_folders import made_root, skipped

from agentkernel_kb import (
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


@pytest.mark.parametrize(
    "target", ["x.md", "../a/x.md", "b/../x.md", "../../bundle/a/x.md", "{root}/a/x.md", "{root}/../bundle/a/x.md"]
)
def test_a15_a_link_that_stays_in_the_folder_is_followed(store: LocalDocumentStore, root: Path, target: str) -> None:
    (root / "a/link.md").symlink_to(target.format(root=root))
    assert (store.read_bytes("a/link.md"), store.exists("a/link.md"), store.stat("a/link.md").size) == (b"x", True, 1)
    assert store.list() == ["a/b/y.md", "a/link.md", "a/x.md"]


def test_a15_a_link_to_a_folder_is_walked_into(store: LocalDocumentStore, root: Path) -> None:
    (root / "z").symlink_to("a/b")
    assert (store.read_bytes("z/y.md"), store.list()) == (b"y", ["a/b/y.md", "a/x.md", "z/y.md"])
    assert store.list("z") == ["z/y.md"]


def test_a15_a_folder_as_kubernetes_mounts_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "..2026_11_30").mkdir()
    (tmp_path / "..2026_11_30/x.md").write_bytes(b"mounted")
    (tmp_path / "..data").symlink_to("..2026_11_30")
    (tmp_path / "x.md").symlink_to("..data/x.md")
    store = LocalDocumentStore(tmp_path)
    assert (store.list(), store.read_bytes("x.md")) == (["x.md"], b"mounted")


def test_a_root_that_is_a_link_may_be_swapped(tmp_path: Path) -> None:
    for release in ("one", "two"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "x.md").write_text(release)
        (tmp_path / release / "own.md").symlink_to("x.md")
    (tmp_path / "current").symlink_to("one")
    store = LocalDocumentStore(tmp_path / "current")
    assert (store.read_bytes("x.md"), store.read_bytes("own.md")) == (b"one", b"one")
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(tmp_path / "current")
    assert (store.read_bytes("x.md"), store.read_bytes("own.md")) == (b"two", b"two")


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("out", "../secret", "out/secret.md"),
        ("a/out", "../../secret", "a/out/secret.md"),
        ("out", "{root}/../secret", "out/secret.md"),
        ("out", "/", "out/etc/passwd"),
        ("out", "..", "out/secret/secret.md"),
        ("out.md", "../secret/secret.md", "out.md"),
        ("out.md", "a/../../secret/secret.md", "out.md"),
        ("out.md", "/etc/passwd", "out.md"),
        ("out.md", "/dev/zero", "out.md"),
        ("out.md", "../not-yet.md", "out.md"),
        ("out", "../bundle-2", "out/secret.md"),
    ],
)
def test_a15_a_link_out_of_the_folder_is_refused_and_passed_over(
    store: LocalDocumentStore, root: Path, link: str, target: str, path: str
) -> None:
    (root.parent / "bundle-2").mkdir()
    (root.parent / "bundle-2/secret.md").write_bytes(b"secret")
    (root / link).symlink_to(target.format(root=root))
    for name, operation in operations(store, path).items():
        if name != "read_prefix_bytes of nothing":
            assert outcome(operation) is KnowledgePathError, name
    with pytest.raises(KnowledgePathError):
        store.write_bytes(path, b"attack")
    with pytest.raises(KnowledgePathError):
        store.delete(path)
    assert store.list() == ["a/b/y.md", "a/x.md"]
    assert "leads out of the store" in skipped(store)[link]
    assert (root.parent / "secret/secret.md").read_bytes() == b"secret"
    assert not (root.parent / "not-yet.md").exists()


def test_a15_a_way_out_through_two_links_is_refused(store: LocalDocumentStore, root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("../secret")
    assert outcome(lambda: store.read_bytes("one/secret.md")) is KnowledgePathError
    assert store.list() == ["a/b/y.md", "a/x.md"]


def test_loops_of_links_end(store: LocalDocumentStore, root: Path) -> None:
    (root / "ring-1").symlink_to("ring-2")
    (root / "ring-2").symlink_to("ring-1")
    (root / "self").symlink_to("self")
    (root / "a/b/up").symlink_to("..")
    (root / "whole").symlink_to(".")
    assert store.list() == ["a/b/y.md", "a/x.md"]
    assert sorted(skipped(store)) == ["a/b/up", "ring-1", "ring-2", "self", "whole"]
    assert outcome(lambda: store.read_bytes("ring-1")) is KnowledgePathError
    assert store.read_bytes("a/b/up/b/up/x.md") == b"x"


def test_links_to_one_another_do_not_make_a_tree_without_an_end(store: LocalDocumentStore, root: Path) -> None:
    for level in range(30):
        (root / f"level-{level}").mkdir()
        (root / f"level-{level}/x.md").write_bytes(b"")
        for name in ("left", "right"):
            (root / f"level-{level}" / name).symlink_to(f"../level-{level + 1}")
    assert len(store.list()) == 2 + 30 + 2 * 29


def test_a_link_to_the_folder_itself_is_said_to_lead_nowhere_beneath_it(store: LocalDocumentStore, root: Path) -> None:
    (root / "self").symlink_to(root)
    assert "to nothing that is a document, or a folder beneath the root" in skipped(store)["self"]


def test_a_dangling_link_is_missing(store: LocalDocumentStore, root: Path) -> None:
    (root / "later.md").symlink_to("a/later.md")
    assert (store.exists("later.md"), outcome(lambda: store.read_bytes("later.md"))) == (False, FileNotFoundError)
    assert "later.md" in skipped(store)


def test_a_write_keeps_a_link_and_changes_its_target(store: LocalDocumentStore, root: Path) -> None:
    (root / "link.md").symlink_to("a/x.md")
    store.write_bytes("link.md", b"through", if_version=store.stat("link.md").version)
    assert ((root / "link.md").is_symlink(), (root / "a/x.md").read_bytes()) == (True, b"through")


def test_removing_a_link_leaves_its_target(store: LocalDocumentStore, root: Path) -> None:
    (root / "link.md").symlink_to("a/x.md")
    store.delete("link.md", if_version=store.stat("link.md").version)
    assert (store.exists("link.md"), store.read_bytes("a/x.md")) == (False, b"x")


# What is no plain file.


def test_pipes_sockets_and_devices_are_refused_and_passed_over(store: LocalDocumentStore, root: Path) -> None:
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(root / "socket.md"))
        for path in ("pipe.md", "socket.md"):
            for operation in (store.read_bytes, store.stat, lambda path: store.write_bytes(path, b"x"), store.delete):
                with pytest.raises(KnowledgePathError, match="no document"):
                    operation(path)
            assert store.exists(path) is False
        assert store.list() == ["a/b/y.md", "a/x.md"]
        assert sorted(skipped(store)) == ["pipe.md", "socket.md"]


def test_a_folder_is_not_replaced_by_a_document(store: LocalDocumentStore) -> None:
    with pytest.raises(KnowledgePathError):
        store.write_bytes("a/b", b"x")
    with pytest.raises(KnowledgePathError, match="no folder"):
        store.write_bytes("a/x.md/beneath.md", b"x")


def test_a15_what_is_swapped_between_two_of_many_reads_never_leads_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "bundle", tmp_path / "outside"
    for folder in (root / "a", outside):
        folder.mkdir(parents=True)
        for name in "1234":
            (folder / f"{name}.md").write_bytes(folder.name.encode())
    reading = LocalDocumentStore(root).read_many(f"a/{name}.md" for name in "1234")
    assert [next(reading), next(reading)] == [("a/1.md", b"a"), ("a/2.md", b"a")]
    (root / "a/3.md").unlink()
    (root / "a/3.md").symlink_to(outside / "3.md")
    path, refused = next(reading)
    assert (path, type(refused)) == ("a/3.md", KnowledgePathError)
    (root / "a").rename(root / "b")
    (root / "a").symlink_to(outside)
    assert next(reading)[1] != b"outside"
    assert list(reading) == []
