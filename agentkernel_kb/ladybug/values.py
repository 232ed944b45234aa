"""Values of a graph for a model: nodes, relationships and paths as plain data and as text, without the engine's own ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.model import Record
from agentkernel_kb.render import one_line, to_text
from agentkernel_kb.rows import distinct_names, rows_of

LABEL, TYPE, NODES, RELATIONSHIPS, REVERSED = "_label", "_type", "_nodes", "_relationships", "_reversed"
_MAX_CELL_CHARS = 1_000
_MAX_PROPERTY_CHARS = 200


def plain(value: object) -> Any:
    """Return a value of the engine as plain data.

    A node is a mapping of its properties that are set, with its label under `_label`; a relationship has `_type`; a path has
    `_nodes` and `_relationships`, of which those that are walked against their direction say `_reversed`. An id of the engine
    becomes `table:offset`. Anything else stays as it is.
    """
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return [plain(item) for item in cast("list[object]", value)]
    return value


def _plain_mapping(value: Mapping[str, Any]) -> Any:
    if "_NODES" in value and "_RELS" in value:
        return _plain_path(value["_NODES"], value["_RELS"])
    if "_ID" in value and "_LABEL" in value:
        return _plain_element(value)
    if value.keys() == {"offset", "table"}:
        return f"{value['table']}:{value['offset']}"
    return {key: plain(item) for key, item in value.items()}


def _plain_element(value: Mapping[str, Any]) -> dict[str, Any]:
    properties = {key: plain(item) for key, item in value.items() if item is not None and key not in _INTERNAL}
    return {TYPE if "_SRC" in value else LABEL: value["_LABEL"], **properties}


def _plain_path(nodes: Sequence[Mapping[str, Any]], relationships: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    plain_relationships = [_plain_element(relationship) for relationship in relationships]
    if _is_whole(nodes, relationships):
        for node, relationship, shown in zip(nodes, relationships, plain_relationships, strict=False):
            if relationship["_SRC"] != node["_ID"]:
                shown[REVERSED] = True
    return {NODES: [_plain_element(node) for node in nodes], RELATIONSHIPS: plain_relationships}


_INTERNAL = frozenset(["_ID", "_LABEL", "_SRC", "_DST"])


def _is_whole(nodes: Sequence[object], relationships: Sequence[object]) -> bool:
    """Tell a path from the steps of a recursive relationship, which come without the nodes at the ends."""
    return len(nodes) == len(relationships) + 1


def as_text(value: object) -> str:
    """Return plain data on one line, graph values as Cypher draws them: `(:Person {name: Ann})-[:KNOWS]->(:Person {…})`."""
    if listed := _graph_values(value):
        return f"[{', '.join(map(as_text, listed))}]"
    if not _is_graph_value(value):
        return "NULL" if value is None else one_line(to_text(value))
    element = cast("Mapping[str, Any]", value)
    if NODES in element:
        return _path_text(element[NODES], element[RELATIONSHIPS])
    return f"[{_element_text(element)}]" if TYPE in element else f"({_element_text(element)})"


def _is_graph_value(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    mapping = cast("Mapping[str, Any]", value)
    return LABEL in mapping or TYPE in mapping or (NODES in mapping and RELATIONSHIPS in mapping)


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
        if key not in (LABEL, TYPE, REVERSED)
    ]
    properties = f" {{{', '.join(shown)}}}" if shown else ""
    return f":{one_line(str(element.get(LABEL, element.get(TYPE))))}{properties}"


def _path_text(nodes: Sequence[Mapping[str, Any]], relationships: Sequence[Mapping[str, Any]]) -> str:
    links = [_link_text(relationship) for relationship in relationships]
    if not _is_whole(nodes, relationships):
        return "".join(links)
    points = [f"({_element_text(node)})" for node in nodes]
    return "".join(f"{point}{link}" for point, link in zip(points, [*links, ""], strict=True))


def _link_text(relationship: Mapping[str, Any]) -> str:
    before, after = ("<-", "-") if relationship.get(REVERSED) else ("-", "->")
    return f"{before}[{_element_text(relationship)}]{after}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def records(columns: Sequence[str], rows: Iterable[Sequence[Any]], source: str) -> list[Record]:
    """Return a record per row: its text on one line, and its plain values under `metadata["row"]`."""
    names = distinct_names(columns)
    return [_record({name: plain(value) for name, value in zip(names, row, strict=True)}, source) for row in rows]


def _record(row: dict[str, Any], source: str) -> Record:
    text = ", ".join(f"{one_line(name)}={_shortened(as_text(value), _MAX_CELL_CHARS)}" for name, value in row.items())
    return {"text": text, "metadata": {"row": row, "source": source}}


def table_rows(found: Sequence[Record]) -> list[Mapping[str, Any]] | None:
    """Return the rows of records with graph values as text, or `None` if one of them has no row."""
    rows = rows_of(found)
    return None if rows is None else [{key: _cell(value) for key, value in row.items()} for row in rows]


def _cell(value: object) -> object:
    return as_text(value) if _is_graph_value(value) or _graph_values(value) else value
