"""Bounds on what one call of a DuckDB function can make out of nothing, and on what a regular expression can cost.

The engine bounds the memory of tables and sorts, but not that of one value, and it does not ask for the time inside one call.
So the sizes of values are written out in the statement, where they can be read, and so are regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from agentkernel_kb.guard.duckdb_functions import REGULAR_EXPRESSIONS
from agentkernel_kb.guard.lexer import Token

MAX_SIZE = 10_000
MAX_REPEATED = 1_000_000
MAX_PATTERNS = 50
MAX_PATTERN_STATES = 500

_Refusal = tuple[str, Token]

_PADDING = {"lpad": 1, "rpad": 1, "list_resize": 1, "array_resize": 1}
_SERIES = frozenset({"generate_series", "range"})
_TEMPLATES = frozenset({"format", "printf"})
_REGEX_MARKS = frozenset({"~", "!~", "~*", "!~*"})
_OPERAND_ENDS = frozenset({")", "]", "}"})
_BEFORE_OPERAND = frozenset(
    "ALL AND BETWEEN BY CASE DISTINCT ELSE FROM HAVING IN LIMIT NOT OFFSET ON OR QUALIFY SELECT THEN WHEN WHERE".split()  # noqa: SIM905
)

_DATE_WORDS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL"})
_STEPS_A_YEAR = {"DAY": 366, "WEEK": 53, "MONTH": 12, "QUARTER": 4, "YEAR": 1}
_DATE = re.compile(r"'(?P<year>\d{4})-[0-9: .+-]{1,40}'")
_STEP = re.compile(r"'\d{1,4} (?P<unit>day|week|month|quarter|year)s?'", re.IGNORECASE)
_COUNT = re.compile(r"(?P<group>\))?\{(?P<low>\d*+)(?P<comma>,?)(?P<high>\d*+)\}")


def check_sizes(tokens: tuple[Token, ...]) -> _Refusal | None:
    """Return the token that makes a value of unknown size, or a pattern of unknown cost, with the reason; else `None`."""
    times, patterns = 1, 0
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        is_call = token.kind in ("word", "quoted") and index + 1 < len(tokens) and tokens[index + 1].text == "("
        refused: _Refusal | None = None
        if (token.text in _REGEX_MARKS and _ends_operand(before)) or _is_similar_to(token, before):
            patterns += 1
            refused = _check_pattern(tokens[index + 1 : index + 2], token)
        elif is_call:
            arguments = _arguments(tokens, index + 2)
            patterns += token.name in REGULAR_EXPRESSIONS
            times *= (_number(arguments[1:2]) or 1) if token.name == "repeat" else 1
            refused = _check_call(token, arguments, tokens[max(0, index - 2) : index])
        if patterns > MAX_PATTERNS:
            refused = f"The statement matches more than {MAX_PATTERNS} regular expressions", token
        if times > MAX_REPEATED:
            refused = f"Texts are repeated more than {MAX_REPEATED:,} times in all", token
        if refused:
            return refused
    return None


def _check_call(function: Token, arguments: Sequence[Sequence[Token]], before: Sequence[Token]) -> _Refusal | None:
    name = function.name
    chained = bool(before) and before[-1].text == "."
    if name in REGULAR_EXPRESSIONS:
        pattern = arguments[0 if chained else 1 : 1 if chained else 2]
        return _check_pattern(pattern[0] if pattern and len(pattern[0]) == 1 else (), function)
    sized = name in _PADDING or name in _SERIES or name in _TEMPLATES or name == "repeat"
    if sized and chained:
        return "Write this function in front of its arguments, so that its size can be read", function
    if (name in _PADDING or name == "repeat") and (_number(arguments[1:2]) is None):
        return f"The size has to be a plain number up to {MAX_SIZE:,}, as the second argument", function
    if name in _TEMPLATES and not _is_plain_template(arguments[:1]):
        return "The template has to be a plain string with widths of at most three digits", function
    if name in _SERIES and not _stands_for_table(before) and not _is_bounded_series(arguments):
        reason = (
            f"A list is made from plain numbers or dates and has up to {MAX_SIZE:,} elements; for more, select FROM {name}(…)"
        )
        return reason, function
    return None


def _arguments(tokens: Sequence[Token], start: int) -> list[Sequence[Token]]:
    """Return the arguments of the call whose bracket opened before `start`, each as its tokens."""
    arguments: list[Sequence[Token]] = []
    depth, begin = 0, start
    for index in range(start, len(tokens)):
        text = tokens[index].text if tokens[index].kind == "mark" else ""
        if depth == 0 and text in (",", ")"):
            arguments.append(tokens[begin:index])
            begin = index + 1
            if text == ")":
                return arguments
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
    return arguments


def _number(argument: Sequence[Sequence[Token]]) -> int | None:
    """Return the plain number that the one argument is, or `None`: also if it is too large."""
    if len(argument) != 1 or len(argument[0]) != 1 or not _is_small(argument[0][0]):
        return None
    return int(argument[0][0].text)


def _is_plain_template(argument: Sequence[Sequence[Token]]) -> bool:
    if len(argument) != 1 or len(argument[0]) != 1 or argument[0][0].kind != "string":
        return False
    template = argument[0][0].text
    return not re.search(r"\d{4}|\*|\{[^{}]*\{", template.replace("{{", ""))


def _stands_for_table(before: Sequence[Token]) -> bool:
    """Tell whether a function behind these tokens is a table, whose rows are made one by one."""
    words = [token.keyword for token in before]
    return words[-1:] in (["FROM"], ["JOIN"], ["LATERAL"]) and words[-2:-1] != ["DISTINCT"]


def _is_bounded_series(arguments: Sequence[Sequence[Token]]) -> bool:
    """Tell whether a list from these arguments has a length that can be read, and that is not too large."""
    tokens = [token for argument in arguments for token in argument]
    if all(token.kind == "number" or token.text in ("-", "+") for token in tokens):
        return all(token.kind == "mark" or _is_small(token) for token in tokens)
    if len(arguments) != 3 or not all(map(_is_part_of_dates, tokens)):
        return False
    years = [int(found["year"]) for token in tokens if (found := _DATE.fullmatch(token.text))]
    units = [unit for token in arguments[2] if (unit := _unit(token))]
    return len(years) == 2 and len(units) == 1 and (abs(years[1] - years[0]) + 1) * _STEPS_A_YEAR[units[0]] <= MAX_SIZE


def _is_small(token: Token) -> bool:
    return token.text.isdecimal() and len(token.text) <= len(str(MAX_SIZE)) and int(token.text) <= MAX_SIZE


def _is_part_of_dates(token: Token) -> bool:
    if token.kind == "number":
        return token.text.isdecimal() and token.text.strip("0") != ""
    return bool(_DATE.fullmatch(token.text) or _unit(token)) or token.text in ("-", "::") or token.keyword in _DATE_WORDS


def _unit(token: Token) -> str:
    """Return the unit of a step of whole days or more, `""` for anything else."""
    found = _STEP.fullmatch(token.text) if token.kind == "string" else None
    unit = found["unit"].upper() if found else token.keyword.removesuffix("S")
    return unit if unit in _STEPS_A_YEAR else ""


def _ends_operand(token: Token | None) -> bool:
    if token is None:
        return False
    return token.text in _OPERAND_ENDS if token.kind == "mark" else token.keyword not in _BEFORE_OPERAND


def _is_similar_to(token: Token, before: Token | None) -> bool:
    return token.keyword == "TO" and before is not None and before.keyword == "SIMILAR"


def _check_pattern(pattern: Sequence[Token], operator: Token) -> _Refusal | None:
    if len(pattern) != 1 or pattern[0].kind != "string":
        return "A regular expression has to be a plain string right here", operator
    if pattern_states(pattern[0].text) > MAX_PATTERN_STATES:
        return "This regular expression is too large; use fewer or smaller counts in braces", pattern[0]
    return None


def pattern_states(pattern: str) -> int:
    """Return about how many states a regular expression has: its characters, times what counts in braces repeat."""
    counts = [(bool(count["group"]), _times(count)) for count in _COUNT.finditer(pattern)]
    groups = prod(count for is_group, count in counts[:100] if is_group)
    return len(pattern) * groups + sum(count for is_group, count in counts if not is_group)


def _times(count: re.Match[str]) -> int:
    return max(int(count["low"][:4] or 1), int(count["high"][:4] or 1))
