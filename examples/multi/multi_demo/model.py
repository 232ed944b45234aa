"""Which model drives the agent: an OpenAI-compatible server if the environment names one, else the stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import openai
from agents import Model, OpenAIChatCompletionsModel
from agents.exceptions import AgentsException

from multi_demo.standin import LABEL, StandIn

DEFAULT_MODEL = "gpt-4.1-mini"


@dataclass(frozen=True)
class Driver:
    """What drives the agent.

    Attributes:
        model: A real model or the stand-in.
        label: A sentence that says which.
        client: The connection to the real model's server; `None` for the stand-in.
    """

    model: Model
    label: str
    client: openai.AsyncOpenAI | None = None

    async def aclose(self) -> None:
        """Close the connection, if there is one."""
        if self.client:
            await self.client.close()


def choose_model(environment: Mapping[str, str]) -> Driver:
    """Return the model that the environment names, else the stand-in.

    Args:
        environment: `OPENAI_API_KEY` turns the real model on; a local server takes any value. `OPENAI_BASE_URL` is its address,
            `KB_MODEL` its name.
    """
    key = environment.get("OPENAI_API_KEY", "").strip()
    if not key:
        return Driver(StandIn(), f"No OPENAI_API_KEY: {LABEL}.")
    address, name = _address(environment), environment.get("KB_MODEL", "").strip() or DEFAULT_MODEL
    client = openai.AsyncOpenAI(api_key=key, base_url=address, max_retries=1, timeout=120)
    model = OpenAIChatCompletionsModel(model=name, openai_client=client)
    return Driver(model, f"The model '{name}' at {_host(address)}.", client)


def failure(error: openai.OpenAIError | AgentsException, environment: Mapping[str, str]) -> str:
    """Return one line on why a model did not answer. It never holds the key, nor what the server sent back."""
    host = _host(_address(environment))
    if isinstance(error, openai.APITimeoutError):
        return f"The model server at {host} did not answer in time."
    if isinstance(error, openai.APIConnectionError):
        return f"The model server at {host} can't be reached. Check OPENAI_BASE_URL and the network, or unset OPENAI_API_KEY."
    if isinstance(error, openai.APIStatusError):
        hints = {401: "check OPENAI_API_KEY", 403: "check OPENAI_API_KEY", 404: "check KB_MODEL and OPENAI_BASE_URL"}
        hint = hints.get(error.status_code, "its own log says more")
        return f"The model server at {host} answered with HTTP {error.status_code}: {hint}."
    return f"The run ended without an answer: {type(error).__name__}."


def _address(environment: Mapping[str, str]) -> str:
    return environment.get("OPENAI_BASE_URL", "").strip() or "https://api.openai.com/v1"


def _host(address: str) -> str:
    """Return host and port only: an address can hold credentials."""
    parts = urlsplit(address)
    try:
        return f"{parts.hostname or 'an unreadable address'}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "an unreadable address"
