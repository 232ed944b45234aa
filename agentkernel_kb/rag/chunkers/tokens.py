"""ApproxTokenChunker: chunks of about so many tokens, without a tokenizer."""

from __future__ import annotations

from collections.abc import Iterator

from agentkernel_kb.rag.chunkers.base import TextChunker
from agentkernel_kb.rag.chunkers.windows import Window, check_sizes, windows

BYTES_PER_TOKEN = 4
"""Source: seed 003, which reckons `len(text.encode("utf-8")) // 4` tokens."""


def approximate_tokens(text: str) -> int:
    """Return about how many tokens a text has: its length in UTF-8, divided by four, rounded down."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) // BYTES_PER_TOKEN


class ApproxTokenChunker(TextChunker):
    """Cuts texts into chunks of at most `chunk_size` tokens, reckoned at four bytes of UTF-8 each; data passes through whole.

    Args:
        chunk_size: Most tokens of a chunk, 1 or more.
        overlap: Most tokens that a chunk repeats of the one before, below `chunk_size`.

    Raises:
        AKConfigError: A size is out of range.
    """

    def __init__(self, chunk_size: int = 256, overlap: int = 32) -> None:
        check_sizes("ApproxTokenChunker", "chunk_size", chunk_size, "overlap", overlap)
        self.chunk_size, self.overlap = chunk_size, overlap

    @property
    def fingerprint(self) -> str:
        """What chunks of equal texts are equal under."""
        return f"tokens-{self.chunk_size}-{self.overlap}-v2"

    @property
    def most_chars(self) -> int:
        """About how many characters a chunk has at most."""
        return self.chunk_size * BYTES_PER_TOKEN

    def windows(self, text: str) -> Iterator[Window]:
        """Yield where each chunk of a text begins and ends, in order."""
        return windows(text, self.reach, self._back)

    def reach(self, text: str, start: int) -> int:
        """Return how far a chunk may reach that begins at a place of a text."""
        most = self.chunk_size * BYTES_PER_TOKEN + BYTES_PER_TOKEN - 1
        ahead = text[start : start + most]
        if ahead.isascii():
            return start + most
        return start + max(1, _characters(ahead.encode("utf-8", "surrogatepass")[:most]))

    def _back(self, text: str, end: int) -> int:
        most = self.overlap * BYTES_PER_TOKEN
        behind = text[max(0, end - most) : end]
        if behind.isascii():
            return end - most
        encoded = behind.encode("utf-8", "surrogatepass")
        return end - (len(behind) - _characters(encoded[: max(0, len(encoded) - most)], partial=True))

    def __repr__(self) -> str:
        return f"ApproxTokenChunker(chunk_size={self.chunk_size}, overlap={self.overlap})"


def _characters(encoded: bytes, *, partial: bool = False) -> int:
    """Return how many characters these bytes begin; one whose last bytes are missing counts only where `partial`."""
    begun = sum(byte & 0xC0 != 0x80 for byte in encoded)
    return begun if partial or not encoded or _is_complete(encoded) else begun - 1


def _is_complete(encoded: bytes) -> bool:
    """Tell whether the last character of these bytes is all there."""
    for back in range(1, min(4, len(encoded)) + 1):
        byte = encoded[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back == length
    return True
