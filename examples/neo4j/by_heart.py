"""A stand-in for a language model, for running offline: it has learnt one statement for each question."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from agents import Model, ModelResponse, Usage
from agents.items import TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

WRITE = "MATCH (c:Colleague {name: $name}), (p:Project {name: $project}) MERGE (c)-[:WORKS_ON {role: $role}]->(p)"
STATEMENTS = (
    "MATCH (c:Collegue)-[w:WORKS_ON]->(p:Project {name: 'Harbour'}) RETURN c.name AS name, w.role AS role",  # Misspelt.
    "MATCH path = shortestPath((:Colleague {name: 'Ines'})-[*..6]-(:Colleague {name: 'Tomas'})) RETURN path",
    WRITE,
    "MATCH (c:Colleague)-[w:WORKS_ON]->(:Project {name: 'Harbour'}) RETURN c.name AS name, w.role AS role ORDER BY name",
    "MATCH (c:Colleague) DETACH DELETE c",
)
_MENDED = "MATCH (c:Colleague)-[w:WORKS_ON]->(p:Project {name: 'Harbour'}) RETURN c.name AS name, w.role AS role ORDER BY name"
_PARAMETERS = {"name": "Mara", "project": "Harbour", "role": "tester"}


class ByHeart(Model):
    """Sends the statement for a question, a better one where the answer says what was meant, and repeats what comes back.

    Args:
        questions: The questions, in the order of `STATEMENTS`.
    """

    def __init__(self, questions: Sequence[str]) -> None:
        self._learnt = dict(zip(questions, STATEMENTS, strict=True))

    async def get_response(  # noqa: D102 - the SDK's interface documents it
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: object,
        tools: list[Any],
        *args: object,
        **kwargs: object,
    ) -> ModelResponse:
        return ModelResponse(output=[self._next(input)], usage=Usage(), response_id=None)

    async def stream_response(  # noqa: D102 - the SDK's interface documents it
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: object,
        tools: list[Any],
        *args: object,
        **kwargs: object,
    ) -> AsyncIterator[TResponseStreamEvent]:
        response = Response(
            id=uuid.uuid4().hex,
            created_at=0,
            model="by heart",
            object="response",
            output=[self._next(input)],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)

    def _next(self, input: str | list[TResponseInputItem]) -> TResponseOutputItem:
        """Return a tool call for a question, and a message for a tool's answer."""
        items = cast("list[Mapping[str, Any]]", [{"content": input}] if isinstance(input, str) else input)
        if items[-1].get("type") != "function_call_output":
            statement = self._learnt[str(items[-1]["content"])]
            return _write(statement) if statement == WRITE else _read(statement)
        answer = str(items[-1]["output"])
        return _read(_MENDED) if "Did you mean Colleague?" in answer else _message(answer)


def _read(statement: str) -> ResponseFunctionToolCall:
    return _call("read_kb", query=statement, limit=5)


def _write(statement: str) -> ResponseFunctionToolCall:
    return _call("write_kb", text="", source="agent", query=statement, params_json=json.dumps(_PARAMETERS))


def _call(name: str, **arguments: object) -> ResponseFunctionToolCall:
    text = json.dumps({"backend": "people", **arguments})
    return ResponseFunctionToolCall(type="function_call", name=name, call_id=f"call_{uuid.uuid4().hex}", arguments=text)


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id=uuid.uuid4().hex, type="message", role="assistant", status="completed", content=[content])
