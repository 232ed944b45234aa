"""Source code by its structure: definitions of Python, and blocks between blank lines of other languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from agentkernel_kb.rag.parsers.base import Cut, Reading, TextFormatParser, reading

_LONG_CLASS = 2_000
_SMALL, _LARGE = 200, 1_000
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Escapes are of no interest here, and Python warns of those that it does not know; a continued line has to stay one.
_ESCAPE = re.compile(r"\\[^\n]")
_CLOSING = re.compile(r"[})\]]|end\b|else\b|elif\b|fi\b|done\b|esac\b|<//?")
_DEEPEST = 16


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
        body = _parsed(text)
        if body is None:
            return CodeParser().read(text)
        lines = text.split("\n")
        return reading(text, "text/x-python", cuts=_cuts(lines, _marks(body, lines, _LONG_CLASS)))

    def pieces(self, text: str, most: int) -> Sequence[Cut]:
        """Return each definition, those of classes that are too long, and what stands between them."""
        body = _parsed(text)
        if body is None:
            return CodeParser().pieces(text, most)
        lines = text.split("\n")
        return list(_cuts(lines, _marks(body, lines, most)))


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

    def pieces(self, text: str, most: int) -> Sequence[Cut]:
        """Return each block that begins at the margin; what is too long is taken apart where blocks begin within it."""
        lines = text.split("\n")
        return list(_cuts(lines, ((number, "") for number in _divided(lines, 0, len(lines), most))))


Mark = tuple[int, str]
"""The first line of a section, from 0, and what it defines."""


def _one_newline(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")


def _parsed(text: str) -> list[ast.stmt] | None:
    """Return the statements of Python; `None` for what Python cannot parse."""
    try:
        return ast.parse(_ESCAPE.sub("__", text)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _marks(body: Sequence[ast.stmt], lines: Sequence[str], long_class: int, owner: str = "") -> Iterator[Mark]:
    """Yield where each definition begins, and where other statements go on after it; classes that are long are taken apart."""
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
        if isinstance(node, ast.ClassDef) and not owner and _chars(node, lines) > long_class:
            yield from _marks(node.body, lines, long_class, symbol)


def _with_comment(line: int, lines: Sequence[str]) -> int:
    """Return the first line of the comment that stands right above a line, or the line."""
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line


def _chars(node: ast.stmt, lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines[node.lineno - 1 : node.end_lineno])


def _block_marks(lines: Sequence[str]) -> Iterator[Mark]:
    """Yield where sections begin: at blocks, of which small ones are taken together."""
    begun = 0
    begins = [*_beginnings(lines), len(lines)]
    for number, following in pairwise(begins):
        size = sum(len(line) + 1 for line in lines[begun:number])
        if size >= _SMALL or size + sum(len(line) + 1 for line in lines[number:following]) > _LARGE:
            yield number, ""
            begun = number


def _beginnings(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines at which blocks begin: at the margin after a blank line, and closing nothing."""
    return (number for number in _after_blanks(lines, 0, len(lines)) if not lines[number][0].isspace())


def _after_blanks(lines: Sequence[str], first: int, last: int) -> Iterator[int]:
    """Yield the lines beyond the first that come after a blank one and close nothing."""
    for number in range(first + 1, last):
        line = lines[number].lstrip()
        if line and not lines[number - 1].strip() and not _CLOSING.match(line):
            yield number


def _divided(lines: Sequence[str], first: int, last: int, most: int, depth: int = 0) -> Iterator[int]:
    """Yield where the outermost blocks begin, and those within the ones that are too long."""
    places = list(_after_blanks(lines, first, last))
    margin = min((_indent(lines[place]) for place in places), default=0)
    begins = [first, *(place for place in places if _indent(lines[place]) == margin), last]
    for begin, following in pairwise(begins):
        if begin > first:
            yield begin
        if len(begins) > 2 and depth < _DEEPEST and sum(len(line) + 1 for line in lines[begin:following]) > most:
            yield from _divided(lines, begin, following, most, depth + 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cuts(lines: Sequence[str], marks: Iterable[Mark]) -> Iterator[Cut]:
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
