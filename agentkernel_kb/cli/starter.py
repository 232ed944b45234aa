"""A first `kb.yaml`: what is asked for each type of backend, and the text of the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.written import written
from agentkernel_kb.near import nearest
from agentkernel_kb.render import one_line

SCHEMA_FILE = "kb.schema.json"
_RESERVED = ("*", "description", "instructions")
_HEADER = f"""\
# yaml-language-server: $schema=./{SCHEMA_FILE}
# What agents may know, and who may do what. `agentkernel-kb validate` checks it, `agentkernel-kb doctor` reaches each store.
# Secrets stay outside: ${{NAME}} takes a variable of the environment, ${{NAME:-default}} gives it a default.
version: 1
"""
_NO_AGENTS = """
# Name agents, and each gets what is granted here and nothing else. Roles: consumer reads; producer and curator write too.
# agents:
#   Support_Agent:
#     {name}: consumer
"""
_ENVIRONMENTS = """
# What is different elsewhere, chosen by --env or AGENTKERNEL_KB_ENV.
# environments:
#   prod:
#     limits: {seconds: 10}
"""

Values = dict[str, str | int]


@dataclass(frozen=True)
class Store:
    """One backend of a starter file.

    Attributes:
        name: Its name.
        type: Its type.
        target: Where it is: a path, a URL or an address, as of its type.
        description: What it holds.
    """

    name: str
    type: str
    target: str = ""
    description: str = ""


@dataclass(frozen=True)
class StoreType:
    """What a starter file knows about a type of backends.

    Attributes:
        about: What it is, in a few words.
        asks: What is asked for its target.
        default: The target of one called `{name}`.
        options: Makes the options out of the name and the target.
        writable: It takes writes, so that an agent can be more than a consumer.
    """

    about: str
    asks: str
    default: str
    options: Callable[[str, str], Values]
    writable: bool


def _variable(name: str, what: str) -> str:
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_').upper() or 'KB'}_{what}"


def _okf(name: str, target: str) -> Values:
    return {"uri": target}


def _sql(name: str, target: str) -> Values:
    if "://" not in target:
        raise CommandError(
            f"'{name}' needs a URL such as sqlite:///sales.db or postgresql://host/database, not {target!r}.", Code.USAGE
        )
    return {"url": _without_password(name, target)}


def _without_password(name: str, url: str) -> str:
    """Return a URL whose password comes from the environment."""
    return re.sub(r"(?<=://)([^/@:]*):[^/]*@", rf"\1:${{{_variable(name, 'PASSWORD')}}}@", url, count=1)


def _chroma(name: str, target: str) -> Values:
    if "://" not in target:
        return {"persist_path": target, "embedding_function": "hash"}
    address = _split(name, target)
    secure: Values = {"ssl": True} if address.scheme == "https" else {}
    return {"host": address.hostname or "", "port": address.port or 8000, **secure, "embedding_function": "hash"}


def _neo4j(name: str, target: str) -> Values:
    return {"uri": target, "user": f"${{{_variable(name, 'USER')}:-neo4j}}", "password": f"${{{_variable(name, 'PASSWORD')}}}"}


def _starburst(name: str, target: str) -> Values:
    address = _split(name, target if "://" in target else f"https://{target}")
    catalog, _, schema = address.path.strip("/").partition("/")
    login: Values = {"user": f"${{{_variable(name, 'USER')}:-agent}}"}
    if address.scheme == "https":
        login["password"] = f"${{{_variable(name, 'PASSWORD')}}}"
    place: Values = {"host": address.hostname or "", "port": address.port or (80 if address.scheme == "http" else 443)}
    names = {key: value for key, value in (("catalog", catalog), ("schema", schema)) if value}
    return {**place, "http_scheme": address.scheme, **login, **names}


def _file(name: str, target: str) -> Values:
    return {"path": target}


def _split(name: str, target: str) -> SplitResult:
    try:
        address = urlsplit(target)
        _ = address.port
    except ValueError:
        address = None
    if address is None or not address.hostname:
        raise CommandError(f"'{name}' needs an address such as http://host:port, not {target!r}.", Code.USAGE)
    return address


TYPES: Mapping[str, StoreType] = {
    "okf": StoreType("a folder or bucket of markdown", "Folder, or s3://bucket/prefix", "./{name}", _okf, True),
    "sql": StoreType(
        "SQLite, DuckDB, PostgreSQL", "URL, such as postgresql://user@host/database", "sqlite:///{name}.db", _sql, False
    ),
    "chroma": StoreType("texts found by likeness", "Folder, or http://host:port of a server", "./{name}-chroma", _chroma, True),
    "ladybug": StoreType("a graph in a file", "Path of the file", "./{name}.lbug", _file, True),
    "knowledge": StoreType("a corpus that ingest fills", "Path of the file", "./{name}.db", _file, True),
    "neo4j": StoreType("a graph on a server", "URI", "bolt://localhost:7687", _neo4j, True),
    "starburst": StoreType(
        "tables behind Trino", "https://host:port/catalog/schema", "https://localhost:443/tpch/tiny", _starburst, False
    ),
}


def parsed(text: str) -> Store:
    """Return the store that `NAME=TYPE[:TARGET]` describes.

    Raises:
        CommandError: It describes none.
    """
    name, equals, rest = text.partition("=")
    type_name, _, target = rest.partition(":")
    if not (equals and name.strip() and type_name.strip()):
        raise CommandError(f"--add takes NAME=TYPE[:TARGET], such as handbook=okf:./handbook, not {text!r}.", Code.USAGE)
    return checked(Store(name.strip(), type_name.strip(), target.strip()))


def checked(store: Store) -> Store:
    """Return a store with its target filled in.

    Raises:
        CommandError: Its name or its type is none.
    """
    if store.name in _RESERVED or one_line(store.name) != store.name:
        raise CommandError(f"A backend can't be called {store.name!r}: the name is reserved, or no line of text.", Code.USAGE)
    if store.type not in TYPES:
        near = nearest(store.type, TYPES)
        hint = f" Did you mean '{near}'?" if near else ""
        raise CommandError(f"There is no type '{store.type}' here.{hint} Types: {', '.join(TYPES)}.", Code.USAGE)
    target = store.target or TYPES[store.type].default.format(name=re.sub(r"[^\w.-]+", "-", store.name))
    return Store(store.name, store.type, target, store.description)


def composed(stores: Sequence[Store], agents: Mapping[str, str]) -> str:
    """Return the text of a file.

    Args:
        stores: Its backends.
        agents: The agents, each with the role that it has in all of them; where nothing can be written, it is a consumer.

    Raises:
        CommandError: Two stores have one name, or a target is not of its type.
    """
    names = [store.name for store in stores]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise CommandError(f"Two backends are called '{doubled}'.", Code.USAGE)
    backends = {store.name: _entry(store) for store in stores}
    granted = {
        agent: {store.name: role if TYPES[store.type].writable else "consumer" for store in stores}
        for agent, role in agents.items()
    }
    first = _dumped(names[0]).strip() if names else "handbook"
    agents_part = f"\n{_dumped({'agents': granted})}" if granted else _NO_AGENTS.format(name=first)
    return f"{_HEADER}\n{_dumped({'backends': backends})}{agents_part}{_ENVIRONMENTS}"


def _entry(store: Store) -> Values:
    described = store.description or f"What {store.name} holds, in a sentence or two: agents choose by it."
    return {"type": store.type, **TYPES[store.type].options(store.name, store.target), "description": described}


def _dumped(value: object) -> str:
    return written(value).removesuffix("...\n")
