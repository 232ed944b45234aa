"""The parser's tree of a statement, made in bounded time, after comparing where strings and quoted names begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentkernel_kb.errors import KnowledgeDependencyError, KnowledgeGuardError
from agentkernel_kb.guard.dialects import GuardDialect
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.silence import quiet_parser

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.expressions import Expr
    from sqlglot.parser import Parser
    from sqlglot.tokenizer_core import Token as ParserToken

# Honest statements take two steps a token; one that is tried in two ways on each of its levels takes a power of two.
_STEPS_PER_TOKEN = 10
_SPARE_STEPS = 1_000


def parsed_tree(text: str, tokens: Sequence[Token], rules: GuardDialect) -> Expr:
    """Return the tree of a query.

    Args:
        text: The statement, in which everything but the query is blank.
        tokens: The query's own tokens.
        rules: The dialect.

    Raises:
        KnowledgeGuardError: The parser cannot read it, takes too many steps, or cuts it into other strings than the engine.
        KnowledgeDependencyError: The extra `sql` is missing.
    """
    try:
        from sqlglot.dialects.dialect import Dialect
    except ImportError as error:
        raise KnowledgeDependencyError("sql", "The SQL guard") from error
    dialect = Dialect.get_or_raise(rules.name)
    # Positions in lists mean nothing to the proof. Where they start at 1, the parser would look for the type of all that stands
    # in front of each of them again and again.
    dialect.INDEX_OFFSET = 0
    try:
        with quiet_parser():
            parsed = dialect.tokenize(text)
            _check_quotes(text, {(token.start, token.end + 1) for token in parsed}, tokens, rules)
            trees = _trees(_bounded_parser(dialect, len(parsed)), parsed, text)
    except (KnowledgeGuardError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - whatever the parser stumbles over, its text is not proven
        raise KnowledgeGuardError("The statement cannot be parsed") from None
    if len(trees) != 1 or trees[0] is None:
        raise KnowledgeGuardError("The statement cannot be parsed as one statement")
    return trees[0]


def _check_quotes(text: str, spans: set[tuple[int, int]], tokens: Sequence[Token], rules: GuardDialect) -> None:
    """Refuse text whose strings and quoted names begin or end elsewhere for the parser (`spans`) than for the engine."""
    own = {(token.start, token.end) for token in tokens if token.kind in ("string", "quoted")}
    words = {(token.start, token.end) for token in tokens if token.kind == "word"}
    parsed = {span for span in spans - words if any(map(rules.lexer.is_quote, text[slice(*span)]))}
    if own != parsed:
        start, end = min(own ^ parsed)
        raise KnowledgeGuardError("This quoted text can be read in two ways", part=text[start:end][:40], position=start)


def _bounded_parser(dialect: Dialect, tokens: int) -> Parser:
    """Return the dialect's parser, which gives up after so many steps a token.

    Its own bound, on the nodes of a tree, does not hold: it may take that for one of the ways that it tries in vain.
    """
    parser = _counting(dialect.parser_class)(dialect=dialect)
    parser.steps_left = tokens * _STEPS_PER_TOKEN + _SPARE_STEPS
    return parser


@lru_cache
def _counting(parser_class: type[Parser]) -> Any:
    """Return a subclass that counts its steps from one token to another."""

    class CountingParser(parser_class):
        steps_left = 0

        def _advance(self, times: int = 1) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise KnowledgeGuardError("The statement can be read in too many ways to be proven; nest it less deeply")
            super()._advance(times)

    return CountingParser


def _trees(parser: Parser, parsed: list[ParserToken], text: str) -> Sequence[Expr | None]:
    from sqlglot.errors import ParseError

    try:
        return parser.parse(parsed, text)
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        at = next((token.start for token in parsed if (token.line, token.col) == (place.get("line"), place.get("col"))), None)
        raise KnowledgeGuardError(
            "The statement cannot be parsed", part=str(place.get("highlight") or ""), position=at
        ) from None
