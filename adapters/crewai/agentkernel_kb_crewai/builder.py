"""Binds tools as `BaseTool` objects of CrewAI."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from crewai.tools import BaseTool, tool
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import BaseModel, ConfigDict, PrivateAttr

from agentkernel_kb.binding import aanswer, answer, bind_each, schema_of
from agentkernel_kb.model import ToolDescription

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


class CrewAIToolBuilder:
    """Turns the tools of a `KnowledgeBuilder` into what `Agent(tools=…)` and `Task(tools=…)` take."""

    @staticmethod
    def bind(tools: Iterable[Callable[..., Any] | BaseTool]) -> list[BaseTool]:
        """Bind tools, plain ones and coroutine functions alike.

        Args:
            tools: What `build()` or `build_async()` returns; each runs under `run` as well as under `arun`. Other callables
                are bound by CrewAI's own `tool`, and a `BaseTool` stays as it is, so that an agent's further tools can be
                given in the same list.

        Returns:
            One tool object for each, in the same order.

        Raises:
            TypeError: Something given is no tool.
            AKConfigError: Two tools have one name, as CrewAI writes names for a model.
            ValueError: A callable that is no router's tool has no docstring, which CrewAI asks for.
        """
        return bind_each(tools, bound=BaseTool, described=_KnowledgeTool.of, plain=tool, shown=sanitize_tool_name)


class _KnowledgeTool(BaseTool):
    """A router's tool, of which CrewAI keeps no answer: what a store holds changes, and a failure passes."""

    _description: ToolDescription = PrivateAttr()

    @classmethod
    def of(cls, description: ToolDescription) -> BaseTool:
        made = cls(
            name=description.name,
            description=description.description,
            args_schema=_arguments_of(description),
            cache_function=_never,
        )
        made._description = description
        return made

    def _run(self, /, **arguments: Any) -> str:
        return answer(self._description, arguments)

    async def _arun(self, /, **arguments: Any) -> str:
        return await aanswer(self._description, arguments)


class _Arguments(BaseModel):
    """Whatever a model sends. The tool itself says what is wrong with it, without the values that CrewAI's message holds."""

    model_config = ConfigDict(extra="allow")


def _arguments_of(description: ToolDescription) -> type[BaseModel]:
    """Return a model that takes anything and shows the tool's own schema."""

    class Arguments(_Arguments):
        @classmethod
        def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
            return schema_of(description)

    return Arguments


def _never(_arguments: Any = None, _answer: Any = None) -> bool:
    return False
