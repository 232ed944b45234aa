"""The file of labelled questions: what is read, and each fault with its line (X13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkernel_kb.config import ConfigurationError
from agentkernel_kb.evaluation.questions import Question, read_questions

BACKENDS = ("handbook", "sales")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "questions.yaml"
    path.write_text(text, "utf-8")
    return path


def faults(tmp_path: Path, text: str) -> list[tuple[int | None, str]]:
    with pytest.raises(ConfigurationError) as caught:
        read_questions(written(tmp_path, text), BACKENDS, ["Support"])
    assert all(fault.file.endswith("questions.yaml") for fault in caught.value.faults)
    return [(fault.line, fault.message) for fault in caught.value.faults]


def test_questions_are_read_with_their_labels(tmp_path: Path):
    text = """\
examples:
  handbook: ["Who approves travel?"]
questions:
  - {question: " How long do refunds take? ", backend: handbook, operation: search, contains: 30 days, agent: Support}
  - {question: "Who won the match?", backend: none}
"""
    read = read_questions(written(tmp_path, text), BACKENDS, ["Support"])
    assert read.questions == (
        Question("How long do refunds take?", "handbook", "search", ("30 days",), "Support"),
        Question("Who won the match?", None),
    )
    assert read.examples == {"handbook": ("Who approves travel?",)}
    assert read.warnings == ()


def test_all_faults_are_told_at_once_each_with_its_line(tmp_path: Path):
    text = """\
questions:
  - question: How long?
    backend: handbok
  - backend: sales
  - question: How many?
    backend: sales
    operation: srearch
    contains: [1]
    agent: Helper
  - just text
  - {question: Where, backend: sales, contaains: x}
example: {}
"""
    found = faults(tmp_path, text)
    assert [line for line, _ in found] == [3, 4, 7, 8, 9, 10, 11, 12]
    for (_, message), part in zip(
        found,
        [
            "Did you mean 'handbook'?",
            "question is missing",
            "Did you mean 'search'?",
            "put numbers in quotes",
            "No agent is called 'Helper'. Agents: Support.",
            "A question is a mapping",
            "Did you mean 'contains'?",
            "Did you mean 'examples'?",
        ],
        strict=True,
    ):
        assert part in message


@pytest.mark.parametrize("text", ["questions: []\n", "questions: {a: b}\n", "examples: {}\n", "{}\n"])
def test_a_file_without_questions_is_a_fault(tmp_path: Path, text: str):
    assert "at least one question" in faults(tmp_path, text)[0][1]


def test_a_question_without_a_backend_is_told_of_none(tmp_path: Path):
    assert "none for a question of no backend" in faults(tmp_path, "questions:\n  - question: Who?\n")[0][1]


def test_a_question_that_is_learnt_from_is_a_warning(tmp_path: Path):
    text = 'examples: {sales: ["how MANY?"]}\nquestions:\n  - {question: "How many?", backend: sales}\n'
    (warning,) = read_questions(written(tmp_path, text), BACKENDS).warnings
    assert (warning.line, "example" in warning.message) == (3, True)


def test_dollar_signs_in_questions_are_text(tmp_path: Path):
    text = 'questions:\n  - {question: "What costs $5 or ${HOME}?", backend: sales}\n'
    assert read_questions(written(tmp_path, text), BACKENDS).questions[0].text == "What costs $5 or ${HOME}?"
