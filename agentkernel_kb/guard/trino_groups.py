"""The brackets of a statement for Trino as a tree: what stands in which one, and which name stands before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from agentkernel_kb.guard.lexer import Token

_CLOSING = frozenset([")", "]", "}"])
_OPENING = frozenset(["(", "[", "{"])

# Words that are reserved in Trino and so neither a name nor a function; several are functions all the same and left out here.
RESERVED = frozenset(
    """
    AND AS BETWEEN BY CASE CROSS CUBE DISTINCT ELSE END ESCAPE EXCEPT EXISTS FOR FROM FULL GROUP HAVING IN INNER INTERSECT IS
    JOIN LEFT LIKE NATURAL NOT ON OR ORDER OUTER RECURSIVE RIGHT ROLLUP SELECT TABLE THEN UNION USING VALUES WHEN WHERE WITH
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)

Node: TypeAlias = Union[Token, "Group"]


@dataclass
class Group:
    """What stands in a pair of brackets, or between `CASE` and `END`.

    Attributes:
        opened: The bracket or word that opened it.
        name: The name that stands right before a round bracket, as before the arguments of a function.
        parts: What it holds, in order.
    """

    opened: Token
    name: Token | None
    parts: list[Node] = field(default_factory=list["Node"])

    @property
    def called(self) -> str:
        """The name before it in lower case, `""` where none stands there."""
        return self.name.name if self.name else ""

    @property
    def where(self) -> Token:
        """The token that an error about it shows."""
        return self.name or self.opened

    def items(self) -> list[list[Node]]:
        """Return what stands between its commas; one empty item where it is empty."""
        found: list[list[Node]] = [[]]
        for part in self.parts:
            if text_of(part) == ",":
                found.append([])
            else:
                found[-1].append(part)
        return found


def grouped(tokens: Sequence[Token]) -> list[Node]:
    """Return the tokens with what stands in brackets in groups of their own; a name before a group is part of the group."""
    outer: list[Node] = []
    opened: list[Group] = []
    for token in tokens:
        within = opened[-1].parts if opened else outer
        is_mark = token.kind == "mark"
        if (is_mark and token.text in _OPENING) or token.keyword == "CASE":
            opened.append(Group(token, _name_before(within, token)))
            within.append(opened[-1])
        elif opened and ((is_mark and token.text in _CLOSING) or token.keyword == "END"):
            opened.pop()
        else:
            within.append(token)
    return outer


def _name_before(parts: list[Node], bracket: Token) -> Token | None:
    """Take the name off the end of `parts`, where a round bracket opens behind one."""
    last = parts[-1] if parts else None
    if bracket.text != "(" or not isinstance(last, Token) or last.kind not in ("word", "quoted") or last.keyword in RESERVED:
        return None
    parts.pop()
    return last


def text_of(part: Node | None) -> str:
    """Return the sign or the reserved word that a part is, `""` for anything else."""
    if not isinstance(part, Token):
        return ""
    if part.kind == "mark":
        return part.text
    return part.keyword if part.keyword in RESERVED else ""


def where_of(part: Node) -> Token:
    """Return the token that an error about a part shows."""
    return part.where if isinstance(part, Group) else part


def all_groups(parts: Sequence[Node]) -> Iterator[Group]:
    """Yield every group among the parts and inside of them."""
    for part in parts:
        if isinstance(part, Group):
            yield part
            yield from all_groups(part.parts)
