"""The Google ADK adapter, tried in the kit's own runner with a scripted model, and on the wire to Gemini (A19, X17)."""
# ruff: noqa: E501 - A snapshot holds sentences as they are.

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from agentkernel_kb_adk import ADKToolBuilder
from common_questions import answers, asked_builder, calls
from google.adk.agents import Agent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.events.event import Event
from google.adk.models import Gemini
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types
from inline_snapshot import snapshot
from pydantic import PrivateAttr

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.testing import AdapterContract, FakeKnowledgeBase

Call = tuple[str, dict[str, Any]]
Tool = Callable[..., Any] | BaseTool | BaseToolset


class ScriptedModel(BaseLlm):
    """Makes the given calls one after the other, then answers with what the last one said; remembers what it was sent."""

    model: str = "scripted"
    calls: list[Call]
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list)

    @property
    def offered(self) -> list[str]:
        return list(self._requests[0].tools_dict)

    @property
    def instruction(self) -> str:
        return cast("str", self._requests[0].config.system_instruction)

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(llm_request)
        part = self._next(llm_request)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

    def _next(self, request: LlmRequest) -> types.Part:
        if self.calls:
            name, arguments = self.calls.pop(0)
            return types.Part.from_function_call(name=name, args=arguments)
        (*_, said) = answers_in(request.contents)
        return types.Part.from_text(text=f"It says: {said}")


def answers_in(contents: Sequence[types.Content | None]) -> list[str]:
    """Return what the tools answered, in order, as the kit hands it to a model."""
    parts = (part for content in contents if content for part in content.parts or [])
    responses = (part.function_response.response for part in parts if part.function_response)
    return [response["result"] for response in responses if response]


async def run(model: BaseLlm, tools: list[Tool], instructions: str = "") -> list[Event]:
    """Let the kit's runner run an agent, and return its events."""

    def instruct(_context: ReadonlyContext) -> str:
        return instructions

    async with InMemoryRunner(Agent(name="router", model=model, instruction=instruct, tools=tools)) as runner:
        return await runner.run_debug("How long can I ask for a refund?", quiet=True)


async def ask(tools: list[Tool], *calls: Call) -> list[str]:
    """Return what the tools answer to these calls."""
    return answers_in([event.content for event in await run(ScriptedModel(calls=list(calls)), tools)])


def declared(tools: Sequence[Tool]) -> list[types.FunctionDeclaration]:
    """Return what the kit puts into a model's request for these tools."""
    request = LlmRequest()
    request.append_tools([tool for tool in tools if isinstance(tool, BaseTool)])
    (offered,) = request.config.tools or []
    return cast("types.Tool", offered).function_declarations or []


class TestADKAdapter(AdapterContract):
    def bind(self, tools: Sequence[Any]) -> Sequence[Tool]:
        return ADKToolBuilder.bind(tools)

    def definition(self, bound: BaseTool) -> Mapping[str, Any]:
        (declaration,) = declared([bound])
        # What takes no arguments is declared without parameters; any other model of the kit is sent this in their place.
        parameters: object = declaration.parameters_json_schema or {"type": "object", "properties": {}, "required": []}
        return {"name": declaration.name, "description": declaration.description, "parameters": parameters}

    async def invoke(self, bound: BaseTool, arguments: dict[str, Any]) -> str:
        (answer,) = await ask([bound], (bound.name, arguments))
        return answer


def example() -> KnowledgeBuilder:
    return KnowledgeBuilder([FakeKnowledgeBase("handbook", [{"text": "Refunds within 30 days."}]), FakeKnowledgeBase("notes")])


@pytest.fixture
def sales(tmp_path: Path) -> Iterator[KnowledgeBuilder]:
    """A router over one table in SQLite."""
    with sqlite3.connect(tmp_path / "sales.db") as database:
        database.execute("CREATE TABLE clients (name TEXT, budget INTEGER)")
        database.execute("INSERT INTO clients VALUES ('Acme', 90)")
    database.close()
    with KnowledgeBuilder([SQLManager(f"sqlite:///{tmp_path / 'sales.db'}", name="sales")]) as builder:
        yield builder


@contextmanager
def gemini(*parts: dict[str, Any]) -> Generator[tuple[str, list[dict[str, Any]]]]:
    """Serve what Gemini's API would answer, one part for each request; yield its address and the bodies that it received."""
    script, bodies = list(parts), list[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            candidate = {"content": {"role": "model", "parts": [script.pop(0)]}, "finishReason": "STOP"}
            answer = json.dumps({"candidates": [candidate]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()


# Google's SDK derives a class from aiohttp's session, which aiohttp advises against.
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
async def test_what_gemini_is_sent_and_how_its_numbers_arrive() -> None:
    call = {"functionCall": {"name": "search_kb", "args": {"backend": "handbook", "query": "refunds", "limit": 3.0}}}
    with example() as builder, gemini(call, {"text": "Within 30 days."}) as (address, bodies):
        model = Gemini(model="gemini-2.5-flash", base_url=address, client_kwargs={"api_key": "unused"})
        events = await run(model, ADKToolBuilder.bind(builder.build(writable=False)))
    assert answers_in([event.content for event in events]) == ["- Refunds within 30 days. (source: N/A)"]
    assert bodies[0]["tools"] == snapshot(
        [
            {
                "functionDeclarations": [
                    {
                        "description": "Return every knowledge base with its schema and what it can do, as JSON. Call it before the first read.",
                        "name": "get_schemas",
                    },
                    {
                        "description": "Read from one knowledge base: by a statement where it has a query language, else by meaning, as search_kb does. Only reads pass. Keep placeholders such as <CLIENTS> as they are.",
                        "name": "read_kb",
                        "parameters_json_schema": {
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
                    {
                        "description": "Return one line on each knowledge base: what it holds, and what is wrong with it. Cheaper than get_schemas.",
                        "name": "get_all_kb_descriptions",
                    },
                    {
                        "description": "Return the records of one knowledge base that are most like the query, best first. Not for statements.",
                        "name": "search_kb",
                        "parameters_json_schema": {
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
                ]
            }
        ]
    )


def test_every_argument_is_one_that_gemini_supports() -> None:
    with example() as builder:
        schemas = [each.parameters_json_schema for each in declared(ADKToolBuilder.bind(builder.build()))]
    for schema in (schema for schema in schemas if schema is not None):
        types.Schema.from_json_schema(json_schema=types.JSONSchema(**schema), raise_error_on_unsupported_field=True)
    assert schemas.count(None) == 2  # Those without arguments: Gemini refuses an object without properties.


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_answers_with_what_its_tool_found(is_async: bool) -> None:
    model = ScriptedModel(calls=[("search_kb", {"backend": "handbook", "query": "refunds"})])
    with example() as builder:
        tools = ADKToolBuilder.bind(builder.build_async() if is_async else builder.build())
        (*_, last) = await run(model, tools, builder.instructions())
        expected = [tool.__name__ for tool in builder.build()]
    assert last.content is not None
    assert [part.text for part in last.content.parts or []] == ["It says: - Refunds within 30 days. (source: N/A)"]
    assert model.offered == expected


async def test_braces_in_a_description_reach_the_model_as_they_are() -> None:
    model = ScriptedModel(calls=[("get_all_kb_descriptions", {})])
    with KnowledgeBuilder([FakeKnowledgeBase("notes", description="notes: one {topic} each.")]) as builder:
        await run(model, ADKToolBuilder.bind(builder.build()), builder.instructions())
    assert "one {topic} each." in model.instruction


async def test_a_statement_reaches_a_database(sales: KnowledgeBuilder) -> None:
    calls: list[Call] = [("read_kb", {"backend": "sales", "query": "SELECT name, budget FROM clients"})]
    answers = await ask(ADKToolBuilder.bind(sales.build()), *calls)
    assert answers == ["| name | budget |\n| --- | --- |\n| Acme | 90 |"]


async def test_a_write_is_refused_and_the_agent_goes_on(sales: KnowledgeBuilder) -> None:
    count = {"backend": "sales", "query": "SELECT count(*) AS clients FROM clients"}
    deletion = "DELETE FROM clients"
    by_reading, by_writing, counted = await ask(
        ADKToolBuilder.bind(sales.build_async()),
        ("read_kb", {"backend": "sales", "query": deletion}),
        ("write_kb", {"backend": "sales", "query": deletion}),
        ("read_kb", count),
    )
    assert by_reading == "Refused: read_kb only reads. This statement deletes (DELETE, position 0)."
    assert by_writing.startswith("Backend 'sales' does not support write.")
    assert counted == "| clients |\n| --- |\n| 1 |"


async def test_calls_that_a_model_makes_at_one_time_are_all_answered() -> None:
    class Both(ScriptedModel):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            parts = [types.Part.from_function_call(name=name, args=arguments) for name, arguments in self.calls]
            content = types.Content(role="model", parts=parts or [types.Part.from_text(text="done")])
            self.calls.clear()
            yield LlmResponse(content=content)

    ask_for = [("search_kb", {"backend": name, "query": "refunds"}) for name in ("handbook", "nowhere")]
    with example() as builder:
        events = await run(Both(calls=ask_for), ADKToolBuilder.bind(builder.build()))
    answers = answers_in([event.content for event in events])
    assert [answer.partition(".")[0] for answer in answers] == ["- Refunds within 30 days", "Unknown backend 'nowhere'"]


async def test_the_common_questions_get_their_answers(tmp_path: Path) -> None:
    with asked_builder(tmp_path) as builder:
        assert await ask(ADKToolBuilder.bind(builder.build()), *calls()) == answers()
