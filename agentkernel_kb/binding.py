"""What every adapter shares: which tools it takes, and how a call that a model sent reaches a tool without ever raising."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import ToolDescription, argument_fault, arguments_of, describe

_Errors = tuple[type[Exception], ...]


class Named(Protocol):
    """A framework's tool object, as far as binding has to know it."""

    name: str


Bound = TypeVar("Bound", bound=Named)


def bind_each(
    tools: Iterable[object],
    *,
    bound: type[Bound],
    described: Callable[[ToolDescription], Bound],
    plain: Callable[[Callable[..., Any]], Bound],
    shown: Callable[[str], str] = str,
) -> list[Bound]:
    """Turn tools into a framework's tool objects, in their order.

    Args:
        tools: What `KnowledgeBuilder.build()` or `build_async()` returns, other callables, and tools that are already bound.
        bound: The framework's tool class; an instance passes through as it is.
        described: Makes a tool object of a router's tool.
        plain: Makes one of a callable that carries no description, by the framework's own means.
        shown: What the framework makes of a name before a model reads it; two names that come out the same are one.

    Raises:
        TypeError: `tools` is no collection of tools, or something in it can't be called; the message names it.
        AKConfigError: Two tools have one name.
    """
    made = [_bind_one(tool, bound, described, plain) for tool in _listed(tools)]
    names = [shown(tool.name) for tool in made]
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise AKConfigError(f"Each tool needs a name of its own; given more than once: {doubles}. All names: {names}.")
    return made


def _listed(tools: object) -> list[object]:
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise TypeError(f"bind() takes the list of tools that KnowledgeBuilder.build() returns, not {_kind(tools)}.")
    return list(cast("Iterable[object]", tools))


def _bind_one(
    tool: object,
    bound: type[Bound],
    described: Callable[[ToolDescription], Bound],
    plain: Callable[[Callable[..., Any]], Bound],
) -> Bound:
    if isinstance(tool, bound):
        return tool
    if not callable(tool):
        raise TypeError(f"bind() takes callables and {bound.__name__} objects; got {_kind(tool)}.")
    description = describe(tool)
    try:
        return plain(tool) if description is None else described(_as_given(tool, description))
    except Exception as error:
        error.add_note(f"While binding the tool {getattr(tool, '__name__', _kind(tool))}.")
        raise


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of type {type(value).__name__}"


def _as_given(tool: Callable[..., Any], description: ToolDescription) -> ToolDescription:
    """Return a description whose calls go through `tool` itself.

    `functools.wraps` copies the description of a tool to whatever wraps it; a wrapper that asks for approval or keeps a log
    would silently be passed by if the calls of that description were used.
    """
    if tool in (description.call, description.acall):
        return description
    if is_async(tool):
        return replace(description, call=_to_its_end(tool), acall=tool)
    return replace(description, call=tool, acall=_in_a_thread(tool))


def _to_its_end(tool: Callable[..., Any]) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        return asyncio.run(tool(**arguments))

    return call


def _in_a_thread(tool: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    async def acall(**arguments: Any) -> str:
        return await asyncio.to_thread(tool, **arguments)

    return acall


def is_async(tool: Callable[..., Any]) -> bool:
    """Tell whether calling `tool` gives something to await."""
    return inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None))  # noqa: B004


def schema_of(description: ToolDescription) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments as new plain containers, which a framework may change as it likes."""
    return _plain(description.parameters)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Iterable[Any]", value)]
    return value


def sent_arguments(description: ToolDescription, text: str) -> dict[str, Any] | str:
    """Return the arguments that a model sent as JSON, or a sentence about what is wrong with them.

    Args:
        description: The tool.
        text: What the model wrote; blank text and `null` stand for no arguments.
    """
    if not text.strip():
        return {}
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        at = f" (position {error.pos})" if isinstance(error, json.JSONDecodeError) else ""
        return f"The arguments of {description.name} are not valid JSON{at}. Send one JSON object. {arguments_of(description)}"
    if value is None:
        return {}
    if not isinstance(value, dict):
        return f"The arguments of {description.name} must be one JSON object. {arguments_of(description)}"
    return cast("dict[str, Any]", value)


def answer(description: ToolDescription, arguments: Mapping[str, Any], *, passing: _Errors = ()) -> str:
    """Call a tool with what a model sent, and say in the answer what is wrong with the call.

    Args:
        description: The tool.
        arguments: What the model sent, by name.
        passing: Exceptions by which the framework steers, which a wrapper around a tool may raise; no other gets through.
    """
    fault = _fault(description, arguments)
    if fault is not None:
        return fault
    try:
        return description.call(**arguments)
    except passing:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to the framework; the message could hold anything
        return _failed(description, error)


async def aanswer(description: ToolDescription, arguments: Mapping[str, Any], *, passing: _Errors = ()) -> str:
    """`answer` without blocking the event loop. A cancellation goes through."""
    fault = _fault(description, arguments)
    if fault is not None:
        return fault
    try:
        return await description.acall(**arguments)
    except passing:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to the framework; the message could hold anything
        return _failed(description, error)


def _fault(description: ToolDescription, arguments: Mapping[str, Any]) -> str | None:
    """Say what is wrong with the arguments for a wrapper around a tool; a router's own tool says so itself, and tells of it."""
    return None if describe(description.call) is description else argument_fault(description, arguments)


def _failed(description: ToolDescription, error: Exception) -> str:
    return f"{description.name} failed ({type(error).__name__}). This is not an empty result. Try another way of asking."
