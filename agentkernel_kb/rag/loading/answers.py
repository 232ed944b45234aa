"""What a server answers, read and decompressed without ever taking more than was asked for."""

from __future__ import annotations

import io
import zlib
from http.client import HTTPException, HTTPResponse
from socket import socket
from typing import Any

_GZIP_BEGINS = b"\x1f"


class BoundedResponse(HTTPResponse):
    """An answer that is never read to its end at once.

    The standard library takes the size of a chunk as it is sent, and for a negative one reads until the server closes.
    """

    def __init__(self, sock: socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = _BoundedReader(sock.makefile("rb", buffering=0))


class _BoundedReader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            raise HTTPException("a chunk of a negative size")
        return super().read(size)


class Decompressor:
    """Decompresses a page piece by piece; parts of gzip that follow each other are one page (RFC 1952, 2.2).

    Args:
        window_bits: As zlib takes them: which format it is.
    """

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._part = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        """Whether the last part that began is complete."""
        return self._part.eof

    def decompress(self, piece: bytes, most: int) -> bytes:
        """Return at most so many bytes of what a piece becomes; what would be beyond them is lost.

        Raises:
            zlib.error: It is damaged.
        """
        found = bytearray()
        while piece and len(found) < most:
            if self._part.eof:
                if self._window_bits <= zlib.MAX_WBITS or not piece.startswith(_GZIP_BEGINS):
                    break  # What stands behind the last part belongs to nothing.
                self._part = zlib.decompressobj(self._window_bits)
            found += self._part.decompress(piece, most - len(found))
            piece = self._part.unused_data
        return bytes(found)
