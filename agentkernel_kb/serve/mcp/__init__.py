"""MCP: the gated tools of one agent over stdio, or of several agents over streamable HTTP, each known by its token.

The SDK is loaded by the call that serves. Nothing here closes a builder: whoever made it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agentkernel_kb.errors import KnowledgeDependencyError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.serve.mcp.agent import ServedAgent, served
from agentkernel_kb.serve.mcp.settings import HTTPSettings

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.applications import Starlette

__all__ = ["HTTPSettings", "ServedAgent", "http_app", "mcp_server", "run_http", "run_stdio", "serve_stdio"]


def mcp_server(agent: ServedAgent | KnowledgeBuilder) -> Server[Any]:
    """Return the SDK's server of one agent, for a transport of the application's own.

    Raises:
        KnowledgeDependencyError: The extra `mcp` is missing.
    """
    _require_sdk()
    from agentkernel_kb.serve.mcp.server import make_server

    return make_server(served(agent))


async def serve_stdio(agent: ServedAgent | KnowledgeBuilder) -> None:
    """Serve one agent on this process's stdin and stdout until stdin ends.

    While it serves, what anything else prints goes to stderr: stdout carries frames and nothing more.

    Args:
        agent: The agent, or just its builder. Tokens are not asked for: whoever started the process is the client.

    Raises:
        KnowledgeDependencyError: The extra `mcp` is missing.
    """
    _require_sdk()
    from agentkernel_kb.serve.mcp.stdio import serve

    await serve(served(agent))


def run_stdio(agent: ServedAgent | KnowledgeBuilder) -> None:
    """`serve_stdio` for a program that has no event loop yet.

    Raises:
        KnowledgeDependencyError: The extra `mcp` is missing.
    """
    import asyncio

    asyncio.run(serve_stdio(agent))


def http_app(agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent], settings: HTTPSettings | None = None) -> Starlette:
    """Return an ASGI application that serves agents over streamable HTTP; its lifespan has to be run, as servers do.

    Args:
        agents: One agent, which may do without a token where the host is loopback; or several, each with tokens of its own.
        settings: Where it is served and within which bounds; the default is loopback.

    Raises:
        AKConfigError: An agent that can be reached from elsewhere, or is not the only one, has no token; two share a name or
            a token; there is no agent.
        KnowledgeDependencyError: The extra `mcp` is missing.
    """
    _require_sdk()
    from agentkernel_kb.serve.mcp.http import make_app

    return make_app(agents, settings or HTTPSettings())


def run_http(
    agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent],
    settings: HTTPSettings | None = None,
    *,
    on_listening: Callable[[str], object] = lambda _url: None,
) -> None:
    """Serve agents over streamable HTTP until the process is told to end (SIGINT, SIGTERM).

    Args:
        agents: As of `http_app`.
        settings: As of `http_app`.
        on_listening: Called with the address of the endpoint once it can be reached; of port 0 it has the port that was free.

    Raises:
        AKConfigError: As of `http_app`; or it cannot listen there, as where another program does.
        KnowledgeDependencyError: The extra `mcp` is missing.
    """
    _require_sdk()
    from agentkernel_kb.serve.mcp.http import run

    run(agents, settings or HTTPSettings(), on_listening)


def _require_sdk() -> None:
    try:
        import mcp.server  # noqa: F401  # pyright: ignore[reportUnusedImport] - only whether it is there
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport] - only whether it is there
    except ImportError as error:
        raise KnowledgeDependencyError("mcp", "The MCP server") from error
