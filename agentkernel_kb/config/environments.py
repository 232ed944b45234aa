"""The `environments:` of a configuration: one of them laid over the base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.source import Source, did_you_mean, listed
from agentkernel_kb.config.values import said
from agentkernel_kb.config.variables import name_findings

_SECTION = "environments"


def environment_names(written: Source) -> list[str]:
    """Return the names of all environments."""
    found: Any = written.data.get(_SECTION)
    return list(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else []


def environment_findings(written: Source) -> list[Finding]:
    """Say what is wrong with the environments by themselves, whichever is used."""
    found: Any = written.data.get(_SECTION)
    if found is not None and not isinstance(found, Mapping):
        return [
            Finding((_SECTION,), f"must map names to what is different there, such as {{prod: {{…}}}}, not be {said(found)}.")
        ]
    findings = name_findings(environment_names(written), (_SECTION,))
    for name in environment_names(written):
        overlay: Any = written.data[_SECTION][name]
        key = (_SECTION, name)
        if overlay is not None and not isinstance(overlay, Mapping):
            findings.append(Finding(key, f"must be a mapping of what is different in '{name}', not {said(overlay)}."))
        elif overlay and _SECTION in overlay:
            findings.append(Finding((*key, _SECTION), "an environment has no environments of its own. Take this part out."))
    return findings


def source_of(written: Source, env: str | None, *, relaxed: bool = False) -> Source:
    """Return the configuration of one environment, variables put in.

    Args:
        written: The whole configuration.
        env: The environment, `None` for the base.
        relaxed: A variable that is not set is a warning.

    Raises:
        ConfigurationError: There is no such environment.
    """
    base = {name: part for name, part in written.data.items() if name != _SECTION}
    wrong = environment_findings(written)
    if env is None:
        return written.with_overlay(base, {}, ()).with_variables().with_findings(wrong)
    known = environment_names(written)
    if env not in known:
        message = f"there is no environment '{env}'.{did_you_mean(env, known)} Declared: {listed(known)}."
        raise written.error([Finding((_SECTION,) if known else (), message)])
    given: Any = written.data[_SECTION][env]
    parts: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    overlay = {name: part for name, part in parts.items() if name != _SECTION}
    merged = written.with_overlay(base, overlay, (_SECTION, env))
    return merged.with_variables(relaxed=relaxed).with_findings([*wrong, *_removals(overlay, base, env)])


def _removals(overlay: Mapping[str, Any], base: Mapping[str, Any], env: str) -> list[Finding]:
    """Say which nulls of an overlay remove nothing: the name is probably another one."""
    found: list[Finding] = []
    pending: list[tuple[Key, Mapping[str, Any], Mapping[str, Any]]] = [((), overlay, base)]
    while pending:
        key, above, below = pending.pop()
        for name, value in above.items():
            here = (*key, name)
            if value is None and name not in below:
                message = f"null removes what the base has, and it has no '{name}' here.{did_you_mean(name, below)}"
                found.append(Finding((_SECTION, env, *here), message, "warning"))
            elif isinstance(value, Mapping) and isinstance(below.get(name), Mapping):
                pending.append((here, cast("Mapping[str, Any]", value), cast("Mapping[str, Any]", below[name])))
    return found
