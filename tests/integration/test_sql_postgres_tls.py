"""PostgreSQL over TLS (X7): a certificate that holds lets in, one that does not is `untrusted`, and no secret is told."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import certificates
import postgres_front
import pytest

import servers
from agentkernel_kb import KnowledgeBuilder, KnowledgeConnectionError
from agentkernel_kb.sql import SQLManager

pytestmark = pytest.mark.server("postgres")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def right(folder: Path) -> Path:
    return certificates.make(folder, "right")


@pytest.fixture
def front(postgres_server: servers.Server, right: Path) -> Iterator[int]:
    with postgres_front.tls(postgres_server.port, right) as port:
        yield port


def behind(server: servers.Server, port: int, mode: str, authority: Path | str) -> str:
    """Return the URL of the server's database by way of a front, whose certificate `authority` has to vouch for."""
    address = server.url.replace(f":{server.port}/", f":{port}/")
    return f"{address}?sslmode={mode}&sslrootcert={authority}"


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_a_certificate_that_holds_lets_in(postgres_server: servers.Server, front: int, right: Path, mode: str) -> None:
    with closing(SQLManager(behind(postgres_server, front, mode, right), name="lake")) as manager:
        assert manager.query("SELECT 1 AS one")[0]["metadata"]["row"] == {"one": 1}
        assert manager.ping(timeout=20).startswith("postgres ")


def test_a_statement_is_stopped_over_tls_too(postgres_server: servers.Server, front: int, right: Path) -> None:
    with closing(SQLManager(behind(postgres_server, front, "verify-full", right), name="lake")) as manager:
        page = manager.query("SELECT g, repeat('x', 1000) AS x FROM generate_series(1, 10000000) AS g", 3)
        assert (len(page), page.more) == (3, True)
        assert manager.query("SELECT 2 AS two")[0]["metadata"]["row"] == {"two": 2}


@pytest.mark.parametrize("fault", ["expired", "of another making", "for another address", "expired, without asking the name"])
def test_a_certificate_that_does_not_hold_is_untrusted_and_nothing_secret_is_told(
    postgres_server: servers.Server, folder: Path, right: Path, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    expired = certificates.make(folder, "expired", days=-1)
    elsewhere = certificates.make(folder, "elsewhere", address="192.0.2.1")
    shown, authority, mode = {
        "expired": (expired, expired, "verify-full"),
        "of another making": (elsewhere, right, "verify-full"),
        "for another address": (elsewhere, elsewhere, "verify-full"),
        "expired, without asking the name": (expired, expired, "verify-ca"),
    }[fault]
    with postgres_front.tls(postgres_server.port, shown) as port:
        url = behind(postgres_server, port, mode, authority)
        with pytest.raises(KnowledgeConnectionError) as caught:
            SQLManager(url, name="lake")
        assert caught.value.state == "untrusted"
        assert str(caught.value) == (
            f"The PostgreSQL database 'kb' at 127.0.0.1:{port} is reached, but its certificate or encryption is not what this "
            "application demands."
        )
        told = [*traceback.format_exception(caught.value), *asked_through_the_router(url)]
    assert servers.PASSWORD not in "\n".join([*told, caplog.text])


def asked_through_the_router(url: str) -> list[str]:
    """Return all that a router tells of a database whose certificate does not hold."""
    lazy = SQLManager(url, name="lake", connect="lazy")
    with KnowledgeBuilder([lazy]) as router:
        tools = {tool.__name__: tool for tool in router.build()}
        answer = tools["read_kb"]("lake", "SELECT 1")
        health = router.health(timeout=30)
        assert health["lake"].state == "untrusted"
        assert "certificate" in answer
        return [answer, tools["get_schemas"](), tools["get_all_kb_descriptions"](), repr(health), repr(lazy), repr(router)]


def test_a_mode_that_does_not_ask_takes_any_certificate(postgres_server: servers.Server, folder: Path) -> None:
    """`sslmode=require` without an authority encrypts and trusts anybody, as libpq documents."""
    with postgres_front.tls(postgres_server.port, certificates.make(folder, "unknown", days=-1)) as port:
        url = behind(postgres_server, port, "require", folder / "no such authority")
        with closing(SQLManager(url, name="lake")) as manager:
            assert manager.query("SELECT 1 AS one")[0]["metadata"]["row"] == {"one": 1}


def test_an_authority_that_is_not_there_is_untrusted(postgres_server: servers.Server, front: int, folder: Path) -> None:
    with pytest.raises(KnowledgeConnectionError) as caught:
        SQLManager(behind(postgres_server, front, "verify-full", folder / "nowhere.pem"), name="lake")
    assert caught.value.state == "untrusted"
    assert servers.PASSWORD not in "".join(traceback.format_exception(caught.value))
