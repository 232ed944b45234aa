"""What somebody probably meant who wrote a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

_MOST_COMPARED_CHARS = 128
_MOST_COMPARED_NAMES = 1_000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, letter case left aside; `None` where none is like it.

    It looks at the first 128 characters of the name, and at the first 1,000 known names.
    """
    from difflib import get_close_matches  # Only a failure needs it.

    names = {other.casefold(): other for other in reversed(list(islice(known, _MOST_COMPARED_NAMES)))}
    near = get_close_matches(name[:_MOST_COMPARED_CHARS].casefold(), names, n=1, cutoff=0.6)
    return names[near[0]] if near else None


def hint(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean '…'?` of the nearest known name, to stand behind a sentence; empty where none is like it."""
    near = nearest(name, known)
    return f" Did you mean '{near}'?" if near else ""


def meant(name: str, known: Mapping[str, str], *, cutoff: float = 0.6) -> list[str]:
    """Return what at most three known names stand for that `name` may have been meant for, the nearest first.

    Args:
        name: What was written; letter case does not count.
        known: Each known name in small letters, and what stands for it in the answer.
        cutoff: How alike they have to be, from 0 to 1, by `difflib`'s ratio.
    """
    from difflib import get_close_matches

    return [known[match] for match in get_close_matches(name.lower()[:_MOST_COMPARED_CHARS], list(known), n=3, cutoff=cutoff)]
