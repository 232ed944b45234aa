"""Fetching (P3) over real sockets: what must not be reached sees nobody, what may be is read, and nothing is without bounds."""

from __future__ import annotations

import asyncio
import itertools
import time
import tracemalloc
from typing import Any

import pytest
from pages import (
    Listener,
    compressed,
    dripping,
    endless,
    listening,
    redirect,
    resolve,
    serving,
    text,
)

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeConnectionError, KnowledgeTimeoutError
from agentkernel_kb.rag.loading import Fetcher

FORBIDDEN_HOSTS = [
    "127.0.0.1", "127.1", "127.0.1", "127.000.000.001", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "017700000001",
    "127.0.0.1.", "127.255.255.254", "0.0.0.0", "0", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]", "[fe80::1%lo]", "127。0。0。1", "①②⑦.⓪.⓪.①", "１２７.0.0.1", "%31%32%37.0.0.1", "169.254.169.254",
    "[fd00:ec2::254]", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "user@127.0.0.1", "user:pass@127.0.0.1",
    "example.org@127.0.0.1", "127.0.0.1#@example.org", "127.0.0.1\\@example.org", "[::1]x", "[127.0.0.1]",
    "127.0.0.1%00.example.org", " 127.0.0.1", "127.0.0.1\t", "127.0.0.1\r\n",
    "ⓛocalhost", "loopback.example", "metadata.google.internal", "256.0.0.1",
    "[::ffff:0:127.0.0.1]", "[2607:f8b0::5efe:7f00:1]", "1.1.1.1.127.0.0.1",
]  # fmt: skip


@pytest.fixture(scope="module")
def listener():
    with listening() as listener:
        yield listener


def fetcher(**options: Any) -> Fetcher:
    given: dict[str, Any] = {"resolver": resolve, "allow_hosts": ["site.example"], "timeout": 5.0, **options}
    return Fetcher(**given)


def test_there_are_more_than_fifty_spellings() -> None:
    assert len(set(FORBIDDEN_HOSTS)) > 50


def test_the_listener_would_see_somebody() -> None:
    with listening() as own:
        with pytest.raises(KnowledgeConnectionError):
            fetcher().fetch_sync(f"http://site.example:{own.port}/")
        deadline = time.monotonic() + 5
        while own.connections == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert own.connections == 1


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS, ids=ascii)
def test_a_forbidden_host_is_refused_and_sees_nobody(listener: Listener, host) -> None:
    with pytest.raises((AKConfigError, KnowledgeConnectionError)):
        fetcher().fetch_sync(f"http://{host}:{listener.port}/")
    assert listener.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://other.example:{port}/",
        "http://0x7f.1:{port}/",
        "file:///etc/passwd",
    ],
)
def test_a_redirect_to_what_is_forbidden_is_not_followed(listener: Listener, status, to) -> None:
    with serving({"/": redirect(to.format(port=listener.port), status)}) as site, pytest.raises(AKConfigError):
        fetcher().fetch_sync(site.url())
    assert listener.connections == 0


def test_a_name_that_changes_its_address_is_resolved_once_for_each_request(listener: Listener) -> None:
    answers = itertools.chain(["93.184.216.34"], itertools.repeat("127.0.0.1"))
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return [next(answers)]

    with pytest.raises((KnowledgeConnectionError, KnowledgeTimeoutError)):
        Fetcher(resolver=rebinding, timeout=1.0).fetch_sync(f"http://rebinding.example:{listener.port}/")
    assert (asked, listener.connections) == (["rebinding.example"], 0)


def test_a_name_that_has_a_forbidden_address_at_a_redirect_is_refused_there() -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    with serving({"/": redirect("/next")}) as site, pytest.raises(AKConfigError):
        Fetcher(resolver=lambda *_: next(answers), allow_networks=["127.0.0.0/8"]).fetch_sync(site.url())
    assert [path for path, _ in site.requests] == ["/"]


@pytest.mark.parametrize("options", [{"allow_hosts": ["site.example"]}, {"allow_hosts": (), "allow_networks": ["127.0.0.0/8"]}])
def test_what_the_application_allows_is_reached(options) -> None:
    with serving({"/": redirect("/page#part"), "/page": text("héllo")}) as site:
        found = fetcher(**options).fetch_sync(site.url())
    assert (found.content.decode(), found.media_type, found.charset) == ("héllo", "text/plain", "utf-8")
    assert found.url == site.url("/page")


async def test_a_page_is_fetched_without_blocking_the_loop() -> None:
    with serving({"/": text("hello")}) as site:
        found = await asyncio.gather(*(fetcher().fetch(site.url()) for _ in range(5)))
    assert {each.content for each in found} == {b"hello"}


def test_a_host_is_told_its_own_name_and_gets_only_its_own_headers() -> None:
    headers = {"site.example": {"Authorization": "Bearer secret"}, "other.example": {"X-Other": "1"}}
    with serving({"/": text("hello")}) as site:
        fetcher(headers=headers).fetch_sync(site.url())
    ((_, sent),) = site.requests
    assert sent["Host"] == f"site.example:{site.port}"
    assert sent["Authorization"] == "Bearer secret"
    assert "X-Other" not in sent


def test_a_login_does_not_go_with_a_redirect_to_another_host() -> None:
    with serving({"/": text("hello")}) as other, serving({"/": redirect(other.url(host="other.example"))}) as site:
        fetcher(headers={"site.example": {"Authorization": "Bearer secret"}}, allow_networks=["127.0.0.0/8"]).fetch_sync(
            site.url()
        )
    assert "Authorization" not in other.requests[0][1]


def test_redirects_without_end_are_ended() -> None:
    with serving({"/": redirect("/")}) as site, pytest.raises(KnowledgeBackendError, match="redirects more than 3 times"):
        fetcher(max_redirects=3).fetch_sync(site.url())
    assert len(site.requests) == 4


@pytest.mark.parametrize(
    "page", [text("x" * 20_000), endless, compressed(b"x" * 20_000)], ids=["long", "endless", "compressed"]
)
def test_a_page_that_is_too_long_is_left(page) -> None:
    with serving({"/": page}) as site, pytest.raises(KnowledgeBackendError, match="more than 10,000 bytes"):
        fetcher(max_bytes=10_000).fetch_sync(site.url())


def test_a_page_that_would_become_forty_megabytes_is_left_before_it_does() -> None:
    bomb = compressed(b"\0" * 40_000_000)
    with serving({"/": bomb}) as site:
        tracemalloc.start()
        try:
            with pytest.raises(KnowledgeBackendError, match="more than"):
                fetcher(max_bytes=1_000_000).fetch_sync(site.url())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 10_000_000


def test_a_compressed_page_is_read() -> None:
    with serving({"/": compressed("héllo".encode())}) as site:
        assert fetcher().fetch_sync(site.url()).content.decode() == "héllo"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (text("x", Content_Encoding="br"), "not asked for"),
        (text("x", Content_Encoding="gzip, gzip"), "not asked for"),
        (text("no gzip at all", Content_Encoding="gzip"), "damaged"),
        (text(b"\x1f\x8b\x08", Content_Encoding="gzip"), "incomplete"),
        (text("x", "application/octet-stream"), "application/octet-stream, which is not loaded"),
        (text("x", "image/svg+xml"), "image/svg"),
        (text("x", ""), "no media type"),
        (text("x", Content_Length="100"), "can't be reached, or breaks the connection"),
    ],
)
def test_a_page_that_is_not_what_was_asked_for_is_left_with_the_reason(page, message) -> None:
    with serving({"/": page}) as site, pytest.raises(KnowledgeBackendError, match=message):
        fetcher(timeout=2.0).fetch_sync(site.url())


def test_an_error_of_the_server_is_told_by_its_status() -> None:
    with serving({}) as site, pytest.raises(KnowledgeBackendError, match="status 404"):
        fetcher().fetch_sync(site.url("/missing"))


def test_a_port_where_nobody_listens_is_told() -> None:
    with serving({}) as site:
        url = site.url()
    with pytest.raises(KnowledgeConnectionError, match="can't be reached"):
        fetcher().fetch_sync(url)


def test_a_page_that_drips_is_left_when_time_is_out() -> None:
    started = time.monotonic()
    with serving({"/": dripping()}) as site, pytest.raises(KnowledgeTimeoutError, match="within 1 seconds"):
        fetcher(timeout=1.0).fetch_sync(site.url())
    assert time.monotonic() - started < 5


async def test_a_caller_that_gives_up_is_let_go_at_once() -> None:
    with serving({"/": dripping()}) as site:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(fetcher(timeout=3.0).fetch(site.url()), 0.3)
        assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "wrong", [{"max_bytes": 0}, {"timeout": 0}, {"max_redirects": -1}, {"allow_networks": ["site.example"]}]
)
def test_a_bound_that_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(AKConfigError):
        Fetcher(**wrong)
