"""What the arguments of a call of Trino are: values, lambdas, plain numbers and strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node, text_of


class Lambda(NamedTuple):
    """A lambda: the names of its arguments in lower case, and what it returns."""

    names: list[str]
    body: list[Node]


def lambda_in(parts: Sequence[Node]) -> Lambda | None:
    """Return the lambda that an argument is, `None` where it is none."""
    arrow = next((index for index, part in enumerate(parts) if text_of(part) == "->"), None)
    if arrow is None:
        return None
    given = [inner for part in parts[:arrow] for inner in (part.parts if isinstance(part, Group) else [part])]
    return Lambda([part.name for part in given if isinstance(part, Token) and part.name], list(parts[arrow + 1 :]))


def split_arguments(group: Group) -> tuple[list[list[Node]], list[Lambda]]:
    """Return the arguments that are values, and those that are lambdas."""
    plain: list[list[Node]] = []
    lambdas: list[Lambda] = []
    for item in group.items():
        found = lambda_in(item)
        if found is None:
            plain.append(item)
        else:
            lambdas.append(found)
    return plain, lambdas


def number_in(parts: Sequence[Node]) -> int | None:
    """Return the plain number that an argument is at most, `None` where it does not say so."""
    if len(parts) != 1:
        signless = parts[1:] if parts and text_of(parts[0]) in ("-", "+") else ()
        return number_in(signless) if len(signless) == 1 else None
    part = parts[0]
    if isinstance(part, Token):
        return int(part.text[:19]) if part.text.isdecimal() and part.kind == "number" else None
    if part.called == "least":
        return min((number for item in part.items() if (number := number_in(item)) is not None), default=None)
    return None


def paths_in(parts: Sequence[Node]) -> Iterator[Token]:
    """Yield the strings in an argument that can be paths."""
    for part in parts:
        if isinstance(part, Group):
            yield from paths_in(part.parts)
        elif part.kind == "string" and ("$" in part.text or part.text[0] in "uU"):
            yield part


def literal_in(parts: Sequence[Node]) -> str | None:
    """Return the text of the plain string that an argument is, else `None`."""
    part = parts[0] if len(parts) == 1 else None
    return part.text if isinstance(part, Token) and part.kind == "string" and part.text[0] == "'" else None


def letters_in(parts: Sequence[Node]) -> int:
    """Return how many characters the names in a type have."""
    return sum(letters_in(part.parts) + len(part.called) if isinstance(part, Group) else len(part.text) for part in parts)
