"""Source code by its structure: definitions of Python, and blocks between blank lines of other languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from agentkernel_kb.rag.parsers.base import Cut, Reading, TextFormatParser, reading

_LONG_CLASS = 2_000
_SMALL, _LARGE = 200, 1_000
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Escapes are of no interest here, and Python warns of those that it does not know; a continued line has to stay one.
_ESCAPE = re.compile(r"\\[^\n]")
_CLOSING = re.compile(r"[ \t]|[})\]]|end\b|else\b|elif\b|fi\b|done\b|esac\b|<//?")


class PythonParser(TextFormatParser):
    """Reads Python: a section for each function, class and method of a long class, and for what stands between them.

    Metadata: `line_start` and `line_end`, from 1, and `symbol`, such as `Index.search`. Nothing is run. What Python cannot
    parse is cut as other languages are.
    """

    supported_media_types: ClassVar[list[str]] = ["text/x-python"]
    extensions = (".py", ".pyi")

    def read(self, text: str) -> Reading:
        """Return the text, cut at its definitions."""
        text = _one_newline(text)
        try:
            tree = ast.parse(_ESCAPE.sub("__", text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return CodeParser().read(text)
        lines = text.split("\n")
        return reading(text, "text/x-python", cuts=_cuts(lines, _marks(tree.body, lines)))


class CodeParser(TextFormatParser):
    """Reads source code of any language: blocks between blank lines that begin at the margin; small ones are taken together.

    Metadata: `line_start` and `line_end`, from 1.
    """

    supported_media_types: ClassVar[list[str]] = ["text/x-source"]
    extensions = (
        ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".go", ".java", ".js", ".jsx", ".kt", ".lua", ".php", ".pl", ".r", ".rb",
        ".rs", ".scala", ".sh", ".sql", ".swift", ".ts", ".tsx", ".vue",
    )  # fmt: skip

    def read(self, text: str) -> Reading:
        """Return the text, cut at its blocks."""
        text = _one_newline(text)
        lines = text.split("\n")
        return reading(text, "text/x-source", cuts=_cuts(lines, _block_marks(lines)))


Mark = tuple[int, str]
"""The first line of a section, from 0, and what it defines."""


def _one_newline(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")


def _marks(body: Sequence[ast.stmt], lines: Sequence[str], owner: str = "") -> Iterator[Mark]:
    """Yield where each definition begins, and where other statements go on after it."""
    inside = not owner
    for node in body:
        if not isinstance(node, _DEFINITIONS):
            if inside is False and not owner:
                yield _with_comment(node.lineno - 1, lines), ""
                inside = True
            continue
        inside = False
        symbol = f"{owner}.{node.name}" if owner else node.name
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        yield _with_comment(first - 1, lines), symbol
        if isinstance(node, ast.ClassDef) and not owner and _chars(node, lines) > _LONG_CLASS:
            yield from _marks(node.body, lines, symbol)


def _with_comment(line: int, lines: Sequence[str]) -> int:
    """Return the first line of the comment that stands right above a line, or the line."""
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line


def _chars(node: ast.stmt, lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines[node.lineno - 1 : node.end_lineno])


def _block_marks(lines: Sequence[str]) -> Iterator[Mark]:
    size, after_blank = 0, False
    for number, line in enumerate(lines):
        begins = after_blank and bool(line) and not _CLOSING.match(line)
        if begins and (size >= _SMALL or size + _block_chars(lines, number) > _LARGE):
            yield number, ""
            size = 0
        size += len(line) + 1
        after_blank = not line.strip()


def _block_chars(lines: Sequence[str], start: int) -> int:
    """Return how long the block that begins at a line is, as far as it matters."""
    size = 0
    for line in lines[start : start + _LARGE]:
        size += len(line) + 1
        if not line.strip() or size > _LARGE:
            break
    return size


def _cuts(lines: Sequence[str], marks: Iterator[Mark]) -> Iterator[Cut]:
    places, place = list[int](), 0
    for line in lines:
        places.append(place)
        place += len(line) + 1
    total = max(place - 1, 0)
    found = [(0, ""), *marks]
    for (first, symbol), (following, _) in zip(found, [*found[1:], (len(lines), "")], strict=True):
        if following > first:
            end = places[following] if following < len(lines) else total
            yield Cut(places[first], end, _where(lines, first, following, symbol))


def _where(lines: Sequence[str], first: int, following: int, symbol: str) -> dict[str, Any]:
    last = following
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return {"line_start": first + 1, "line_end": last, **({"symbol": symbol} if symbol else {})}
