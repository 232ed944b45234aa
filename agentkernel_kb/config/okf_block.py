"""The `okf:` block: bundles, and the agents that may reach them in which role. Checked whole, every fault told at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.source import Source, did_you_mean
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.render import is_name
from agentkernel_kb.router.redaction import redact
from agentkernel_kb.store.uri import s3_place

Role = Literal["consumer", "producer", "curator"]
"""What an agent is to a bundle. Producer and curator may do the same, and are told to do different things."""

ROLES: tuple[Role, ...] = get_args(Role)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")

AgentName = Annotated[str, Field(min_length=1, max_length=200)]


class Database(BaseModel):
    """One bundle.

    Attributes:
        type: `local`, `s3`, or the dotted path of a subclass of `DocumentStore`.
        uri: Where it is: a path, `s3://bucket/prefix`, or what the store's own class takes.
        description: What it holds, for whoever chooses between bundles.
        refresh_seconds: Age from which the index is refreshed; `None` turns that off.
        max_concepts: Most concepts that are read.
        write_actor: Who writes, in the `generated:` block of what is written.
        write_prefix: The folder that takes what agents write.
        consumer: Agents that read it.
        producer: Agents that add to it.
        curator: Agents that maintain it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    uri: str = Field(min_length=1)
    description: str | None = None
    refresh_seconds: float | None = Field(default=300.0, ge=0, allow_inf_nan=False)
    max_concepts: int = Field(default=10_000, ge=1)
    write_actor: str | None = None
    write_prefix: str = "generated"
    consumer: list[AgentName] = []
    producer: list[AgentName] = []
    curator: list[AgentName] = []

    def role_of(self, agent: str) -> Role | None:
        """Return the role that an agent has here, the one that may write where it has two, or `None`."""
        return next((role for role in reversed(ROLES) if agent in self.agents(role)), None)

    def agents(self, role: Role) -> list[str]:
        """Return the agents that are named in a role."""
        return {"consumer": self.consumer, "producer": self.producer, "curator": self.curator}[role]

    def writers(self) -> list[str]:
        """Return the agents that may write."""
        return [*self.producer, *self.curator]


class OKFBlock(BaseModel):
    """The whole block: its bundles by name, in the order in which they stand there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    databases: dict[str, Database] = Field(min_length=1)


def parse_okf_block(source: Source, key: Key) -> OKFBlock:
    """Check the block that stands under `key`.

    Raises:
        ConfigurationError: It has faults; the message lists all of them with their places.
    """
    block, findings = check_okf_block(source, key)
    if block is None or source.findings:
        raise source.error([*source.findings, *findings])
    return block


def check_okf_block(source: Source, key: Key) -> tuple[OKFBlock | None, list[Finding]]:
    """Return the block that stands under `key`, `None` if it is faulty, and what is wrong with it."""
    data: Any = source.data
    for step in key:
        data = data[step]
    findings = [*_faults_between_agents(data, key)]
    try:
        block = OKFBlock.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True, include_input=False)
        return None, [*findings, *(_fault(detail, key) for detail in details)]
    return (None if findings else block), findings


def _faults_between_agents(data: Any, key: Key) -> Iterator[Finding]:
    """Find what no single field is wrong with, in each database that is a mapping at all."""
    databases: object = cast("Mapping[str, Any]", data).get("databases") if isinstance(data, Mapping) else None
    if not isinstance(databases, Mapping):
        return
    for name, database in cast("Mapping[Any, Any]", databases).items():
        here = (*key, "databases", str(name))
        if name == "*" or not is_name(str(name)):
            yield Finding(here, "a database is named by one line of text, and not '*'.")
        if isinstance(database, Mapping):
            yield from _faults_of(str(name), cast("Mapping[str, Any]", database), here)


def _faults_of(name: str, database: Mapping[str, Any], here: Key) -> Iterator[Finding]:
    named = {role: set(map(str, _listed(database.get(role)))) for role in ROLES}
    if not any(named.values()) and all(isinstance(database.get(role), list | None) for role in ROLES):
        yield Finding(here, f"database '{name}' names no agent: give it a consumer, a producer or a curator.")
    for agent in sorted(named["producer"] & named["curator"]):
        yield Finding(here, f"agent '{agent}' is both producer and curator of '{name}': make it one of them.")
    kind, uri = database.get("type"), database.get("uri")
    if isinstance(kind, str) and isinstance(uri, str):
        yield from _disagreement(name, kind, uri, here)


def _disagreement(name: str, kind: str, uri: str, here: Key) -> Iterator[Finding]:
    found, uri = _SCHEME.match(uri), redact(uri)
    scheme = found[1].lower() if found else ""
    if kind == "local" and scheme not in ("", "file"):
        yield Finding(here, f"database '{name}' is of type local, and its uri {uri} is not: it starts with {scheme}:.")
    elif kind == "s3" and not _is_s3(uri):
        yield Finding(here, f"database '{name}' is of type s3, and its uri {uri} is not s3://bucket/prefix.")
    elif kind not in ("local", "s3") and not _DOTTED.fullmatch(kind):
        hint = did_you_mean(kind, ("local", "s3"))
        yield Finding(
            (*here, "type"), f"'{kind}' is neither local nor s3 nor the dotted path of a DocumentStore subclass.{hint}"
        )


def _is_s3(uri: str) -> bool:
    try:
        return uri.startswith("s3://") and bool(s3_place(uri))
    except AKConfigError:
        return False


def _listed(agents: object) -> list[object]:
    return cast("list[object]", agents) if isinstance(agents, list) else []


def _fault(detail: Mapping[str, Any], key: Key) -> Finding:
    """Return what pydantic found in the words of the other faults."""
    path = tuple(detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = OKFBlock.model_fields if len(path) == 1 else Database.model_fields
        return Finding((*key, *path), f"unknown key.{did_you_mean(path[-1], known)} Known: {', '.join(known)}.")
    if detail["type"] == "missing":
        return Finding((*key, *path[:-1]), f"'{path[-1]}' is missing.")
    if detail["type"] in ("model_type", "dict_type"):
        return Finding((*key, *path), "must be a mapping of names to values.")
    if detail["type"] == "list_type":
        return Finding((*key, *path), "must be a list of names, such as [Support_Agent].")
    return Finding((*key, *path), f"{detail['msg'][0].lower()}{detail['msg'][1:]}.")
