"""Values of Neo4j as plain data that JSON can hold, without the server's own ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from agentkernel_kb.graph_values import LABELS, NODES, RELATIONSHIPS, REVERSED, TYPE
from agentkernel_kb.render import LONG_NUMBERS, encode

if TYPE_CHECKING:
    from neo4j import Record as Row
    from neo4j.graph import Node, Path, Relationship

_NUMBER_BYTES = 8
_ZEROS = re.compile(r"(:\d\d(?:\.\d*[1-9])?)\.?0*(?=[+\-Z]|$)")
_UNREADABLE = "<a value that the driver cannot read>"


def plain_row(row: Row) -> list[Any]:
    """Return the values of a row, with a word in place of one that the driver cannot read, such as an unknown time zone."""
    return [_cell(row, index) for index in range(len(row))]


def _cell(row: Row, index: int) -> Any:
    from neo4j.exceptions import BrokenRecordError

    try:
        return plain(row[index])
    except BrokenRecordError:
        return _UNREADABLE


def plain(value: object) -> Any:
    """Return a value as plain data: a node is a mapping with `_labels`, a relationship one with `_type`, a path one of both.

    Points become mappings of their coordinates, dates, times and durations ISO 8601 (a time zone by name in brackets behind),
    bytes hexadecimal or their length, vectors and other long lists of numbers their length, NaN and the infinities words.
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
    if isinstance(value, time.DateTime):
        return _moment(value)
    if isinstance(value, time.Duration | time.Date | time.Time):
        return _short(value.iso_format())
    if isinstance(value, list):
        return _items(cast("list[object]", value))
    if isinstance(value, Mapping):
        return {str(key): _opened(item) for key, item in cast("Mapping[object, object]", value).items()}
    return value


def _items(values: list[object]) -> list[object]:
    if values and len(values) >= LONG_NUMBERS and all(isinstance(item, int | float) for item in values):
        return values  # The encoder counts them; nothing is inside.
    return [_opened(item) for item in values]


def _node(node: Node) -> dict[str, Any]:
    return {LABELS: sorted(node.labels)} | {key: _opened(value) for key, value in node.items()}


def _relationship(relationship: Relationship) -> dict[str, Any]:
    return {TYPE: relationship.type} | {key: _opened(value) for key, value in relationship.items()}


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


def _moment(moment: Any) -> str:
    zone = getattr(moment.tzinfo, "key", None) or getattr(moment.tzinfo, "zone", None)
    return f"{_short(moment.iso_format())}[{zone}]" if zone and zone != "UTC" else _short(moment.iso_format())


def _short(written: str) -> str:
    """Return a moment without the zeros that the driver writes for nanoseconds."""
    return _ZEROS.sub(r"\1", written)


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
