"""A client that goes away in the middle of a call: the call is cancelled, whatever the age of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

T = TypeVar("T")

_GONE = "agentkernel_kb.gone"


class Leaving:
    """ASGI middleware that remembers, for the call inside a request, whether its client is still there.

    The SDK cancels by itself what was asked in the newest form of the protocol, where a request stands alone. In the older one
    it lets a call go on, for a client that comes back and asks for the events it missed; no events are kept here.

    Args:
        app: What serves the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        gone = anyio.Event()
        scope[_GONE] = gone

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        try:
            await self._app(scope, watched, send)
        finally:
            gone.set()


async def while_there(request: Request | None, work: Callable[[], Awaitable[T]]) -> T:
    """Do something for a client, and leave it as soon as the client is gone.

    Args:
        request: The client's request; `None` where the transport has none.
        work: What to do.

    Raises:
        MCPError: The client is gone; nobody reads this.
    """
    gone: anyio.Event | None = None if request is None else request.scope.get(_GONE)
    if gone is None:
        return await work()
    done: list[T] = []
    failed: list[Exception] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_cancelled_by, gone, group.cancel_scope)
        try:
            done.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again below: here it would become a group of one
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    if not done:
        raise MCPError(code=INTERNAL_ERROR, message="The client is gone.")
    return done[0]


async def _cancelled_by(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()
