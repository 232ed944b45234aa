"""Upper estimates of how large a value of Trino is, and how they come together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

MOST = 10**12
_DEEPEST = 6
_SLOT = 8
_QUOTES = 20_000


@dataclass(frozen=True)
class Size:
    """How large a value can be.

    Attributes:
        bytes: Its size in bytes, of an array with eight for each element.
        count: How many elements it has, if it is an array or a map.
        element: The largest of them; `None` where that is not known, so that it may be as large as the whole.
    """

    bytes: int
    count: int = 1
    element: Size | None = None

    @property
    def largest(self) -> Size:
        """The largest element."""
        return self if self.element is None else self.element


NOTHING = Size(0, 0)
SMALL = Size(8)
"""A number, a truth, a moment."""

STORED = Size(100, 13, Size(25, 4))
"""What a column of a table counts as: how large it really is, nobody tells."""

GATHERED = Size(34_000, 400, Size(100, 13, Size(25, 4)))
"""What an aggregate of many rows counts as: it is not larger than the memory that the server gives to a query, of which a
server of 4 GB survives two copies of it, and not four."""

SKETCHED = Size(10_000, 400, Size(100, 13, Size(25, 4)))
"""What an aggregate counts as that the server keeps to a megabyte."""


def text(size: int) -> Size:
    """Return the size of a text."""
    return Size(min(size, MOST))


def array(count: int, element: Size, *, extra: int = 0) -> Size:
    """Return the size of an array of so many elements of that size."""
    each = element.bytes + (0 if element == SMALL else _SLOT)
    return Size(min(count * each + extra, MOST), min(count, MOST), _shallow(element))


def either(*sizes: Size) -> Size:
    """Return the size of a value that is one of those."""
    return reduce(_either, sizes, NOTHING)


def _either(one: Size, other: Size) -> Size:
    if one == NOTHING or one is other:
        return other
    if other == NOTHING:
        return one
    element = None if one.element is None and other.element is None else _either(one.largest, other.largest)
    return Size(max(one.bytes, other.bytes), max(one.count, other.count), element)


def together(*sizes: Size) -> Size:
    """Return the size of a value that holds all of those."""
    elements = [size.largest for size in sizes if size is not NOTHING]
    element = either(*elements) if any(size.element is not None for size in sizes) else None
    return Size(min(sum(size.bytes for size in sizes), MOST), min(sum(size.count for size in sizes), MOST), element)


def times(size: Size, factor: int) -> Size:
    """Return the size of a value in which each part is so many times as large."""
    element = None if size.element is None else times(size.element, factor)
    return Size(min(size.bytes * factor, MOST), size.count, element)


def as_json(size: Size) -> Size:
    """Return how large a value is as JSON: quotes and commas are much beside what is short."""
    whole = times(size, 3)
    return Size(min(whole.bytes, size.bytes + _QUOTES), whole.count, whole.element)


def _shallow(size: Size, depth: int = _DEEPEST) -> Size:
    """Return a size whose elements are known down to some depth, below which each may be as large as all."""
    if size.element is None:
        return size
    return Size(size.bytes, size.count, _shallow(size.element, depth - 1) if depth else None)
