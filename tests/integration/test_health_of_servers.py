"""`health()` tells apart why a real server cannot be used (X7), and holds no password and no token."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import certificates
import postgres_front
import pytest
from chroma_proxy import TOKEN_HEADER, proxy

import servers
from agentkernel_kb import KnowledgeBase, KnowledgeBuilder
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.sql import SQLManager

SECRET = "hunter2canary"
STATES = ("ok", "unreachable", "unauthorized", "missing", "untrusted")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate that has expired, though this process trusts whoever made it."""
    file = certificates.make(tmp_path, "expired", days=-1)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return file


def told(backend: KnowledgeBase, caplog: pytest.LogCaptureFixture) -> tuple[str, str]:
    """Return a backend's state, and all that was said on the way."""
    with KnowledgeBuilder([backend]) as router:
        health = router.health(timeout=30)[backend.backend_name]
        descriptions = {tool.__name__: tool for tool in router.build()}["get_all_kb_descriptions"]()
        said = f"{health!r} {health.to_dict()} {descriptions} {backend!r} {router!r} {caplog.text}"
    return health.state, said


# chromadb 1.5.9 leaves the connections of a client that could not be constructed to the collector, which would come to them
# during other tests: so each state is asked in a process of its own.
CHROMA = """
import json, logging, sys
from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
backend = ChromaManager(host="127.0.0.1", embedding_function=HashEmbedder(64), connect="lazy", **json.loads(sys.argv[1]))
with KnowledgeBuilder([backend]) as router:
    health = router.health(timeout=30)[backend.backend_name]
    descriptions = {tool.__name__: tool for tool in router.build()}["get_all_kb_descriptions"]()
    print(f"{health!r} {health.to_dict()} {descriptions} {backend!r} {router!r}")
print(health.state)
"""


@pytest.mark.server("chroma")
@pytest.mark.parametrize("state", STATES)
def test_health_of_chroma_tells_each_state_and_no_secret(
    chroma_server: servers.Server, state: str, stack: ExitStack, expired: Path
) -> None:
    guard = stack.enter_context(proxy(chroma_server.port, SECRET))
    dated = stack.enter_context(proxy(chroma_server.port, SECRET, expired))
    options = {
        "port": {"unreachable": servers.free_port(), "untrusted": dated.port}.get(state, guard.port),
        "ssl": state == "untrusted",
        "headers": {TOKEN_HEADER: f"wrong-{SECRET}" if state == "unauthorized" else SECRET},
        "database": "nowhere" if state == "missing" else None,
    }
    ran = subprocess.run(
        [sys.executable, "-c", CHROMA, json.dumps(options)], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.splitlines()[-1] == state
    assert SECRET not in ran.stdout
    assert SECRET not in ran.stderr


@pytest.mark.server("postgres")
@pytest.mark.parametrize("state", STATES)
def test_health_of_postgresql_tells_each_state_and_no_secret(
    postgres_server: servers.Server, state: str, stack: ExitStack, expired: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    port = stack.enter_context(postgres_front.tls(postgres_server.port, expired))
    good = postgres_server.url
    url = {
        "ok": good,
        "unreachable": good.replace(f":{postgres_server.port}/", f":{servers.free_port()}/"),
        "unauthorized": good.replace(servers.PASSWORD, SECRET),
        "missing": f"{good}_of_no_such_name",
        "untrusted": good.replace(f":{postgres_server.port}/", f":{port}/") + f"?sslmode=verify-full&sslrootcert={expired}",
    }[state]
    found, said = told(SQLManager(url, connect="lazy"), caplog)
    assert found == state
    assert SECRET not in said
    assert servers.PASSWORD not in said


@pytest.mark.server("neo4j")
@pytest.mark.parametrize("state", STATES)
def test_health_of_neo4j_tells_each_state_and_no_secret(
    neo4j_server: servers.Server, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    good = neo4j_server.url
    url, password, database = {
        "ok": (good, servers.PASSWORD, None),
        "unreachable": (f"bolt://127.0.0.1:{servers.free_port()}", SECRET, None),
        "unauthorized": (good, SECRET, None),
        "missing": (good, servers.PASSWORD, "nowhere"),
        "untrusted": (good.replace("bolt", "bolt+s"), servers.PASSWORD, None),
    }[state]
    found, said = told(Neo4jManager(url, "neo4j", password, database, connect="lazy"), caplog)
    assert found == state
    assert SECRET not in said
    assert servers.PASSWORD not in said
