"""Rows of a result as records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentkernel_kb.model import Record
from agentkernel_kb.render import cell_text, one_line
from agentkernel_kb.rows import distinct_names


def records(columns: Sequence[str], rows: Iterable[Sequence[Any]], source: str) -> list[Record]:
    """Return a record per row: its text on one line, and its typed values under `metadata["row"]`."""
    names = distinct_names(columns)
    return [_record(dict(zip(names, row, strict=True)), source) for row in rows]


def _record(row: dict[str, Any], source: str) -> Record:
    text = ", ".join(f"{one_line(name)}={cell_text(value)}" for name, value in row.items())
    return {"text": text, "metadata": {"row": row, "source": source}}
