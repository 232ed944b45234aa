"""Lets the tests of this example import its parts, as `python demo.py` does, and gives them the servers that `tests/` uses."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def addresses() -> dict[str, str]:
    """The addresses of the four servers, as the demo takes them from its environment."""
    servers = importlib.import_module("servers")
    names = ("chroma", "neo4j", "postgres", "trino")
    found = {f"KB_DEMO_{name.upper()}_URL": servers.shared(name).url for name in names}
    return {**found, "KB_DEMO_NEO4J_PASSWORD": servers.PASSWORD}
