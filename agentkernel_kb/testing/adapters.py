"""AdapterContract: what binding must preserve, whatever the framework. Subclass it in a test module of an adapter."""
# ruff: noqa: D102 - The name of a test is its promise.

from __future__ import annotations

import asyncio
import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import pytest

from agentkernel_kb.binding import schema_of
from agentkernel_kb.testing.gating import GatedSuite, requires
from agentkernel_kb.testing.house import CALLS, Held, House, Meeting, ashout, described, new_house, shout, withheld
from agentkernel_kb.testing.portable import TOKEN_BUDGET, portability_faults

_FRAMEWORK_WORDS = ("self", "config", "run_manager", "callbacks", "context", "ctx", "tool_call_id", "runtime", "args", "kwargs")
_TOGETHER = 3


def _either_kind(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test for plain tools and for coroutine functions."""
    return pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])(test)


class AdapterContract(GatedSuite, ABC):
    """What binding must preserve. A subclass, named `Test…`, says how its framework binds, shows and calls tools.

    The tests need no pytest plugin; each runs an event loop of its own. An adapter that is handed a call's arguments as the
    text which the model wrote declares `{"text_arguments"}` and gives `async def invoke_text(self, bound, text) -> str`.

    Attributes:
        token_budget: Most tokens that the seven definitions may cost a model, four characters being taken for one.
    """

    features = frozenset({"text_arguments"})
    samples: ClassVar[dict[str, tuple[str, ...]]] = {"text_arguments": ("invoke_text",)}
    token_budget: ClassVar[int] = TOKEN_BUDGET

    @abstractmethod
    def bind(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Bind the tools with the adapter under test."""

    @abstractmethod
    def definition(self, bound: Any) -> Mapping[str, Any]:
        """Return `name`, `description` and `parameters` (a JSON schema) as the framework sends them to a model."""

    @abstractmethod
    async def invoke(self, bound: Any, arguments: dict[str, Any]) -> str:
        """Call a tool as the framework does when a model asks for it, and return what the model would read."""

    @pytest.fixture
    def house(self) -> Iterator[House]:
        """Backends and their builder, new for each test."""
        house = new_house()
        with house.builder:
            yield house

    def _one(self, house: House, name: str, *, is_async: bool = False) -> Any:
        (bound,) = self.bind([house.tool(name, is_async=is_async)])
        return bound

    def _answer(self, bound: Any, arguments: Mapping[str, Any]) -> str:
        return asyncio.run(self.invoke(bound, copy.deepcopy(dict(arguments))))

    # What a model sees.

    @_either_kind
    def test_all_seven_tools_bind_in_their_order(self, house: House, is_async: bool) -> None:
        tools = house.tools(is_async=is_async)
        names = [self.definition(bound)["name"] for bound in self.bind(tools)]
        assert names == [described(tool).name for tool in tools]
        assert set(names) == set(CALLS)

    @_either_kind
    def test_descriptions_are_preserved(self, house: House, is_async: bool) -> None:
        tools = house.tools(is_async=is_async)
        shown = [self.definition(bound)["description"] for bound in self.bind(tools)]
        assert shown == [described(tool).description for tool in tools]

    @_either_kind
    def test_parameters_are_preserved(self, house: House, is_async: bool) -> None:
        tools = house.tools(is_async=is_async)
        shown = [self.definition(bound)["parameters"]["properties"] for bound in self.bind(tools)]
        expected = [schema_of(described(tool))["properties"] for tool in tools]
        assert shown == expected
        assert [list(properties) for properties in shown] == [list(properties) for properties in expected]

    def test_required_parameters_stay_required(self, house: House) -> None:
        tools = house.tools(is_async=False)
        shown = [set(self.definition(bound)["parameters"]["required"]) for bound in self.bind(tools)]
        assert [set(described(tool).parameters["required"]) - own for tool, own in zip(tools, shown, strict=True)] == [
            set()
        ] * 7

    def test_definitions_stay_in_the_portable_subset(self, house: House) -> None:
        assert portability_faults(map(self.definition, self.bind(house.tools(is_async=False)))) == []

    @pytest.mark.parametrize(
        ("name", "backends"),
        [
            ("read_kb", ["handbook", "ledger", "notes"]),
            ("search_kb", ["handbook", "notes", "*"]),
            ("fetch_kb", ["handbook"]),
            ("browse_kb", ["handbook"]),
            ("write_kb", ["handbook", "ledger", "notes"]),
        ],
    )
    def test_backend_is_an_enum_of_those_that_serve_the_tool(self, house: House, name: str, backends: list[str]) -> None:
        assert self.definition(self._one(house, name))["parameters"]["properties"]["backend"]["enum"] == backends

    def test_the_seven_definitions_stay_within_the_token_budget(self, house: House) -> None:
        shown = [dict(self.definition(bound)) for bound in self.bind(house.tools(is_async=False))]
        assert len(json.dumps(shown)) / 4 <= self.token_budget

    def test_binding_twice_changes_nothing(self, house: House) -> None:
        tools = house.tools(is_async=False)
        before = [schema_of(described(tool)) for tool in tools]
        first = [copy.deepcopy(self.definition(bound)) for bound in self.bind(tools)]
        assert [self.definition(bound) for bound in self.bind(tools)] == first
        assert [schema_of(described(tool)) for tool in tools] == before

    # What a call does.

    @_either_kind
    @pytest.mark.parametrize("name", list(CALLS))
    def test_a_bound_tool_answers_as_the_tool_itself(self, house: House, name: str, is_async: bool) -> None:
        answer = self._answer(self._one(house, name, is_async=is_async), CALLS[name])
        assert answer == described(house.tool(name)).call(**CALLS[name])

    @_either_kind
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("read_kb", {"backend": "handbok", "query": "x"}),
            ("fetch_kb", {"backend": "notes", "ids": "1"}),
            ("write_kb", {"backend": "handbook", "text": "x"}),
            ("search_kb", {"backend": "handbook", "query": "x", "limit": "many"}),
        ],
        ids=["unknown backend", "undeclared operation", "read-only backend", "wrong limit"],
    )
    def test_a_refusal_reaches_the_model_unchanged(
        self, house: House, name: str, arguments: dict[str, Any], is_async: bool
    ) -> None:
        answer = self._answer(self._one(house, name, is_async=is_async), arguments)
        assert answer == described(house.tool(name)).call(**arguments)

    def test_an_unknown_backend_is_answered_with_the_known_ones(self, house: House) -> None:
        answer = self._answer(self._one(house, "read_kb"), {"backend": "nowhere", "query": "x"})
        assert answer.startswith("Unknown backend 'nowhere'. Available: ['handbook', 'ledger', 'notes']")

    @_either_kind
    def test_a_failing_backend_is_named_and_its_message_withheld(self, house: House, is_async: bool) -> None:
        house.handbook.on("search", RuntimeError("postgres://user:secret@host"))
        answer = self._answer(self._one(house, "search_kb", is_async=is_async), CALLS["search_kb"])
        assert "handbook" in answer
        assert "secret" not in answer

    @pytest.mark.parametrize(
        ("name", "sent", "meant"),
        [
            ("fetch_kb", {"backend": "handbook", "ids": ["a", "b"]}, {"backend": "handbook", "ids": "a,b"}),
            ("search_kb", {**CALLS["search_kb"], "limit": "1"}, CALLS["search_kb"]),
            (
                "write_kb",
                {**CALLS["write_kb"], "query": "q", "params_json": {"client": "Acme"}},
                {**CALLS["write_kb"], "query": "q", "params_json": '{"client": "Acme"}'},
            ),
        ],
        ids=["ids as a list", "limit as text", "params as an object"],
    )
    def test_arguments_as_models_send_them_reach_the_backend(
        self, house: House, name: str, sent: dict[str, Any], meant: dict[str, Any]
    ) -> None:
        answer = self._answer(self._one(house, name), sent)
        assert answer == described(house.tool(name)).call(**meant)
        by_model, by_hand = house.handbook.calls + house.notes.calls
        assert by_model == by_hand

    @_either_kind
    @pytest.mark.parametrize("name", _FRAMEWORK_WORDS)
    def test_an_unknown_argument_is_named_and_nothing_is_called(self, house: House, name: str, is_async: bool) -> None:
        answer = self._answer(self._one(house, "search_kb", is_async=is_async), {**CALLS["search_kb"], name: "x"})
        assert f"'{name}'" in answer
        assert house.handbook.calls == []

    @_either_kind
    def test_a_missing_argument_is_named_and_nothing_is_called(self, house: House, is_async: bool) -> None:
        answer = self._answer(self._one(house, "search_kb", is_async=is_async), {"backend": "handbook"})
        assert "query" in answer
        assert house.handbook.calls == []

    @requires("text_arguments")
    @pytest.mark.parametrize(
        "text",
        ["{", "[1]", '"x"', "7", "search refunds", "[" * 100_000, '{"limit": ' + "9" * 5_000 + "}"],
        ids=["cut", "array", "string", "number", "prose", "deep", "huge number"],
    )
    def test_arguments_that_are_no_json_object_are_answered(self, house: House, text: str) -> None:
        answer = self._text_answer(self._one(house, "search_kb"), text)
        assert "JSON" in answer
        assert "backend, query, limit (optional)" in answer
        assert house.handbook.calls == []

    @requires("text_arguments")
    @pytest.mark.parametrize("text", ["", " ", "{}", "null"])
    def test_no_arguments_may_be_written_in_any_way(self, house: House, text: str) -> None:
        assert self._text_answer(self._one(house, "get_schemas"), text) == described(house.tool("get_schemas")).call()

    def _text_answer(self, bound: Any, text: str) -> str:
        return asyncio.run(cast("Any", self).invoke_text(bound, text))

    # How it runs.

    @_either_kind
    def test_a_running_tool_does_not_block_the_event_loop(self, house: House, is_async: bool) -> None:
        async def let_go_while_it_runs() -> str:
            running, held = await self._held_search(house, is_async)
            held.let_go.set()
            return await running

        assert "free" in asyncio.run(let_go_while_it_runs())

    @_either_kind
    def test_a_cancellation_goes_through(self, house: House, is_async: bool) -> None:
        async def cancel_while_it_runs() -> None:
            running, held = await self._held_search(house, is_async)
            running.cancel()
            try:
                await running
            finally:
                held.let_go.set()

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancel_while_it_runs())

    async def _held_search(self, house: House, is_async: bool) -> tuple[asyncio.Task[str], Held]:
        """Return a search that has reached its backend, and what holds it there."""
        held = Held()
        house.handbook.on("search", held)
        bound = self._one(house, "search_kb", is_async=is_async)
        running = asyncio.create_task(self.invoke(bound, dict(CALLS["search_kb"])))
        while not house.handbook.calls and not running.done():
            await asyncio.sleep(0.001)
        return running, held

    @_either_kind
    def test_calls_at_one_time_are_independent(self, house: House, is_async: bool) -> None:
        house.handbook.on("search", Meeting(_TOGETHER))
        bound = self._one(house, "search_kb", is_async=is_async)

        async def ask_together() -> list[str]:
            calls = (self.invoke(bound, {"backend": "handbook", "query": f"topic {n}"}) for n in range(_TOGETHER))
            return await asyncio.gather(*calls)

        answers = asyncio.run(ask_together())
        assert [f"about topic {n}" in answer for n, answer in enumerate(answers)] == [True] * _TOGETHER

    @_either_kind
    def test_each_call_acts_for_whom_the_application_bound_around_it(self, house: House, is_async: bool) -> None:
        bound = self._one(house, "search_kb", is_async=is_async)

        async def ask_for(principal: str) -> None:
            with house.builder.acting_as(principal):
                await self.invoke(bound, {"backend": "handbook", "query": f"about {principal}"})

        async def ask_at_one_time() -> None:
            await asyncio.gather(*map(ask_for, ("alice", "bob") * _TOGETHER))

        asyncio.run(ask_at_one_time())
        asked = [query for _, query, _ in house.handbook.calls]
        acted = [f"about {whom.principal}" if whom else "about nobody" for whom in house.handbook.acted_for]
        assert acted == asked
        assert len(asked) == 2 * _TOGETHER

    # What is bound beside the router's tools.

    def test_own_callables_are_bound_too(self) -> None:
        bound = self.bind([shout, ashout])
        assert [self.definition(tool)["name"] for tool in bound] == ["shout", "ashout"]
        assert [self._answer(tool, {"word": "hi"}) for tool in bound] == ["HI", "HI"]

    @_either_kind
    def test_a_wrapper_around_a_tool_is_not_passed_by(self, house: House, is_async: bool) -> None:
        (bound,) = self.bind([withheld(house.tool("search_kb", is_async=is_async), is_async=is_async)])
        assert self._answer(bound, CALLS["search_kb"]) == "Not approved."
        assert house.handbook.calls == []

    def test_a_bound_tool_passes_through(self, house: House) -> None:
        bound = list(self.bind(house.tools(is_async=False)))
        again = list(self.bind(bound))
        assert [id(tool) for tool in again] == [id(tool) for tool in bound]

    def test_no_tools_bind_to_none(self) -> None:
        assert list(self.bind([])) == []

    @pytest.mark.parametrize(("given", "named"), [(["read_kb"], "str"), ([None], "NoneType"), ("read_kb", "str"), (7, "int")])
    def test_what_is_no_tool_is_named(self, given: Any, named: str) -> None:
        with pytest.raises(TypeError, match=rf"\b{named}\b"):
            self.bind(given)

    def test_a_name_given_twice_is_named(self, house: House) -> None:
        with pytest.raises(ValueError, match="more than once: \\['read_kb'\\]"):
            self.bind([*house.tools(is_async=False), house.tool("read_kb")])
