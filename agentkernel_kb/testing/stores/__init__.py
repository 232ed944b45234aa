"""DocumentStoreContract: the suite that every store of documents passes, gated by what it can do besides reading."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import ClassVar

import pytest

from agentkernel_kb.store.base import DocumentStore
from agentkernel_kb.testing.gating import GatedSuite
from agentkernel_kb.testing.stores.containment import ContainmentTests
from agentkernel_kb.testing.stores.reading import ReadingTests
from agentkernel_kb.testing.stores.samples import DOCUMENTS
from agentkernel_kb.testing.stores.writing import DeleteTests, WriteTests

__all__ = ["DocumentStoreContract"]


class DocumentStoreContract(ReadingTests, ContainmentTests, WriteTests, DeleteTests, GatedSuite):
    """The suite for one store.

    Subclass it as `TestYourStore`, and give a store that holds the documents it is handed:

        class TestGitStore(DocumentStoreContract):
            declares = {"write"}

            def make_store(self, tmp_path, documents):
                ...

    `declares` names what the store can do besides reading: `write`, and `delete` where it overrides that. What is not declared
    is not collected; one test compares `declares` with the store.
    """

    features: ClassVar[AbstractSet[str]] = frozenset({"write", "delete"})
    other_words: ClassVar[dict[str, str]] = {"writable": "write", "write_bytes": "write"}

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[DocumentStore]:
        """A new store with the sample documents."""
        store: object = self.make_store(tmp_path, DOCUMENTS)
        if not isinstance(store, DocumentStore):
            made = "None" if store is None else f"a {type(store).__name__}"
            pytest.fail(f"{type(self).__name__}.make_store returned {made}; it has to return a DocumentStore.", pytrace=False)
        yield store
        store.close()
