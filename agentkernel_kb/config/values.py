"""Values of a configuration checked against kinds, with what is expected in words that whoever writes YAML uses."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Mapping
from datetime import date
from functools import lru_cache
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.kinds import Kind
from agentkernel_kb.config.objects import REFERENCE, load_object
from agentkernel_kb.config.source import Source, did_you_mean
from agentkernel_kb.errors import AKConfigError

_QUOTES = " Put it in quotes."

MISSING = object()
"""What `checked` returns in place of a value that is wrong."""


def unknown_keys(found: Collection[str], known: Collection[str], key: Key, what: str = "key") -> list[Finding]:
    """Return one finding for each key that is not known, with the nearest one that is."""
    return [
        Finding((*key, name), f"unknown {what} '{name}'.{did_you_mean(name, known)} Known: {', '.join(sorted(known))}.")
        for name in found
        if name not in known
    ]


def checked(source: Source, kind: Kind, key: Key, findings: list[Finding]) -> Any:
    """Return the value under a key as its parameter takes it, or `MISSING` and a finding where it can't be one.

    Where a variable in it is not set there is no value to look at, and nothing more to say.

    Text in place of a number or a truth value is read as one, as variables always give text.
    """
    if source.variables.is_missing_in(key):
        return MISSING
    value: Any = source.data
    for step in key:
        value = value[step]
    if kind.takes_object and isinstance(value, str) and value.startswith(REFERENCE):
        return _object(value, key, findings)
    if kind.type is None:
        findings.append(Finding(key, f"must name an object of Python as {REFERENCE}package.module:name, not {said(value)}."))
        return MISSING
    try:
        return _adapter(kind.type).validate_python(value, strict=not isinstance(value, str))
    except ValidationError as error:
        findings.extend(_findings(error, kind, value, key))
        return MISSING


def said(value: Any) -> str:
    """Name the sort of a value, never the value."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    names: dict[Any, str] = {
        str: "text",
        bytes: "binary data",
        int: "a number",
        float: "a number with a fraction",
        dict: "a mapping",
        list: "a list",
    }
    sort: Any = type(cast("object", value))
    return names.get(sort, f"a {sort.__name__}")


def expected(kind: Any) -> str:
    """Say what a kind of value is in words."""
    outer = get_origin(kind) or kind
    if outer is Literal:
        return " or ".join(map(str, get_args(kind)))
    if outer is dict:
        return "a mapping"
    if outer in (list, tuple):
        return f"a list of {_plural(get_args(kind))}"
    members = [each for each in get_args(kind) if each is not types.NoneType] if outer not in (list, tuple) else []
    if members:
        return " or ".join(dict.fromkeys(expected(each) for each in members))
    names: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(outer, "a value")


def _plural(arguments: tuple[Any, ...]) -> str:
    first = get_args(arguments[0])[0] if arguments and get_args(arguments[0]) else (arguments or (Any,))[0]
    names: dict[Any, str] = {str: "texts", int: "whole numbers", float: "numbers"}
    return names.get(first, "values")


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))


def _findings(error: ValidationError, kind: Kind, value: Any, key: Key) -> list[Finding]:
    container = next((each for each in (kind.type, *get_args(kind.type)) if _holds(each, value)), None)
    place = _place_within(error, container) if container is not None else None
    if place is not None:
        item: Any = get_args(container)[-1]
        return [Finding((*key, place), f"must be {expected(item)}.{_QUOTES if item is str else ''}")]
    if isinstance(value, float) and not math.isfinite(value):
        return [Finding(key, f"must be {expected(kind.type)}, and a finite one.")]
    choices = _choices(kind.type)
    hint = did_you_mean(value, map(str, choices)) if isinstance(value, str) else ""
    found = f", not {said(value)}" if not choices and said(value) != expected(kind.type) else ""
    return [Finding(key, f"must be {expected(kind.type)}{found}.{hint}{_cure(kind, value)}")]


def _cure(kind: Kind, value: Any) -> str:
    """Say how YAML would have to be written, where that is most likely what is wrong."""
    if isinstance(value, date) or (isinstance(value, int | float) and str in (kind.type, *get_args(kind.type))):
        return _QUOTES
    return " Put it in [brackets]." if isinstance(value, str) and expected(kind.type).startswith("a list") else ""


def _choices(kind: Any) -> list[Any]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for each in get_args(kind) if get_origin(each) is Literal for choice in get_args(each)]


def _holds(kind: Any, value: Any) -> bool:
    """Tell whether a value is a container as the kind is one, so that something in it is wrong."""
    return (isinstance(value, Mapping) and get_origin(kind) is dict) or (isinstance(value, list) and get_origin(kind) is list)


def _place_within(error: ValidationError, container: Any) -> str | int | None:
    """Return the first key or position within a container at which it goes wrong; `None` where that isn't known."""
    sort = str if get_origin(container) is dict else int
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        # In a union the first step names the member that was tried: dict[str,str].
        place = next((step for step in detail["loc"] if isinstance(step, sort) and "[" not in str(step)), None)
        if place is not None:
            return place
    return None


def _object(value: str, key: Key, findings: list[Finding]) -> Any:
    try:
        return load_object(value)
    except AKConfigError as error:
        findings.append(Finding(key, str(error)))
        return MISSING


def call_reporting(make: Callable[[], Any], key: Key, findings: list[Finding]) -> Any:
    """Return what a constructor makes, or `MISSING` and a finding where it says that an argument is wrong."""
    try:
        return make()
    except AKConfigError as error:
        findings.append(Finding(key, str(error)))
        return MISSING


def mapping_at(source: Source, key: Key, findings: list[Finding]) -> Mapping[str, Any]:
    """Return the mapping under a key; an empty one where there is none, with a finding where it is something else."""
    value: Any = source.data
    for step in key:
        value = cast("Mapping[Any, Any]", value).get(step)
        if value is None:
            return {}
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    findings.append(Finding(key, f"must be a mapping of names to values, not {said(value)}."))
    return {}
