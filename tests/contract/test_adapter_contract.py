"""AdapterContract, run on an adapter of no framework at all, and on ones that each have a fault (A19, A21)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from agentkernel_kb.binding import aanswer, answer, bind_each, schema_of
from agentkernel_kb.model import ToolDescription, describe
from agentkernel_kb.testing import AdapterContract
from agentkernel_kb.testing import house as houses


@dataclass
class Box:
    """A tool object: what it shows, and what it runs."""

    name: str
    shown: dict[str, Any]
    description: ToolDescription


def boxed(description: ToolDescription) -> Box:
    shown = {"name": description.name, "description": description.description, "parameters": schema_of(description)}
    return Box(description.name, shown, description)


def boxed_plain(function: Callable[..., Any]) -> Box:
    parameters = {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}, "required": ["word"]}

    async def acall(**arguments: Any) -> str:
        result = function(**arguments)
        return await result if asyncio.iscoroutine(result) else result

    return boxed(ToolDescription(function.__name__, str(function.__doc__), parameters, True, function, acall))


class TestPlainAdapter(AdapterContract):
    def bind(self, tools: Sequence[Any]) -> Sequence[Box]:
        return bind_each(tools, bound=Box, described=boxed, plain=boxed_plain)

    def definition(self, bound: Box) -> Mapping[str, Any]:
        return bound.shown

    async def invoke(self, bound: Box, arguments: dict[str, Any]) -> str:
        return await aanswer(bound.description, arguments)


class Blocking(TestPlainAdapter):
    __test__ = False

    async def invoke(self, bound: Box, arguments: dict[str, Any]) -> str:
        return answer(bound.description, arguments)


class Uncancelled(TestPlainAdapter):
    __test__ = False

    async def invoke(self, bound: Box, arguments: dict[str, Any]) -> str:
        try:
            return await super().invoke(bound, arguments)
        except asyncio.CancelledError:
            return "Cancelled."


class Lenient(TestPlainAdapter):
    __test__ = False

    async def invoke(self, bound: Box, arguments: dict[str, Any]) -> str:
        known = {name: value for name, value in arguments.items() if name in bound.shown["parameters"]["properties"]}
        return await super().invoke(bound, known)


class Polite(TestPlainAdapter):
    __test__ = False

    async def invoke(self, bound: Box, arguments: dict[str, Any]) -> str:
        return f"Sorry! {await super().invoke(bound, arguments)}"


class PassingBy(TestPlainAdapter):
    __test__ = False

    def bind(self, tools: Sequence[Any]) -> Sequence[Box]:
        return [boxed(cast("ToolDescription", describe(tool))) for tool in tools]


class Unenumerated(TestPlainAdapter):
    __test__ = False

    def definition(self, bound: Box) -> Mapping[str, Any]:
        properties = bound.shown["parameters"]["properties"]
        plain = {name: {key: value for key, value in own.items() if key != "enum"} for name, own in properties.items()}
        return {**bound.shown, "parameters": {**bound.shown["parameters"], "properties": plain}}


class Defaulting(TestPlainAdapter):
    __test__ = False

    def definition(self, bound: Box) -> Mapping[str, Any]:
        for own in bound.shown["parameters"]["properties"].values():
            own["default"] = ""
        return bound.shown


class Changing(TestPlainAdapter):
    __test__ = False

    def bind(self, tools: Sequence[Any]) -> Sequence[Box]:
        for tool in tools:
            parameters: Any = cast("ToolDescription", describe(tool)).parameters
            parameters["required"] = list(parameters["properties"])
        return super().bind(tools)


class Wordy(TestPlainAdapter):
    __test__ = False

    def bind(self, tools: Sequence[Any]) -> Sequence[Box]:
        bound = super().bind(tools)
        return [boxed(replace(box.description, description=box.description.description * 9)) for box in bound]


@pytest.mark.parametrize(
    ("faulty", "test", "arguments"),
    [
        (Blocking, "test_a_running_tool_does_not_block_the_event_loop", {"is_async": False}),
        (Blocking, "test_calls_at_one_time_are_independent", {"is_async": False}),
        (Uncancelled, "test_a_cancellation_goes_through", {"is_async": True}),
        (Lenient, "test_an_unknown_argument_is_named_and_nothing_is_called", {"name": "config", "is_async": False}),
        (Polite, "test_a_bound_tool_answers_as_the_tool_itself", {"name": "search_kb", "is_async": True}),
        (PassingBy, "test_a_wrapper_around_a_tool_is_not_passed_by", {"is_async": False}),
        (PassingBy, "test_a_name_given_twice_is_named", {}),
        (Unenumerated, "test_parameters_are_preserved", {"is_async": False}),
        (Defaulting, "test_definitions_stay_in_the_portable_subset", {}),
        (Changing, "test_binding_twice_changes_nothing", {}),
        (Wordy, "test_the_seven_definitions_stay_within_the_token_budget", {}),
        (Wordy, "test_descriptions_are_preserved", {"is_async": False}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_of_an_adapter_is_found(
    monkeypatch: pytest.MonkeyPatch, faulty: type[TestPlainAdapter], test: str, arguments: dict[str, Any]
) -> None:
    monkeypatch.setattr(houses, "LONGEST_WAIT_S", 0.05)
    house = houses.new_house()
    with house.builder, pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(faulty(), test)(house, **arguments)


def test_an_adapter_that_reads_text_has_to_give_the_means_to_send_some() -> None:
    with pytest.raises(TypeError, match="invoke_text"):
        type("TestTextAdapter", (AdapterContract,), {"declares": frozenset({"text_arguments"})})


def test_a_contract_test_cannot_be_redefined() -> None:
    with pytest.raises(TypeError, match="redefines test_no_tools_bind_to_none"):
        type("TestQuietAdapter", (AdapterContract,), {"test_no_tools_bind_to_none": lambda self: None})  # pyright: ignore[reportUnknownLambdaType] - It is never called.
