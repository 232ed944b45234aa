"""The demo runs offline, shows what it does, and its answers agree with the data (A19, A20)."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import demo
import pytest
from multi_demo.checks import QUESTIONS, Question, Verdict

# Ends the process at the first connection that is not local to it; a demo that needs no network must not make one.
_NO_NETWORK = """
import os, sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        os.write(2, f"{event} {arguments}".encode())
        os._exit(99)
sys.addaudithook(refuse)
"""


def run_demo(home: Path, *questions: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as a user does, with nothing in the environment that names a model but what is given."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "KB_", "COLUMNS"))}
    return subprocess.run(
        [sys.executable, str(Path(demo.__file__)), *questions],
        env={**inherited, "HOME": str(home), "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    home = tmp_path_factory.mktemp("home")
    (home / "sitecustomize.py").write_text(_NO_NETWORK, encoding="utf-8")
    paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    return run_demo(home, PYTHONPATH=os.pathsep.join(paths))


def test_it_succeeds_without_network_and_says_nothing_on_stderr(offline: subprocess.CompletedProcess[str]) -> None:
    assert (offline.returncode, offline.stderr) == (0, "")


def test_it_says_that_no_language_model_is_at_work(offline: subprocess.CompletedProcess[str]) -> None:
    assert "No OPENAI_API_KEY: a rule-based stand-in chooses the tools; it is not a language model." in offline.stdout


def test_every_answer_agrees_with_the_data(offline: subprocess.CompletedProcess[str]) -> None:
    assert f"{len(QUESTIONS)} of {len(QUESTIONS)} checks passed." in offline.stdout
    assert offline.stdout.count("✓") == len(QUESTIONS)
    assert "✗" not in offline.stdout


def test_the_checks_say_again_what_drove_the_agent(offline: subprocess.CompletedProcess[str]) -> None:
    after = offline.stdout.partition("checks passed.")[2]
    assert "a rule-based stand-in chooses the tools; it is not a language model." in after


def test_each_answer_stands_beside_what_was_expected(offline: subprocess.CompletedProcess[str]) -> None:
    (row,) = re.findall(r"│ ✓ │ Who approves a trip to +│.*\n(?:│   │.*\n)*", offline.stdout)
    asked, answered, expected = (
        " ".join(cells) for cells in zip(*(line.split("│")[2:5] for line in row.splitlines()), strict=True)
    )
    assert "Mongolia?" in asked
    assert "head of department" in " ".join(answered.split())
    assert " ".join(expected.split()) == "head of department"


def test_help_is_no_question(tmp_path: Path) -> None:
    finished = run_demo(tmp_path, "--help")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith("usage: demo.py [-h] [--servers] [question ...]")
    assert "Answer:" not in finished.stdout


def test_a_wrong_option_is_no_question_either(tmp_path: Path) -> None:
    finished = run_demo(tmp_path, "--fast")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "unrecognized arguments: --fast" in finished.stderr


def test_every_tool_call_shows_its_backend_time_outcome_query_and_answer(offline: subprocess.CompletedProcess[str]) -> None:
    call = r"→ read_kb +places +\d+\.\d ms  ok, 1 record\n +SELECT COUNT\(\*\) .*\n +WHERE .*\n +\| countries \|\n +\| \d+ \|"
    assert re.search(call, offline.stdout)
    assert re.search(r"→ get_schemas +all +\d+\.\d ms  ok, 4 records", offline.stdout)
    assert re.search(r"→ search_kb +handbook +\d+\.\d ms  ok, \d records", offline.stdout)


def test_the_graph_is_asked_in_cypher_and_its_codes_go_into_sql(offline: subprocess.CompletedProcess[str]) -> None:
    asked = offline.stdout.partition("Which neighbour of Germany has the largest population?")[2]
    graph = r"→ read_kb +borders +\d+\.\d ms  ok, 9 records\n +MATCH .*-\[:NEIGHBOURS\]-.*\n"
    table = r"→ read_kb +places +\d+\.\d ms  ok, 1 record\n +SELECT name, population FROM <COUNTRIES>.*\n +WHERE code IN \("
    assert re.search(rf"{graph}(?s:.*?){table}", asked)


def test_duckdb_is_asked_for_what_sqlite_lacks(offline: subprocess.CompletedProcess[str]) -> None:
    assert re.search(
        r"→ read_kb +trips +\d+\.\d ms  ok, 4 records\n +SELECT CAST\(date_trunc\('quarter', .* median\(", offline.stdout
    )
    assert "QUALIFY row_number() OVER (PARTITION BY department" in offline.stdout


def test_the_trips_are_said_to_be_made_up(offline: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"trips: All business trips .*\s+Made-up data\.", offline.stdout)


def test_schemas_are_shown_once(offline: subprocess.CompletedProcess[str]) -> None:
    assert offline.stdout.count('borders: {"backend": "borders"') == 1


def test_both_ways_to_a_write_are_refused(offline: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"→ write_kb +places +\d+\.\d ms  undeclared, 0 records\n +DELETE FROM <CITIES>", offline.stdout)
    assert re.search(r"→ read_kb +places +\d+\.\d ms  refused, 0 records\n +DELETE FROM <CITIES>", offline.stdout)


def test_off_a_terminal_it_prints_plain_text_of_a_fixed_width(offline: subprocess.CompletedProcess[str]) -> None:
    assert "\x1b" not in offline.stdout
    assert max(map(len, offline.stdout.splitlines())) <= 100


def test_a_narrow_window_and_an_old_code_page_do_not_break_it(tmp_path: Path) -> None:
    finished = run_demo(tmp_path, "What is the capital of Peru?", COLUMNS="40", PYTHONIOENCODING="ascii")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert max(map(len, finished.stdout.splitlines())) <= 40
    assert "Answer: Peru: capital Lima. [places]" in finished.stdout


def test_a_failed_check_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KB_MODEL"):
        monkeypatch.delenv(name, raising=False)
    wrong = Question("What is the capital of Peru?", "places", lambda told: Verdict("Bogotá", "Bogotá" in told.answer))
    monkeypatch.setattr(demo, "QUESTIONS", (wrong,))
    assert asyncio.run(demo.run(tmp_path, [])) == 1
