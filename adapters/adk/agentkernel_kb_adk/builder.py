"""Binds tools as `BaseTool` objects of Google's Agent Development Kit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import FunctionDeclaration

from agentkernel_kb.binding import aanswer, bind_each, schema_of
from agentkernel_kb.model import ToolDescription

if TYPE_CHECKING:
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.tool_context import ToolContext


class ADKToolBuilder:
    """Turns the tools of a `KnowledgeBuilder` into what `Agent(tools=…)` takes."""

    @staticmethod
    def bind(tools: Iterable[Callable[..., Any] | BaseTool]) -> list[Callable[..., Any] | BaseTool | BaseToolset]:
        """Bind tools, plain ones and coroutine functions alike; every call runs without blocking the event loop.

        Args:
            tools: What `build()` or `build_async()` returns. Other callables are bound by the kit's own `FunctionTool`, and a
                `BaseTool` stays as it is, so that an agent's further tools can be given in the same list.

        Returns:
            One `BaseTool` for each, in the same order; typed as what `Agent(tools=…)` asks for.

        Raises:
            TypeError: Something given is no tool.
            AKConfigError: Two tools have one name.
        """
        return [*bind_each(tools, bound=BaseTool, described=_KnowledgeTool, plain=FunctionTool)]


class _KnowledgeTool(BaseTool):
    """A router's tool, declared as it describes itself.

    `FunctionTool` would declare what it reads off the signature, without the descriptions of the arguments, and would run a
    plain function in the thread of the event loop.
    """

    def __init__(self, description: ToolDescription) -> None:
        super().__init__(name=description.name, description=description.description)
        self._description = description

    def _get_declaration(self) -> FunctionDeclaration:
        schema = schema_of(self._description)
        # Gemini refuses an object without properties; a function that takes nothing is declared without parameters.
        parameters = schema if schema["properties"] else None
        return FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=parameters)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
        return await aanswer(self._description, args)
