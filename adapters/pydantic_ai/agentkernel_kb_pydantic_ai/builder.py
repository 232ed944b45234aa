"""Binds tools as `Tool` objects of Pydantic AI."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from pydantic_ai import Tool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, SkipToolExecution, ToolFailed

from agentkernel_kb.binding import aanswer, bind_each, schema_of, sent_arguments
from agentkernel_kb.model import ToolDescription

_STEERING = (ApprovalRequired, CallDeferred, ModelRetry, SkipToolExecution, ToolFailed)
_FAULT = "fault"


class PydanticAIToolBuilder:
    """Turns the tools of a `KnowledgeBuilder` into what `Agent(tools=…)` takes."""

    @staticmethod
    def bind(tools: Iterable[Callable[..., Any] | Tool[Any]]) -> list[Tool[Any]]:
        """Bind tools, plain ones and coroutine functions alike; every call runs without blocking the event loop.

        Args:
            tools: What `build()` or `build_async()` returns. Other callables are bound by Pydantic AI's own `Tool`, and a
                `Tool` stays as it is, so that an agent's further tools can be given in the same list.

        Returns:
            One `Tool` for each, in the same order.

        Raises:
            TypeError: Something given is no tool.
            AKConfigError: Two tools have one name.
        """
        return bind_each(tools, bound=Tool, described=_described, plain=Tool)


def _described(description: ToolDescription) -> Tool[Any]:
    async def invoke(**arguments: Any) -> str:
        fault = arguments.get(_FAULT)
        return str(fault) if isinstance(fault, _Fault) else await aanswer(description, arguments, passing=_STEERING)

    tool = Tool[Any].from_schema(invoke, description.name, description.description, schema_of(description))
    tool.function_schema.validator = cast("Any", _Arguments(description))
    return tool


class _Fault(str):
    """What is wrong with a call; a type of its own, so that nothing a model sends is taken for it."""

    __slots__ = ()


class _Arguments:
    """Takes whatever a model sends, where Pydantic AI would end the run over a second call that is no JSON object.

    The tool itself says what is wrong with its arguments.
    """

    def __init__(self, description: ToolDescription) -> None:
        self._description = description

    def validate_json(self, text: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        """Return the arguments in a model's text."""
        written = text if isinstance(text, str) else text.decode(errors="replace")
        sent = sent_arguments(self._description, written)
        return {_FAULT: _Fault(sent)} if isinstance(sent, str) else sent

    def validate_python(self, value: Any, **_: Any) -> dict[str, Any]:
        """Return the arguments that a model sent as an object."""
        return value
