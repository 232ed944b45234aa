"""Binds tools as LangChain `StructuredTool` objects, which LangGraph's tool node and any chat model take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from langchain_core.tools import StructuredTool
from langgraph.errors import GraphBubbleUp
from pydantic import PrivateAttr

from agentkernel_kb.binding import aanswer, answer, bind_each, is_async, schema_of
from agentkernel_kb.model import ToolDescription

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic.v1 import ValidationError as ValidationErrorV1

_STEERING = (GraphBubbleUp,)  # `interrupt()` and its kind stop a graph by raising.


class LangGraphToolBuilder:
    """Turns the tools of a `KnowledgeBuilder` into what `ToolNode` and `bind_tools` take."""

    @staticmethod
    def bind(tools: Iterable[Callable[..., Any] | StructuredTool]) -> list[StructuredTool]:
        """Bind tools, plain ones and coroutine functions alike.

        Args:
            tools: What `build()` or `build_async()` returns; each runs under `invoke` as well as under `ainvoke`. Other
                callables are bound by LangChain's own `StructuredTool.from_function`, and a `StructuredTool` stays as it is,
                so that an agent's further tools can be given in the same list.

        Returns:
            One tool object for each, in the same order.

        Raises:
            TypeError: Something given is no tool.
            AKConfigError: Two tools have one name.
        """
        return bind_each(tools, bound=StructuredTool, described=_KnowledgeTool.of, plain=_plain)


class _KnowledgeTool(StructuredTool):
    """A router's tool. It answers a faulty call where LangChain would raise out of the graph.

    LangChain does not check arguments against a JSON schema. It passes them to `_run` as keywords, among which it mixes
    `config` and `run_manager` where the signature names them: an argument of such a name, or one named `self`, would be lost
    or raise. Here the signature names nothing, so that what a model sent arrives as it is.
    """

    _description: ToolDescription = PrivateAttr()

    @classmethod
    def of(cls, description: ToolDescription) -> StructuredTool:
        tool = cls(
            name=description.name,
            description=description.description,
            args_schema=schema_of(description),
            func=description.call,
            coroutine=description.acall,
            handle_tool_error=True,
            handle_validation_error=_faults,
        )
        tool._description = description
        return tool

    def _run(self, /, *args: Any, **kwargs: Any) -> str:
        return answer(self._description, kwargs, passing=_STEERING)

    async def _arun(self, /, *args: Any, **kwargs: Any) -> str:
        return await aanswer(self._description, kwargs, passing=_STEERING)


def _plain(tool: Callable[..., Any]) -> StructuredTool:
    given: dict[str, Any] = {"coroutine": tool} if is_async(tool) else {"func": tool}
    return StructuredTool.from_function(**given, handle_tool_error=True, handle_validation_error=_faults)


def _faults(error: ValidationError | ValidationErrorV1) -> str:
    """Say what is wrong with the arguments of a call, without the values that were sent."""
    faults = [f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in error.errors()]
    return f"The arguments are not right. {'; '.join(faults)}."
