"""`agentkernel-kb eval` over real stores: tables, JSON, exit codes, faults (X13, X10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import Command, Ran, make_world

from agentkernel_kb.cli import main

QUESTIONS = """\
examples:
  handbook: ["How long do refunds take?"]
questions:
  - {question: "Are refunds granted after 30 days?", backend: handbook, operation: search, contains: within 30 days}
  - {question: "How many clients have a budget?", backend: sales, operation: query}
  - {question: "How many clients have a budget?", backend: sales, operation: query, agent: Editor_Agent}
  - {question: "Who won the football game yesterday?", backend: none}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = make_world(tmp_path_factory.mktemp("eval"))
    (world / "questions.yaml").write_text(QUESTIONS, "utf-8")
    (world / "faulty.yaml").write_text("questions:\n  - {question: Who, backend: handbok}\n  - {question: Who}\n", "utf-8")
    (world / "handbook/refunds.txt").write_text("Refunds.\n", "utf-8")
    return world


@pytest.fixture
def kb(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(folder)
    for name in ("AGENTKERNEL_KB_CONFIG", "AGENTKERNEL_KB_ENV", "AGENTKERNEL_KB_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def test_an_agent_is_asked_with_what_it_may_use(kb: Command):
    done = kb("eval", "questions.yaml", "--json")
    assert done.code == 0
    # The third question is asked for an agent that may not use `sales`: to it, no such backend exists.
    assert done.json["confusion"]["handbook"] == {"handbook": 1}
    assert done.json["results"][1]["right_operation"]
    assert done.json["results"][2]["backend"] != "sales"
    assert done.json["accuracy"]["answer"] == 1.0
    assert done.json["confusion"]["none"] == {"none": 1}


def test_too_few_right_ones_end_with_a_code_for_the_shell(kb: Command):
    assert kb("eval", "questions.yaml", "--min-accuracy", "0.75").code == 0
    failed = kb("eval", "questions.yaml", "--min-accuracy", "0.8", "--json")
    assert (failed.code, failed.json["ok"]) == (1, False)
    assert "0.750 of the questions" in failed.err


def test_operations_and_answers_have_thresholds_of_their_own(kb: Command):
    assert kb("eval", "questions.yaml", "--min-operation", "0.6", "--min-answer", "1").code == 0
    failed = kb("eval", "questions.yaml", "--min-operation", "0.7", "--json")
    assert (failed.code, failed.json["ok"], failed.json["min_operation"]) == (1, False, 0.7)
    assert failed.err.endswith("0.667 of those that label an operation got it; --min-operation asks for 0.700.\n")


def test_a_threshold_of_what_no_question_labels_is_not_reached(kb: Command, folder: Path):
    (folder / "bare.yaml").write_text('questions:\n  - {question: "How long do refunds take?", backend: handbook}\n', "utf-8")
    failed = kb("eval", "bare.yaml", "--min-answer", "0.5")
    assert (failed.code, "No question is labelled for --min-answer." in failed.err) == (1, True)


def test_a_file_that_is_not_there_is_told(kb: Command):
    done = kb("eval", "nope.yaml")
    assert (done.code, done.err) == (2, "There is no file nope.yaml of questions.\n")


def test_the_tables_say_what_was_wrong(kb: Command):
    done = kb("eval", "questions.yaml", "--baseline")
    assert done.code == 0
    assert "backend\t0.750" in done.out
    assert "reckoned at four characters each" in done.out
    assert "How many clients have a budget?\tsales\t" in done.out


def test_all_faults_of_the_file_are_told_each_with_its_line(kb: Command):
    done = kb("eval", "faulty.yaml")
    assert (done.code, done.err) == (1, "faulty.yaml can't be read, so that nothing was asked.\n")
    first, second = done.out.splitlines()
    assert first.startswith("faulty.yaml:2: questions.0.backend: No backend is called 'handbok'. Did you mean 'handbook'?")
    assert second == "faulty.yaml:3: questions.1: backend is missing; none for a question of no backend."
    told = kb("eval", "faulty.yaml", "--json").json
    assert (told["ok"], [fault["line"] for fault in told["faults"]]) == (False, [2, 3])


def test_a_file_that_holds_no_questions_is_told_how_one_starts(kb: Command):
    assert "Start with questions: and what it holds." in kb("eval", "handbook/refunds.txt").out


def test_a_model_without_a_key_is_asked_nothing(kb: Command):
    done = kb("eval", "questions.yaml", "--model", "small")
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.err


def test_a_model_that_cannot_be_reached_fails_each_question_and_says_why(kb: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = kb("eval", "questions.yaml", "--model", "small", "--json")
    assert done.json["errors"] == 4
    assert {result["error"][:36] for result in done.json["results"]} == {"The model server at 127.0.0.1:9 can'"}
    assert done.json["accuracy"]["backend"] == 0


def test_a_model_and_the_baseline_are_not_asked_at_once(kb: Command):
    assert kb("eval", "questions.yaml", "--model", "small", "--baseline").code == 2
