"""HTTPSettings: where MCP is served over HTTP, who may ask from where, and within which bounds."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentkernel_kb.errors import AKConfigError

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class HTTPSettings:
    """Where MCP is served over HTTP, and within which bounds.

    Attributes:
        host: Address to listen on. Another than loopback asks for a token of every agent.
        port: Port to listen on; 0 takes a free one.
        path: Path of the endpoint.
        allowed_hosts: Values of the header `Host` to accept besides those of `host`, for example `kb.example.com` or
            `kb.example.com:8443`; `name:*` stands for any port. What listens on every address (`0.0.0.0`) needs some.
        allowed_origins: Values of `Origin` to accept, for pages in a browser, for example `https://kb.example.com`. Requests
            without that header pass; where `host` is loopback, pages from loopback do too.
        max_body_bytes: Longest request; a longer one is answered with 413.
        max_sessions: Most open sessions of each agent; one more is answered with 503.
        session_idle_s: Seconds after which a session without a request ends.
        max_connections: Most connections at one time; one more is answered with 503.
        request_s: Seconds within which a request has to arrive, from the connection or its first byte to the end of its body;
            the connection is closed on one that does not. Of `run_http`; an application in a server of your own has its.

    Raises:
        AKConfigError: A value is not of its kind, or nothing tells which hosts to accept.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    max_body_bytes: int = 4 * 1024 * 1024
    max_sessions: int = 1_000
    session_idle_s: float = 1_800.0
    max_connections: int = 4_000
    request_s: float = 30.0

    def __post_init__(self) -> None:
        if not isinstance(self.host, str) or not self.host.strip():
            raise AKConfigError("HTTPSettings.host must be an address or a name.")
        if not isinstance(self.port, int) or isinstance(self.port, bool) or not 0 <= self.port <= 65_535:
            raise AKConfigError(f"HTTPSettings.port must be a number from 0 to 65535, not {self.port!r}.")
        if not isinstance(self.path, str) or not self.path.startswith("/") or set(self.path) & set("{}?#"):
            raise AKConfigError(f"HTTPSettings.path must be a path such as /mcp, not {self.path!r}.")
        for name in ("allowed_hosts", "allowed_origins"):
            self._check_listed(name)
        for name in ("max_body_bytes", "max_sessions", "max_connections", "session_idle_s", "request_s"):
            self._check_positive(name)
        if self._listens_everywhere and not self.allowed_hosts:
            raise AKConfigError(
                f"HTTPSettings(host={self.host!r}) listens on every address: say in allowed_hosts how it is reached, "
                "for example ['kb.example.com']."
            )

    @property
    def is_loopback(self) -> bool:
        """Only this machine can reach it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> list[str]:
        """Every value of `Host` to accept; `name:*` stands for any port."""
        names = [] if self._listens_everywhere else [f"[{self.host}]" if ":" in self.host else self.host]
        if self.is_loopback:
            names = [*_LOOPBACK_NAMES, *names]
        given = [host for host in self.allowed_hosts if ":" not in host.rpartition("]")[2]]
        own = [spelling for name in names + given for spelling in (name, f"{name}:*")]
        return list(dict.fromkeys([*own, *self.allowed_hosts]))

    @property
    def origins(self) -> list[str]:
        """Every value of `Origin` to accept."""
        if not self.is_loopback:
            return list(self.allowed_origins)
        own = [f"http://{name}{port}" for name in _LOOPBACK_NAMES for port in ("", ":*")]
        return [*own, *self.allowed_origins]

    @property
    def _listens_everywhere(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def _check_listed(self, name: str) -> None:
        value: object = getattr(self, name)
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):  # pyright: ignore[reportUnknownVariableType]
            raise AKConfigError(f"HTTPSettings.{name} must be a list of names.")

    def _check_positive(self, name: str) -> None:
        value: object = getattr(self, name)
        kind = int | float if name.endswith("_s") else int
        if not isinstance(value, kind) or isinstance(value, bool) or not (math.isfinite(value) and value > 0):
            raise AKConfigError(f"HTTPSettings.{name} must be a positive number, not {value!r}.")
