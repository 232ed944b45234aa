"""What a backend promises that declares filters: an agent's row scope holds on every operation that takes it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from agentkernel_kb.base import KnowledgeBase, keywords_of, overrides
from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import Operation, Record, Scalar
from agentkernel_kb.router.access import Access
from agentkernel_kb.testing.contract.samples import MANY, Samples, run, texts
from agentkernel_kb.testing.gating import requires

NOBODY: Mapping[str, Scalar] = {"agentkernel_kb_contract_scope": "nobody-7d0f"}
"""A row scope that no record is in."""


def keeps_scope(backend: KnowledgeBase, operation: Operation) -> bool:
    """Tell whether an operation is declared and takes a row scope, in its plain form and in a twin of its own."""
    member = "add" if operation == "write" and overrides(backend, "add") else operation
    names = [member, *([f"a{member}"] if overrides(backend, f"a{member}") else [])]
    supported = backend.capabilities.supports(operation)
    return supported and all("filters" in keywords_of(getattr(backend, name)) for name in names)


class ScopeTests(Samples):
    """Tests of `filters`."""

    @requires("filters")
    def test_some_operation_keeps_to_a_scope(self, backend: KnowledgeBase) -> None:
        """A declaration of `filters` is of use to somebody."""
        operations: tuple[Operation, ...] = ("search", "query", "fetch", "browse")
        assert any(keeps_scope(backend, operation) for operation in operations)

    @requires("filters")
    def test_reads_keep_to_the_scope(self, backend: KnowledgeBase) -> None:
        """What is inside is found, nothing is found by a scope that no record is in, or by one of which only a part holds."""
        for name, arguments in self._reads(backend).items():
            read: Any = getattr(backend, name)
            inside = list(read(*arguments, filters=dict(self.row_scope)))
            assert inside, name
            assert set(texts(inside)) <= set(texts(read(*arguments))), name
            for outside in (NOBODY, {**self.row_scope, **NOBODY}, self.other_scope):
                assert not set(texts(read(*arguments, filters=dict(outside)))) & set(texts(inside)), (name, outside)

    @requires("filters")
    def test_async_reads_keep_to_the_scope(self, backend: KnowledgeBase) -> None:
        """The twins give the same answers."""
        for name, arguments in self._reads(backend).items():
            for scope in (self.row_scope, self.other_scope, NOBODY):
                plain: Any = getattr(backend, name)(*arguments, filters=dict(scope))
                assert run(getattr(backend, f"a{name}")(*arguments, filters=dict(scope))) == plain

    @requires("filters")
    @pytest.mark.parametrize("value", ["' OR '1'='1", '"} OR {"$ne": null', "%", "*", "", 0, True, 1e308])
    def test_a_value_is_never_read_as_syntax(self, backend: KnowledgeBase, value: Scalar) -> None:
        """A value of any kind finds what has it, which is nothing here, or is refused."""
        key = next(iter(self.row_scope))
        for name, arguments in self._reads(backend).items():
            try:
                found = getattr(backend, name)(*arguments, filters={key: value})
            except KnowledgeError:
                continue
            assert list(found) == [], (name, value)

    @requires("filters", "write")
    def test_what_is_written_gets_the_scope(self, backend: KnowledgeBase) -> None:
        """The record is found in the scope that it was written in and in no other one, whatever its own metadata says."""
        if not (keeps_scope(backend, "write") and keeps_scope(backend, "search")):
            return
        backend.add([self._claiming(self.other_scope)], filters=dict(self.row_scope))
        assert self._written(backend, self.row_scope) == 1
        assert self._written(backend, self.other_scope) == 0

    @requires("filters", "write")
    def test_the_same_record_of_two_scopes_is_two(self, backend: KnowledgeBase) -> None:
        """Who writes what somebody else has written takes nothing from them; a record whose own id is taken is refused."""
        if not (keeps_scope(backend, "write") and keeps_scope(backend, "search")):
            return
        for scope in (self.row_scope, self.other_scope):
            for _ in range(2):
                try:
                    backend.add([copy.deepcopy(self.new_record)], filters=dict(scope))
                except KnowledgeError:
                    assert self.new_record.get("metadata", {}).get("id")
        assert self._written(backend, self.row_scope) == 1

    @requires("filters")
    def test_an_agent_sees_what_is_its_own(self, backend: KnowledgeBase) -> None:
        """Through the router: the tools that are left find what is inside, and nothing of it in another scope."""
        for scope, found in ((self.row_scope, True), (self.other_scope, False)):
            access = Access("Agent", {backend.backend_name: frozenset(("search", "fetch"))}, {backend.backend_name: scope})
            tools = {tool.__name__: tool for tool in KnowledgeBuilder([backend], access=access).build()}
            if keeps_scope(backend, "search"):
                assert (self.search_expects in tools["search_kb"](backend.backend_name, self.search_query)) == found
            if keeps_scope(backend, "fetch"):
                assert (f"[{self.fetch_ids[0]}]" in tools["fetch_kb"](backend.backend_name, self.fetch_ids[0])) == found

    def _reads(self, backend: KnowledgeBase) -> dict[str, tuple[Any, ...]]:
        reads: dict[Operation, tuple[Any, ...]] = {
            "search": (self.search_query, MANY),
            "query": (self.read_statement, MANY),
            "fetch": (list(self.fetch_ids),),
            "browse": (self.browse_path, MANY),
        }
        return {operation: arguments for operation, arguments in reads.items() if keeps_scope(backend, operation)}

    def _claiming(self, scope: Mapping[str, Scalar]) -> Record:
        return {**self.new_record, "metadata": {**self.new_record.get("metadata", {}), **scope}}

    def _written(self, backend: KnowledgeBase, scope: Mapping[str, Scalar]) -> int:
        found: Any = backend.search(self.new_record["text"], limit=MANY, filters=dict(scope))
        return sum(self.new_record["text"] in text for text in texts(found))
