"""What a function returned for short texts: a corpus has few words, often, and what becomes of each is found out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")

_LONGEST = 128


class Memo(dict[str, V]):
    """A function of a text as a mapping that remembers: `memo[text]` calls it only for what is new.

    Full, it forgets everything: what is frequent is soon back, and nothing has to be kept in order meanwhile. Several threads
    may ask it. A text of more than 128 characters is not remembered.

    Args:
        function: What is asked for a text that is new; it always returns the same for the same text.
        most: How many texts are remembered.
    """

    def __init__(self, function: Callable[[str], V], most: int) -> None:
        super().__init__()
        self._function, self._most = function, most

    def __missing__(self, text: str) -> V:
        value = self._function(text)
        if len(text) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[text] = value
        return value
