"""The shipped suite of stores run on a folder (A14, A21)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentkernel_kb import DocumentStore, LocalDocumentStore
from agentkernel_kb.testing import DocumentStoreContract


def fill(folder: Path, documents: Mapping[str, bytes]) -> Path:
    """Make a folder with these documents in it, by other means than a store's."""
    folder.mkdir()
    for path, data in documents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


class TestLocalDocumentStore(DocumentStoreContract):
    declares = frozenset({"write", "delete"})

    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return LocalDocumentStore(fill(tmp_path / "bundle", documents))


class TestLocalDocumentStoreThatIsReadOnly(DocumentStoreContract):
    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return LocalDocumentStore(fill(tmp_path / "bundle", documents), writable=False)
