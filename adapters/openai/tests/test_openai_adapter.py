"""The OpenAI Agents adapter, tried in the SDK's own loop with a scripted model (A19, X17)."""
# ruff: noqa: E501 - A snapshot holds sentences as they are.

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, FunctionTool, RunConfig, Runner
from agents.items import ToolCallOutputItem
from agents.models.openai_responses import Converter
from agents.strict_schema import ensure_strict_json_schema
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from inline_snapshot import snapshot

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.testing import AdapterContract, FakeKnowledgeBase

UNTRACED = RunConfig(tracing_disabled=True)


def as_sent(bound: FunctionTool) -> dict[str, Any]:
    """Return a tool as the SDK puts it into a request to the Responses API."""
    (tool,) = Converter.convert_tools([bound], []).tools
    return cast("dict[str, Any]", tool)


async def run_tool(bound: FunctionTool, text: str) -> str:
    """Let the SDK's runner call a tool with the text that a model wrote, and return the output that it sends back."""
    model = ScriptedModel([[function_call(bound.name, text, call_id="call-1")], [assistant_message("Done.")]])
    result = await Runner.run(Agent("asks", model=model, tools=[bound]), "go", run_config=UNTRACED)
    (output,) = (item.output for item in result.new_items if isinstance(item, ToolCallOutputItem))
    return output


class TestOpenAIAdapter(AdapterContract):
    declares = frozenset({"text_arguments"})

    def bind(self, tools: Sequence[Any]) -> Sequence[FunctionTool]:
        return OpenAIToolBuilder.bind(tools)

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
        assert [as_sent(bound) for bound in OpenAIToolBuilder.bind(builder.build(writable=False))] == snapshot(
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
                                "description": "Name of the knowledge base.",
                                "enum": ["handbook", "notes"],
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
        for bound in OpenAIToolBuilder.bind(builder.build_async()):
            schema = bound.params_json_schema
            assert bound.strict_json_schema is True
            assert schema["required"] == list(schema["properties"])
            assert ensure_strict_json_schema(copy.deepcopy(schema)) == schema


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_answers_with_what_its_tool_found(is_async: bool) -> None:
    def repeat(call: ModelCall) -> list[Any]:
        return [assistant_message(f"It says: {call.input[-1]['output']}")]

    arguments = {"backend": "handbook", "query": "refunds", "limit": 3}
    model = ScriptedModel([[function_call("search_kb", json.dumps(arguments), call_id="call-1")], ModelStep.respond(repeat)])
    with example() as builder:
        tools = OpenAIToolBuilder.bind(builder.build_async() if is_async else builder.build())
        agent = Agent("router", instructions=builder.instructions(), model=model, tools=[*tools])
        result = await Runner.run(agent, "How long can I ask for a refund?", run_config=UNTRACED)
    assert "Refunds within 30 days." in result.final_output
    assert [tool.name for tool in model.calls[0].tools] == [bound.name for bound in tools]


async def test_an_agent_goes_on_after_a_faulty_call() -> None:
    model = ScriptedModel(
        [
            [function_call("search_kb", '{"backend": "handbook"', call_id="call-1")],
            [function_call("search_kb", json.dumps({"backend": "handbok", "query": "refunds", "limit": 3}), call_id="call-2")],
            [assistant_message("I could not find out.")],
        ]
    )
    with example() as builder:
        agent = Agent("router", model=model, tools=[*OpenAIToolBuilder.bind(builder.build())])
        result = await Runner.run(agent, "go", run_config=UNTRACED)
    outputs = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert [output.partition(".")[0] for output in outputs] == [
        "The arguments of search_kb are not valid JSON (position 22)",
        "Unknown backend 'handbok'",
    ]
