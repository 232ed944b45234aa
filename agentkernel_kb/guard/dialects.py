"""What the guard knows about a dialect: one entry of facts, so that another dialect is another entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from agentkernel_kb.guard.lexer import Lexer, LexicalRules, Token

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

TokenCheck: TypeAlias = Callable[[tuple[Token, ...]], tuple[str, Token] | None]
StatementCheck: TypeAlias = Callable[[tuple[Token, ...]], tuple[str, Token] | frozenset[str] | None]


class Replacement(NamedTuple):
    """Characters of a statement, and what the parser is shown in their place."""

    start: int
    end: int
    shown: str


def _nothing_to_refuse(proven: object) -> None:
    return None


def _nothing_to_replace(tokens: Sequence[Token]) -> Sequence[Replacement]:
    return ()


@dataclass(frozen=True)
class GuardDialect:
    """The closed lists by which statements of one dialect are proven.

    Attributes:
        name: The dialect's name, which is sqlglot's too.
        rules: How its text is cut into tokens.
        roots: First words of a statement that can be a read.
        explain: Word sequences in front of a statement that only describe it; the longest first.
        refusals: Words that no read can hold unless quoted, alone or as a pair with a blank between, and what a statement does
            that holds one.
        before_bracket: Words that are grammar, or a type, where a bracket follows; any other name is a function.
        after_operand: Those of them that are grammar only where an operand stands in front, and a function's name elsewhere.
        slow_words: Operators that the engine cannot interrupt; a statement may hold `MAX_SLOW_WORDS` of them.
        functions: Functions that compute a value from their arguments and do nothing else, in lower case.
        table_functions: The same for functions that stand for a table.
        hidden_tables: Tables of the engine that show what is not part of the data.
        table_prefixes: Beginnings of names that are table functions even without brackets.
        statements: Checks of the statements that have a closed grammar of their own, by their first word. A check returns the
            token that it refuses, with the reason; or the tables that the statement describes; or `None`. In front of a query,
            a word that is in `explain` too introduces it.
        function_schemas: Schemas in which the functions stand, by their parts, where a call may name one.
        hidden_schemas: Catalogues and schemas of the engine itself, by their parts; their tables are hidden.
        hidden_views: Views of the engine, by schema and name, that show what is not part of the data.
        shown_tables: Tables that `table_prefixes` or `hidden_schemas` would hide and that describe the data, by their parts.
        limit_after_values: A LIMIT can follow `VALUES`, as the last branch of a union is.
        explain_options: Words that may stand in the brackets after `EXPLAIN`.
        exact_quoted: A quoted name keeps its letter case, so that `"LOWER"` is not the function lower.
        shown_to_parser: What the parser is shown in place of grammar that it would misread; each text fits into its place.
        unparsed_operators: Operators that only compute and that the parser does not know; it is shown a minus sign instead.
        lexical_check: What the dialect asks of the tokens of a query besides; it returns the reason and the
            token that it refuses, or `None`.
        default_schemas: Schemas, by their parts, whose tables are meant by a name alone; where there are any, tables of others
            are known by their schema and name.
        catalogue_functions: Functions that describe tables or types, and so count as tables that a statement reads.
        chained_calls: A function may be called by a dot behind its first argument, so that what stands in front of the dot
            tells nothing about the function.
        clauses: Classes of the parser's tree that belong to reads of this dialect besides those of all.
        tree_check: What it asks of the tree; it returns the reason, the node and the part that it refuses, or `None`.
        recursion_rounds: How often the engine writes out a common table expression that names itself, before it starts.
    """

    name: str
    rules: LexicalRules
    roots: frozenset[str]
    explain: tuple[tuple[str, ...], ...]
    refusals: Mapping[str, str]
    before_bracket: frozenset[str]
    slow_words: frozenset[str]
    functions: frozenset[str]
    table_functions: frozenset[str]
    hidden_tables: frozenset[str]
    table_prefixes: tuple[str, ...]
    statements: Mapping[str, StatementCheck]
    after_operand: frozenset[str] = frozenset()
    function_schemas: frozenset[tuple[str, ...]] = frozenset()
    hidden_schemas: frozenset[tuple[str, ...]] = frozenset()
    hidden_views: frozenset[tuple[str, ...]] = frozenset()
    shown_tables: frozenset[tuple[str, ...]] = frozenset()
    limit_after_values: bool = True
    explain_options: frozenset[str] = frozenset()
    exact_quoted: bool = False
    default_schemas: frozenset[tuple[str, ...]] = frozenset()
    catalogue_functions: frozenset[str] = frozenset()
    chained_calls: bool = False
    clauses: frozenset[str] = frozenset()
    unparsed_operators: frozenset[str] = frozenset()
    shown_to_parser: Callable[[Sequence[Token]], Sequence[Replacement]] = _nothing_to_replace
    lexical_check: TokenCheck = _nothing_to_refuse
    tree_check: Callable[[Expr], tuple[str, Expr, str] | None] = _nothing_to_refuse
    recursion_rounds: int = 1

    @cached_property
    def lexer(self) -> Lexer:
        """The lexer of these rules."""
        return Lexer(self.rules)

    @cached_property
    def callable_names(self) -> frozenset[str]:
        """Every name that may stand in front of a bracket of arguments."""
        return self.functions | self.table_functions
