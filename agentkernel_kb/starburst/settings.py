"""How a server is reached and who asks it: the arguments of `StarburstManager`, checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.starburst.checks import fault_of_login, fault_of_session

DEFAULT_PORT = 443
_MAX_PORT = 65_535
_SCHEMES = ("http", "https")


@dataclass(frozen=True)
class Settings:
    """A server and the session that statements run in.

    Attributes:
        host: Name or address of the coordinator, IPv6 in brackets.
        port: Its port.
        scheme: `http` or `https`.
        user: The user that is authenticated, or simply named where the server asks for no login.
        password: The password, `None` for none.
        auth: An authentication of the `trino` client in place of a password.
        verify: Whether certificates are checked, or the file or folder of those that are trusted.
        catalog: Catalog of tables that are named without one, `""` for none.
        db_schema: Schema of tables that are named without one, `""` for none.
        source: What the server's list of queries names as their source.
        client_tags: Tags of every query.
        roles: The role to take, by catalog, or one for the system.
        timezone: Time zone of the session, `None` for that of this machine.
        session_properties: Session properties of every query.
        extra_credential: Further credentials, which connectors ask for.
        http_headers: Further headers of every request.
    """

    host: str
    port: int
    scheme: str
    user: str | None
    password: str | None = field(default=None, repr=False)
    auth: Any = field(default=None, repr=False)
    verify: bool | str = True
    catalog: str = ""
    db_schema: str = ""
    source: str = "agentkernel-kb"
    client_tags: tuple[str, ...] = ()
    roles: Mapping[str, str] | str | None = None
    timezone: str | None = None
    session_properties: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    extra_credential: Sequence[tuple[str, str]] = field(default=(), repr=False)
    http_headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"


def read_settings(
    name: str,
    *,
    host: str | None,
    port: int | str | None,
    user: str | None,
    password: str | None,
    http_scheme: str | None,
    auth: object,
    **session: Any,
) -> Settings:
    """Return the settings that arguments and environment make together; an argument wins over its variable.

    Args:
        name: Name of the backend, for messages.
        host: Name or address, perhaps as a URL with a port; `STARBURST_HOST`.
        port: The port, which one in `host` wins over; `STARBURST_PORT`, else 443.
        user: The user; `STARBURST_USER`.
        password: The password; `STARBURST_PASSWORD`, unless there is an `auth`.
        http_scheme: `http` or `https`. By default `https` where there is a login or the port is 443, else `http`.
        auth: An authentication of the `trino` client.
        session: The other attributes of `Settings`.

    Raises:
        AKConfigError: Something is missing or contradicts itself; the message names it and no secret.
    """
    given: object = host or os.environ.get("STARBURST_HOST")
    if not isinstance(given, str) or not given.strip():
        _fail(name, "needs a host: pass host=, or set STARBURST_HOST.")
    url_scheme, hostname, url_port = _parts_of(given.strip(), name)
    number = _number(port if port is not None else os.environ.get("STARBURST_PORT") or DEFAULT_PORT, name)
    user = user or os.environ.get("STARBURST_USER") or None
    if password is not None and auth is not None:
        _fail(name, "takes a password or auth=, not both.")
    if password is None and auth is None:
        password = os.environ.get("STARBURST_PASSWORD") or None
    _check_login(name, user, password, auth)
    has_login = bool(password) or auth is not None
    scheme = url_scheme or http_scheme or ("https" if has_login or (url_port or number) == DEFAULT_PORT else "http")
    if scheme not in _SCHEMES:
        _fail(name, f"http_scheme is 'http' or 'https', not {scheme!r}.")
    if fault := fault_of_session(session):
        _fail(name, fault)
    kept = {argument: _kept(value) for argument, value in session.items()}
    if has_login and scheme == "http":
        _fail(name, "would send its login in clear text over http. Use https (http_scheme='https'), or leave the login out.")
    return Settings(
        host=hostname, port=url_port or number, scheme=scheme, user=user, password=password or None, auth=auth, **kept
    )


def _parts_of(host: str, name: str) -> tuple[str, str, int | None]:
    """Return the scheme (`""` for none), the host and the port (`None` for none) of a host or URL."""
    try:
        parts = urlsplit(host if "://" in host else f"//{host}")
        hostname, port = parts.hostname, parts.port
    except ValueError:
        hostname = port = parts = None
    if parts is None or hostname is None or any(character.isspace() for character in host):
        _fail(name, "has a host that cannot be read: pass a name, an address, or https://name:port.")
    if parts.username is not None or parts.password is not None:
        _fail(name, "takes no login in its host: pass user= and password=.")
    if parts.path.strip("/") or parts.query or parts.fragment:
        _fail(name, "takes a host without a path.")
    return parts.scheme, f"[{hostname}]" if ":" in hostname else hostname, port


def _number(port: object, name: str) -> int:
    text = str(port).strip()
    if isinstance(port, bool) or not text.isascii() or not text.isdecimal() or not 0 < int(text[:6]) <= _MAX_PORT:
        _fail(name, f"has a port that is no number from 1 to {_MAX_PORT}.")
    return int(text)


def _check_login(name: str, user: str | None, password: str | None, auth: object) -> None:
    if user is None and auth is None:
        _fail(name, "needs a user: pass user=, or set STARBURST_USER.")
    if fault := fault_of_login(user, password):
        _fail(name, fault)
    if password and user is None:
        _fail(name, "has a password without a user.")


def _kept(value: Any) -> Any:
    """Return an argument, or a copy where the caller may change it later."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return tuple(cast("Collection[Any]", value)) if isinstance(value, Collection) and not isinstance(value, str) else value


def _fail(name: str, what: str) -> NoReturn:
    raise AKConfigError(f"StarburstManager '{name}' {what}")
