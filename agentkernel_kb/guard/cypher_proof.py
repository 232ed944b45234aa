"""The proof that a Cypher query only reads: one walk over its tokens, in which only the place where a clause can stand matters.

In a query, expressions and operators alternate. Where an expression has to stand, a word is a name, whatever it spells. Where
an expression is complete, only an operator or a clause can follow, and of those only the ones of the engine's closed lists are
accepted. Every name in front of a bracket is a function or procedure and has to be on a list too.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.cypher_effort import Effort, refusal
from agentkernel_kb.guard.cypher_engine import CypherEngine
from agentkernel_kb.guard.lexer import Token

Place = Literal["clause", "operand", "operator"]
FrameKind = Literal["query", "subquery", "call", "group", "list", "link", "index", "map", "types", "case"]

MAX_DEPTH = 24
_LEADING = frozenset(["+", "-", "->", ",", ":", ".", ".."])
"""Marks that need no value in front of them: signs, parts of arrows, labels, and bounds that are left open."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CASE_WORDS = frozenset(["ELSE", "THEN", "WHEN"])
_OPEN_AGAIN = frozenset([("WHEN", "CASE"), ("WHERE", "|")])
"""Words that stand where an expression could stand, with what stands in front of them; an expression follows."""


@dataclass(slots=True)
class _Frame:
    """What is open: the query itself, a bracket or a `CASE`."""

    kind: FrameKind
    opened: Token | None
    has_lambda: bool = False


@dataclass(slots=True)
class QueryFacts:
    """What the walk found out about a query that only reads.

    Attributes:
        unions: It has more than one part that is put together by `UNION`.
        last_clause: The word that opens the last clause of the outermost query.
        last_clause_at: Index of the token after that word.
    """

    unions: bool = False
    last_clause: str = ""
    last_clause_at: int = 0


def prove_query(tokens: Sequence[Token], engine: CypherEngine, allowed: Collection[str]) -> QueryFacts:
    """Prove that the tokens of one query, without what explains it, only read.

    Args:
        tokens: The query, at least one token.
        engine: The engine's lists.
        allowed: Names of further functions and procedures, in lower case.

    Raises:
        KnowledgeGuardError: They cannot be proven to.
    """
    return _Walk(tokens, engine, allowed).run()


@dataclass
class _Walk:
    tokens: Sequence[Token]
    engine: CypherEngine
    allowed: Collection[str]
    index: int = 0
    place: Place = "clause"
    naming: bool = False  # What follows can only be the name of a label, a type, a property or an alias.
    opening: FrameKind | None = None  # What the next round bracket opens, where the word before it decides that.
    frames: list[_Frame] = field(default_factory=lambda: [_Frame("query", None)])
    facts: QueryFacts = field(default_factory=QueryFacts)
    effort: Effort = field(default_factory=Effort)

    def run(self) -> QueryFacts:
        while self.index < len(self.tokens):
            token = self.tokens[self.index]
            naming, self.naming = self.naming, False
            if token.kind == "mark":
                self._mark(token)
            elif token.kind in ("string", "number"):
                self._literal(token)
            elif token.kind == "quoted" or naming:
                self._name(token)
            else:
                self._word(token)
            self.index += 1
        self._check_end()
        return self.facts

    # What stands around the current token.

    @property
    def frame(self) -> _Frame:
        return self.frames[-1]

    def _near(self, offset: int) -> Token | None:
        index = self.index + offset
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def _text(self, offset: int) -> str:
        """Return the mark, or the word in capitals, at an offset from here; anything in quotes is `""`."""
        token = self._near(offset)
        if token is None:
            return ""
        return token.text if token.kind == "mark" else keyword(token)

    def _check_end(self) -> None:
        if len(self.frames) > 1 and (opened := self.frame.opened) is not None:
            raise refusal("What opens here is never closed", opened)
        if self.place != "operator":
            raise refusal("The statement ends too early", self.tokens[-1])
        self.effort.end_part(self.tokens[-1])

    # Literals and names.

    def _literal(self, token: Token) -> None:
        # `1..3` may be cut into two numbers, and a number may follow the word that names a kind of path.
        side_by_side = token.kind == "number" and self.frame.kind in ("link", "index")
        if self.place == "operand" or self.frame.kind == "types" or side_by_side:
            self.place = "operator"
            return
        before = self._near(-1)
        if token.kind == "string" and before is not None and before.kind == "string":
            raise refusal("A string cannot follow a string; a quote inside one is written \\'", token)
        raise refusal("This value cannot stand here", token)

    def _name(self, token: Token) -> None:
        if self.frame.kind != "types" and self.place != "operand":
            raise self._misplaced(token)
        if self._text(1) == "(" and self.frame.kind != "types":
            self._function(token)
            return
        self.place = "operator"

    def _function(self, token: Token) -> None:
        """Let a bracket open behind the name of a function that is known to do no harm."""
        name = self._dotted_name()
        if name not in self.engine.functions and name not in self.allowed:
            raise refusal(self._unknown_function(token, name), token)
        check = self.engine.bounded.get(name)
        if check and name not in self.allowed and (reason := check(arguments_of(self.tokens, self.index))):
            raise refusal(reason, token)
        if name in self.engine.growing:
            self.effort.count_growth()
        self.opening = "call"

    def _unknown_function(self, token: Token, name: str) -> str:
        word = keyword(token)
        if reason := self.engine.reserved.get(word) or self.engine.reasons.get(word):
            return reason
        if instead := self.engine.equivalents.get(name):
            return f"This function is not known here; {instead}"
        return unknown("function", name, self.engine.functions)

    def _dotted_name(self) -> str:
        """Return the name that ends here, with the names and dots in front of it."""
        first = self.index
        while first >= 2 and self.tokens[first - 1].text == "." and self.tokens[first - 2].kind in ("word", "quoted"):
            first -= 2
        return ".".join(token.name for token in self.tokens[first : self.index + 1 : 2])

    # Words.

    def _word(self, token: Token) -> None:
        word = keyword(token)
        if self.frame.kind == "types":
            self._type(token, word)
        elif self.place == "clause":
            self._clause(token, word, self.engine.openings)
        elif self.place == "operand":
            self._operand(token, word)
        else:
            self._operator(token, word)

    def _type(self, token: Token, word: str) -> None:
        if reason := self.engine.reserved.get(word):
            raise refusal(reason, token)
        self.place = "operator"

    def _operand(self, token: Token, word: str) -> None:
        following = self._text(1)
        if following == ":" and self.frame.kind == "map":
            self.place = "operator"
        elif word in self.engine.prefix_words or (word, self._text(-1)) in _OPEN_AGAIN:
            pass
        elif word == "CASE":
            self._open("case", token)
        elif word in self.engine.subqueries and following == "{":
            self.place = "operator"
        elif word in self.engine.quantifiers and following == "(":
            self.opening = "call"
        elif word in self.engine.types and following == "(" and self._text(-1) == "AS":
            self.opening = "types"
        elif reason := self.engine.reserved.get(word):
            raise refusal(reason, token)
        else:
            self._name(token)

    def _operator(self, token: Token, word: str) -> None:
        kind = self.frame.kind
        if word in self.engine.operators:
            self.place = "operand"
            self.naming = word == "AS" and self._text(2) != "("
        elif second := self.engine.comparisons.get(word):
            self._expect(second)
            self.place = "operand"
        elif word in self.engine.orders or (kind == "link" and word in self.engine.path_words):
            self.opening = "group" if self._text(1) == "(" and kind == "link" else None
            self.place = "operand" if self.opening else "operator"
        elif kind == "case" and word in _CASE_WORDS:
            self.place = "operand"
        elif kind == "case" and word == "END":
            self.frames.pop()
        elif kind in ("query", "subquery"):
            self._clause(token, word, self.engine.clauses)
        elif word == "WHERE" and kind in ("call", "group", "link"):
            self.place = "operand"
        else:
            raise self._misplaced(token)

    def _expect(self, word: str) -> None:
        """Step on to the word that has to follow.

        Raises:
            KnowledgeGuardError: Something else follows.
        """
        if self._text(1) != word:
            raise refusal(f"{word} has to follow", self.tokens[self.index])
        self.index += 1

    def _misplaced(self, token: Token) -> KnowledgeGuardError:
        word = keyword(token) if token.kind == "word" else ""
        reason = self.engine.reserved.get(word) or self.engine.reasons.get(word)
        if reason is None:
            known = sorted(self.engine.clauses | self.engine.operators)
            near = difflib.get_close_matches(word[:32], known, n=1, cutoff=0.75)
            reason = "This word cannot stand here" + (f", did you mean {near[0]}?" if near else "")
        return refusal(reason, token)

    # Clauses.

    def _clause(self, token: Token, word: str, accepted: Collection[str]) -> None:
        if word not in accepted:
            if self.place == "clause" and word not in self.engine.reasons and word not in self.engine.reserved:
                raise refusal(f"A read starts with {', '.join(sorted(self.engine.openings))}", token)
            raise self._misplaced(token)
        if self.frame.kind == "query":
            self.facts.last_clause, self.facts.last_clause_at = word, self.index + 1
        self.place = "operand"
        if word == "WITH":
            self.effort.end_part(token)
        elif word == "UNION":
            self._union(token)
        elif word == "CALL":
            self._call(token)
        elif second := self.engine.pairs.get(word):
            self._expect(second)

    def _union(self, token: Token) -> None:
        self.effort.end_part(token)
        self.facts.unions = True
        if self._text(1) == "ALL":
            self.index += 1
        self.place = "clause"

    def _call(self, caller: Token) -> None:
        """Step over the name of a procedure that is known to only read."""
        named = self._near(1)
        if named is None or named.kind not in ("word", "quoted"):
            raise refusal("CALL needs the name of a procedure", caller)
        self.index += 1
        while self._text(1) == "." and (last := self._near(2)) is not None and last.kind in ("word", "quoted"):
            self.index += 2
        name = self._dotted_name()
        if self._text(1) == "=":
            raise refusal("This statement changes a setting", named)
        if name not in self.engine.procedures and name not in self.allowed:
            raise refusal(unknown("procedure", name, self.engine.procedures), named)
        if self._text(1) != "(":
            raise refusal("A procedure is called with brackets", named)
        self.opening = "call"

    # Marks.

    def _mark(self, token: Token) -> None:
        text = token.text
        if text in _CLOSING:
            self._open_bracket(token)
        elif text in _CLOSING.values():
            self._close_bracket(token)
        elif self.place == "clause":
            raise refusal(f"A read starts with {', '.join(sorted(self.engine.openings))}", token)
        elif text == "*":
            star = self.place == "operand" or self.frame.kind == "link"
            self.place = "operator" if star else "operand"
        elif text == "!":
            raise refusal("A factorial is refused: nothing stops one of a large number", token)
        else:
            self._separator(token)

    def _separator(self, token: Token) -> None:
        text, before = token.text, self._near(-1)
        if self.place == "operand" and text not in _LEADING and (self._text(-1), text) != (":", "="):
            raise refusal("A value has to stand in front of this", token)
        self.place = "operand"
        if text in ("-", "->") and before is not None and before.text == "-" and before.end == token.start:
            self.effort.count_link(token)
        elif text == "->" and self.frame.kind == "call":
            self._lambda(token)
        self.naming = text == "." or (text == ":" and self.frame.kind in ("group", "link", "query", "subquery"))
        self.naming = self.naming or (
            text == "|" and self.frame.kind in ("group", "link") and self._text(1) not in ("WHERE", ":")
        )
        if text in self.engine.growing:
            self.effort.count_growth()

    def _lambda(self, token: Token) -> None:
        if any(frame.has_lambda for frame in self.frames):
            raise refusal("A lambda inside a lambda is not supported", token)
        if self._called() not in self.engine.lambdas:
            raise refusal(f"A lambda stands only in {', '.join(sorted(self.engine.lambdas))}", token)
        self.frame.has_lambda = True
        self.effort.count_lambda()

    def _called(self) -> str:
        """Return the name of the function whose arguments are open."""
        opened = next(index for index, token in enumerate(self.tokens) if token is self.frame.opened)
        return self.tokens[opened - 1].name if opened else ""

    def _open_bracket(self, token: Token) -> None:
        kind = self._bracket_kind(token)
        self.opening = None
        if kind is None:
            raise refusal("This bracket cannot stand here", token)
        self._open(kind, token)
        self.place = "clause" if kind == "subquery" else "operand"

    def _bracket_kind(self, token: Token) -> FrameKind | None:
        if self.place == "clause":
            return None
        if token.text == "(":
            if self.frame.kind == "types":
                return "types"
            return self.opening or ("group" if self.place == "operand" or self.frame.kind == "link" else None)
        if token.text == "[":
            if self.place == "operator":
                return "index"
            if self._text(-1) == "-":
                self.effort.count_link(token)
                return "link"
            return "list"
        if self.place == "operator" and self._text(-1) in self.engine.subqueries:
            return "subquery"
        if self.place == "operator" and self.frame.kind in ("query", "subquery") and not self._follows_name():
            return None
        return "map"

    def _follows_name(self) -> bool:
        before = self._near(-1)
        return before is not None and before.kind in ("word", "quoted")

    def _open(self, kind: FrameKind, token: Token) -> None:
        if len(self.frames) > MAX_DEPTH:
            raise refusal(f"The statement is nested more than {MAX_DEPTH} deep", token)
        self.frames.append(_Frame(kind, token))

    def _close_bracket(self, token: Token) -> None:
        opened = self.frame.opened
        if opened is None or _CLOSING.get(opened.text) != token.text:
            raise refusal("This bracket closes nothing", token)
        if self.place == "clause":
            raise refusal("The subquery is empty", token)
        self.frames.pop()
        self.place = "operator"


def keyword(token: Token) -> str:
    """Return the word in capitals as the engine compares it, which knows no capitals beyond ASCII; `""` for what is no word."""
    return token.keyword if token.text.isascii() else ""


def arguments_of(tokens: Sequence[Token], name: int) -> Sequence[Token]:
    """Return the tokens between the bracket that follows the token at `name` and the one that closes it."""
    depth = 0
    for end in range(name + 1, len(tokens)):
        token = tokens[end]
        if token.kind == "mark":
            depth += (token.text in _CLOSING) - (token.text in _CLOSING.values())
        if not depth:
            return tokens[name + 2 : end]
    return tokens[name + 2 :]


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """Return why a name that is on no list is refused."""
    near = difflib.get_close_matches(name[:64], sorted(known), n=1, cutoff=0.75)
    return f"This {what} is not known to only read" + (f", did you mean {near[0]}?" if near else "")
