"""builder.health(): every backend asked at once, in bounded time, each state told apart, nothing confidential (X7)."""

import asyncio
import dataclasses
import json
import threading
from datetime import UTC, datetime

import pytest
from asked import UNREACHABLE, Asked

from agentkernel_kb import BackendHealth, KnowledgeBuilder
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.testing import FakeKnowledgeBase

CANARY = "hunter2canary"
SYNC_AND_ASYNC = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def health_of(builder: KnowledgeBuilder, *, is_async: bool = False, timeout: float = 30.0) -> dict[str, BackendHealth]:
    return asyncio.run(builder.ahealth(timeout)) if is_async else builder.health(timeout)


@SYNC_AND_ASYNC
def test_a_backend_that_answers_is_ok_and_tells_its_version_and_what_it_declares(is_async):
    backend = FakeKnowledgeBase("b", version="1.5.9")
    health = health_of(KnowledgeBuilder([backend]), is_async=is_async)["b"]
    assert health.is_ok
    assert health == BackendHealth("b", "ok", "", health.latency_ms, "1.5.9", backend.capabilities, "closed", None)
    assert health.latency_ms > 0


@SYNC_AND_ASYNC
@pytest.mark.parametrize(
    ("error", "state", "detail"),
    [
        (KnowledgeConnectionError("Nobody answers at b:1."), "unreachable", "Nobody answers at b:1."),
        (ConnectionRefusedError(CANARY), "unreachable", "It failed with ConnectionRefusedError."),
        (KnowledgeConnectionError("Wrong login.", state="unauthorized"), "unauthorized", "Wrong login."),
        (KnowledgeConnectionError("No such database.", state="missing"), "missing", "No such database."),
        (KnowledgeConnectionError("It has expired.", state="untrusted"), "untrusted", "It has expired."),
        (KnowledgeTimeoutError("Too slow."), "timeout", "Too slow."),
        (TimeoutError(CANARY), "timeout", "It failed with TimeoutError."),
        (KnowledgeStateError("'b' is closed."), "closed", "'b' is closed."),
        (KnowledgeBackendError(f"postgresql://me:{CANARY}@db/x is broken"), "error", "postgresql://***@db/x is broken"),
        (KnowledgeError("Something else."), "error", "Something else."),
        (RuntimeError(CANARY), "error", "It failed with RuntimeError."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_state_is_told_apart(error, state, detail, is_async):
    backend = FakeKnowledgeBase("b", version="1")
    backend.down = error
    health = health_of(KnowledgeBuilder([backend, FakeKnowledgeBase("other", version="2")]), is_async=is_async)
    assert (health["b"].state, health["b"].detail, health["b"].version) == (state, detail, "")
    assert not health["b"].is_ok
    assert health["other"].is_ok
    assert CANARY not in repr(health)


@SYNC_AND_ASYNC
def test_a_backend_that_hangs_is_a_timeout_and_does_not_hold_the_others(is_async):
    release = threading.Event()

    class Hung(FakeKnowledgeBase):
        def ping(self, *, timeout: float | None = None) -> str:
            release.wait(60)
            return ""

    hung = [Hung(f"hung-{number}") for number in range(5)]
    try:
        health = health_of(KnowledgeBuilder([*hung, FakeKnowledgeBase("b", version="1")]), is_async=is_async, timeout=1)
    finally:
        release.set()
    assert [each.state for each in health.values()] == ["timeout"] * 5 + ["ok"]
    assert health["hung-0"].detail == "It did not answer in time."


def test_a_backend_gets_the_time_to_give_up_in():
    class Remembers(FakeKnowledgeBase):
        given = 0.0

        def ping(self, *, timeout: float | None = None) -> str:
            self.given = timeout or 0.0
            return ""

    backend = Remembers("b")
    KnowledgeBuilder([backend]).health(7.5)
    assert backend.given == 7.5


def test_a_backend_without_a_ping_of_its_own_is_ok_and_it_is_said_that_nobody_asked():
    health = KnowledgeBuilder([FakeKnowledgeBase("b")]).health()["b"]
    assert (health.state, health.detail) == ("ok", "Not asked: this backend has no ping of its own.")


@SYNC_AND_ASYNC
def test_of_a_closed_router_every_backend_is_closed(is_async):
    builder = KnowledgeBuilder([FakeKnowledgeBase("b", version="1")])
    builder.close()
    assert health_of(builder, is_async=is_async)["b"].state == "closed"


def test_of_no_backends_there_is_no_health():
    assert KnowledgeBuilder([]).health() == {}
    assert asyncio.run(KnowledgeBuilder([]).ahealth()) == {}


def test_it_tells_that_a_backend_is_left_alone_and_until_when():
    backend = FakeKnowledgeBase("b", version="1")
    backend.down = UNREACHABLE
    ask = Asked(backend, failures=1, open_seconds=60)
    ask("search_kb", "b", "x")
    health = ask.builder.health()["b"]
    assert (health.state, health.breaker) == ("unreachable", "open")
    assert health.next_try is not None
    assert 50 < (health.next_try - datetime.now(UTC)).total_seconds() <= 60


def test_a_backend_that_answers_a_ping_is_no_longer_left_alone():
    backend = FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}], version="1")
    backend.down = UNREACHABLE
    ask = Asked(backend, failures=1, open_seconds=60)
    ask("search_kb", "b", "hello")
    backend.down = None
    assert ask.builder.health()["b"].breaker == "closed"
    assert ask("search_kb", "b", "hello") == "- hello (source: N/A)"


def test_a_backend_that_is_not_asked_stays_left_alone():
    backend = FakeKnowledgeBase("b")
    backend.down = UNREACHABLE
    ask = Asked(backend, failures=1, open_seconds=60)
    ask("search_kb", "b", "hello")
    assert ask.builder.health()["b"].breaker == "open"


def test_asking_how_it_is_does_not_count_as_a_call():
    backend = FakeKnowledgeBase("b", version="1")
    backend.down = UNREACHABLE
    ask = Asked(backend)
    for _ in range(10):
        assert ask.builder.health()["b"].breaker == "closed"


def test_it_is_a_frozen_value_that_json_can_hold():
    backend = FakeKnowledgeBase("b", version="1")
    backend.down = UNREACHABLE
    ask = Asked(backend, failures=1)
    ask("search_kb", "b", "x")
    health = ask.builder.health()["b"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        health.state = "ok"  # pyright: ignore[reportAttributeAccessIssue]
    plain = json.loads(json.dumps(health.to_dict()))
    assert plain["capabilities"] == backend.capabilities.model_dump()
    assert plain["state"] == "unreachable"
    assert datetime.fromisoformat(plain["next_try"]).tzinfo is not None


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), None, "5", True])
def test_a_timeout_is_a_positive_number(timeout):
    with pytest.raises(AKConfigError, match="timeout must be a positive number"):
        KnowledgeBuilder([FakeKnowledgeBase("b")]).health(timeout)
