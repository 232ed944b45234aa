"""The starburst example runs against a real server and answers from its tables (A13, A19, A20)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).with_name("demo.py")


def run(server: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "KB_DEMO_"))}
    environment = {**inherited, "KB_DEMO_TRINO_URL": server, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, str(DEMO)], env=environment, capture_output=True, encoding="utf-8", timeout=280, check=False
    )


@pytest.fixture(scope="module")
def output(trino_url: str) -> str:
    finished = run(trino_url)
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


pytestmark = [pytest.mark.server("trino"), pytest.mark.timeout(300)]


def test_it_says_that_no_language_model_is_at_work(output: str) -> None:
    assert output.startswith("No OPENAI_API_KEY: a stand-in knows the statements by heart; it is not a language model.")


def test_it_answers_from_the_tables_that_the_tokens_stand_for(output: str) -> None:
    assert "| O | 7333 |" in output
    assert "| Customer#000001489 | 5408941.28 |" in output


def test_a_guessed_column_is_mended_by_what_the_server_has(output: str) -> None:
    assert "read_kb on lake: rejected" in output
    assert "| BUILDING |" in output


def test_nothing_is_deleted(output: str) -> None:
    assert "read_kb on lake: refused" in output
    assert "Refused: read_kb only reads. This statement deletes (DELETE, position 0)." in output


def test_without_a_server_it_says_how_to_start_one() -> None:
    with socket.socket() as held:  # Bound and not listening: nobody else answers there.
        held.bind(("127.0.0.1", 0))
        finished = run(f"http://127.0.0.1:{held.getsockname()[1]}")
    assert finished.returncode == 2
    assert "can't be reached. Start a server with servers/trino.sh start" in finished.stdout
