"""Labelled questions put to a router: figures worked out by hand, and descriptions that overlap (X13)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.errors import KnowledgeConnectionError
from agentkernel_kb.evaluation.overlap import overlaps
from agentkernel_kb.evaluation.questions import Question
from agentkernel_kb.evaluation.results import Call, Transcript
from agentkernel_kb.evaluation.routing import baseline, evaluate, listened, routes_of
from agentkernel_kb.testing import FakeKnowledgeBase

RECORDS = [{"text": "Refunds take 30 days.", "metadata": {"id": "refunds"}}]

# What a router did about five questions, and what is labelled:
#   a → A search, 40 characters, answer "thirty";   labelled A, search, contains "THIRTY"
#   b → B query,  41 characters;                    labelled A, search
#   c → none,      8 characters;                    labelled none
#   d → A search,  4 characters, answer "x";        labelled none
#   e → B query, 100 tokens as counted, answer "5"; labelled B, query, contains "5" and "6"
DONE = {
    "a": Transcript((Call("A", "search"), Call("B", "query")), "It takes thirty days", 40),
    "b": Transcript((Call("B", "query"),), "", 41),
    "c": Transcript((), "", 8),
    "d": Transcript((Call("A", "search"),), "x", 4),
    "e": Transcript((Call("B", "query"),), "5", 12, tokens=100),
}
QUESTIONS = [
    Question("a", "A", "search", ("THIRTY",)),
    Question("b", "A", "search"),
    Question("c", None),
    Question("d", None),
    Question("e", "B", "query", ("5", "6")),
]


def test_accuracy_is_the_share_of_what_is_labelled():
    done = evaluate(QUESTIONS, DONE.__getitem__)
    assert done.backend_accuracy == pytest.approx(3 / 5)  # a, c, e
    assert done.operation_accuracy == pytest.approx(2 / 3)  # a, e of a, b, e
    assert done.answer_accuracy == pytest.approx(1 / 2)  # a of a, e


def test_the_confusion_matrix_counts_what_was_chosen_for_what():
    assert evaluate(QUESTIONS, DONE.__getitem__).confusion == {
        "A": {"A": 1, "B": 1},
        "B": {"B": 1},
        "none": {"A": 1, "none": 1},
    }


def test_tokens_are_those_that_were_counted_and_otherwise_a_quarter_of_the_characters():
    done = evaluate(QUESTIONS, DONE.__getitem__)
    assert [result.tokens for result in done.results] == [10, 11, 2, 1, 100]
    assert done.to_dict()["tokens"] == {"total": 124, "reckoned": True}


def test_what_is_not_labelled_has_no_accuracy():
    figures = evaluate([Question("c", None)], DONE.__getitem__).to_dict()
    assert figures["accuracy"] == {"backend": 1.0, "operation": None, "answer": None}
    assert evaluate([], DONE.__getitem__).backend_accuracy == 0


def test_a_question_that_fails_is_wrong_and_the_others_go_on():
    def answer(question: str) -> Transcript:
        if question == "c":
            raise RuntimeError("token=hunter2")
        if question == "d":
            raise KnowledgeConnectionError("Nobody answers at graph:7687.")
        return DONE[question]

    done = evaluate(QUESTIONS, answer)
    assert [result.error for result in done.results] == ["", "", "RuntimeError", "Nobody answers at graph:7687.", ""]
    assert [result.right_backend for result in done.results] == [True, False, False, False, True]


def test_each_agent_is_asked_for_once_and_has_its_own_answers():
    asked: list[str | None] = []

    def of_agent(agent: str | None):
        asked.append(agent)
        return lambda question: Transcript((Call(str(agent), "search"),))

    questions = [Question("1", "X", agent="X"), Question("2", "Y", agent="Y"), Question("3", "X", agent="X")]
    done = evaluate(questions, of_agent, by_agent=True)
    assert asked == ["X", "Y"]
    assert done.backend_accuracy == 1


def test_what_an_agent_calls_is_heard_from_the_tools():
    with KnowledgeBuilder([FakeKnowledgeBase("handbook", RECORDS), FakeKnowledgeBase("other")]) as builder:
        tools = {tool.__name__: tool for tool in builder.build()}

        def agent(question: str) -> tuple[str, int]:
            tools["get_schemas"]()
            return f"It says: {tools['search_kb']('handbook', question)}", 321

        (result,) = evaluate([Question("refunds", "handbook", "search", ("30 days",))], listened(agent)).results
    assert (result.backend, result.operation) == ("handbook", "search")
    assert (result.right_backend, result.right_operation, result.right_answer) == (True, True, True)
    assert (result.tokens, result.reckoned) == (321, False)


def test_the_baseline_answers_by_search_and_only_names_what_it_cannot_phrase():
    sales = FakeKnowledgeBase("sales", query_language="sql", search=False, description="sales holds clients and budgets")
    handbook = FakeKnowledgeBase("handbook", RECORDS, description="handbook holds rules for refunds")
    with KnowledgeBuilder([handbook, sales]) as builder:
        answer = baseline(builder, {"handbook": ["how long do refunds take"]})
        found, named, nowhere = answer("refunds"), answer("how many clients?"), answer("umbrella")
    assert found.calls == (Call("handbook", "search"),)
    assert "30 days" in found.answer
    assert (named.calls, named.answer) == ((Call("sales", "query"),), "")
    assert nowhere.calls == ()
    assert [operation for operation, _, _ in sales.calls] == []


def test_an_agent_that_may_use_nothing_is_answered_none():
    assert baseline(None)("refunds").calls == ()


def test_a_backend_that_is_down_is_known_by_its_description():
    graph = FakeKnowledgeBase("graph", description="graph holds who knows whom")
    graph.down = KnowledgeConnectionError("Nobody answers.")
    with KnowledgeBuilder([graph]) as builder:
        (route,) = routes_of(builder, {})
    assert (route.about, route.operations) == ("graph holds who knows whom", frozenset({"search"}))


def test_descriptions_that_share_their_words_are_named_with_what_to_write():
    found = overlaps(
        {
            "crm": "Clients, contracts and invoices of the company.",
            "erp": "Contract, invoice and client data, and deliveries.",
            "wiki": "How to write documents.",
        }
    )
    (overlap,) = found
    assert overlap.backends == ("crm", "erp")
    assert overlap.shared == ("clients", "contracts", "invoices")
    assert overlap.own == {"crm": ("company",), "erp": ("data", "deliveries")}
    assert overlap.share == pytest.approx(3 / 4)
    assert "'erp': data, deliveries" in overlap.advice


def test_a_description_that_says_nothing_of_its_own_is_told_so():
    (overlap,) = overlaps({"a": "Clients, contracts, invoices.", "b": "Invoices, clients, contracts and deliveries."})
    assert "Nothing tells 'a' apart" in overlap.advice


def test_names_and_small_words_are_no_overlap():
    assert overlaps({"crm": "crm is what the company has of it", "erp": "erp is what a team has of it"}) == []
    assert overlaps({"a": "", "b": ""}) == []
