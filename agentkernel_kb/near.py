"""What somebody probably meant who wrote a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, letter case left aside; `None` where none is like it."""
    from difflib import get_close_matches  # Only a failure needs it.

    names = {other.casefold(): other for other in reversed(list(known))}
    near = get_close_matches(name.casefold(), names, n=1, cutoff=0.6)
    return names[near[0]] if near else None
