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

STATEMENTS = (
    "SELECT orderstatus, count(*) AS orders FROM <ORDERS> GROUP BY orderstatus ORDER BY orders DESC",
    "SELECT c.name, CAST(sum(o.totalprice) AS decimal(12, 2)) AS spent "
    "FROM <ORDERS> AS o JOIN <CUSTOMERS> AS c USING (custkey) GROUP BY c.name ORDER BY spent DESC",
    "SELECT DISTINCT marketsegment FROM <CUSTOMERS>",  # As a model would guess the column; what it is told helps.
    "DELETE FROM <ORDERS> WHERE year(orderdate) = 1992",
)
_MENDED = "SELECT DISTINCT mktsegment FROM <CUSTOMERS> ORDER BY mktsegment LIMIT 10"


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
            return _read(self._learnt[str(items[-1]["content"])])
        answer = str(items[-1]["output"])
        return _read(_MENDED) if "Did you mean mktsegment?" in answer else _message(answer)


def _read(statement: str) -> ResponseFunctionToolCall:
    arguments = json.dumps({"backend": "lake", "query": statement, "limit": 3})
    return ResponseFunctionToolCall(
        type="function_call", name="read_kb", call_id=f"call_{uuid.uuid4().hex}", arguments=arguments
    )


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id=uuid.uuid4().hex, type="message", role="assistant", status="completed", content=[content])
