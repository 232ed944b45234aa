"""Where the walk over a Cypher query stands: the current token, what stands around it, and which brackets are open."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentkernel_kb.guard.lexer import Token

Place = Literal["clause", "operand", "operator"]
FrameKind = Literal["query", "subquery", "call", "group", "list", "link", "index", "map", "types", "case"]

CLOSING = {"(": ")", "[": "]", "{": "}"}
"""Brackets that open, and what closes each."""

_SIDES = frozenset(["BOTH", "LEADING", "TRAILING"])


@dataclass(slots=True)
class Frame:
    """What is open: the query itself, a bracket or a `CASE`.

    Attributes:
        kind: Which of them.
        opened: The token that opened it.
        has_lambda: A lambda stands in it.
        called: It is a subquery of `CALL`.
    """

    kind: FrameKind
    opened: Token | None
    has_lambda: bool = False
    called: bool = False


@dataclass
class Cursor:
    """A place in the tokens of one query.

    Attributes:
        tokens: The query.
        index: The current token's.
        place: What can stand here.
        naming: What follows can only be the name of a label, a type, a property or an alias.
        opening: What the next round bracket opens, where the word before it decides that.
        frames: What is open, the innermost last.
    """

    tokens: Sequence[Token]
    index: int = 0
    place: Place = "clause"
    naming: bool = False
    opening: FrameKind | None = None
    frames: list[Frame] = field(default_factory=lambda: [Frame("query", None)])

    @property
    def frame(self) -> Frame:
        """The innermost thing that is open."""
        return self.frames[-1]

    def near(self, offset: int) -> Token | None:
        """Return the token at an offset from here, `None` where there is none."""
        index = self.index + offset
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def text(self, offset: int) -> str:
        """Return the mark, or the word in capitals, at an offset from here; anything in quotes is `""`."""
        token = self.near(offset)
        if token is None:
            return ""
        return token.text if token.kind == "mark" else keyword(token)

    def dotted_name(self) -> str:
        """Return the name that ends here, with the names and dots in front of it."""
        first = self.index
        while first >= 2 and self.tokens[first - 1].text == "." and self.tokens[first - 2].kind in ("word", "quoted"):
            first -= 2
        return ".".join(token.name for token in self.tokens[first : self.index + 1 : 2])

    def called(self) -> str:
        """Return the name of the function whose arguments are open."""
        opened = next(index for index, token in enumerate(self.tokens) if token is self.frame.opened)
        return self.tokens[opened - 1].name if opened else ""

    def follows_name(self) -> bool:
        """Tell whether a name stands right before."""
        before = self.near(-1)
        return before is not None and before.kind in ("word", "quoted")

    def is_trimming(self) -> bool:
        """Tell whether the arguments of `trim` are open."""
        return self.frame.kind == "call" and self.called() == "trim"

    def cuts(self, word: str) -> bool:
        """Tell whether a word says where `trim(BOTH 'x' FROM text)` cuts, and is no name."""
        following = self.near(1)
        is_side = word in _SIDES and self.text(-1) == "(" and following is not None and following.kind != "mark"
        return self.is_trimming() and (is_side or (word == "FROM" and self.text(-1) in _SIDES))

    def begins_test(self) -> bool:
        """Tell whether `CASE x WHEN` stands before, or a comma behind it, which may go on with `> 1` or `IS NULL`."""
        return self.frame.kind == "case" and self.text(-1) in ("WHEN", ",")


def keyword(token: Token) -> str:
    """Return the word in capitals as the engine compares it, which knows no capitals beyond ASCII; `""` for what is no word."""
    return token.keyword if token.text.isascii() else ""


def arguments_of(tokens: Sequence[Token], name: int) -> Sequence[Token]:
    """Return the tokens between the bracket that follows the token at `name` and the one that closes it."""
    depth = 0
    for end in range(name + 1, len(tokens)):
        token = tokens[end]
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        if not depth:
            return tokens[name + 2 : end]
    return tokens[name + 2 :]


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """Return why a name that is on no list is refused."""
    near = difflib.get_close_matches(name[:64], sorted(known), n=1, cutoff=0.75)
    return f"This {what} is not known to only read" + (f", did you mean {near[0]}?" if near else "")
