"""Connections that say nothing, or too little at a time: ended, so that they do not take the place of others.

uvicorn bounds the time between two requests; nothing bounds that of the first byte, nor that of a request once it has begun.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"  # RFC 9110 section 15.5.9.
_BEING_SENT = (h11.IDLE, h11.SEND_BODY)
_UNANSWERED = (h11.IDLE, h11.SEND_RESPONSE)


def protocol_within(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol of HTTP/1.1 for connections on which each request has to be whole in time.

    The time of the first request begins with the connection, that of a later one with its first byte. An answer may take as
    long as it wants.

    Args:
        seconds: How long a request may take to arrive, its body included.
    """

    class Timed(H11Protocol):
        _end: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's own
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.conn.their_state not in _BEING_SENT or self.transport.is_closing():
                self._forget()
            elif self._end is None:
                self._end = self.loop.call_later(seconds, self._give_up)

        def _forget(self) -> None:
            if self._end is not None:
                self._end.cancel()
                self._end = None

        def _give_up(self) -> None:
            self._end = None
            if self.transport.get_write_buffer_size():  # It does not read either.
                self.transport.abort()
                return
            begun = self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]
            if begun and self.conn.our_state in _UNANSWERED:
                self.transport.write(_TOO_SLOW)
            self.transport.close()

    return Timed
