"""A whole configuration checked in one pass: every fault of every section, nothing opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkernel_kb.config.backends import RESERVED, DeclaredBackend, Entry, name_findings, parse_entries
from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.kinds import Kind, parameters_of
from agentkernel_kb.config.okf_block import Database, OKFBlock, check_okf_block
from agentkernel_kb.config.policy import Agent, bundle_findings, parse_agents
from agentkernel_kb.config.secrets import literal_secrets, shown
from agentkernel_kb.config.source import Source, did_you_mean, listed
from agentkernel_kb.config.values import MISSING, call_reporting, checked, mapping_at, said, unknown_keys
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.resilience import Resilience
from agentkernel_kb.router.semantic_map import SemanticMap

VERSION = 1
_SHORTEST_HIDDEN = 4
SECTIONS = (
    "version",
    "backends",
    "semantic_map",
    "environments",
    "agents",
    "limits",
    "cache",
    "on_failure",
    "telemetry",
    "okf",
)
"""What may stand at the top of a file; and keys that begin with `x-`, which are nobody's business."""

CACHE_OPTIONS = {"seconds": "stale_seconds", "entries": "stale_entries", "characters": "stale_characters"}
"""What stands under `cache:`, and what `Resilience` calls it."""


@dataclass(frozen=True)
class Description:
    """What a configuration says, checked.

    Attributes:
        source: Where it says so.
        entries: The backends that have no error, by name.
        declared: All backends as they were written, those of the `okf:` block included.
        bundles: The `okf:` block, where there is one without an error.
        agents: The agents of `agents:`; `None` where there is no such section.
        semantic_map: Tokens and what they stand for.
        limits: Bounds of every call.
        resilience: What to do about a backend that is not there, and how old an answer may be.
        telemetry: Spans and metrics are wanted.
        findings: Everything that is wrong.
    """

    source: Source = field(repr=False)
    entries: Mapping[str, Entry]
    declared: Mapping[str, DeclaredBackend]
    bundles: OKFBlock | None
    agents: Mapping[str, Agent] | None
    semantic_map: SemanticMap
    limits: Limits
    resilience: Resilience
    telemetry: bool
    findings: list[Finding] = field(default_factory=list[Finding])

    def databases(self) -> Mapping[str, Database]:
        """Return the bundles of the `okf:` block by name."""
        return self.bundles.databases if self.bundles else {}


def describe(source: Source) -> Description:
    """Check what a configuration says. Nothing is opened; classes that it names are imported."""
    findings = [*source.findings]
    data = cast("Mapping[str, Any]", source.data)
    findings += unknown_keys([name for name in data if not name.startswith("x-")], SECTIONS, ())
    _check_version(data.get("version"), findings)
    backends = mapping_at(source, ("backends",), findings)
    bundles = _bundles(source, findings)
    names = [*backends, *_bundle_names(data)]
    if not names and not findings:
        findings.append(
            Finding((), "there is nothing in it: declare at least one backend under backends, or a bundle under okf.")
        )
    findings += _collisions(backends, data)
    for key in [*(("backends", name) for name in backends), *(("okf", "databases", name) for name in _bundle_names(data))]:
        findings += _secrets(source, key)
    agents = parse_agents(mapping_at(source, ("agents",), findings), names, findings) if "agents" in data else None
    findings += bundle_findings(agents, bundles.databases if bundles else {})
    described = Description(
        source,
        parse_entries(source, backends, findings),
        _declared(source, backends, bundles),
        bundles,
        agents,
        _semantic_map(source, names, findings),
        _limits(source, findings),
        _resilience(source, findings),
        _telemetry(source, findings),
        findings,
    )
    findings[:] = [each for each in findings if each in source.findings or each.key not in source.variables.missing]
    return described


def _secrets(source: Source, key: Key) -> list[Finding]:
    """Find the secrets that are written into a backend's options, and see to it that no message repeats them."""
    found = list(literal_secrets(source.written_at(key), key))
    texts = (str(source.written_at(finding.key)) for finding in found)
    source.variables.hidden.update(text for text in texts if len(text) >= _SHORTEST_HIDDEN)
    return found


def _check_version(version: Any, findings: list[Finding]) -> None:
    if (version is not None and version not in (VERSION, str(VERSION))) or isinstance(version, bool):
        findings.append(
            Finding(("version",), f"this release reads version {VERSION}. Write version: {VERSION}, or leave it out.")
        )


def _bundles(source: Source, findings: list[Finding]) -> OKFBlock | None:
    if source.data.get("okf") is None:
        return None
    block, wrong = check_okf_block(source, ("okf",))
    findings += wrong
    return block


def _bundle_names(data: Mapping[str, Any]) -> list[str]:
    okf: Any = data.get("okf")
    databases: Any = cast("Mapping[str, Any]", okf).get("databases") if isinstance(okf, Mapping) else None
    return list(cast("Mapping[str, Any]", databases)) if isinstance(databases, Mapping) else []


def _collisions(backends: Mapping[str, Any], data: Mapping[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    for name in _bundle_names(data):
        key = ("okf", "databases", name)
        if name in backends:
            message = f"'{name}' stands under backends too, and both become backends of one router. Rename one of them."
            found.append(Finding(key, message))
        elif name in RESERVED and name != "*":  # The block's own check knows that one, and what is no line of text.
            found += name_findings(name, key)
    return found


def _declared(source: Source, backends: Mapping[str, Any], bundles: OKFBlock | None) -> dict[str, DeclaredBackend]:
    declared: dict[str, DeclaredBackend] = {}
    for name in backends:
        declared[name] = _one_declared(name, source.written_at(("backends", name)))
    for name, database in (bundles.databases if bundles else {}).items():
        written: Any = source.written_at(("okf", "databases", name)) or {}
        options = {option: written[option] for option in ("uri", "refresh_seconds", "write_prefix") if option in written}
        declared[name] = DeclaredBackend(name, "okf", shown(options), database.description)
    return declared


def _one_declared(name: str, written: Any) -> DeclaredBackend:
    options: Mapping[str, Any] = cast("Mapping[str, Any]", written) if isinstance(written, Mapping) else {}
    described = options.get("description")
    own = {option: value for option, value in options.items() if option not in ("type", "description", "schema")}
    return DeclaredBackend(name, str(options.get("type", "")), shown(own), described if isinstance(described, str) else None)


def _semantic_map(source: Source, backends: Collection[str], findings: list[Finding]) -> SemanticMap:
    tokens: dict[str, str | Mapping[str, str]] = {}
    for token, given in mapping_at(source, ("semantic_map",), findings).items():
        key = ("semantic_map", token)
        before = len(findings)
        value = cast("str | Mapping[str, str]", given)  # As far as the checks find nothing.
        if isinstance(value, Mapping):
            _check_names(token, value, backends, key, findings)
        else:
            _check_name(token, value, key, findings)
        if (
            len(findings) == before
            and _token_finding(token, key, findings)
            and call_reporting(lambda t=token, v=value: SemanticMap({t: v}), key, findings) is not MISSING
        ):
            tokens[token] = value
    return SemanticMap(tokens)


def _check_name(token: str, value: Any, key: Key, findings: list[Finding]) -> None:
    if not isinstance(value, str):
        quotes = " Put it in quotes." if isinstance(value, int | float) else ""
        findings.append(Finding(key, f"must be the name that {token} stands for, not {said(value)}.{quotes}"))


def _check_names(token: str, names: Mapping[str, Any], backends: Collection[str], key: Key, findings: list[Finding]) -> None:
    if not names:
        findings.append(Finding(key, f"must be the name that {token} stands for, or one for each of some backends."))
    for backend, name in names.items():
        if backend not in backends:
            hint = did_you_mean(backend, backends)
            findings.append(Finding((*key, backend), f"there is no backend '{backend}'.{hint} Declared: {listed(backends)}."))
        _check_name(token, name, (*key, backend), findings)


def _token_finding(token: str, key: Key, findings: list[Finding]) -> bool:
    """Tell whether a token is whole, and say what is wrong with one that has half of its brackets."""
    if token.startswith("<") == token.endswith(">"):
        return True
    findings.append(Finding(key, f"a token has both of its brackets: '<{token.strip('<>')}>'."))
    return False


def _limits(source: Source, findings: list[Finding]) -> Limits:
    kinds = {name: each.kind for name, each in parameters_of(Limits).items()}
    values = _values(source, "limits", kinds, findings)
    return Limits(**values) if values and _agree(Limits, values, "limits", {}, findings) else Limits()


def _agree(make: Any, values: Mapping[str, Any], section: str, names: Mapping[str, str], findings: list[Finding]) -> bool:
    """Tell whether values go together, and say under the right key what is wrong with them.

    Args:
        make: What takes them; its errors start with its name and that of the value.
        values: The values.
        section: Where they stand.
        names: What the section calls them, where that is something else.
        findings: Where to add what is wrong.
    """
    try:
        make(**values)
    except AKConfigError as error:
        name, _, rest = str(error).removeprefix(f"{make.__name__}.").partition(" ")
        findings.append(Finding((section, names.get(name, name)), rest))
        return False
    return True


def _values(source: Source, section: str, kinds: Mapping[str, Kind], findings: list[Finding]) -> dict[str, Any] | None:
    given = mapping_at(source, (section,), findings)
    findings += unknown_keys(given, kinds, (section,))
    values = {name: checked(source, kinds[name], (section, name), findings) for name in given if name in kinds}
    return None if any(value is MISSING for value in values.values()) else values


def failure_kinds() -> dict[str, Kind]:
    """Return what may stand under `on_failure:`: all of `Resilience` but what stands under `cache:`."""
    cached = CACHE_OPTIONS.values()
    return {name: each.kind for name, each in parameters_of(Resilience).items() if name not in cached}


def cache_kinds() -> dict[str, Kind]:
    """Return what may stand under `cache:`."""
    kinds = parameters_of(Resilience)
    return {name: kinds[target].kind for name, target in CACHE_OPTIONS.items()}


def _resilience(source: Source, findings: list[Finding]) -> Resilience:
    failing = _values(source, "on_failure", failure_kinds(), findings)
    cached = _values(source, "cache", cache_kinds(), findings)
    settings: dict[str, Any] = {}
    if failing and _agree(Resilience, failing, "on_failure", {}, findings):
        settings |= failing
    renamed = {CACHE_OPTIONS[name]: value for name, value in (cached or {}).items()}
    if renamed and _agree(Resilience, renamed, "cache", {target: name for name, target in CACHE_OPTIONS.items()}, findings):
        settings |= renamed
    return Resilience(**settings)


def _telemetry(source: Source, findings: list[Finding]) -> bool:
    given: Any = source.data.get("telemetry")
    if isinstance(given, bool | str):
        return checked(source, Kind(bool), ("telemetry",), findings) is True
    values = _values(source, "telemetry", {"enabled": Kind(bool)}, findings)
    return bool(values and values.get("enabled", True))
