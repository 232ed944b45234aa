"""Async tools: native where the backend is, in that backend's own threads where it is not (X4, A2)."""

import asyncio
import contextvars
import gc
import inspect
import threading

import pytest

from agentkernel_kb.base import worker_pool
from agentkernel_kb.errors import KnowledgeTimeoutError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import Record
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.testing import FakeKnowledgeBase

WHO = contextvars.ContextVar("who", default="nobody")


def async_tools(*backends, **limits):
    return {tool.__name__: tool for tool in KnowledgeBuilder(list(backends), limits=Limits(**limits)).build_async()}


def test_x4_the_same_tools_as_coroutine_functions():
    builder = KnowledgeBuilder([FakeKnowledgeBase("b", fetch=True, browse=True)])
    plain, native = builder.build(), builder.build_async()
    assert [tool.__name__ for tool in native] == [tool.__name__ for tool in plain]
    assert [inspect.signature(tool) for tool in native] == [inspect.signature(tool) for tool in plain]
    assert all(inspect.iscoroutinefunction(tool) for tool in native)
    assert [tool.__name__ for tool in builder.build_async(writable=False)] == [
        t.__name__ for t in builder.build(writable=False)
    ]


async def test_x4_sync_and_async_answer_alike():
    backend = FakeKnowledgeBase(
        "b",
        [{"text": "hello", "metadata": {"id": "a/b", "source": "s"}}],
        query_language="sql",
        fetch=True,
        browse=True,
        writable=True,
    )
    builder = KnowledgeBuilder([backend])
    calls = [
        ("get_schemas", {}),
        ("get_all_kb_descriptions", {}),
        ("read_kb", {"backend": "b", "query": "hello"}),
        ("search_kb", {"backend": "b", "query": "hello"}),
        ("fetch_kb", {"backend": "b", "ids": "a/b,c"}),
        ("browse_kb", {"backend": "b"}),
        ("write_kb", {"backend": "b", "text": "hello again"}),
        ("read_kb", {"backend": "x", "query": "hello"}),
        ("read_kb", {"backend": "b", "query": "<X>"}),
    ]
    plain = {tool.__name__: tool for tool in builder.build()}
    native = {tool.__name__: tool for tool in builder.build_async()}
    for name, arguments in calls:
        assert await native[name](**arguments) == plain[name](**arguments)


async def test_x4_a_hung_backend_does_not_hold_up_the_others():
    release = threading.Event()
    hung = FakeKnowledgeBase("hung").on("search", lambda *args, **kwargs: [] if release.wait(30) else None)
    tools = async_tools(hung, FakeKnowledgeBase("quick", [{"text": "hello", "metadata": {}}]))
    waiting = [asyncio.create_task(tools["search_kb"]("hung", "x")) for _ in range(2 * hung.max_workers)]
    await asyncio.sleep(0)
    try:
        answers = await asyncio.gather(*(tools["search_kb"]("quick", "hello") for _ in range(50)))
        assert set(answers) == {"- hello (source: N/A)"}
        assert not any(task.done() for task in waiting)
    finally:
        release.set()
    assert set(await asyncio.gather(*waiting)) == {"No relevant knowledge found."}


async def test_x4_calls_that_wait_behind_a_hung_backend_end_at_their_deadline_and_never_run():
    release, started = threading.Event(), []

    def hang(*args, **kwargs):
        started.append(1)
        release.wait(30)
        return []

    hung = FakeKnowledgeBase("hung").on("search", hang)
    tools = async_tools(hung, seconds=1)
    answers = await asyncio.gather(*(tools["search_kb"]("hung", "x") for _ in range(hung.max_workers + 10)))
    assert set(answers) == {"Backend 'hung' did not answer within 1 s. Narrow it, or try again."}
    release.set()
    worker_pool(hung).submit(int).result(5)
    assert len(started) == hung.max_workers


async def test_x4_an_overridden_twin_is_awaited_on_the_loop():
    class Native(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, *, timeout: float = 0, **kwargs) -> list[Record]:
            self.seen = (threading.current_thread(), timeout)
            return [{"text": "native", "metadata": {}}]

    backend = Native("n")
    assert await async_tools(backend)["search_kb"]("n", "x") == "- native (source: N/A)"
    assert backend.seen[0] is threading.main_thread()
    assert 29 < backend.seen[1] <= 30


@pytest.mark.parametrize("stubborn", [False, True], ids=["cancellable", "swallows its cancellation"])
async def test_x4_a_native_backend_that_hangs_ends_at_the_deadline(stubborn):
    class Native(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, **kwargs) -> list[Record]:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                if not stubborn:
                    raise
                await asyncio.sleep(0.01)
            return []

    assert "did not answer within 0.05 s" in await async_tools(Native("n"), seconds=0.05)["search_kb"]("n", "x")
    await asyncio.sleep(0.05)


async def test_x4_cancelling_a_call_cancels_the_native_work():
    cancelled = asyncio.Event()

    class Native(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, **kwargs) -> list[Record]:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return []

    task = asyncio.create_task(async_tools(Native("n"))["search_kb"]("n", "x"))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_x4_a_backend_that_cancels_itself_is_an_error_and_no_cancellation():
    class Native(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, **kwargs) -> list[Record]:
            raise asyncio.CancelledError

    assert "cancelled its own work" in await async_tools(Native("n"))["search_kb"]("n", "x")


async def test_x4_context_variables_reach_the_worker():
    backend = FakeKnowledgeBase("b").on("search", lambda *args, **kwargs: [{"text": WHO.get(), "metadata": {}}])
    tools = async_tools(backend)

    async def ask(name):
        WHO.set(name)
        return await tools["search_kb"]("b", "x")

    names = [f"user-{number}" for number in range(20)]
    assert await asyncio.gather(*map(ask, names)) == [f"- {name} (source: N/A)" for name in names]


async def test_x4_the_proof_of_a_statement_does_not_run_on_the_loop():
    class Guarded(FakeKnowledgeBase):
        def check_read(self, statement, *, allow=()):
            self.thread = threading.current_thread()

    backend = Guarded("g", search=False, query_language="sql", refused_words=())
    await async_tools(backend)["read_kb"]("g", "SELECT 1")
    assert backend.thread is not threading.main_thread()


def test_x3_an_operation_that_takes_a_timeout_runs_in_the_callers_thread_and_gets_what_is_left():
    class Inline(FakeKnowledgeBase):
        def search(self, query, limit=3, *, timeout: float = 0, **kwargs):
            self.seen = (threading.current_thread(), timeout, kwargs)
            return []

    backend = Inline("i")
    KnowledgeBuilder([backend], limits=Limits(seconds=7)).build()[1]("i", "x")
    thread, timeout, others = backend.seen
    assert thread is threading.current_thread()
    assert 6 < timeout <= 7
    assert others == {}


def test_x3_any_other_operation_runs_in_a_worker_of_its_backend_without_options():
    seen = []
    backend = FakeKnowledgeBase("b").on(
        "search", lambda *args, **kwargs: seen.append((threading.current_thread(), kwargs)) or []
    )
    KnowledgeBuilder([backend]).build()[1]("b", "x")
    ((thread, options),) = seen
    assert thread is not threading.current_thread()
    assert options == {"limit": 3}


async def test_x4_one_hung_schema_degrades_alone():
    release = threading.Event()

    class Hung(FakeKnowledgeBase):
        def schema(self, *, filters=None):
            release.wait(30)
            return {}

    builder = KnowledgeBuilder([Hung("hung"), FakeKnowledgeBase("quick")], limits=Limits(seconds=1))
    try:
        for answer in (await builder.build_async()[0](), builder.build()[0]()):
            assert "did not answer within 1 s" in answer
            assert '"backend": "quick"' in answer
    finally:
        release.set()


async def test_x4_the_builder_is_an_async_context_manager():
    class Closing(FakeKnowledgeBase):
        closed = 0

        def close(self):
            type(self).closed += 1

    async with KnowledgeBuilder([Closing("c")]) as builder:
        assert await builder.build_async()[1]("c", "x")
    await builder.aclose()
    assert Closing.closed == 1


def test_a4_closing_goes_on_when_one_backend_fails_to_close(caplog):
    class Broken(FakeKnowledgeBase):
        def close(self):
            raise RuntimeError("secret-canary")

    class Closing(FakeKnowledgeBase):
        closed = 0

        def close(self):
            type(self).closed += 1

    with KnowledgeBuilder([Broken("b"), Closing("c")]):
        pass
    assert Closing.closed == 1
    assert "closing 'b' failed: RuntimeError" in caplog.text
    assert "secret-canary" not in caplog.text


def test_x4_a_builder_that_was_closed_leaves_its_backends_usable():
    backend = FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}])
    with KnowledgeBuilder([backend]) as closed:
        closed.build()[1]("b", "hello")
    tools = KnowledgeBuilder([backend]).build()
    assert tools[1]("b", "hello") == "- hello (source: N/A)"
    assert '"backend": "b"' in tools[0]()


async def test_x4_aclose_uses_a_backends_own_coroutine():
    class Native(FakeKnowledgeBase):
        closed_on = None

        async def aclose(self):
            self.closed_on = threading.current_thread()

    backend = Native("n")
    async with KnowledgeBuilder([backend]):
        pass
    assert backend.closed_on is threading.main_thread()


async def test_x4_what_a_generator_does_is_done_in_the_worker_and_within_the_deadline():
    release, threads = threading.Event(), []

    def slowly(*args, **kwargs):
        threads.append(threading.current_thread())
        yield {"text": "one", "metadata": {}}
        release.wait(30)

    tools = async_tools(FakeKnowledgeBase("b").on("search", slowly), seconds=0.3)
    assert "did not answer within 0.3 s" in await tools["search_kb"]("b", "x")
    release.set()
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("names_timeout", [False, True])
def test_x3_a_proof_that_takes_too_long_ends_at_the_deadline(names_timeout):
    release = threading.Event()

    class Slow(FakeKnowledgeBase):
        def query(self, statement, limit=3, *, timeout: float = 0, **kwargs):
            return []

    class Waits(Slow):
        def check_read(self, statement, *, allow=()):
            release.wait(30)

    class GivesUp(Slow):
        def check_read(self, statement, *, allow=(), timeout: float = 0):
            raise KnowledgeTimeoutError(f"{timeout}")

    kind = GivesUp if names_timeout else Waits
    backend = kind("b", search=False, query_language="sql", refused_words=())
    answer = KnowledgeBuilder([backend], limits=Limits(seconds=0.3)).build()[1]("b", "SELECT 1")
    release.set()
    assert answer == "Backend 'b' did not answer within 0.3 s. Narrow it, or try again."


def test_x3_the_driver_gets_what_a_proof_leaves():
    class Slow(FakeKnowledgeBase):
        def check_read(self, statement, *, allow=()):
            threading.Event().wait(0.2)

        def query(self, statement, limit=3, *, timeout: float = 0, **kwargs):
            self.seen = timeout
            return []

    backend = Slow("b", search=False, query_language="sql", refused_words=())
    KnowledgeBuilder([backend], limits=Limits(seconds=5)).build()[1]("b", "SELECT 1")
    assert backend.seen <= 4.85


async def test_x21_a_cancelled_call_is_told_and_logs_no_text(caplog):
    release = threading.Event()

    def fail(*args, **kwargs):
        release.wait(30)
        raise RuntimeError("secret-canary")

    class Hung(FakeKnowledgeBase):
        schema = fail

    events = []
    builder = KnowledgeBuilder([Hung("h").on("search", fail)], on_event=events.append)
    tools = {tool.__name__: tool for tool in builder.build_async()}
    for call in (tools["get_schemas"](), tools["search_kb"]("h", "x")):
        task = asyncio.create_task(call)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    release.set()
    await asyncio.sleep(0.1)
    gc.collect()
    assert [event.outcome for event in events] == ["cancelled", "cancelled"]
    assert "secret-canary" not in caplog.text


async def test_x4_a_large_result_does_not_hold_up_the_loop_for_long():
    rendered = []

    class Counting(FakeKnowledgeBase):
        def format_results(self, rows):
            listed = list(rows)
            rendered.append(sum(len(row["text"]) for row in listed))
            return super().format_results(listed)

    backend = Counting("b").on("search", lambda *a, **k: [{"text": "x" * 20_000, "metadata": {}}] * 200)
    answer = await async_tools(backend)["search_kb"]("b", "x", 200)
    assert answer.startswith("Partial: ")
    assert max(rendered) <= 5 * 20_000
