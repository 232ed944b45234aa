"""Names for the shell to complete, read out of the configuration as it stands; nothing is opened and nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import typer

from agentkernel_kb.cli.location import find
from agentkernel_kb.config import yaml_file

Names = Callable[[typer.Context], list[str]]


def backends(context: typer.Context) -> list[str]:
    """Return the names of the backends, those that only an environment has included."""
    data = _data(context)
    parts = [data, *map(_mapping, _mapping(data.get("environments")).values())]
    names = [name for part in parts for name in _mapping(part.get("backends"))]
    return _distinct([*names, *_mapping(_mapping(data.get("okf")).get("databases"))])


def agents(context: typer.Context) -> list[str]:
    """Return the names of the agents, those that an `okf:` block names included."""
    data = _data(context)
    named: list[str] = []
    for database in _mapping(_mapping(data.get("okf")).get("databases")).values():
        for role in ("consumer", "producer", "curator"):
            listed: object = _mapping(database).get(role)
            named += [str(agent) for agent in cast("list[object]", listed)] if isinstance(listed, list) else []
    return _distinct([*_mapping(data.get("agents")), *named])


def environments(context: typer.Context) -> list[str]:
    """Return the names of the environments."""
    return _distinct(_mapping(_data(context).get("environments")))


def _data(context: typer.Context) -> Mapping[str, Any]:
    """Return the content of the file, its variables as they are written; nothing where it cannot be read."""
    try:
        return yaml_file.read(find(cast("Path | None", context.params.get("config")))).data
    except Exception:  # noqa: BLE001 - the shell is waiting for names: without a readable file there are none
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _distinct(names: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(map(str, names)))
