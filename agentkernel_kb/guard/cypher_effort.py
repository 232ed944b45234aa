"""How much work a Cypher query may make: what no time limit of an engine stops is bounded before the query is sent."""

from __future__ import annotations

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token

MAX_LINKS = 20
MAX_LINKS_TOGETHER = 8
MAX_GROWTH = 100_000
_GROWTH_OF_LAMBDA = 1_000


def refusal(reason: str, token: Token) -> KnowledgeGuardError:
    """Return the error that refuses a token."""
    return KnowledgeGuardError(reason, part=token.shown, position=token.start)


class Effort:
    """Counts while a query is walked over, and refuses it where it goes too far.

    A part of a query reaches from one `WITH` or `UNION` to the next. Relationships are counted because the time to plan a part
    grows exponentially with them. What can double a value is counted because `WITH x + x AS x`, put in a chain, makes values
    of any size, outside of the memory that engines account for.
    """

    def __init__(self) -> None:
        self._links = self._links_of_part = 0
        self._growth = self._growth_of_part = 1

    def count_link(self, token: Token) -> None:
        """Count a relationship of a pattern.

        Raises:
            KnowledgeGuardError: There are too many, together or in all.
        """
        self._links += 1
        self._links_of_part += 1
        if self._links_of_part > MAX_LINKS_TOGETHER:
            raise refusal(f"More than {MAX_LINKS_TOGETHER} relationships are matched together; split them by WITH", token)
        if self._links > MAX_LINKS:
            raise refusal(f"More than {MAX_LINKS} relationships are matched", token)

    def count_growth(self) -> None:
        """Count a function or an operator that can put two values together."""
        self._growth_of_part += 1

    def count_lambda(self) -> None:
        """Count a function that makes a value for each item of a list."""
        self._growth_of_part += _GROWTH_OF_LAMBDA

    def end_part(self, token: Token) -> None:
        """Begin the next part at `token`.

        Raises:
            KnowledgeGuardError: The parts so far may make values of any size.
        """
        self.end_growth(token)
        self._links_of_part = 0

    def end_growth(self, token: Token) -> None:
        """Begin a clause at `token` that gives a name to a value, which may grow once more.

        Raises:
            KnowledgeGuardError: The clauses so far may make values of any size.
        """
        self._growth *= self._growth_of_part
        if self._growth > MAX_GROWTH:
            raise refusal("This statement may put together values of any size", token)
        self._growth_of_part = 1
