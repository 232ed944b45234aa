"""The chromadb example runs offline and answers from what was written (A11, A19, A20)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).with_name("demo.py")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "KB_"))}
    environment = {**inherited, "HOME": str(tmp_path_factory.mktemp("home")), "PYTHONIOENCODING": "utf-8"}
    finished = subprocess.run(
        [sys.executable, str(DEMO)], env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_it_says_that_no_language_model_is_at_work(output: str) -> None:
    assert output.startswith("No OPENAI_API_KEY: a stand-in with one rule chooses the tool; it is not a language model.")


def test_it_answers_from_the_facts_that_the_program_wrote(output: str) -> None:
    assert "Bins are emptied on Tuesday and on Friday, before eight in the morning. (source: cleaning.md)" in output
    assert "The meeting room Birch seats twelve people; book it in the calendar. (source: rooms.md)" in output


def test_it_finds_the_fact_that_the_agent_wrote(output: str) -> None:
    written, _, asked = output.partition("Until when is the lift out of order?")
    assert "write_kb on office: ok, 1 record(s)" in written
    assert "the lift is out of order until Monday. (source: agent)" in asked
