"""The demo answers the same from real servers (A20)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import demo
import pytest
from multi_demo.checks import QUESTIONS

pytestmark = [
    pytest.mark.server("chroma"),
    pytest.mark.server("neo4j"),
    pytest.mark.server("postgres"),
    pytest.mark.server("trino"),
]


def run_on_servers(addresses: dict[str, str], *questions: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "KB_DEMO_", "COLUMNS"))}
    return subprocess.run(
        [sys.executable, str(Path(demo.__file__)), "--servers", *questions],
        env={**inherited, "PYTHONIOENCODING": "utf-8", **addresses},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.timeout(400)
def test_every_answer_from_the_servers_agrees_with_the_data(addresses: dict[str, str]) -> None:
    finished = run_on_servers(addresses)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert f"{len(QUESTIONS)} of {len(QUESTIONS)} checks passed." in finished.stdout
    for engine in ("PostgreSQL", "Neo4j, a graph", "Trino", "a Chroma server"):
        assert f"[{engine}]" in " ".join(finished.stdout.split())


def test_a_server_that_is_not_there_is_a_sentence(addresses: dict[str, str]) -> None:
    finished = run_on_servers({**addresses, "KB_DEMO_POSTGRES_URL": "postgresql://kb:secret-word@127.0.0.1:1/kb"}, "Anything?")
    assert finished.returncode == 2
    assert "make servers" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "secret-word" not in finished.stderr + finished.stdout
