"""Bundles for tests of OKF: written from a mapping of paths to texts, and opened with an index that leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from agentkernel_kb import LocalDocumentStore, OKFManager

CONCEPT = "---\ntype: {type}\ntitle: {title}\n---\n{body}\n"


def concept(title: str = "A title", body: str = "A body.", kind: str = "Note", **keys: str) -> str:
    """Return a document; further keys are lines of its frontmatter."""
    lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\ntype: {kind}\ntitle: {title}\n{lines}---\n{body}\n"


def write(folder: Path, documents: Mapping[str, str | bytes]) -> Path:
    """Write documents beneath a folder and return it."""
    folder.mkdir(exist_ok=True)
    for path, content in documents.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def opened(folder: Path, documents: Mapping[str, str | bytes] | None = None, **arguments: Any) -> OKFManager:
    """Return a manager over a folder, after writing documents there; its index is in memory unless told otherwise."""
    write(folder, documents or {})
    arguments.setdefault("index", None)
    return OKFManager(arguments.pop("store", None) or LocalDocumentStore(folder), **arguments)


def ids(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the ids of records."""
    return [record["metadata"]["id"] for record in records]


class CountingStore(LocalDocumentStore):
    """A folder that counts what is read of it, and whose disk can be told to fail."""

    reads = 0
    fails_after: int | None = None
    failure: Exception | None = None
    unreadable: AbstractSet[str] = frozenset()

    def _count(self, path: str) -> None:
        self.reads += 1
        if path in self.unreadable:
            raise PermissionError(13, "denied", path)
        if self.failure is not None and self.fails_after is not None and self.reads > self.fails_after:
            raise self.failure

    def read_bytes(self, path: str) -> bytes:
        self._count(path)
        return super().read_bytes(path)

    def read_prefix_bytes(self, path: str, max_bytes: int) -> bytes:
        self._count(path)
        return super().read_prefix_bytes(path, max_bytes)

    def scan(self, prefix: str = "", **options: Any) -> Iterator[Any]:
        if self.failure is not None and self.fails_after is None:
            raise self.failure
        return super().scan(prefix, **options)
