"""What an agent may do is less than what the backends declare, and everything it sees says so (X6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentkernel_kb import Access, AKConfigError, KnowledgeBuilder, KnowledgeStateError, ToolEvent, describe
from agentkernel_kb.model import Operation
from agentkernel_kb.testing import FakeKnowledgeBase

RECORDS = [{"text": "Refunds take 30 days.", "metadata": {"id": "r1", "source": "handbook"}}]


def built(
    operations: dict[str, set[Operation]], on_event: Callable[[ToolEvent], object] | None = None
) -> dict[str, Callable[..., str]]:
    backends = [
        FakeKnowledgeBase("one", RECORDS, fetch=True, browse=True, writable=True),
        FakeKnowledgeBase("two", RECORDS, query_language="sql", fetch=True, writable=True),
    ]
    access = Access("Agent", {name: frozenset(may) for name, may in operations.items()})
    return {tool.__name__: tool for tool in KnowledgeBuilder(backends, access=access, on_event=on_event).build()}


def test_x6_a_write_without_the_grant_names_where_the_agent_may_write():
    tools = built({"one": {"search"}, "two": {"search", "write"}})
    assert tools["write_kb"]("one", "x") == (
        "Agent 'Agent' has read-only access to 'one'. Knowledge bases it may write to: ['two']."
    )


def test_x6_any_other_operation_without_the_grant_names_where_it_may():
    tools = built({"one": {"search"}, "two": {"search", "fetch"}})
    assert tools["fetch_kb"]("one", "r1") == "Agent 'Agent' may not fetch 'one'. Knowledge bases it may fetch: ['two']."


def test_x6_tools_that_nothing_granted_can_serve_are_not_there():
    tools = built({"one": {"search"}, "two": {"query"}})
    assert "fetch_kb" not in tools
    assert "browse_kb" not in tools


def test_x6_read_kb_searches_where_the_query_is_not_granted():
    tools = built({"two": {"search"}})
    assert "Refunds" in tools["read_kb"]("two", "refunds")


@pytest.mark.parametrize("tool", ["read_kb", "search_kb", "fetch_kb", "browse_kb", "write_kb"])
def test_x6_a_backend_that_is_not_named_is_an_unknown_one(tool: str):
    tools = built({"one": {"search", "fetch", "browse", "write"}})
    hidden, unknown = (tools[tool](name, "x") for name in ("two", "six"))
    assert hidden == unknown.replace("'six'", "'two'")
    assert hidden == "Unknown backend 'two'. Available: ['one']."


def test_x6_a_backend_that_is_not_named_stands_nowhere():
    events: list[ToolEvent] = []
    builder = KnowledgeBuilder(
        [FakeKnowledgeBase("one"), FakeKnowledgeBase("secret")],
        access=Access("Agent", {"one": frozenset({"search"}), "secret": frozenset()}),
        on_event=events.append,
    )
    tools = {tool.__name__: tool for tool in builder.build()}
    seen = [tools["get_schemas"](), tools["get_all_kb_descriptions"](), builder.instructions(), repr(builder)]
    seen += [repr(described.parameters) for tool in tools.values() if (described := describe(tool))]
    tools["read_kb"]("secret", "x")
    assert "secret" not in repr([seen, events, builder.health(), builder.backends])


def test_x6_closing_the_builder_closes_what_the_agent_may_not_use_too():
    hidden = FakeKnowledgeBase("hidden", version="1")
    with KnowledgeBuilder([hidden], access=Access("Agent", {})):
        pass
    with pytest.raises(KnowledgeStateError):
        hidden.ping()


def test_x6_an_access_of_another_type_is_an_error():
    access: Any = {"one": {"search"}}
    with pytest.raises(AKConfigError, match="access must be Access"):
        KnowledgeBuilder([FakeKnowledgeBase("one")], access=access)


def test_x6_schemas_show_what_is_granted():
    schemas = json.loads(built({"one": {"search"}, "two": {"query"}})["get_schemas"]())
    assert {
        name: [key for key, value in schema["capabilities"].items() if value is True and key != "derives_schema"]
        for name, schema in schemas.items()
    } == {"one": ["search"], "two": ["query"]}


def test_x6_a_refusal_is_an_event_of_its_own():
    events: list[ToolEvent] = []
    built({"one": {"search"}}, events.append)["write_kb"]("one", "x")
    assert [(event.backend, event.outcome, event.attempts) for event in events] == [("one", "refused", 0)]


@pytest.mark.parametrize("operation", ["search", "fetch", "browse"])
def test_x6_what_is_granted_works(operation: Operation):
    tools = built({"one": {operation}})
    argument = {"search": "refunds", "fetch": "r1", "browse": ""}[operation]
    assert "Refunds" in tools[f"{operation}_kb"]("one", argument)
