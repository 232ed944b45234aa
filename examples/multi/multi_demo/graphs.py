"""Cypher that the stand-in composes from the labels and relationships of a schema: who is linked to whom, and by which way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from multi_demo.wording import direction, stem, stems, words

_ENDS = re.compile(r"\(:(?P<source>`[^`]+`|\w+)\)-\[:(?:`[^`]+`|\w+)\]->\(:(?P<target>`[^`]+`|\w+)\)")
_WAY = frozenset(("between", "from", "path", "reach", "road", "route", "shortest", "way"))
_MOST_STEPS = 20


@dataclass(frozen=True)
class Node:
    """One label of nodes as `get_schemas` describes it: its properties, of which the first that is no key names a node."""

    label: str
    properties: tuple[str, ...]
    key: str

    @property
    def topic(self) -> str:
        """The stem of what a node is: of its label."""
        return stem(self.label)

    @property
    def name(self) -> str:
        """The property that names a node."""
        return next((one for one in self.properties if one != self.key), self.key)


@dataclass(frozen=True)
class Relation:
    """One type of relationships between two labels.

    Attributes:
        name: The type.
        source: The label where it starts.
        target: The label where it ends, which may be the same.
        topics: Stems of the words that speak of it: its name and what the schema says that it means.
    """

    name: str
    source: Node
    target: Node
    topics: frozenset[str]

    @property
    def nodes(self) -> list[Node]:
        """The labels at its ends, each once."""
        return [self.source] if self.source == self.target else [self.source, self.target]

    def other(self, node: Node) -> Node:
        """Return the label at the other end."""
        return self.source if node == self.target else self.target


def relations_of(schema: Mapping[str, Any]) -> list[Relation]:
    """Return the types of relationships of a backend's schema, one for each pair of labels that they link."""
    nodes = {label: _node(label, line) for label, line in schema.get("nodes", {}).items()}
    meaning: Mapping[str, str] = schema.get("meaning", {})
    labels = {node.topic for node in nodes.values()}
    return [
        Relation(name, nodes[ends["source"]], nodes[ends["target"]], frozenset(_topics(name, meaning) - labels))
        for name, line in schema.get("relationships", {}).items()
        for ends in _ENDS.finditer(line)
        if ends["source"] in nodes and ends["target"] in nodes
    ]


def _topics(name: str, meaning: Mapping[str, str]) -> set[str]:
    return stems(f"{name.replace('_', ' ')} {meaning.get(name, '')}")


def _node(label: str, line: str) -> Node:
    """Read one label from its line in the schema: `code STRING PRIMARY KEY, name STRING | 3 nodes`."""
    parts = line.partition(" | ")[0].split(", ")
    names = [part.split(" ")[0] for part in parts]
    key = next((name for name, part in zip(names, parts, strict=True) if part.endswith("PRIMARY KEY")), names[0])
    return Node(label, tuple(names), key)


def known(relation: Relation, sought: Sequence[str]) -> str:
    """Return a statement that tells which of these names stand at an end of a relationship, and at which."""
    return "\nUNION ALL ".join(
        f"MATCH (found:{node.label}) WHERE found.{node.name} IN [{', '.join(map(_quoted, sought))}]\n"
        f"RETURN {_quoted(node.label)} AS label, found.{node.name} AS name"
        for node in relation.nodes
    )


def asks_for_way(question: str, relation: Relation, given: Sequence[str]) -> bool:
    """Tell whether a question is about the way from one node to another, and not about what both are linked to."""
    return len(given) == 2 and relation.source == relation.target and bool(_WAY & set(words(question)))


def way(relation: Relation, start: str, end: str, *, dialect: str) -> str:
    """Return the statement that finds a shortest way between two nodes, in either direction of each relationship."""
    node = relation.source
    one, other = (f"(:{node.label} {{{node.name}: {_quoted(name)}}})" for name in (start, end))
    if dialect.endswith("Neo4j"):
        names = f"[node IN nodes(path) | node.{node.name}]"
        path = f"shortestPath({one}\n-[:{relation.name}*1..{_MOST_STEPS}]-{other})"
    else:
        names = f"properties(nodes(path), '{node.name}')"
        path = f"{one}\n-[:{relation.name}* SHORTEST 1..{_MOST_STEPS}]-{other}"
    return f"MATCH path = {path}\nRETURN {names} AS names, length(path) AS steps"


def linked(relation: Relation, node: Node, given: Sequence[str], *attributes: str, counted: bool = False) -> str:
    """Return the statement that finds, or counts, the nodes with the label of `node` that are linked to all given names."""
    other = relation.other(node)
    links = [f"-[:{relation.name}]-(:{other.label} {{{other.name}: {_quoted(name)}}})" for name in given]
    patterns = ", ".join(f"(found{'' if number else f':{node.label}'}){link}" for number, link in enumerate(links))
    if counted:
        return f"MATCH {patterns}\nRETURN COUNT(DISTINCT found.{node.name}) AS {relation.name.lower()}"
    shown = ", ".join(f"found.{one} AS {one}" for one in dict.fromkeys((node.name, *attributes)))
    return f"MATCH {patterns}\nRETURN DISTINCT {shown} ORDER BY {node.name}"


def busiest(question: str, relation: Relation) -> str:
    """Return the statement that finds the node with the most or the fewest relationships; nodes without any do not count."""
    asked = stems(question)
    node = next((node for node in relation.nodes if node.topic in asked), relation.source)
    return (
        f"MATCH (found:{node.label})-[:{relation.name}]-(other:{relation.other(node).label})\n"
        f"RETURN found.{node.name} AS {node.name}, COUNT(*) AS {relation.name.lower()} "
        f"ORDER BY {relation.name.lower()} {direction(question) or 'DESC'} LIMIT 1"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
