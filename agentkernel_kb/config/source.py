"""A configuration as it was written: its data, and the line of each part, so that a fault can be shown where it stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.near import nearest

Key = tuple[str | int, ...]
"""Where a part stands: the keys and positions that lead to it."""

_MAX_BYTES = 1_000_000
_MAX_DEPTH = 50
_MAX_NODES = 100_000
_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})")


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a configuration.

    Attributes:
        key: Where it stands.
        message: What is wrong, and what would be right.
    """

    key: Key
    message: str


@dataclass(frozen=True)
class Source:
    """A configuration that was read.

    Attributes:
        data: Its content: mappings, lists and scalars, environment variables put in.
        name: The file, or `configuration` where it was handed over as a mapping.
        folder: What relative paths in it are relative to.
        lines: The line on which each part starts, counted from 1; empty where it was handed over as a mapping.
        faults: What was wrong before anything was looked at: keys that stand twice, variables that are not set.
    """

    data: Any
    name: str
    folder: Path
    lines: Mapping[Key, int] = field(default_factory=dict[Key, int])
    faults: Sequence[Fault] = ()

    def where(self, key: Key) -> str:
        """Return the place of a part in words: file, line and keys."""
        line = next((self.lines[key[:length]] for length in range(len(key), -1, -1) if key[:length] in self.lines), None)
        place = self.name if line is None else f"{self.name}:{line}"
        return f"{place} {'.'.join(map(str, key))}" if key else place

    def error(self, faults: Iterable[Fault]) -> AKConfigError:
        """Return one error that lists all faults in the order of their lines."""
        listed = sorted(faults, key=lambda fault: (self._line(fault.key), fault.key and tuple(map(str, fault.key))))
        lines = [f"{self.where(fault.key)}: {fault.message}" for fault in listed]
        if len(lines) == 1:
            return AKConfigError(lines[0])
        return AKConfigError("\n  ".join([f"{self.name} has {len(lines)} faults:", *lines]))

    def _line(self, key: Key) -> int:
        return next((self.lines[key[:length]] for length in range(len(key), -1, -1) if key[:length] in self.lines), 0)


def read(source: str | Path | Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Source:
    """Read a configuration from a YAML file, or take it as a mapping.

    `${NAME}` and `${NAME:-default}` in a text stand for environment variables, `$$` for a dollar sign.

    Args:
        source: Path of the file, or the mapping.
        environment: The variables, those of the process by default.

    Raises:
        AKConfigError: The file cannot be read, or is no YAML mapping.
    """
    variables = os.environ if environment is None else environment
    if isinstance(source, Mapping):
        faults: list[Fault] = []
        return Source(_with_variables(dict(source), (), variables, faults), "configuration", Path.cwd(), {}, faults)
    path = Path(source)
    return _from_yaml(_text(path), str(path), path.absolute().parent, variables)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint at the nearest known name, or nothing where none is near."""
    near = nearest(str(name), known)
    return f" Did you mean '{near}'?" if near else ""


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise AKConfigError(f"There is no configuration file {path}.") from None
    except OSError as error:
        raise AKConfigError(f"The configuration file {path} cannot be read: {error.strerror}.") from error
    if len(data) > _MAX_BYTES:
        raise AKConfigError(f"The configuration file {path} is larger than {_MAX_BYTES:,} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise AKConfigError(f"{path}:{line}: the file is not UTF-8.") from None


def _from_yaml(text: str, name: str, folder: Path, variables: Mapping[str, str]) -> Source:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise AKConfigError(f"{name} is not a mapping of keys to values.")
        reader = _Reader(loader)
        data = reader.value(node, ())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise AKConfigError(f"{name}:{line}: not YAML: {error.problem or 'it cannot be read'}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise AKConfigError(f"{name}: not YAML ({type(error).__name__}).") from None
    finally:
        loader.dispose()
    return Source(_with_variables(data, (), variables, reader.faults), name, folder, reader.lines, reader.faults)


class _Reader:
    """Turns YAML nodes into data and keeps where each stood; keys are always text."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._construct: Any = loader.construct_object  # pyright: ignore[reportUnknownMemberType] - PyYAML's stubs leave it open
        self._nodes = 0
        self.lines: dict[Key, int] = {}
        self.faults: list[Fault] = []

    def value(self, node: yaml.Node, key: Key) -> Any:
        self._nodes += 1
        if len(key) > _MAX_DEPTH or self._nodes > _MAX_NODES:
            raise _fault_at(node, "it is too deep, or its aliases repeat too much")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _CONTAINERS:
            raise _fault_at(node, f"there is no {node.tag}")
        self.lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, key)
        if isinstance(node, yaml.SequenceNode):
            items = cast("list[yaml.Node]", node.value)
            return [self.value(item, (*key, number)) for number, item in enumerate(items)]
        return self._construct(node)

    def _mapping(self, node: yaml.MappingNode, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            name = name_node.value if isinstance(name_node, yaml.ScalarNode) else str(name_node.start_mark)
            inner = (*key, name)
            if name in found:
                first = self.lines[inner]
                self.faults.append(Fault(inner, f"the key stands twice, on line {first} and {name_node.start_mark.line + 1}."))
                continue
            self.lines[inner] = name_node.start_mark.line + 1
            found[name] = self.value(value_node, inner)
        return found


def _fault_at(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _with_variables(value: Any, key: Key, variables: Mapping[str, str], faults: list[Fault]) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {name: _with_variables(item, (*key, str(name)), variables, faults) for name, item in items}
    if isinstance(value, list | tuple):
        listed = cast("Sequence[Any]", value)
        return [_with_variables(item, (*key, number), variables, faults) for number, item in enumerate(listed)]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "$"
        given = variables.get(name) or found["default"]
        if given is None:
            faults.append(Fault(key, f"the environment variable {name} is not set. ${{{name}:-…}} gives it a default."))
            return ""
        return given

    return _VARIABLE.sub(replaced, value)
