"""What is wrong with a configuration: found under a key, told with file and line, all of it in one error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentkernel_kb.errors import AKConfigError

Key = tuple[str | int, ...]
"""Where a part stands: the keys and positions that lead to it."""

Severity = Literal["error", "warning"]

MOST_SHOWN = 100
"""Faults that are written out where they are read; `.faults`, `check` and `--json` have every one."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, under the key at which it was found.

    Attributes:
        key: Where it was found, once environments are applied.
        message: What is wrong, and what would be right.
        severity: A warning leaves the configuration usable.
    """

    key: Key
    message: str
    severity: Severity = "error"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a configuration, where it stands.

    Attributes:
        severity: `error`: it can't be loaded; `warning`: it can, and probably should not be left so.
        file: The file, or `configuration` where none was read.
        line: The line, counted from 1; `None` where there are no lines.
        key: The keys that lead there, joined by dots; empty for the whole file.
        message: What is wrong, and what would be right. Holds no secret.
    """

    severity: Severity
    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class ConfigurationError(AKConfigError):
    """A configuration that can't be loaded.

    Attributes:
        faults: All that is wrong with it, in the order of the lines; warnings are not among them.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(_listed(self.faults))

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """Return each fault once, in the order of the lines."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line or 0, fault.key))


def shown(faults: Sequence[Fault], as_line: Callable[[Fault], str] = str) -> list[str]:
    """Return a line for each of the first faults, and one that counts the others: nobody mends thousands by reading them."""
    more = len(faults) - MOST_SHOWN
    return [*map(as_line, faults[:MOST_SHOWN]), *([f"… and {more:,} more."] if more > 0 else [])]


def _listed(faults: tuple[Fault, ...]) -> str:
    lines = shown(faults)
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{faults[0].file} has {len(faults):,} faults:", *lines]) if lines else "The configuration is faulty."
