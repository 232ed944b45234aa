"""A server that says where it listens once it does, and raises what keeps it from it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

import uvicorn

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.serve.mcp.settings import HTTPSettings


class ListeningServer(uvicorn.Server):
    """uvicorn's server, which by itself ends the process without a word where nobody has set up logging.

    Args:
        config: How it serves.
        settings: Where it serves.
        on_listening: Called with the address of the endpoint once it can be reached.
    """

    def __init__(self, config: uvicorn.Config, settings: HTTPSettings, on_listening: Callable[[str], object]) -> None:
        super().__init__(config)
        self._settings = settings
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen.

        Raises:
            AKConfigError: It cannot listen there.
        """
        try:
            await super().startup(sockets)
        except SystemExit as ended:
            if isinstance(ended.__context__, OSError):
                raise _not_there(self._settings, ended.__context__) from ended
            raise
        port: int = self.servers[0].sockets[0].getsockname()[1]
        self._on_listening(f"http://{_authority(self._settings.host, port)}{self._settings.path}")


def _not_there(settings: HTTPSettings, error: OSError) -> AKConfigError:
    where = f"It cannot listen on {_authority(settings.host, settings.port)}"
    if isinstance(error, socket.gaierror):
        return AKConfigError(f"{where}: there is no address for '{settings.host}'. Correct the host.")
    if error.errno == errno.EADDRINUSE:
        return AKConfigError(f"{where}: another program does. Take another port, or 0 for a free one.")
    return AKConfigError(f"{where}: {os.strerror(error.errno or 0).lower()}. Take another host or port.")


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
