"""The Cypher guard: one statement, proven to be a read, or refused with the part, the position and the reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from agentkernel_kb.errors import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard.cypher_cursor import arguments_of, keyword, unknown
from agentkernel_kb.guard.cypher_effort import Effort, refusal
from agentkernel_kb.guard.cypher_engine import CypherEngine
from agentkernel_kb.guard.cypher_proof import MAX_DEPTH, QueryFacts, prove_query
from agentkernel_kb.guard.ladybug import LADYBUG
from agentkernel_kb.guard.lexer import Token, deepest_bracket
from agentkernel_kb.guard.neo4j import NEO4J

MAX_STATEMENT_CHARS = 100_000
MAX_TOKENS = 10_000
MAX_CODE_TOKENS = 2_000
MAX_CACHED_CHARS = 10_000
_CACHED_VERDICTS = 512
_MAX_LIMIT_DIGITS = 18

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_COMMENT_END = "*/"

_ENGINES = {engine.name: engine for engine in (LADYBUG, NEO4J)}


@dataclass(frozen=True)
class ReadCypher:
    """What the proof of a read found out about it.

    Attributes:
        limit: The number of its own outer `LIMIT`, where that is a plain number and there is no `UNION`.
        has_limit: It has an outer `LIMIT`, whatever stands there.
        limit_span: Where the plain number of its `LIMIT` stands: offsets of its first character and the one after its last.
        limit_goes: Offset at which ` LIMIT n` can be put in, `None` where it cannot.
    """

    limit: int | None = None
    has_limit: bool = False
    limit_span: tuple[int, int] | None = None
    limit_goes: int | None = None


class _Refusal(NamedTuple):
    reason: str
    part: str
    position: int | None


def supported_engines() -> list[str]:
    """Return the names of the engines whose Cypher the guard can prove, sorted."""
    return sorted(_ENGINES)


def check_read_only_cypher(statement: str, *, engine: str, allow: Collection[str] = ()) -> None:
    """Prove that `statement` is one statement that only reads.

    Args:
        statement: The statement as it will be sent, at most 100,000 characters.
        engine: One of `supported_engines()`.
        allow: Names of functions and procedures that this statement may use besides the engine's own harmless ones.

    Raises:
        KnowledgeGuardError: It cannot be proven; the error has the reason, the part and the character offset.
        AKConfigError: The engine is not supported.
    """
    analyse_read_cypher(statement, engine=engine, allow=allow)


def analyse_read_cypher(statement: str, *, engine: str, allow: Collection[str] = ()) -> ReadCypher:
    """Prove what `check_read_only_cypher` proves, and return what the proof found out.

    Raises:
        KnowledgeGuardError: It cannot be proven.
        AKConfigError: The engine is not supported.
    """
    rules = _engine(engine)
    _check_text(statement, rules)
    allowed = frozenset(name.lower() for name in ((allow,) if isinstance(allow, str) else allow))
    verdict = _cached_verdict if len(statement) <= MAX_CACHED_CHARS else _verdict
    outcome = verdict(statement, rules.name, allowed)
    if isinstance(outcome, _Refusal):
        raise KnowledgeGuardError(outcome.reason, part=outcome.part, position=outcome.position)
    return outcome


def check_write_cypher(statement: str, *, engine: str) -> frozenset[str]:
    """Prove that `statement` is one statement that stays inside the database: it may write, and touches nothing else.

    Refused are files, connections, extensions, other databases, settings, transaction control and procedures.

    Returns:
        The names of its parameters.

    Raises:
        KnowledgeGuardError: It cannot be proven.
        AKConfigError: The engine is not supported.
    """
    rules = _engine(engine)
    _check_text(statement, rules)
    tokens = _only_statement(rules.write_lexer.read(statement).tokens)
    _check_tokens(tokens, statement)
    depth, bracket = deepest_bracket(tokens)
    if bracket is not None and depth > MAX_DEPTH:
        raise refusal(f"The statement is nested more than {MAX_DEPTH} deep", bracket)
    first = keyword(tokens[0])
    if first not in rules.write_openings:
        reason = rules.reasons.get(first) or rules.reserved.get(first)
        raise refusal(reason or f"A write starts with {', '.join(sorted(rules.write_openings))}", tokens[0])
    effort = Effort()
    for index, token in enumerate(tokens[:-1]):
        _check_written(tokens, index, rules, effort)
        _check_reach(token, tokens[index + 1], rules)
    if rules.further_write:
        rules.further_write(tokens)
    return frozenset(token.text[1:] for token in tokens if token.kind == "string" and token.text.startswith("$"))


def _check_reach(token: Token, following: Token, rules: CypherEngine) -> None:
    """Refuse what reaches outside of the graph in the middle of a write."""
    if keyword(token) == "LOAD" and keyword(following) in ("FROM", "WITH", "CSV", "EXTENSION"):
        raise refusal("This statement reads files", token)
    if rules.called_subqueries:  # Its own check knows names with dots.
        return
    if keyword(token) == "CALL" and following.name and following.name not in rules.procedures:
        raise refusal(unknown("procedure", following.name, rules.procedures), following)


def _check_written(tokens: Sequence[Token], index: int, rules: CypherEngine, effort: Effort) -> None:
    """Refuse a write that takes longer than anything stops it, by its relationships or by a function."""
    token, following = tokens[index], tokens[index + 1]
    if token.text == "-" and (following.text == "[" or (following.text in ("-", "->") and following.start == token.end)):
        effort.count_link(token)
    if following.text != "(" or not token.name:
        return
    if token.name in rules.stalling:
        raise refusal("This function is not supported", token)
    if (check := rules.bounded.get(token.name)) and (reason := check(arguments_of(tokens, index))):
        raise refusal(reason, token)


def _engine(name: str) -> CypherEngine:
    if name not in _ENGINES:
        raise AKConfigError(f"The guard does not know the engine {name!r}. Supported: {supported_engines()}")
    return _ENGINES[name]


def _check_text(statement: object, rules: CypherEngine) -> None:
    if not isinstance(statement, str):
        raise KnowledgeGuardError(f"A statement is text, not {type(statement).__name__}")
    if len(statement) > MAX_STATEMENT_CHARS:
        raise KnowledgeGuardError(
            f"The statement has {len(statement):,} characters, more than {MAX_STATEMENT_CHARS:,}; shorten it"
        )
    if unsendable := _UNSENDABLE.search(statement):
        raise KnowledgeGuardError(
            "This character cannot stand in a statement", part=f"U+{ord(unsendable[0]):04X}", position=unsendable.start()
        )
    for text, reason in rules.unreadable.items():
        if (position := statement.find(text)) >= 0:
            raise KnowledgeGuardError(reason, part=statement[position : position + 6], position=position)


def _verdict(statement: str, engine: str, allowed: frozenset[str]) -> ReadCypher | _Refusal:
    try:
        return _prove(statement, _ENGINES[engine], allowed)
    except KnowledgeGuardError as error:
        return _Refusal(error.reason, error.part, error.position)


_cached_verdict = lru_cache(maxsize=_CACHED_VERDICTS)(_verdict)


def _prove(statement: str, rules: CypherEngine, allowed: frozenset[str]) -> ReadCypher:
    tokens = _only_statement(rules.lexer.read(statement).tokens)
    _check_tokens(tokens, statement)
    query = _unwrapped(tokens, rules)
    facts = prove_query(query, rules, allowed)
    if rules.further:
        rules.further(query)
    return ReadCypher() if len(query) < len(tokens) else _limits(facts, query)


def _only_statement(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the tokens of the one statement, without the semicolon that may end it."""
    end = next((index for index, token in enumerate(tokens) if token.text == ";"), len(tokens))
    if not end:
        raise KnowledgeGuardError("The statement is empty" if not tokens else "The statement starts with a semicolon")
    if second := next(iter(tokens[end + 1 :]), None):
        raise refusal("A second statement follows", second)
    return tuple(tokens[:end])


def _check_tokens(tokens: Sequence[Token], statement: str) -> None:
    """Refuse what engines parse in more than linear time, or in more stack than there is, and comments read in two ways."""
    if len(tokens) > MAX_TOKENS:
        raise refusal(f"The statement has more than {MAX_TOKENS:,} words and marks", tokens[MAX_TOKENS])
    code = [token for token in tokens if token.kind in ("word", "quoted") or (token.kind == "mark" and token.text != ",")]
    if len(code) > MAX_CODE_TOKENS:
        raise refusal(f"The statement has more than {MAX_CODE_TOKENS:,} names and operators", code[MAX_CODE_TOKENS])
    for token in tokens:
        if token.kind == "word" and not token.text.isidentifier():
            raise refusal("This name cannot be read; write it in backticks", token)
    ends = [0, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(statement)]
    for end, start in zip(ends, starts, strict=True):
        if "*" in statement[end:start]:
            _check_comments(statement, end, start)


def _check_comments(statement: str, position: int, end: int) -> None:
    """Refuse a comment between two offsets that would end elsewhere for an engine that stops at the first `*/`."""
    while position < end:
        if statement.startswith("//", position):
            position = statement.find("\n", position, end) + 1 or end
        elif statement.startswith("/*", position):
            inside = _STARRED.match(statement, position)
            first = statement.find(_COMMENT_END, position + 2) + 2
            if inside is None or inside.end() != first:
                raise KnowledgeGuardError(
                    "This comment can be read in two ways", part=statement[position:first][:40], position=position
                )
            position = first
        else:
            position += 1


_STARRED = re.compile(r"/\*(?:[^*]|\*[^/])*+\*/")


def _unwrapped(tokens: tuple[Token, ...], rules: CypherEngine) -> tuple[Token, ...]:
    """Return the query that an `EXPLAIN` or `PROFILE` stands in front of, or all of the tokens."""
    words = tuple(map(keyword, tokens[:2]))
    for prefix in rules.prefixes:
        if words[: len(prefix)] == prefix:
            if len(tokens) == len(prefix):
                raise refusal("There is nothing to explain", tokens[0])
            return tokens[len(prefix) :]
    return tokens


def _limits(facts: QueryFacts, query: Sequence[Token]) -> ReadCypher:
    if facts.unions:  # The last LIMIT is that of the last part alone.
        return ReadCypher()
    if facts.last_clause != "LIMIT":
        closed = facts.last_clause in ("RETURN", "ORDER", "SKIP")
        return ReadCypher(limit_goes=query[-1].end if closed else None)
    bound = query[facts.last_clause_at :]
    number = bound[0]
    if len(bound) > 1 or not (number.text.isdecimal() and len(number.text) <= _MAX_LIMIT_DIGITS):
        return ReadCypher(has_limit=True)
    return ReadCypher(limit=int(number.text), has_limit=True, limit_span=(number.start, number.end))
