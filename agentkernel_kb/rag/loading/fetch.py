"""Fetches pages for indexing: every host is resolved once, checked, and connected to under the address that was checked."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.rag.loading.addresses import (
    Allowance,
    Resolver,
    Target,
    addresses_of,
    parse_url,
    system_resolver,
)

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection
    from urllib3.response import BaseHTTPResponse

    from agentkernel_kb.rag.loading.answers import Decompressor

TEXT_TYPES = (
    "text/",
    "application/json",
    "application/ld+json",
    "application/rst",
    "application/toml",
    "application/xhtml+xml",
    "application/xml",
    "application/x-ndjson",
    "application/x-yaml",
    "application/yaml",
)
"""Media types that are fetched; one that ends in `/` stands for all that begin so."""

_REDIRECTS = (301, 302, 303, 307, 308)
_CHUNK_BYTES = 65_536
_CONNECT_SECONDS = 10.0
_MOST_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page.

    Attributes:
        url: Where it was found in the end.
        content: Its bytes, decompressed.
        media_type: Its media type, in small letters and without parameters.
        charset: Its encoding, where the server says.
    """

    url: str
    content: bytes
    media_type: str
    charset: str | None = None


class Fetcher:
    """Fetches pages of public hosts within bounds. Proxies of the environment are not used: they resolve by themselves.

    Args:
        allow_hosts: Names of hosts that may be reached though their addresses are not public.
        allow_networks: Networks that may be reached though they are not public.
        headers: Headers for a host, such as a login; they are sent to no other.
        resolver: What resolves host names; the system's by default.
        max_bytes: Most bytes of a page, decompressed.
        timeout: Seconds for a page in all, redirects included.
        max_redirects: How many redirects are followed; each is checked as the first URL is, and none leaves TLS.
        media_types: Media types that are fetched.
        ssl_context: How certificates are checked; the system's authorities by default.

    Raises:
        AKConfigError: A bound is not positive, or a network is none.
    """

    def __init__(
        self,
        *,
        allow_hosts: Iterable[str] = (),
        allow_networks: Iterable[str] = (),
        headers: Mapping[str, Mapping[str, str]] | None = None,
        resolver: Resolver = system_resolver,
        max_bytes: int = 10_000_000,
        timeout: float = 20.0,
        max_redirects: int = 5,
        media_types: Iterable[str] = TEXT_TYPES,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if max_bytes <= 0 or timeout <= 0 or max_redirects < 0:
            raise AKConfigError("Fetcher: max_bytes and timeout must be positive, max_redirects not negative.")
        self._allowance = Allowance(allow_hosts, allow_networks)
        self._headers = {host.lower().rstrip("."): dict(each) for host, each in (headers or {}).items()}
        self._resolver = resolver
        self._max_bytes, self._timeout, self._max_redirects = max_bytes, timeout, max_redirects
        self._media_types = tuple(media_types)
        self._ssl_context = ssl_context

    async def fetch(self, url: str) -> Fetched:
        """Fetch a page without blocking the event loop; see `fetch_sync`."""
        deadline = Deadline(self._timeout)
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._followed, url, deadline), self._timeout)
        except TimeoutError:
            raise self._out_of_time() from None
        finally:
            deadline.end()  # Where the caller gave up, the thread does so at its next piece.

    def fetch_sync(self, url: str) -> Fetched:
        """Fetch a page.

        Raises:
            AKConfigError: The URL, or one that it redirects to, must not be fetched.
            KnowledgeConnectionError: The host cannot be resolved or reached, or its certificate does not hold.
            KnowledgeTimeoutError: It took too long.
            KnowledgeBackendError: The server answers with an error, with what is no text, or with too much.
            KnowledgeDependencyError: The extra `web` is not installed.
        """
        return self._followed(url, Deadline(self._timeout))

    def _followed(self, url: str, deadline: Deadline) -> Fetched:
        target = parse_url(url)
        for _ in range(self._max_redirects + 1):
            found = self._once(target, deadline)
            if isinstance(found, Fetched):
                return found
            following = _following(target, found)
            if target.scheme == "https" and following.scheme != "https":
                raise AKConfigError(f"'{target.host}' redirects from https to http, which is not followed.")
            target = following
        raise KnowledgeBackendError(f"'{target.host}' redirects more than {self._max_redirects} times.")

    def _once(self, target: Target, deadline: Deadline) -> Fetched | str:
        """Send one request and return the page, or where the server redirects to."""
        addresses = addresses_of(target, self._resolver, self._allowance)[:_MOST_ADDRESSES]
        for place, address in enumerate(addresses, 1):
            connection = self._connection(target, address, deadline)
            sockets: list[Any] = []
            watch = threading.Timer(deadline.left(), _cut_off, (connection, sockets))
            watch.daemon = True
            watch.start()
            try:
                connection.connect()
                sockets.append(connection.sock)  # The connection forgets it where the server closes after its answer.
            except _failures() as error:
                if place == len(addresses) or deadline.passed():
                    raise self._meaning_of(error, target, deadline) from None
                connection.close()
                continue
            else:
                return self._exchanged(connection, target, deadline)
            finally:
                watch.cancel()
        raise AssertionError("addresses_of returns at least one address")

    def _exchanged(self, connection: HTTPConnection, target: Target, deadline: Deadline) -> Fetched | str:
        headers = {
            "Host": target.authority,
            "User-Agent": "agentkernel-kb",
            "Accept": "text/*, application/json, application/xml;q=0.9, */*;q=0.1",
            "Accept-Encoding": "gzip",
            **self._headers.get(target.host, {}),
        }
        try:
            connection.request("GET", target.path, headers=headers, preload_content=False, decode_content=False)
            response = connection.getresponse()
            if response.status in _REDIRECTS and (location := response.headers.get("Location")):
                return location
            return self._page(response, target, deadline)
        except _failures() as error:
            raise self._meaning_of(error, target, deadline) from None
        finally:
            connection.close()

    def _page(self, response: BaseHTTPResponse, target: Target, deadline: Deadline) -> Fetched:
        if response.status != 200:
            raise KnowledgeBackendError(f"'{target.host}' answers with status {response.status}.")
        media_type, charset = _content_type(response.headers.get("Content-Type", ""))
        if not any(media_type == each or (each.endswith("/") and media_type.startswith(each)) for each in self._media_types):
            raise KnowledgeBackendError(f"'{target.host}' answers with {media_type or 'no media type'}, which is not loaded.")
        content = self._content(response, target, deadline)
        return Fetched(target.url, content, media_type, charset)

    def _content(self, response: BaseHTTPResponse, target: Target, deadline: Deadline) -> bytes:
        decoder = _decoder(response.headers.get("Content-Encoding", ""), target)
        content, received = bytearray(), 0
        while not deadline.passed() and (chunk := response.read(_CHUNK_BYTES, decode_content=False)):
            received += len(chunk)
            # One byte more than is allowed is enough to know, however much the rest would become.
            room = self._max_bytes + 1 - len(content)
            content += decoder.decompress(chunk, room) if decoder else chunk
            if max(len(content), received) > self._max_bytes:
                raise KnowledgeBackendError(f"The page of '{target.host}' has more than {self._max_bytes:,} bytes.")
        if deadline.passed():  # What is cut off then may look as if it were at its end.
            raise self._out_of_time()
        if decoder and not decoder.eof:
            raise KnowledgeBackendError(f"The compressed page of '{target.host}' is incomplete.")
        return bytes(content)

    def _connection(self, target: Target, address: str, deadline: Deadline) -> HTTPConnection:
        try:
            from urllib3.connection import HTTPConnection, HTTPSConnection
        except ImportError:
            raise KnowledgeDependencyError("web", "Loading URLs") from None
        from agentkernel_kb.rag.loading.answers import BoundedResponse

        left = deadline.left()
        if not left:
            raise self._out_of_time()
        timeout = min(_CONNECT_SECONDS, left)
        if target.scheme == "http":
            connection = HTTPConnection(address, target.port, timeout=timeout)
        else:
            connection = HTTPSConnection(
                address,
                target.port,
                timeout=timeout,
                ssl_context=self._ssl_context or ssl.create_default_context(),
                server_hostname=target.host,
                assert_hostname=target.host,
            )
        connection.response_class = BoundedResponse
        return connection

    def _meaning_of(self, error: Exception, target: Target, deadline: Deadline) -> KnowledgeBackendError:
        if isinstance(error, zlib.error):
            return KnowledgeBackendError(f"The compressed page of '{target.host}' is damaged.")
        if deadline.passed() or isinstance(error, TimeoutError):
            return self._out_of_time()
        if _is_about_tls(error):
            return KnowledgeConnectionError(f"The certificate of '{target.host}' does not hold.", state="untrusted")
        return KnowledgeConnectionError(f"'{target.host}' can't be reached, or breaks the connection.")

    def _out_of_time(self) -> KnowledgeTimeoutError:
        return KnowledgeTimeoutError(f"The page was not there within {self._timeout:g} seconds.")


def _following(target: Target, location: str) -> Target:
    try:
        url = urljoin(target.url, location)
    except ValueError:
        raise AKConfigError(f"'{target.host}' redirects to a URL whose host cannot be read.") from None
    return parse_url(url)


def _cut_off(connection: HTTPConnection, sockets: list[Any]) -> None:
    """End a connection, however slowly its server sends: the time-out of a socket begins anew with each byte."""
    for held in (*sockets, connection.sock):
        if held is not None:
            with suppress(OSError):  # It is closed already.
                held.shutdown(socket.SHUT_RDWR)


def _content_type(header: str) -> tuple[str, str | None]:
    from email.message import Message

    message = Message()
    message["Content-Type"] = header
    return (message.get_content_type() if "/" in header else "", message.get_content_charset())


def _decoder(encoding: str, target: Target) -> Decompressor | None:
    """Return what decompresses a page, piece by piece; nothing where it is not compressed."""
    from agentkernel_kb.rag.loading.answers import Decompressor

    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return Decompressor(zlib.MAX_WBITS | 16)
        case "deflate":
            return Decompressor(zlib.MAX_WBITS)
        case _:
            raise KnowledgeBackendError(f"'{target.host}' compresses its page in a way that was not asked for.")


def _failures() -> tuple[type[Exception], ...]:
    """Return what goes wrong on the way; imported only once something is fetched."""
    from http.client import HTTPException

    from urllib3.exceptions import HTTPError

    return OSError, HTTPException, HTTPError, zlib.error


def _is_about_tls(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError) or isinstance(error.__cause__ or error.__context__, ssl.SSLError)
