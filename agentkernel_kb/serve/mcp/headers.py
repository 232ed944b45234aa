"""Heads of requests that two readers may take differently, or that are too long: refused before anything else is looked at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_DECIDING = (b"authorization", b"host", b"origin", b"content-type", b"mcp-session-id", b"mcp-protocol-version")
_MOST_HEAD_BYTES = 64 * 1024
_AFTER_NAME = re.compile(rb":(?!\d{0,5}\Z)")  # A colon that no port follows.


class CheckedHeaders:
    """ASGI middleware that refuses a request whose head is long or says something in two ways.

    A header that decides who asks, from where or of what may stand once: what is in front of this server may have looked at
    the other one. Behind the name in `Host` and `Origin` there may be a port and nothing else: the SDK takes whatever begins
    with an allowed name and a colon.

    Source: RFC 9110 sections 5.3 (none of these is a list) and 4.2.1; RFC 6585 section 5.

    Args:
        app: What serves the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        refusal = _refusal(scope.get("headers", ()))
        await (self._app if refusal is None else refusal)(scope, receive, send)


def _refusal(headers: list[tuple[bytes, bytes]]) -> Response | None:
    names = [name.lower() for name, _ in headers]
    doubled = next((name for name in _DECIDING if names.count(name) > 1), None)
    if doubled is not None:
        return PlainTextResponse(f"The header {doubled.decode()} stands twice.", 400)
    if sum(len(name) + len(value) for name, value in headers) > _MOST_HEAD_BYTES:
        return PlainTextResponse("The head of the request is too long.", 431)
    decides = dict(zip(names, (value for _, value in headers), strict=True))
    if _AFTER_NAME.search(_after_address(decides.get(b"host", b""))):
        return PlainTextResponse("Invalid Host header", 421)
    if _AFTER_NAME.search(_after_address(decides.get(b"origin", b"").rpartition(b"://")[2])):
        return PlainTextResponse("Invalid Origin header", 403)
    return None


def _after_address(authority: bytes) -> bytes:
    """Return what stands behind an IPv6 address in brackets, whose colons are its own; else the whole."""
    return authority.rpartition(b"]")[2]
