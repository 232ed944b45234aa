"""Rows of a result set and the records that carry them, for every backend with a query language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.model import Record
from agentkernel_kb.render import metadata_of


def distinct_names(columns: Sequence[str]) -> list[str]:
    """Return the columns' names, made distinct where they repeat: `a`, `a_2`, `a_3`."""
    taken = set(columns)
    names: dict[str, None] = {}
    for column in columns:
        name, count = column, 1
        while name in names or (count > 1 and name in taken):
            count += 1
            name = f"{column}_{count}"
        names[name] = None
    return list(names)


def rows_of(records: Iterable[Record]) -> list[Mapping[str, Any]] | None:
    """Return the rows under `metadata["row"]` of records, or `None` if one of them has none."""
    rows: list[Mapping[str, Any]] = []
    for record in records:
        row: object = metadata_of(record).get("row")
        if not isinstance(row, Mapping):
            return None
        rows.append(cast("Mapping[str, Any]", row))
    return rows
