"""The JSON Schema of a configuration, for editors: made of the tables that check it, so that both say the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter

from agentkernel_kb.config.backends import COMMON_OPTIONS, RESERVED
from agentkernel_kb.config.builtin_types import backend_type
from agentkernel_kb.config.description import VERSION, cache_kinds, failure_kinds
from agentkernel_kb.config.kinds import Kind, parameters_of
from agentkernel_kb.config.objects import REFERENCE
from agentkernel_kb.config.okf_block import ROLES, Database
from agentkernel_kb.config.policy import OPERATIONS
from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.registry import backend_names
from agentkernel_kb.render import DIRECTIONS
from agentkernel_kb.router.limits import Limits

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_OBJECT = {"type": "string", "pattern": f"^{REFERENCE}", "description": "An object of Python: python:package.module:name."}
_TEXT = {"type": "string"}
_TEXTS = {"type": ["string", "object"], "additionalProperties": _TEXT, "minProperties": 1}
_MAPPING = {"type": "object"}
_NAME = {"pattern": rf"^(?!.*{DIRECTIONS})\S(.*\S)?$", "not": {"enum": list(RESERVED)}}
_SCALAR = {"type": ["string", "number", "boolean"]}


def json_schema() -> dict[str, Any]:
    """Return the schema of `kb.yaml` in draft 2020-12, with the types that are installed.

    A value that is no text may be a reference to a variable. An overlay of `environments:` is a part of the whole, so that no
    key is required there and null removes.
    """
    sections = _sections()
    return {
        "$schema": DIALECT,
        "title": "kb.yaml",
        "description": "Knowledge bases, environments and agents of agentkernel-kb.",
        "type": "object",
        "properties": {**sections, "environments": _overlays(sections)},
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "anyOf": [{"required": ["backends"]}, {"required": ["okf"]}],
    }


def _sections() -> dict[str, Any]:
    return {
        "version": {"enum": [VERSION, str(VERSION)], "description": "Version of this format."},
        "backends": {
            **_named(_backend(), "The knowledge bases, by name."),
            "propertyNames": _NAME,
        },
        "semantic_map": _named(
            _TEXTS, "Placeholders such as <CLIENTS>, and what they stand for: everywhere, or in some backends."
        ),
        "agents": _named(_agent(), "What each agent may do. An agent that is not named gets nothing."),
        "limits": _closed(_of(parameters_of(Limits)), "Bounds of every call."),
        "cache": _closed(_kinds(cache_kinds()), "Old answers for while a backend is not there."),
        "on_failure": _closed(_kinds(failure_kinds()), "What to do about a backend that is not there. Time is in seconds."),
        "telemetry": {"anyOf": [{"type": "boolean"}, _closed({"enabled": _value(Kind(bool))}, "OpenTelemetry of each call.")]},
        "okf": _closed({"databases": _named(_database(), "Bundles, by name.")}, "Bundles and the agents that may reach them."),
    }


def _named(item: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "type": "object", "additionalProperties": dict(item)}


def _closed(properties: Mapping[str, Any], description: str, required: Iterable[str] = ()) -> dict[str, Any]:
    closed = {"type": "object", "description": description, "properties": dict(properties), "additionalProperties": False}
    names = list(required)
    return {**closed, "required": names} if names else closed


def _of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return _kinds({name: each.kind for name, each in parameters.items()})


def _kinds(kinds: Mapping[str, Kind]) -> dict[str, Any]:
    return {name: _value(kind) for name, kind in kinds.items()}


def _value(kind: Kind) -> dict[str, Any]:
    """Return what a value may be; anything but text may be a reference to a variable too."""
    options: list[dict[str, Any]] = [] if kind.type is None else [TypeAdapter[Any](kind.type).json_schema()]
    if kind.takes_object:
        options.append(_OBJECT)
    if _TEXT not in options:
        options.append(_VARIABLE)
    return options[0] if len(options) == 1 else {"anyOf": options}


def _backend() -> dict[str, Any]:
    """Return the schema of one backend: which options it has depends on its type."""
    names = backend_names()
    types = {"anyOf": [{"enum": names}, {"type": "string", "pattern": f"^{REFERENCE}"}, _VARIABLE]}
    return {
        "type": "object",
        "properties": {"type": types},
        "required": ["type"],
        "allOf": [
            {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": options}
            for name in names
            if (options := _options(name)) is not None
        ],
    }


def _options(name: str) -> dict[str, Any] | None:
    """Return the schema of a backend of one type; `None` where its class can't be loaded here."""
    try:
        kind = backend_type(name)
    except KnowledgeError:
        return None
    common = dict(zip(COMMON_OPTIONS, (_TEXT, _MAPPING, {"enum": ["eager", "lazy"]}), strict=True))
    properties = {**common, **_of(kind.parameters)}
    if "schema" in kind.parameters:
        properties |= {"schema": {"type": ["string", "object"]}, "add_schema": _MAPPING}
    required = [each.name for each in kind.parameters.values() if each.required]
    return _closed(properties, f"A backend of type {name}.", required)


def _agent() -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "properties": {"description": _TEXT, "instructions": _TEXT},
        "additionalProperties": {"anyOf": [{"enum": list(ROLES)}, _grant(), _VARIABLE]},
    }


def _grant() -> dict[str, Any]:
    operations = {"type": "array", "items": {"enum": list(OPERATIONS)}, "minItems": 1}
    filters = {"type": "object", "additionalProperties": _SCALAR, "minProperties": 1}
    grant = _closed({"role": {"enum": list(ROLES)}, "operations": operations, "filters": filters}, "What it may do there.")
    return {**grant, "not": {"required": ["role", "operations"]}}


def _database() -> dict[str, Any]:
    database = Database.model_json_schema()
    properties = {name: _without_titles(each) for name, each in database["properties"].items()}
    roles = [{"required": [role]} for role in ROLES]
    return {**_closed(properties, "One bundle.", database["required"]), "anyOf": roles}


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_titles(value) for key, value in schema.items() if key != "title"}  # pyright: ignore[reportUnknownVariableType] - plain JSON
    return schema


def _overlays(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of `environments:`: any section in part, told by its name alone."""
    parts = {name: {"type": section.get("type", ["object", "boolean", "null"])} for name, section in sections.items()}
    parts = {name: {"type": ["object", "null"]} if each["type"] == "object" else each for name, each in parts.items()}
    overlay = {"type": ["object", "null"], "properties": parts, "patternProperties": {"^x-": {}}, "additionalProperties": False}
    return _named(overlay, "What is different in each environment, merged key by key; null removes.")
