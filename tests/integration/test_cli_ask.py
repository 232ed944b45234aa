"""`agentkernel-kb ask`: a router agent in the terminal, a stand-in or a model behind a server of its own (X10)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_terminal import Terminal
from cli_world import environment, make_world, run
from model_server import Answer, calling, completion, model_server, told

import servers

KEY = "sk-canary-4711"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("ask"))


@pytest.mark.parametrize(
    ("question", "call", "answer"),
    [
        ("How long may a refund take?", 'search_kb(backend="handbook"', "within 30 days"),
        ("Which clients have a budget?", 'read_kb(backend="sales", query="SELECT * FROM clients"', "Acme"),
        ("What amounts do the orders have?", 'read_kb(backend="lake", query="SELECT * FROM orders"', "Globex"),
        ("What was said in the meetings?", 'search_kb(backend="notes"', ""),
    ],
)
def test_stand_in_routes_by_the_descriptions_and_shows_the_call_and_its_answer(
    folder: Path, question: str, call: str, answer: str
) -> None:
    ran = run("ask", question, folder=folder)
    assert ran.code == 0
    assert call in ran.out.splitlines()[0]
    assert answer in ran.out
    assert "it is not a language model" in ran.err


def test_stand_in_searches_everything_where_no_word_fits(folder: Path) -> None:
    ran = run("ask", "--json", "zymurgy?", folder=folder)
    (call,) = ran.json["calls"]
    assert (ran.code, call["tool"], call["backend"]) == (0, "search_kb", "*")


def test_agent_asks_only_what_it_may(folder: Path) -> None:
    ran = run("ask", "--agent", "Support_Agent", "--json", "What was said in the meetings?", folder=folder)
    assert "notes" not in ran.out


def test_questions_of_a_file_are_answered_line_by_line(folder: Path) -> None:
    ran = run("ask", "--quiet", folder=folder, typed="what do refunds take\n\nwhich clients have a budget\n")
    assert ran.code == 0
    assert [line.partition("(")[0] for line in ran.out.splitlines() if "(backend=" in line] == ["search_kb", "read_kb"]


def test_session_in_a_terminal_answers_until_it_is_left(folder: Path) -> None:
    terminal = Terminal("ask", folder=folder)
    terminal.wait_for("Ctrl-D ends.")
    terminal.type("/tools\n")
    terminal.wait_for("browse_kb")
    terminal.type("/nonsense\n")
    terminal.wait_for("There is no /nonsense.")
    terminal.type("what do refunds take\n")
    terminal.wait_for("within 30 days")
    terminal.type("/quit\n")
    assert terminal.ended() == 0


def test_end_of_input_leaves_the_session(folder: Path) -> None:
    terminal = Terminal("ask", folder=folder)
    terminal.wait_for("Ctrl-D ends.")
    while terminal.process.poll() is None:  # What is typed before the line editor listens is lost.
        terminal.type("\x04")
        terminal.shows(0.5)
    assert terminal.ended() == 0
    assert "Traceback" not in terminal.shown


def test_json_takes_a_question(folder: Path) -> None:
    ran = run("ask", "--json", folder=folder)
    assert (ran.code, ran.json["ok"]) == (2, False)


def search_then_tell(body: dict[str, Any]) -> Answer:
    """Search the handbook, then retell the first line of what it answers, in red."""
    answer = told(body)
    if answer is None:
        return calling(("search_kb", {"backend": "handbook", "query": "refunds", "limit": 1}))
    return completion({"content": f"It says: {answer.splitlines()[0]} \x1b[31mred\x1b[0m"})


def test_model_answers_through_the_tools_of_the_agent(folder: Path) -> None:
    with model_server(search_then_tell) as (address, requests):
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address}
        ran = run("ask", "--model", "tiny", "--agent", "Support_Agent", "--json", "refunds?", folder=folder, env=env)
    assert ran.code == 0
    (call,) = ran.json["calls"]
    assert (call["tool"], call["backend"], call["outcome"], call["rows"]) == ("search_kb", "handbook", "ok", 1)
    assert ran.json["answer"].startswith("It says: - [refunds.md]")
    assert {tool["function"]["name"] for tool in requests[0]["tools"]} >= {"read_kb", "search_kb"}
    assert "write_kb" not in json.dumps(requests[0]["tools"])
    assert KEY not in ran.out + ran.err


LEFT_OPEN = """
import asyncio, gc
from agentkernel_kb.cli.app import run
code = run(["ask", "--model", "tiny", "--quiet", "refunds?"])
loops = [each for each in gc.get_objects() if isinstance(each, asyncio.BaseEventLoop) and not each.is_closed()]
print("code", code, "open", len(loops))
"""


def test_session_with_a_model_closes_what_it_opened(folder: Path) -> None:
    with model_server(search_then_tell) as (address, _):
        env = environment({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address})
        command = [sys.executable, "-c", LEFT_OPEN]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.splitlines()[-1] == "code 0 open 0"


def test_session_with_a_model_remembers_what_was_said(folder: Path) -> None:
    with model_server(search_then_tell) as (address, requests):
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address, "AGENTKERNEL_KB_MODEL": "tiny"}
        ran = run("ask", folder=folder, env=env, typed="first question\nsecond question\n")
    assert ran.code == 0
    assert ran.out.count("It says:") == 2
    assert "first question" in json.dumps(requests[-1]["messages"])
    assert "\x1b" not in ran.out


def test_model_server_that_refuses_the_key_is_told_without_it(folder: Path) -> None:
    with model_server(lambda body: (401, {"error": {"message": f"bad key {KEY}"}})) as (address, _):
        ran = run("ask", "--model", "tiny", "hello", folder=folder, env={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address})
    assert (ran.code, ran.out) == (3, "")
    assert "answered with HTTP 401: check OPENAI_API_KEY." in ran.err
    assert KEY not in ran.err


def test_model_server_that_is_not_there(folder: Path) -> None:
    address = f"http://127.0.0.1:{servers.free_port()}/v1"
    ran = run("ask", "--model", "tiny", "hello", folder=folder, env={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address})
    assert (ran.code, ran.out) == (3, "")
    assert "can't be reached: check OPENAI_BASE_URL." in ran.err


def test_model_without_a_key(folder: Path) -> None:
    ran = run("ask", "--model", "tiny", "hello", folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "A model needs a key in OPENAI_API_KEY; a server of your own, in OPENAI_BASE_URL, takes any.\n"
