"""`agentkernel-kb eval --model` against a server of completions: its calls are judged, each question alone (X13)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli_world import make_world, run
from model_server import Answer, calling, completion, model_server, told

QUESTIONS = """\
questions:
  - {question: "Are refunds granted?", backend: handbook, operation: search, contains: 30 days}
  - {question: "How many clients?", backend: sales, operation: query}
"""


def search_then_tell(body: dict[str, Any]) -> Answer:
    """Search the handbook whatever the question is, then retell what it answers."""
    answer = told(body)
    if answer is None:
        return calling(("search_kb", {"backend": "handbook", "query": "refunds"}))
    return completion({"content": f"It says: {answer}"})


def test_what_a_model_calls_is_judged_and_no_question_knows_of_another(tmp_path: Path) -> None:
    folder = make_world(tmp_path)
    (folder / "questions.yaml").write_text(QUESTIONS, "utf-8")
    with model_server(search_then_tell) as (address, requests):
        env = {"OPENAI_API_KEY": "not-a-real-key", "OPENAI_BASE_URL": address}
        done = run("eval", "questions.yaml", "--model", "tiny", "--json", folder=folder, env=env)
    assert done.code == 0, done.err
    assert done.json["accuracy"] == {"backend": 0.5, "operation": 0.5, "answer": 1.0}
    assert done.json["confusion"] == {"handbook": {"handbook": 1}, "sales": {"handbook": 1}}
    assert done.json["errors"] == 0
    assert "Are refunds granted?" not in json.dumps(requests[-1]["messages"])
