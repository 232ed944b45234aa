"""The common questions, asked through MCP: by the official client, and by an agent whose framework is one (X11)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.items import ModelResponse, ToolCallOutputItem, TResponseStreamEvent
from agents.mcp import MCPServer, MCPServerStdio, MCPServerStdioParams, MCPServerStreamableHttp, MCPServerStreamableHttpParams
from agents.models.interface import Model
from agents.usage import Usage
from common_questions import asked_builder, questions
from mcp import Client, StdioServerParameters
from mcp_serving import FIRST_TOKEN, connected, serving
from mcp_types import TextContent
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agentkernel_kb.serve.mcp import ServedAgent

# The SDK's client looks for required arguments by itself, and does not ask the server where one is missing.
SENT = [question for question in questions() if "needs query" not in question.answer]

PROGRAM = [str(Path(__file__).parent.parent / "mcp_questions_program.py")]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The stores that are asked, served over HTTP to one agent."""
    with asked_builder(tmp_path) as builder, serving(ServedAgent("asker", builder, FIRST_TOKEN)) as address:
        yield address


def client(transport: str, request: pytest.FixtureRequest, folder: Path) -> AbstractAsyncContextManager[Client]:
    if transport == "stdio":
        return Client(StdioServerParameters(command=sys.executable, args=[*PROGRAM, str(folder)], env=dict(os.environ)))
    url: str = request.getfixturevalue("url")
    return connected(url, FIRST_TOKEN, mode="auto" if transport == "http" else "legacy")


@pytest.mark.parametrize("transport", ["stdio", "http", "http legacy"])
async def test_the_official_client_gets_the_answers_and_how_each_call_ended(
    request: pytest.FixtureRequest, tmp_path: Path, transport: str
) -> None:
    async with client(transport, request, tmp_path) as asker:
        for question in questions():
            result = await asker.call_tool(question.tool, question.arguments)
            assert result.content == [TextContent(text=question.answer)]
            assert result.structured_content["outcome"] == question.outcome
            assert result.is_error == (question.outcome not in ("ok", "empty", "partial"))


class AskingModel(Model):
    """Asks the common questions one after the other."""

    def __init__(self) -> None:
        self.calls = [(question.tool, question.arguments) for question in SENT]

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        if self.calls:
            name, arguments = self.calls.pop(0)
            written = json.dumps(arguments)
            call = ResponseFunctionToolCall(call_id=f"{len(self.calls)}", name=name, arguments=written, type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        content = ResponseOutputText(text="done", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="1", content=[content], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise AssertionError("Nothing here streams.")


@asynccontextmanager
async def server(transport: str, request: pytest.FixtureRequest, folder: Path) -> AsyncGenerator[MCPServer]:
    """Connect the client of the OpenAI Agents SDK."""
    if transport == "stdio":
        params = MCPServerStdioParams(command=sys.executable, args=[*PROGRAM, str(folder)], env=dict(os.environ))
        async with MCPServerStdio(params=params, client_session_timeout_seconds=60) as connection:
            yield connection
        return
    url: str = request.getfixturevalue("url")
    where = MCPServerStreamableHttpParams(url=url, headers={"authorization": f"Bearer {FIRST_TOKEN}"})
    async with MCPServerStreamableHttp(params=where, client_session_timeout_seconds=60) as connection:
        yield connection


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_an_agent_of_openais_sdk_gets_the_same_answers(
    request: pytest.FixtureRequest, tmp_path: Path, transport: str
) -> None:
    async with server(transport, request, tmp_path) as connection:
        agent = Agent("router", model=AskingModel(), mcp_servers=[connection])
        result = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True), max_turns=100)
    outputs = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    told = [output["text"] if isinstance(output, dict) else output for output in outputs]
    assert told == [question.answer for question in SENT]
