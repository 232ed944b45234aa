"""Binds tools as `FunctionTool` objects of the OpenAI Agents SDK, in its strict mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agents import FunctionTool, Tool, function_tool
from agents.tool_context import ToolContext

from agentkernel_kb.binding import aanswer, bind_each, schema_of, sent_arguments
from agentkernel_kb.model import ToolDescription


class OpenAIToolBuilder:
    """Turns the tools of a `KnowledgeBuilder` into what `Agent(tools=…)` takes."""

    @staticmethod
    def bind(tools: Iterable[Callable[..., Any] | FunctionTool]) -> list[Tool]:
        """Bind tools, plain ones and coroutine functions alike; every call runs without blocking the event loop.

        Args:
            tools: What `build()` or `build_async()` returns. Other callables are bound by the SDK's own `function_tool`, and
                a `FunctionTool` stays as it is, so that an agent's further tools can be given in the same list.

        Returns:
            One `FunctionTool` for each, in the same order; typed as what `Agent(tools=…)` asks for.

        Raises:
            TypeError: Something given is no tool.
            AKConfigError: Two tools have one name.
        """
        return [*bind_each(tools, bound=FunctionTool, described=_described, plain=_plain)]


def _described(description: ToolDescription) -> FunctionTool:
    async def invoke(_context: ToolContext[Any], text: str) -> str:
        arguments = sent_arguments(description, text)
        return arguments if isinstance(arguments, str) else await aanswer(description, arguments)

    return FunctionTool(
        name=description.name,
        description=description.description,
        params_json_schema=_strict(schema_of(description)),
        on_invoke_tool=invoke,
        strict_json_schema=True,
    )


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as strict mode wants it: every argument is sent, and no other."""
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}


def _plain(tool: Callable[..., Any]) -> FunctionTool:
    return function_tool(tool)
