"""A stand-in for a language model, for running offline: it has learnt which tools answer each question."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, cast

from agents import Model, ModelResponse, Usage
from agents.items import TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

Step = tuple[str, Mapping[str, object]]


class ByHeart(Model):
    """Makes the calls that it has learnt for a question, one after the other, and repeats what the last one brought.

    Args:
        learnt: The question, and the tools to call with their arguments.
    """

    def __init__(self, learnt: Mapping[str, Sequence[Step]]) -> None:
        self._learnt = learnt

    async def get_response(  # noqa: D102 - the SDK's interface documents it
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: object,
        tools: list[Any],
        *args: object,
        **kwargs: object,
    ) -> ModelResponse:
        return ModelResponse(output=[self._next(input, {tool.name for tool in tools})], usage=Usage(), response_id=None)

    def stream_response(self, *args: object, **kwargs: object) -> AsyncIterator[TResponseStreamEvent]:
        """Not offered: the demo runs without streaming.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("the stand-in does not stream")

    def _next(self, input: str | list[TResponseInputItem], tools: Collection[str]) -> TResponseOutputItem:
        items = cast("list[Mapping[str, Any]]", [{"content": input}] if isinstance(input, str) else input)
        question = next(str(item["content"]) for item in items if "content" in item)
        answers = [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
        steps = self._learnt[question]
        if len(answers) == len(steps):
            return _message(answers[-1])
        name, arguments = steps[len(answers)]
        if name not in tools:
            return _message(f"I can't do that: I was given no {name}.")
        return ResponseFunctionToolCall(
            type="function_call", name=name, call_id=f"call_{uuid.uuid4().hex}", arguments=json.dumps(arguments)
        )


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id=uuid.uuid4().hex, type="message", role="assistant", status="completed", content=[content])
