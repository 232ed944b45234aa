"""The proof that a Cypher query only reads: one walk over its tokens, in which only the place where a clause can stand matters.

In a query, expressions and operators alternate. Where an expression has to stand, a word is a name, whatever it spells. Where
an expression is complete, only an operator or a clause can follow, and of those only the ones of the engine's closed lists are
accepted. Every name in front of a bracket is a function or procedure and has to be on a list too.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.cypher_cursor import CLOSING, Cursor, Frame, FrameKind, arguments_of, keyword, unknown
from agentkernel_kb.guard.cypher_effort import Effort, refusal
from agentkernel_kb.guard.cypher_engine import CypherEngine
from agentkernel_kb.guard.cypher_types import predicate_end
from agentkernel_kb.guard.lexer import Token

MAX_DEPTH = 24
_LEADING = frozenset(["+", "-", "->", ",", ":", ".", ".."])
"""Marks that need no value in front of them: signs, parts of arrows, labels, and bounds that are left open."""
_TESTS = frozenset(["=", "<>", "<", ">", "<=", ">=", "=~"])
_CASE_WORDS = frozenset(["ELSE", "THEN", "WHEN"])
_OPEN_AGAIN = frozenset([("WHEN", "CASE"), ("WHERE", "|")])
"""Words that stand where an expression could stand, with what stands in front of them; an expression follows."""


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
    return _Walk(tokens, engine=engine, allowed=allowed).run()


@dataclass(kw_only=True)
class _Walk(Cursor):
    engine: CypherEngine
    allowed: Collection[str]
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
        before = self.near(-1)
        if token.kind == "string" and before is not None and before.kind == "string":
            raise refusal("A string cannot follow a string; a quote inside one is written \\'", token)
        raise refusal("This value cannot stand here", token)

    def _name(self, token: Token) -> None:
        if self.frame.kind != "types" and self.place != "operand":
            raise self._misplaced(token)
        if self.text(1) == "(" and self.frame.kind != "types":
            self._function(token)
            return
        self.place = "operator"

    def _function(self, token: Token) -> None:
        """Let a bracket open behind the name of a function that is known to do no harm."""
        name = self.dotted_name()
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
        following = self.text(1)
        if following == ":" and self.frame.kind == "map":
            self.place = "operator"
        elif word in self.engine.prefix_words or (word, self.text(-1)) in _OPEN_AGAIN or self._selects_path(word):
            pass
        elif self.engine.paths and self.cuts(word):
            self.place = "operand"
        elif self.engine.paths and self.begins_test() and (word == "IS" or word in self.engine.comparisons):
            self._operator(token, word)
        elif word == "CASE":
            self._open("case", token)
        elif word in self.engine.subqueries and following == "{":
            self.place = "operator"
        elif word in self.engine.quantifiers and following == "(":
            self.opening = "call"
        elif word in self.engine.types and following == "(" and self.text(-1) == "AS":
            self.opening = "types"
        elif reason := self.engine.reserved.get(word):
            raise refusal(reason, token)
        else:
            self._name(token)

    def _operator(self, token: Token, word: str) -> None:
        kind = self.frame.kind
        if word == "IS" and (end := predicate_end(self.tokens, self.index, self.engine.value_types)) is not None:
            self.index = end - 1
        elif word == "FROM" and self.engine.paths and self.is_trimming():
            self.place = "operand"
        elif word in self.engine.operators:
            self.place = "operand"
            self.naming = word == "AS" and self.text(2) != "("
        elif second := self.engine.comparisons.get(word):
            self._expect(second)
            self.place = "operand"
        elif word in self.engine.orders or (kind == "link" and word in self.engine.path_words):
            self.opening = "group" if self.text(1) == "(" and kind == "link" else None
            self.place = "operand" if self.opening else "operator"
        elif kind == "case" and word in _CASE_WORDS:
            self.place = "operand"
        elif kind == "case" and word == "END":
            self.frames.pop()
        elif kind in ("query", "subquery"):
            self._clause(token, word, self.engine.clauses)
        elif word == "WHERE" and kind in ("call", "group", "link", "list"):
            self.place = "operand"
        else:
            raise self._misplaced(token)

    def _selects_path(self, word: str) -> bool:
        """Step over words in front of a pattern that choose among its paths, as in `SHORTEST 2 GROUPS` or `ANY SHORTEST`."""
        if not self.engine.paths:
            return False
        if word in ("ALL", "ANY") and self.text(1) == "SHORTEST":
            self.index += 1
            return True
        number = self.near(1)
        if word != "SHORTEST" or number is None or number.kind != "number":
            return False
        self.index += 2 if self.text(2) in ("GROUP", "GROUPS", "PATH", "PATHS") else 1
        return True

    def _expect(self, word: str) -> None:
        """Step on to the word that has to follow.

        Raises:
            KnowledgeGuardError: Something else follows.
        """
        if self.text(1) != word:
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
        elif word in ("LET", "UNWIND"):
            self.effort.end_growth(token)
        elif word == "UNION":
            self._union(token)
        elif word == "CALL":
            self._call(token)
        elif word == "OPTIONAL" and self.text(1) == "CALL" and self.engine.called_subqueries:
            self.index += 1
            self._call(token)
        elif second := self.engine.pairs.get(word):
            self._expect(second)

    def _union(self, token: Token) -> None:
        self.effort.end_part(token)
        self.facts.unions = True
        if self.text(1) in ("ALL", "DISTINCT"):
            self.index += 1
        self.place = "clause"

    def _call(self, caller: Token) -> None:
        """Step over the name of a procedure that is known to only read."""
        if self.engine.called_subqueries and self.text(1) in ("{", "("):
            self._called_subquery(caller)
            return
        named = self.near(1)
        if named is None or named.kind not in ("word", "quoted"):
            raise refusal("CALL needs the name of a procedure", caller)
        self.index += 1
        while self.text(1) == "." and (last := self.near(2)) is not None and last.kind in ("word", "quoted"):
            self.index += 2
        name = self.dotted_name()
        if self.text(1) == "=":
            raise refusal("This statement changes a setting", named)
        if name not in self.engine.procedures and name not in self.allowed:
            raise refusal(unknown("procedure", name, self.engine.procedures), named)
        if self.text(1) != "(":
            raise refusal("A procedure is called with brackets", named)
        self.opening = "call"

    def _called_subquery(self, caller: Token) -> None:
        """Open the subquery of a `CALL`, behind the names in brackets that it takes from outside."""
        if self.text(1) == "(":
            self.index += 1
            while (token := self.near(1)) is not None and (token.kind in ("word", "quoted") or token.text in (",", "*")):
                self.index += 1
            self._expect(")")
        if self.text(1) != "{":
            raise refusal("CALL needs the name of a procedure, or a subquery in curly brackets", caller)
        self.index += 1
        self._open("subquery", self.tokens[self.index])
        self.frame.called = True
        self.place = "clause"

    # Marks.

    def _mark(self, token: Token) -> None:
        text = token.text
        if text in CLOSING:
            self._open_bracket(token)
        elif text in CLOSING.values():
            self._close_bracket(token)
        elif self.place == "clause":
            raise refusal(f"A read starts with {', '.join(sorted(self.engine.openings))}", token)
        elif text == "*":
            star = self.place == "operand" or self.frame.kind == "link"
            self.place = "operator" if star else "operand"
        elif text == "!" and self.engine.paths:
            if self.place != "operand":
                raise refusal("Unequal is written <>", token)
            self.naming = True
        elif text == "!":
            raise refusal("A factorial is refused: nothing stops one of a large number", token)
        else:
            self._separator(token)

    def _separator(self, token: Token) -> None:
        text, before = token.text, self.near(-1)
        if self.place == "operand" and text in _TESTS and self.engine.paths and self.begins_test():
            return
        if self.place == "operand" and text == "%" and self.engine.paths and self.text(-1) in (":", "&", "|", "!"):
            self.place = "operator"  # Any label.
            return
        if self.place == "operand" and text not in _LEADING and (self.text(-1), text) != (":", "="):
            raise refusal("A value has to stand in front of this", token)
        self.place = "operand"
        if text in ("-", "->") and before is not None and before.text == "-" and before.end == token.start:
            self.effort.count_link(token)
        elif text == "->" and self.frame.kind == "call" and self.engine.lambdas:
            self._lambda(token)
        self.naming = text == "." or (text == ":" and self.frame.kind in ("group", "link", "query", "subquery"))
        self.naming = self.naming or (
            text in ("|", "&") and self.frame.kind in ("group", "link") and self.text(1) not in ("WHERE", ":")
        )
        if text in self.engine.growing:
            self.effort.count_growth()

    def _lambda(self, token: Token) -> None:
        if any(frame.has_lambda for frame in self.frames):
            raise refusal("A lambda inside a lambda is not supported", token)
        if self.called() not in self.engine.lambdas:
            raise refusal(f"A lambda stands only in {', '.join(sorted(self.engine.lambdas))}", token)
        self.frame.has_lambda = True
        self.effort.count_lambda()

    def _open_bracket(self, token: Token) -> None:
        if token.text == "(" and self.place == "clause" and self.frame.kind == "subquery" and not self.frame.called:
            self.place = "operand"  # A subquery may begin with its pattern.
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
            is_open = self.place == "operand" or self.frame.kind == "link" or self._continues_path()
            return self.opening or ("group" if is_open else None)
        if token.text == "[":
            if self.place == "operator":
                return "index"
            if self.text(-1) == "-":
                self.effort.count_link(token)
                return "link"
            return "list"
        if self.place == "operator" and self.text(-1) in self.engine.subqueries:
            return "subquery"
        if self.place == "operator" and self.frame.kind in ("query", "subquery"):
            return "map" if self.follows_name() or (self.engine.paths and self.text(-1) == ")") else None
        return "map"

    def _continues_path(self) -> bool:
        """Tell whether a bracket may continue a path: behind another one, or behind a quantifier."""
        before = self.near(-1)
        return self.engine.paths and before is not None and before.text in (")", "}", "*")

    def _open(self, kind: FrameKind, token: Token) -> None:
        if len(self.frames) > MAX_DEPTH:
            raise refusal(f"The statement is nested more than {MAX_DEPTH} deep", token)
        self.frames.append(Frame(kind, token))

    def _close_bracket(self, token: Token) -> None:
        opened = self.frame.opened
        if opened is None or CLOSING.get(opened.text) != token.text:
            raise refusal("This bracket closes nothing", token)
        if self.place == "clause":
            raise refusal("The subquery is empty", token)
        called = self.frames.pop().called
        if called and self.text(1) == "IN":
            raise refusal("This subquery would run in transactions of its own", self.tokens[self.index + 1])
        self.place = "operator"
