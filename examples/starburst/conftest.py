"""Gives the test of this example the real Trino server that those in `tests/` use."""

import importlib

import pytest


@pytest.fixture(scope="session")
def trino_url() -> str:
    """The address of a Trino server with the tpch catalog."""
    servers = importlib.import_module("servers")
    return servers.shared("trino").url
