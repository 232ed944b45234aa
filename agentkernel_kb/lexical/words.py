"""Words of a query: which of them say little, and in which other number they may stand in a text."""

from __future__ import annotations

_ENGLISH = (
    "a about an and any are as at be been but by can could did do does for from had has have how i if in into is it its may me "
    "my no not of on or our she should so some than that the their them then there these they this to up was we were what when "
    "where which who why will with would you your"
)
FUNCTION_WORDS = frozenset(_ENGLISH.split())
"""Words of English that say little about what a text is about, but are all that some texts have."""

_SHORTEST = 4


def variants(word: str) -> tuple[str, ...]:
    """Return a folded word and, where it is English enough, its other number: `policy` and `policies`.

    A guess that is no word finds nothing and costs nothing; a word that has no number is as good as left alone.
    """
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return (word,)
    other = singular(word) if word.endswith("s") else _plural(word)
    return (word,) if other == word else (word, other)


def singular(word: str) -> str:
    """Return a folded word without its plural ending where it is English enough: `policies` becomes `policy`."""
    if len(word) < _SHORTEST or not word.isascii() or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _SHORTEST:
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("ch", "sh", "x", "z")) else f"{word}s"
