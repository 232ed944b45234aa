"""With a key, the same command drives the agent by an OpenAI-compatible server, here a real one on loopback (A19, A20)."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import demo
import pytest
from model_server import Answer, calling, completion, model_server, told
from multi_demo.model import choose_model
from multi_demo.standin import StandIn
from test_multi_demo import run_demo

_KEY = "sk-canary-4711"
_CODE = "SELECT code FROM <COUNTRIES> WHERE name = 'Peru'"
_CAPITAL = "SELECT capital FROM <COUNTRIES> WHERE name = 'Chile'"


def reads_then_tells(body: dict[str, Any]) -> Answer:
    """Ask for two statements at once, and tell what came back."""
    answer = told(body)
    if answer is not None:
        return completion({"content": f"The table says: {answer.splitlines()[-1]}"})
    return calling(*(("read_kb", {"backend": "places", "query": statement, "limit": 3}) for statement in (_CODE, _CAPITAL)))


def test_the_model_of_the_environment_answers_through_the_tools(tmp_path: Path) -> None:
    with model_server(reads_then_tells) as (address, requests):
        environment = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": address, "KB_MODEL": "tiny"}
        finished = run_demo(tmp_path, "What is the capital of Chile?", **environment)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "The model 'tiny' at 127.0.0.1" in finished.stdout
    assert finished.stdout.count("→ read_kb      places") == 2
    assert "Answer: The table says: | Santiago |" in finished.stdout
    assert _KEY not in finished.stdout
    assert [(request["path"], request["model"], request["key"]) for request in requests] == [
        ("/v1/chat/completions", "tiny", f"Bearer {_KEY}")
    ] * 2
    assert {tool["function"]["name"] for tool in requests[0]["tools"]} == {
        *("get_schemas", "read_kb", "write_kb", "get_all_kb_descriptions", "search_kb"),
    }


def use_model(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.delenv("KB_MODEL", raising=False)


async def test_what_a_real_model_gets_wrong_is_shown_and_does_not_fail_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with model_server(lambda body: completion({"content": "Perhaps \x1b[31m42."})) as (address, _):
        use_model(monkeypatch, address)
        code = await demo.run(tmp_path, [])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    number = len(demo.QUESTIONS)
    assert shown.out.count("Answer: Perhaps [31m42.") == number  # What moves a cursor or changes a colour is taken out.
    assert shown.out.count("✗") == number
    assert f"0 of {number} checks passed." in shown.out


async def test_a_server_that_is_not_there_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Bound and not listening: a connection is refused at once.
        port = taken.getsockname()[1]
        use_model(monkeypatch, f"http://user:hidden@127.0.0.1:{port}/v1")
        code = await demo.run(tmp_path, ["What is the capital of Chile?"])
    shown = capsys.readouterr()
    assert (code, shown.err) == (2, "")
    assert f"The model server at 127.0.0.1:{port} can't be reached. Check OPENAI_BASE_URL" in " ".join(shown.out.split())
    assert "hidden" not in shown.out
    assert _KEY not in shown.out


async def test_a_server_that_refuses_the_key_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"error": {"message": f"Incorrect API key provided: {_KEY}", "type": "invalid_request_error"}}
    with model_server(lambda body: (401, refusal)) as (address, _):
        use_model(monkeypatch, address)
        code = await demo.run(tmp_path, ["What is the capital of Chile?"])
    shown = capsys.readouterr()
    assert (code, shown.err) == (2, "")
    assert "answered with HTTP 401: check OPENAI_API_KEY." in " ".join(shown.out.split())
    assert _KEY not in shown.out


def test_no_key_means_the_stand_in_whatever_else_is_set() -> None:
    driver = choose_model({"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert isinstance(driver.model, StandIn)
    assert driver.label == "No OPENAI_API_KEY: a rule-based stand-in chooses the tools; it is not a language model."
