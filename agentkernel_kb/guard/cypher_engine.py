"""What the guard knows about one engine's Cypher: an entry of facts, so that another engine is another entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agentkernel_kb.guard.lexer import Lexer, LexicalRules, Token

ArgumentCheck = Callable[[Sequence[Token]], str]
"""Looks at the tokens between a function's brackets and returns why the call is refused, `""` if it is not."""

TokenCheck = Callable[[Sequence[Token]], None]
"""Looks at all tokens of a statement and raises `KnowledgeGuardError` where it refuses one."""


@dataclass(frozen=True)
class CypherEngine:
    """The closed lists by which statements for one engine are proven. Words are in capitals, names in lower case.

    Attributes:
        name: The engine's name.
        rules: How it cuts a read into tokens.
        write_rules: The same for a write, in which parameters may stand.
        prefixes: Word sequences in front of a statement that explain it; the longest first.
        openings: Words that open a query, or the next part of a `UNION`.
        clauses: Words that open a further clause, once an expression or a pattern is complete.
        operators: Words between two expressions.
        pairs: Clauses of two words, the second by the first.
        comparisons: Pairs of words that stand between two expressions.
        orders: Words after an expression that end it.
        prefix_words: Words in front of an expression.
        path_words: Words that stand only inside the square brackets of a relationship.
        subqueries: Words that open a subquery in curly brackets.
        quantifiers: Words that take one expression in brackets, like a function.
        types: Types with brackets of their own, after `AS`.
        functions: Functions that compute a value and do nothing else.
        equivalents: For functions of other engines, what stands for them here.
        bounded: Functions that are harmless within bounds only, with the check of their arguments.
        stalling: Functions that nothing interrupts, which writes may not use either.
        lambdas: Functions that take a lambda.
        growing: Functions and marks that can double a value; a chain of them makes values of any size out of nothing.
        procedures: What `CALL` may call.
        reserved: Words that can be no name, and what a statement does that holds one.
        reasons: What a statement does where such a word opens it or one of its clauses.
        write_openings: Words that open a statement that may write.
        paths: Patterns may have labels that are negated, quantifiers, and words that choose among paths.
        called_subqueries: `CALL` takes a subquery too.
        value_types: Words of which the types after `IS ::` consist.
        unreadable: Texts that may stand nowhere in a statement, not even in a comment, and why.
        further: A last look at the tokens of a read, which raises what it refuses.
        further_write: The same for a write.
    """

    name: str
    rules: LexicalRules
    write_rules: LexicalRules
    prefixes: tuple[tuple[str, ...], ...]
    openings: frozenset[str]
    clauses: frozenset[str]
    operators: frozenset[str]
    pairs: Mapping[str, str]
    comparisons: Mapping[str, str]
    orders: frozenset[str]
    prefix_words: frozenset[str]
    path_words: frozenset[str]
    subqueries: frozenset[str]
    quantifiers: frozenset[str]
    types: frozenset[str]
    functions: frozenset[str]
    equivalents: Mapping[str, str]
    bounded: Mapping[str, ArgumentCheck]
    stalling: frozenset[str]
    lambdas: frozenset[str]
    growing: frozenset[str]
    procedures: frozenset[str]
    reserved: Mapping[str, str]
    reasons: Mapping[str, str]
    write_openings: frozenset[str]
    paths: bool = False
    called_subqueries: bool = False
    value_types: frozenset[str] = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])
    further: TokenCheck | None = None
    further_write: TokenCheck | None = None

    @cached_property
    def lexer(self) -> Lexer:
        """The lexer for reads."""
        return Lexer(self.rules)

    @cached_property
    def write_lexer(self) -> Lexer:
        """The lexer for writes."""
        return Lexer(self.write_rules)
