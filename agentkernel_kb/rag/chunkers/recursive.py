"""RecursiveCharacterSplitter: chunks of so many characters, cut at paragraphs, lines, sentences and words if possible."""

from __future__ import annotations

from collections.abc import Iterator

from agentkernel_kb.rag.chunkers.base import TextChunker
from agentkernel_kb.rag.chunkers.windows import Window, check_sizes, windows


class RecursiveCharacterSplitter(TextChunker):
    """Cuts texts into chunks of at most `chunk_size` characters.

    Args:
        chunk_size: Most characters of a chunk, 1 or more.
        chunk_overlap: Most characters that a chunk repeats of the one before, below `chunk_size`.

    Raises:
        AKConfigError: A size is out of range.
    """

    def __init__(self, chunk_size: int = 1000, chunk_overlap: int = 150) -> None:
        check_sizes(type(self).__name__, "chunk_size", chunk_size, "chunk_overlap", chunk_overlap)
        self.chunk_size, self.chunk_overlap = chunk_size, chunk_overlap

    @property
    def fingerprint(self) -> str:
        """What chunks of equal texts are equal under."""
        return f"recursive-{self.chunk_size}-{self.chunk_overlap}-v2"

    @property
    def most_chars(self) -> int:
        """About how many characters a chunk has at most."""
        return self.chunk_size

    def reach(self, text: str, start: int) -> int:
        """Return how far a chunk may reach that begins at a place of a text."""
        return start + self.chunk_size

    def windows(self, text: str) -> Iterator[Window]:
        """Yield where each chunk of a text begins and ends, in order."""
        return windows(text, self.reach, lambda _, end: end - self.chunk_overlap)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(chunk_size={self.chunk_size}, chunk_overlap={self.chunk_overlap})"
