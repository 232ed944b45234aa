"""The values of the contract: declaration, records, pages, and how a tool describes itself (A2, A4)."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, get_args

import pytest

from agentkernel_kb import KnowledgeCapabilities, KnowledgeMetadata, KnowledgeRecord, RecordPage, ToolDescription, describe
from agentkernel_kb.model import Operation

DEFAULTS: dict[str, Any] = {
    "kinds": [],
    "search": False,
    "search_mode": None,
    "query": False,
    "query_language": None,
    "fetch": False,
    "browse": False,
    "writable": False,
    "derives_schema": False,
}


def test_a2_a_declaration_has_the_fields_and_defaults_of_the_seed() -> None:
    assert KnowledgeCapabilities().model_dump() == DEFAULTS


def test_a2_a_dump_keeps_the_order_of_the_fields() -> None:
    assert list(KnowledgeCapabilities(writable=True, kinds=["graph"]).model_dump()) == list(DEFAULTS)


def test_a_dump_is_a_copy() -> None:
    capabilities = KnowledgeCapabilities(kinds=["vector"])
    capabilities.model_dump()["kinds"].append("forged")
    assert capabilities.kinds == ["vector"]


def test_kinds_are_a_copy_of_what_was_given() -> None:
    kinds = ["vector"]
    capabilities = KnowledgeCapabilities(kinds=kinds)
    kinds.append("late")
    assert capabilities.kinds == ["vector"]


def test_two_declarations_do_not_share_their_kinds() -> None:
    assert KnowledgeCapabilities().kinds is not KnowledgeCapabilities().kinds


def test_a2_kinds_may_be_any_words() -> None:
    kinds: Any = ("vector", "a taxonomy of our own")
    assert KnowledgeCapabilities(kinds=kinds).model_dump()["kinds"] == ["vector", "a taxonomy of our own"]


def test_a_misspelt_field_is_an_error() -> None:
    misspelt: dict[str, Any] = {"searches": True}
    with pytest.raises(TypeError, match="searches"):
        KnowledgeCapabilities(**misspelt)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kinds", "vector"),
        ("kinds", [1]),
        ("kinds", None),
        ("search", 1),
        ("search", "yes"),
        ("writable", None),
        ("query", "sql"),
        ("derives_schema", 0),
        ("search_mode", "fuzzy"),
        ("search_mode", True),
        ("query_language", 7),
    ],
)
def test_a_value_of_the_wrong_type_names_its_field(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"KnowledgeCapabilities.{field} must be"):
        KnowledgeCapabilities(**{field: value})


@pytest.mark.parametrize("mode", ["semantic", "lexical", None])
def test_a2_a_search_mode_does_not_imply_search(mode: Any) -> None:
    assert KnowledgeCapabilities(search_mode=mode).search is False


def test_a_declaration_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        KnowledgeCapabilities().search = True  # pyright: ignore[reportAttributeAccessIssue] - it is what must not work


def test_a2_supports_knows_each_operation_by_its_flag() -> None:
    declared = {
        "search": KnowledgeCapabilities(search=True),
        "query": KnowledgeCapabilities(query=True),
        "fetch": KnowledgeCapabilities(fetch=True),
        "browse": KnowledgeCapabilities(browse=True),
        "write": KnowledgeCapabilities(writable=True),
    }
    assert {name: [other for other in get_args(Operation) if flags.supports(other)] for name, flags in declared.items()} == {
        name: [name] for name in get_args(Operation)
    }


def test_a_declaration_survives_pickling() -> None:
    capabilities = KnowledgeCapabilities(kinds=["graph"], query=True, query_language="cypher")
    assert pickle.loads(pickle.dumps(capabilities)) == capabilities


def test_a4_records_document_their_conventional_keys() -> None:
    assert set(KnowledgeRecord.__annotations__) == {"text", "metadata"}
    assert {"id", "source", "title", "kind", "trust", "stale", "links"} <= set(KnowledgeMetadata.__annotations__)


def test_a_page_is_a_list_that_knows_what_it_leaves_out() -> None:
    page = RecordPage([{"text": "a"}], more=True, total=9)
    assert page == [{"text": "a"}]
    assert (page.more, page.total) == (True, 9)


def test_a_page_is_complete_by_default() -> None:
    assert (RecordPage(), RecordPage().more, RecordPage().total) == ([], False, None)


def test_only_a_tool_of_a_router_has_a_description() -> None:
    async def acall() -> str:
        return ""

    def tool() -> str:
        return ""

    assert describe(tool) is None
    vars(tool)["tool_description"] = "not one"
    assert describe(tool) is None
    description = ToolDescription("t", "d", {}, read_only=True, call=tool, acall=acall)
    vars(tool)["tool_description"] = description
    assert describe(tool) is description


def test_descriptions_are_compared_by_what_a_model_sees() -> None:
    async def acall() -> str:
        return ""

    first, second = (ToolDescription("t", "d", {}, read_only=True, call=lambda: "", acall=acall) for _ in range(2))
    assert first == second
    assert "call" not in repr(first)
