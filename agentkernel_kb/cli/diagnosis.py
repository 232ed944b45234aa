"""What is wrong with each backend of a configuration, and how to mend it: one line each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentkernel_kb.cli.exits import Code
from agentkernel_kb.config import Configuration, DeclaredBackend
from agentkernel_kb.config.variables import VARIABLE
from agentkernel_kb.model import Operation
from agentkernel_kb.render import one_line
from agentkernel_kb.router.health import BackendHealth, HealthState

State = Literal[HealthState, "missing-extra", "read-only", "faulty"]
"""A state of `BackendHealth`; or `missing-extra`: a package is not installed; `read-only`: it answers, takes no writes, and an
agent is meant to write to it; `faulty`: the configuration is.
"""

_OPERATIONS: tuple[Operation, ...] = ("search", "query", "fetch", "browse", "write")
_INSTALL = re.compile(r"pip install '[^']+'")
_PLACE = {"url", "uri", "host", "port", "path", "persist_path"}
_LOGIN = {"url", "uri", "user", "password", "headers", "auth"}
_OPENED = _PLACE | {"database", "catalog", "schema", "collection_name", "table_name", "tenant"}
_CERTIFICATE = {"certificates", "verify", "http_scheme", "ssl", "url", "uri"}


@dataclass(frozen=True)
class Diagnosis:
    """How one backend is.

    Attributes:
        name: Its name.
        type: Its type.
        state: What is in the way, `ok` for nothing.
        detail: What was found, in a sentence; the version of one that answers.
        cure: How to mend it; `""` where nothing needs to be.
        milliseconds: Until it answered, or failed to; `None` where nobody was asked.
        can: What it can do, in words.
    """

    name: str
    type: str
    state: State
    detail: str
    cure: str
    milliseconds: float | None
    can: tuple[str, ...]

    @property
    def code(self) -> Code:
        """The exit code that stands for it."""
        if self.state == "ok":
            return Code.OK
        return Code.FAILED if self.state in ("missing-extra", "read-only", "faulty", "error", "closed") else Code.UNREACHABLE

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "name": self.name,
            "type": self.type,
            "state": self.state,
            "detail": self.detail,
            "cure": self.cure,
            "milliseconds": self.milliseconds,
            "can": list(self.can),
        }


def diagnosed(configuration: Configuration, health: Mapping[str, BackendHealth], agent: str | None = None) -> list[Diagnosis]:
    """Return what was found out about each backend that was asked.

    Args:
        configuration: The configuration whose backends were asked.
        health: What came of it, by name.
        agent: With whose eyes: what it may not do is not told, and neither are other agents. `None` for all.
    """
    return [_diagnosis(configuration, configuration.backends[name], found, agent) for name, found in health.items()]


def _diagnosis(configuration: Configuration, declared: DeclaredBackend, found: BackendHealth, agent: str | None) -> Diagnosis:
    backend = next(each for each in configuration.builder.backends if each.backend_name == declared.name)
    can = backend.capabilities  # As it is now: what is opened late may turn out to do less than was declared.
    state, detail, cure = _judged(declared, found)
    if state == "ok" and not can.writable and (writers := _writers(configuration, declared.name, agent)):
        state, detail = "read-only", f"It takes no writes, and these agents are meant to write to it: {', '.join(writers)}."
        cure = "Make the store writable, or the agents consumers."
    may = _OPERATIONS if agent is None else configuration.grants(agent).get(declared.name, ())
    words = tuple(word for word in _OPERATIONS if word in may and can.supports(word))
    return Diagnosis(declared.name, declared.type, state, detail, cure, found.latency_ms, words)


def _writers(configuration: Configuration, name: str, agent: str | None) -> list[str]:
    agents = configuration.agents if agent is None else [agent]
    return [each for each in agents if "write" in configuration.grants(each).get(name, ())]


def _judged(declared: DeclaredBackend, found: BackendHealth) -> tuple[State, str, str]:
    detail = one_line(found.detail)
    if found.state == "ok":
        return "ok", detail or found.version, ""
    if install := _INSTALL.search(detail):
        return "missing-extra", "A package that it needs is not installed.", f"{install[0]}."
    told = detail or "It failed."
    return found.state, told if told.endswith((".", "!", "?")) else f"{told}.", _cure(declared, found.state)


def _cure(declared: DeclaredBackend, state: HealthState) -> str:
    cures = {
        "unauthorized": f"Correct {_options(declared, _LOGIN, 'its login')}, or let that login in.",
        "unreachable": f"Start the server, or correct {_options(declared, _PLACE, 'its address')}.",
        "timeout": f"Give it longer with --timeout, or correct {_options(declared, _PLACE, 'its address')}.",
        "missing": f"Create it, or correct {_options(declared, _OPENED, 'its name')}.",
        "untrusted": f"Trust its authority, or correct {_options(declared, _CERTIFICATE, 'its certificates')}.",
    }
    return cures.get(state, f"Check {_options(declared, _OPENED, 'its options')}; --debug shows what failed.")


def _options(declared: DeclaredBackend, names: set[str], otherwise: str) -> str:
    """Name the options that decide it, each with the environment variables that it comes from."""
    listed = [_option(name, value) for name, value in declared.options.items() if name in names]
    return f"{', '.join(listed)} of backends.{declared.name}" if listed else f"{otherwise} (backends.{declared.name})"


def _option(name: str, value: object) -> str:
    variables = [found["name"] for found in VARIABLE.finditer(str(value)) if found["name"]]
    return f"{name} ({', '.join(variables)})" if variables else name
