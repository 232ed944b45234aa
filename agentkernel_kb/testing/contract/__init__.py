"""KnowledgeBaseContract: the suite that every backend passes, gated by what the backend declares."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import ClassVar

import pytest

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.testing.contract.base import BaseTests
from agentkernel_kb.testing.contract.identity import BrowseTests, FetchTests
from agentkernel_kb.testing.contract.query import QueryTests
from agentkernel_kb.testing.contract.search import SearchTests
from agentkernel_kb.testing.contract.tools import ToolTests
from agentkernel_kb.testing.contract.write import WriteTests
from agentkernel_kb.testing.gating import GatedSuite

__all__ = ["KnowledgeBaseContract"]


class KnowledgeBaseContract(BaseTests, SearchTests, QueryTests, FetchTests, BrowseTests, WriteTests, ToolTests, GatedSuite):
    """The suite for one backend.

    Subclass it as `TestYourBackend`, say what the backend declares, and give a backend with a little sample knowledge:

        class TestNotes(KnowledgeBaseContract):
            declares = {"search", "fetch"}
            search_query, search_expects = "how long is the guarantee", "two years"
            fetch_ids = ["guarantee", "returns"]

            def make_backend(self, tmp_path):
                ...

    `declares` names the operations (`search`, `query`, `fetch`, `browse`, `write`), and besides `guard` where the backend
    proves its statements with `check_read`, and `ids` where `add` returns ids. What is not declared is not collected; one test
    compares `declares` with the backend's own declaration. `Samples` documents the attributes to give.
    """

    features: ClassVar[AbstractSet[str]] = frozenset({"search", "query", "guard", "fetch", "browse", "write", "ids"})
    samples: ClassVar[dict[str, tuple[str, ...]]] = {
        "search": ("search_query", "search_expects"),
        "query": ("read_statement", "read_expects", "empty_statement", "bad_statement"),
        "guard": ("write_statements",),
        "fetch": ("fetch_ids",),
        "browse": ("browse_expects",),
        "write": ("new_record",),
    }

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[KnowledgeBase]:
        """A new backend with the sample knowledge."""
        backend = self.make_backend(tmp_path)
        yield backend
        backend.close()
