"""The OpenAI Agents adapter, tried in the SDK's own loop with a scripted model (A19, X17)."""
# ruff: noqa: E501 - A snapshot holds sentences as they are.

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, FunctionTool, RunConfig, Runner
from agents.items import ModelResponse, ToolCallOutputItem, TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from agents.models.interface import Model
from agents.models.openai_responses import Converter
from agents.strict_schema import ensure_strict_json_schema
from agents.tool import Tool
from agents.tool_context import ToolContext
from agents.usage import Usage
from common_questions import answers, asked_builder, calls
from inline_snapshot import snapshot
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.testing import AdapterContract, FakeKnowledgeBase

UNTRACED = RunConfig(tracing_disabled=True)


class ScriptedModel(Model):
    """Makes the given tool calls one after the other, then answers with what the last one said."""

    def __init__(self, *calls: tuple[str, str]) -> None:
        self.calls = list(calls)
        self.offered: list[str] = []

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: Any,
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        self.offered = [tool.name for tool in tools]
        item = self._call(*self.calls.pop(0)) if self.calls else self._message(cast("Any", input)[-1]["output"])
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise AssertionError("Nothing here streams.")

    def _call(self, name: str, text: str) -> TResponseOutputItem:
        return ResponseFunctionToolCall(call_id=f"call-{len(self.calls)}", name=name, arguments=text, type="function_call")

    def _message(self, said: str) -> TResponseOutputItem:
        content = ResponseOutputText(text=f"It says: {said}", type="output_text", annotations=[])
        return ResponseOutputMessage(id="1", content=[content], role="assistant", status="completed", type="message")


def as_sent(bound: FunctionTool) -> dict[str, Any]:
    """Return a tool as the SDK puts it into a request to the Responses API."""
    (tool,) = Converter.convert_tools([bound], []).tools
    return cast("dict[str, Any]", tool)


async def run_tool(bound: FunctionTool, text: str) -> str:
    """Let the SDK's runner call a tool with the text that a model wrote, and return the output that it sends back."""
    agent = Agent("asks", model=ScriptedModel((bound.name, text)), tools=[bound])
    result = await Runner.run(agent, "go", run_config=UNTRACED)
    (output,) = (item.output for item in result.new_items if isinstance(item, ToolCallOutputItem))
    return output


def bind(tools: Iterable[Any]) -> list[FunctionTool]:
    """Bind tools; every one is a `FunctionTool`, though typed as what an agent takes."""
    bound = OpenAIToolBuilder.bind(tools)
    functions = [tool for tool in bound if isinstance(tool, FunctionTool)]
    assert len(functions) == len(bound)
    return functions


class TestOpenAIAdapter(AdapterContract):
    declares = frozenset({"text_arguments"})

    def bind(self, tools: Sequence[Any]) -> Sequence[FunctionTool]:
        return bind(tools)

    def definition(self, bound: FunctionTool) -> Mapping[str, Any]:
        return {name: value for name, value in as_sent(bound).items() if name in ("name", "description", "parameters")}

    async def invoke(self, bound: FunctionTool, arguments: dict[str, Any]) -> str:
        return await run_tool(bound, json.dumps(arguments))

    async def invoke_text(self, bound: FunctionTool, text: str) -> str:
        context = ToolContext[Any](None, tool_name=bound.name, tool_call_id="call-1", tool_arguments=text)
        return await bound.on_invoke_tool(context, text)


def example() -> KnowledgeBuilder:
    return KnowledgeBuilder([FakeKnowledgeBase("handbook", [{"text": "Refunds within 30 days."}]), FakeKnowledgeBase("notes")])


def test_what_the_model_sees() -> None:
    with example() as builder:
        assert [as_sent(bound) for bound in bind(builder.build(writable=False))] == snapshot(
            [
                {
                    "name": "get_schemas",
                    "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
                    "strict": True,
                    "type": "function",
                    "description": "Return every knowledge base with its schema and what it can do, as JSON. Call it before the first read.",
                },
                {
                    "name": "read_kb",
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
                        "required": ["backend", "query", "limit"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                    "type": "function",
                    "description": "Read from one knowledge base: by a statement where it has a query language, else by meaning, as search_kb does. Only reads pass. Keep placeholders such as <CLIENTS> as they are.",
                },
                {
                    "name": "get_all_kb_descriptions",
                    "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
                    "strict": True,
                    "type": "function",
                    "description": "Return one line on each knowledge base: what it holds, and what is wrong with it. Cheaper than get_schemas.",
                },
                {
                    "name": "search_kb",
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
                        "required": ["backend", "query", "limit"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                    "type": "function",
                    "description": "Return the records of one knowledge base that are most like the query, best first. Not for statements.",
                },
            ]
        )


def test_every_definition_is_strict_and_accepted_by_the_sdk_as_it_stands() -> None:
    with example() as builder:
        for bound in bind(builder.build_async()):
            schema = bound.params_json_schema
            assert bound.strict_json_schema is True
            assert schema["required"] == list(schema["properties"])
            assert ensure_strict_json_schema(copy.deepcopy(schema)) == schema


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_answers_with_what_its_tool_found(is_async: bool) -> None:
    model = ScriptedModel(("search_kb", '{"backend": "handbook", "query": "refunds", "limit": 3}'))
    with example() as builder:
        tools = bind(builder.build_async() if is_async else builder.build())
        agent = Agent("router", instructions=builder.instructions(), model=model, tools=[*tools])
        result = await Runner.run(agent, "How long can I ask for a refund?", run_config=UNTRACED)
    assert "Refunds within 30 days." in result.final_output
    assert model.offered == [bound.name for bound in tools]


async def test_an_agent_goes_on_after_a_faulty_call() -> None:
    model = ScriptedModel(
        ("search_kb", '{"backend": "handbook"'),
        ("search_kb", '{"backend": "handbok", "query": "refunds", "limit": 3}'),
    )
    with example() as builder:
        agent = Agent("router", model=model, tools=OpenAIToolBuilder.bind(builder.build()))
        result = await Runner.run(agent, "go", run_config=UNTRACED)
    outputs = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert [output.partition(".")[0] for output in outputs] == [
        "The arguments of search_kb are not valid JSON (position 22)",
        "Unknown backend 'handbok'",
    ]


async def test_the_common_questions_get_their_answers(tmp_path: Path) -> None:
    model = ScriptedModel(*((name, json.dumps(arguments)) for name, arguments in calls()))
    with asked_builder(tmp_path) as builder:
        agent = Agent("router", model=model, tools=OpenAIToolBuilder.bind(builder.build()))
        result = await Runner.run(agent, "go", run_config=UNTRACED, max_turns=100)
    assert [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)] == answers()
