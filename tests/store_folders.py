"""Folders for tests of the store of a folder."""

from __future__ import annotations

from pathlib import Path

from agentkernel_kb import LocalDocumentStore


def made_root(folder: Path) -> Path:
    """Return the root of a store, with a little in it and a secret beside it."""
    (folder / "secret").mkdir()
    (folder / "secret/secret.md").write_bytes(b"secret")
    root = folder / "bundle"
    (root / "a/b").mkdir(parents=True)
    (root / "a/x.md").write_bytes(b"x")
    (root / "a/b/y.md").write_bytes(b"y")
    return root


def skipped(store: LocalDocumentStore) -> dict[str, str]:
    """Return what a scan leaves out, and why."""
    found: dict[str, str] = {}
    list(store.scan(on_skip=found.__setitem__))
    return found


def names(folder: Path) -> list[str]:
    """Return all names in a folder, hidden ones included."""
    return sorted(found.name for found in folder.iterdir())
