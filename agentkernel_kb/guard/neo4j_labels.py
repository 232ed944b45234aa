"""How large a label expression of Neo4j's may be: its planner multiplies them out, and no time limit stops that."""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token

MAX_ALTERNATIVES = 64
_Size = tuple[int, int]
"""Terms of an expression, once multiplied out to alternatives, and once to conditions."""


def check_labels(tokens: Sequence[Token]) -> None:
    """Refuse a label expression that has more than `MAX_ALTERNATIVES` terms when it is multiplied out, either way.

    Raises:
        KnowledgeGuardError: There is one.
    """
    for index, token in enumerate(tokens):
        if token.text == ":" and token.kind == "mark":
            either, both = _Labels(tokens, index + 1).any_of()
            if either > 1 and both > 1 and max(either, both) > MAX_ALTERNATIVES:
                raise refusal(f"These labels have more than {MAX_ALTERNATIVES} alternatives", token)


class _Labels:
    """Reads one label expression."""

    def __init__(self, tokens: Sequence[Token], index: int) -> None:
        self._tokens, self._index = tokens, index

    def any_of(self) -> _Size:
        either, both = self._all_of()
        while self._at("|"):
            self._index += 2 if self._at(":", 1) else 1
            more, others = self._all_of()
            either, both = either + more, both * others
        return either, both

    def _all_of(self) -> _Size:
        either, both = self._one()
        while self._at("&") or self._at(":"):
            self._index += 1
            more, others = self._one()
            either, both = either * more, both + others
        return either, both

    def _one(self) -> _Size:
        if self._at("!"):
            self._index += 1
            either, both = self._one()
            return both, either
        if self._at("("):
            self._index += 1
            size = self.any_of()
            self._index += 1
            return size
        self._index += 1
        return 1, 1

    def _at(self, mark: str, offset: int = 0) -> bool:
        index = self._index + offset
        return index < len(self._tokens) and self._tokens[index].kind == "mark" and self._tokens[index].text == mark
