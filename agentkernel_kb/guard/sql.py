"""The SQL guard: one statement, proven to be a read on its whole tree, or refused with the part, the position and the reason.

Two proofs are made of the same text. The first is lexical and follows the engine's own grammar: one statement, a root that
reads, none of the reserved words without which nothing can be changed, and only functions that are known. The second is the
tree of a real parser (sqlglot), in which nothing but queries, expressions and their clauses may stand. What the parser cannot
read, or cuts into other strings than the engine would, is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from agentkernel_kb.errors import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard.dialects import GuardDialect, Replacement
from agentkernel_kb.guard.duckdb import DUCKDB
from agentkernel_kb.guard.lexer import Token, deepest_bracket
from agentkernel_kb.guard.parsing import parsed_tree
from agentkernel_kb.guard.planning import check_planning
from agentkernel_kb.guard.postgres import POSTGRES
from agentkernel_kb.guard.sqlite import SQLITE
from agentkernel_kb.guard.tree import check_tree, names_of_tables, outer_limit, starts_of_aliases, takes_limit
from agentkernel_kb.guard.trino import TRINO

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_STATEMENT_CHARS = 100_000
MAX_TOKENS = 10_000
MAX_NESTING = 24
MAX_SLOW_WORDS = 200
MAX_CACHED_CHARS = 10_000
_CACHED_VERDICTS = 512
_CACHED_LARGE_VERDICTS = 8

# An engine ends the text at the first, and cannot be sent the second.
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")

_DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, POSTGRES, SQLITE, TRINO)}


@dataclass(frozen=True)
class ReadStatement:
    """What the proof of a read found out about it.

    Attributes:
        has_limit: The outermost query has a LIMIT of its own.
        limit: That limit where it is a plain number.
        tables: Names of the tables and views that it reads itself, letters of ASCII in lower case except where PostgreSQL has
            them in quotes; in DuckDB, PostgreSQL and SQLite with their schema if it is not the default one, elsewhere without.
            Table functions that describe tables are among them,
            others and the names of common table expressions are not.
        limit_at: The character at which a LIMIT can be put, `None` where there is one already or where none can stand. It says
            where the text ends and nothing about the read, so that two reads that differ in it alone are equal.
    """

    has_limit: bool = False
    limit: int | None = None
    tables: frozenset[str] = frozenset()
    limit_at: int | None = field(default=None, compare=False)


class _Refusal(NamedTuple):
    reason: str
    part: str
    position: int | None


def supported_dialects() -> list[str]:
    """Return the names of the dialects that the guard can prove, sorted."""
    return sorted(_DIALECTS)


def check_read_only(statement: str, *, dialect: str, allow: Collection[str] = ()) -> None:
    """Prove that `statement` is one statement that only reads.

    Args:
        statement: The statement as it will be sent, at most 100,000 characters.
        dialect: One of `supported_dialects()`.
        allow: Names of functions that this statement may use besides the dialect's own harmless ones, letter case ignored. A
            call has to name the function in the same way: `lake.system.sheet` allows `lake.system.sheet(…)` only.

    Raises:
        KnowledgeGuardError: It cannot be proven; the error has the reason, the part and the character offset.
        AKConfigError: The dialect is not supported.
        KnowledgeDependencyError: The extra `sql` is missing.
    """
    analyse_read(statement, dialect=dialect, allow=allow)


def analyse_read(statement: str, *, dialect: str, allow: Collection[str] = ()) -> ReadStatement:
    """Prove what `check_read_only` proves, and return what the proof found out.

    Raises:
        KnowledgeGuardError: It cannot be proven.
        AKConfigError: The dialect is not supported.
        KnowledgeDependencyError: The extra `sql` is missing.
    """
    if dialect not in _DIALECTS:
        raise AKConfigError(f"The guard does not know the dialect {dialect!r}. Supported: {supported_dialects()}")
    _check_text(statement)
    allowed = frozenset(tuple(name.lower().split(".")) for name in ((allow,) if isinstance(allow, str) else allow))
    verdict = _cached_verdict if len(statement) <= MAX_CACHED_CHARS else _cached_large_verdict
    try:
        outcome = verdict(statement, dialect, allowed)
    except RecursionError:  # Not part of the cached verdict: it depends on how deep the caller's own stack is.
        raise KnowledgeGuardError("The statement is nested too deeply to be proven") from None
    if isinstance(outcome, _Refusal):
        raise KnowledgeGuardError(outcome.reason, part=outcome.part, position=outcome.position)
    return outcome


def _check_text(statement: object) -> None:
    if not isinstance(statement, str):
        raise KnowledgeGuardError(f"A statement is text, not {type(statement).__name__}")
    if len(statement) > MAX_STATEMENT_CHARS:
        raise KnowledgeGuardError(
            f"The statement has {len(statement):,} characters, more than {MAX_STATEMENT_CHARS:,}; shorten it"
        )


def _verdict(statement: str, dialect: str, allowed: frozenset[tuple[str, ...]]) -> ReadStatement | _Refusal:
    try:
        return _prove(statement, _DIALECTS[dialect], allowed)
    except KnowledgeGuardError as error:
        return _Refusal(error.reason, error.part, error.position)


_cached_verdict = lru_cache(maxsize=_CACHED_VERDICTS)(_verdict)
_cached_large_verdict = lru_cache(maxsize=_CACHED_LARGE_VERDICTS)(_verdict)  # A call proves a statement more than once.


def _prove(statement: str, rules: GuardDialect, allowed: frozenset[tuple[str, ...]]) -> ReadStatement:
    if unsendable := _UNSENDABLE.search(statement):
        raise KnowledgeGuardError(
            "This character cannot stand in a statement", part=f"U+{ord(unsendable[0]):04X}", position=unsendable.start()
        )
    lexed = rules.lexer.read(statement)
    tokens = _only_statement(lexed.tokens)
    if len(tokens) > MAX_TOKENS:
        raise _refused(f"The statement has more than {MAX_TOKENS:,} words and marks; shorten it", tokens[MAX_TOKENS])
    if (own_check := rules.statements.get(tokens[0].keyword)) and not _introduces_query(tokens, rules):
        found = own_check(tokens)
        if isinstance(found, tuple):
            raise _refused(found[0], found[1])
        return ReadStatement(tables=found or frozenset())
    query = _unwrapped(tokens, rules)
    _check_words(query, rules)
    _check_root(query, rules)
    _check_nesting(query)
    _check_slow_words(query, rules)
    if refused := rules.lexical_check(query):
        raise _refused(refused[0], refused[1])
    aliases = _check_functions(query, rules, allowed)
    tree = parsed_tree(_text_for_parser(lexed.text, query, rules), query, rules)
    check_tree(tree, rules, allowed)
    check_planning(tree, rules.recursion_rounds)
    _check_aliases(aliases, tree, rules)
    if len(query) < len(tokens):  # The rows of an explanation are not those of the query.
        return ReadStatement(tables=names_of_tables(tree, rules))
    has_place = takes_limit(tree) and (rules.limit_after_values or not _ends_in_values(query))
    limit_at = query[-1].end if has_place else None
    return ReadStatement(*outer_limit(tree), names_of_tables(tree, rules), limit_at)


def _ends_in_values(query: Sequence[Token]) -> bool:
    """Tell whether the last branch of a query is `VALUES`."""
    depth, last = 0, ""
    for token in query:
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "mark" else 0
        if not depth and token.keyword in ("SELECT", "VALUES"):
            last = token.keyword
    return last == "VALUES"


def _text_for_parser(text: str, query: Sequence[Token], rules: GuardDialect) -> str:
    """Return the text in which everything but the query is blank, and so is what the parser need not and cannot know."""
    pieces = [" " * query[0].start]
    position = query[0].start
    unparsed = [token for token in query if token.kind == "mark" and token.text in rules.unparsed_operators]
    operators = [Replacement(token.start, token.end, "-") for token in unparsed]
    for start, end, shown in sorted([*operators, *rules.shown_to_parser(query)]):
        pieces += [text[position:start], shown.ljust(end - start)]
        position = end
    return "".join(pieces) + text[position : query[-1].end]


def _refused(reason: str, token: Token) -> KnowledgeGuardError:
    return KnowledgeGuardError(reason, part=token.shown, position=token.start)


def _only_statement(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the tokens of the one statement, without the semicolon that may end it."""
    end = next((index for index, token in enumerate(tokens) if token.text == ";"), len(tokens))
    if second := next((token for token in tokens[end:] if token.text != ";"), None):
        raise _refused("A second statement follows" if end else "The statement starts with a semicolon", second)
    if not end:
        raise KnowledgeGuardError("The statement is empty")
    return tuple(tokens[:end])


def _introduces_query(tokens: tuple[Token, ...], rules: GuardDialect) -> bool:
    """Tell whether the first word, alone, only stands in front of a query."""
    following = tokens[1:2]
    return (tokens[0].keyword,) in rules.explain and any(
        token.keyword in rules.roots or token.text == "(" for token in following
    )


def _unwrapped(tokens: tuple[Token, ...], rules: GuardDialect) -> tuple[Token, ...]:
    """Return the query that an `EXPLAIN` stands in front of, or all of the tokens."""
    words = tuple(token.keyword for token in tokens[:4])
    for prefix in rules.explain:
        if words[: len(prefix)] == prefix:
            if len(tokens) == len(prefix):
                raise _refused("There is nothing to explain", tokens[0])
            return _without_options(tokens[len(prefix) :], rules)
    return tokens


def _without_options(tokens: tuple[Token, ...], rules: GuardDialect) -> tuple[Token, ...]:
    """Return what follows the options in brackets, or all of the tokens where the brackets hold something else."""
    end = next((index for index, token in enumerate(tokens) if token.text == ")"), -1)
    words = [token for token in tokens[1:end] if token.text != ","]
    if tokens[0].text != "(" or not words or any(token.keyword not in rules.explain_options for token in words):
        return tokens
    if end + 1 == len(tokens):
        raise _refused("There is nothing to explain", tokens[0])
    return tokens[end + 1 :]


def _check_words(tokens: Sequence[Token], rules: GuardDialect) -> None:
    for index, token in enumerate(tokens):
        pair = f"{token.keyword} {tokens[index + 1].keyword}" if index + 1 < len(tokens) else ""
        if reason := rules.refusals.get(token.keyword) or rules.refusals.get(pair):
            raise _refused(reason, token)


def _check_slow_words(tokens: Sequence[Token], rules: GuardDialect) -> None:
    slow = [token for token in tokens if token.keyword in rules.slow_words]
    if len(slow) > MAX_SLOW_WORDS:
        raise _refused(f"The statement matches {len(slow)} patterns, more than {MAX_SLOW_WORDS}", slow[MAX_SLOW_WORDS])


def _check_root(tokens: Sequence[Token], rules: GuardDialect) -> None:
    root = next((token for token in tokens if token.text != "("), tokens[0])
    if root.keyword not in rules.roots:
        accepted = ", ".join(sorted(rules.roots | {"EXPLAIN", *rules.statements}))
        raise _refused(f"A statement that starts like this is not a read; reads start with {accepted}", root)


def _check_nesting(tokens: Sequence[Token]) -> None:
    depth, bracket = deepest_bracket(tokens)
    if bracket is not None and depth > MAX_NESTING:
        raise _refused(f"The statement nests {depth} brackets deep, more than {MAX_NESTING}", bracket)


def _check_functions(tokens: Sequence[Token], rules: GuardDialect, allowed: frozenset[tuple[str, ...]]) -> list[Token]:
    """Refuse unknown functions, and return the names of which only the tree can tell whether they are functions at all."""
    undecided: list[Token] = []
    for index, (token, following) in enumerate(pairwise(tokens)):
        if following.text != "(" or following.kind != "mark" or token.kind in ("mark", "number"):
            continue
        parts = _qualified_name(tokens, index, rules)
        if token.keyword in rules.before_bracket and len(parts) == 1 and _is_grammar(tokens, index, rules):
            continue
        is_plain = rules.chained_calls or parts[:-1] in rules.function_schemas | {()}
        if (parts[-1] in rules.callable_names and is_plain) or parts in allowed:
            continue
        if index and (tokens[index - 1].keyword in _BEFORE_ALIAS or tokens[index - 1].text == ")"):
            undecided.append(token)
        elif not _names_columns_of_cte(tokens, index + 2):
            raise _refused(_unknown_function(token.name, rules), token)
    return undecided


def _is_grammar(tokens: Sequence[Token], index: int, rules: GuardDialect) -> bool:
    """Tell whether a word that is grammar in front of a bracket stands where only grammar can."""
    if tokens[index].keyword not in rules.after_operand:
        return True
    before = tokens[index - 1] if index else tokens[0]
    return before.text in (")", "]") if before.kind == "mark" else before.keyword not in rules.before_bracket


# What can stand in front of `name(column, …)` where the name is one that the statement gives to a table.
_BEFORE_ALIAS = frozenset({"AS", "ORDINALITY"})


def _qualified_name(tokens: Sequence[Token], index: int, rules: GuardDialect) -> tuple[str, ...]:
    """Return the parts of the name that ends at `index`: `("a", "b")` for `a.b`."""
    first = index
    while first > 1 and tokens[first - 1].text == ".":
        first -= 2
    parts = tokens[first : index + 1 : 2]
    return tuple(part.unquoted if rules.exact_quoted and part.kind == "quoted" else part.name for part in parts)


def _check_aliases(names: Sequence[Token], tree: Expr, rules: GuardDialect) -> None:
    starts = starts_of_aliases(tree) if names else frozenset[int]()
    for name in names:
        if name.start not in starts:
            raise _refused(_unknown_function(name.name, rules), name)


def _names_columns_of_cte(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether the brackets that opened before `index` hold a CTE's column names: `name(a, b) AS (SELECT`."""
    while index < len(tokens) and (tokens[index].name or tokens[index].text == ","):
        index += 1
    words = [token.keyword or token.text for token in tokens[index : index + 7]]
    if words[:4] == [")", "USING", "KEY", "("]:
        return _names_columns_of_cte(tokens, index + 4)
    for opening in _BEFORE_CTE:
        if words[: len(opening)] == opening:
            # Columns with their types stand in such brackets after a function; none is called like this.
            rest = words[len(opening) :]
            return rest[:1] in (["SELECT"], ["WITH"], ["TABLE"], ["FROM"], ["("]) or _are_rows(rest)
    return False


def _are_rows(words: Sequence[str]) -> bool:
    """Tell whether this is `VALUES` with a bracket or a plain value, and so no column of that name with its type."""
    return words[:1] == ["VALUES"] and len(words) > 1 and (words[1] in ("(", "-") or words[1][0] in "'0123456789")


_BEFORE_CTE = ([")", "AS", "("], [")", "AS", "MATERIALIZED", "("], [")", "AS", "NOT", "MATERIALIZED", "("])


def _unknown_function(name: str, rules: GuardDialect) -> str:
    near = difflib.get_close_matches(name[:64], sorted(rules.callable_names), n=1, cutoff=0.8)
    return "This function is not known to only read" + (f", did you mean {near[0]}?" if near else "")
