"""Agents over streamable HTTP: each has a server and sessions of its own, behind its tokens."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.serve.mcp.agent import ServedAgent, all_served
from agentkernel_kb.serve.mcp.connection import protocol_within
from agentkernel_kb.serve.mcp.headers import CheckedHeaders
from agentkernel_kb.serve.mcp.leaving import Leaving
from agentkernel_kb.serve.mcp.listening import ListeningServer
from agentkernel_kb.serve.mcp.server import make_server
from agentkernel_kb.serve.mcp.settings import HTTPSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_SHUTDOWN_S = 5
_KEEP_ALIVE_S = 75  # An agent thinks between two calls: uvicorn's 5 s would close the connection under the next one.


def run(
    agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent],
    settings: HTTPSettings,
    on_listening: Callable[[str], object],
) -> None:
    """Serve until the process is told to end.

    Raises:
        AKConfigError: It cannot listen there.
    """
    ListeningServer(make_config(agents, settings), settings, on_listening).run()


def make_config(agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent], settings: HTTPSettings) -> uvicorn.Config:
    """Return how uvicorn is to serve.

    It logs as the program does, and writes no access log, so that it says nothing on stdout.
    """
    return uvicorn.Config(
        make_app(agents, settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        http=protocol_within(settings.request_s),  # By h11, which bounds the head of a request; httptools does not.
        ws="none",
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )


def make_app(agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent], settings: HTTPSettings) -> Starlette:
    """Return the application.

    Raises:
        AKConfigError: An agent that needs a token has none, or two share a name or a token.
    """
    listed = all_served(agents)
    _check_tokens(listed, settings)
    managers = {agent.name: _manager(agent, settings) for agent in listed}

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as running:
            for manager in managers.values():
                await running.enter_async_context(manager.run())
            yield

    if any(agent.tokens for agent in listed):
        endpoint: ASGIApp = RequireAuthMiddleware(_ByAgent(managers), required_scopes=[])
        middleware = [Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(_Tokens(listed)))]
    else:
        (manager,) = managers.values()
        endpoint, middleware = manager.handle_request, []
    middleware.insert(0, Middleware(CheckedHeaders))
    # A class, as Starlette takes a plain function for one of its own handlers.
    return Starlette(routes=[Route(settings.path, endpoint=Leaving(endpoint))], middleware=middleware, lifespan=lifespan)


def _check_tokens(agents: list[ServedAgent], settings: HTTPSettings) -> None:
    without = [agent.name for agent in agents if not agent.tokens]
    if without and not settings.is_loopback:
        raise AKConfigError(f"Whoever can reach '{settings.host}' could use the agents {without}: give each a token.")
    if without and len(agents) > 1:
        raise AKConfigError(f"Several agents are told apart by their tokens; these have none: {without}.")


def _manager(agent: ServedAgent, settings: HTTPSettings) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        make_server(agent),
        security_settings=TransportSecuritySettings(allowed_hosts=settings.hosts, allowed_origins=settings.origins),
        max_request_body_size=settings.max_body_bytes,
        session_idle_timeout=settings.session_idle_s,
        max_sessions=settings.max_sessions,
    )


class _Tokens:
    """Knows agents by their tokens, of which it keeps digests only."""

    def __init__(self, agents: Iterable[ServedAgent]) -> None:
        self._known = [(_digest(token), agent.name) for agent in agents for token in agent.tokens]

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is. Every known one is looked at, so that the time taken tells nothing."""
        digest = _digest(token)
        owner = ""
        for known, name in self._known:
            if hmac.compare_digest(known, digest):
                owner = name
        return AccessToken(token="", client_id=owner, scopes=[]) if owner else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class _ByAgent:
    """Hands a request on to the sessions of the agent whose token it bears: those of others do not exist for it."""

    def __init__(self, managers: dict[str, StreamableHTTPSessionManager]) -> None:
        self._managers = managers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._managers[scope["user"].access_token.client_id].handle_request(scope, receive, send)
