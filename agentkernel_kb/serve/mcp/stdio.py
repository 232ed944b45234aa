"""One agent over stdin and stdout."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from agentkernel_kb.serve.mcp.agent import ServedAgent
from agentkernel_kb.serve.mcp.server import make_server


async def serve(agent: ServedAgent) -> None:
    """Serve until stdin ends; calls that still run then are cancelled."""
    server = make_server(agent)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
