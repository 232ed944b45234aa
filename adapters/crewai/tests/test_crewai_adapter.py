"""The CrewAI adapter, tried in crews with a scripted model, by function calls and by text (A19, X17)."""
# ruff: noqa: E501 - A snapshot holds sentences as they are.

from __future__ import annotations

import asyncio
import functools
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import common_questions
import pytest
from agentkernel_kb_crewai import CrewAIToolBuilder
from common_questions import answers, asked_builder, calls
from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import BaseTool
from crewai.utilities.agent_utils import convert_tools_to_openai_schema
from inline_snapshot import snapshot
from pydantic import PrivateAttr

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.testing import AdapterContract, FakeKnowledgeBase

Call = tuple[str, dict[str, Any]]


class ScriptedModel(BaseLLM):
    """Makes the given calls one after the other, then answers with what the last one said; remembers what it was sent."""

    calls: list[Call]
    _offered: list[str] = PrivateAttr(default_factory=list)
    _answers: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *calls: Call) -> Self:
        return cls(model="scripted", calls=list(calls))

    @property
    def offered(self) -> list[str]:
        return self._offered

    @property
    def answers(self) -> list[str]:
        return self._answers

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        self._offered = [tool["function"]["name"] for tool in tools]
        self._answers = [message["content"] for message in messages if message["role"] == "tool"]
        return [self._next()] if self.calls else f"It says: {self._answers[-1]}"

    def _next(self) -> dict[str, Any]:
        name, arguments = self.calls.pop(0)
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": f"call-{len(self.calls)}", "type": "function", "function": function}


class WritingModel(ScriptedModel):
    """Writes its calls as text, as a model without function calls does."""

    def supports_function_calling(self) -> bool:
        return False

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        if self.calls:
            name, arguments = self.calls.pop(0)
            return f"Thought: I look.\nAction: {name}\nAction Input: {json.dumps(arguments)}"
        self._answers = [message["content"] for message in messages if "Observation:" in message["content"]]
        return f"Thought: I know.\nFinal Answer: {self._answers[-1].partition('Observation:')[2].strip()}"


def crew(model: BaseLLM, tools: Sequence[BaseTool], backstory: str = "You route.") -> Any:
    """Return a crew of one agent; a strict type checker knows half of what one has."""
    agent = Agent(role="router", goal="Answer", backstory=backstory, llm=model, tools=[*tools])
    task = Task(description="How long?", expected_output="a sentence", agent=agent)
    return Crew(agents=[agent], tasks=[task], cache=True)  # Opting in, so that what must not be kept could be.


async def ask(tools: Sequence[BaseTool], *calls: Call) -> list[str]:
    """Return what the tools answer to these calls, as CrewAI hands it to a model."""
    model = ScriptedModel.of(*calls)
    await crew(model, tools).akickoff()
    return model.answers


class TestCrewAIAdapter(AdapterContract):
    def bind(self, tools: Sequence[Any]) -> Sequence[BaseTool]:
        return CrewAIToolBuilder.bind(tools)

    def definition(self, bound: BaseTool) -> Mapping[str, Any]:
        (shown,), _, _ = convert_tools_to_openai_schema([bound])
        return shown["function"]

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


def test_what_the_model_sees() -> None:
    with example() as builder:
        shown, _, _ = convert_tools_to_openai_schema(CrewAIToolBuilder.bind(builder.build(writable=False)))
    assert shown == snapshot(
        [
            {
                "type": "function",
                "function": {
                    "name": "get_schemas",
                    "description": "Return every knowledge base with its schema and what it can do, as JSON. Call it before the first read.",
                    "parameters": {"properties": {}, "required": [], "type": "object", "additionalProperties": False},
                    "strict": True,
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "read_kb",
                    "description": "Read from one knowledge base: by a statement where it has a query language, else by meaning, as search_kb does. Only reads pass. Keep placeholders such as <CLIENTS> as they are.",
                    "parameters": {
                        "properties": {
                            "backend": {
                                "description": "Name of the knowledge base.",
                                "enum": ["handbook", "notes"],
                                "type": "string",
                            },
                            "query": {
                                "description": "A statement in the backend's language, for example SELECT name FROM <CLIENTS> LIMIT 5; or plain words.",
                                "type": "string",
                            },
                            "limit": {
                                "description": "Most records where the statement has no LIMIT of its own, for example 3.",
                                "type": "integer",
                            },
                        },
                        "required": ["backend", "query", "limit"],
                        "type": "object",
                        "additionalProperties": False,
                    },
                    "strict": True,
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "get_all_kb_descriptions",
                    "description": "Return one line on each knowledge base: what it holds, and what is wrong with it. Cheaper than get_schemas.",
                    "parameters": {"properties": {}, "required": [], "type": "object", "additionalProperties": False},
                    "strict": True,
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "search_kb",
                    "description": "Return the records of one knowledge base that are most like the query, best first. Not for statements.",
                    "parameters": {
                        "properties": {
                            "backend": {
                                "description": "Name of the knowledge base, or * for all at once: records then stand under [name: id].",
                                "enum": ["handbook", "notes", "*"],
                                "type": "string",
                            },
                            "query": {
                                "description": "What to look for in plain words, for example refund period.",
                                "type": "string",
                            },
                            "limit": {"description": "Most records to return, for example 3.", "type": "integer"},
                        },
                        "required": ["backend", "query", "limit"],
                        "type": "object",
                        "additionalProperties": False,
                    },
                    "strict": True,
                },
            },
        ]
    )


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_crew_answers_with_what_its_tool_found(is_async: bool) -> None:
    model = ScriptedModel.of(("search_kb", {"backend": "handbook", "query": "refunds", "limit": 3}))
    with example() as builder:
        tools = CrewAIToolBuilder.bind(builder.build_async() if is_async else builder.build())
        output = crew(model, tools, builder.instructions()).kickoff()
    assert output.raw == "It says: - Refunds within 30 days. (source: N/A)"
    assert model.offered == [bound.name for bound in tools]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_model_without_function_calls_uses_the_tools_too(is_async: bool) -> None:
    model = WritingModel.of(("search_kb", {"backend": "handbook", "query": "refunds"}))
    with example() as builder:
        tools = CrewAIToolBuilder.bind(builder.build_async() if is_async else builder.build())
        output = crew(model, tools).kickoff()
    assert output.raw == "- Refunds within 30 days. (source: N/A)"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_a_tool_can_be_awaited_by_hand(is_async: bool) -> None:
    with example() as builder:
        tools = CrewAIToolBuilder.bind(builder.build_async() if is_async else builder.build())
        search = next(bound for bound in tools if bound.name == "search_kb")
        assert await search.arun(backend="handbook", query="refunds") == "- Refunds within 30 days. (source: N/A)"


async def test_a_statement_reaches_a_database(sales: KnowledgeBuilder) -> None:
    calls: list[Call] = [("read_kb", {"backend": "sales", "query": "SELECT name, budget FROM clients"})]
    answers = await ask(CrewAIToolBuilder.bind(sales.build()), *calls)
    assert answers == ["| name | budget |\n| --- | --- |\n| Acme | 90 |"]


async def test_a_write_is_refused_and_the_crew_goes_on(sales: KnowledgeBuilder) -> None:
    deletion = "DELETE FROM clients"
    by_reading, by_writing, counted = await ask(
        CrewAIToolBuilder.bind(sales.build_async()),
        ("read_kb", {"backend": "sales", "query": deletion}),
        ("write_kb", {"backend": "sales", "query": deletion}),
        ("read_kb", {"backend": "sales", "query": "SELECT count(*) AS clients FROM clients"}),
    )
    assert by_reading == "Refused: read_kb only reads. This statement deletes (DELETE, position 0)."
    assert by_writing.startswith("Backend 'sales' does not support write.")
    assert counted == "| clients |\n| --- |\n| 1 |"


async def test_what_was_written_is_found_by_the_same_question_asked_again() -> None:
    question: Call = ("search_kb", {"backend": "notes", "query": "Acme"})
    with KnowledgeBuilder([FakeKnowledgeBase("notes", writable=True)]) as builder:
        before, _, after = await ask(
            CrewAIToolBuilder.bind(builder.build()),
            question,
            ("write_kb", {"backend": "notes", "text": "Acme pays late."}),
            question,
        )
    assert "Acme pays late." not in before
    assert "Acme pays late." in after


@pytest.mark.parametrize("model", [ScriptedModel, WritingModel])
def test_a_coroutine_around_a_tool_runs_in_a_crew(model: type[ScriptedModel]) -> None:
    with example() as builder:
        search = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")
        tools = CrewAIToolBuilder.bind([marked(search)])
        output = crew(model.of(("search_kb", {"backend": "handbook", "query": "refunds"})), tools).kickoff()
    assert "Checked: - Refunds within 30 days." in output.raw


def marked(tool: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(tool)
    async def checked(**arguments: Any) -> str:
        await asyncio.sleep(0)
        return f"Checked: {await tool(**arguments)}"

    return checked


def test_names_that_crewai_shows_alike_are_told() -> None:
    def readKB() -> str:  # noqa: N802 - CrewAI writes it `read_kb`.
        """Read."""
        return ""

    with example() as builder, pytest.raises(ValueError, match=r"more than once: \['read_kb'\]"):
        CrewAIToolBuilder.bind([*builder.build(), readKB])


def test_a_function_without_a_docstring_is_named() -> None:
    def silent() -> str:
        return ""

    with pytest.raises(ValueError, match="docstring") as raised:
        CrewAIToolBuilder.bind([silent])
    assert raised.value.__notes__ == ["While binding the tool silent."]


SCRIPT = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        print("REACHED OUT", event, arguments[-1] if event == "socket.connect" else arguments[0])
        raise OSError("Nothing may leave.")

sys.addaudithook(refuse)
sys.path.extend(sys.argv[1:])
from test_crewai_adapter import ScriptedModel, crew, example
from agentkernel_kb_crewai import CrewAIToolBuilder

with example() as builder:
    model = ScriptedModel.of(("search_kb", {"backend": "handbook", "query": "refunds"}))
    print(crew(model, CrewAIToolBuilder.bind(builder.build())).kickoff().raw)
"""


@pytest.mark.timeout(600)  # A new interpreter imports the whole of CrewAI, which takes long on a busy machine.
def test_with_telemetry_and_tracing_off_nothing_leaves_the_process() -> None:
    folders = [str(Path(file).parent) for file in (__file__, common_questions.__file__)]
    command = [sys.executable, "-c", SCRIPT, *folders]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=True)
    assert done.stdout == "It says: - Refunds within 30 days. (source: N/A)\n"


async def test_the_common_questions_get_their_answers(tmp_path: Path) -> None:
    with asked_builder(tmp_path) as builder:
        assert await ask(CrewAIToolBuilder.bind(builder.build()), *calls()) == answers()
