"""A configuration as it was written: its data, and the line of each part, so that a fault can be shown where it stands."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from agentkernel_kb.config import yaml_file
from agentkernel_kb.config.faults import ConfigurationError, Fault, Finding, Key, in_order
from agentkernel_kb.config.overlay import laid_over, origin
from agentkernel_kb.config.variables import Variables
from agentkernel_kb.near import hint
from agentkernel_kb.render import name_shown

_MOST_HINTS = 200
_MOST_LISTED = 30
_LOGIN = re.compile(r"(\b[\w+.-]{1,40}://)[^\s/@]{1,512}(?=@)")
_HINTS: ContextVar[Iterator[int] | None] = ContextVar("hints", default=None)


@dataclass(frozen=True)
class Source:
    """A configuration that was read.

    Attributes:
        data: Its content: mappings, lists and scalars, environment variables put in.
        name: The file, or `configuration` where it was handed over as a mapping.
        folder: What relative paths in it are relative to.
        lines: The line on which each part starts, counted from 1; empty where it was handed over as a mapping.
        findings: What was wrong before anything was looked at: keys that stand twice, variables that are not set.
        written: The content as it was written, references to variables included.
        origins: Where the parts that come from an environment's overlay were written, by their key in the data.
        variables: What was put in.
    """

    data: Any = field(repr=False)
    name: str
    folder: Path
    lines: Mapping[Key, int] = field(default_factory=dict[Key, int], repr=False)
    findings: tuple[Finding, ...] = ()
    written: Any = field(default=None, repr=False)
    origins: Mapping[Key, Key] = field(default_factory=dict[Key, Key])
    variables: Variables = field(default_factory=lambda: Variables({}), repr=False)

    def placed(self, finding: Finding) -> Fault:
        """Return what was found with the file, the line and the keys at which it was written, on one line.

        It is free of variables' values, and of logins in URLs that stand where no secret is looked for, as in a key.
        """
        key = origin(finding.key, self.origins)
        line = next((self.lines[key[:length]] for length in range(len(key), -1, -1) if key[:length] in self.lines), None)
        message = self.variables.masked(finding.message)
        return Fault(finding.severity, self.name, line, _told(".".join(map(str, key))), _told(message))

    def error(self, findings: Iterable[Finding]) -> ConfigurationError:
        """Return one error that lists all of these in the order of their lines."""
        return ConfigurationError(in_order(map(self.placed, findings)))

    def written_at(self, key: Key) -> Any:
        """Return the part under a key as it was written; `None` where there is none."""
        part = self.written
        for step in key:
            if isinstance(part, Mapping):
                part = cast("Mapping[Any, Any]", part).get(step)
            elif isinstance(part, list) and isinstance(step, int) and step < len(cast("list[Any]", part)):
                part = cast("list[Any]", part)[step]
            else:
                return None
        return part

    def with_overlay(self, base: Mapping[str, Any], overlay: Mapping[str, Any], at: Key) -> Source:
        """Return `base` with an overlay applied that stands under `at` of this source. Variables are not put in yet."""
        merged, origins = laid_over(base, overlay, at)
        return replace(self, data=merged, written=merged, origins=origins)

    def with_variables(self, environment: Mapping[str, str] | None = None, *, relaxed: bool = False) -> Source:
        """Return the same configuration with variables put in.

        Args:
            environment: The variables, those of the process by default.
            relaxed: One that is not set is a warning.
        """
        variables = Variables(os.environ if environment is None else environment, relaxed=relaxed)
        data = variables.put_in(self.written)
        return replace(self, data=data, variables=variables, findings=(*self.findings, *variables.findings))

    def with_findings(self, findings: Iterable[Finding]) -> Source:
        """Return the same configuration with more found wrong with it."""
        return replace(self, findings=(*self.findings, *findings))


def read(source: str | Path | Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Source:
    """Read a configuration from a YAML file, or take it as a mapping.

    `${NAME}` and `${NAME:-default}` in a text stand for environment variables, `$$` for a dollar sign.

    Args:
        source: Path of the file, or the mapping.
        environment: The variables, those of the process by default.

    Raises:
        ConfigurationError: The file cannot be read, or is no YAML mapping.
    """
    return read_as_written(source).with_variables(environment)


def read_as_written(source: str | Path | Mapping[str, Any], *, first: str = "backends") -> Source:
    """Read a configuration without putting variables in.

    Args:
        source: Path of the file, or the mapping.
        first: The key that such a file starts with, for whoever is told that a file is none.

    Raises:
        ConfigurationError: The file cannot be read, or is no YAML mapping.
    """
    if isinstance(source, Mapping):
        data = _as_read(source)
        return Source(data, "configuration", Path.cwd(), written=data)
    path = Path(source)
    content = yaml_file.read(path, first)
    return Source(content.data, str(path), path.absolute().parent, content.lines, tuple(content.findings), content.data)


@contextmanager
def few_hints() -> Generator[None]:
    """Let only the first faults that are found inside the block guess what was meant: with thousands, that takes minutes."""
    token = _HINTS.set(count(1))
    try:
        yield
    finally:
        _HINTS.reset(token)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint at the nearest known name, or nothing where none is near."""
    hints = _HINTS.get()
    if hints is not None and next(hints) > _MOST_HINTS:
        return ""
    return hint(str(name), known)


def listed(names: Iterable[str]) -> str:
    """Return names one after the other, those behind the first as a number; `none` where there is none."""
    every = list(names)
    more = f" and {len(every) - _MOST_LISTED:,} more" if len(every) > _MOST_LISTED else ""
    return f"{', '.join(every[:_MOST_LISTED])}{more}" or "none"


def _told(text: str) -> str:
    return _LOGIN.sub(r"\1***", name_shown(text))


def _as_read(value: Any) -> Any:
    """Return plain mappings with keys of text, as a file would give them."""
    if isinstance(value, Mapping):
        return {str(name): _as_read(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    return [_as_read(item) for item in cast("list[Any]", value)] if isinstance(value, list | tuple) else value
