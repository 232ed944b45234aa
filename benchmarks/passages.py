"""Passages for the benchmarks of managed knowledge, with the standard library only: other libraries' environments use it too.

With `KB_DATA`, a folder with `cranfield/` in it, they are made of real text; without it of made-up words.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DATA = os.environ.get("KB_DATA", "")
CRANFIELD = Path(DATA, "cranfield") if DATA else None
WORDS = 120


class Passage(NamedTuple):
    """A text of about one chunk, where it stands, and what is said of it."""

    text: str
    source: str
    metadata: dict[str, Any]


def lines(name: str) -> list[dict[str, Any]]:
    """Return the records of one of Cranfield's files."""
    assert CRANFIELD is not None
    return [json.loads(line) for line in (CRANFIELD / name).read_text(encoding="utf-8").splitlines()]


def vocabulary() -> list[str]:
    """Return words in the order of real text, or made-up ones, the frequent more often."""
    if CRANFIELD is not None:
        return [word for record in lines("corpus.jsonl") for word in str(record["text"]).split()]
    draw = random.Random(1)
    return [f"word{int(draw.paretovariate(0.8)) % 20_000}" for _ in range(200_000)]


def passages(count: int) -> Iterator[Passage]:
    """Yield so many passages, the same at each call."""
    words, draw = vocabulary(), random.Random(2)
    for number in range(count):
        start = draw.randrange(len(words) - WORDS)
        yield Passage(" ".join(words[start : start + WORDS]), f"{number}.md", {"year": number % 10})


def questions(count: int) -> list[str]:
    """Return so many questions of eight words."""
    words, draw = vocabulary(), random.Random(3)
    return [" ".join(draw.sample(words, 8)) for _ in range(count)]
