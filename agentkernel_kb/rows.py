"""Rows of a result set and the records that carry them, for every backend with a query language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import Record
from agentkernel_kb.render import cell_text, metadata_of, one_line

DEFAULT_MAX_ROWS = 1_000
"""Most rows for a direct caller who does not bound them."""


def most_rows(limit: int, max_rows: int | None, *, has_own: bool) -> int:
    """Return how many rows to fetch: a statement with a limit of its own is bounded by it and by `max_rows` alone.

    Args:
        limit: Most rows of a statement without a limit of its own.
        max_rows: Most rows of any statement; `None` means 1,000, or `limit` where that is more.
        has_own: The statement has an outer limit of its own.

    Raises:
        AKConfigError: A bound is below 1.
    """
    if limit < 1 or (max_rows is not None and max_rows < 1):
        raise AKConfigError(f"limit and max_rows must be at least 1, not {limit} and {max_rows}.")
    cap = max(limit, DEFAULT_MAX_ROWS) if max_rows is None else max_rows
    return cap if has_own else min(limit, cap)


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


def row_records(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], source: str, cell: Callable[[Any], str] = cell_text
) -> list[Record]:
    """Return a record per row: its text on one line, and its values under `metadata["row"]`.

    Args:
        columns: The columns' names, which may repeat.
        rows: The values, in the order of the columns.
        source: What stands under `metadata["source"]`.
        cell: Shows one value on one line.
    """
    names = distinct_names(columns)
    return [_record(dict(zip(names, row, strict=True)), source, cell) for row in rows]


def _record(row: dict[str, Any], source: str, cell: Callable[[Any], str]) -> Record:
    text = ", ".join(f"{one_line(name)}={cell(value)}" for name, value in row.items())
    return {"text": text, "metadata": {"row": row, "source": source}}


def rows_of(records: Iterable[Record]) -> list[Mapping[str, Any]] | None:
    """Return the rows under `metadata["row"]` of records, or `None` if one of them has none."""
    rows: list[Mapping[str, Any]] = []
    for record in records:
        row: object = metadata_of(record).get("row")
        if not isinstance(row, Mapping):
            return None
        rows.append(cast("Mapping[str, Any]", row))
    return rows
