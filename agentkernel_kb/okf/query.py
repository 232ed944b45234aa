"""What a search asks for: words, "phrases", prefix*, and the filters type:, tag: and path:."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentkernel_kb.lexical.text import is_unspaced, pairs, runs_of, words_of
from agentkernel_kb.lexical.words import FUNCTION_WORDS, variants

MAX_GROUPS = 32
"""Most different words of a query that count; the first ones do."""

MAX_CHARS = 4_000

_PART = re.compile(
    r'(?P<field>type|tag|tags|path):(?:"(?P<quoted>[^"]+)"|(?P<bare>[^\s"]+))|"(?P<phrase>[^"]+)"|(?P<word>[^\s"]+)',
    re.IGNORECASE,
)
_MAX_TERM = 100
_FUNCTION_WORDS = frozenset((word,) for word in FUNCTION_WORDS)


@dataclass(frozen=True, slots=True)
class Group:
    """Something that a text may have in one of several forms.

    Attributes:
        forms: The forms, each a phrase of one or several terms of the index.
        prefix: Each form is only how its last term begins.
    """

    forms: tuple[tuple[str, ...], ...]
    prefix: bool = False

    def expression(self) -> str:
        """Return it in the language of FTS5: quoted, so that nothing in it is syntax."""
        star = " *" if self.prefix else ""
        return " OR ".join('"' + " ".join(form).replace('"', '""') + f'"{star}' for form in self.forms)


@dataclass(frozen=True, slots=True)
class Query:
    """What a search asks for.

    Attributes:
        words: What may be there; the more of it, the better.
        required: Phrases that have to be there.
        types: Words that the type has to have, each filter for itself.
        tags: Tags of which it has to have each; one that ends in `*` is how a tag begins.
        paths: Places beneath which it has to stand, or patterns with `*`.
        needles: Folded words, by which a text shows why it was found.
    """

    words: tuple[Group, ...] = ()
    required: tuple[Group, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    needles: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_blank(self) -> bool:
        """Whether nothing is asked for."""
        return not (self.words or self.required or self.types or self.tags or self.paths)


def parse(text: str) -> Query:
    """Return what a text asks for. Never raises; what cannot be understood is words."""
    words: list[Group] = []
    required: list[Group] = []
    filters: dict[str, list[str]] = {"type": [], "tag": [], "path": []}
    needles: list[str] = []
    sound = text[:MAX_CHARS].encode("utf-8", "replace").decode()
    for part in _PART.finditer(sound):
        value = part["quoted"] or part["bare"]
        if part["field"]:
            filters[part["field"].lower().removesuffix("s")].append(value)
        elif part["phrase"]:
            required += _phrase(part["phrase"])
            needles += runs_of(part["phrase"])
        else:
            words += _words(part["word"])
            needles += runs_of(part["word"])
    telling = _telling(words)
    shown = [needle for needle in dict.fromkeys(needles) if needle not in FUNCTION_WORDS] or needles
    return Query(
        tuple(telling[:MAX_GROUPS]),
        tuple(dict.fromkeys(required))[:MAX_GROUPS],
        tuple(filters["type"]),
        tuple(filters["tag"]),
        tuple(filters["path"]),
        tuple(form for needle in shown[:MAX_GROUPS] for form in sorted(_needle_forms(needle), key=len)),
    )


def _needle_forms(run: str) -> Iterable[str]:
    return (run, *pairs(run)) if is_unspaced(run) and len(run) > 1 else variants(run)


def _phrase(text: str) -> Iterator[Group]:
    terms = words_of(text)
    runs = runs_of(text)
    if runs and is_unspaced(runs[-1]) and len(runs[-1]) > 1:
        terms = terms[:-1]  # The last character of a run is a term of its own, which the text may go on after.
    if terms:
        only_character = len(runs) == 1 and len(runs[0]) == 1 and is_unspaced(runs[0])
        yield Group((tuple(term[:_MAX_TERM] for term in terms[:MAX_GROUPS]),), prefix=only_character)


def _words(chunk: str) -> Iterator[Group]:
    """Yield what one word of a query, up to the next blank, asks for: its parts, and all of them in a row."""
    runs = [run[:_MAX_TERM] for run in runs_of(chunk)]
    prefixed = chunk.rstrip(".,;:!?)").endswith("*")
    for place, run in enumerate(runs):
        if is_unspaced(run):
            yield from _unspaced(run)
        elif prefixed and place == len(runs) - 1:
            yield Group(((run,),), prefix=True)
        else:
            yield Group(tuple((form,) for form in variants(run)))
    if len(runs) > 1 and not prefixed:
        yield from _phrase(chunk[: _MAX_TERM * 4])


def _unspaced(run: str) -> Iterator[Group]:
    if len(run) == 1:
        yield Group(((run,),), prefix=True)
        return
    for pair in pairs(run):
        yield Group(((pair,),))
    if len(run) > 2:
        yield Group((tuple(pairs(run)[:MAX_GROUPS]),))


def _telling(words: list[Group]) -> list[Group]:
    """Return the different words without those that say little, unless there are only such."""
    different = list(dict.fromkeys(words))
    telling = [group for group in different if group.prefix or group.forms[0] not in _FUNCTION_WORDS]
    return telling or different
