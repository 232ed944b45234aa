"""`load` and `check`: one file to a wired router, or to a list of what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config import opening
from agentkernel_kb.config.configuration import Configuration
from agentkernel_kb.config.description import Description, describe
from agentkernel_kb.config.environments import environment_findings, environment_names, source_of
from agentkernel_kb.config.faults import ConfigurationError, Fault, Finding, in_order
from agentkernel_kb.config.okf import OKFConfiguration
from agentkernel_kb.config.policy import capability_findings, scope_findings
from agentkernel_kb.config.source import Source, few_hints, read_as_written
from agentkernel_kb.errors import KnowledgeDependencyError, KnowledgeError
from agentkernel_kb.model import KnowledgeCapabilities
from agentkernel_kb.render import one_line
from agentkernel_kb.router.events import ToolEvent

ENVIRONMENT_VARIABLE = "AGENTKERNEL_KB_ENV"
"""Names the environment where nobody else does."""

_EAGER_SECONDS = 10.0


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
        lazy: Open nothing now, also what says `connect: eager`; a backend that can't be made then fails each call of it. For
            who wants to see what is wrong with each.

    Raises:
        AKConfigError: It is faulty: all faults are listed with file, line and key.
        KnowledgeDependencyError: Telemetry is enabled, and the API of OpenTelemetry is not installed.
        KnowledgeError: A backend that says `connect: eager` can't be opened.
    """
    written = read_as_written(path)
    env = env or os.environ.get(ENVIRONMENT_VARIABLE) or None
    with few_hints():
        description = describe(source_of(written, env))
        making = _Making(description, may_open=True, lazy=lazy)
    findings = [*description.findings, *making.findings]
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        _close(making.backends.values())
        raise description.source.error(errors)
    try:
        if not lazy:
            _open_eager(description, making.backends)
        return Configuration(
            description,
            making.backends,
            env=env,
            environments=environment_names(written),
            on_event=on_event,
            warnings=in_order(description.source.placed(finding) for finding in findings),
        )
    except BaseException:
        _close(making.backends.values())
        raise


def check(path: str | Path | Mapping[str, Any] = "kb.yaml", *, env: str | None = None) -> list[Fault]:
    """Return everything that is wrong with a configuration, errors and warnings, in the order of its lines. Opens nothing.

    Args:
        path: The file, or its content as a mapping.
        env: Which of its environments; by default the base and every environment. A variable that is not set is a warning in an
            environment that was not asked for, as it may be set where that one is used.
    """
    try:
        return in_order(_checked(read_as_written(path), env))
    except ConfigurationError as error:
        return list(error.faults)


def _checked(written: Source, env: str | None) -> list[Fault]:
    if env is not None:
        return _faults(source_of(written, env))
    faults = [written.placed(finding) for finding in environment_findings(written)]
    faults += _faults(source_of(written, None))
    known = {(fault.key, fault.message) for fault in faults}
    for name in environment_names(written):
        found = _faults(source_of(written, name, relaxed=True))
        faults += [_of_environment(name, fault) for fault in found if (fault.key, fault.message) not in known]
    return faults


def _of_environment(name: str, fault: Fault) -> Fault:
    """Return a fault that only an environment has, and that may stand in the base, with the name of the environment."""
    if fault.key.startswith("environments.") or f"environments.{name} " in fault.message:
        return fault
    return replace(fault, message=f"in the environment '{one_line(name)}': {fault.message}")


def _faults(source: Source) -> list[Fault]:
    with few_hints():
        description = describe(source)
        making = _Making(description, may_open=False)
    _close(making.backends.values())
    return [source.placed(finding) for finding in [*description.findings, *making.findings]]


class _Making:
    """Makes the backends of a configuration without connecting them, and finds what is wrong with those that can't be made.

    Args:
        description: The configuration.
        may_open: A class that connects when it is constructed may be constructed.
        lazy: What can't be made has a stand-in, and is tried again at each call.

    Attributes:
        backends: The backends by name.
        findings: What is wrong.
    """

    def __init__(self, description: Description, *, may_open: bool, lazy: bool = False) -> None:
        self.backends: dict[str, KnowledgeBase] = {}
        self.findings: list[Finding] = []
        self._folder, self._may_open, self._lazy = description.source.folder, may_open, lazy
        self._known: dict[str, KnowledgeCapabilities] = {}
        for name in description.entries:
            self._make(description, name)
        if description.bundles is not None:
            bundles = OKFConfiguration(description.bundles, self._folder).backends
            self.backends |= bundles
            self._known |= {name: backend.capabilities for name, backend in bundles.items()}
        agents = list((description.agents or {}).values())
        self.findings += capability_findings(agents, self._known) + scope_findings(agents, self.backends)

    def _make(self, description: Description, name: str) -> None:
        entry, key = description.entries[name], ("backends", name)
        try:
            self.backends[name] = opening.made(entry, self._folder, may_open=self._may_open)
            self._known[name] = self.backends[name].capabilities
        except opening.NotKnownYetError:
            return
        except KnowledgeDependencyError as error:
            self.backends[name] = opening.stand_in(entry, self._folder)
            self.findings.append(Finding(key, f"{error}.", "warning"))
        except Exception as error:  # noqa: BLE001 - the constructor may be the application's, and raise anything
            message = f"{error}" if isinstance(error, KnowledgeError) else f"it can't be made ({type(error).__name__})."
            if self._lazy and opening.is_outage(error):
                self.backends[name] = opening.stand_in(entry, self._folder)
            severity = "warning" if name in self.backends else "error"
            self.findings.append(Finding(key, message, severity))


def _open_eager(description: Description, backends: Mapping[str, KnowledgeBase]) -> None:
    for name, entry in description.entries.items():
        if entry.eager:
            backends[name].connect()
            backends[name].ping(timeout=_EAGER_SECONDS)


def _close(backends: Iterable[KnowledgeBase]) -> None:
    for backend in backends:
        backend.close()
