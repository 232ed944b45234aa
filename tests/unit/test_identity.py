"""Identity outside the model (X18): bound by the application, right across tasks, threads and pools, no argument of a tool."""

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentkernel_kb import KnowledgeBuilder, describe
from agentkernel_kb.errors import AKConfigError, KnowledgeError, KnowledgeIdentityError
from agentkernel_kb.identity import Identity, acting_as, current_identity, required_identity
from agentkernel_kb.model import Record
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.resilience import Resilience
from agentkernel_kb.testing import FakeKnowledgeBase

PRINCIPALS = ("alice@example.org", "bob@example.org")


def of_whom(*args: object, **kwargs: object) -> list[Record]:
    """Answer with whom the call acts for."""
    identity = current_identity()
    return [{"text": f"for {identity.principal.split('@')[0]}" if identity else "for nobody", "metadata": {}}]


class Native(FakeKnowledgeBase):
    """A backend with an async driver."""

    async def asearch(self, query, limit=3, **kwargs) -> list[Record]:
        await asyncio.sleep(0)
        return of_whom()


class Inline(FakeKnowledgeBase):
    """A backend that gives up by itself, and so is called in the caller's thread."""

    def search(self, query, limit=3, *, timeout: float = 0, **kwargs):
        return of_whom()


class Untouched(FakeKnowledgeBase):
    """A backend that nothing may reach."""

    def check_read(self, statement, *, allow=()):
        pytest.fail("a statement was looked at")

    def _derived_schema(self, *, filters=None):
        pytest.fail("the store was asked")

    def get_diagnostics(self):
        pytest.fail("the content was shown")


def tools_of(builder: KnowledgeBuilder, *, is_async: bool = False) -> dict[str, Any]:
    return {tool.__name__: tool for tool in (builder.build_async() if is_async else builder.build())}


# The identity itself.


def test_nobody_is_bound_to_begin_with():
    assert contextvars.Context().run(current_identity) is None


def test_an_identity_holds_within_its_block_and_inner_ones_within_theirs():
    with acting_as("alice", tenant="acme", roles=["reader", "auditor"]) as bound:
        assert bound == current_identity() == Identity("alice", "acme", ("reader", "auditor"))
        with acting_as("bob"):
            assert current_identity() == Identity("bob")
        assert current_identity() is bound
    assert current_identity() is None


def test_an_identity_ends_with_its_block_even_if_that_fails():
    with pytest.raises(ZeroDivisionError), acting_as("alice"):
        raise ZeroDivisionError
    assert current_identity() is None


@pytest.mark.parametrize(
    "faulty",
    [
        {"principal": ""},
        {"principal": "  "},
        {"principal": None},
        {"principal": 7},
        {"principal": "a\nb"},
        {"principal": "a\x00"},
        {"principal": "a\u202eb"},
        {"principal": "x" * 257},
        {"principal": "alice", "tenant": ""},
        {"principal": "alice", "tenant": "a\tb"},
        {"principal": "alice", "roles": [""]},
        {"principal": "alice", "roles": "reader"},
        {"principal": "alice", "roles": None},
        {"principal": "alice", "roles": [3]},
    ],
    ids=str,
)
def test_a_faulty_identity_is_an_error_where_it_is_bound(faulty):
    with pytest.raises(AKConfigError, match="An identity's"), acting_as(**faulty):
        pass
    assert current_identity() is None


def test_an_identity_is_a_value_that_can_be_a_key():
    assert Identity("alice", None, ["reader"]) == Identity("alice", None, ("reader",))  # pyright: ignore[reportArgumentType]
    assert len({Identity("alice"), Identity("alice"), Identity("alice", "acme"), Identity("alice", roles=("x",))}) == 3


def test_what_is_required_is_there_or_a_clear_error():
    with acting_as("alice") as bound:
        assert required_identity("lake") is bound
    with pytest.raises(KnowledgeIdentityError, match="Backend 'lake' answers only on behalf of a user"):
        required_identity("lake")


def test_a_thread_that_is_started_plainly_acts_for_nobody():
    seen: list[Identity | None] = []
    with acting_as("alice"):
        thread = threading.Thread(target=lambda: seen.append(current_identity()))
        thread.start()
        thread.join()
    assert seen == [None]


# The router.


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_call_for_nobody_is_refused_before_anything_reaches_a_backend_that_demands_somebody(is_async):
    events = []
    backend = Untouched("lake", requires_identity=True, query_language="sql", fetch=True, browse=True, writable=True)
    tools = tools_of(KnowledgeBuilder([backend], on_event=events.append), is_async=is_async)
    calls = [
        ("read_kb", {"query": "SELECT 1"}),
        ("search_kb", {"query": "x"}),
        ("fetch_kb", {"ids": "1"}),
        ("browse_kb", {}),
        ("write_kb", {"text": "x"}),
    ]
    for name, arguments in calls:
        answer = tools[name]("lake", **arguments)
        answer = asyncio.run(answer) if is_async else answer
        assert answer == (
            "Refused: Backend 'lake' answers only on behalf of a user, and the application bound none to this call "
            "(builder.acting_as). No argument of a tool can."
        )
    schema, described = tools["get_schemas"](), tools["get_all_kb_descriptions"]()
    schema, described = (asyncio.run(schema), asyncio.run(described)) if is_async else (schema, described)
    assert '{"lake": {"error": "Refused: Backend \'lake\' answers only on behalf of a user' in schema
    assert described == "- lake: lake holds records in memory."
    assert backend.calls == []
    assert [(event.outcome, event.attempts) for event in events[:5]] == [("identity", 0)] * 5


def test_what_is_wrong_with_a_call_is_said_before_who_makes_it():
    read_kb = tools_of(KnowledgeBuilder([FakeKnowledgeBase("lake", requires_identity=True)]))["read_kb"]
    assert read_kb("lake", "") == "query is empty. It must be what to look for, in plain words."


def test_a_backend_that_demands_nobody_is_served_without():
    assert tools_of(KnowledgeBuilder([FakeKnowledgeBase("b").on("search", of_whom)]))["search_kb"]("b", "x") == (
        "- for nobody (source: N/A)"
    )


@pytest.mark.parametrize("kind", [FakeKnowledgeBase, Inline, Native], ids=["pooled", "inline", "native"])
def test_one_hundred_interleaved_tasks_each_act_for_their_own(kind):
    backend = kind("b", requires_identity=True).on("search", of_whom)
    builder = KnowledgeBuilder([backend])
    search_kb = tools_of(builder, is_async=True)["search_kb"]

    async def ask(number: int) -> tuple[str, str]:
        principal = PRINCIPALS[number % 2]
        with builder.acting_as(principal):
            await asyncio.sleep(0)
            first = await search_kb("b", f"question {number}")
            await asyncio.sleep(0)
            assert await search_kb("b", f"question {number}") == first
        return principal, first

    async def ask_all() -> list[tuple[str, str]]:
        return await asyncio.gather(*map(ask, range(100)))

    answers = asyncio.run(ask_all())
    assert [answer for _, answer in answers] == [f"- for {principal.split('@')[0]} (source: N/A)" for principal, _ in answers]


@pytest.mark.parametrize("kind", [FakeKnowledgeBase, Inline], ids=["pooled", "inline"])
def test_one_hundred_interleaved_threads_each_act_for_their_own(kind):
    backend = kind("b", requires_identity=True).on("search", of_whom)
    builder = KnowledgeBuilder([backend])
    search_kb = tools_of(builder)["search_kb"]
    together = threading.Barrier(10)

    def ask(number: int) -> bool:
        name = PRINCIPALS[number % 2]
        with builder.acting_as(name):
            together.wait(30)
            return search_kb("b", f"question {number}") == f"- for {name.split('@')[0]} (source: N/A)"

    with ThreadPoolExecutor(10) as threads:
        assert all(threads.map(ask, range(100)))


async def test_a_worker_that_served_one_user_serves_the_next_as_themselves():
    class OneWorker(FakeKnowledgeBase):
        max_workers = 1

    backend = OneWorker("b")
    builder = KnowledgeBuilder([backend])
    search_kb = tools_of(builder, is_async=True)["search_kb"]
    for principal in (*PRINCIPALS, PRINCIPALS[0]):
        with builder.acting_as(principal):
            await search_kb("b", "x")
    await search_kb("b", "x")
    assert [whom and whom.principal for whom in backend.acted_for] == [*PRINCIPALS, PRINCIPALS[0], None]


def test_no_tool_takes_an_identity():
    builder = KnowledgeBuilder([FakeKnowledgeBase("b", fetch=True, browse=True, writable=True, requires_identity=True)])
    words = {"principal", "tenant", "roles", "role", "user", "identity", "acting_as"}
    for tool in (*builder.build(), *builder.build_async()):
        description = describe(tool)
        assert description is not None
        assert not words & {*inspect.signature(tool).parameters, *description.parameters["properties"]}
    with builder.acting_as("alice"):
        assert "has no argument 'principal'" in tools_of(builder)["search_kb"](backend="b", query="x", principal="bob")


@pytest.mark.parametrize(
    "error",
    [
        KnowledgeIdentityError("The store does not know alice@example.org."),
        KnowledgeError("user alice@example.org may not"),
        KnowledgeError("role 'alice@example.org' does not exist"),
    ],
    ids=str,
)
def test_whom_a_call_acts_for_stands_in_no_answer_of_a_failure_and_in_no_event(error, caplog):
    events = []
    caplog.set_level("INFO")
    builder = KnowledgeBuilder([FakeKnowledgeBase("b").on("search", error)], on_event=events.append)
    with builder.acting_as(PRINCIPALS[0], tenant="acme", roles=["auditor"]):
        answer = tools_of(builder)["search_kb"]("b", "x")
    assert "***" in answer
    for text in (answer, repr(events), caplog.text):
        assert not [name for name in (PRINCIPALS[0], "acme", "auditor") if name in text]


def test_a_name_that_is_a_part_of_a_word_is_left_in_it():
    builder = KnowledgeBuilder([FakeKnowledgeBase("b").on("search", KnowledgeError("no such table: clients"))])
    with builder.acting_as("cli"):
        assert "no such table: clients" in tools_of(builder)["search_kb"]("b", "x")


def test_somebody_the_store_does_not_take_is_refused_and_takes_the_backend_from_nobody_else():
    events = []
    backend = FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}])
    backend.down = KnowledgeIdentityError("The store does not take this user.")
    builder = KnowledgeBuilder([backend], resilience=Resilience(failures=1), on_event=events.append)
    search_kb = tools_of(builder)["search_kb"]
    with builder.acting_as("mallory"):
        answers = {search_kb("b", "hello") for _ in range(5)}
    backend.down = None
    assert answers == {"Refused: The store does not take this user."}
    assert search_kb("b", "hello") == "- hello (source: N/A)"
    assert [event.outcome for event in events] == ["identity"] * 5 + ["ok"]


def test_a_call_that_is_given_up_leaves_no_identity_behind():
    release = threading.Event()
    backend = FakeKnowledgeBase("b").on("search", lambda *args, **kwargs: release.wait(30) and [])
    builder = KnowledgeBuilder([backend], limits=Limits(seconds=0.1))
    with builder.acting_as("alice"):
        assert "did not answer" in tools_of(builder)["search_kb"]("b", "x")
    assert current_identity() is None
    release.set()
    tools_of(builder)["search_kb"]("b", "x")
    assert backend.acted_for[-1] is None
