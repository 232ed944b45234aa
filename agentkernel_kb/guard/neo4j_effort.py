"""How much work one expression of Neo4j's Cypher may make: its time limit looks between rows, and not inside of an expression.

`reduce(s = 0, i IN range(1, 1000000000) | s + i)` was seen to run for half a minute under a limit of three seconds, and a list
made inside of a list to exhaust the server's memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from agentkernel_kb.guard.cypher_cursor import CLOSING, arguments_of, keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_collected import check_collected
from agentkernel_kb.guard.neo4j_conditions import check_conditions
from agentkernel_kb.guard.neo4j_labels import check_labels
from agentkernel_kb.guard.neo4j_patterns import pattern_fault
from agentkernel_kb.guard.neo4j_repeated import check_repeated
from agentkernel_kb.guard.neo4j_values import check_values, opens_part

MAX_ITEMS = 1_000
MAX_SUBQUERIES_DEEP = 8
MAX_REDUCED_CHARS = 1_000
MAX_UNITED = 256
_MAX_DIGITS = 10
_SIZES = frozenset(["length", "size"])
_SMALL = frozenset(["[", "keys", "labels", "nodes", "relationships"])
_LOOPS = frozenset(["ALL", "ANY", "NONE", "REDUCE", "SINGLE"])
_STEADY = frozenset(
    [
        "abs",
        "and",
        "case",
        "coalesce",
        "else",
        "in",
        "not",
        "or",
        "round",
        "substring",
        "then",
        "tofloat",
        "tointeger",
        "tolower",
        "tostring",
        "toupper",
        "trim",
        "when",
        "xor",
    ]
)
"""What a value may stand in without becoming much larger: functions, and words in front of a bracket."""
_SUBQUERIES = frozenset(["COLLECT", "COUNT", "EXISTS"])
_COMPARED = frozenset(["<", "<=", "<>", "=", ">", ">=", "IS"])


def check_range(arguments: Sequence[Token]) -> str:
    """Accept a range of at most `MAX_ITEMS` whole numbers that are written out, or one as long as a list or a path."""
    if (numbers := _plain_numbers(arguments)) is not None:
        start, end, step = (*numbers, 1)[:3]
        return "" if step and (end - start) // step < MAX_ITEMS else _RANGE
    index = 0
    while index < len(arguments):
        token = arguments[index]
        if _is_size(token, arguments[index + 1] if index + 1 < len(arguments) else None):
            index += len(arguments_of(arguments, index)) + 2  # What it is the size of does not matter.
        elif token.text not in ("+", "-", ",", "(", ")") and not _is_small_number(token):
            return _RANGE
        index += 1
    return ""


_RANGE = (
    f"range takes at most {MAX_ITEMS:,} whole numbers that are written out, or the size of a list; between two values take "
    "range(0, 999) AS i, and keep those WHERE start + i <= end"
)
_DAY = r"""date \( ['"]([0-9]{4}-[0-9]{2}-[0-9]{2})['"] \)"""
_DAYS_BETWEEN = re.compile(rf"duration \. inDays \( {_DAY} , {_DAY} \) \. days(?: ([-+] 1)\b)?", re.IGNORECASE)


def _plain_numbers(arguments: Sequence[Token]) -> list[int] | None:
    """Return two or three whole numbers, if the arguments are nothing else; the days between two dates are one."""
    try:
        text = _DAYS_BETWEEN.sub(_days_between, " ".join(token.text for token in arguments))
    except ValueError:  # There is no such day.
        return None
    if not re.fullmatch(r"(?:- )?\d{1,15} , (?:- )?\d{1,15}(?: , (?:- )?\d{1,15})?", text, re.ASCII):
        return None
    return [int(number.replace(" ", "")) for number in text.split(" , ")]


def _days_between(match: re.Match[str]) -> str:
    days = (date.fromisoformat(match[2]) - date.fromisoformat(match[1])).days + int((match[3] or "0").replace(" ", ""))
    return f"{days}" if days >= 0 else f"- {-days}"


def _is_small_number(token: Token) -> bool:
    return token.kind == "number" and token.text.isdecimal() and len(token.text) < _MAX_DIGITS and int(token.text) <= MAX_ITEMS


def _is_size(token: Token, following: Token | None) -> bool:
    return token.name in _SIZES and following is not None and following.text == "("


def check_reduce(arguments: Sequence[Token]) -> str:
    """Accept a reduction that uses what it has so far once; what only compares it does not count."""
    if not arguments or arguments[0].kind not in ("word", "quoted"):
        return "reduce begins with a name, as in reduce(total = 0, x IN list | total + x)"
    name = arguments[0].unquoted
    uses = [
        index
        for index, token in enumerate(arguments[1:], start=1)
        if token.kind in ("word", "quoted")
        and token.unquoted == name
        and arguments[index - 1].text != "."  # The property of something else.
        and not _is_compared(arguments, index)
    ]
    if len(uses) > 1:
        return "This reduce may make a value of any size: it uses what it has so far more than once"
    if any(_is_multiplied(arguments, index) for index in uses):
        return "This reduce may make a value of any size: what it has so far stands in a loop, or in what may enlarge it"
    return ""


def _is_multiplied(tokens: Sequence[Token], use: int) -> bool:
    """Tell whether a loop, a subquery or a function that may enlarge a value stands around a token."""
    return any(
        (tokens[at].text == "[" and _is_loop_or_pattern(tokens, at))
        or (tokens[at].text == "(" and at > 0 and bool(tokens[at - 1].name) and tokens[at - 1].name not in _STEADY)
        or (tokens[at].text == "{" and at > 0 and keyword(tokens[at - 1]) in _SUBQUERIES)
        for at in range(use)
        if tokens[at].kind == "mark" and tokens[at].text in CLOSING and at + 1 + len(arguments_of(tokens, at - 1)) > use
    )


def _is_loop_or_pattern(tokens: Sequence[Token], opened: int) -> bool:
    return any(token.text == "|" or keyword(token) == "IN" for token in arguments_of(tokens, opened - 1))


def _is_compared(tokens: Sequence[Token], index: int) -> bool:
    around = [tokens[at] for at in (index - 1, index + 1) if 0 <= at < len(tokens)]
    if any((keyword(token) or token.text) in _COMPARED for token in around):
        return True
    if [keyword(token) for token in around] == ["CASE", "WHEN"]:
        return True
    return index > 1 and tokens[index - 1].text == "(" and tokens[index - 2].name in _SIZES


def check_work(tokens: Sequence[Token]) -> None:
    """Refuse what no time limit of the server stops: nested loops, collected lists, conditions that multiply, patterns.

    Raises:
        KnowledgeGuardError: It holds one.
    """
    _check_loops(tokens)
    _check_subqueries(tokens)
    _check_reduced(tokens)
    _check_united(tokens)
    check_labels(tokens)
    check_conditions(tokens)
    check_values(tokens)
    check_collected(tokens)
    check_repeated(tokens)
    for index, token in enumerate(tokens):
        if token.text == "=~":
            _check_match(token, tokens[index + 1 : index + 3])


def _check_loops(tokens: Sequence[Token]) -> None:
    """Refuse a loop over a list inside of another, unless what the inner or the outer one walks over is small by its nature."""
    open_brackets: list[tuple[bool, bool]] = []
    for index, token in enumerate(tokens):
        if token.kind != "mark":
            continue
        if token.text in CLOSING:
            loops = _opens_loop(tokens, index)
            wide = loops and not _is_small_list(tokens, index)
            if wide and any(is_wide for _, is_wide in open_brackets):
                raise refusal("A list is walked over inside of another; nothing stops that. Use UNWIND", token)
            if loops and sum(is_loop for is_loop, _ in open_brackets) > 1:
                raise refusal("Lists are walked over three deep; nothing stops that. Use UNWIND", token)
            open_brackets.append((loops, wide))
        elif token.text in CLOSING.values() and open_brackets:
            open_brackets.pop()


def _check_reduced(tokens: Sequence[Token]) -> None:
    """Refuse long texts beside a `reduce`, which copies what it has so far with each step: 50,000 characters took it 9 s."""
    if any(token.name == "reduce" for token in tokens):
        for token in tokens:
            if token.kind == "string" and len(token.text) > MAX_REDUCED_CHARS + 2:
                raise refusal(f"A text of more than {MAX_REDUCED_CHARS:,} characters cannot stand beside reduce", token)


def _check_subqueries(tokens: Sequence[Token]) -> None:
    """Refuse subqueries far inside of each other: each level multiplies the time to plan, which no limit stops.

    Twenty times `COUNT { MATCH (x) WHERE 0 < COUNT {…} }` kept the planner busy for minutes under a limit of two seconds.
    """
    opened: list[bool] = []
    for index, token in enumerate(tokens):
        if token.kind != "mark":
            continue
        if token.text in CLOSING:
            opened.append(token.text == "{" and index > 0 and keyword(tokens[index - 1]) in _SUBQUERIES)
            if sum(opened) > MAX_SUBQUERIES_DEEP:
                raise refusal(f"Subqueries stand more than {MAX_SUBQUERIES_DEEP} deep in each other; split them by WITH", token)
        elif token.text in CLOSING.values() and opened:
            opened.pop()


def _check_united(tokens: Sequence[Token]) -> None:
    """Refuse subqueries with UNION one behind the other: each multiplies the rows, and no limit stops that.

    Thirty times `CALL (a) { RETURN a AS b UNION ALL RETURN a AS b }` was seen to run for 12 s under a limit of two.
    """
    united, opened = 1, list[int]()
    for index, token in enumerate(tokens):
        if token.text == "{" and token.kind == "mark":
            opened.append(1)
        elif token.text == "}" and token.kind == "mark" and opened:
            united *= opened.pop()
        elif keyword(token) == "UNION" and opened and opens_part(tokens, index):
            opened[-1] += 1
        if united > MAX_UNITED:
            raise refusal(f"Subqueries with UNION make more than {MAX_UNITED} rows of one; unite them in one subquery", token)


def _opens_loop(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].text == "[":
        return _text(tokens, index + 2) == "IN"
    return tokens[index].text == "(" and index > 0 and keyword(tokens[index - 1]) in _LOOPS


def _is_small_list(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether the loop that opens here walks over the labels of a node, a path, or a list that is written out."""
    for at in range(index + 1, min(index + 12, len(tokens) - 1)):
        if _text(tokens, at) == "IN":
            return _is_small(tokens, at + 1)
    return False


def _is_small(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether the list that begins here is small by its nature and nothing is added to it."""
    first = tokens[index]
    if (first.name or first.text) not in _SMALL:
        return False
    opened = index if first.text == "[" else index + 1
    inside = arguments_of(tokens, opened - 1)
    if first.text == "[" and _is_loop_or_pattern(tokens, opened):
        return False
    return _text(tokens, opened + len(inside) + 2) in _ENDS


_ENDS = frozenset(["|", "WHERE", ")", "]"])


def _text(tokens: Sequence[Token], index: int) -> str:
    if index >= len(tokens):
        return ""
    return keyword(tokens[index]) or tokens[index].text


def _check_match(operator: Token, following: Sequence[Token]) -> None:
    """Refuse a regular expression that is not written out, or that backtracks without an end."""
    is_written = bool(following) and following[0].kind == "string" and not following[0].text.startswith("$")
    if not is_written or (len(following) > 1 and following[1].text in ("+", "||", "[")):
        raise refusal(
            "A regular expression has to be written out as one string; CONTAINS and STARTS WITH take any value", operator
        )
    if reason := pattern_fault(following[0].text[1:-1]):
        raise refusal(reason, following[0])
