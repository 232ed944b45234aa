"""`load` and `check`: one file to a wired router, or to a list of what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, cast

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config import opening
from agentkernel_kb.config.backends import DeclaredBackend
from agentkernel_kb.config.description import Description, describe
from agentkernel_kb.config.faults import Fault, Finding, in_order
from agentkernel_kb.config.instructions import duties
from agentkernel_kb.config.okf import OKFConfiguration
from agentkernel_kb.config.okf_block import Role
from agentkernel_kb.config.policy import EVERYTHING, Agent, Grant, access_of, capability_findings, role_grant
from agentkernel_kb.config.source import Source, did_you_mean, read_as_written
from agentkernel_kb.errors import KnowledgeDependencyError, KnowledgeError
from agentkernel_kb.knowledgebuilder import AsyncTool, KnowledgeBuilder, Tool
from agentkernel_kb.router.access import Access
from agentkernel_kb.router.events import ToolEvent

ENVIRONMENT_VARIABLE = "AGENTKERNEL_KB_ENV"
"""Names the environment where nobody else does."""


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
        if agent not in self._builders:
            self._builders[agent] = self._builder_for(agent)
        return self._builders[agent]

    def _builder_for(self, agent: str | None) -> KnowledgeBuilder | None:
        own = self._grants(agent)
        if own is None:
            return self.builder
        if not own.grants:
            return None
        return self._built([self._opened[name] for name in self._opened if name in own.grants], access_of(own))

    def _grants(self, agent: str | None) -> Agent | None:
        """Return what an agent may do, `None` for everything."""
        if self._description.agents is not None:
            return self._agents.get(agent or "", Agent("", {}))
        if agent is None:
            return None
        bundles = self._agents.get(agent, Agent(agent, {})).grants
        free = {name: Grant(EVERYTHING, None, {}) for name in self._opened if name not in self._description.databases()}
        return Agent(agent, {**free, **bundles})

    def _built(self, backends: Iterable[KnowledgeBase], access: Access | None) -> KnowledgeBuilder:
        return KnowledgeBuilder(
            backends,
            self._description.semantic_map,
            limits=self._description.limits,
            resilience=self._description.resilience,
            access=access,
            on_event=self._on_event,
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
        self.builder.close()

    async def aclose(self) -> None:
        """Close every backend that was opened, without blocking the event loop."""
        await self.builder.aclose()

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


def load(
    path: str | Path | Mapping[str, Any] = "kb.yaml",
    *,
    env: str | None = None,
    on_event: Callable[[ToolEvent], object] | None = None,
    lazy: bool = False,
) -> Configuration:
    """Load a configuration.

    Args:
        path: The file, or its content as a mapping. Relative paths in a file are relative to its folder, those in a mapping to
            the working directory.
        env: Which of its environments; by default what `AGENTKERNEL_KB_ENV` names, else the base.
        on_event: Called with a `ToolEvent` after each tool call, see `KnowledgeBuilder`.
        lazy: Open nothing now, also what says `connect: eager`: for who wants to see what is wrong with each backend.

    Raises:
        AKConfigError: It is faulty: all faults are listed with file, line and key.
        KnowledgeError: A backend that says `connect: eager` can't be opened.
    """
    written = read_as_written(path)
    env = env or os.environ.get(ENVIRONMENT_VARIABLE) or None
    description = describe(_source(written, env))
    backends, findings = _backends(description, may_open=True)
    findings = [*description.findings, *findings]
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        _close(backends.values())
        raise description.source.error(errors)
    if not lazy:
        _open_eager(description, backends)
    return Configuration(
        description,
        backends,
        env=env,
        environments=_environments(written),
        on_event=on_event,
        warnings=in_order(description.source.placed(finding) for finding in findings),
    )


def check(path: str | Path | Mapping[str, Any] = "kb.yaml", *, env: str | None = None) -> list[Fault]:
    """Return everything that is wrong with a configuration, errors and warnings, in the order of its lines. Opens nothing.

    Args:
        path: The file, or its content as a mapping.
        env: Which of its environments; by default the base and every environment. A variable that is not set is a warning in an
            environment that was not asked for, as it may be set where that one is used.
    """
    from agentkernel_kb.config.faults import ConfigurationError

    try:
        written = read_as_written(path)
        if env is not None:
            return in_order(_faults(_source(written, env)))
        faults = _faults(_source(written, None))
        for name in _environments(written):
            faults += _faults(_source(written, name), relax=True)
        return in_order(faults)
    except ConfigurationError as error:
        return list(error.faults)


def _faults(source: Source, *, relax: bool = False) -> list[Fault]:
    description = describe(source)
    backends, findings = _backends(description, may_open=False)
    _close(backends.values())
    return [source.placed(finding) for finding in [*description.findings, *findings]]


def _environments(written: Source) -> list[str]:
    found: Any = written.data.get("environments")
    return list(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else []


def _source(written: Source, env: str | None) -> Source:
    """Return the configuration of one environment, variables put in.

    Raises:
        ConfigurationError: There is no such environment.
    """
    if env is None:
        return written.with_variables()
    known = _environments(written)
    if env not in known:
        message = f"there is no environment '{env}'.{did_you_mean(env, known)} Declared: {', '.join(known) or 'none'}."
        raise written.error([Finding(("environments",) if known else (), message)])
    overlay: Any = written.data["environments"][env]
    base = {name: part for name, part in written.data.items() if name != "environments"}
    if not isinstance(overlay, Mapping | None):
        raise written.error([Finding(("environments", env), "an environment is a mapping of what is different there.")])
    return written.with_overlay(base, cast("Mapping[str, Any]", overlay or {}), ("environments", env)).with_variables()


def _backends(description: Description, *, may_open: bool) -> tuple[dict[str, KnowledgeBase], list[Finding]]:
    """Return the backends without connecting them, and what is wrong with those that can't be made."""
    source, made, findings = description.source, dict[str, KnowledgeBase](), list[Finding]()
    for name, entry in description.entries.items():
        key = ("backends", name)
        try:
            made[name] = opening.made(entry, source.folder, may_open=may_open)
        except opening.NotKnownYet:
            continue
        except KnowledgeDependencyError as error:
            made[name] = opening.not_installed(entry, error)
            findings.append(Finding(key, f"{error}.", "warning"))
        except (KnowledgeError, ValueError, TypeError) as error:
            findings.append(Finding(key, f"{error}"))
    if description.bundles is not None:
        made |= OKFConfiguration(description.bundles, source.folder).backends
    declared = {name: backend.capabilities for name, backend in made.items()}
    findings += capability_findings(list((description.agents or {}).values()), declared)
    return made, findings


def _open_eager(description: Description, backends: Mapping[str, KnowledgeBase]) -> None:
    try:
        for name, entry in description.entries.items():
            if entry.eager:
                backends[name].connect()
                backends[name].ping(timeout=10.0)
    except BaseException:
        _close(backends.values())
        raise


def _close(backends: Iterable[KnowledgeBase]) -> None:
    for backend in backends:
        backend.close()


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
