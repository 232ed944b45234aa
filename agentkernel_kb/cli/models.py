"""A language model that answers in a session, through the OpenAI Agents SDK and this library's adapter for it.

Both are installed by whoever wants a model here, and loaded only then: nothing in this package depends on them.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.opening import Answered, Opened
from agentkernel_kb.cli.standin import Turn
from agentkernel_kb.router.events import ToolEvent, heard

MODEL_VARIABLE = "AGENTKERNEL_KB_MODEL"
_KEY, _ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_DEFAULT_ADDRESS = "https://api.openai.com/v1"
_MOST_TURNS = 12
_HINTS = {401: f"check {_KEY}", 403: f"check {_KEY}", 404: f"check --model and {_ADDRESS}", 429: "it asks for patience"}


class ModelRouter:
    """An agent with a real model and the tools of an open configuration; it remembers the session.

    Args:
        knowledge: The configuration.
        agent: Whose tools and instructions it gets; `None` for all.
        model: Name of the model, as its server knows it.
        seconds: Longest time that the server may take for one step.

    Raises:
        CommandError: The SDK or the adapter is not installed, or no key is set.
    """

    def __init__(self, knowledge: Opened, agent: str | None, model: str, seconds: float) -> None:
        import asyncio  # Only a model needs an event loop, and it takes its time to load.

        self._sdk: Any = _imported("agents")
        self._openai: Any = _imported("openai")
        binder: Any = _imported("agentkernel_kb_openai").OpenAIToolBuilder
        address = os.environ.get(_ADDRESS, "").strip() or _DEFAULT_ADDRESS
        self._client: Any = self._openai.AsyncOpenAI(api_key=_key(), base_url=address, max_retries=1, timeout=seconds)
        self._agent: Any = self._sdk.Agent(
            name=agent or "KB_Router_Agent",
            instructions=knowledge.instructions(agent),
            tools=binder.bind(knowledge.tools(agent)),
            model=self._sdk.OpenAIChatCompletionsModel(model=model, openai_client=self._client),
        )
        self._host = _host(address)
        self.label = f"the model '{model}' at {self._host}"
        self._session: list[Any] = []
        self._runner = asyncio.Runner()

    def answer(self, question: str) -> Turn:
        """Let the model answer, and return its tool calls and its answer.

        Raises:
            CommandError: The model gave none.
        """
        asked = [*self._session, {"role": "user", "content": question}]
        try:
            result, events = self._runner.run(self._run(asked))
        except self._openai.OpenAIError as error:
            raise self._failure(error) from error
        except self._sdk.exceptions.AgentsException as error:
            raise CommandError(f"The run ended without an answer ({type(error).__name__}).") from error
        self._session = result.to_input_list()
        return Turn(_calls(self._session[len(asked) :], events), str(result.final_output))

    async def _run(self, asked: list[Any]) -> tuple[Any, list[ToolEvent]]:
        settings = self._sdk.RunConfig(tracing_disabled=True)  # The SDK would send every conversation to OpenAI.
        with heard() as events:
            result = await self._sdk.Runner.run(self._agent, asked, max_turns=_MOST_TURNS, run_config=settings)
        return result, events

    def close(self) -> None:
        """End the connections and the event loop of the session."""
        try:
            self._runner.run(self._client.close())
        finally:
            self._runner.close()

    def _failure(self, error: Exception) -> CommandError:
        """Say why the server did not answer, without what it sent back."""
        if isinstance(error, self._openai.APITimeoutError):
            return CommandError(f"The model server at {self._host} did not answer in time.", Code.UNREACHABLE)
        if isinstance(error, self._openai.APIConnectionError):
            return CommandError(f"The model server at {self._host} can't be reached: check {_ADDRESS}.", Code.UNREACHABLE)
        status = getattr(error, "status_code", None)
        hint = _HINTS.get(status, "its own log says more") if isinstance(status, int) else type(error).__name__
        code = Code.UNREACHABLE if status in (401, 403, 429) else Code.FAILED
        return CommandError(f"The model server at {self._host} answered with HTTP {status}: {hint}.", code)


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CommandError(
            "A model needs the OpenAI Agents SDK and the adapter for it: pip install agentkernel-kb-openai. "
            "Without --model, a stand-in answers."
        ) from None


def _key() -> str:
    key = os.environ.get(_KEY, "").strip()
    if not key:
        raise CommandError(f"A model needs a key in {_KEY}; a server of your own, in {_ADDRESS}, takes any.", Code.USAGE)
    return key


def _host(address: str) -> str:
    """Return host and port only: an address can hold credentials."""
    parts = urlsplit(address)
    try:
        return f"{parts.hostname or 'an unreadable address'}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "an unreadable address"


def _calls(items: list[Any], events: list[ToolEvent]) -> list[Answered]:
    """Return the tool calls that a run made, each with its answer and how it ended."""
    outputs = {item["call_id"]: str(item["output"]) for item in items if _type(item) == "function_call_output"}
    made = [item for item in items if _type(item) == "function_call"]
    return [
        Answered(str(item["name"]), _arguments(item), outputs.get(item["call_id"], ""), _event(item, events)) for item in made
    ]


def _event(call: Mapping[str, Any], events: list[ToolEvent]) -> ToolEvent | None:
    """Return how a call ended, and take that out: calls of one step run at once, and end in any order."""
    for event in events:
        if event.tool == call["name"]:
            events.remove(event)
            return event
    return None


def _type(item: Any) -> object:
    return cast("Mapping[str, object]", item).get("type") if isinstance(item, Mapping) else None


def _arguments(item: Mapping[str, Any]) -> dict[str, Any]:
    try:
        read: object = json.loads(item["arguments"])
    except ValueError:
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}
