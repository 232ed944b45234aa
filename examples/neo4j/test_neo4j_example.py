"""The neo4j example runs against a real server, reads from its graph and writes to it (A12, A19, A20)."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.neo4j import Neo4jManager

servers: Any = importlib.import_module("servers")  # Of `tests/`, which the root conftest can reach.
DEMO = Path(__file__).with_name("demo.py")

pytestmark = pytest.mark.server("neo4j")


def run(server: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "NEO4J_"))}
    environment: dict[str, str] = {
        **inherited,
        "NEO4J_URI": server,
        "NEO4J_PASSWORD": servers.PASSWORD,
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, str(DEMO)], env=environment, capture_output=True, encoding="utf-8", timeout=110, check=False
    )


def clear(server: str) -> None:
    """Take out what a demo wrote, another one's too."""
    graph = Neo4jManager(server, "neo4j", servers.PASSWORD)
    graph.write([{"text": "", "metadata": {"query": "MATCH (n) WHERE n:Colleague OR n:Project DETACH DELETE n"}}])
    graph.close()


@pytest.fixture(scope="module")
def output() -> Iterator[str]:
    server = servers.shared("neo4j").url
    clear(server)
    finished = run(server)
    assert (finished.returncode, finished.stderr) == (0, "")
    yield finished.stdout
    clear(server)


def test_it_says_that_no_language_model_is_at_work(output: str) -> None:
    assert output.startswith("No OPENAI_API_KEY: a stand-in knows the statements by heart; it is not a language model.")


def test_a_misspelt_label_is_mended_by_what_the_graph_has(output: str) -> None:
    first, _, _ = output.partition("How are Ines and Tomas connected?")
    assert "read_kb on people: rejected" in first
    assert "| Ines | lead |" in first
    assert "Mara" not in first


def test_a_path_is_drawn(output: str) -> None:
    assert "(:Colleague {name: Ines})-[:WORKS_ON {role: lead}]->(:Project {name: Harbour})<-[:WORKS_ON" in output


def test_what_the_agent_wrote_is_found(output: str) -> None:
    written, _, asked = output.partition("Who works on Harbour now?")
    assert "write_kb on people: ok" in written
    assert "| Mara | tester |" in asked


def test_nothing_is_deleted_by_a_read(output: str) -> None:
    assert "Refused: read_kb only reads. This statement deletes (DETACH, position 20)." in output


def test_without_a_server_it_says_how_to_start_one() -> None:
    finished = run(f"bolt://127.0.0.1:{servers.free_port()}")
    assert finished.returncode == 2
    assert "cannot be reached. Start a server with servers/neo4j.sh start" in finished.stdout
