"""Logins, certificates and strange servers, over loopback endpoints that speak Trino's protocol or none (A13, X1)."""

from __future__ import annotations

import http.server
import io
import json
import logging
import ssl
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import certificates
import pytest
import requests
import requests.auth
import trino.auth

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeBuilder,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.errors import KnowledgeIdentityError
from agentkernel_kb.identity import acting_as
from agentkernel_kb.starburst import StarburstManager
from servers import Server, free_port

SECRET = "canary-password-93b1"
TOKEN = "canary-token-77aa"
Handle = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def endpoint(handle: Handle, certificate: Path | None = None, client_authority: Path | None = None) -> Generator[int]:
    """Serve on loopback, with TLS where there is a certificate, and return the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            handle(self)

        do_GET = do_DELETE = do_HEAD = do_POST  # noqa: N815 - the names are those of http.server

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = _overlook
    if certificate is not None:
        context = certificates.served(certificate)
        if client_authority is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_authority)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _overlook(request: object, client_address: object) -> None:
    """A refused handshake is what some tests are about."""


def answers(status: int, body: str = "", **headers: str) -> Handle:
    """Answer everything alike."""

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        request.send_response(status)
        content = body.encode()
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return handle


def passes_on(port: int, login: str | None) -> Handle:
    """Hand requests over to a real server if they have the login, `None` for any, as a proxy in front of Trino does."""

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if login is not None and request.headers.get("Authorization") != login:
            request.send_response(401)
            request.send_header("WWW-Authenticate", 'Basic realm="Trino"')
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        kept = {name: value for name, value in request.headers.items() if name.lower() not in ("authorization", "host")}
        kept.pop("Accept-Encoding", None)
        answer = requests.request(
            request.command, f"http://127.0.0.1:{port}{request.path}", headers=kept, data=body, timeout=60
        )
        host = request.headers["Host"]
        content = answer.text.replace(f"http://127.0.0.1:{port}", f"https://{host}").encode()
        request.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower().startswith("x-trino") or name.lower() == "content-type":
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return handle


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates.make(tmp_path_factory.mktemp("tls"), "trusted")


BASIC = requests.auth._basic_auth_str("kb", SECRET)  # pyright: ignore[reportPrivateUsage] - as the server would read it


@pytest.fixture
def tls(trino_server: Server, certificate: Path) -> Iterator[int]:
    with endpoint(passes_on(trino_server.port, BASIC), certificate) as port:
        yield port


# Logins that are good.


@pytest.mark.server("trino")
def test_a_password_lets_in_over_tls(tls: int, certificate: Path) -> None:
    with closing(StarburstManager("127.0.0.1", tls, "kb", SECRET, "tpch", "tiny", verify=str(certificate))) as backend:
        assert len(backend.query("SELECT * FROM nation")) == 3


@pytest.mark.server("trino")
def test_a_token_lets_in(trino_server: Server, certificate: Path) -> None:
    with (
        endpoint(passes_on(trino_server.port, f"Bearer {TOKEN}"), certificate) as port,
        closing(
            StarburstManager(
                f"https://127.0.0.1:{port}", user="kb", auth=trino.auth.JWTAuthentication(TOKEN), verify=str(certificate)
            )
        ) as backend,
    ):
        assert backend.query("SELECT current_user AS who")[0]["text"] == "who=kb"


@pytest.mark.server("trino")
def test_a_client_certificate_lets_in(trino_server: Server, certificate: Path, tmp_path: Path) -> None:
    own = certificates.make(tmp_path, "client")
    with endpoint(passes_on(trino_server.port, None), certificate, client_authority=own) as port:
        auth = trino.auth.CertificateAuthentication(str(own), str(own))
        with closing(StarburstManager("127.0.0.1", port, "kb", auth=auth, verify=str(certificate))) as backend:
            assert backend.query("SELECT 1 AS one")[0]["text"] == "one=1"


@pytest.mark.server("trino")
def test_oauth_fetches_a_token_where_the_server_says(trino_server: Server, certificate: Path) -> None:
    opened: list[str] = []
    ports: list[int] = []
    real = passes_on(trino_server.port, f"Bearer {TOKEN}")

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        if request.path == "/token":
            answers(200, json.dumps({"token": TOKEN}))(request)
        elif request.headers.get("Authorization") is None:
            place = f"https://127.0.0.1:{ports[0]}"
            told = f'Bearer x_redirect_server="{place}/login", x_token_server="{place}/token"'
            answers(401, WWW_Authenticate=told)(request)
        else:
            real(request)

    with endpoint(handle, certificate) as port:
        ports.append(port)
        auth = trino.auth.OAuth2Authentication(trino.auth.CompositeRedirectHandler([opened.append]))
        with closing(StarburstManager("127.0.0.1", port, "kb", auth=auth, verify=str(certificate))) as backend:
            assert backend.query("SELECT 1 AS one")[0]["text"] == "one=1"
    assert opened == [f"https://127.0.0.1:{port}/login"]


# Logins and servers that are not.


@pytest.mark.server("trino")
def test_a_wrong_password_is_unauthorized_and_told_nowhere(
    tls: int, certificate: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    wrong = f"{SECRET}-wrong"
    with pytest.raises(KnowledgeConnectionError, match="does not accept the login") as caught:
        StarburstManager("127.0.0.1", tls, "kb", wrong, verify=str(certificate))
    assert caught.value.state == "unauthorized"
    backend = StarburstManager("127.0.0.1", tls, "kb", wrong, verify=str(certificate), connect="lazy")
    with KnowledgeBuilder([backend.add_schema({"use": "all"})]) as router:
        tools = {tool.__name__: tool for tool in router.build()}
        told = [str(tools["read_kb"]("starburst", "SELECT 1")), str(tools["get_schemas"]())]
        told += [str(tools["get_all_kb_descriptions"]()), repr(backend), repr(vars(backend)), repr(router)]
    assert "does not accept the login" in told[0]
    trace = io.StringIO()
    traceback.print_exception(caught.value, file=trace)
    everything = "\n".join([*told, trace.getvalue(), repr(caught.value), caplog.text, *capfd.readouterr()])
    encoded = requests.auth._basic_auth_str("kb", wrong)  # pyright: ignore[reportPrivateUsage] - see above
    assert SECRET not in everything
    assert encoded.split()[1] not in everything


def test_a_token_is_told_nowhere(certificate: Path) -> None:
    with endpoint(answers(401), certificate) as port:
        backend = StarburstManager(
            "127.0.0.1",
            port,
            "kb",
            auth=trino.auth.JWTAuthentication(TOKEN),
            extra_credential=[("store", TOKEN)],
            http_headers={"X-Gateway": TOKEN},
            verify=str(certificate),
            connect="lazy",
        )
        with closing(backend), pytest.raises(KnowledgeConnectionError) as caught:
            backend.ping()
    assert caught.value.state == "unauthorized"
    assert TOKEN not in f"{backend!r} {vars(backend)!r} {caught.value!r}"


def test_an_expired_certificate_is_untrusted(tmp_path: Path) -> None:
    expired = certificates.make(tmp_path, "expired", days=-1)
    with endpoint(answers(200), expired) as port, pytest.raises(KnowledgeConnectionError, match="certificate") as caught:
        StarburstManager("127.0.0.1", port, "kb", SECRET, verify=str(expired))
    assert caught.value.state == "untrusted"


@pytest.mark.parametrize("missing", ["cert", "key"])
def test_a_certificate_to_log_in_with_that_is_not_there_is_said(certificate: Path, missing: str) -> None:
    files = {"cert": str(certificate), "key": str(certificate), missing: "/not/there.pem"}
    auth = trino.auth.CertificateAuthentication(files["cert"], files["key"])
    with pytest.raises(AKConfigError, match=r"A certificate or key that auth= or the environment \(REQUESTS_CA_BUNDLE\) names"):
        StarburstManager("127.0.0.1", free_port(), "kb", auth=auth, verify=str(certificate))


def test_a_certificate_of_unknown_making_is_untrusted(certificate: Path) -> None:
    with endpoint(answers(200), certificate) as port, pytest.raises(KnowledgeConnectionError) as caught:
        StarburstManager("127.0.0.1", port, "kb", SECRET)
    assert caught.value.state == "untrusted"


@pytest.mark.server("trino")
def test_health_tells_each_state_apart_and_no_secret(trino_server: Server, tls: int, certificate: Path, tmp_path: Path) -> None:
    def lake(name: str, port: int, *given: str, **options: Any) -> StarburstManager:
        return StarburstManager("127.0.0.1", port, "kb", *given, name=name, connect="lazy", **options).add_schema(
            {"use": "all"}
        )

    plain = trino_server.port
    expired = certificates.make(tmp_path, "expired", days=-1)
    with endpoint(answers(200), expired) as old:
        backends = [
            lake("well", plain),
            lake("nobody", free_port()),
            lake("refused", tls, f"{SECRET}-wrong", verify=str(certificate)),
            lake("expired", old, SECRET, verify=str(expired)),
            lake("catalog", plain, catalog="nowhere"),
            lake("schema", plain, catalog="tpch", schema="nowhere"),
        ]
        with KnowledgeBuilder(backends) as router:
            health = router.health(timeout=60)
    assert {name: each.state for name, each in health.items()} == {
        "well": "ok",
        "nobody": "unreachable",
        "refused": "unauthorized",
        "expired": "untrusted",
        "catalog": "missing",
        "schema": "missing",
    }
    assert SECRET not in repr(health)


def test_tls_to_a_server_without_is_untrusted() -> None:
    with endpoint(answers(200)) as port, pytest.raises(KnowledgeConnectionError, match="does not speak TLS") as caught:
        StarburstManager("127.0.0.1", port, "kb", SECRET)
    assert caught.value.state == "untrusted"


def test_a_user_that_may_not_act_for_others_is_told_so() -> None:
    with endpoint(answers(403, "Access Denied: User kb cannot impersonate user alice")) as port:
        backend = StarburstManager("127.0.0.1", port, "kb", impersonate=True, connect="lazy")
        with closing(backend), acting_as("alice"), pytest.raises(KnowledgeIdentityError, match="act for 'alice'"):
            backend.query("SELECT 1")


@pytest.mark.parametrize(
    ("status", "body", "error", "state"),
    [
        (404, "nothing here", KnowledgeConnectionError, "missing"),
        (403, "no", KnowledgeConnectionError, "unauthorized"),
        (429, "", KnowledgeConnectionError, "unreachable"),
        (503, "", KnowledgeConnectionError, "unreachable"),
        (500, "secret stack trace", KnowledgeBackendError, None),
        (200, "<html>another service</html>", KnowledgeBackendError, None),
        (200, '{"id": 1}', KnowledgeBackendError, None),
        (200, "[]", KnowledgeBackendError, None),
        (200, "", KnowledgeConnectionError, "unreachable"),
    ],
)
def test_another_service_is_told_from_trino(status: int, body: str, error: type[KnowledgeError], state: str | None) -> None:
    with endpoint(answers(status, body)) as port, pytest.raises(error) as caught:
        StarburstManager("127.0.0.1", port, "kb")
    assert getattr(caught.value, "state", None) == state
    assert "secret" not in str(caught.value)


def test_an_answer_that_drips_ends_with_the_time_that_there_is() -> None:
    done = threading.Event()

    def drip(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        while not done.wait(0.2):
            request.wfile.write(b" ")

    with endpoint(drip) as port:
        backend = StarburstManager("127.0.0.1", port, "kb", connect="lazy")
        try:
            with closing(backend), pytest.raises(KnowledgeTimeoutError):
                backend.query("SELECT 1", timeout=1.0)
        finally:
            done.set()
