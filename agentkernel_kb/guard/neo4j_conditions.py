"""How far the conditions of a Neo4j statement may multiply out: its planner does so before any limit holds.

Forty times `(n:A OR n:B)` joined by AND kept it busy for 35 seconds under a limit of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import CLOSING, keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_values import opens_part

MAX_TERMS = 4_096
_Size = tuple[int, int]
"""Terms of a condition, once multiplied out to alternatives, and once to conditions that all hold."""

_ONE: _Size = (1, 1)
_ENDS = frozenset(["ELSE", "END", "MATCH", "RETURN", "THEN", "UNION", "UNWIND", "WHEN", "WHERE", "WITH"])
_TOO_MANY = (
    f"These conditions multiply out to more than {MAX_TERMS:,} terms; join fewer of (a OR b) by AND, take IN [a, b], or split "
    "them by WITH … WHERE"
)


def check_conditions(tokens: Sequence[Token]) -> None:
    """Refuse conditions of AND, OR, XOR and NOT that have more than `MAX_TERMS` terms when they are multiplied out, either way.

    Raises:
        KnowledgeGuardError: There are some.
    """
    walk = _Conditions(tokens)
    while walk.is_inside:
        walk.segments()
        walk.step()  # A bracket that closes nothing is refused elsewhere.


class _Conditions:
    """Reads the conditions of one statement, in which each clause, item and argument is one of its own."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._index = tokens, 0

    @property
    def is_inside(self) -> bool:
        """There are tokens left."""
        return self._index < len(self._tokens)

    def step(self) -> None:
        """Go on by a token."""
        self._index += 1

    def segments(self) -> _Size:
        """Read on to the bracket that closes what is open, and return the largest size in it."""
        largest = self._either()
        while self.is_inside and self._mark() not in CLOSING.values():
            self.step()
            largest = max(largest, self._either(), key=max)
        return largest

    def _either(self) -> _Size:
        start = self._index
        size = self._one_of()
        while self._word() == "OR":
            self.step()
            other = self._one_of()
            size = _capped(size[0] + other[0], size[1] * other[1])
        if min(size) > 1 and max(size) > MAX_TERMS:
            raise refusal(_TOO_MANY, self._tokens[start])
        return size

    def _one_of(self) -> _Size:
        size = self._all()
        while self._word() == "XOR":
            self.step()
            other = self._all()
            size = _capped(size[0] * other[1] + size[1] * other[0], size[0] * other[0] + size[1] * other[1])
        return size

    def _all(self) -> _Size:
        size = self._negated()
        while self._word() == "AND":
            self.step()
            other = self._negated()
            size = _capped(size[0] * other[0], size[1] + other[1])
        return size

    def _negated(self) -> _Size:
        negations = 0
        while self._word() == "NOT":
            self.step()
            negations += 1
        either, both = self._operand()
        return (both, either) if negations % 2 else (either, both)

    def _operand(self) -> _Size:
        size = _ONE
        while self.is_inside and not self._ends():
            if self._mark() not in CLOSING:
                self.step()
                continue
            is_group = self._mark() == "("
            self.step()
            inside = self.segments()
            self.step()
            size = max(size, inside, key=max) if is_group else size
        return size

    def _ends(self) -> bool:
        if self._mark() in (",", "|", *CLOSING.values()):
            return True
        word = self._word()
        return word in ("AND", "OR", "XOR") or (word in _ENDS and opens_part(self._tokens, self._index))

    def _mark(self) -> str:
        return self._tokens[self._index].text if self.is_inside and self._tokens[self._index].kind == "mark" else ""

    def _word(self) -> str:
        """Return the word of the language that stands here, `""` for the name of a property or a label."""
        if not self.is_inside or (self._index and self._tokens[self._index - 1].text in (".", ":")):
            return ""
        return keyword(self._tokens[self._index])


def _capped(either: int, both: int) -> _Size:
    """Return a size, in which what is far too much is not counted to its end."""
    return min(either, MAX_TERMS + 1), min(both, MAX_TERMS + 1)
