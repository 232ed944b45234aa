"""Five of SQLite's functions again, as their built-in forms can run for minutes on one value and cannot be interrupted.

`instr`, `replace` and `trim` with two arguments compare every position with every byte of what they look for. On values of a
megabyte that takes from ten seconds to ten minutes inside one instruction, where no progress handler and no interrupt is
seen. `unhex` with two arguments (SQLite 3.41) looks for each character among those that it skips. `printf` repeats a character
two billion times for each `%.2000000000c`, ten seconds each, before it finds the result too big (SQLite 3.40). These forms give
the same results in linear time, and give up at the deadline.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Value: TypeAlias = str | bytes | int | float | None

_FEW_CHARACTERS = 64
# Flags, width, precision and kind, as `printf.c` of SQLite reads them; a width or precision may be the next argument.
_CONVERSION = re.compile(r"%[-+ 0#,!]*(\*|[0-9]+)?(?:\.(\*|[0-9]*))?l{0,2}(.)", re.DOTALL)
_LEADING_NUMBER = re.compile(r"\s*[-+]?([0-9]+)")
_CUT_BY_PRECISION = frozenset("sqQwz")
_MAX_DIGITS = 9
_PAIR = re.compile("[0-9a-fA-F]{2}")
_DIGITS = frozenset("0123456789abcdefABCDEF")


class LinearFunctions:
    """The replacements for one connection.

    Args:
        give_up: Called before each computation; raises when time is out.
        max_chars: Longest result.
    """

    def __init__(self, give_up: Callable[[], None], max_chars: int) -> None:
        self._give_up = give_up
        self._max_chars = max_chars
        self._native = sqlite3.connect(":memory:", check_same_thread=False)
        self._native.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_chars)

    def install(self, connection: sqlite3.Connection) -> None:
        """Put the replacements in the place of the built-in functions."""
        replacements: list[tuple[str, int, Callable[..., Any]]] = [
            ("instr", 2, self.instr),
            ("replace", 3, self.replace),
            ("trim", 2, self.trim),
            ("ltrim", 2, self.ltrim),
            ("rtrim", 2, self.rtrim),
            ("unhex", 2, self.unhex),
            ("printf", -1, self.printf),
            ("format", -1, self.printf),
        ]
        for name, arguments, function in replacements:
            connection.create_function(name, arguments, function, deterministic=True)

    def close(self) -> None:
        """Release what the conversion of numbers needs."""
        self._native.close()

    def instr(self, value: Value, wanted: Value) -> int | None:
        """Return the place of `wanted` in `value`, counted from 1, or 0."""
        self._give_up()
        if value is None or wanted is None:
            return None
        if isinstance(value, bytes) and isinstance(wanted, bytes):
            return value.find(wanted) + 1
        return self._text(value).find(self._text(wanted)) + 1

    def replace(self, value: Value, wanted: Value, new: Value) -> Value:
        """Return `value` with every `wanted` replaced."""
        self._give_up()
        if value is None or wanted is None:
            return None
        pattern = self._text(wanted)
        if not pattern:
            return self._text(value) if isinstance(value, bytes) else value
        if new is None:
            return None
        text, replacement = self._text(value), self._text(new)
        growth = len(replacement) - len(pattern)
        if growth > 0 and len(text) + text.count(pattern) * growth > self._max_chars:
            raise OverflowError  # SQLite reports it as a value that is too big.
        return text.replace(pattern, replacement)

    def trim(self, value: Value, characters: Value) -> str | None:
        """Return `value` without the given characters at both ends."""
        return self.rtrim(self.ltrim(value, characters), characters)

    def ltrim(self, value: Value, characters: Value) -> str | None:
        """Return `value` without the given characters at its start."""
        self._give_up()
        if value is None or characters is None:
            return None
        text, unwanted = self._text(value), self._text(characters)
        if len(unwanted) <= _FEW_CHARACTERS:
            return text.lstrip(unwanted) if unwanted else text
        known = set(unwanted)
        return text[next((index for index, character in enumerate(text) if character not in known), len(text)) :]

    def rtrim(self, value: Value, characters: Value) -> str | None:
        """Return `value` without the given characters at its end."""
        if value is None or characters is None:
            return None
        trimmed = self.ltrim(self._text(value)[::-1], characters)
        return None if trimmed is None else trimmed[::-1]

    def unhex(self, value: Value, skipped: Value) -> bytes | None:
        """Return the bytes for which the pairs of digits in `value` stand, or `None` if others than `skipped` stand between."""
        self._give_up()
        if value is None or skipped is None:
            return None
        text = self._text(value).partition("\0")[0]
        between = set(_PAIR.sub("", text))
        if between & _DIGITS or not between <= set(self._text(skipped)):
            return None
        return bytes.fromhex("".join(_PAIR.findall(text)))

    def printf(self, *values: Value) -> Value:
        """Return `values[0]` with its conversions filled in by the other values."""
        self._give_up()
        if not values or values[0] is None:
            return None
        if sum(_padding(self._text(values[0]), values[1:])) > self._max_chars:
            raise OverflowError  # SQLite reports it as a value that is too big.
        statement = f"SELECT printf({', '.join('?' * len(values))})"
        return self._native.execute(statement, values).fetchone()[0]

    def _text(self, value: str | bytes | float) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, int):
            return str(value)
        return str(self._native.execute("SELECT CAST(? AS TEXT)", (value,)).fetchone()[0])


def _padding(form: str, values: tuple[Value, ...]) -> Iterator[int]:
    """Yield how many characters each conversion of a format may add by its width and its precision."""
    given = iter(values)
    for width, precision, kind in _CONVERSION.findall(form):
        widest = _count(next(given, None) if width == "*" else width)
        longest = _count(next(given, None) if precision == "*" else precision)
        if kind not in "%n":
            next(given, None)
        yield widest if kind in _CUT_BY_PRECISION else widest + longest


def _count(value: Value) -> int:
    """Return a width or a precision without its sign; one that has too many digits is as large as any."""
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) else None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    number = _LEADING_NUMBER.match(text)
    if number is None:
        return 0
    digits = number[1].lstrip("0")
    return int(digits or 0) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS
