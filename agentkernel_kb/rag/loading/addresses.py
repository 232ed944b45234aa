"""Which addresses a fetch may reach: public ones, however they are spelled, and those that the application allows."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError

Resolver = Callable[[str, int], Iterable[str]]
"""Returns the addresses of a host name, for a port."""

Address = IPv4Address | IPv6Address

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FIRST_FREE_PORT = 1024
_MOST_URL_CHARS = 8_192
# The translator of the public internet, whose addresses hold an IPv4 address in their last 32 bits (RFC 6052).
_TRANSLATED = IPv6Network("64:ff9b::/96")
# Not public, or not to every Python: local translators (RFC 8215), whose addresses may hold an IPv4 address anywhere,
# documentation (RFC 9637), segment routing (RFC 9602), protocol assignments with the tunnels of Teredo (RFC 2928), and those of
# 6to4, which are given up (RFC 7526) and hold an IPv4 address.
_LOCAL = tuple(map(IPv6Network, ("64:ff9b:1::/48", "3fff::/20", "5f00::/16", "2001::/23", "2002::/16")))
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214: the upper half of the interface's identifier.
# What only programs read as an address: decimal, octal, hexadecimal and shortened forms (inet_aton).
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads.

    Attributes:
        scheme: `http` or `https`.
        host: Name or address of the host, in ASCII and small letters.
        port: Its port.
        path: Path and query, as they are sent.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The URL in one spelling, without its fragment."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """Host and port, the latter where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class Allowance:
    """What may be reached besides public addresses.

    Args:
        hosts: Names of hosts whose addresses are not checked, such as `wiki.internal`.
        networks: Networks that count as public, such as `10.1.0.0/16`.

    Raises:
        AKConfigError: A network is none.
    """

    def __init__(self, hosts: Iterable[str] = (), networks: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)
        self._networks = tuple(map(_network, networks))

    def reaches(self, host: str, address: Address) -> bool:
        """Tell whether an address may be connected to under the name of a host."""
        return host in self._hosts or any(address in network for network in self._networks) or is_public(address)


def parse_url(url: str) -> Target:
    """Take a URL apart.

    Raises:
        AKConfigError: It is no URL of HTTP, holds a login, or spells its host in a way that programs read differently.
    """
    if len(url) > _MOST_URL_CHARS or any(character <= " " or character in "\\\x7f" for character in url):
        raise AKConfigError("The URL is too long, or holds blanks, backslashes or control characters.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AKConfigError("The URL is malformed: its host or port cannot be read.") from None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise AKConfigError("Only http:// and https:// URLs can be loaded.")
    if "@" in parts.netloc:
        raise AKConfigError("The URL holds a login; a source's URL must not. Give the fetcher headers for that host instead.")
    if re.search(r"\](?!:\d*$|$)", parts.netloc):
        raise AKConfigError("The URL is malformed: its host or port cannot be read.")
    host = _host(parts.hostname or "")
    port = _DEFAULT_PORTS[scheme] if port is None else port
    if port not in _DEFAULT_PORTS.values() and port < _FIRST_FREE_PORT:
        raise AKConfigError(f"Port {port} is not one that pages are served at: 80, 443, or {_FIRST_FREE_PORT} and above.")
    path = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    return Target(scheme, host, port, _quoted(f"{path}?{parts.query}" if parts.query else path))


def addresses_of(target: Target, resolver: Resolver, allowance: Allowance) -> list[str]:
    """Resolve a host, once, and return its addresses; the caller connects to these and asks no resolver again.

    Raises:
        AKConfigError: One of them must not be reached: then none is.
        KnowledgeConnectionError: There are none.
    """
    try:
        found = [str(ip_address(target.host))]
    except ValueError:
        found = list(dict.fromkeys(_resolved(target, resolver)))
    if not found:
        raise KnowledgeConnectionError(f"The host '{target.host}' has no address.")
    for text in found:
        address = _address(text, target.host)
        if not allowance.reaches(target.host, address):
            raise AKConfigError(f"'{target.host}' is not a public host, and the application does not allow it.")
    return found


def is_public(address: Address) -> bool:
    """Tell whether an address, and any that it holds, is one of the public internet."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.scope_id is not None or address.is_site_local or any(address in network for network in _LOCAL):
            return False
        if any(not is_public(inner) for inner in _inner(address)):
            return False
        if address in _TRANSLATED:
            return True
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses that the system knows of a host."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _inner(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that stand inside of an IPv6 address."""
    holds_one = address in _TRANSLATED or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
    return [IPv4Address(int(address) & 0xFFFFFFFF)] if holds_one else []


def _resolved(target: Target, resolver: Resolver) -> list[str]:
    try:
        return list(resolver(target.host, target.port))
    except (OSError, UnicodeError):
        raise KnowledgeConnectionError(f"The host '{target.host}' cannot be resolved.") from None


def _address(text: str, host: str) -> Address:
    try:
        return ip_address(text)
    except ValueError:
        raise KnowledgeConnectionError(f"The resolver's answer for '{host}' is no address.") from None


def _host(host: str) -> str:
    """Return a host in ASCII, as it is resolved.

    Raises:
        AKConfigError: There is none, or it is not spelled in the usual way.
    """
    if ":" in host and "%" not in host:
        return _literal(host)
    try:
        name = host.encode("idna").decode("ascii").lower().rstrip(".")
    except UnicodeError:
        raise AKConfigError("The URL's host is no host name.") from None
    if not name or re.fullmatch(r"[a-z0-9._-]+", name) is None:
        raise AKConfigError("The URL's host is no host name.")
    return _literal(name) if _NUMERIC.fullmatch(name) else name


def _literal(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        raise AKConfigError("The URL's host looks like an address, and is not spelled as one: write it as 192.0.2.1.") from None


def _quoted(path: str) -> str:
    return "".join(character if character.isascii() else _percent(character) for character in path)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise AKConfigError(f"{text!r} is no network; write one as '10.1.0.0/16'.") from None
