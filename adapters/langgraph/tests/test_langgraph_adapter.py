"""The LangGraph adapter, tried in compiled graphs with their tool node and a scripted model (A19, X17)."""
# ruff: noqa: E501 - A snapshot holds sentences as they are.

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agentkernel_kb_langgraph import LangGraphToolBuilder
from common_questions import answers, asked_builder, calls
from inline_snapshot import snapshot
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import Field, PrivateAttr

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.testing import AdapterContract, FakeKnowledgeBase


class ScriptedChatModel(BaseChatModel):
    """Calls one tool, then answers with what the tool said; remembers the tools that it was offered."""

    tool: str
    arguments: dict[str, Any]
    _offered: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def offered(self) -> list[str]:
        return [tool["function"]["name"] for tool in self._offered]

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        self._offered = [convert_to_openai_tool(tool) for tool in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        answer = calling(self.tool, self.arguments) if isinstance(last, HumanMessage) else AIMessage(f"It says: {last.content}")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def calling(tool: str, arguments: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "call-1"}])


def tool_graph(tools: Sequence[StructuredTool], saver: InMemorySaver | None = None) -> Any:
    """Return a graph that only runs the tools that the last message asks for."""
    graph: Any = StateGraph(MessagesState)  # Half of its generic parameters are unknown to a strict type checker.
    graph.add_node("tools", ToolNode([*tools]))
    graph.add_edge(START, "tools")
    return graph.compile(checkpointer=saver)


def agent_graph(model: BaseChatModel, tools: Sequence[StructuredTool]) -> Any:
    """Return an agent: model, tool node, and back."""
    chooser = model.bind_tools(tools)

    def choose(state: MessagesState) -> MessagesState:
        return {"messages": [chooser.invoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)  # Half of its generic parameters are unknown to a strict type checker.
    graph.add_node("model", choose)
    graph.add_node("tools", ToolNode([*tools]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


class TestLangGraphAdapter(AdapterContract):
    def bind(self, tools: Sequence[Any]) -> Sequence[StructuredTool]:
        return LangGraphToolBuilder.bind(tools)

    def definition(self, bound: StructuredTool) -> Mapping[str, Any]:
        return convert_to_openai_tool(bound)["function"]

    async def invoke(self, bound: StructuredTool, arguments: dict[str, Any]) -> str:
        state = await tool_graph([bound]).ainvoke({"messages": [calling(bound.name, arguments)]})
        return state["messages"][-1].content


def example() -> KnowledgeBuilder:
    return KnowledgeBuilder([FakeKnowledgeBase("handbook", [{"text": "Refunds within 30 days."}]), FakeKnowledgeBase("notes")])


def run_sync(tools: Sequence[StructuredTool], name: str, arguments: dict[str, Any]) -> str:
    return tool_graph(tools).invoke({"messages": [calling(name, arguments)]})["messages"][-1].content


def test_what_the_model_sees() -> None:
    with example() as builder:
        shown = [convert_to_openai_tool(bound) for bound in LangGraphToolBuilder.bind(builder.build(writable=False))]
    assert shown == snapshot(
        [
            {
                "type": "function",
                "function": {
                    "name": "get_schemas",
                    "description": "Return every knowledge base with its schema and what it can do, as JSON. Call it before the first read.",
                    "parameters": {"type": "object", "properties": {}, "required": []},
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "read_kb",
                    "description": "Read from one knowledge base: by a statement where it has a query language, else by meaning, as search_kb does. Only reads pass. Keep placeholders such as <CLIENTS> as they are.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "backend": {
                                "type": "string",
                                "description": "Name of the knowledge base.",
                                "enum": ["handbook", "notes"],
                            },
                            "query": {
                                "type": "string",
                                "description": "A statement in the backend's language, for example SELECT name FROM <CLIENTS> LIMIT 5; or plain words.",
                            },
                            "limit": {
                                "type": "integer",
                                "description": "Most records where the statement has no LIMIT of its own, for example 3.",
                            },
                        },
                        "required": ["backend", "query"],
                    },
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "get_all_kb_descriptions",
                    "description": "Return one line on each knowledge base: what it holds, and what is wrong with it. Cheaper than get_schemas.",
                    "parameters": {"type": "object", "properties": {}, "required": []},
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "search_kb",
                    "description": "Return the records of one knowledge base that are most like the query, best first. Not for statements.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "backend": {
                                "type": "string",
                                "description": "Name of the knowledge base, or * for all at once: records then stand under [name: id].",
                                "enum": ["handbook", "notes", "*"],
                            },
                            "query": {
                                "type": "string",
                                "description": "What to look for in plain words, for example refund period.",
                            },
                            "limit": {"type": "integer", "description": "Most records to return, for example 3."},
                        },
                        "required": ["backend", "query"],
                    },
                },
            },
        ]
    )


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_answers_with_what_its_tool_found(is_async: bool) -> None:
    model = ScriptedChatModel(tool="search_kb", arguments={"backend": "handbook", "query": "refunds"})
    with example() as builder:
        tools = LangGraphToolBuilder.bind(builder.build_async() if is_async else builder.build())
        state = await agent_graph(model, tools).ainvoke({"messages": [HumanMessage("How long can I ask for a refund?")]})
    assert "Refunds within 30 days." in state["messages"][-1].content
    assert model.offered == [tool.name for tool in tools]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_graph_without_an_event_loop_runs_either_kind_of_tool(is_async: bool) -> None:
    model = ScriptedChatModel(tool="search_kb", arguments={"backend": "handbook", "query": "refunds"})
    with example() as builder:
        tools = LangGraphToolBuilder.bind(builder.build_async() if is_async else builder.build())
        state = agent_graph(model, tools).invoke({"messages": [HumanMessage("How long can I ask for a refund?")]})
    assert "Refunds within 30 days." in state["messages"][-1].content


@pytest.mark.parametrize("name", ["self", "config", "run_manager", "callbacks"])
def test_a_faulty_call_without_an_event_loop_is_answered(name: str) -> None:
    with example() as builder:
        answer = run_sync(LangGraphToolBuilder.bind(builder.build()), "get_schemas", {name: "x"})
    assert answer == f"get_schemas has no argument '{name}'. It takes no arguments."


def asking(tool: Callable[..., str]) -> Callable[..., str]:
    """Wrap a tool so that a person has to approve each call."""

    @functools.wraps(tool)
    def approved(**arguments: Any) -> str:
        return tool(**arguments) if interrupt("May I?") else "Not approved."

    return approved


@pytest.mark.parametrize(("decision", "stored"), [(True, 1), (False, 0)])
def test_a_wrapper_can_interrupt_the_graph_for_an_approval(decision: bool, stored: int) -> None:
    notes = FakeKnowledgeBase("notes", writable=True)
    with KnowledgeBuilder([notes]) as builder:
        write = next(tool for tool in builder.build() if tool.__name__ == "write_kb")
        graph = tool_graph(LangGraphToolBuilder.bind([asking(write)]), InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        asked = graph.invoke({"messages": [calling("write_kb", {"backend": "notes", "text": "t"})]}, thread)
        graph.invoke(Command(resume=decision), thread)
    assert [each.value for each in asked["__interrupt__"]] == ["May I?"]
    assert len(notes.calls) == stored


def test_arguments_that_an_own_function_does_not_take_are_answered_without_their_values() -> None:
    def double(number: int) -> int:
        """Return twice a number."""
        return 2 * number

    answer = run_sync(LangGraphToolBuilder.bind([double]), "double", {"number": "secret"})
    assert answer.startswith("The arguments are not right. number: ")
    assert "secret" not in answer


def test_a_tool_exception_of_an_own_function_is_answered() -> None:
    def fail() -> str:
        """Fail."""
        raise ToolException("Closed on Sundays.")

    assert run_sync(LangGraphToolBuilder.bind([fail]), "fail", {}) == "Closed on Sundays."


class AskingChatModel(ScriptedChatModel):
    """Asks the common questions one after the other."""

    tool: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    _calls: list[tuple[str, dict[str, Any]]] = PrivateAttr(default_factory=calls)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        answer = calling(*self._calls.pop(0)) if self._calls else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=answer)])


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_common_questions_get_their_answers(tmp_path: Path, is_async: bool) -> None:
    with asked_builder(tmp_path) as builder:
        agent = agent_graph(AskingChatModel(), LangGraphToolBuilder.bind(builder.build()))
        asking, bounds = {"messages": [HumanMessage("go")]}, {"recursion_limit": 100}
        state = await agent.ainvoke(asking, bounds) if is_async else agent.invoke(asking, bounds)
    assert [message.content for message in state["messages"] if isinstance(message, ToolMessage)] == answers()
