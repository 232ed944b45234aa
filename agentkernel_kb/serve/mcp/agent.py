"""ServedAgent: whose tools are served, by which tokens it is known, and for whom its calls are made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.identity import Identity
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder

_SHORTEST_TOKEN = 16
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # What a bearer token may be made of, RFC 6750 section 2.1.


@dataclass(frozen=True)
class ServedAgent:
    """One agent as a server knows it.

    Attributes:
        name: Its name, for the server only; no client is told another agent's.
        builder: What it may use.
        tokens: Bearer tokens by which it is known over HTTP; several, so that one can be replaced without a gap. A single
            string is one token. They stand in no `repr`, log or message.
        writable: It gets `write_kb`, as of `KnowledgeBuilder.build(writable=…)`.
        identity: Whom all its calls act for, if anybody.

    Raises:
        AKConfigError: The name is empty, the builder is none, or a token is shorter than 16 characters or holds others than a
            bearer token may.
    """

    name: str
    builder: KnowledgeBuilder
    tokens: Iterable[str] = field(default=(), repr=False)
    writable: bool = True
    identity: Identity | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise AKConfigError("ServedAgent.name must be a name.")
        if not isinstance(self.builder, KnowledgeBuilder):
            raise AKConfigError(f"ServedAgent.builder must be a KnowledgeBuilder, not {type(self.builder).__name__}.")
        tokens = (self.tokens,) if isinstance(self.tokens, str) else tuple(self.tokens)
        object.__setattr__(self, "tokens", tokens)
        for token in tokens:
            if not isinstance(token, str) or len(token) < _SHORTEST_TOKEN or not _TOKEN.fullmatch(token):
                raise AKConfigError(
                    f"A token of the agent '{self.name}' is not one: at least {_SHORTEST_TOKEN} letters, digits and -._~+/, "
                    "for example from `python -c 'import secrets; print(secrets.token_urlsafe())'`."
                )


def served(agent: ServedAgent | KnowledgeBuilder) -> ServedAgent:
    """Return the agent, or a nameless one for a builder.

    Raises:
        AKConfigError: It is neither.
    """
    if isinstance(agent, ServedAgent):
        return agent
    return ServedAgent("agent", agent)


def all_served(agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent]) -> list[ServedAgent]:
    """Return the agents, each with a name and tokens of its own.

    Raises:
        AKConfigError: There is none, something given is none, or two share a name or a token.
    """
    if isinstance(agents, ServedAgent | KnowledgeBuilder):
        return [served(agents)]
    if isinstance(agents, str | bytes) or not isinstance(agents, Iterable):
        raise AKConfigError(f"To be served: one agent or a list of them, not {type(agents).__name__}.")
    listed = list(agents)
    for agent in listed:
        if not isinstance(agent, ServedAgent):
            raise AKConfigError(f"Each agent to be served must be a ServedAgent, not {type(agent).__name__}.")
    if not listed:
        raise AKConfigError("There is no agent to be served.")
    _check_distinct(listed)
    return listed


def _check_distinct(agents: list[ServedAgent]) -> None:
    owners: dict[str, str] = {}
    names: set[str] = set()
    for agent in agents:
        if agent.name in names:
            raise AKConfigError(f"Two agents to be served are called '{agent.name}'.")
        names.add(agent.name)
        for token in agent.tokens:
            if token in owners:
                raise AKConfigError(f"The agents '{owners[token]}' and '{agent.name}' have a token in common.")
            owners[token] = agent.name
