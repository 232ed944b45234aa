"""Rows of a result as records, and records as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.model import Record
from agentkernel_kb.render import cell_text, one_line


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


def records(columns: Sequence[str], rows: Iterable[Sequence[Any]], source: str) -> list[Record]:
    """Return a record per row: its text on one line, and its typed values under `metadata["row"]`."""
    names = distinct_names(columns)
    return [_record(dict(zip(names, row, strict=True)), source) for row in rows]


def _record(row: dict[str, Any], source: str) -> Record:
    text = ", ".join(f"{one_line(name)}={cell_text(value)}" for name, value in row.items())
    return {"text": text, "metadata": {"row": row, "source": source}}


def typed_rows(found: Sequence[Record]) -> list[Mapping[str, Any]] | None:
    """Return the typed rows of records, or `None` if one of them has none."""
    rows: list[Mapping[str, Any]] = []
    for record in found:
        metadata: object = record.get("metadata")
        row: object = cast("Mapping[str, Any]", metadata).get("row") if isinstance(metadata, Mapping) else None
        if not isinstance(row, Mapping):
            return None
        rows.append(cast("Mapping[str, Any]", row))
    return rows
