"""KnowledgeBaseContract: the suite that every backend passes, gated by what the backend declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar, cast

import pytest

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.identity import acting_as
from agentkernel_kb.render import one_line
from agentkernel_kb.testing.contract.base import BaseTests
from agentkernel_kb.testing.contract.identity import BrowseTests, FetchTests
from agentkernel_kb.testing.contract.query import QueryTests
from agentkernel_kb.testing.contract.samples import Samples, id_fault
from agentkernel_kb.testing.contract.scope import ScopeTests
from agentkernel_kb.testing.contract.search import SearchTests
from agentkernel_kb.testing.contract.tools import ToolTests
from agentkernel_kb.testing.contract.write import WriteTests
from agentkernel_kb.testing.gating import GatedSuite

__all__ = ["KnowledgeBaseContract"]


class KnowledgeBaseContract(
    BaseTests, SearchTests, QueryTests, FetchTests, BrowseTests, WriteTests, ScopeTests, ToolTests, GatedSuite
):
    """The suite for one backend.

    Subclass it as `TestYourBackend`, say what the backend declares, and give a backend with a little sample knowledge:

        class TestNotes(KnowledgeBaseContract):
            declares = {"search", "fetch"}
            search_query, search_expects = "how long is the guarantee", "two years"
            fetch_ids = ["guarantee", "returns"]

            def make_backend(self, tmp_path):
                ...

    `declares` names the operations (`search`, `query`, `fetch`, `browse`, and `write` for what the backend declares as
    `writable`), and besides `guard` where the backend proves its statements with `check_read`, `ids` where `add` returns
    ids, and `filters` where it keeps to row scopes. What is not declared is not collected; one test compares `declares` with
    the backend's own declaration. `Samples` documents the attributes to give; docs/contract.md lists the promises.
    """

    features: ClassVar[AbstractSet[str]] = frozenset({"search", "query", "guard", "fetch", "browse", "write", "ids", "filters"})
    samples: ClassVar[dict[str, tuple[str, ...]]] = {
        "search": ("search_query", "search_expects"),
        "query": ("read_statement", "read_expects", "empty_statement", "bad_statement"),
        "guard": ("write_statements",),
        "fetch": ("fetch_ids",),
        "browse": ("browse_expects",),
        "write": ("new_record",),
        "filters": ("row_scope", "other_scope"),
    }
    other_words: ClassVar[dict[str, str]] = {"writable": "write", "add": "ids", "check_read": "guard", "guarded": "guard"}

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[KnowledgeBase]:
        """A new backend with the sample knowledge."""
        backend: object = self.make_backend(tmp_path)
        if not isinstance(backend, KnowledgeBase):
            made = "None" if backend is None else f"a {type(backend).__name__}"
            pytest.fail(f"{type(self).__name__}.make_backend returned {made}; it has to return a KnowledgeBase.", pytrace=False)
        with acting_as(self.principal) if backend.requires_identity else nullcontext():
            yield backend
        backend.close()

    @classmethod
    def sample_faults(cls) -> Iterator[str]:
        """Yield what is wrong with the samples that belong to what is declared."""
        if "guard" in cls.declares and isinstance(cls.write_statements, str):
            yield f"write_statements has to be a list of statements, not the text {cls.write_statements!r}."
        if "fetch" in cls.declares:
            yield from _fault_of_ids(cls.fetch_ids)
        if "write" in cls.declares:
            yield from _fault_of_record(cls.new_record)
            if "search" not in cls.declares and cls.find_written is Samples.find_written:
                yield "find_written searches, and search is not declared: override it, so that it finds new_record otherwise."


def _fault_of_ids(fetch_ids: object) -> Iterator[str]:
    if not isinstance(fetch_ids, Sequence) or isinstance(fetch_ids, str | bytes):
        yield f"fetch_ids has to be a list of at least two ids, not {fetch_ids!r}."
        return
    listed = cast("Sequence[object]", fetch_ids)
    if len(set(map(repr, listed))) < 2:
        yield f"fetch_ids has to list at least two ids, so that their order can be tested; it is {fetch_ids!r}."
    faults = [id_fault(name) if isinstance(name, str) else f"id {name!r} is no text" for name in listed]
    yield from (f"fetch_ids: {fault}." for fault in faults if fault)


def _fault_of_record(record: object) -> Iterator[str]:
    text: object = cast("Mapping[str, object]", record).get("text") if isinstance(record, Mapping) else None
    if not isinstance(text, str) or not text.strip() or one_line(text) != text:
        yield f'new_record has to be {{"text": one short line, "metadata": {{…}}}}, not {record!r}.'
