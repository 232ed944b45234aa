"""YAML as data with the line of each part. What is no configuration is told in one line, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from agentkernel_kb.config.faults import ConfigurationError, Fault, Finding, Key

_MAX_BYTES = 1_000_000
_MAX_DEPTH = 50
_MAX_NODES = 100_000
_MAX_DIGITS = 300  # More than any number has that stands for something; beyond, Python converts none of them.
_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MERGE = "tag:yaml.org,2002:merge"
# What PyYAML repeats of the file: what follows an unquoted ! * or &, which may be a password that begins with one.
_REPEATED = re.compile(r"\b(tag|alias|anchor|handle) (['\"]).*\2")
_NO_TAGS = "Tags of the kind !name are not used here; put a text that starts with ! in quotes."
_CURES = {
    "found character '\\t'": "Indent with blanks, never with tabs.",
    "found undefined alias": "An alias *name takes what was marked with &name above; put text that starts with * in quotes.",
    "found duplicate anchor": "Put a text that starts with & in quotes, or mark the second with another &name.",
    "mapping values are not allowed here": "Put a text that holds ': ' in quotes, and check the indentation.",
    "found unexpected end of stream": "A quote is opened and not closed.",
    "expected ',' or ']'": "A list in brackets is closed with ].",
    "expected ',' or '}'": "A mapping in braces is closed with }.",
    "expected <block end>": "Check the indentation: entries of one block start in the same column.",
    "could not find expected ':'": "Every entry is key: value, with a blank behind the colon.",
    "found character '@'": "Put a text that starts with @ in quotes.",
    "found character '`'": "Put a text that starts with ` in quotes.",
    "found character '%'": "Put a text that starts with % in quotes.",
    "expected a single document": "One file is one configuration: take the line --- out.",
    "but found another document": "One file is one configuration: take the line --- out.",
    "could not determine a constructor": _NO_TAGS,
    "found undefined tag handle": _NO_TAGS,
    "not a mapping of keys": "Start with {first}: and what it holds.",
    "there is no such tag": "Tags of the kind !name are not used here: take it out.",
    "aliases repeat too much": "Write the parts out, or use fewer aliases.",
}


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes:
        data: Mappings with keys of text, lists, scalars.
        lines: The line on which each part starts, counted from 1.
        findings: Keys that stand twice.
    """

    data: dict[str, Any]
    lines: Mapping[Key, int]
    findings: list[Finding]


def read(path: Path, first: str = "backends") -> Content:
    """Read a YAML file whose top is a mapping.

    Args:
        path: The file.
        first: The key that it starts with, for whoever is told that it is something else.

    Raises:
        ConfigurationError: It cannot be read, or is something else.
    """
    text, name = _text(path), str(path)
    try:
        return _parsed(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _error(name, line, f"not YAML: {_told(error, first)}") from None
    except RecursionError:
        raise _error(name, 1, "not YAML: it is too deep.") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(name, line, "not YAML: it holds a character that may not stand in a text file. Take it out.") from None


def _parsed(text: str) -> Content:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "the file is not a mapping of keys to values")
        reader = _Reader(loader)
        return Content(reader.value(node, ()), reader.lines, reader.findings)
    finally:
        loader.dispose()


def _told(error: yaml.MarkedYAMLError, first: str) -> str:
    problem = _REPEATED.sub(r"\1", " ".join(str(error.problem or "it cannot be read").split()))
    if "another document" in problem:
        problem = "it holds several documents"
    cure = next((cure for part, cure in _CURES.items() if part in f"{problem} {error.context or ''}"), "")
    return f"{problem}. {cure.replace('{first}', first)}".rstrip()


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _error(str(path), None, f"There is no configuration file {path}.") from None
    except OSError as error:
        raise _error(str(path), None, f"The configuration file cannot be read: {error.strerror}.") from error
    if len(data) > _MAX_BYTES:
        message = f"The configuration file is larger than {_MAX_BYTES:,} bytes. Take out what is no configuration."
        raise _error(str(path), 1, message)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(str(path), line, "the file is not UTF-8. Save it as that.") from None


def _error(name: str, line: int | None, message: str) -> ConfigurationError:
    return ConfigurationError([Fault("error", name, line, "", message)])


class _Loader(yaml.SafeLoader):
    """Composes nodes up to a number, so that a file of a million bytes that holds nothing but nodes is refused in good time."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose one node as PyYAML does."""
        node = super().compose_node(parent, index)
        self._nodes += 1
        if node is not None and self._nodes > _MAX_NODES:
            raise _fault_at(node, "it holds too many values")
        return node


class _Reader:
    """Turns YAML nodes into data and keeps where each stood; keys are always text."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._construct: Any = loader.construct_object  # pyright: ignore[reportUnknownMemberType] - PyYAML's stubs leave it open
        self._nodes = 0
        self.lines: dict[Key, int] = {}
        self.findings: list[Finding] = []

    def value(self, node: yaml.Node, key: Key) -> Any:
        self._nodes += 1
        if len(key) > _MAX_DEPTH or self._nodes > _MAX_NODES:
            raise _fault_at(node, "it is too deep, or its aliases repeat too much")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _CONTAINERS:
            raise _fault_at(node, "there is no such tag")
        self.lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, key)
        if isinstance(node, yaml.SequenceNode):
            items = cast("list[yaml.Node]", node.value)
            return [self.value(item, (*key, number)) for number, item in enumerate(items)]
        return self._scalar(cast("yaml.ScalarNode", node))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _NUMBERS and len(str(node.value)) > _MAX_DIGITS:
            raise _fault_at(node, "it is too long for a number; put it in quotes")
        try:
            return self._construct(node)
        except (ValueError, OverflowError, AttributeError, LookupError):  # Whatever a constructor of PyYAML stumbles over.
            raise _fault_at(node, "it looks like a date or a number and is none; put it in quotes") from None

    def _mapping(self, node: yaml.MappingNode, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for name_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if name_node.tag == _MERGE:
                merged += self._merged(name_node, value_node)
                continue
            if not isinstance(name_node, yaml.ScalarNode):
                raise _fault_at(name_node, "a key is a text, and neither a list nor a mapping")
            name = str(name_node.value)
            inner = (*key, name)
            if name in found:
                lines = (self.lines[inner], name_node.start_mark.line + 1)
                where = f"on line {lines[0]}" if lines[0] == lines[1] else f"on lines {lines[0]} and {lines[1]}"
                self.findings.append(Finding(inner, f"the key stands twice, {where}. Keep one of them."))
                continue
            self.lines.setdefault(inner, name_node.start_mark.line + 1)
            found[name] = self.value(value_node, inner)
        for each in merged:
            found = {**self.value(each, key), **found}
        return found

    def _merged(self, name: yaml.Node, node: yaml.Node) -> list[yaml.Node]:
        """Return the mappings that `<<` takes in; those named first count."""
        nodes = cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(each, yaml.MappingNode) for each in nodes):
            raise _fault_at(name, "<< takes an alias of a mapping, or a list of those")
        return nodes


def _fault_at(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
