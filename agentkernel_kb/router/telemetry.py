"""Spans and metrics of OpenTelemetry: counts, sizes, times and outcomes, and nothing that anybody wrote or read.

Names follow its semantic conventions for tools of generative AI and for database clients, as of 1.43; what those do not name
begins with `agentkernel_kb.`. Without the application's SDK the API does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkernel_kb.errors import KnowledgeDependencyError
from agentkernel_kb.router.events import Outcome, ToolEvent

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from agentkernel_kb.base import KnowledgeBase
    from agentkernel_kb.router.plan import Plan

_SCOPE = "agentkernel_kb"
_ANSWERS: frozenset[Outcome] = frozenset(("ok", "empty", "partial", "stale"))
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""Borders of the histograms: those that the conventions give for `db.client.operation.duration`."""

Attributes = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Open:
    """A span that is the current one until it is ended."""

    span: Span
    token: Token[Context]
    attributes: dict[str, str | int] = field(default_factory=dict[str, str | int])


class Telemetry:
    """Where nobody asked for telemetry: does nothing."""

    def start_tool(self, tool: str) -> Open | None:
        """Begin the span of a tool call."""
        return None

    def end_tool(self, opened: Open | None, event: ToolEvent) -> None:
        """End it, and count the call."""

    def start_backend(self, backend: KnowledgeBase, name: str, operation: str) -> Open | None:
        """Begin the span of what one backend is asked within a call, all attempts together."""
        return None

    def end_backend(self, opened: Open | None, outcome: Outcome, rows: int, attempts: int, seconds: float) -> None:
        """End it, and count the time."""

    def start_attempt(self, plan: Plan) -> Open | None:
        """Begin the span of one attempt."""
        return None

    def end_attempt(self, opened: Open | None, error: BaseException | None) -> None:
        """End it.

        Args:
            opened: What `start_attempt` returned.
            error: What it failed with, of which only the type is told.
        """


class OpenTelemetry(Telemetry):
    """Tells the tracer and the meter that the application has set up.

    Raises:
        KnowledgeDependencyError: The API of OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ImportError as error:
            raise KnowledgeDependencyError("otel", "KnowledgeBuilder(telemetry=True)") from error
        self._context = context
        self._trace = trace
        self._tracer = trace.get_tracer(_SCOPE)
        meter = metrics.get_meter(_SCOPE)
        self._tool_seconds = meter.create_histogram(
            "agentkernel_kb.tool.duration", "s", "Time of a tool call.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self._backend_seconds = meter.create_histogram(
            "db.client.operation.duration",
            "s",
            "Duration of database client operations.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._calls = meter.create_counter("agentkernel_kb.tool.calls", "{call}", "Tool calls, by how they ended.")
        self._rows = meter.create_counter("agentkernel_kb.tool.rows", "{row}", "Records in answers.")
        self._retries = meter.create_counter("agentkernel_kb.backend.retries", "{retry}", "Reads that were tried again.")

    def start_tool(self, tool: str) -> Open:
        """Begin the span of a tool call."""
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "datastore"}
        return self._start(f"execute_tool {tool}", self._trace.SpanKind.INTERNAL, attributes)

    def end_tool(self, opened: Open | None, event: ToolEvent) -> None:
        """End it, and count the call."""
        if opened is None:
            return
        named = {"backend": event.backend, "operation": event.operation, "outcome": event.outcome}
        told: dict[str, str | int] = {f"{_SCOPE}.{key}": value for key, value in named.items() if value}
        counts = {"rows": event.rows, "characters": event.characters, "attempts": event.attempts}
        opened.span.set_attributes(told | {f"{_SCOPE}.{key}": value for key, value in counts.items()})
        failed = self._end(opened, "" if event.outcome in _ANSWERS else event.outcome)
        dimensions = {"gen_ai.tool.name": event.tool, **told, **failed}
        self._tool_seconds.record(event.milliseconds / 1_000, dimensions)
        self._calls.add(1, dimensions)
        if event.rows:
            self._rows.add(event.rows, dimensions)

    def start_backend(self, backend: KnowledgeBase, name: str, operation: str) -> Open:
        """Begin the span of what one backend is asked within a call, all attempts together."""
        attributes = {"db.system.name": _system_of(backend), "db.operation.name": operation, f"{_SCOPE}.backend": name}
        return self._start(f"{operation} {name}", self._trace.SpanKind.CLIENT, attributes)

    def end_backend(self, opened: Open | None, outcome: Outcome, rows: int, attempts: int, seconds: float) -> None:
        """End it, and count the time."""
        if opened is None:
            return
        counts = {"db.response.returned_rows": rows, f"{_SCOPE}.attempts": attempts}
        opened.span.set_attributes({f"{_SCOPE}.outcome": outcome, **counts})
        # An old answer in place of one is an answer of the tool, and a failure of the store.
        failed = self._end(opened, "" if outcome in _ANSWERS - {"stale"} else outcome)
        dimensions = {**opened.attributes, **failed}
        self._backend_seconds.record(seconds, dimensions)
        if attempts > 1:
            self._retries.add(attempts - 1, opened.attributes)

    def start_attempt(self, plan: Plan) -> Open:
        """Begin the span of one attempt."""
        attributes: dict[str, str | int] = {f"{_SCOPE}.backend": plan.target.name, f"{_SCOPE}.attempt": plan.attempts}
        return self._start("attempt", self._trace.SpanKind.INTERNAL, attributes)

    def end_attempt(self, opened: Open | None, error: BaseException | None) -> None:
        """End it."""
        if opened is not None:
            self._end(opened, "" if error is None else type(error).__name__)

    def _start(self, name: str, kind: Any, attributes: Mapping[str, str | int]) -> Open:
        span = self._tracer.start_span(name, kind=kind, attributes=attributes)
        return Open(span, self._context.attach(self._trace.set_span_in_context(span)), dict(attributes))

    def _end(self, opened: Open, error: str) -> Attributes:
        failed: dict[str, str | int] = {"error.type": error} if error else {}
        if failed:
            opened.span.set_attributes(failed)
            opened.span.set_status(self._trace.StatusCode.ERROR)
        self._context.detach(opened.token)
        opened.span.end()
        return failed


def telemetry_of(wanted: bool) -> Telemetry:
    """Return what tells OpenTelemetry, or what does nothing.

    Raises:
        KnowledgeDependencyError: It is wanted, and its API is not installed.
    """
    return OpenTelemetry() if wanted else Telemetry()


def _system_of(backend: KnowledgeBase) -> str:
    return backend.db_system or ("other_sql" if backend.capabilities.query_language == "sql" else "other")
