"""The `agents:` of a configuration: what each may do on each backend, and on which of its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, cast, get_args

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.okf_block import ROLES, Database, Role
from agentkernel_kb.config.source import did_you_mean, listed
from agentkernel_kb.config.values import call_reporting, said, unknown_keys
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import KnowledgeCapabilities, Operation
from agentkernel_kb.render import is_name
from agentkernel_kb.router.access import Access

Scalar = str | int | float | bool
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
READS: frozenset[Operation] = frozenset(("search", "query", "fetch", "browse"))
EVERYTHING: frozenset[Operation] = frozenset(OPERATIONS)
_TEXTS = ("description", "instructions")
_GRANT_KEYS = ("role", "operations", "filters")


@dataclass(frozen=True)
class Grant:
    """What one agent may do on one backend.

    Attributes:
        operations: The operations.
        role: The role that they come from, `None` where they are listed.
        filters: Its row scope: metadata keys and the value that each has to have.
        key: Where it stands.
    """

    operations: frozenset[Operation]
    role: Role | None
    filters: Mapping[str, Scalar] = field(repr=False)
    key: Key = ()


@dataclass(frozen=True)
class Agent:
    """One agent.

    Attributes:
        name: Its name.
        grants: What it may do, by the name of the backend.
        description: What it is for.
        instructions: What its prompt says beside what follows from the backends.
    """

    name: str
    grants: Mapping[str, Grant]
    description: str | None = None
    instructions: str | None = None


def role_grant(role: Role, key: Key = ()) -> Grant:
    """Return what a role may do: a consumer reads, a producer and a curator write too."""
    return Grant(READS if role == "consumer" else EVERYTHING, role, {}, key)


def parse_agents(agents: Mapping[str, Any], backends: Collection[str], findings: list[Finding]) -> dict[str, Agent]:
    """Return the agents; findings say what is wrong with them.

    Args:
        agents: What stands under `agents:`.
        backends: Names of all backends, bundles included.
        findings: Where to add what is wrong.
    """
    return {name: _agent(name, agents[name], backends, findings) for name in agents}


def _agent(name: str, given: Any, backends: Collection[str], findings: list[Finding]) -> Agent:
    key = ("agents", name)
    if not is_name(name):
        findings.append(Finding(key, "an agent is named by one line of text without blanks around it."))
    if given is None:
        return Agent(name, {})
    if not isinstance(given, Mapping):
        findings.append(Finding(key, f"must map backends to roles, such as {{handbook: consumer}}, not be {said(given)}."))
        return Agent(name, {})
    entries = cast("Mapping[str, Any]", given)
    texts = {text: _text(entries[text], (*key, text), findings) for text in _TEXTS if text in entries}
    grants: dict[str, Grant] = {}
    for backend in entries:
        if backend in _TEXTS:
            continue
        here = (*key, backend)
        if backend not in backends:
            hint = did_you_mean(backend, chain(_TEXTS, backends))
            findings.append(Finding(here, f"there is no backend '{backend}'.{hint} Declared: {listed(backends)}."))
        elif (grant := _grant(entries[backend], here, findings)) is not None:
            grants[backend] = grant
    return Agent(name, grants, texts.get("description"), texts.get("instructions"))


def _text(given: Any, key: Key, findings: list[Finding]) -> str | None:
    if given is None or isinstance(given, str):
        return given
    findings.append(Finding(key, f"must be text, not {said(given)}."))
    return None


def _grant(given: Any, key: Key, findings: list[Finding]) -> Grant | None:
    if isinstance(given, str):
        role = _role(given, key, findings)
        return None if role is None else role_grant(role, key)
    if not isinstance(given, Mapping):
        message = f"must be a role ({', '.join(ROLES)}) or {{operations: [search, query]}}, not {said(given)}."
        findings.append(Finding(key, message))
        return None
    entries = cast("Mapping[str, Any]", given)
    findings += unknown_keys(entries, _GRANT_KEYS, key)
    if "role" in entries and "operations" in entries:
        findings.append(Finding(key, "role and operations exclude each other: keep one of them."))
    no_filters: Mapping[str, Scalar] = {}
    filters = _filters(entries["filters"], (*key, "filters"), findings) if "filters" in entries else no_filters
    if "operations" in entries:
        return Grant(_operations(entries["operations"], (*key, "operations"), findings), None, filters, key)
    given_role = entries.get("role", "consumer")
    role = _role(given_role, (*key, "role"), findings)
    return None if role is None else Grant(role_grant(role).operations, role, filters, key)


def _role(given: Any, key: Key, findings: list[Finding]) -> Role | None:
    for role in ROLES:
        if given == role:
            return role
    shown = f"'{given}' is no role." if isinstance(given, str) else f"a role is text, not {said(given)}."
    hint = did_you_mean(given, [*ROLES, "operations"]) if isinstance(given, str) else ""
    findings.append(Finding(key, f"{shown}{hint} Roles: {', '.join(ROLES)}."))
    return None


def _operations(given: Any, key: Key, findings: list[Finding]) -> frozenset[Operation]:
    if not isinstance(given, list) or not given:
        message = f"must be a list such as [search, query], not {'an empty one' if given == [] else said(given)}."
        findings.append(Finding(key, message))
        return frozenset()
    found: set[Operation] = set()
    for number, each in enumerate(cast("list[Any]", given)):
        if each not in OPERATIONS:
            shown = f"'{each}'" if isinstance(each, str) else said(each)
            message = f"{shown} is no operation.{did_you_mean(each, OPERATIONS)} Operations: {', '.join(OPERATIONS)}."
            findings.append(Finding((*key, number), message))
        else:
            found.add(each)
    return frozenset(found)


def _filters(given: Any, key: Key, findings: list[Finding]) -> Mapping[str, Scalar]:
    if not isinstance(given, Mapping) or not given:
        found = "an empty one" if given == {} else said(given)
        findings.append(Finding(key, f"must be a mapping such as {{tenant: acme}}, not {found}."))
        return {}
    filters: dict[str, Scalar] = {}
    for name, value in cast("Mapping[str, Any]", given).items():
        if isinstance(value, str | int | float | bool) and value != "":
            filters[name] = value
        else:
            findings.append(
                Finding((*key, name), f"must be text, a number, true or false, not {said(value) if value != '' else 'empty'}.")
            )
    try:
        Access("", {}, filters={str(key[-2]): filters} if filters else {})
    except AKConfigError:  # It repeats keys, and what they hold in turn may be what somebody wanted to hide.
        findings.append(Finding(key, "keys and values are single lines of text, finite numbers, true or false."))
    return filters


def bundle_findings(agents: Mapping[str, Agent] | None, databases: Mapping[str, Database]) -> list[Finding]:
    """Say where the agents of bundles and those of `agents:` contradict each other, or one of them is probably misspelt."""
    found: list[Finding] = []
    for name, database in databases.items():
        for role in ROLES:
            for number, agent in enumerate(database.agents(role)):
                key = ("okf", "databases", name, role, number)
                if agents is None:
                    continue
                if agent in agents and name in agents[agent].grants:
                    message = f"agent '{agent}' has a role on '{name}' under agents too. Take one of them out."
                    found.append(Finding(key, message))
                elif agent not in agents and (hint := did_you_mean(agent, agents)):
                    found.append(Finding(key, f"agents has no '{agent}'.{hint}", "warning"))
    return found


def capability_findings(agents: Collection[Agent], declared: Mapping[str, KnowledgeCapabilities]) -> list[Finding]:
    """Say which grants a backend can't serve, as far as it is known what it can do."""
    found: list[Finding] = []
    for agent in agents:
        for name, grant in agent.grants.items():
            if name in declared:
                found += _grant_findings(agent.name, name, grant, declared[name])
    return found


def _grant_findings(agent: str, name: str, grant: Grant, can: KnowledgeCapabilities) -> list[Finding]:
    found: list[Finding] = []
    does = [operation for operation in OPERATIONS if can.supports(operation)]
    if grant.role in ("producer", "curator") and not can.writable:
        message = f"agent '{agent}' can't be {grant.role} of '{name}', which takes no writes. Make it a consumer."
        found.append(Finding(grant.key, message))
    if grant.role is None and (missing := [each for each in OPERATIONS if each in grant.operations and each not in does]):
        message = f"'{name}' has no {', '.join(missing)}. It has: {', '.join(does)}."
        found.append(Finding((*grant.key, "operations"), message))
    if grant.filters and not can.filters:
        message = (
            f"agent '{agent}' has filters on '{name}', which can't hold anybody to a row scope. "
            "Take the filters out, or the backend from this agent."
        )
        found.append(Finding((*grant.key, "filters"), message))
    return found


def scope_findings(agents: Iterable[Agent], backends: Mapping[str, KnowledgeBase]) -> list[Finding]:
    """Say which row scopes a backend that declares `filters` can't filter by."""
    found: list[Finding] = []
    for agent in agents:
        for name, grant in agent.grants.items():
            if grant.filters and name in backends and backends[name].capabilities.filters:
                call_reporting(partial(backends[name].check_filters, grant.filters), (*grant.key, "filters"), found)
    return found


def access_of(agent: Agent) -> Access:
    """Return what an agent may do, as the router takes it.

    Raises:
        AKConfigError: A row scope is none that the router takes.
    """
    operations = {name: grant.operations for name, grant in agent.grants.items()}
    filters = {name: grant.filters for name, grant in agent.grants.items() if grant.filters}
    return Access(agent.name, operations, filters=filters) if filters else Access(agent.name, operations)
