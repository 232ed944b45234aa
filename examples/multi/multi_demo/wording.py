"""What the stand-in can read out of plain English: words without endings, names, quantities and their bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(r"(?<!\w)[\"“'‘](\w[^\"”'’]*)[\"”'’](?!\w)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ENDINGS = (
    *("ations", "ation", "ances", "ance", "ments", "ment", "ated", "ates", "ate"),  # codespell:ignore ment
    *("ings", "ing", "ous", "als", "al", "ies", "ied", "ers", "er", "ed", "es", "e", "s", "y"),  # codespell:ignore als
)
_STOP_WORDS = frozenset(
    _WORD.findall(
        """
        a about after all also am an and any are as at be been before both but by can come could did do does each every for from
        get give go goes had has have he her his how i if in into is it its keep let make many may me more most much must my
        need not of on one or our out please say says shall she should so take tell than that the their them then there
        these they this those to under up us use used was we were what when where which while who whom whose why will
        with within would you your
        """
    )
)
_JOINING = frozenset(_WORD.findall("al da das de del di do dos du el la las le los of the y"))
_UNITS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "": 1.0}
_NUMBER = r"(\d[\d,]*(?:\.\d+)?)\s*(thousand|million|billion)?"
_BETWEEN = re.compile(rf"between\s+{_NUMBER}\s+and\s+{_NUMBER}", re.IGNORECASE)
_MORE = re.compile(rf"(more than|over|above|at least)\s+{_NUMBER}", re.IGNORECASE)
_LESS = re.compile(rf"(fewer than|less than|under|below|up to|at most)\s+{_NUMBER}", re.IGNORECASE)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_END_INCLUDED = ("at least", "up to", "at most")
_MOST = frozenset(("largest", "biggest", "most", "highest", "greatest", "longest", "top"))
_LEAST = frozenset(("smallest", "least", "lowest", "fewest", "shortest"))


@dataclass(frozen=True)
class Bounds:
    """A range of numbers as a sentence states it, such as `more than 5 million`; `closed` when its ends belong to it."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = True

    def hold(self, value: float) -> bool:
        """Tell whether `value` lies in the range."""
        return self.low <= value <= self.high if self.closed else self.low < value < self.high


def stem(word: str) -> str:
    """Return a word in lower case without its ending, so that `approval`, `approves` and `approved` are one."""
    folded = word.casefold()
    return next(
        (folded[: -len(ending)] for ending in _ENDINGS if folded.endswith(ending) and len(folded) >= len(ending) + 3), folded
    )


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return [word.casefold() for word in _WORD.findall(text)]


def stems(text: str) -> set[str]:
    """Return the stems of the words that carry meaning."""
    return {stem(word) for word in words(text) if word not in _STOP_WORDS}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a heading or a line end after a full stop ends one, too."""
    paragraphs = re.split(r"\n\s*\n", text)
    return [part for paragraph in paragraphs for part in _SENTENCE_END.split(" ".join(paragraph.split())) if part]


def names(question: str) -> list[str]:
    """Return what looks like a name: quoted text, and runs of capitalised words that open no question and are no month."""
    found = [match.strip() for match in _QUOTED.findall(question)]
    run: list[str] = []
    for token in _QUOTED.sub(" ", question).split()[1:]:
        bare = token.strip("?.!,;:()").removesuffix("'s").removesuffix("’s")
        if (bare[:1].isupper() and bare not in MONTHS) or (run and bare in _JOINING):
            run.append(bare)
        else:
            found.append(_without_trailing_joiners(run))
            run = []
        if token[-1] in "?.!,;:":
            found.append(_without_trailing_joiners(run))
            run = []
    found.append(_without_trailing_joiners(run))
    return list(dict.fromkeys(name for name in found if len(name) > 1))


def _without_trailing_joiners(run: list[str]) -> str:
    kept = list(run)
    while kept and kept[-1] in _JOINING:
        kept.pop()
    return " ".join(kept)


def bounds(text: str) -> list[Bounds]:
    """Return the ranges that a text states, those with two ends first."""
    found = [
        Bounds(_number(low, unit or high_unit), _number(high, high_unit))
        for low, unit, high, high_unit in _BETWEEN.findall(text)
    ]
    rest = _BETWEEN.sub(" ", text)
    found += [Bounds(low=_number(*end), closed=word.casefold() in _END_INCLUDED) for word, *end in _MORE.findall(rest)]
    return found + [Bounds(high=_number(*end), closed=word.casefold() in _END_INCLUDED) for word, *end in _LESS.findall(rest)]


def _number(digits: str, unit: str) -> float:
    return float(digits.replace(",", "")) * _UNITS[unit.casefold()]


def direction(question: str) -> str:
    """Return `DESC` for a superlative such as `largest`, `ASC` for one such as `smallest`, `""` for none."""
    asked = set(words(re.sub(r"\b(at most|at least)\b", " ", question, flags=re.IGNORECASE)))
    return "DESC" if asked & _MOST else "ASC" if asked & _LEAST else ""


def counts(question: str, topic: str) -> bool:
    """Tell whether things are to be counted: `how many` or `number of` stands shortly before the word with this stem."""
    found = re.search(r"\b(?:how many|number of)\s+((?:\S+\s*){1,3})", question, re.IGNORECASE)
    return bool(found) and topic in stems(found[1])
