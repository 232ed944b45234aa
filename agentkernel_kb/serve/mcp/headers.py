"""Headers that decide something: a request that holds one of them twice is refused, as two readers may take different ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_DECIDING = (b"authorization", b"host", b"origin", b"content-type", b"mcp-session-id", b"mcp-protocol-version")


class SingleHeaders:
    """ASGI middleware that answers 400 to a request with two headers of a kind that decides who asks, from where or of what.

    Source: RFC 9110 section 5.3, none of these is a list. What is in front of this server may have looked at the other one.

    Args:
        app: What serves the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        names = [name.lower() for name, _ in scope.get("headers", ())]
        doubled = next((name for name in _DECIDING if names.count(name) > 1), None)
        if doubled is None:
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse(f"The header {doubled.decode()} stands twice.", 400)(scope, receive, send)
