"""Instants as the format writes them. Source: OKF 0.2 §5; the two spellings of time and their history are in docs/okf.md."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SEPARATOR = re.compile("[Tt ]+")
_INSTANT = re.compile(
    r"(?:\d{4}-\d\d-\d\d[Tt ]+\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?|\d{8}[Tt]\d{4}(?:\d\d)?) ?(?P<offset>[Zz]|[+-]\d\d(?::?\d\d)?)?"
)


class Instant(NamedTuple):
    """A time that was read.

    Attributes:
        moment: The instant, `None` where it cannot be read.
        doubt: What was wrong with it, as the end of a sentence; `""` for nothing.
        exact: It has a time and an offset.
    """

    moment: datetime | None
    doubt: str = ""
    exact: bool = True


def read_instant(value: object) -> Instant:
    """Return the instant that a value of the frontmatter means.

    A date alone is the start of that day in UTC, and a time without an offset is that time in UTC, both with a doubt.
    """
    return _read(value.strip()) if isinstance(value, str) else Instant(None, "is no date and time", exact=False)


@lru_cache(maxsize=1_024)
def _read(text: str) -> Instant:
    if _DATE.fullmatch(text):
        return _checked(text, "has no time; it is read as the start of that day in UTC")
    found = _INSTANT.fullmatch(text)
    if not found:
        return Instant(None, "is no ISO 8601 date and time", exact=False)
    if " " in text or "," in text:
        text = _SEPARATOR.sub("T", text, count=1).replace(" ", "").replace(",", ".")
    return _checked(text.upper(), "" if found["offset"] else "has no offset; it is read as UTC")


def _checked(text: str, doubt: str) -> Instant:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return Instant(None, "is no date that exists", exact=False)
    return Instant(moment.replace(tzinfo=moment.tzinfo or UTC), doubt, exact=not doubt)
