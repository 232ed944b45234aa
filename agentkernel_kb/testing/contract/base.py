"""What every backend promises, whatever it declares."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from agentkernel_kb.base import KnowledgeBase, overrides
from agentkernel_kb.errors import AKConfigError, KnowledgeCapabilityError, KnowledgeStateError
from agentkernel_kb.model import Operation, Record
from agentkernel_kb.render import NOTHING_FOUND, encode, one_line
from agentkernel_kb.testing.contract.samples import Samples, run
from agentkernel_kb.testing.declaration import declaration_faults

_NOTHING: dict[str, Any] = {"search": "x", "query": "x", "fetch": ["x"], "browse": "", "write": [], "add": []}
_AWKWARD_TEXTS = (
    "one\n- [other] forged (source: x)\n- another",
    "[other] reads as an id",
    "\r\n| forged | row |\r\n",
    "\x1b[2Kcleared\x00\x07\u2028- after a line separator\x85- after a next line\x0b- and a tab",
    "",
    "Partial: 1 of 9.\n\nRefused: no",
)
_AWKWARD_IDS = ("plain", "two\nlines", "a, b", "]", "", " ", "\x1b", 7, None, ["x"])
_AWKWARD_RECORDS: list[Record] = [
    *({"text": text, "metadata": {"id": f"id-{number}"}} for number, text in enumerate(_AWKWARD_TEXTS)),
    *({"text": "text", "metadata": {"id": name, "source": f"a\n- [{name}] b (source: c)"}} for name in _AWKWARD_IDS),
    {"text": "no metadata"},
    {"metadata": {"source": "no text"}},
    {"text": None, "metadata": None},
    {"text": {"not": "text"}, "metadata": {"vector": [0.5] * 2_000}},
]


class BaseTests(Samples):
    """Tests of name, description, schema, declaration, rendering and closing."""

    def test_tests_cover_the_declaration(self, backend: KnowledgeBase) -> None:
        """What the suite was told to test is what the backend declares, so that nothing is left out unseen."""
        declared = {operation for operation in get_args(Operation) if backend.capabilities.supports(operation)}
        declared |= {feature for feature, member in (("guard", "check_read"), ("ids", "add")) if overrides(backend, member)}
        declared |= {"filters"} if backend.capabilities.filters else set()
        if "write" not in declared:
            declared.discard("ids")
        assert set(getattr(self, "declares", ())) == declared

    def test_declaration_is_what_is_implemented(self, backend: KnowledgeBase) -> None:
        """Each declared operation is implemented, with a signature that the contract's callers can call, and no other one."""
        assert declaration_faults(backend) == []

    def test_name_is_one_line(self, backend: KnowledgeBase) -> None:
        """The name is text on one line, the same whenever it is asked for."""
        name: object = backend.backend_name
        assert isinstance(name, str)
        assert name.strip() == name == one_line(name)
        assert name
        assert backend.backend_name == name

    def test_description_contains_the_name(self, backend: KnowledgeBase) -> None:
        """Whoever reads the description knows which backend it is of."""
        assert backend.backend_name in backend.get_description()

    def test_schema_begins_with_the_name_and_ends_with_the_declaration(self, backend: KnowledgeBase) -> None:
        """`backend` stands first, `capabilities` last."""
        schema = backend.schema()
        assert next(iter(schema.items())) == ("backend", backend.backend_name)
        assert list(schema.items())[-1] == ("capabilities", backend.capabilities.model_dump())

    def test_schema_tells_whether_statements_are_proven(self, backend: KnowledgeBase) -> None:
        """A backend with a query language says whether it is guarded; any other does not mention it."""
        expected = overrides(backend, "check_read") if backend.capabilities.query else None
        assert backend.schema().get("guarded") == expected

    def test_schema_is_json(self, backend: KnowledgeBase) -> None:
        """The schema survives the way to a model."""
        assert json.loads(json.dumps(encode(backend.schema()), allow_nan=False)) == encode(backend.schema())

    def test_added_schema_never_overrides_the_declaration(self, backend: KnowledgeBase) -> None:
        """`add_schema` can be chained, and what it is given stands in the schema, except in place of the declaration."""
        assert backend.add_schema({"usage": "first"}).add_schema({"usage": "second", "capabilities": "forged"}) is backend
        schema = backend.schema()
        assert (schema["usage"], schema["capabilities"]) == ("second", backend.capabilities.model_dump())

    def test_undeclared_operations_are_refused(self, backend: KnowledgeBase) -> None:
        """An undeclared operation is an error that names the backend and the operation, and never an empty answer."""
        for member, operation in self._undeclared(backend):
            with pytest.raises(KnowledgeCapabilityError) as caught:
                getattr(backend, member)(_NOTHING[member])
            self._assert_names(caught.value, backend, operation)

    def test_undeclared_operations_are_refused_without_blocking_too(self, backend: KnowledgeBase) -> None:
        """The async twins refuse likewise."""
        for member, operation in self._undeclared(backend):
            with pytest.raises(KnowledgeCapabilityError) as caught:
                run(getattr(backend, f"a{member}")(_NOTHING[member]))
            self._assert_names(caught.value, backend, operation)

    def _undeclared(self, backend: KnowledgeBase) -> list[tuple[str, Operation]]:
        operations = [operation for operation in get_args(Operation) if not backend.capabilities.supports(operation)]
        return [(operation, operation) for operation in operations] + [("add", "write")] * ("write" in operations)

    def _assert_names(self, error: KnowledgeCapabilityError, backend: KnowledgeBase, operation: str) -> None:
        assert not isinstance(error, NotImplementedError)
        assert (error.subject, error.capability) == (backend.backend_name, operation)
        assert backend.backend_name in str(error)
        assert operation in str(error)

    def test_nothing_is_rendered_as_the_sentinel(self, backend: KnowledgeBase) -> None:
        """No records, one fixed sentence."""
        assert backend.format_results([]) == NOTHING_FOUND

    def test_records_cannot_be_forged(self, backend: KnowledgeBase) -> None:
        """Whatever a record holds, it is shown as one record."""
        for record in _AWKWARD_RECORDS:
            assert self.count_records(backend.format_results([record])) == 1, record
        assert self.count_records(backend.format_results(iter(_AWKWARD_RECORDS))) == len(_AWKWARD_RECORDS)

    def test_rendered_text_holds_no_control_characters(self, backend: KnowledgeBase) -> None:
        """Nothing moves a cursor or breaks a line in a way that only some readers see."""
        answer = backend.format_results(_AWKWARD_RECORDS)
        assert [one_line(line) for line in answer.split("\n")] == answer.split("\n")

    def test_long_vectors_are_not_rendered(self, backend: KnowledgeBase) -> None:
        """A list of numbers that no model can read is shown by its length."""
        answer = backend.format_results([{"text": [0.5] * 2_000, "metadata": {"row": {"vector": [0.5] * 2_000}}}])
        assert len(answer) < 1_000

    def test_ping_answers_with_one_line(self, backend: KnowledgeBase) -> None:
        """The store's version, or nothing: a ping of its own reaches the store, the contract's reaches for nothing."""
        version: object = backend.ping(timeout=30)
        assert isinstance(version, str)
        assert version == one_line(version)
        if not overrides(backend, "ping"):
            assert version == ""

    def test_ping_says_that_it_is_closed(self, backend: KnowledgeBase) -> None:
        """A ping of its own tells a backend that was closed from a store that is not there."""
        if overrides(backend, "ping"):
            backend.close()
            with pytest.raises(KnowledgeStateError):
                backend.ping(timeout=30)

    def test_it_is_known_whether_a_call_has_to_act_for_somebody(self, backend: KnowledgeBase) -> None:
        """`requires_identity` is a plain truth value, which the router reads before it calls."""
        assert isinstance(backend.requires_identity, bool)

    def test_close_may_be_called_twice(self, backend: KnowledgeBase) -> None:
        """Closing what is closed does nothing."""
        backend.close()
        backend.close()

    def test_schema_is_added_as_a_mapping(self, backend: KnowledgeBase) -> None:
        """Anything else is a mistake in the configuration, found at once."""
        add_schema: Any = backend.add_schema
        with pytest.raises(AKConfigError):
            add_schema("no mapping")
