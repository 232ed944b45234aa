"""Values of the engine as plain data: nodes, relationships and paths, without the engine's own ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.graph_values import LABEL, NODES, RELATIONSHIPS, REVERSED, TYPE, element, is_whole
from agentkernel_kb.graph_values import records as graph_records
from agentkernel_kb.model import Record


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
    return element(TYPE if "_SRC" in value else LABEL, value["_LABEL"], properties)


def _plain_path(nodes: Sequence[Mapping[str, Any]], relationships: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    plain_relationships = [_plain_element(relationship) for relationship in relationships]
    if is_whole(nodes, relationships):
        for node, relationship, shown in zip(nodes, relationships, plain_relationships, strict=False):
            if relationship["_SRC"] != node["_ID"]:
                shown[REVERSED] = True
    return {NODES: [_plain_element(node) for node in nodes], RELATIONSHIPS: plain_relationships}


_INTERNAL = frozenset(["_ID", "_LABEL", "_SRC", "_DST"])


def records(columns: Sequence[str], rows: Iterable[Sequence[Any]], source: str) -> list[Record]:
    """Return a record per row of the engine: its text on one line, and its plain values under `metadata["row"]`."""
    return graph_records(columns, ([plain(value) for value in row] for row in rows), source)
