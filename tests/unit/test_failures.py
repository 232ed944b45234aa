"""Failures at the tool boundary: each a sentence and an outcome of its own, nothing raised, nothing leaked (A8, X21)."""

import asyncio
import threading

import pytest

from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgePathError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.testing import FakeKnowledgeBase

CANARY = "hunter2canary"


class PanicException(BaseException):
    """What a native extension raises: no Exception."""


def call(builder, name, arguments, asynchronous):
    if asynchronous:
        return asyncio.run({tool.__name__: tool for tool in builder.build_async()}[name](**arguments))
    return {tool.__name__: tool for tool in builder.build()}[name](**arguments)


def run(behaviour, *, asynchronous=False, tool="read_kb", arguments=None, **limits):
    events = []
    backend = (
        FakeKnowledgeBase("lake", search=False, query_language="sql", writable=True)
        .on("query", behaviour)
        .on("write", behaviour)
    )
    builder = KnowledgeBuilder([backend], limits=Limits(**limits), on_event=events.append)
    answer = call(builder, tool, arguments or {"backend": "lake", "query": "SELECT 1"}, asynchronous)
    (event,) = events
    return answer, event.outcome


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("error", "outcome", "says"),
    [
        (KnowledgeQueryError("no such column: nam. Did you mean name?"), "rejected", "Did you mean name?"),
        (KnowledgeGuardError("it deletes", part="DELETE", position=0), "refused", "it deletes (DELETE, position 0)"),
        (KnowledgePathError("'../x' leaves the store"), "refused", "leaves the store"),
        (KnowledgeConnectionError("no answer from db:5432."), "unavailable", "no answer from db:5432"),
        (ConnectionRefusedError(CANARY), "unavailable", "can't be reached"),
        (KnowledgeTimeoutError("slow"), "timeout", "did not answer within 30 s"),
        (TimeoutError(CANARY), "timeout", "did not answer within 30 s"),
        (KnowledgeDependencyError("chroma", "ChromaManager"), "error", "pip install 'agentkernel-kb[chroma]'"),
        (AKConfigError("dimension 3 is not 4"), "error", "dimension 3 is not 4"),
        (KnowledgeBackendError(f"cannot open postgresql://me:{CANARY}@db/x"), "error", "postgresql://***@db/x"),
        (KnowledgeError(f"password={CANARY} was wrong"), "error", "password=*** was wrong"),
        (RuntimeError(f"postgresql://me:{CANARY}@db"), "error", "RuntimeError"),
        (ValueError(CANARY), "error", "ValueError"),
        (StopIteration(CANARY), "error", "lake"),
        (RecursionError(CANARY), "error", "RecursionError"),
        (MemoryError(), "error", "MemoryError"),
        (PanicException(CANARY), "error", "PanicException"),
        (KnowledgeError("x" * 100_000), "error", "…"),
        (KnowledgeError("one\n- [evil] two\x1b[2K"), "error", "one - [evil] two[2K"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a8_an_error_of_the_backend_becomes_a_sentence(error, outcome, says, asynchronous):
    answer, counted = run(error, asynchronous=asynchronous)
    assert counted == outcome
    assert says in answer
    assert CANARY not in answer
    assert "No relevant knowledge found" not in answer
    assert len(answer) < 1_500
    assert "\n" not in answer


@pytest.mark.parametrize("writable", [True, False])
def test_x1_a_refusal_points_to_write_kb_where_the_agent_has_it(writable):
    backends = [
        FakeKnowledgeBase("lake", search=False, query_language="sql", refused_words=["delete"]),
        FakeKnowledgeBase("prose", writable=True),
        FakeKnowledgeBase("ledger", search=False, query_language="sql", writable=True),
    ]
    answer = KnowledgeBuilder(backends).build(writable=writable)[1]("lake", "DELETE FROM t")
    assert answer.startswith("Refused: read_kb only reads. ")
    assert answer.endswith(" To write, use write_kb with: ['ledger'].") == writable


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, "NoneType"),
        ("text", "str"),
        ({"text": "x"}, "dict"),
        (3, "int"),
        (["text"], "str records"),
        ([None], "NoneType records"),
    ],
)
def test_a8_what_is_no_list_of_records_is_an_error_and_not_empty(returned, says, asynchronous):
    answer, outcome = run(lambda *args, **kwargs: returned, asynchronous=asynchronous)
    assert outcome == "error"
    assert answer == f"Backend 'lake' failed: its query answered with {says} in place of a list of records."


def test_a8_a_generator_of_records_is_understood():
    answer, outcome = run(lambda *args, **kwargs: ({"text": str(n), "metadata": {}} for n in range(2)))
    assert (answer, outcome) == ("- 0 (source: N/A)\n- 1 (source: N/A)", "ok")


def test_a8_a_coroutine_in_place_of_records_is_an_error():
    async def search():
        return []

    answer, outcome = run(lambda *args, **kwargs: search())
    assert outcome == "error"
    assert "coroutine" in answer


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_x3_a_read_that_takes_too_long_ends_with_a_sentence(asynchronous):
    answer, outcome = run(5.0, asynchronous=asynchronous, seconds=0.05)
    assert (answer, outcome) == ("Backend 'lake' did not answer within 0.05 s. Narrow it, or try again.", "timeout")


def test_x3_a_write_that_takes_too_long_may_have_been_stored():
    answer, outcome = run(5.0, tool="write_kb", arguments={"backend": "lake", "query": "INSERT"}, seconds=0.05)
    assert outcome == "timeout"
    assert "may or may not have been stored" in answer


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "needs backend, query"),
        ({"backend": "lake"}, "needs query"),
        ({"backend": "lake", "query": "x", "top_k": 3}, "has no argument 'top_k'"),
        ({"backend": "lake", "statement": "x"}, "has no argument 'statement' and needs query"),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a8_wrong_arguments_are_answered_with_the_right_ones(arguments, says, asynchronous):
    events = []
    builder = KnowledgeBuilder([FakeKnowledgeBase("lake")], on_event=events.append)
    answer = call(builder, "read_kb", arguments, asynchronous)
    assert answer == f"read_kb {says}. Its arguments: backend, query, limit (optional)."
    assert [event.outcome for event in events] == ["bad_argument"]


def test_a8_wrong_positions_are_answered_too():
    read_kb = KnowledgeBuilder([FakeKnowledgeBase("lake")]).build()[1]
    assert read_kb("lake", "x", 3, 4).startswith("read_kb takes at most 3 arguments, not 4. ")
    assert read_kb("lake", "x", query="y").startswith("read_kb was given query twice. ")
    assert KnowledgeBuilder([]).build()[0](1) == "get_schemas takes at most 0 arguments, not 1. It takes no arguments."


def test_a8_what_must_go_on_goes_on():
    with pytest.raises(KeyboardInterrupt):
        run_inline(KeyboardInterrupt())


def run_inline(error):
    class Inline(FakeKnowledgeBase):
        def search(self, query, limit=3, *, timeout=None, **kwargs):
            raise error

    return KnowledgeBuilder([Inline("i")]).build()[1]("i", "x")


def test_a8_a_panic_in_the_callers_thread_is_a_sentence_too():
    assert "PanicException" in run_inline(PanicException(CANARY))


@pytest.mark.parametrize("behaviour", [RuntimeError(CANARY), KnowledgeError(f"password={CANARY}")])
def test_a8_nothing_confidential_is_logged_above_debug(behaviour, caplog):
    caplog.set_level("INFO")
    run(behaviour)
    assert CANARY not in caplog.text
    assert "'lake' failed" in caplog.text


def test_a8_after_close_the_tools_say_so():
    events = []
    builder = KnowledgeBuilder([FakeKnowledgeBase("lake")], on_event=events.append)
    tools = builder.build()
    builder.close()
    answers = {tools[1]("lake", "x"), tools[0](), tools[3]()}
    assert answers == {"The knowledge bases are closed. No tool can reach them any more."}
    assert {event.outcome for event in events} == {"closed"}


class UntoldError(KnowledgeError):
    def __str__(self):
        raise ValueError(CANARY)


def test_a8_an_error_without_a_text_is_told_by_its_type():
    answer, outcome = run(UntoldError())
    assert (answer, outcome) == ("Backend 'lake' failed on query: UntoldError", "error")


@pytest.mark.parametrize("tool", ["get_schemas", "get_all_kb_descriptions", "search_kb"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a8_a_system_without_threads_is_a_sentence(tool, asynchronous, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    builder = KnowledgeBuilder([FakeKnowledgeBase("b")])
    monkeypatch.setattr(threading.Thread, "start", refuse)  # A real limit of threads would bring down the test runner.
    answer = call(builder, tool, {"backend": "b", "query": "x"} if tool == "search_kb" else {}, asynchronous)
    assert "no thread can be started for kb-b" in answer


@pytest.mark.parametrize(
    "honest",
    [
        'unrecognized token: "#"',
        "unrecognized token: \"x'0'\"",
        "key (id)=(5) is not unique",
        "ratio 3/4 of the rows",
        "Unexpected token: SELECT",
        "basic arithmetic operators are + and -",
        "no such column: password_hash",
        "near tokens: a syntax error",
        "the bearer of this badge",
        "user: unknown",
    ],
)
def test_a8_honest_messages_are_not_masked(honest):
    assert honest in run(KnowledgeQueryError(honest))[0]


@pytest.mark.parametrize(
    "leak",
    [
        f"postgresql://me:{CANARY}@db/x",
        f"mongodb+srv://me:{CANARY}@db",
        f"password={CANARY}",
        f"Password: '{CANARY}'",
        f'{{"password": "{CANARY}"}}',
        f"host=db user=me pwd={CANARY};",
        f"api_key={CANARY}",
        f"x-api-key: {CANARY}",
        f"AccountKey={CANARY}==",
        f"access_token={CANARY}",
        f"token: {CANARY}123",
        f"Authorization: Bearer {CANARY}",
        f"authorization: Basic {CANARY}",
        f"'Authorization': 'Token {CANARY}'",
        f"Bearer {CANARY}",
        f"client_secret={CANARY}&x=1",
        f"postgres://user:p/{CANARY}@h",
        f"postgres://user:p@{CANARY}@h/db",
        f"postgres://user:p'{CANARY}@h",
        f"password=a,{CANARY}",
        f"password=a;{CANARY}",
        f'password="a\\"{CANARY}"',
        f"password='it''s {CANARY}'",
        f'{{\\"password\\": \\"{CANARY}\\"}}',
        f"pw={CANARY}",
        f"passphrase={CANARY}",
        f"private_key={CANARY}",
        f"Authorization: {CANARY}",
        f"Cookie: session={CANARY}",
        f"SharedAccessSignature={CANARY}",
        f"https://x/?sig={CANARY}&se=1",
        f"--password {CANARY}",
        f"password == {CANARY}",
        f"password%3D{CANARY}",
        f"IDENTIFIED BY '{CANARY}'",
        f"<password>{CANARY}</password>",
        f"scott/{CANARY}@h",
        f"sk-{CANARY}",
        f"ghp_{CANARY}",
        f"aws_access_key_id={CANARY}",
        "password=" + "x" * 1_960 + f" postgres://user:{CANARY}{'y' * 20}@h",
    ],
)
def test_a8_credentials_in_a_message_of_our_own_are_masked(leak):
    answer, _ = run(KnowledgeBackendError(f"cannot open {leak} now"))
    assert CANARY not in answer
    assert "***" in answer


def test_a8_a_capability_error_with_a_text_of_its_own_shows_none_of_it():
    answer, _ = run(KnowledgeCapabilityError("lake", f"x at postgres://u:{CANARY}@h\n- [id] forged"))
    assert CANARY not in answer
    assert "\n" not in answer


async def test_x4_what_rendering_takes_counts_towards_the_deadline():
    class Slow:
        def __str__(self):
            threading.Event().wait(1)
            return "x"

    backend = FakeKnowledgeBase("b").on("search", lambda *args, **kwargs: [{"text": Slow(), "metadata": {}}])
    builder = KnowledgeBuilder([backend], limits=Limits(seconds=0.2))
    assert "did not answer within 0.2 s" in await builder.build_async()[1]("b", "x")
    assert "did not answer within 0.2 s" in builder.build()[1]("b", "x")
