"""VectorStoreContract: the suite that every store of vectors passes, gated by what it can do besides the required."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import ClassVar

import pytest

from agentkernel_kb.rag.protocols import VectorStore
from agentkernel_kb.testing.gating import GatedSuite
from agentkernel_kb.testing.vectors.samples import RECORDS
from agentkernel_kb.testing.vectors.searching import SearchTests
from agentkernel_kb.testing.vectors.writing import WriteTests

__all__ = ["VectorStoreContract"]

_METHODS = {"replace": "replace", "count": "count", "list": "list_documents"}


class VectorStoreContract(SearchTests, WriteTests, GatedSuite):
    """The suite for one store. Its tests are coroutines: pytest needs `pytest-asyncio` in automatic mode.

    Subclass it as `TestYourStore`, and give a new and empty store:

        class TestMyStore(VectorStoreContract):
            declares = {"replace"}

            def make_store(self, tmp_path):
                ...

    `declares` names what the store can do besides the required: `replace`, `count`, `list` (`list_documents`), and the modes
    `keyword` and `hybrid`. What is not declared is not collected; one test compares `declares` with the store.
    """

    features: ClassVar[AbstractSet[str]] = frozenset({"replace", "count", "list", "keyword", "hybrid"})
    other_words: ClassVar[dict[str, str]] = {"list_documents": "list", "words": "keyword"}

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[VectorStore]:
        """A new store with the sample records."""
        store: object = self.make_store(tmp_path)
        if not isinstance(store, VectorStore):
            made = "None" if store is None else f"a {type(store).__name__}"
            pytest.fail(f"{type(self).__name__}.make_store returned {made}, which is no VectorStore.", pytrace=False)
        assert await store.upsert(RECORDS) == len(RECORDS)
        yield store
        close = getattr(store, "close", None)
        if callable(close) and inspect.isawaitable(closing := close()):
            await closing

    def test_tests_cover_what_the_store_can(self, tmp_path: Path) -> None:
        """What the suite was told to test is what the store can do, so that nothing is left out unseen."""
        store = self.make_store(tmp_path)
        can = {feature for feature, method in _METHODS.items() if callable(getattr(store, method, None))}
        assert set(self.declares) & set(_METHODS) == can
