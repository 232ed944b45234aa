"""Fetching (P3) attacked: more spellings, resolvers that mix, redirects in disguise, and servers that break the protocol."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from pages import Listener, listening, redirect, resolve, serving, text

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeConnectionError, KnowledgeError
from agentkernel_kb.rag.loading import Fetcher

SPELLINGS = [
    # Numbers as programs read them.
    "0x7F.0x0.0x0.0x1", "0X7F000001", "00177.0.0.01", "127.0x1", "127.65281", "0127.0.0.1", "127.0.0.01", "127.0.0.0x1",
    "2130706433.", "0x7f.1.", "4294967297", "127.0.0.1.0", "-1", "1e9", "0b1111111", "127,0,0,1", "127..0.0.1", ".127.0.0.1",
    # Letters and dots of other scripts, and characters that nameprep takes out.
    "127\u00ad.0.0.1", "127.0\u200b.0.1", "127｡0｡0｡1", "127．0．0．1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏", "１２７。０。０。１", "٠x7f.1", "١٢٧.٠.٠.١",
    "ℓocalhost", "ｌｏｃａｌｈｏｓｔ", "LOCALHOST。", "loca\u00adlhost", "𝓁𝑜𝒸𝒶𝓁𝒽𝑜𝓈𝓉", "localhost\u2024", "localhost..",
    "⁄127.0.0.1", "127.0.0.1⁄x",
    # IPv6, with addresses of the other family inside of it.
    "[0::1]", "[::0001]", "[::ffff:127.0.0.1%25eth0]", "[::FFFF:7F00:0001]", "[::ffff:127.1]", "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1:7f00:0:100:808:808]", "[64:ff9b:1::808:808]", "[2002:a9fe:a9fe::1]", "[2001:0:7f00:1::]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[fe80::5efe:127.0.0.1]", "[fec0::1]", "[ff02::1]", "[100::1]", "[2001:db8::1]",
    "[3fff::1]", "[5f00::1]", "[fc00::1]", "[::]x", "[::1", "::1", "[[::1]]", "[::1%00]", "[v1.127.0.0.1]", "[::127.0.0.1%lo]",
    # Who one logs in as, and what ends a host.
    "site.example@127.0.0.1", "127.0.0.1@site.example", ":@127.0.0.1", "site.example%40127.0.0.1", "site.example%2f@127.0.0.1",
    "site.example\\.127.0.0.1", "127.0.0.1\u3000", "127.0.0.1%09", "127.0.0.1\x00.site.example", "127.0.0.1;site.example",
    "site.example%00.127.0.0.1", "site.example%0d%0aHost:127.0.0.1", "xn--127-0-0-1", "*", "%", "", ".", "..",
    # Networks of nobody else.
    "0.0.0.1", "255.255.255.255", "224.0.0.1", "240.0.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "100.127.255.254", "172.31.255.255", "169.254.0.1",
]  # fmt: skip


@pytest.fixture(scope="module")
def listener() -> Generator[Listener]:
    with listening() as listener:
        yield listener


def fetcher(**options: Any) -> Fetcher:
    given: dict[str, Any] = {"resolver": resolve, "allow_hosts": ["site.example"], "timeout": 3.0, **options}
    return Fetcher(**given)


@pytest.mark.parametrize("host", SPELLINGS, ids=lambda host: ascii(host).replace("\\", "/"))
def test_p3_another_spelling_of_a_forbidden_host_is_refused_and_sees_nobody(listener: Listener, host: str):
    with pytest.raises((AKConfigError, KnowledgeConnectionError)):
        fetcher().fetch_sync(f"http://{host}:{listener.port}/")
    assert listener.connections == 0


@pytest.mark.parametrize("port", ["0", "22", "25", "65536", "-1", "+80", "8 0", "８０", "80_00", "0x50", "99999999999"])
def test_p3_a_port_that_serves_no_pages_is_refused(port: str):
    with pytest.raises(AKConfigError):
        fetcher().fetch_sync(f"http://site.example:{port}/")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", "ftp://site.example/", "gopher://127.0.0.1:6379/_INFO", "data:text/plain,x",
        "dict://127.0.0.1/", "ldap://127.0.0.1/", "jar:http://site.example!/", "unix:///var/run/docker.sock", "http:", "http://",
        "http:///etc/passwd", "http:site.example", "//site.example/", "site.example", "javascript:x", "http+unix://x/",
        "hTTp:\\\\x",
    ],
)  # fmt: skip
def test_p3_what_is_no_url_of_a_page_is_refused(url: str):
    with pytest.raises(AKConfigError):
        fetcher().fetch_sync(url)


@pytest.mark.parametrize(
    "answers",
    [
        ["93.184.216.34", "127.0.0.1"], ["127.0.0.1", "93.184.216.34"], ["2606:2800:220:1::1", "::1"], ["::ffff:10.0.0.1"],
        ["64:ff9b:1:7f00:0:100:808:808"], ["fe80::1%lo"], ["93.184.216.34"] * 9 + ["169.254.169.254"],
    ],
    ids=lambda answers: answers[-1],
)  # fmt: skip
def test_p3_one_forbidden_address_among_the_answers_forbids_them_all(listener: Listener, answers: list[str]):
    with pytest.raises(AKConfigError, match="not a public host"):
        Fetcher(resolver=lambda *_: answers, timeout=2.0).fetch_sync(f"http://mixed.example:{listener.port}/")
    assert listener.connections == 0


@pytest.mark.parametrize("answers", [["2130706433"], ["0x7f.1"], ["127.1"], [""], ["localhost"], []], ids=str)
def test_p3_a_resolver_that_answers_no_addresses_leads_nowhere(listener: Listener, answers: list[str]):
    with pytest.raises(KnowledgeConnectionError):
        Fetcher(resolver=lambda *_: answers, timeout=2.0).fetch_sync(f"http://odd.example:{listener.port}/")
    assert listener.connections == 0


@pytest.mark.parametrize(
    "to",
    [
        "///127.0.0.1:{port}/", "\\\\127.0.0.1:{port}/", "/\\127.0.0.1:{port}/", "http:\\\\127.0.0.1:{port}/",
        "http://site.example@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@site.example/", "http://[::ffff:7f00:1]:{port}/",
        "HTTP://127.0.0.1:{port}/", "//127.1:{port}/", "//localhost:{port}/", "http://site.example:0/",
        "https:127.0.0.1:{port}",
        "gopher://127.0.0.1:{port}/", "ftp://127.0.0.1:{port}/", "data:text/plain,x", "http://127。0。0。1:{port}/", "http://",
    ],
)  # fmt: skip
def test_p3_a_redirect_in_disguise_is_not_followed(listener: Listener, to: str):
    with (
        serving({"/": redirect(to.format(port=listener.port).encode().decode("latin-1"))}) as site,
        pytest.raises(KnowledgeError),
    ):
        fetcher().fetch_sync(site.url())
    assert listener.connections == 0


def answer(*pieces: bytes, pause_s: float = 0.0, forever: bool = False) -> Callable[[socket.socket], None]:
    """Return what a server sends, byte for byte."""

    def send(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(65_536)
            for piece in pieces:
                connection.sendall(piece)
            end = time.monotonic() + 10
            while forever and time.monotonic() < end:
                connection.sendall(pieces[-1])
                time.sleep(pause_s)

    return send


@contextmanager
def raw(respond: Callable[[socket.socket], None]) -> Generator[str]:
    """Serve one raw answer for each connection, and return the URL."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    respond(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://site.example:{server.getsockname()[1]}/"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\n\r\n"
FAULTY = {
    "two locations": answer(b"HTTP/1.1 302 X\r\nLocation: /a\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"),
    "a chunk of a negative size": answer(CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"),
    "a chunk of no size": answer(CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"),
    "a chunk that is longer than anything": answer(CHUNKED + b"fffffffffffffffff\r\nhello"),
    "chunks without an end": answer(CHUNKED + b"5\r\nhello\r\n"),
    "chunks of HTTP/1.0 without an end": answer(CHUNKED.replace(b"1.1", b"1.0") + b"5\r\nhello\r\n"),
    "no status": answer(b"hello, this is HTTP/0.9\r\n"),
    "a status of letters": answer(b"HTTP/1.1 abc OK\r\n\r\n"),
    "an endless first line": answer(b"H" * 65_536, forever=True),
    "an endless head": answer(b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 60_000 + b"\r\n", forever=True),
    "an endless trailer": answer(CHUNKED + b"0\r\n", b"X: y\r\n", forever=True, pause_s=0.001),
    "no news, again and again": answer(b"HTTP/1.1 100 Continue\r\n\r\n", forever=True, pause_s=0.001),
    "a head that drips": answer(b"HTTP/1.1 200 OK\r\n", b"X", forever=True, pause_s=0.2),
    "a chunk that is to be read to the end": answer(CHUNKED + b"-1\r\n", b"x" * 65_536, forever=True),
    "a bomb of deflate": answer(OK + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"\0" * 10**8)),
    "several bombs in a row": answer(GZIP + gzip.compress(b"\0" * 900_000) * 20),
    "parts of nothing, without an end": answer(GZIP, gzip.compress(b"") * 1_000, forever=True),
    "no length that can be": answer(OK + b"Content-Length: -1\r\n\r\n" + b"x" * 2_000_000),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTY)
def test_p3_a_server_that_breaks_the_protocol_is_left_within_the_bounds(fault: str):
    started = time.monotonic()
    with raw(FAULTY[fault]) as url, pytest.raises(KnowledgeError):
        fetcher(timeout=2.0, max_bytes=1_000_000).fetch_sync(url)
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    "location", ["//[::1/", "http://[::ffff:127.1]/", "http://[::ffff:0x7f.0.0.1]/", "http://x:y/", "http://:1/"]
)
def test_p3_a_redirect_to_what_is_no_url_is_refused_in_words(location: str):
    with serving({"/": redirect(location, 302)}) as site, pytest.raises(AKConfigError, match="host"):
        fetcher().fetch_sync(site.url())


def test_p3_compressed_parts_in_a_row_are_one_page():
    parts = gzip.compress(b"first ") + gzip.compress(b"second")
    with serving({"/": text(parts, Content_Encoding="gzip")}) as site:
        assert fetcher().fetch_sync(site.url()).content == b"first second"


def test_p3_chunks_of_an_old_version_are_read():
    with raw(answer(CHUNKED.replace(b"1.1", b"1.0") + b"5\r\nhello\r\n0\r\n\r\n")) as url:
        assert fetcher().fetch_sync(url).content == b"hello"


def test_p3_a_refusal_tells_no_address_and_no_login():
    with pytest.raises(AKConfigError) as refused:
        Fetcher(resolver=lambda *_: ["10.9.8.7"]).fetch_sync("http://internal.example/path?token=s3cret")
    assert not any(secret in str(refused.value) for secret in ("10.9.8.7", "s3cret"))
    with pytest.raises(AKConfigError) as refused:
        Fetcher().fetch_sync("http://user:hunter2@internal.example/")
    assert "hunter2" not in str(refused.value)


def test_p3_there_are_more_than_fifty_further_spellings():
    assert len(set(SPELLINGS)) > 90


def test_p3_a_page_with_an_error_is_an_error_of_the_backend():
    with serving({"/": redirect("", 302)}) as site, pytest.raises(KnowledgeBackendError, match="302"):
        fetcher().fetch_sync(site.url())
