"""What a graph says about itself: labels, types with their ends, properties, indexes and counts, bounded in time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.near import meant
from agentkernel_kb.neo4j.arguments import Scope
from agentkernel_kb.neo4j.sessions import rows_of, transaction_of
from agentkernel_kb.render import one_line

if TYPE_CHECKING:
    from neo4j import AsyncDriver, AsyncTransaction

LOOKED_AT = 200
"""Nodes or relationships of one name whose properties are looked at."""

_DESCRIBING = 0.8
_MOST_PROPERTIES = 40
_MOST_ENDS = 8
_MOST_INDEXES = 100
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_NAMES = "CALL db.labels() YIELD label RETURN label AS name ORDER BY name"
_TYPES = "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name ORDER BY name"
_INDEXES = """
SHOW INDEXES YIELD name, type, entityType, labelsOrTypes, properties, owningConstraint, state
WHERE type <> 'LOOKUP' RETURN name, type, entityType, labelsOrTypes, properties, owningConstraint, state ORDER BY name
"""


@dataclass(frozen=True)
class Kind:
    """The nodes of one label, or the relationships of one type.

    Attributes:
        name: The label or type.
        properties: Names of the properties that were seen.
        line: Ends, properties and count on one line, as a model reads it.
    """

    name: str
    properties: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Catalogue:
    """The schema of a graph.

    Attributes:
        labels: All labels.
        types: All types of relationships.
        nodes: The labels that are described.
        relationships: The types that are described.
        indexes: The indexes as a model reads them.
        is_whole: There was time to look at all that is described.
    """

    labels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    nodes: tuple[Kind, ...] = ()
    relationships: tuple[Kind, ...] = ()
    indexes: tuple[str, ...] = ()
    is_whole: bool = True

    def schema(self) -> dict[str, Any]:
        """Return the part of a backend's schema that tells about nodes and relationships."""
        schema: dict[str, Any] = {
            "nodes": {quoted(kind.name): kind.line for kind in self.nodes},
            "relationships": {quoted(kind.name): kind.line for kind in self.relationships},
        }
        further = len(self.labels) - len(self.nodes) + len(self.types) - len(self.relationships)
        if further:
            schema["further"] = f"{further} more labels and types are not described here"
        if self.indexes:
            schema["indexes"] = list(self.indexes)
        return schema

    def near(self, name: str) -> list[str]:
        """Return the labels and types that `name` may have been meant for, the nearest first; none where it is one itself."""
        if name in self.labels or name in self.types:
            return []
        return meant(name, {known.lower(): quoted(known) for known in (*self.labels, *self.types)}, cutoff=0.75)


def quoted(name: str) -> str:
    """Return a name as a statement has to write it: in backticks unless it is a plain word."""
    clean = one_line(name)
    return clean if _PLAIN_NAME.fullmatch(clean) else f"`{clean.replace('`', '``')}`"


async def read_catalogue(driver: AsyncDriver, scope: Scope, most: int, deadline: Deadline) -> Catalogue:
    """Return what the graph can be asked about itself.

    Args:
        driver: The driver.
        scope: Where and for whom.
        most: Most labels, and most types, that are described.
        deadline: Names come first, and are told in any case; a fifth of the time is kept back from describing them.
    """
    describing = Deadline(deadline.left() * _DESCRIBING)
    async with transaction_of(driver, scope, deadline) as transaction:
        labels = tuple([str(row["name"]) for row in await rows_of(transaction, _NAMES)])
        types = tuple([str(row["name"]) for row in await rows_of(transaction, _TYPES)])
        indexes = await rows_of(transaction, _INDEXES)
        nodes = [await _label(transaction, name, indexes, describing) for name in labels[:most]]
        relationships = [await _type(transaction, name, describing) for name in types[:most]]
    shown = tuple(map(_index, indexes[:_MOST_INDEXES]))
    return Catalogue(labels, types, tuple(nodes), tuple(relationships), shown, is_whole=not describing.passed())


async def _label(transaction: AsyncTransaction, name: str, indexes: Sequence[Mapping[str, Any]], time: Deadline) -> Kind:
    pattern = f"(x:{_escaped(name)})"
    if time.passed():
        return Kind(name, (), "")
    properties = await _properties(transaction, pattern)
    unique = {
        index["properties"][0]
        for index in indexes
        if index["owningConstraint"] and index["labelsOrTypes"] == [name] and len(index["properties"]) == 1
    }
    shown = [f"{shown}{' (unique)' if key in unique else ''}" for key, shown in properties.items()]
    count = await _count(transaction, pattern, "node")
    return Kind(name, tuple(properties), _line(", ".join(shown), count))


async def _type(transaction: AsyncTransaction, name: str, time: Deadline) -> Kind:
    pattern = f"()-[x:{_escaped(name)}]->()"
    if time.passed():
        return Kind(name, (), "")
    properties = await _properties(transaction, pattern)
    count = await _count(transaction, pattern, "relationship")
    ends = await _ends(transaction, name)
    return Kind(name, tuple(properties), _line(ends, ", ".join(properties.values()), count))


async def _properties(transaction: AsyncTransaction, pattern: str) -> dict[str, str]:
    """Return each property that some of the first nodes or relationships have, with its types."""
    rows = await rows_of(
        transaction,
        f"MATCH {pattern} WITH x LIMIT {LOOKED_AT} UNWIND keys(x) AS key "
        "RETURN key, collect(DISTINCT valueType(x[key])) AS types ORDER BY key",
    )
    return {str(row["key"]): f"{quoted(str(row['key']))} {_types(row['types'])}" for row in rows[:_MOST_PROPERTIES]}


def _types(types: Iterable[object]) -> str:
    return " or ".join(sorted({str(kind).replace(" NOT NULL", "") for kind in types}))


async def _count(transaction: AsyncTransaction, pattern: str, word: str) -> str:
    """Return how many there are; the server keeps these counts and need not look."""
    rows = await rows_of(transaction, f"MATCH {pattern} RETURN count(x) AS total")
    total = int(rows[0]["total"])
    return f"{total:,} {word}{'' if total == 1 else 's'}"


async def _ends(transaction: AsyncTransaction, name: str) -> str:
    rows = await rows_of(
        transaction,
        f"MATCH (a)-[:{_escaped(name)}]->(b) WITH a, b LIMIT {LOOKED_AT} "
        "RETURN labels(a) AS start, labels(b) AS end, count(*) AS times ORDER BY times DESC, start, end",
    )
    shown = [f"({_labels(row['start'])})-[:{quoted(name)}]->({_labels(row['end'])})" for row in rows[:_MOST_ENDS]]
    return ", ".join([*shown, *(["…"] if len(rows) > _MOST_ENDS else [])])


def _labels(names: Iterable[object]) -> str:
    return "".join(f":{quoted(str(name))}" for name in sorted(map(str, names)))


def _index(row: Mapping[str, Any]) -> str:
    names: list[str] = row["labelsOrTypes"] or []
    keys: list[str] = row["properties"] or []
    on, properties = "|".join(map(quoted, names)), ", ".join(map(quoted, keys))
    state = "" if row["state"] == "ONLINE" else f" ({str(row['state']).lower()})"
    what = "nodes" if row["entityType"] == "NODE" else "relationships"
    return f"{quoted(str(row['name']))}: {str(row['type']).lower()} index on {what} :{on}({properties}){state}"


def _line(*parts: str) -> str:
    return " | ".join(filter(None, parts))


def _escaped(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
