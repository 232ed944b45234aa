"""Values of Neo4j as plain data that JSON can hold, without the server's own ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from agentkernel_kb.graph_values import LABELS, NODES, RELATIONSHIPS, REVERSED, TYPE, element
from agentkernel_kb.neo4j.moments import shown, shown_as_sent
from agentkernel_kb.render import LONG_NUMBERS, encode

if TYPE_CHECKING:
    from neo4j import Record as Row
    from neo4j.graph import Node, Path, Relationship

_NUMBER_BYTES = 8
_UNREADABLE = "<a value that the driver cannot read>"
_BROKEN = "BrokenHydrationObject"
"""What the driver puts, and does not export, in the place of such a value: also inside of lists, nodes and relationships."""


def plain_row(row: Row) -> list[Any]:
    """Return the values of a row, also those that the driver cannot read."""
    # Its own items raise for those, so that they are taken as the tuple has them.
    return [plain(value) for value in tuple[object, ...].__iter__(row)]


def plain(value: object) -> Any:
    """Return a value as plain data: a node is a mapping with `_labels`, a relationship one with `_type`, a path one of both.

    Points become mappings of their coordinates, dates, times and durations ISO 8601 (a time zone by name in brackets behind),
    bytes hexadecimal or their length, vectors and other long lists of numbers their length, NaN and the infinities words.
    What the driver cannot read is a word, unless it is a moment. A property `_type` becomes `_type_2`.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    return encode(_opened(value))


def _opened(value: object) -> object:
    from neo4j import graph, spatial, time, vector

    if isinstance(value, graph.Node):
        return _node(value)
    if isinstance(value, graph.Relationship):
        return _relationship(value)
    if isinstance(value, graph.Path):
        return _path(value)
    if isinstance(value, spatial.Point):
        return _point(value)
    if isinstance(value, vector.Vector):
        return f"[{len(value)} numbers]"
    if isinstance(value, time.DateTime | time.Duration | time.Date | time.Time):
        return shown(value)
    if isinstance(value, list):
        return _items(cast("list[object]", value))
    if isinstance(value, Mapping):
        return _properties(cast("Mapping[str, object]", value))
    return _as_sent(value) if type(value).__name__ == _BROKEN else value


def _as_sent(value: Any) -> str:
    sent = value.raw_data
    return shown_as_sent(getattr(sent, "tag", b""), list(getattr(sent, "fields", ()))) or _UNREADABLE


def _items(values: list[object]) -> list[object]:
    if values and len(values) >= LONG_NUMBERS and all(isinstance(item, int | float) for item in values):
        return values  # The encoder counts them; nothing is inside.
    return [_opened(item) for item in values]


def _node(node: Node) -> dict[str, Any]:
    return element(LABELS, sorted(node.labels), _properties(node))


def _relationship(relationship: Relationship) -> dict[str, Any]:
    return element(TYPE, relationship.type, _properties(relationship))


def _properties(properties: Mapping[str, object]) -> dict[str, object]:
    return {key: _opened(value) for key, value in properties.items()}


def _path(path: Path) -> dict[str, Any]:
    relationships: list[dict[str, Any]] = []
    for node, relationship in zip(path.nodes, path.relationships, strict=False):
        shown = _relationship(relationship)
        if relationship.start_node is not None and relationship.start_node.element_id != node.element_id:
            shown[REVERSED] = True
        relationships.append(shown)
    return {NODES: [_node(node) for node in path.nodes], RELATIONSHIPS: relationships}


def _point(point: Any) -> dict[str, Any]:
    names = ("longitude", "latitude", "height") if point.srid in (4326, 4979) else ("x", "y", "z")
    return {"srid": point.srid, **dict(zip(names, map(float, point), strict=False))}


def weight(value: object) -> int:
    """Return roughly how many bytes a value takes."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, Mapping):
        return sum(weight(item) for item in cast("Mapping[object, object]", value).values())
    if isinstance(value, Sequence):
        items = cast("Sequence[object]", value)
        if items and isinstance(items[0], int | float):
            return _NUMBER_BYTES * len(items)
        return sum(map(weight, items))
    return _NUMBER_BYTES
