"""The shipped suite of stores run on stores of an application, as `python:` names them (A14, A21)."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from agentkernel_kb import DocumentStat, DocumentStore
from agentkernel_kb.store.paths import is_beneath, other_spellings
from agentkernel_kb.testing import DocumentStoreContract


class PlainStore(DocumentStore):
    """Documents in a mapping, with no more than a store for reading has to implement."""

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        self._documents = dict(documents)

    def read_bytes(self, path: str) -> bytes:
        return self._documents[self.found(path)]

    def list(self, prefix: str = "") -> builtins.list[str]:
        place = self.normalise_relative(prefix)
        return sorted(path for path in self._documents if is_beneath(path, place))

    def found(self, path: str) -> str:
        normal = self.document_path(path)
        for spelling in (normal, *other_spellings(normal)):
            if spelling in self._documents:
                return spelling
        raise FileNotFoundError(normal)

    def stat(self, path: str) -> DocumentStat:
        return super().stat(self.found(path))


class SeedStore(PlainStore):
    """One that can be written as seed 002 has it: no conditions, and nothing is returned."""

    @property
    def writable(self) -> bool:
        return True

    def write_bytes(self, path: str, data: bytes) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as in the seed
        normal = self.document_path(path)
        with suppress(FileNotFoundError):
            normal = self.found(path)
        self._documents[normal] = bytes(data)


@pytest.fixture(autouse=True)
def application(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application's module that holds the stores."""
    module = ModuleType("an_application")
    vars(module).update(PlainStore=PlainStore, SeedStore=SeedStore)
    monkeypatch.setitem(sys.modules, "an_application", module)


class TestStoreThatOnlyReads(DocumentStoreContract):
    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return DocumentStore.from_uri("python:an_application.PlainStore", documents=documents)


class TestStoreAsInTheSeed(DocumentStoreContract):
    declares = frozenset({"write"})

    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return DocumentStore.from_uri("python:an_application.SeedStore", documents=documents)
