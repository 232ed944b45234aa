"""The parts of the command that need no process: safe text, routing by words, exit codes (X10)."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.cli.deadline import within
from agentkernel_kb.cli.exits import Code, CommandError, code_of
from agentkernel_kb.cli.failures import explained
from agentkernel_kb.cli.routing import ranked
from agentkernel_kb.cli.text import hidden, printable
from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError, KnowledgeTimeoutError
from agentkernel_kb.router.events import Outcome

CATALOGUE = {
    "handbook": "The rules of the company: refunds, policies.",
    "sales": '{"tables": {"client_orders": "id INTEGER"}}',
    "wiki": "Notes. Поиск и документы. 知識管理",
}


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x1b]0;never ends", ""),
        ("\x1b]52;c;ZXZpbA==\x07", ""),
        ("a\x1bcb", "ab"),
        ("\x1b(0lqk", "lqk"),
        ("user\u202egpj.exe", "usergpj.exe"),
        ("back\x08\x08\x08space\r", "backspace\n"),
        ("tab\there\nline", "tab\there\nline"),
    ],
)
def test_text_loses_what_steers_a_terminal_and_nothing_else(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("\x1b\x9b\x9d\x07[]()0;m\u202e")))
def test_no_text_steers_a_terminal(text: str) -> None:
    assert not [each for each in printable(text) if (each < " " and each not in "\t\n") or "\x7f" <= each <= "\x9f"]


def test_secrets_are_hidden_the_longer_ones_first() -> None:
    assert hidden("postgres://kb:hunter2-and-more@h", {"hunter2", "hunter2-and-more"}) == "postgres://kb:***@h"


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("How long may a refund take?", "handbook"),
        ("which policy holds", "handbook"),
        ("the orders of a client", "sales"),
        ("документы", "wiki"),
        ("管理", "wiki"),
        ("what does SALES say", "sales"),
    ],
)
def test_question_goes_where_its_words_stand(question: str, first: str) -> None:
    assert ranked(question, CATALOGUE)[0][0] == first


@pytest.mark.parametrize("question", ["zymurgy", "", "is it the one?"])
def test_question_without_a_known_word_goes_nowhere(question: str) -> None:
    assert ranked(question, CATALOGUE) == []


def test_every_outcome_of_the_router_has_an_exit_code_and_only_answers_are_zero() -> None:
    assert {outcome for outcome in get_args(Outcome) if code_of(outcome) == Code.OK} == {"ok", "empty", "partial", "stale"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KnowledgeConnectionError("Nobody answers."), Code.UNREACHABLE),
        (KnowledgeTimeoutError("No answer."), Code.UNREACHABLE),
        (AKConfigError("Wrong.\nVery."), Code.FAILED),
        (RuntimeError("secret inside"), Code.FAILED),
    ],
)
def test_failure_is_one_sentence_and_what_others_say_is_kept_back(error: Exception, code: Code) -> None:
    failure = explained(error)
    assert failure.code == code
    assert "\n" not in failure.sentence
    assert "secret inside" not in failure.sentence


def test_work_within_its_time_returns_and_raises_as_it_would_alone() -> None:
    assert within(60, lambda: 42) == 42
    with pytest.raises(TimeoutError, match="its own"):
        within(60, _times_out)


def _times_out() -> None:
    raise TimeoutError("its own")


def test_work_that_takes_too_long_is_given_up_on() -> None:
    import threading

    with pytest.raises(CommandError, match="no answer within"):
        within(0.01, threading.Event().wait)
