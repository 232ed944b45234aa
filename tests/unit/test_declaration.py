"""What is declared is what is overridden: the check that the contract suite and its users share (A21)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

from agentkernel_kb import KnowledgeBase, KnowledgeCapabilities, KnowledgeCapabilityError, Record
from agentkernel_kb.testing import FakeKnowledgeBase, declaration_faults

# The backends below are wrong on purpose, in ways that a type checker also sees.
# pyright: reportIncompatibleMethodOverride=false


class Plain(KnowledgeBase):
    """A backend without any operation."""

    def __init__(self, capabilities: KnowledgeCapabilities) -> None:
        super().__init__(capabilities, name="plain")

    @property
    def backend_name(self) -> str:
        return "plain"

    def connect(self, **kwargs: Any) -> None: ...

    def get_description(self) -> str:
        return "plain"


class Searching(Plain):
    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        return []


SEARCH = KnowledgeCapabilities(search=True)
FETCH = KnowledgeCapabilities(fetch=True)
WRITE = KnowledgeCapabilities(writable=True)
QUERY = KnowledgeCapabilities(query=True, query_language="sql")


def test_a_sound_backend_has_no_faults() -> None:
    assert declaration_faults(Searching(SEARCH)) == []
    assert declaration_faults(Searching) == []


@pytest.mark.parametrize("flags", [{}, {"fetch": True, "browse": True, "writable": True, "query_language": "sql"}])
def test_the_fake_is_sound_in_any_mix(flags: dict[str, Any]) -> None:
    assert declaration_faults(FakeKnowledgeBase(**flags)) == []


@pytest.mark.parametrize(
    ("capabilities", "flag", "operation"),
    [
        (SEARCH, "search", "search"),
        (QUERY, "query", "query"),
        (FETCH, "fetch", "fetch"),
        (KnowledgeCapabilities(browse=True), "browse", "browse"),
        (WRITE, "writable", "write"),
    ],
)
def test_declared_and_not_implemented(capabilities: KnowledgeCapabilities, flag: str, operation: str) -> None:
    assert declaration_faults(Plain(capabilities)) == [f"{flag} is declared, but {operation}() is not implemented."]


def test_an_async_twin_alone_is_not_enough() -> None:
    class Half(Plain):
        async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return []

    assert declaration_faults(Half(SEARCH)) == ["search is declared, but search() is not implemented."]


def test_add_alone_is_not_enough() -> None:
    class Half(Plain):
        def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
            return []

    assert declaration_faults(Half(WRITE)) == ["writable is declared, but write() is not implemented."]


def test_implemented_and_not_declared() -> None:
    assert declaration_faults(Searching(FETCH)) == [
        "search() is implemented, but search is not declared.",
        "fetch is declared, but fetch() is not implemented.",
    ]


def test_undeclared_writing_is_found_in_all_its_forms() -> None:
    class Writing(Searching):
        def write(self, records: Iterable[Record], **kwargs: Any) -> None: ...

        async def awrite(self, records: Iterable[Record], **kwargs: Any) -> None: ...

        def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
            raise OSError("disk full")

    assert declaration_faults(Writing(SEARCH)) == [
        f"{member}() is implemented, but writable is not declared." for member in ("write", "awrite", "add")
    ]


def test_an_override_that_refuses_is_sound() -> None:
    class Folded(Searching):
        def write(self, records: Iterable[Record], **kwargs: Any) -> None:
            self._require_writable()

        async def awrite(self, records: Iterable[Record], **kwargs: Any) -> None:
            self._require_writable()

        def _require_writable(self) -> None:
            if not self.capabilities.writable:
                raise KnowledgeCapabilityError(self.backend_name, "write")

    assert declaration_faults(Folded(SEARCH)) == []
    assert declaration_faults(Folded(KnowledgeCapabilities(search=True, writable=True))) == []


def test_a_missing_guard_is_no_fault() -> None:
    class Unguarded(Plain):
        def query(self, statement: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return []

    assert declaration_faults(Unguarded(QUERY)) == []


def test_a_schema_that_is_promised_is_derived() -> None:
    backend = Searching(KnowledgeCapabilities(search=True, derives_schema=True))
    assert declaration_faults(backend) == ["derives_schema is declared, but _derived_schema() is not implemented."]


def test_a_constructor_that_forgets_its_base() -> None:
    class Forgetful(Searching):
        def __init__(self) -> None:
            pass

    assert declaration_faults(Forgetful()) == [
        "Forgetful has no capabilities: its __init__ must call super().__init__(capabilities)."
    ]


def test_a_first_argument_of_another_name() -> None:
    class Renamed(Plain):
        def search(self, text: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return []

    (fault,) = declaration_faults(Renamed)
    assert fault.startswith("search(self, text: ")
    assert fault.endswith("can: missing a required argument: 'text'.")


def test_unknown_arguments_have_to_be_accepted() -> None:
    class Strict(Plain):
        def search(self, query: str, limit: int = 3) -> list[Record]:
            return []

    (fault,) = declaration_faults(Strict)
    assert fault.endswith("got an unexpected keyword argument 'unknown'.")


def test_a_limit_has_to_be_positional() -> None:
    class KeywordOnly(Plain):
        def search(self, query: str, *, limit: int = 3, **kwargs: Any) -> list[Record]:
            return []

    (fault,) = declaration_faults(KeywordOnly)
    assert fault.endswith("too many positional arguments.")


def test_a_default_has_to_be_the_contracts() -> None:
    class Greedy(Plain):
        def search(self, query: str, limit: int = 10, **kwargs: Any) -> list[Record]:
            return []

    assert declaration_faults(Greedy) == ["search() has limit=10 by default; the contract has limit=3."]


def test_further_arguments_with_defaults_are_sound() -> None:
    class Richer(Plain):
        def search(self, query: str, limit: int = 3, *, timeout: float | None = None, **kwargs: Any) -> list[Record]:
            return []

        def fetch(self, ids: Sequence[str], full: bool = True, **kwargs: Any) -> list[Record]:
            return []

    assert declaration_faults(Richer) == []


def test_a_plain_operation_must_not_be_a_coroutine() -> None:
    class Confused(Plain):
        async def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return []

    assert declaration_faults(Confused(SEARCH)) == [
        "search() is a coroutine function; the contract's is a plain one, and its async twin is asearch()."
    ]


def test_a_guard_takes_what_it_is_allowed() -> None:
    class Narrow(Plain):
        def query(self, statement: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return []

        def check_read(self, statement: str) -> None: ...

    class Wide(Narrow):
        def check_read(self, statement: str, *, allow: Collection[str] = (), dialect: str = "") -> None: ...

    (fault,) = declaration_faults(Narrow(QUERY))
    assert fault.endswith("got an unexpected keyword argument 'allow'.")
    assert declaration_faults(Wide(QUERY)) == []
