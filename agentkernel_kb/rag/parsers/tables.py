"""Rows of CSV and TSV, and JSON, as text that can be cut and found."""

from __future__ import annotations

import csv
import io
import json

_MOST_FIELD_CHARS = 1 << 20


def text_of_rows(text: str, delimiter: str) -> str:
    """Return a table as one line for each row, `column: value; …`; the first row names the columns."""
    csv.field_size_limit(_MOST_FIELD_CHARS)
    try:
        rows = [
            [field.strip() for field in row] for row in csv.reader(io.StringIO(text), delimiter=_delimiter(text, delimiter))
        ]
    except csv.Error:
        return text
    if len(rows) < 2:
        return text
    names, *others = rows
    return "\n".join(_row(names, row) for row in others if any(row))


def text_of_json(text: str) -> str:
    """Return JSON indented; what is no JSON is returned as it is, and of JSON lines each as its own."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _row(names: list[str], row: list[str]) -> str:
    named = [f"{names[place]}: {value}" if place < len(names) and names[place] else value for place, value in enumerate(row)]
    return "; ".join(part for part, value in zip(named, row, strict=True) if value)


def _delimiter(text: str, usual: str) -> str:
    first = text.split("\n", 1)[0]
    return usual if usual in first else next((other for other in (";", "\t", "|") if other in first), usual)
