"""A stand-in for a language model, for running offline: `Remember: …` is written, the rest is searched for."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping
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


class OneRule(Model):
    """Calls one tool, and repeats what it answered."""

    async def get_response(  # noqa: D102 - the SDK's interface documents it
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: object,
        tools: list[Any],
        *args: object,
        **kwargs: object,
    ) -> ModelResponse:
        return ModelResponse(output=[_next(input, tools)], usage=Usage(), response_id=None)

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
            model="one rule",
            object="response",
            output=[_next(input, tools)],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)


def _next(input: str | list[TResponseInputItem], tools: list[Any]) -> TResponseOutputItem:
    """Return a tool call for a question, and a message for a tool's answer."""
    items = cast("list[Mapping[str, Any]]", [{"content": input}] if isinstance(input, str) else input)
    if items[-1].get("type") == "function_call_output":
        answer = str(items[-1]["output"])
        best = next((line for line in answer.splitlines() if line.startswith("- ")), answer)
        return _message(best)
    question = str(items[-1]["content"])
    order, _, fact = question.partition(":")
    if order == "Remember" and fact:
        return _call("write_kb", tools, text=fact.strip(), source="agent", query="", params_json="{}")
    return _call("read_kb", tools, query=question, limit=3)


def _call(name: str, tools: list[Any], **arguments: object) -> ResponseFunctionToolCall:
    """Return a call of a tool on the first backend that its definition names."""
    definition = next(tool.params_json_schema for tool in tools if tool.name == name)
    backend: str = definition["properties"]["backend"]["enum"][0]
    text = json.dumps({"backend": backend, **arguments})
    return ResponseFunctionToolCall(type="function_call", name=name, call_id=f"call_{uuid.uuid4().hex}", arguments=text)


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id=uuid.uuid4().hex, type="message", role="assistant", status="completed", content=[content])
