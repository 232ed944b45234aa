"""A stand-in for a language model: the OpenAI Agents loop asks it what to do next, and it decides by the rules in `rules`."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from agents import FunctionTool, Model, ModelResponse, Usage
from agents.items import TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from multi_demo.lookups import Call
from multi_demo.rules import Offered, answering

LABEL = "a rule-based stand-in chooses the tools; it is not a language model"


class StandIn(Model):
    """Chooses one tool call at a time from the question, the tool definitions and the tools' answers.

    It keeps nothing between turns: each turn replays the conversation so far, as a language model reads it again.
    """

    async def get_response(  # noqa: D102 - the SDK's interface documents it
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: object,
        tools: list[Any],
        *args: object,
        **kwargs: object,
    ) -> ModelResponse:
        return ModelResponse(output=[_next_item(input, tools)], usage=Usage(), response_id=None)

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
            model="stand-in",
            object="response",
            output=[_next_item(input, tools)],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)


def _next_item(input: str | list[TResponseInputItem], tools: list[Any]) -> TResponseOutputItem:
    offered = {tool.name: tool.params_json_schema for tool in tools if isinstance(tool, FunctionTool)}
    question, answers = _conversation(input)
    steps = answering(question, offered)
    try:
        call = next(steps)
        for answer in answers:
            call = steps.send(answer)
    except StopIteration as finished:
        return _message(finished.value)
    return _tool_call(call, offered)


def _conversation(input: str | list[TResponseInputItem]) -> tuple[str, list[str]]:
    """Return the last question and what the tools have answered since."""
    if isinstance(input, str):
        return input, []
    items = cast("list[Mapping[str, Any]]", input)
    asked = max((index for index, item in enumerate(items) if item.get("role") == "user"), default=0)
    answers = [str(item["output"]) for item in items[asked:] if item.get("type") == "function_call_output"]
    return _text(items[asked].get("content", "")), answers


def _text(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in cast("list[Mapping[str, Any]]", content))
    return str(content)


def _tool_call(call: Call, offered: Offered) -> ResponseFunctionToolCall:
    """Return the call with every argument that the tool defines; strict mode wants them all."""
    defined: Mapping[str, Mapping[str, Any]] = offered[call.tool].get("properties", {})
    blanks = {name: 3 if kind.get("type") == "integer" else "" for name, kind in defined.items()}
    identity = f"call_{uuid.uuid4().hex}"
    arguments = json.dumps({**blanks, **call.arguments}, ensure_ascii=False)
    return ResponseFunctionToolCall(type="function_call", name=call.tool, call_id=identity, arguments=arguments)


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id=uuid.uuid4().hex, type="message", role="assistant", status="completed", content=[content])
