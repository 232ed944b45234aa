"""What a tool says of itself, for adapters and protocol servers (X17)."""

import json
from typing import Any

import pytest

from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import ToolDescription, describe
from agentkernel_kb.testing import FakeKnowledgeBase
from agentkernel_kb.testing.portable import TOKEN_BUDGET

BACKENDS: dict[str, dict[str, Any]] = {
    "prose": {"search": True, "fetch": True, "browse": True, "writable": True},
    "lake": {"search": False, "query_language": "sql"},
    "files": {"search": False, "fetch": True},
}


def described(tool) -> ToolDescription:
    description = describe(tool)
    assert description is not None
    return description


def descriptions():
    builder = KnowledgeBuilder([FakeKnowledgeBase(name, **declared) for name, declared in BACKENDS.items()])
    return {tool.__name__: described(tool) for tool in builder.build()}


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("read_kb", ["prose", "lake"]),
        ("search_kb", ["prose"]),
        ("fetch_kb", ["prose", "files"]),
        ("browse_kb", ["prose"]),
        ("write_kb", ["prose", "lake", "files"]),
    ],
)
def test_x17_backend_is_an_enum_of_the_names_that_can_serve_the_tool(tool, names):
    assert descriptions()[tool].parameters["properties"]["backend"]["enum"] == names


def test_x17_schemas_stay_in_the_portable_subset():
    for description in descriptions().values():
        assert set(description.parameters) == {"type", "properties", "required"}
        for argument in description.parameters["properties"].values():
            assert set(argument) <= {"type", "description", "enum"}
            assert argument["type"] in ("string", "integer")
            assert argument["description"]


def test_x17_only_arguments_without_a_default_are_required():
    assert {name: description.parameters["required"] for name, description in descriptions().items()} == {
        "get_schemas": [],
        "read_kb": ["backend", "query"],
        "write_kb": ["backend"],
        "get_all_kb_descriptions": [],
        "search_kb": ["backend", "query"],
        "fetch_kb": ["backend", "ids"],
        "browse_kb": ["backend"],
    }


def test_x17_only_write_kb_changes_anything():
    assert [name for name, description in descriptions().items() if not description.read_only] == ["write_kb"]


def test_x17_seven_definitions_keep_a_token_budget_however_many_backends():
    text = json.dumps([[d.name, d.description, d.parameters] for d in descriptions().values()])
    assert len(descriptions()) == 7
    assert len(text) / 4 <= TOKEN_BUDGET


def test_x17_both_forms_of_a_tool_carry_one_description():
    builder = KnowledgeBuilder([FakeKnowledgeBase("b")])
    description = described(builder.build()[1])
    assert describe(description.call) is description is describe(description.acall)


def test_x17_another_callable_has_no_description():
    assert describe(print) is None
