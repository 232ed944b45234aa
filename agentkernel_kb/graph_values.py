"""Graph values as plain data: how nodes, relationships and paths are drawn for a model, for every backend that holds a graph.

A node is a mapping of its properties, with its label under `_label` or its labels under `_labels`; a relationship has `_type`;
a path has `_nodes` and `_relationships`, of which those that are walked against their direction say `_reversed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.model import Record
from agentkernel_kb.render import one_line, to_text
from agentkernel_kb.rows import distinct_names, row_records, rows_of

LABEL, LABELS, TYPE = "_label", "_labels", "_type"
NODES, RELATIONSHIPS, REVERSED = "_nodes", "_relationships", "_reversed"
_MARKS = (LABEL, LABELS, TYPE, NODES, RELATIONSHIPS, REVERSED)
_MAX_CELL_CHARS = 1_000
_MAX_PROPERTY_CHARS = 200


def element(mark: str, names: object, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node or relationship as plain data.

    Args:
        mark: What it is.
        names: Its label, labels or type.
        properties: Its properties, as plain data. None can pose as a mark: `_labels` becomes `_labels_2`.
    """
    keys = distinct_names([*_MARKS, *properties])[len(_MARKS) :]
    return {mark: names, **dict(zip(keys, properties.values(), strict=True))}


def as_text(value: object) -> str:
    """Return plain data on one line, graph values as Cypher draws them: `(:Person {name: Ann})-[:KNOWS]->(:Person {…})`."""
    if listed := _graph_values(value):
        return f"[{', '.join(map(as_text, listed))}]"
    if not _is_graph_value(value):
        return "NULL" if value is None else one_line(to_text(value))
    drawn = cast("Mapping[str, Any]", value)
    if _is_path(drawn):
        return _path_text(drawn[NODES], drawn[RELATIONSHIPS])
    return f"[{_element_text(drawn)}]" if TYPE in drawn else f"({_element_text(drawn)})"


def _is_graph_value(value: object) -> bool:
    return _is_element(value) or (isinstance(value, Mapping) and _is_path(cast("Mapping[str, Any]", value)))


def _is_element(value: object) -> bool:
    """Tell a node or relationship, which has one mark, from a mapping that a statement has made with such keys."""
    if not isinstance(value, Mapping):
        return False
    named = [(mark, part) for mark, part in cast("Mapping[str, object]", value).items() if mark in (LABEL, LABELS, TYPE)]
    match named:
        case [(mark, part)]:
            return _are(_is_name, part) if mark == LABELS else _is_name(part)
        case _:
            return False


def _is_path(value: Mapping[str, Any]) -> bool:
    return all(_are(_is_element, value.get(part)) for part in (NODES, RELATIONSHIPS))


def _are(kind: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, list) and all(map(kind, cast("list[object]", value)))


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _graph_values(value: object) -> list[object]:
    """Return the items of a list of graph values, `[]` for anything else."""
    if type(value) is not list:
        return []
    items = cast("list[object]", value)
    return items if any(map(_is_graph_value, items)) else []


def _element_text(element: Mapping[str, Any]) -> str:
    shown = [
        f"{one_line(key)}: {_shortened(as_text(value), _MAX_PROPERTY_CHARS)}"
        for key, value in element.items()
        if key not in _MARKS
    ]
    properties = f"{{{', '.join(shown)}}}" if shown else ""
    return " ".join(filter(None, [_name(element), properties]))


def _name(element: Mapping[str, Any]) -> str:
    names: Sequence[str] = element.get(LABELS, [element.get(LABEL, element.get(TYPE))])
    return "".join(f":{one_line(str(name))}" for name in names)


def _path_text(nodes: Sequence[Mapping[str, Any]], relationships: Sequence[Mapping[str, Any]]) -> str:
    links = [_link_text(relationship) for relationship in relationships]
    if not is_whole(nodes, relationships):
        return "".join(links)
    points = [f"({_element_text(node)})" for node in nodes]
    return "".join(f"{point}{link}" for point, link in zip(points, [*links, ""], strict=True))


def is_whole(nodes: Sequence[object], relationships: Sequence[object]) -> bool:
    """Tell a path from the steps of a recursive relationship, which may come without the nodes at the ends."""
    return len(nodes) == len(relationships) + 1


def _link_text(relationship: Mapping[str, Any]) -> str:
    before, after = ("<-", "-") if relationship.get(REVERSED) else ("-", "->")
    return f"{before}[{_element_text(relationship)}]{after}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def records(columns: Sequence[str], rows: Iterable[Sequence[Any]], source: str) -> list[Record]:
    """Return a record per row of plain values: its text on one line, and the values under `metadata["row"]`."""
    return row_records(columns, rows, source, _short_text)


def _short_text(value: object) -> str:
    return _shortened(as_text(value), _MAX_CELL_CHARS)


def table_rows(found: Sequence[Record]) -> list[Mapping[str, Any]] | None:
    """Return the rows of records with graph values as text, or `None` if one of them has no row."""
    rows = rows_of(found)
    return None if rows is None else [{key: _cell(value) for key, value in row.items()} for row in rows]


def _cell(value: object) -> object:
    return as_text(value) if _is_graph_value(value) or _graph_values(value) else value
