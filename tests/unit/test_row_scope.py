"""A row scope is part of every operation of an agent, and nothing that a model sends widens it (X6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkernel_kb import Access, AKConfigError, KnowledgeBase, KnowledgeBuilder, KnowledgeCapabilities, Record
from agentkernel_kb.config.lazy import LazyKnowledgeBase
from agentkernel_kb.model import Operation, Scalar
from agentkernel_kb.testing import FakeKnowledgeBase

EVERYTHING: frozenset[Operation] = frozenset(("search", "query", "fetch", "browse", "write"))
RECORDS: list[Record] = [
    {"text": "Red refunds take 30 days.", "metadata": {"id": "r", "source": "book", "team": "red", "year": 2026}},
    {"text": "Blue refunds take 60 days.", "metadata": {"id": "b", "source": "book", "team": "blue", "year": 2026}},
    {"text": "Old red refunds took 90 days.", "metadata": {"id": "o", "source": "book", "team": "red", "year": 2019}},
    {"text": "Refunds of nobody.", "metadata": {"id": "n", "source": "book"}},
]
RED = {"team": "red"}
CANARY = "canary-7d0f"


def desk() -> FakeKnowledgeBase:
    return FakeKnowledgeBase("desk", RECORDS, query_language="text", fetch=True, browse=True, writable=True, filters=True)


def router(backend: KnowledgeBase, scope: Mapping[str, Scalar] | None = None) -> KnowledgeBuilder:
    name = backend.backend_name
    return KnowledgeBuilder([backend], access=Access("Agent", {name: EVERYTHING}, {name: RED if scope is None else scope}))


def tools_of(builder: KnowledgeBuilder) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in builder.build()}


READS = {
    "read_kb": {"query": "refunds", "limit": 99},
    "search_kb": {"query": "refunds", "limit": 99},
    "fetch_kb": {"ids": "r,b,o,n"},
    "browse_kb": {"path": ""},
}


@pytest.mark.parametrize("tool", READS)
def test_x6_every_read_keeps_to_the_scope(tool: str) -> None:
    answer = tools_of(router(desk()))[tool]("desk", **READS[tool])
    assert ("[r]" in answer, "[o]" in answer) == (True, True)
    assert "Blue" not in answer
    assert "nobody" not in answer


@pytest.mark.parametrize("tool", READS)
async def test_x6_every_async_read_keeps_to_the_scope(tool: str) -> None:
    tools = {each.__name__: each for each in router(desk()).build_async()}
    assert await tools[tool]("desk", **READS[tool]) == tools_of(router(desk()))[tool]("desk", **READS[tool])


def test_x6_every_key_of_a_scope_has_to_hold() -> None:
    answer = tools_of(router(desk(), {"team": "red", "year": 2026}))["browse_kb"]("desk")
    assert answer == "- [r] Red refunds take 30 days. (source: book)"


def test_x6_what_is_written_gets_the_scope_whatever_the_model_says() -> None:
    backend = desk()
    scope = {"team": "red", "source": "agents"}
    answer = tools_of(router(backend, scope))["write_kb"](
        "desk", text="New.", source="book", query="note", params_json='{"team": "blue", "filters": {}}'
    )
    assert answer.startswith("Written to 'desk'.")
    assert {key: backend.held()[-1]["metadata"][key] for key in scope} == scope


def test_x6_the_same_text_of_two_scopes_is_two_records() -> None:
    backend = desk()
    for team in ("red", "blue"):
        tools_of(router(backend, {"team": team}))["write_kb"]("desk", text="Same.", source="same")
    assert [record["metadata"]["team"] for record in backend.held() if record["text"] == "Same."] == ["red", "blue"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_kb", {"query": 'refunds", "filters": {}, "x": "'}),
        ("search_kb", {"query": {"text": "refunds", "filters": {}}}),
        ("search_kb", {"query": "refunds team:blue OR 1=1", "limit": 10**9}),
        ("fetch_kb", {"ids": {"id": "b", "filters": None}}),
        ("fetch_kb", {"ids": ["b", "n"]}),
        ("browse_kb", {"path": "/"}),
        ("browse_kb", {"path": "../b"}),
        ("read_kb", {"query": "Blue"}),
        ("search_kb", {"query": "refunds", "filters": {}}),
        ("search_kb", {"query": "refunds", "where": {}}),
    ],
)
def test_x6_no_spelling_of_an_argument_widens_it(tool: str, arguments: dict[str, Any]) -> None:
    answer = tools_of(router(desk()))[tool]("desk", **arguments)
    assert "Blue" not in answer
    assert "nobody" not in answer


def test_x6_an_operation_that_keeps_to_no_scope_is_refused() -> None:
    class Half(FakeKnowledgeBase):
        def fetch(self, ids: Any, **kwargs: Any) -> list[Record]:
            return super().fetch(ids)

    backend = Half("half", RECORDS, fetch=True, filters=True)
    tools = tools_of(router(backend))
    assert "fetch_kb" not in tools
    assert "Red" in tools["search_kb"]("half", "refunds")


def test_x6_a_twin_that_keeps_to_no_scope_has_its_operation_refused() -> None:
    class Twin(FakeKnowledgeBase):
        async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return self.search(query, limit)

    backend = Twin("twin", RECORDS, fetch=True, filters=True)
    assert "search_kb" not in tools_of(router(backend))


def test_x6_a_backend_without_filters_is_an_error_at_construction() -> None:
    with pytest.raises(AKConfigError, match="filters for 'plain', which does not declare filters"):
        router(FakeKnowledgeBase("plain"))


def test_x6_a_scope_of_a_misspelt_backend_is_an_error_at_construction() -> None:
    with pytest.raises(AKConfigError, match=r"filters for 'dsk', and there is no such knowledge base\. Did you mean 'desk'\?"):
        KnowledgeBuilder([desk()], access=Access("Agent", {"desk": EVERYTHING}, {"dsk": RED}))


@pytest.mark.parametrize(
    "scope", [{}, None, "team", {"": "x"}, {1: "x"}, {"id": "r"}, {"a": None}, {"a": ["x"]}, {"a": float("nan")}, {"a": "\x00"}]
)
def test_x6_a_scope_that_filters_nothing_or_strangely_is_an_error(scope: Any) -> None:
    with pytest.raises(AKConfigError, match=r"Access\.filters of 'desk'"):
        Access("Agent", {"desk": EVERYTHING}, {"desk": scope})


def test_x6_a_scope_is_a_copy() -> None:
    scope = {"team": "red"}
    access = Access("Agent", {"desk": EVERYTHING}, {"desk": scope})
    scope.clear()
    assert dict(access.filters["desk"]) == {"team": "red"}


def test_x6_a_backend_that_keeps_what_it_is_given_does_not_change_the_scope() -> None:
    backend = desk()

    def widened(query: str, *, filters: dict[str, Scalar], **_: Any) -> list[Record]:
        filters.clear()
        return []

    tools = tools_of(router(backend.on("search", widened)))
    tools["search_kb"]("desk", "refunds")
    assert "Blue" not in tools["browse_kb"]("desk")


def test_x6_the_schema_of_a_scoped_agent_is_derived_from_what_is_its_own() -> None:
    shown = json.loads(tools_of(router(desk()))["get_schemas"]())
    assert shown["desk"]["records"] == 2
    assert shown["desk"]["capabilities"]["filters"] is True


def test_x6_a_schema_that_can_not_be_scoped_is_not_derived() -> None:
    class Plain(FakeKnowledgeBase):
        def _derived_schema(self) -> Mapping[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
            return {"topics": [CANARY]}

        def get_diagnostics(self) -> list[str]:
            return [CANARY]

    backend = Plain("plain", RECORDS, filters=True).add_schema({"usage": "Ask."})
    tools = tools_of(router(backend))
    assert json.loads(tools["get_schemas"]())["plain"]["usage"] == "Ask."
    assert CANARY not in tools["get_schemas"]() + tools["get_all_kb_descriptions"]()


def test_x6_the_values_of_a_scope_are_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    events: list[object] = []
    access = Access("Agent", {"desk": EVERYTHING}, {"desk": {"team": CANARY}})
    builder = KnowledgeBuilder([desk()], access=access, on_event=events.append)
    seen = [repr(access), repr(builder), builder.instructions()]
    seen += [tools_of(builder)[tool]("desk", **READS[tool]) for tool in READS]
    seen += [tools_of(builder)["get_schemas"](), tools_of(builder)["get_all_kb_descriptions"]()]
    assert CANARY not in repr(seen) + repr(events) + caplog.text


def test_x6_without_a_scope_nothing_is_passed() -> None:
    backend = desk()
    tools_of(KnowledgeBuilder([backend], access=Access("Agent", {"desk": EVERYTHING})))["search_kb"]("desk", "refunds")
    assert backend.calls == [("search", "refunds", {"limit": 3})]


def lazy(opened: KnowledgeBase) -> LazyKnowledgeBase:
    declared = KnowledgeCapabilities(search=True, fetch=True, writable=True, derives_schema=True, filters=True)
    return LazyKnowledgeBase("desk", declared, lambda: opened)


def test_x6_a_lazy_backend_hands_the_scope_on() -> None:
    tools = tools_of(router(lazy(desk())))
    assert "Blue" not in tools["search_kb"]("desk", "refunds", 99)
    assert tools["fetch_kb"]("desk", "b") == "No relevant knowledge found.\n'desk' has no record with the id 'b'."
    assert tools["write_kb"]("desk", text="New.").startswith("Written")
    assert json.loads(tools["get_schemas"]())["desk"]["records"] == 3


@pytest.mark.parametrize("tool", ["search_kb", "fetch_kb", "write_kb"])
def test_x6_a_lazy_backend_that_turns_out_to_keep_to_no_scope_fails_the_call(tool: str) -> None:
    opened = FakeKnowledgeBase("desk", RECORDS, fetch=True, writable=True)
    arguments = {"search_kb": {"query": "refunds"}, "fetch_kb": {"ids": "b"}, "write_kb": {"text": "New."}}[tool]
    assert "'desk' keeps to no row scope" in tools_of(router(lazy(opened)))[tool]("desk", **arguments)
    assert opened.calls == []


def test_x6_two_agents_of_one_backend_each_get_their_own() -> None:
    backend = desk()
    builders = [router(backend, {"team": team}) for team in ("red", "blue")]

    async def ask() -> list[str]:
        asked = [next(t for t in b.build_async() if t.__name__ == "search_kb")("desk", "refunds") for b in builders * 10]
        return await asyncio.gather(*asked)

    answers = asyncio.run(ask())
    assert all("Blue" not in answer for answer in answers[::2])
    assert all("ed refunds" not in answer for answer in answers[1::2])
