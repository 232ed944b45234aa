"""What a backend promises once it is registered with a router: every answer is a string, and no call raises."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.testing.contract.samples import Samples
from agentkernel_kb.testing.gating import requires

Tools = dict[str, Callable[..., str]]


class ToolTests(Samples):
    """Tests through `KnowledgeBuilder`."""

    @pytest.fixture
    def tools(self, backend: KnowledgeBase) -> Tools:
        """The tools that a router emits for the backend alone, by name."""
        return {tool.__name__: tool for tool in KnowledgeBuilder([backend]).build()}

    def test_tools_are_those_that_are_declared(self, backend: KnowledgeBase, tools: Tools) -> None:
        """The model never hears of an operation that nothing can serve."""
        gated = {f"{name}_kb" for name in ("search", "fetch", "browse") if getattr(backend.capabilities, name)}
        assert set(tools) == {"get_schemas", "read_kb", "write_kb", "get_all_kb_descriptions", *gated}

    def test_schemas_are_shown(self, backend: KnowledgeBase, tools: Tools) -> None:
        """`get_schemas` is JSON, holds the declaration, and no error."""
        shown = tools["get_schemas"]()
        json.loads(shown)
        assert json.dumps(backend.backend_name) in shown
        assert '"capabilities"' in shown
        assert '"error"' not in shown

    def test_description_is_shown(self, backend: KnowledgeBase, tools: Tools) -> None:
        """`get_all_kb_descriptions` names the backend."""
        assert backend.backend_name in tools["get_all_kb_descriptions"]()

    def test_undeclared_operations_are_explained(self, backend: KnowledgeBase, tools: Tools) -> None:
        """A tool that is always there says so where the backend cannot serve it."""
        refusal = f"Backend '{backend.backend_name}' does not support"
        if not (backend.capabilities.search or backend.capabilities.query):
            assert tools["read_kb"](backend.backend_name, "anything").startswith(refusal)
        if not backend.capabilities.writable:
            assert tools["write_kb"](backend.backend_name, text="anything").startswith(refusal)

    def test_a_call_for_nobody_is_refused_where_it_has_to_be_for_somebody(self, backend: KnowledgeBase, tools: Tools) -> None:
        """Where the backend requires an identity, the answer says that there is none; where it does not, none is missed."""
        answer = contextvars.Context().run(
            tools["read_kb"], backend.backend_name, self.read_statement or self.search_query or "x"
        )
        refused = answer.startswith("Refused: ") and "on behalf of a user" in answer
        assert refused == (backend.requires_identity and (backend.capabilities.search or backend.capabilities.query))

    @requires("search")
    def test_search_kb_answers(self, backend: KnowledgeBase, tools: Tools) -> None:
        """The model reads what is known."""
        assert self.search_expects in tools["search_kb"](backend.backend_name, self.search_query)

    def test_read_kb_answers(self, backend: KnowledgeBase, tools: Tools) -> None:
        """`read_kb` queries a backend with a query language and searches any other."""
        if backend.capabilities.query:
            assert self.read_expects in tools["read_kb"](backend.backend_name, self.read_statement)
        elif backend.capabilities.search:
            assert self.search_expects in tools["read_kb"](backend.backend_name, self.search_query)

    @requires("query", "guard")
    def test_read_kb_refuses_writes(self, backend: KnowledgeBase, tools: Tools) -> None:
        """A refused statement is a string that says so."""
        for statement in self.write_statements:
            assert tools["read_kb"](backend.backend_name, statement).startswith("Refused")

    @requires("fetch")
    def test_fetch_kb_answers(self, backend: KnowledgeBase, tools: Tools) -> None:
        """Several ids are separated by commas."""
        answer = tools["fetch_kb"](backend.backend_name, ",".join(self.fetch_ids))
        assert all(f"[{name}]" in answer for name in self.fetch_ids)

    @requires("browse")
    def test_browse_kb_answers(self, backend: KnowledgeBase, tools: Tools) -> None:
        """The model sees what stands at a path."""
        assert self.browse_expects in tools["browse_kb"](backend.backend_name, self.browse_path)

    @requires("write")
    def test_write_kb_stores(self, backend: KnowledgeBase, tools: Tools) -> None:
        """What the model writes is found."""
        metadata: Mapping[str, Any] = self.new_record.get("metadata") or {}
        statement = {
            "query": metadata.get("query", ""),
            "params_json": json.dumps(metadata.get("params") or {}),
        }
        assert tools["write_kb"](backend.backend_name, text=self.new_record["text"], **statement)
        assert len(self.find_written(backend)) == 1
