"""What a URL may reach (P3): every spelling of an address that is not public is refused before anything is connected to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError
from agentkernel_kb.rag.loading.addresses import Allowance, addresses_of, is_public, parse_url

NOTHING = Allowance()


def resolver(*addresses: str):
    return lambda host, port: list(addresses)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
        "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1", "64:ff9b:1::192.168.0.1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "100::1", "2001:db8::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
        "2607:f8b0::5efe:127.0.0.1", "2607:f8b0::200:5efe:10.0.0.1", "5f00::1", "2002:808:808::1", "2001:1::1", "2001:4:112::1",
        "2001:20::1", "2001:1ff:ffff::1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_public_internet_is_told(address) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"],
)
def test_an_address_of_the_public_internet_is_told(address) -> None:
    assert is_public(ip_address(address))


@given(st.integers(0, 2**32 - 1))
def test_an_address_inside_of_another_is_as_public_as_it_is_itself(number) -> None:
    inner = IPv4Address(number)
    for prefix in ("::ffff:0:0", "64:ff9b::", "2607:f8b0::5efe:0:0"):
        assert is_public(IPv6Address(int(IPv6Address(prefix)) + number)) == is_public(inner)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "017700000001", "0x7f000001", "0x7F.1", "127.1", "127.0.1", "0177.0.0.1", "127.0.0.01",
        "0x7f.0x0.0x0.0x1", "3232235521", "00000177.1", "127.0.0.1.1", "1.2.3", "0", "0x", "256.256.256.256", "[::ffff:7f00:1",
        "[127.0.0.1]",
        "%31%32%37.0.0.1", "127。1", "a b", "a\tb", "a\nb", "", "[fe80::1%25eth0]x",
    ],
)  # fmt: skip
def test_a_host_that_is_spelled_as_only_programs_do_is_refused(host) -> None:
    with pytest.raises(AKConfigError):
        parse_url(f"http://{host}/")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.org/", "Only http"),
        ("file:///etc/passwd", "Only http"),
        ("gopher://example.org/", "Only http"),
        ("javascript:alert(1)", "Only http"),
        ("//example.org/", "Only http"),
        ("http://user:secret@example.org/", "holds a login"),
        ("http://example.org@127.0.0.1/", "holds a login"),
        ("http://@example.org/", "holds a login"),
        ("http://example.org\\@127.0.0.1/", "backslashes"),
        ("http://example.org/\r\nX: y", "control characters"),
        ("http://example.org:99999/", "malformed"),
        ("http://example.org:0/", "Port 0"),
        ("http://example.org:22/", "Port 22"),
        ("http://example.org:25/", "Port 25"),
        ("http:///path", "no host name"),
        ("http://[::1", "malformed"),
        (f"http://example.org/{'a' * 9_000}", "too long"),
    ],
)
def test_a_url_that_is_not_to_be_loaded_is_refused_with_the_reason(url, message) -> None:
    with pytest.raises(AKConfigError, match=message) as refused:
        parse_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.ORG", "http://example.org/"),
        ("HTTPS://example.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("http://１.1.1.1/", "http://1.1.1.1/"),
        ("http://example.org?q=1", "http://example.org/?q=1"),
    ],
)
def test_a_url_has_one_spelling(url, expected) -> None:
    assert parse_url(url).url == expected


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "internal.example", "①②⑦.0.0.1"]
)
def test_a_host_is_refused_by_the_address_that_it_has(host) -> None:
    with pytest.raises(AKConfigError, match="is not a public host") as refused:
        addresses_of(parse_url(f"http://{host}/"), resolver("127.0.0.1"), NOTHING)
    assert "resolv" not in str(refused.value)


def test_a_host_with_one_forbidden_address_among_public_ones_is_not_reached_at_all() -> None:
    with pytest.raises(AKConfigError):
        addresses_of(parse_url("http://example.org/"), resolver("93.184.216.34", "10.0.0.1"), NOTHING)


def test_what_the_application_allows_is_reached_and_nothing_beside_it() -> None:
    by_name, by_network = Allowance(hosts=["Wiki.internal."]), Allowance(networks=["10.1.0.0/16"])
    assert addresses_of(parse_url("http://wiki.internal/"), resolver("10.0.0.1"), by_name) == ["10.0.0.1"]
    assert addresses_of(parse_url("http://other.internal/"), resolver("10.1.2.3"), by_network) == ["10.1.2.3"]
    for host, address, allowance in (("evil.example", "10.0.0.1", by_name), ("evil.example", "10.2.0.1", by_network)):
        with pytest.raises(AKConfigError):
            addresses_of(parse_url(f"http://{host}/"), resolver(address), allowance)


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(AKConfigError, match="write one as"):
        Allowance(networks=["10.1.0.1/16"])


@pytest.mark.parametrize("answer", [[], ["not an address"]])
def test_a_host_without_a_usable_address_is_told(answer) -> None:
    with pytest.raises(KnowledgeConnectionError):
        addresses_of(parse_url("http://example.org/"), resolver(*answer), NOTHING)


def test_a_host_that_cannot_be_resolved_is_told() -> None:
    def fails(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    with pytest.raises(KnowledgeConnectionError, match="cannot be resolved"):
        addresses_of(parse_url("http://nowhere.example/"), fails, NOTHING)


@given(st.text(max_size=40))
def test_whatever_stands_for_a_url_is_read_or_refused(text) -> None:
    for url in (text, f"http://{text}", f"http://{text}/", f"https://a{text}"):
        try:
            target = parse_url(url)
        except AKConfigError:
            continue
        assert parse_url(target.url) == target
