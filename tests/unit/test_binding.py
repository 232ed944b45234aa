"""What adapters share: which tools are taken, and how a call reaches one (A19)."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.binding import aanswer, answer, bind_each, schema_of, sent_arguments
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import ToolDescription, argument_fault, arguments_of, describe

PARAMETERS = MappingProxyType(
    {
        "type": "object",
        "properties": MappingProxyType({"backend": {"type": "string", "enum": ("a", "b")}, "limit": {"type": "integer"}}),
        "required": ("backend",),
    }
)


class SteeringError(Exception):
    """Stands for an exception by which a framework stops a run."""


@dataclass
class Box:
    """Stands for a framework's tool object."""

    name: str
    description: ToolDescription | None = None


def described(behaviour: Callable[..., str]) -> ToolDescription:
    async def abehaviour(**arguments: Any) -> str:
        return behaviour(**arguments)

    return ToolDescription("look", "Looks.", PARAMETERS, True, behaviour, abehaviour)


def echo(**arguments: Any) -> str:
    return repr(arguments)


def look() -> Callable[..., str]:
    """Return a tool as a router makes one: a function that carries its description."""

    def call(**arguments: Any) -> str:
        return repr(arguments)

    call.__dict__["tool_description"] = described(call)
    return call


def raising(error: BaseException) -> Callable[..., str]:
    def fail(**_: Any) -> str:
        raise error

    return fail


def bind(tools: Any, **options: Any) -> list[Box]:
    return bind_each(
        tools,
        bound=Box,
        described=lambda description: Box(description.name, description),
        plain=lambda function: Box(function.__name__),
        **options,
    )


def both(description: ToolDescription, arguments: dict[str, Any], **options: Any) -> str:
    """Call a tool in both forms, and return what both answer."""
    plain = answer(description, arguments, **options)
    assert asyncio.run(aanswer(description, arguments, **options)) == plain
    return plain


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"backend": "a"}, None),
        ({"backend": None, "limit": "many"}, None),
        ({}, "look needs backend. Its arguments: backend, limit (optional)."),
        ({"backend": "a", "k": 3}, "look has no argument 'k'. Its arguments: backend, limit (optional)."),
        ({"q\nx": 1}, "look has no argument 'q\\nx' and needs backend. Its arguments: backend, limit (optional)."),
    ],
)
def test_unknown_and_missing_arguments_are_named_and_values_are_the_tools_business(
    arguments: dict[str, Any], fault: str | None
) -> None:
    assert argument_fault(described(echo), arguments) == fault


@given(st.dictionaries(st.text(max_size=200), st.integers(), max_size=3))
def test_a_sentence_about_arguments_stays_short_and_on_one_line_whatever_their_names(arguments: dict[str, Any]) -> None:
    fault = argument_fault(described(echo), {**arguments, "unknown": 1}) or ""
    assert "\n" not in fault
    assert len(fault) < 600


def test_sound_arguments_reach_the_tool_as_they_were_sent() -> None:
    assert both(described(echo), {"backend": ["a"], "limit": "5"}) == "{'backend': ['a'], 'limit': '5'}"


def test_what_a_tool_raises_is_answered_by_its_type_alone() -> None:
    failing = described(raising(RuntimeError("password=hunter2")))
    assert both(failing, {"backend": "a"}) == (
        "look failed (RuntimeError). This is not an empty result. Try another way of asking."
    )


def test_what_a_framework_steers_by_gets_through() -> None:
    with pytest.raises(SteeringError):
        answer(described(raising(SteeringError())), {"backend": "a"}, passing=(SteeringError,))
    with pytest.raises(SteeringError):
        asyncio.run(aanswer(described(raising(SteeringError())), {"backend": "a"}, passing=(SteeringError,)))


def test_the_schema_is_a_copy_of_plain_containers() -> None:
    schema = schema_of(described(echo))
    assert schema == {
        "type": "object",
        "properties": {"backend": {"type": "string", "enum": ["a", "b"]}, "limit": {"type": "integer"}},
        "required": ["backend"],
    }
    schema["properties"]["backend"]["enum"].append("c")
    assert schema_of(described(echo))["properties"]["backend"]["enum"] == ["a", "b"]


def test_tools_keep_their_order_and_what_is_bound_stays_the_same_object() -> None:
    bound = Box("bound")
    made = bind([look(), bound, echo])
    assert [box.name for box in made] == ["look", "bound", "echo"]
    assert made[1] is bound


def test_names_given_twice_are_listed() -> None:
    with pytest.raises(AKConfigError, match=r"given more than once: \['echo'\]. All names: \['echo', 'x', 'echo'\]"):
        bind([echo, Box("x"), echo])


def test_names_that_a_framework_shows_alike_are_one() -> None:
    with pytest.raises(AKConfigError, match=r"given more than once: \['echo'\]"):
        bind([echo, Box("Echo")], shown=str.lower)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (None, "not an object of type NoneType"),
        ("read_kb", "not an object of type str"),
        ([3], "got an object of type int"),
        (echo, "not an object of type function"),
    ],
)
def test_what_is_no_list_of_tools_is_refused_by_its_kind(tools: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        bind(tools)


def test_an_error_while_binding_names_the_tool() -> None:
    def fail(_: Any) -> Box:
        raise ValueError("no docstring")

    with pytest.raises(ValueError, match="no docstring") as caught:
        bind_each([echo], bound=Box, described=fail, plain=fail)
    assert caught.value.__notes__ == ["While binding the tool echo."]


def test_a_wrapper_is_called_in_either_form_and_outside_the_event_loop_thread() -> None:
    inner = look()
    threads: list[int] = []

    @functools.wraps(inner)
    def wrapper(**arguments: Any) -> str:
        threads.append(threading.get_ident())
        return f"wrapped {inner(**arguments)}"

    (box,) = bind([wrapper])
    assert box.description is not None
    assert both(box.description, {"backend": "a"}) == "wrapped {'backend': 'a'}"
    assert threads[0] == threading.get_ident() != threads[1]


def test_an_async_wrapper_is_called_in_either_form() -> None:
    inner = look()

    @functools.wraps(inner)
    async def wrapper(**arguments: Any) -> str:
        return f"wrapped {inner(**arguments)}"

    (box,) = bind([wrapper])
    assert box.description is not None
    assert both(box.description, {"backend": "a"}) == "wrapped {'backend': 'a'}"


def test_a_tool_itself_keeps_its_own_description() -> None:
    inner = look()
    (box,) = bind([inner])
    assert box.description is describe(inner)


@pytest.mark.parametrize("text", ["", " \n", "null", "{}"])
def test_no_arguments_may_be_written_in_any_way(text: str) -> None:
    assert sent_arguments(described(echo), text) == {}


@pytest.mark.parametrize("text", ["{", "[1]", '"x"', "7", "prose", "[" * 100_000, '{"n": ' + "9" * 5_000 + "}"])
def test_a_text_that_is_no_object_is_told_with_the_arguments_of_the_tool(text: str) -> None:
    fault = sent_arguments(described(echo), text)
    assert isinstance(fault, str)
    assert "JSON" in fault
    assert fault.endswith(arguments_of(described(echo)))
