"""Small languages inside a statement for Trino that can ask for much in few letters: paths, templates, row patterns.

Sources: the pages "JSON functions and operators", "String functions" and "Row pattern recognition in window structures" of
Trino's manual, and `java.util.Formatter`, which its `format` is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import factorial, prod

from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node, text_of

MAX_PATTERN = 500
_MOST = 10**9

_WIDTH = re.compile(r"\d+")
_ARGUMENT = re.compile(r"%(?!%)")
_SUBSCRIPTS = re.compile(r"\[([^\[\]]*)\]")


def template_size(template: str, argument: int) -> int:
    """Return how long the text of a template of `format` can become, whose arguments have up to `argument` characters."""
    widths = sum(min(int(width[:10]), _MOST) for width in _WIDTH.findall(template))
    return len(template) + widths + len(_ARGUMENT.findall(template)) * argument


def path_growth(path: str, size: int) -> int:
    """Return how often a path of JSON may visit each part of a document of `size` bytes.

    Each further mark of the root, filter or descent starts over for every part; each further subscript in one pair of brackets
    takes the same parts once more, and a range asks for each of its places.
    """
    starts = max(path.count("$"), 1) + path.count("?") * (path.count("$") < 2 or path.count("@") > 1) + path.count("..") - 1
    repeats = prod(sum(map(_places, subscripts.split(","))) for subscripts in _SUBSCRIPTS.findall(path)[:64])
    return min(max(1, size // 5) ** min(starts, 12) * repeats, _MOST)


def _places(subscript: str) -> int:
    """Return how many places a subscript of a path names."""
    numbers = [int(number[:10]) for number in _WIDTH.findall(subscript)]
    return max(1, max(numbers, default=0) - (min(numbers) if len(numbers) > 1 else 0) + 1) if "to" in subscript else 1


def pattern_size(parts: Sequence[Node]) -> int:
    """Return how many steps a row pattern has once its counts and permutations are written out."""
    sizes: list[int] = []
    for index, part in enumerate(parts):
        if isinstance(part, Group) and part.opened.text == "{" and sizes and _is_count(part):
            sizes[-1] *= _count(part)
        elif isinstance(part, Group):
            sizes.append(_permutations(part) if part.called == "permute" else pattern_size(part.parts))
            if part.name is not None and part.called != "permute":  # A name before a bracket: one step more.
                sizes.append(1)
        elif text_of(part) not in ("?", "*", "+", "|", "-", ",", "^", "$") or not index:
            sizes.append(1)
    return min(sum(sizes), _MOST)


def _permutations(group: Group) -> int:
    items = group.items()
    return factorial(min(len(items), 12)) * sum(pattern_size(item) for item in items)


def _is_count(group: Group) -> bool:
    return all(isinstance(part, Token) and (part.kind == "number" or part.text == ",") for part in group.parts)


def _count(group: Group) -> int:
    numbers = [int(part.text[:10]) for part in group.parts if isinstance(part, Token) and part.text.isdecimal()]
    return max(numbers, default=1)
