"""JSON, JSON lines and notebooks as text. Numbers, repeated keys and `NaN` stay as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar, cast

from agentkernel_kb.rag.chunkers.headings import parts
from agentkernel_kb.rag.parsers.base import Cut, Reading, TextFormatParser, reading
from agentkernel_kb.rag.parsers.markdown import first_heading

_MOST_FORMATTED_CHARS = 10_000_000
_MOST_DEPTH = 40
_FAULTS = (ValueError, RecursionError, MemoryError)


class JSONParser(TextFormatParser):
    """Reads JSON, indented where it can be: what nests very deeply, is very long or no JSON stays as it is."""

    supported_media_types: ClassVar[list[str]] = ["application/json", "application/ld+json", "application/geo+json"]
    extensions = (".json", ".geojson")

    def read(self, text: str) -> Reading:
        """Return the text, indented."""
        return reading(_formatted(text), "application/json")


class JSONLinesParser(TextFormatParser):
    """Reads JSON lines: a section for each line, whose metadata has its number, from 1, as `line`."""

    supported_media_types: ClassVar[list[str]] = ["application/x-ndjson", "application/jsonl"]
    extensions = (".jsonl", ".ndjson")

    def read(self, text: str) -> Reading:
        """Return the lines, with characters in place of their escapes."""
        lines = [_on_one_line(line) if "\\u" in line else line for line in text.replace("\r\n", "\n").split("\n")]
        return reading("\n".join(lines), "application/x-ndjson", cuts=_lines(lines))


class NotebookParser(TextFormatParser):
    """Reads Jupyter notebooks as Markdown: the sources of the cells, code between fences; outputs are left out."""

    supported_media_types: ClassVar[list[str]] = ["application/x-ipynb+json"]
    extensions = (".ipynb",)

    def read(self, text: str) -> Reading:
        """Return the cells, cut at their headings; what is no notebook is read as JSON."""
        cells = _cells(text)
        if cells is None:
            return JSONParser().read(text)
        page = "\n\n".join(cells)
        cuts = parts(page)
        return reading(page, "text/markdown", {"title": first_heading(cuts)}, cuts)


class _Raw(str):
    """A number as it is written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object, repeated ones too."""


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Pairs, parse_int=_Raw, parse_float=_Raw, parse_constant=_Raw)


def _formatted(text: str) -> str:
    if len(text) > _MOST_FORMATTED_CHARS:
        return text
    try:
        return "".join(_written(_parsed(text), 0))
    except _FAULTS:
        return text


def _on_one_line(line: str) -> str:
    try:
        return "".join(_written(_parsed(line), -1))
    except _FAULTS:
        return line


def _written(value: Any, depth: int) -> Iterator[str]:
    """Yield a value piece by piece; a depth below 0 writes it on one line.

    Raises:
        RecursionError: It nests too deeply.
    """
    if abs(depth) > _MOST_DEPTH:
        raise RecursionError
    if not isinstance(value, list):
        yield value if isinstance(value, _Raw) else json.dumps(value, ensure_ascii=False)
        return
    items = cast("list[Any]", value)
    is_object = isinstance(value, _Pairs)
    flat = depth < 0 or not items or not (is_object or any(isinstance(item, list) for item in items))
    inner, gap, end = (min(depth, 0) - 1, "", "") if flat else (depth + 1, "\n" + "  " * (depth + 1), "\n" + "  " * depth)
    yield "{" if is_object else "["
    for place, item in enumerate(items):
        yield ("," + (gap or " ")) if place else gap
        if is_object:
            yield f"{json.dumps(item[0], ensure_ascii=False)}: "
        yield from _written(item[1] if is_object else item, inner)
    yield end + ("}" if is_object else "]")


def _lines(lines: list[str]) -> Iterator[Cut]:
    place = 0
    for number, line in enumerate(lines, 1):
        yield Cut(place, place + len(line), {"line": number})
        place += len(line) + 1


def _cells(text: str) -> list[str] | None:
    """Return the sources of a notebook's cells; `None` where it is none (nbformat 4; 3 has worksheets)."""
    try:
        held: Any = json.loads(text, parse_int=str)
    except _FAULTS:
        return None
    if not isinstance(held, dict):
        return None
    notebook = cast("dict[str, Any]", held)
    sheets = notebook.get("worksheets")
    first: Any = cast("list[Any]", sheets)[0] if isinstance(sheets, list) and sheets else notebook
    cells: Any = cast("dict[str, Any]", first).get("cells") if isinstance(first, dict) else None
    if not isinstance(cells, list):
        return None
    return [
        text for cell in cast("list[Any]", cells) if isinstance(cell, dict) and (text := _cell(cast("dict[str, Any]", cell)))
    ]


def _cell(cell: dict[str, Any]) -> str:
    held: Any = cell.get("source", cell.get("input", ""))
    lines = cast("list[Any]", held) if isinstance(held, list) else [held]
    source = "".join(line for line in lines if isinstance(line, str)).strip("\n")
    if not source.strip() or cell.get("cell_type") != "code":
        return source.strip()
    fence = "```"
    while fence in source:
        fence += "`"
    return f"{fence}\n{source}\n{fence}"
