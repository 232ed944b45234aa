"""portability_faults: is a tool's definition one that OpenAI's strict mode, Gemini, Anthropic and MCP all take?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

MAX_DESCRIPTION_CHARS = 1_024
"""Most characters of a tool's description that OpenAI takes."""

TOKEN_BUDGET = 1_100
"""Most tokens that the definitions of all seven tools may cost a model, at four characters a token."""

_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_ARGUMENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
# Arguments of these names are taken by LangChain, LangGraph, the OpenAI Agents SDK or Google ADK for their own.
_TAKEN = frozenset(
    {"args", "callbacks", "config", "context", "ctx", "kwargs", "run_manager", "runtime", "self", "tool_context"}
)
_OBJECT_WORDS = {"type", "properties", "required", "additionalProperties"}
_SCALARS = {"string", "integer", "boolean"}


def portability_faults(definitions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what in these definitions some provider refuses, a sentence each; `[]` for portable ones.

    Portable are objects of strings, integers, booleans and arrays of strings, each with a description, `enum` where the values
    are known; no `default`, `$ref`, `const`, `anyOf`, nested object or list of types.

    Args:
        definitions: Mappings with `name`, `description` and `parameters`, a JSON schema.
    """
    return [f"{definition['name']}: {fault}" for definition in definitions for fault in _faults(definition)]


def _faults(definition: Mapping[str, Any]) -> Iterator[str]:
    if not _TOOL_NAME.fullmatch(definition["name"]):
        yield "the name must be 1 to 64 letters, digits, _ or -."
    if not 0 < len(definition["description"]) <= MAX_DESCRIPTION_CHARS:
        yield f"the description must have 1 to {MAX_DESCRIPTION_CHARS} characters."
    yield from _object_faults(definition["parameters"])


def _object_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        yield "the parameters must be an object with properties."
        return
    if unknown := sorted(set(schema) - _OBJECT_WORDS):
        yield f"the parameters use {unknown}."
    if schema.get("additionalProperties", False) is not False:
        yield "additionalProperties can only be false."
    properties = cast("Mapping[str, Mapping[str, Any]]", schema["properties"])
    if undefined := sorted(set(schema.get("required", [])) - set(properties)):
        yield f"{undefined} are required and not defined."
    for name, property_schema in properties.items():
        yield from (f"{name} {fault}" for fault in _property_faults(name, property_schema))


def _property_faults(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if not _ARGUMENT_NAME.fullmatch(name) or name in _TAKEN:
        yield "is a name that a framework takes for its own, or no plain one."
    if not schema.get("description"):
        yield "has no description."
    kind: object = schema.get("type")
    if kind == "array":
        words, portable = {"type", "description", "items"}, schema.get("items") == {"type": "string"}
    else:
        words, portable = {"type", "description", "enum"}, isinstance(kind, str) and kind in _SCALARS
    if not portable:
        yield f"must be a string, an integer, a boolean or an array of strings, not {kind!r}."
    if unknown := sorted(set(schema) - words):
        yield f"uses {unknown}."
    if "enum" in schema and not _is_enum(schema["enum"]):
        yield "must have an enum of different, non-empty strings."


def _is_enum(values: object) -> bool:
    if not isinstance(values, list) or not values:
        return False
    listed = cast("list[object]", values)
    return all(isinstance(value, str) and value for value in listed) and len(set(listed)) == len(listed)
