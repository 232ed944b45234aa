"""How much may stand side by side in one statement of SQLite, which asks for the time between its rows only.

A pattern is held against a text place by place: one of 100 characters takes up to half a second on a text of a megabyte. A
format of that size takes ten milliseconds, a calculation with such a text, or a call, about two. All that stand side by side in
a statement are done before SQLite looks at the time again.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.lexer import Token

MAX_PATTERN_CHARS = 1_000
COMPUTED_CHARS = 128
"""What a pattern counts as that is not written out; the engine takes no longer one."""

MAX_COMPUTED_FORMATS = 20
MAX_CALCULATIONS = 600

_GRAMMAR = """
all and as between by case distinct else except exists filter from having in intersect join limit materialized not offset on or
over select then union using values when where
"""
BETWEEN_VALUES = frozenset(_GRAMMAR.split())
"""Words before a bracket that is no call and no calculation."""

_MATCHING = frozenset(["glob", "like"])
_JOINING = frozenset(["||", "->", "->>", "+", "-", "*", "/", "%", "&", "|", "<<", ">>"])
_CALCULATING = _JOINING | {"~"}
_REASON = (
    f"The patterns of LIKE and GLOB have more than {MAX_PATTERN_CHARS:,} characters together, where one that is not written "
    f"out counts as {COMPUTED_CHARS}; match fewer, or shorter ones"
)
_REASON_OF_FORMATS = f"More than {MAX_COMPUTED_FORMATS} calls of strftime have a format that is not written out"
_REASON_OF_CALCULATIONS = f"More than {MAX_CALCULATIONS} calculations and calls stand side by side; select fewer at a time"


def check_effort(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    """Return the place at which a statement does too much for one row, and the reason; else `None`."""
    return check_patterns(tokens) or check_calculations(tokens)


def check_calculations(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    """Return the calculation or call that is one too many, and the reason; else `None`. The sign of a number is none."""
    count = 0
    for index, token in enumerate(tokens):
        before, behind = tokens[index - 1] if index else None, tokens[index + 1] if index + 1 < len(tokens) else None
        if token.text in _CALCULATING and token.kind == "mark":
            is_sign = behind is not None and behind.kind == "number" and before is not None and before.text in ("(", ",")
            count += not is_sign
        elif behind is not None and behind.text == "(" and token.name and token.name not in BETWEEN_VALUES:
            count += 1
        if count > MAX_CALCULATIONS:
            return _REASON_OF_CALCULATIONS, token
    return None


def check_patterns(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    """Return the pattern or the format with which a statement does too much, and the reason; else `None`."""
    chars = formats = 0
    for index, token in enumerate(tokens):
        following = tokens[index + 1 : index + 5]
        is_call = bool(following) and following[0].text == "("
        if token.name in _MATCHING and (token.kind == "word" or (token.kind == "quoted" and is_call)):
            chars += _length(following)
            if chars > MAX_PATTERN_CHARS:
                return _REASON, token
        elif token.name == "strftime" and is_call:
            formats += _length(following) == COMPUTED_CHARS
            if formats > MAX_COMPUTED_FORMATS:
                return _REASON_OF_FORMATS, token
    return None


def _length(following: Sequence[Token]) -> int:
    """Return how long the pattern is that begins with these tokens: a string alone, in brackets, or as a first argument."""
    is_bracket = bool(following) and following[0].text == "("
    pattern, behind = following[is_bracket : is_bracket + 1], following[is_bracket + 1 :]
    if is_bracket and behind and behind[0].text == ")":
        behind = behind[1:]
    if not pattern or pattern[0].kind != "string" or (behind and behind[0].text in _JOINING):
        return COMPUTED_CHARS
    return min(len(pattern[0].unquoted), COMPUTED_CHARS)
