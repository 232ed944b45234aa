"""`${NAME}` and `${NAME:-default}`: variables of the environment in the texts of a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agentkernel_kb.config.faults import Finding, Key

# A default is bounded, so that openings without an end do not each look through the rest of a text.
VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]{0,1000}))?\})")
_BROKEN = re.compile(r"\$\{[^}]*\}?")
_SHORTEST_MASKED = 4
_NAMED = (("backends",), ("agents",))


@dataclass
class Variables:
    """Puts variables into the texts of a configuration, and remembers what it put in.

    Attributes:
        environment: The variables.
        relaxed: One that is not set is a warning, as it may be set elsewhere, and is left as it was written.
        findings: What was wrong: variables that are not set, braces that hold no name.
        used: The variables that were put in, with their values.
        missing: Where one was not set or could not be read: what stands there is none of a value's business.
        hidden: Other texts that no message may show.
    """

    environment: Mapping[str, str] = field(repr=False)
    relaxed: bool = False
    findings: list[Finding] = field(default_factory=list[Finding])
    used: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    missing: set[Key] = field(default_factory=set[Key])
    hidden: set[str] = field(default_factory=set[str], repr=False)

    def put_in(self, value: Any, key: Key = ()) -> Any:
        """Return `value` with the variables of all texts in it put in. `$$` is a dollar sign; one that is empty is not set."""
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            if key in _NAMED:
                self.findings += name_findings((str(name) for name, _ in items), key)
            return {name: self.put_in(item, (*key, str(name))) for name, item in items}
        if isinstance(value, list | tuple):
            return [self.put_in(item, (*key, number)) for number, item in enumerate(cast("Sequence[Any]", value))]
        return self._text(value, key) if isinstance(value, str) and "$" in value else value

    def _text(self, text: str, key: Key) -> str:
        for broken in _BROKEN.finditer(VARIABLE.sub("", text)):
            shown = broken[0] if len(broken[0]) <= len("${}") else "${…}"
            message = f"{shown} is no reference to a variable. It is ${{NAME}} or ${{NAME:-default}}; $${{ for the characters."
            self.findings.append(Finding(key, message))
            self.missing.add(key)
        return VARIABLE.sub(lambda found: self._value(found, key), text)

    def _value(self, found: re.Match[str], key: Key) -> str:
        name = found["name"]
        if name is None:
            return "$"
        if "${" in (found["default"] or ""):
            self.findings.append(Finding(key, f"the default of {name} holds another variable. A default is plain text."))
            self.missing.add(key)
            return found[0]
        given = self.environment.get(name)
        if given:
            self.used[name] = given
            return given
        if found["default"] is None:
            message = f"the environment variable {name} is not set. ${{{name}:-…}} gives it a default."
            self.findings.append(Finding(key, message, "warning" if self.relaxed else "error"))
            self.missing.add(key)
            return found[0]
        return found["default"]

    def is_missing_in(self, key: Key) -> bool:
        """Tell whether a variable was not set in the part under a key."""
        return any(place[: len(key)] == key for place in self.missing)

    def masked(self, text: str) -> str:
        """Return `text` with every value that was put in replaced by the name of its variable, and hidden texts by `***`."""
        for secret in sorted(self.hidden, key=len, reverse=True):
            text = text.replace(secret, "***")
        for name, value in sorted(self.used.items(), key=lambda item: -len(item[1])):
            if len(value) >= _SHORTEST_MASKED:
                text = text.replace(value, f"${{{name}}}")
        return text


def name_findings(names: Iterable[str], key: Key) -> list[Finding]:
    """Say which names hold a reference to a variable: it would stay as it is written."""
    message = "a name holds no variable: only values do. Write the name out."
    return [Finding((*key, name), message) for name in names if "${" in name]


def without_variables(text: str) -> str:
    """Return what a text says by itself, once its references to variables are taken out; their defaults stay."""
    return VARIABLE.sub(lambda found: found["default"] or "", text)
