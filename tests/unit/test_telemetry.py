"""Spans and metrics of OpenTelemetry: one tree for each call, every outcome told apart, and nothing confidential in it (X9)."""

from __future__ import annotations

import asyncio
import builtins
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.attributes.db_attributes import DB_RESPONSE_RETURNED_ROWS
from opentelemetry.semconv.attributes import db_attributes, error_attributes
from opentelemetry.semconv.metrics.db_metrics import DB_CLIENT_OPERATION_DURATION
from opentelemetry.trace import SpanKind, StatusCode

from agentkernel_kb import (
    Access,
    AKConfigError,
    KnowledgeBuilder,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
    Record,
    Resilience,
    acting_as,
)
from agentkernel_kb.model import Operation
from agentkernel_kb.router.events import Outcome
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.testing import FakeKnowledgeBase

CANARY = "canary-7d0f"
EVERYTHING: frozenset[Operation] = frozenset(("search", "query", "fetch", "browse", "write"))
SEARCH: frozenset[Operation] = frozenset(("search",))
ANSWERS = {"ok", "empty", "partial", "stale"}
DOWN = KnowledgeConnectionError(f"postgres://user:{CANARY}@host")


@dataclass
class Export:
    """What the SDK of the application was told."""

    spans_in: InMemorySpanExporter
    reader: InMemoryMetricReader

    def spans(self) -> list[ReadableSpan]:
        return list(self.spans_in.get_finished_spans())

    def one(self, name: str) -> ReadableSpan:
        (found,) = (span for span in self.spans() if span.name == name)
        return found

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        every = [metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics]
        return [point for metric in every if metric.name == name for point in metric.data.data_points]

    def text(self) -> str:
        data = self.reader.get_metrics_data()
        return "".join(span.to_json() for span in self.spans()) + (data.to_json() if data else "")


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent and span.parent.span_id


@pytest.fixture(scope="module")
def tracing() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def export(tracing: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Export]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)  # The global provider can be set once in a process.
    tracing.clear()
    yield Export(tracing, reader)
    provider.shutdown()


def record(name: str) -> Record:
    return {"text": f"{CANARY} lamp", "metadata": {"id": name, "source": CANARY}}


def house(**options: Any) -> KnowledgeBuilder:
    rows = [record(f"{CANARY}-{number}") for number in range(4)]
    shop = FakeKnowledgeBase("shop", rows, query_language="sql", fetch=True, writable=True, refused_words=["delete"])
    private = FakeKnowledgeBase("private", rows, requires_identity=True)
    settings: dict[str, Any] = {"resilience": Resilience(attempts=2, wait_seconds=0, max_wait_seconds=0, stale_seconds=60)}
    return KnowledgeBuilder([shop, private], telemetry=True, **{**settings, **options})


def tools_of(builder: KnowledgeBuilder) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in builder.build()}


def down(builder: KnowledgeBuilder, error: Exception) -> dict[str, Callable[..., str]]:
    shop: Any = builder.backends[0]
    shop.down = error
    return tools_of(builder)


def stale(builder: KnowledgeBuilder) -> object:
    tools_of(builder)["search_kb"]("shop", "lamp")
    return down(builder, DOWN)["search_kb"]("shop", "lamp")


def closed(builder: KnowledgeBuilder) -> object:
    builder.close()
    return tools_of(builder)["search_kb"]("shop", CANARY)


def cancelled(builder: KnowledgeBuilder) -> object:
    shop: Any = builder.backends[0]
    shop.on("search", 0.3)
    tool = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")

    async def give_up() -> None:
        task = asyncio.create_task(tool("shop", CANARY))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    return asyncio.run(give_up())


CASES: dict[Outcome, Callable[[KnowledgeBuilder], object]] = {
    "ok": lambda b: tools_of(b)["search_kb"]("shop", "lamp", 4),
    "empty": lambda b: tools_of(b)["search_kb"]("shop", "nothing"),
    "partial": lambda b: tools_of(b)["fetch_kb"]("shop", f"{CANARY}-1,{CANARY}-x"),
    "stale": stale,
    "bad_argument": lambda b: tools_of(b)["search_kb"]("shop", "lamp", CANARY),
    "unknown_backend": lambda b: tools_of(b)["search_kb"](CANARY, "lamp"),
    "undeclared": lambda b: tools_of(b)["write_kb"]("private", CANARY),
    "unknown_token": lambda b: tools_of(b)["fetch_kb"]("shop", "<CANARY>"),
    "refused": lambda b: tools_of(b)["read_kb"]("shop", f"DELETE {CANARY}"),
    "identity": lambda b: tools_of(b)["search_kb"]("private", CANARY),
    "timeout": lambda b: down(b, KnowledgeTimeoutError(CANARY))["read_kb"]("shop", CANARY),
    "unavailable": lambda b: down(b, DOWN)["search_kb"]("shop", CANARY),
    "rejected": lambda b: down(b, KnowledgeQueryError(CANARY))["read_kb"]("shop", CANARY),
    "error": lambda b: down(b, RuntimeError(CANARY))["search_kb"]("shop", CANARY),
    "closed": closed,
    "cancelled": cancelled,
}


def test_x9_there_is_a_case_for_each_outcome() -> None:
    assert set(CASES) == set(get_args(Outcome))


@pytest.mark.parametrize("outcome", CASES)
def test_x9_each_outcome_is_told_in_a_span_and_in_metrics(export: Export, outcome: Outcome) -> None:
    with acting_as(f"{CANARY}-user") if outcome != "identity" else nullcontext():
        CASES[outcome](house())
    span = [span for span in export.spans() if span.name.startswith("execute_tool ")][-1]
    assert told(span)["agentkernel_kb.outcome"] == outcome
    assert told(span).get(error_attributes.ERROR_TYPE) == (None if outcome in ANSWERS else outcome)
    assert (span.status.status_code is StatusCode.ERROR) == (outcome not in ANSWERS)
    assert span.status.description is None
    assert span.events == ()
    counted = {point.attributes["agentkernel_kb.outcome"]: point.value for point in export.points("agentkernel_kb.tool.calls")}
    assert counted[outcome] == 1
    assert sum(point.count for point in export.points("agentkernel_kb.tool.duration")) == (2 if outcome == "stale" else 1)


@pytest.mark.parametrize("outcome", CASES)
def test_x9_nothing_confidential_is_told(export: Export, outcome: Outcome) -> None:
    access = Access("Agent", {"shop": EVERYTHING, "private": SEARCH}, {})
    with acting_as(f"{CANARY}-user", tenant=CANARY, roles=[CANARY]) if outcome != "identity" else nullcontext():
        CASES[outcome](house(access=access))
    assert export.spans()
    assert CANARY not in export.text()
    assert "lamp" not in export.text()
    assert json.loads(export.spans()[-1].to_json())["name"].startswith("execute_tool ")


def test_x9_a_call_is_a_tree_of_tool_backend_and_attempts(export: Export) -> None:
    down(house(), DOWN)["search_kb"]("shop", "lamp")
    tool, backend = export.one("execute_tool search_kb"), export.one("search shop")
    attempts = [span for span in export.spans() if span.name == "attempt"]
    assert parent_of(tool) is None
    assert parent_of(backend) == id_of(tool)
    assert {parent_of(attempt) for attempt in attempts} == {id_of(backend)}
    assert [told(attempt)["agentkernel_kb.attempt"] for attempt in attempts] == [1, 2]
    assert {told(attempt)["error.type"] for attempt in attempts} == {"KnowledgeConnectionError"}
    assert [point.value for point in export.points("agentkernel_kb.backend.retries")] == [1]


def test_x9_names_are_those_of_the_conventions(export: Export) -> None:
    tools_of(house())["search_kb"]("shop", "lamp", 4)
    tool, backend = export.one("execute_tool search_kb"), export.one("search shop")
    assert (tool.kind, backend.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert told(tool) == {
        gen_ai_attributes.GEN_AI_OPERATION_NAME: "execute_tool",
        gen_ai_attributes.GEN_AI_TOOL_NAME: "search_kb",
        gen_ai_attributes.GEN_AI_TOOL_TYPE: "datastore",
        "agentkernel_kb.backend": "shop",
        "agentkernel_kb.operation": "search",
        "agentkernel_kb.outcome": "ok",
        "agentkernel_kb.rows": 4,
        "agentkernel_kb.characters": len(tools_of(house())["search_kb"]("shop", "lamp", 4)),
        "agentkernel_kb.attempts": 1,
    }
    assert told(backend) == {
        db_attributes.DB_SYSTEM_NAME: "other_sql",
        db_attributes.DB_OPERATION_NAME: "search",
        DB_RESPONSE_RETURNED_ROWS: 4,
        "agentkernel_kb.backend": "shop",
        "agentkernel_kb.outcome": "ok",
        "agentkernel_kb.attempts": 1,
    }
    (point,) = export.points(DB_CLIENT_OPERATION_DURATION)
    assert set(point.attributes) == {db_attributes.DB_SYSTEM_NAME, db_attributes.DB_OPERATION_NAME, "agentkernel_kb.backend"}


def test_x9_a_backend_may_name_its_product(export: Export) -> None:
    backend = FakeKnowledgeBase("shop", [record("1")])
    backend.db_system = "postgresql"
    tools_of(KnowledgeBuilder([backend], telemetry=True))["search_kb"]("shop", "lamp")
    assert told(export.one("search shop"))["db.system.name"] == "postgresql"


def test_x9_a_failed_backend_counts_with_its_error(export: Export) -> None:
    stale(house())
    durations = export.points("db.client.operation.duration")
    assert sorted(point.attributes.get("error.type", "") for point in durations) == ["", "stale"]


@pytest.mark.parametrize("is_async", [False, True])
def test_x9_context_goes_with_the_call_into_worker_threads(export: Export, is_async: bool) -> None:
    tracer = trace.get_tracer("application")
    seen: list[int] = []

    def look(*_: Any, **__: Any) -> list[Record]:
        seen.append(trace.get_current_span().get_span_context().trace_id)
        return []

    builder = KnowledgeBuilder([FakeKnowledgeBase(name).on("search", look) for name in ("one", "two")], telemetry=True)
    with tracer.start_as_current_span("agent") as agent:
        if is_async:
            tool = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")
            asyncio.run(tool("*", "lamp"))
        else:
            tools_of(builder)["search_kb"]("*", "lamp")
        assert trace.get_current_span() is agent
    assert seen == [agent.get_span_context().trace_id] * 2


def test_x9_a_question_to_all_has_a_span_for_each_backend(export: Export) -> None:
    builder = KnowledgeBuilder(
        [FakeKnowledgeBase("one", [record("1")]), FakeKnowledgeBase("two").on("search", DOWN)],
        telemetry=True,
        resilience=Resilience(attempts=1),
    )
    tools_of(builder)["search_kb"]("*", "lamp")
    tool = export.one("execute_tool search_kb")
    assert (told(tool)["agentkernel_kb.backend"], told(tool)["agentkernel_kb.outcome"]) == ("*", "partial")
    parts = [export.one(f"search {name}") for name in ("one", "two")]
    assert {parent_of(part) for part in parts} == {id_of(tool)}
    assert [told(part)["agentkernel_kb.outcome"] for part in parts] == ["ok", "unavailable"]


@pytest.mark.parametrize("tool", ["get_schemas", "get_all_kb_descriptions"])
def test_x9_tools_that_ask_every_backend_have_a_span(export: Export, tool: str) -> None:
    tools_of(house())[tool]()
    assert told(export.one(f"execute_tool {tool}"))["agentkernel_kb.rows"] == 2


def test_x9_rows_are_counted(export: Export) -> None:
    tools_of(house())["search_kb"]("shop", "lamp", 3)
    assert [point.value for point in export.points("agentkernel_kb.tool.rows")] == [3]


def test_x9_nothing_is_told_unless_it_is_asked_for(export: Export) -> None:
    tools_of(KnowledgeBuilder([FakeKnowledgeBase("shop", [record("1")])]))["search_kb"]("shop", "lamp")
    assert export.spans() == []


def test_x9_the_listener_hears_too(export: Export) -> None:
    events: list[object] = []
    tools_of(house(on_event=events.append))["search_kb"]("shop", "lamp")
    assert len(events) == 1


def test_x9_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "opentelemetry":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    KnowledgeBuilder([FakeKnowledgeBase("shop")])
    with pytest.raises(KnowledgeDependencyError, match=r"telemetry=True\) needs the extra 'otel'"):
        KnowledgeBuilder([FakeKnowledgeBase("shop")], telemetry=True)


def test_x9_anything_but_a_truth_value_is_an_error() -> None:
    wanted: Any = "otel"
    with pytest.raises(AKConfigError, match="telemetry must be True or False, not str"):
        KnowledgeBuilder([FakeKnowledgeBase("shop")], telemetry=wanted)


def test_x9_a_database_tells_which_engine_it_is(export: Export, tmp_path: Path) -> None:
    database = tmp_path / "shop.db"
    sqlite3.connect(database).close()
    with KnowledgeBuilder([SQLManager(f"sqlite:///{database}", name="shop")], telemetry=True) as builder:
        tools_of(builder)["read_kb"]("shop", "SELECT 1")
    assert told(export.one("query shop"))["db.system.name"] == "sqlite"
