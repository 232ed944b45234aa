"""A loaded configuration: its backends, and what each agent may do with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Self

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.backends import DeclaredBackend
from agentkernel_kb.config.description import Description
from agentkernel_kb.config.faults import Fault
from agentkernel_kb.config.instructions import duties
from agentkernel_kb.config.okf_block import Role
from agentkernel_kb.config.policy import EVERYTHING, Agent, Grant, access_of, role_grant
from agentkernel_kb.knowledgebuilder import AsyncTool, KnowledgeBuilder, Tool
from agentkernel_kb.model import Operation
from agentkernel_kb.router.access import Access
from agentkernel_kb.router.events import ToolEvent


class Configuration:
    """A loaded configuration: backends, and what each agent may do with them.

    Making tools opens nothing: a backend connects when somebody first reaches for it, once for all agents, unless it says
    `connect: eager`. Use it as a context manager, plain or async, or call `close()`.

    Attributes:
        file: The file, or `configuration` where a mapping was loaded.
        env: The environment, `None` for the base.
        environments: Names of all environments of the file.
        agents: Names of the agents that it names.
        backends: What it declares, by name: type, options free of secrets, description.
        warnings: What should probably not be left so.
    """

    def __init__(
        self,
        description: Description,
        backends: Mapping[str, KnowledgeBase],
        *,
        env: str | None,
        environments: Iterable[str],
        on_event: Callable[[ToolEvent], object] | None,
        warnings: Iterable[Fault],
    ) -> None:
        self._description = description
        self._opened = backends
        self._on_event = on_event
        self._agents = _agents(description)
        self._lock = threading.Lock()
        self._builders: dict[str | None, KnowledgeBuilder | None] = {}
        self.file = description.source.name
        self.env = env
        self.environments = tuple(environments)
        self.agents = tuple(self._agents)
        self.backends: Mapping[str, DeclaredBackend] = MappingProxyType(dict(description.declared))
        self.warnings = list(warnings)
        self.builder = self._built(backends.values(), None)

    def __repr__(self) -> str:
        return f"Configuration({self.file!r}, env={self.env!r}, backends={list(self.backends)}, agents={list(self.agents)})"

    def builder_for(self, agent: str | None = None) -> KnowledgeBuilder | None:
        """Return the router of an agent, over what it may use; `None` where that is nothing.

        Args:
            agent: Its name. `None` is the application itself, where the file has no `agents:`.
        """
        with self._lock:
            if agent not in self._builders:
                self._builders[agent] = self._builder_for(agent)
            return self._builders[agent]

    def _builder_for(self, agent: str | None) -> KnowledgeBuilder | None:
        own = self._grants(agent)
        if own is None:
            return self.builder
        if not own.grants:
            return None
        used = [self._opened[name] for name in self._opened if name in own.grants]
        return self._built(used, access_of(own), hidden=len(used) < len(self._opened))

    def _grants(self, agent: str | None) -> Agent | None:
        """Return what an agent may do, `None` for everything."""
        if self._description.agents is not None:
            return self._agents.get(agent or "", Agent("", {}))
        if agent is None:
            return None
        bundles = self._agents.get(agent, Agent(agent, {})).grants
        free = {name: Grant(EVERYTHING, None, {}) for name in self._opened if name not in self._description.databases()}
        return Agent(agent, {**free, **bundles})

    def grants(self, agent: str) -> Mapping[str, frozenset[Operation]]:
        """Return what an agent may do, by the name of the backend; empty where it has no grant."""
        own = self._grants(agent)
        return {name: grant.operations for name, grant in own.grants.items()} if own else {}

    def _built(self, backends: Iterable[KnowledgeBase], access: Access | None, *, hidden: bool = False) -> KnowledgeBuilder:
        used = list(backends)
        return KnowledgeBuilder(
            used,
            self._description.semantic_map.within([each.backend_name for each in used], hidden=hidden),
            limits=self._description.limits,
            resilience=self._description.resilience,
            access=access,
            on_event=self._on_event,
            telemetry=self._description.telemetry,
        )

    def tools(self, agent: str | None = None) -> list[Tool]:
        """Return the tools of an agent as plain functions; none where it has no grant.

        Args:
            agent: Its name. `None` is the application itself, where the file has no `agents:`.
        """
        builder = self.builder_for(agent)
        return [] if builder is None else builder.build(self._writes(agent))

    def async_tools(self, agent: str | None = None) -> list[AsyncTool]:
        """Return the same tools as coroutine functions."""
        builder = self.builder_for(agent)
        return [] if builder is None else builder.build_async(self._writes(agent))

    def instructions(self, agent: str | None = None) -> str:
        """Return what to append to an agent's prompt; nothing where it has no grant."""
        builder = self.builder_for(agent)
        if builder is None:
            return ""
        own = self._grants(agent)
        text = builder.instructions(writable=self._writes(agent))
        if own is None:
            return text
        roles: dict[str, Role] = {name: grant.role for name, grant in own.grants.items() if grant.role is not None}
        return "\n\n".join(filter(None, [own.instructions, text, duties(roles)]))

    def _writes(self, agent: str | None) -> bool:
        own = self._grants(agent)
        return any(
            backend.capabilities.writable and (own is None or "write" in own.grants[name].operations)
            for name, backend in self._opened.items()
            if own is None or name in own.grants
        )

    def close(self) -> None:
        """Close every backend that was opened. May be called twice."""
        for builder in self._all_builders():
            builder.close()

    async def aclose(self) -> None:
        """Close every backend that was opened, without blocking the event loop."""
        for builder in self._all_builders():
            await builder.aclose()

    def _all_builders(self) -> list[KnowledgeBuilder]:
        with self._lock:
            return [self.builder, *filter(None, self._builders.values())]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _agents(description: Description) -> dict[str, Agent]:
    """Return the agents of `agents:` and of the bundles, each with all of its grants."""
    agents = dict(description.agents or {})
    for name, database in description.databases().items():
        for agent in [*database.consumer, *database.producer, *database.curator]:
            role = database.role_of(agent)
            if role is not None:
                known = agents.get(agent, Agent(agent, {}))
                grants = {**known.grants, name: role_grant(role)}
                agents[agent] = Agent(agent, grants, known.description, known.instructions)
    return agents
