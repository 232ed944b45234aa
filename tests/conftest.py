"""Each real server is a fixture. What the tests of several folders share can be imported, see the conftest above this one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from buckets import Bucket

import servers


@pytest.fixture(scope="session")
def chroma_server() -> servers.Server:
    """A Chroma server, `http://host:port`."""
    return servers.shared("chroma")


@pytest.fixture(scope="session")
def minilm_model() -> Path:
    """The folder of all-MiniLM-L6-v2 in ONNX's format."""
    return servers.minilm()


@pytest.fixture(scope="session")
def neo4j_server() -> servers.Server:
    """A Neo4j server, `bolt://host:port`; user `neo4j`, password `servers.PASSWORD`."""
    return servers.shared("neo4j")


@pytest.fixture(scope="session")
def postgres_server() -> servers.Server:
    """A PostgreSQL server, `postgresql://kb:password@host:port/kb`; the login `reader` may only read."""
    return servers.shared("postgres")


@pytest.fixture(scope="session")
def s3_server() -> servers.Server:
    """An S3 server, `http://host:port`; keys `kb-test-key` and `kb-read-key`, secret `kb-test-secret`."""
    return servers.shared("s3")


@pytest.fixture(scope="session")
def bucket(s3_server: servers.Server) -> Iterator[Bucket]:
    """A bucket of this worker's own on the S3 server."""
    from buckets import new_bucket  # The SDK takes its time, and few tests need it.

    with new_bucket(s3_server.url) as made:
        yield made


@pytest.fixture(scope="session")
def trino_server() -> servers.Server:
    """A Trino server, `http://host:port`; the user `reader` may only read, every other one may do all."""
    return servers.shared("trino")
