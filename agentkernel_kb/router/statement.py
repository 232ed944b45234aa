"""Just enough of a statement's lexical structure, whatever its language: what is code, and what is literal or comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

# An unterminated literal or comment runs to the end.
_SQL = (
    r"""'(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z) | --[^\n]* | /\*.*?(?:\*/|\Z) | (\$\w*\$).*?(?:\1|\Z)"""
)
_CYPHER = r"""'(?:[^'\\]|\\.)*(?:'|\Z) | "(?:[^"\\]|\\.)*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z) | //[^\n]* | /\*.*?(?:\*/|\Z)"""
_QUOTED = {language: re.compile(pattern, re.VERBOSE | re.DOTALL) for language, pattern in (("sql", _SQL), ("cypher", _CYPHER))}
_LIMIT = re.compile(
    r"\b(?:LIMIT\s+(?P<first>\d+)(?:\s*,\s*(?P<second>\d+))?(?:\s+OFFSET\s+\d+)?(?:\s+ROWS?)?"
    r"|FETCH\s+(?:FIRST|NEXT)\s+(?P<fetch>\d+)\s+ROWS?\s+ONLY)[\s;]*\Z",
    re.IGNORECASE,
)
_MAX_LIMIT_DIGITS = 18


def code_parts(statement: str, language: str | None) -> Iterator[tuple[int, str]]:
    """Yield the parts of a statement that are neither literal, quoted name nor comment, each with its offset.

    Cypher escapes by backslash and comments by `//`; any other language is read as SQL.
    """
    start = 0
    for quoted in _QUOTED["cypher" if language == "cypher" else "sql"].finditer(statement):
        if quoted.start() > start:
            yield start, statement[start : quoted.start()]
        start = quoted.end()
    if start < len(statement):
        yield start, statement[start:]


def outer_limit(statement: str, language: str | None) -> int | None:
    """Return the number of rows that a statement limits itself to at its end, or `None`.

    For backends that don't bound their results themselves: those that do read their own dialect. A `LIMIT` inside a comment,
    a literal or a subquery is not the statement's own.
    """
    code = " ".join(part for _, part in code_parts(statement, language))
    match = _LIMIT.search(code)
    if match is None:
        return None
    digits = match["second"] or match["first"] or match["fetch"]
    return int(digits) if len(digits) <= _MAX_LIMIT_DIGITS else None
