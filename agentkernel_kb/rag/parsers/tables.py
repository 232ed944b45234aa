"""Rows of CSV and TSV as lines that can be cut and found."""

from __future__ import annotations

import csv
import io
from typing import ClassVar

from agentkernel_kb.rag.parsers.base import Reading, TextFormatParser, reading

_MOST_GROWTH, _FREE_CHARS = 4, 100_000


class CSVParser(TextFormatParser):
    """Reads CSV and TSV: one line for each row, `column: value; column: value`; the first row names the columns.

    What is no table, or would grow to a multiple of its size by the names of its columns, stays as it is.
    """

    supported_media_types: ClassVar[list[str]] = ["text/csv", "text/tab-separated-values"]
    extensions = (".csv", ".tsv", ".tab")

    def read(self, text: str) -> Reading:
        """Return the rows as lines."""
        return reading(_rows_as_lines(text), "text/plain")


def _rows_as_lines(text: str) -> str:
    limit = _MOST_GROWTH * len(text) + _FREE_CHARS
    lines: list[str] = []
    names: list[str] = []
    size = 0
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=None), delimiter=_delimiter(text))):
            fields = [" ".join(field.split()) for field in row]
            if not number:
                names = fields
                continue
            lines.append(_line(names, fields))
            size += len(lines[-1])
            if size > limit:
                return text
    except csv.Error:  # A field without an end, for instance.
        return text
    return "\n".join(line for line in lines if line) if lines else text


def _line(names: list[str], fields: list[str]) -> str:
    named = len(names)
    return "; ".join(
        f"{names[place]}: {field}" if place < named and names[place] else field for place, field in enumerate(fields) if field
    )


def _delimiter(text: str) -> str:
    """Return what separates the fields of the first line: the mark that stands there most often."""
    first = text[: text.find("\n", 0, 65_536)] if "\n" in text[:65_536] else text[:65_536]
    return max(",;\t|", key=first.count)
