"""SQL text to tokens, by the lexical rules of the engine itself.

The parser that proves a statement has a lexer of its own, made for many dialects. Where the two disagree about the end of a
string or a comment, text could hide from the proof; so the guard reads the statement with these rules first, and compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from agentkernel_kb.errors import KnowledgeGuardError

Kind = Literal["word", "quoted", "string", "number", "mark"]

MAX_PART_CHARS = 40
# A letter, digit, underscore or dollar sign, or a character beyond ASCII that neither separates words nor is invisible.
_LETTER = r"(?:[\w$]|[^\x00-\x9f\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff])"
# No repetition gives anything back: a number behind which a letter follows would take time that grows with its square.
_NUMBER = r"0[xX][0-9a-fA-F]++|(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"


_ASCII_LOWER = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


def folded(name: str) -> str:
    """Return a name as engines compare it: letters of ASCII in lower case, all others as they are.

    The Kelvin sign is no `k` to them, though it becomes one in lower case.
    """
    return name.translate(_ASCII_LOWER)


class Token(NamedTuple):
    """A piece of the statement: what it is, as it is written, and the character at which it starts."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The character after the last one."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """The word in capitals, or `""` for what can be no keyword."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """What the token names, in lower case and without its quotes, or `""` for a number or a mark."""
        return self.unquoted.lower()

    @property
    def unquoted(self) -> str:
        """The same in its own letter case."""
        if self.kind == "word":
            return self.text
        if self.kind not in ("quoted", "string"):
            return ""
        closing = self.text[-1]
        return self.text[1:-1].replace(closing * 2, closing)

    @property
    def shown(self) -> str:
        """The text as an error shows it: shortened."""
        return self.text if len(self.text) <= MAX_PART_CHARS else f"{self.text[: MAX_PART_CHARS - 1]}…"


@dataclass(frozen=True)
class LexicalRules:
    """How an engine cuts its statements into tokens, as regular expressions.

    Attributes:
        comment: A comment; it counts as a blank.
        string: A string or another literal in quotes, prefix included.
        quoted: An identifier in quotes.
        mark: An operator or a punctuation mark.
        parameter: A placeholder for a bound value, which a statement of a model cannot have.
        quotes: Characters that open a string or a quoted identifier.
        number: A number, behind which no letter may follow.
    """

    comment: str
    string: str
    quoted: str
    mark: str
    parameter: str
    quotes: str
    number: str = _NUMBER

    def compile(self) -> re.Pattern[str]:
        """Return one expression that matches any token, in a group named after its kind."""
        return re.compile(
            rf"(?P<blank>[ \t\n\f\r]+|{self.comment})"
            rf"|(?P<string>{self.string})|(?P<quoted>{self.quoted})"
            rf"|(?P<number>(?:{self.number})(?!{_LETTER}))|(?P<parameter>{self.parameter})"
            rf"|(?P<word>(?![\d$]){_LETTER}+)|(?P<mark>{self.mark})",
            re.DOTALL,
        )


class Lexed(NamedTuple):
    """The tokens of a statement, and the statement with its comments blanked so that every position stays."""

    tokens: tuple[Token, ...]
    text: str


class Lexer:
    """Cuts statements of one engine into tokens.

    Args:
        rules: The engine's lexical rules.
    """

    def __init__(self, rules: LexicalRules) -> None:
        self._pattern = rules.compile()
        self._quotes = rules.quotes

    def read(self, statement: str) -> Lexed:
        """Return the tokens of `statement`.

        Raises:
            KnowledgeGuardError: A character that the engine does not know, an open string, or a parameter.
        """
        tokens: list[Token] = []
        pieces: list[str] = []
        position = 0
        while position < len(statement):
            match = self._pattern.match(statement, position)
            if match is None:
                raise self._unreadable(statement, position)
            kind, text = match.lastgroup, match[0]
            if kind == "parameter":
                raise KnowledgeGuardError("Parameters are not supported, write the value itself", part=text, position=position)
            if kind == "blank":
                pieces.append(" " * len(text))
            else:
                pieces.append(text)
                tokens.append(Token(cast("Kind", kind), text, position))
            position = match.end()
        return Lexed(tuple(tokens), "".join(pieces))

    def _unreadable(self, statement: str, position: int) -> KnowledgeGuardError:
        character = statement[position]
        if statement.startswith("/*", position):
            reason = "The comment that opens here is never closed, or nests too deep"
            return KnowledgeGuardError(reason, part=statement[position : position + MAX_PART_CHARS], position=position)
        if character in self._quotes:
            reason = "The quote that opens here is never closed"
            return KnowledgeGuardError(reason, part=statement[position : position + MAX_PART_CHARS], position=position)
        if character.isdecimal():
            return KnowledgeGuardError(
                "This number cannot be read", part=statement[position:][:MAX_PART_CHARS], position=position
            )
        shown = character if character.isprintable() and not character.isspace() else f"U+{ord(character):04X}"
        return KnowledgeGuardError("This character cannot stand here", part=shown, position=position)

    def is_quote(self, character: str) -> bool:
        """Tell whether `character` opens a string or a quoted identifier."""
        return character in self._quotes


def deepest_bracket(tokens: Iterable[Token]) -> tuple[int, Token | None]:
    """Return how deep the brackets of a statement nest, and the bracket that opens the deepest level."""
    depth, deepest, where = 0, 0, None
    for token in tokens:
        if token.text == "(" and token.kind == "mark":
            depth += 1
            if depth > deepest:
                deepest, where = depth, token
        elif token.text == ")" and token.kind == "mark":
            depth -= 1
    return deepest, where
