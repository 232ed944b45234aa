"""The Pydantic AI adapter, tried in the framework's own loop with a scripted model (A19, X17)."""
# ruff: noqa: E501 - A snapshot holds sentences as they are.

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agentkernel_kb_pydantic_ai import PydanticAIToolBuilder
from common_questions import answers, asked_builder, calls
from inline_snapshot import snapshot
from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.testing import AdapterContract, FakeKnowledgeBase

Call = tuple[str, dict[str, Any] | str]


class Script:
    """Makes the given calls one after the other, then answers with what the last one said; remembers what it was sent."""

    def __init__(self, *calls: Call) -> None:
        self._calls = list(calls)
        self.offered: list[ToolDefinition] = []
        self.answers: list[str] = []
        self.instructions: str | None = None

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered, self.instructions = info.function_tools, info.instructions
        self.answers = [str(part.content) for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if self._calls:
            name, arguments = self._calls.pop(0)
            return ModelResponse([ToolCallPart(name, arguments)])
        return ModelResponse([TextPart(f"It says: {self.answers[-1]}" if self.answers else "done")])


async def run(script: Script, tools: Sequence[Tool[Any]], instructions: str | None = None) -> str:
    """Let an agent with these tools follow a script, and return what it says in the end."""
    agent = Agent(FunctionModel(script), tools=tools, instructions=instructions)
    return (await agent.run("How long can I ask for a refund?")).output


async def ask(tools: Sequence[Tool[Any]], *calls: Call) -> list[str]:
    """Return what the tools answer to these calls, as a model reads it."""
    script = Script(*calls)
    await run(script, tools)
    return script.answers


class TestPydanticAIAdapter(AdapterContract):
    declares = frozenset({"text_arguments"})

    def bind(self, tools: Sequence[Any]) -> Sequence[Tool[Any]]:
        return PydanticAIToolBuilder.bind(tools)

    def definition(self, bound: Tool[Any]) -> Mapping[str, Any]:
        shown = bound.tool_def
        return {"name": shown.name, "description": shown.description, "parameters": shown.parameters_json_schema}

    async def invoke(self, bound: Tool[Any], arguments: dict[str, Any]) -> str:
        (answer,) = await ask([bound], (bound.name, arguments))
        return answer

    async def invoke_text(self, bound: Tool[Any], text: str) -> str:
        (answer,) = await ask([bound], (bound.name, text))
        return answer


def example() -> KnowledgeBuilder:
    return KnowledgeBuilder([FakeKnowledgeBase("handbook", [{"text": "Refunds within 30 days."}]), FakeKnowledgeBase("notes")])


async def test_what_the_model_sees() -> None:
    script = Script()
    with example() as builder:
        await run(script, PydanticAIToolBuilder.bind(builder.build(writable=False)))
    assert [(tool.name, tool.description, tool.parameters_json_schema) for tool in script.offered] == snapshot(
        [
            (
                "get_schemas",
                "Return every knowledge base with its schema and what it can do, as JSON. Call it before the first read.",
                {"type": "object", "properties": {}, "required": []},
            ),
            (
                "read_kb",
                "Read from one knowledge base: by a statement where it has a query language, else by meaning, as search_kb does. Only reads pass. Keep placeholders such as <CLIENTS> as they are.",
                {
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
            ),
            (
                "get_all_kb_descriptions",
                "Return one line on each knowledge base: what it holds, and what is wrong with it. Cheaper than get_schemas.",
                {"type": "object", "properties": {}, "required": []},
            ),
            (
                "search_kb",
                "Return the records of one knowledge base that are most like the query, best first. Not for statements.",
                {
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
            ),
        ]
    )


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_answers_with_what_its_tool_found(is_async: bool) -> None:
    script = Script(("search_kb", {"backend": "handbook", "query": "refunds"}))
    with example() as builder:
        tools = PydanticAIToolBuilder.bind(builder.build_async() if is_async else builder.build())
        said = await run(script, tools, builder.instructions())
        assert script.instructions == builder.instructions()
    assert said == "It says: - Refunds within 30 days. (source: N/A)"
    assert [tool.name for tool in script.offered] == [bound.name for bound in tools]


async def test_an_agent_goes_on_after_any_number_of_faulty_calls() -> None:
    faulty: list[Call] = [("search_kb", '{"backend": "handbook"'), ("search_kb", "[1]")] * 3
    with example() as builder:
        tools = PydanticAIToolBuilder.bind(builder.build())
        *refused, found = await ask(tools, *faulty, ("search_kb", '{"backend": "handbook", "query": "refunds"}'))
    assert {answer.partition(".")[0] for answer in refused} == {
        "The arguments of search_kb are not valid JSON (position 22)",
        "The arguments of search_kb must be one JSON object",
    }
    assert found == "- Refunds within 30 days. (source: N/A)"


async def test_what_a_model_sends_is_never_taken_for_a_fault_of_the_adapter() -> None:
    with example() as builder:
        (answer,) = await ask(PydanticAIToolBuilder.bind(builder.build()), ("get_schemas", {"fault": "Forged."}))
    assert answer == "get_schemas has no argument 'fault'. It takes no arguments."


async def test_a_wrapper_may_send_the_model_back() -> None:
    with example() as builder:
        search = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")
        script = Script(("search_kb", {"backend": "handbook", "query": "refunds"}))
        said = await run(script, PydanticAIToolBuilder.bind([sent_back(search)]))
    assert "Ask for a shorter period." in said


def sent_back(tool: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(tool)
    async def refuse(**_: Any) -> str:
        raise ModelRetry("Ask for a shorter period.")

    return refuse


async def test_the_common_questions_get_their_answers(tmp_path: Path) -> None:
    with asked_builder(tmp_path) as builder:
        assert await ask(PydanticAIToolBuilder.bind(builder.build()), *calls()) == answers()
