"""The `backends:` of a configuration: each entry checked against the constructor of its type, none opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from agentkernel_kb.config.backend_types import BackendType
from agentkernel_kb.config.builtin_types import backend_type
from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.kinds import Kind, Parameter, takes_any
from agentkernel_kb.config.objects import REFERENCE
from agentkernel_kb.config.source import Source, did_you_mean
from agentkernel_kb.config.values import MISSING, checked, said
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.registry import backend_names
from agentkernel_kb.render import is_name

RESERVED = ("*", "description", "instructions")
"""Names that mean something else: every backend, and the two keys of an agent that are no backends."""

COMMON_OPTIONS = ("type", "schema", "connect")
"""What every backend may have beside the options of its type."""

_CONNECT = Kind(Literal["eager", "lazy"])
_SCHEMA = Kind(dict[str, Any])


@dataclass(frozen=True)
class DeclaredBackend:
    """One backend as a configuration declares it.

    Attributes:
        name: Its name.
        type: Its type, as written.
        options: Its options as they were written, secrets taken out: references to variables stay references.
        description: What it holds, where the configuration says so.
    """

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    description: str | None = None


@dataclass(frozen=True)
class Entry:
    """One entry of `backends:` that was checked.

    Attributes:
        name: Its name.
        type: What its type is made of.
        arguments: The constructor's arguments, without name and connect.
        schema: What to add to the schema that agents are shown.
        eager: It is opened when the configuration is loaded.
    """

    name: str
    type: BackendType
    arguments: Mapping[str, Any] = field(repr=False)
    schema: Mapping[str, Any]
    eager: bool


def parse_entries(source: Source, entries: Mapping[str, Any], findings: list[Finding]) -> dict[str, Entry]:
    """Return the entries that have no error; findings say what is wrong with the others."""
    parsed: dict[str, Entry] = {}
    for name in entries:
        before = len(findings)
        key = ("backends", name)
        findings += name_findings(name, key)
        entry = _parsed(source, name, entries[name], key, findings)
        if entry is not None and all(finding.severity == "warning" for finding in findings[before:]):
            parsed[name] = entry
    return parsed


def name_findings(name: str, key: Key) -> list[Finding]:
    """Say what is wrong with the name of a backend."""
    if name in RESERVED:
        return [Finding(key, f"a backend can't be called '{name}': the name is reserved. Give it another one.")]
    if not is_name(name):
        return [Finding(key, "a backend is named by one line of text without blanks around it.")]
    return []


def _parsed(source: Source, name: str, given: Any, key: Key, findings: list[Finding]) -> Entry | None:
    if not isinstance(given, Mapping):
        findings.append(Finding(key, f"must be a mapping with a type, such as {{type: sql, url: …}}, not {said(given)}."))
        return None
    options = cast("Mapping[str, Any]", given)
    if "type" not in options:
        findings.append(
            Finding(key, f"'type' is missing. It is one of: {', '.join(backend_names())}; or {REFERENCE}package.module:Class.")
        )
        return None
    kind = _type(source, options["type"], (*key, "type"), findings)
    if kind is None:
        return None
    return _entry(source, name, kind, options, key, findings)


def _type(source: Source, given: Any, key: Key, findings: list[Finding]) -> BackendType | None:
    if not isinstance(given, str):
        findings.append(Finding(key, f"must be the name of a type, not {said(given)}."))
        return None
    try:
        return backend_type(given)
    except KnowledgeDependencyError as error:
        findings.append(Finding(key, f"{error}.", "warning"))
    except AKConfigError as error:
        findings.append(Finding(key, f"{error}"))
    return None


def _entry(
    source: Source, name: str, kind: BackendType, options: Mapping[str, Any], key: Key, findings: list[Finding]
) -> Entry | None:
    shown_schema = _schema_key(kind, options)
    own = {option: value for option, value in options.items() if option not in ("type", "connect", shown_schema)}
    if own.pop("name", None) is not None:
        findings.append(Finding((*key, "name"), f"the key is the name already: '{name}'. Take this line out."))
    if not takes_any(kind.make):
        findings += _unknown_options(source, kind, own, key)
    known = kind.parameters
    findings += [_missing(option, kind, key) for option in known.values() if option.required and option.name not in own]
    arguments = {
        option: _argument(source, kind, known[option], (*key, option), findings) if option in known else own[option]
        for option in own
    }
    connect: Any = checked(source, _CONNECT, (*key, "connect"), findings) if "connect" in options else "lazy"
    schema: Any = checked(source, _SCHEMA, (*key, shown_schema), findings) if options.get(shown_schema) is not None else {}
    if any(value is MISSING for value in (connect, schema, *arguments.values())):
        return None
    return Entry(name, kind, arguments, schema, connect == "eager")


def _schema_key(kind: BackendType, options: Mapping[str, Any]) -> str:
    """Return where the schema for agents stands: Trino has a `schema` of its own, which is a name."""
    return "add_schema" if "schema" in kind.parameters and not isinstance(options.get("schema"), Mapping) else "schema"


def _argument(source: Source, kind: BackendType, parameter: Parameter, key: Key, findings: list[Finding]) -> Any:
    value = checked(source, parameter.kind, key, findings)
    if value is MISSING:
        return value
    placed = kind.placed(parameter, value, source.folder)
    if placed is not None and parameter.name in kind.checks and (fault := kind.checks[parameter.name](placed)):
        findings.append(Finding(key, *fault))
    return placed


def _missing(parameter: Parameter, kind: BackendType, key: Key) -> Finding:
    return Finding(key, f"'{parameter.name}' is missing: a backend of type {kind.name} needs it.")


def _unknown_options(source: Source, kind: BackendType, own: Collection[str], key: Key) -> list[Finding]:
    known = sorted({*kind.parameters, *COMMON_OPTIONS})
    found: list[Finding] = []
    for option in own:
        if option not in known:
            hint = did_you_mean(option, known)
            origin = source.origins.get((*key, "type"))
            if origin is not None and (*key, option) not in source.origins:
                where = ".".join(map(str, origin[:2]))
                hint = f" It comes from the base, and {where} gives another type: set {option}: null there."
            message = f"a backend of type {kind.name} has no option '{option}'.{hint} Options: {', '.join(known)}."
            found.append(Finding((*key, option), message))
    return found
