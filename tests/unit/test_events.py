"""One event a call: counts, sizes, time and outcome; no text, no parameters (A8, X21)."""

import dataclasses

import pytest

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.router.events import ToolEvent
from agentkernel_kb.testing import FakeKnowledgeBase

CANARY = "hunter2canary"


def events_of(*calls, backend=None):
    events = []
    backend = backend or FakeKnowledgeBase(
        "b", [{"text": "hello", "metadata": {"id": "i"}}], fetch=True, browse=True, writable=True
    )
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([backend], on_event=events.append).build()}
    answers = [tools[name](**arguments) for name, arguments in calls]
    assert len(events) == len(calls)
    return events, answers


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("get_schemas", {}, ("", "schema", "ok", 1)),
        ("get_all_kb_descriptions", {}, ("", "describe", "ok", 1)),
        ("read_kb", {"backend": "b", "query": "hello"}, ("b", "search", "ok", 1)),
        ("search_kb", {"backend": "b", "query": "nobody"}, ("b", "search", "empty", 0)),
        ("fetch_kb", {"backend": "b", "ids": "i,j"}, ("b", "fetch", "partial", 1)),
        ("fetch_kb", {"backend": "b", "ids": "j"}, ("b", "fetch", "empty", 0)),
        ("browse_kb", {"backend": "b"}, ("b", "browse", "ok", 1)),
        ("write_kb", {"backend": "b", "text": "x"}, ("b", "write", "ok", 1)),
        ("read_kb", {"backend": CANARY, "query": CANARY}, ("", "", "unknown_backend", 0)),
        ("read_kb", {"backend": "b", "query": ""}, ("b", "", "bad_argument", 0)),
        ("fetch_kb", {"backend": "b", "ids": "<NO>"}, ("b", "", "unknown_token", 0)),
    ],
)
def test_a_call_is_told_once_with_its_outcome(tool, arguments, expected):
    (event,), (answer,) = events_of((tool, arguments))
    assert (event.backend, event.operation, event.outcome, event.rows) == expected
    assert (event.tool, event.characters) == (tool, len(answer))
    assert event.milliseconds > 0


def test_an_event_holds_no_text_and_no_parameters():
    backend = FakeKnowledgeBase("b", [{"text": CANARY, "metadata": {"id": CANARY}}], fetch=True, writable=True)
    backend.on("browse", KnowledgeGuardError(CANARY))
    events, _ = events_of(
        ("search_kb", {"backend": "b", "query": CANARY}),
        ("fetch_kb", {"backend": "b", "ids": CANARY}),
        ("write_kb", {"backend": "b", "query": CANARY, "params_json": {"x": CANARY}}),
        ("search_kb", {"backend": CANARY, "query": CANARY}),
        backend=backend,
    )
    assert CANARY not in repr(events)


def test_an_event_is_a_frozen_value():
    assert [field.name for field in dataclasses.fields(ToolEvent)] == [
        "tool",
        "backend",
        "operation",
        "outcome",
        "rows",
        "characters",
        "milliseconds",
        "attempts",
    ]


def test_a_listener_that_fails_is_logged_and_breaks_nothing(caplog):
    def broken(event):
        raise RuntimeError(CANARY)

    builder = KnowledgeBuilder([FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}])], on_event=broken)
    caplog.set_level("INFO")
    assert builder.build()[1]("b", "hello") == "- hello (source: N/A)"
    assert "on_event failed for a call of read_kb" in caplog.text
    assert CANARY not in caplog.text
