"""A document taken apart into frontmatter and body, and the YAML of the frontmatter read as the author's text.

The YAML is parsed by libyaml and never resolved: no number, date or truth value is made of a plain scalar, no tag is
followed. How much of it is read, and how deep it may nest, is bounded before and while it is read.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_CHARS = 131_072
"""Most characters of a frontmatter."""

_MAX_NODES = 20_000
_MAX_DEPTH = 64
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_NULL, _TEXT = "null", "text"
_MERGE = "<<"

_OPENING = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*\r?$\n?", re.MULTILINE)
_INDENTED_CLOSING = re.compile(r"^[ \t]+---[ \t]*\r?$\n?", re.MULTILINE)
_NESTING = re.compile(r"[\[\]{}]")


class FrontmatterError(Exception):
    """A frontmatter that cannot be read.

    Attributes:
        line: Line of the document, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Parts:
    """A document taken apart; `opening + head + closing + body` is the whole of it.

    Attributes:
        opening: A byte order mark if it has one, and the line of the first `---`.
        head: The YAML between the two.
        closing: The line of the second `---`.
        body: Everything after it.
    """

    opening: str
    head: str
    closing: str
    body: str


@dataclass(slots=True)
class Head:
    """What a frontmatter says.

    Attributes:
        values: Its keys and values: text, `None`, lists and mappings.
        lines: The line of the document at which each key stands, counted from 1.
        duplicates: Keys that stand there more than once, with the line of the later one, which counts.
        spans: Offsets of lines of the YAML, from the key's line to the line after its value; empty where the mapping is
            written in flow style.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    duplicates: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    spans: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def split(text: str) -> Parts | None:
    """Take a document apart; `None` where it has no frontmatter.

    The first line is `---`, the frontmatter ends at the next such line. Blanks after the dashes and a byte order mark before
    them are taken; where no line begins with `---`, an indented one closes. Source: OKF 0.2 §4.
    """
    start = 1 if text.startswith("\ufeff") else 0
    opening = _OPENING.match(text, start)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end()) or _INDENTED_CLOSING.search(text, opening.end())
    if closing is None:
        return None
    return Parts(
        text[: opening.end()],
        text[opening.end() : closing.start()],
        text[closing.start() : closing.end()],
        text[closing.end() :],
    )


def read_head(yaml_text: str) -> Head:
    """Read the YAML of a frontmatter.

    Raises:
        FrontmatterError: It is no mapping, no YAML, too long, or nests too deeply.
    """
    if len(yaml_text) > MAX_CHARS:
        raise FrontmatterError(f"its frontmatter has more than {MAX_CHARS:,} characters", 1)
    _check_nesting(yaml_text)
    node = _composed(yaml_text)
    if node is None:
        return Head()
    if not isinstance(node, MappingNode):
        raise FrontmatterError("its frontmatter is no mapping of keys to values", _line(node))
    return _Reader().read(node)


class _Loader(CParser):
    """libyaml's parser with a resolver that makes nothing of a plain scalar but null; it constructs nothing."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> str:
        """Return the tag of a node: the author's text, or null."""
        return _NULL if kind is ScalarNode and implicit[0] and value in _NULLS else _TEXT

    # Called for every node, where a frontmatter has no paths to resolve by: the cheapest callables that take what is given.
    descend_resolver = operator.is_
    ascend_resolver = tuple


def _composed(yaml_text: str) -> Node | None:
    try:
        return _Loader(yaml_text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "an error"
        raise FrontmatterError(f"its frontmatter is not valid YAML: {problem}", mark.line + 2 if mark else 1) from error
    except (yaml.YAMLError, ValueError) as error:  # Characters that YAML does not allow, or half of a surrogate pair.
        raise FrontmatterError("its frontmatter has characters that YAML does not allow", 1) from error


def _check_nesting(yaml_text: str) -> None:
    """Refuse what nests deeply before libyaml's composer, which recurses, and its scanner, which is quadratic then, see it."""
    if sum(map(yaml_text.count, "[{-?:")) <= _MAX_DEPTH:  # Each level takes one of these.
        return
    depth = 0
    for bracket in _NESTING.finditer(yaml_text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _MAX_DEPTH:
            raise FrontmatterError("its frontmatter nests too deeply", yaml_text.count("\n", 0, bracket.start()) + 2)
    if sum(map(yaml_text.count, "-?:")) > _MAX_DEPTH * 8:
        _check_events(yaml_text)


def _check_events(yaml_text: str) -> None:
    depth, parser = 0, _Loader(yaml_text)
    try:
        while (event := parser.get_event()) is not None:
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise FrontmatterError("its frontmatter nests too deeply", _line(event))
    except yaml.YAMLError:
        return  # The composer meets the same fault, and says which.


class _Reader:
    """Makes plain values of nodes, within bounds."""

    def __init__(self) -> None:
        self._left = _MAX_NODES

    def read(self, root: MappingNode) -> Head:
        head = Head()
        pairs = cast("list[tuple[Node, Node]]", root.value)
        for index, (key_node, value_node) in enumerate(pairs):
            key, line = self._key(key_node), _line(key_node)
            if key == _MERGE:
                self._merge(head.values, value_node)
                continue
            if key in head.lines:
                head.duplicates.append((key, line))
            head.values[key] = self.value(value_node, 1)
            head.lines[key] = line
            if not root.flow_style:
                after = pairs[index + 1][0].start_mark.line if index + 1 < len(pairs) else -1
                head.spans[key] = (key_node.start_mark.line, after)
        if head.duplicates:
            head.spans.clear()
        return head

    def value(self, node: Node, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:  # Aliases name a node again and again, and here each of them counts.
            raise FrontmatterError("its frontmatter has too many values, perhaps by aliases", _line(node))
        held: Any = node.value  # A cast is a call, and there are a hundred nodes in a frontmatter.
        if node.__class__ is ScalarNode:
            return None if node.tag == _NULL else held
        if depth > _MAX_DEPTH:
            raise FrontmatterError("its frontmatter nests too deeply, perhaps by an alias of itself", _line(node))
        if isinstance(node, SequenceNode):
            return [self.value(item, depth + 1) for item in held]
        return self._mapping(cast("MappingNode", node), depth)

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        pairs: Any = node.value
        for key_node, value_node in pairs:
            key = self._key(key_node)
            if key == _MERGE:
                self._merge(values, value_node, depth)
            else:
                values[key] = self.value(value_node, depth + 1)
        return values

    def _merge(self, values: dict[str, Any], node: Node, depth: int = 1) -> None:
        merged: object = self.value(node, depth + 1)
        for mapping in cast("list[object]", merged) if isinstance(merged, list) else [merged]:
            if isinstance(mapping, dict):
                for key, value in cast("dict[str, Any]", mapping).items():
                    values.setdefault(key, value)

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise FrontmatterError("a key of its frontmatter is no text", _line(node))
        key: Any = node.value
        return key


def _line(node: Node | yaml.Event) -> int:
    mark: Any = node.start_mark
    return mark.line + 2  # Counted from 1, and after the line of the opening dashes.
