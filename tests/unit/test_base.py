"""The contract's base class: abstract members, operations, schema, rendering, async twins and closing (A1, A2, A3, A4)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

import pytest

from agentkernel_kb import AKConfigError, KnowledgeBase, KnowledgeCapabilities, KnowledgeCapabilityError, Record
from agentkernel_kb.base import overrides
from agentkernel_kb.model import Operation
from agentkernel_kb.render import NOTHING_FOUND

ARGUMENTS: dict[str, Any] = {"search": "text", "query": "text", "fetch": ["id"], "browse": "path", "write": [{"text": "t"}]}


class Minimal(KnowledgeBase):
    """Implements the three abstract members and nothing else."""

    def __init__(self, name: str = "minimal", **declared: Any) -> None:
        self._name = name
        super().__init__(KnowledgeCapabilities(**(declared or {"search": True})))

    @property
    def backend_name(self) -> str:
        return self._name

    def connect(self, **kwargs: Any) -> None: ...

    def get_description(self) -> str:
        return self._name


class Searching(Minimal):
    """Answers with the thread that it ran in."""

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        return [{"text": threading.current_thread().name, "metadata": {"limit": limit, **kwargs}}]


# A1: what is abstract, and what an undeclared operation does


def test_a1_exactly_three_members_are_abstract() -> None:
    assert KnowledgeBase.__abstractmethods__ == {"backend_name", "connect", "get_description"}


@pytest.mark.parametrize("missing", ["backend_name", "connect", "get_description"])
def test_a1_a_backend_without_one_of_them_cannot_be_made(missing: str) -> None:
    incomplete = type("Incomplete", (Minimal,), {missing: getattr(KnowledgeBase, missing)})
    with pytest.raises(TypeError, match=missing):
        incomplete()


def test_a1_there_is_no_read() -> None:
    assert not hasattr(KnowledgeBase, "read")


@pytest.mark.parametrize("operation", get_args(Operation))
def test_a1_an_operation_that_is_not_overridden_is_refused(operation: Operation) -> None:
    with pytest.raises(KnowledgeCapabilityError) as caught:
        getattr(Minimal(), operation)(ARGUMENTS[operation], unknown="x")
    assert (caught.value.subject, caught.value.capability) == ("minimal", operation)


@pytest.mark.parametrize("operation", get_args(Operation))
async def test_its_async_twin_is_refused_likewise(operation: Operation) -> None:
    with pytest.raises(KnowledgeCapabilityError) as caught:
        await getattr(Minimal(), f"a{operation}")(ARGUMENTS[operation], unknown="x")
    assert (caught.value.subject, caught.value.capability) == ("minimal", operation)


def test_add_is_refused_as_a_write() -> None:
    with pytest.raises(KnowledgeCapabilityError) as caught:
        Minimal().add([{"text": "t"}])
    assert caught.value.capability == "write"


# A2: the declaration is checked at construction


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ({"kinds": ["vector"]}, "at least one of search, query, fetch, browse, writable must be True"),
        ({"search_mode": "lexical", "derives_schema": True}, "at least one of search, query, fetch, browse, writable"),
        ({"query": True}, "query=True, which requires a query_language"),
        ({"query": True, "query_language": ""}, "query=True, which requires a query_language"),
        ({"search": True, "query_language": "sql"}, "query_language='sql', which requires query=True"),
        ({"search": True, "query_language": ""}, "query_language='', which requires query=True"),
    ],
)
def test_a2_a_declaration_that_contradicts_itself_names_the_backend(declared: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        Minimal("my store", **declared)
    assert "'my store'" in str(caught.value)
    assert isinstance(caught.value, AKConfigError)


@pytest.mark.parametrize("flag", ["search", "fetch", "browse", "writable"])
def test_a2_one_operation_is_enough(flag: str) -> None:
    declared: dict[str, Any] = {flag: True}
    assert Minimal(**declared).capabilities == KnowledgeCapabilities(**declared)


def test_a2_a_query_language_and_a_query_go_together() -> None:
    assert Minimal(query=True, query_language="cypher").capabilities.query_language == "cypher"


def test_a2_a_declaration_can_be_checked_without_a_backend() -> None:
    KnowledgeBase.validate_capabilities(KnowledgeCapabilities(search=True), "any")
    with pytest.raises(ValueError, match="'any'"):
        KnowledgeBase.validate_capabilities(KnowledgeCapabilities(), "any")


@pytest.mark.parametrize("declaration", [None, {"search": True}, "search"])
def test_a2_anything_but_a_declaration_is_refused(declaration: Any) -> None:
    with pytest.raises(AKConfigError, match="'any' needs KnowledgeCapabilities"):
        KnowledgeBase.validate_capabilities(declaration, "any")


def test_a2_the_declaration_is_a_required_argument() -> None:
    class Old(Minimal):
        def __init__(self) -> None:
            KnowledgeBase.__init__(self)  # pyright: ignore[reportCallIssue] - what a backend of an older contract does

    with pytest.raises(TypeError, match="capabilities"):
        Old()


def test_a2_a_backend_is_named_in_errors_before_its_name_can_be_read() -> None:
    class Late(Minimal):
        def __init__(self) -> None:
            KnowledgeBase.__init__(self, KnowledgeCapabilities(), name="late one")
            self._name = "late one"

    with pytest.raises(ValueError, match="Backend 'late one'"):
        Late()


def test_a2_a_nameless_backend_is_called_by_its_class() -> None:
    with pytest.raises(ValueError, match="Backend 'Minimal'"):
        Minimal("", kinds=[])


# A3: schemas


def test_a3_a_schema_is_merged_in_order() -> None:
    class Derived(Minimal):
        def _derived_schema(self) -> Mapping[str, Any]:
            return {"tables": 3, "usage": "derived", "backend": "derived name"}

    backend = Derived(search=True, derives_schema=True).add_schema({"usage": "added", "notes": "n"})
    assert list(backend.schema().items()) == [
        ("backend", "derived name"),
        ("tables", 3),
        ("usage", "added"),
        ("notes", "n"),
        ("capabilities", backend.capabilities.model_dump()),
    ]


def test_a3_the_declaration_stands_last_and_cannot_be_overridden() -> None:
    backend = Minimal().add_schema({"capabilities": "forged", "usage": "u"})
    assert list(backend.schema().items())[-1] == ("capabilities", backend.capabilities.model_dump())


def test_a3_add_schema_can_be_chained_and_later_calls_win() -> None:
    backend = Minimal()
    assert backend.add_schema({"a": 1, "b": 1}).add_schema({"b": 2}) is backend
    assert (backend.schema()["a"], backend.schema()["b"]) == (1, 2)


def test_add_schema_keeps_no_hold_on_what_it_was_given() -> None:
    config = {"usage": "first"}
    backend = Minimal().add_schema(config)
    config["usage"] = "changed"
    assert backend.schema()["usage"] == "first"


def test_a_schema_that_is_changed_changes_nothing() -> None:
    backend = Minimal().add_schema({"usage": "u"})
    backend.schema()["capabilities"]["kinds"].append("forged")
    backend.schema()["usage"] = "changed"
    assert (backend.schema()["usage"], backend.capabilities.kinds) == ("u", [])


def test_a3_no_schema_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"Backend 'minimal' has no schema: call add_schema\(.*derives_schema=True"):
        Minimal().schema()


def test_a3_an_empty_schema_is_a_schema() -> None:
    assert list(Minimal().add_schema({}).schema()) == ["backend", "capabilities"]


def test_a3_a_derived_schema_needs_no_added_one() -> None:
    assert list(Minimal(search=True, derives_schema=True).schema()) == ["backend", "capabilities"]


@pytest.mark.parametrize("config", [None, "text", ["a"], 3])
def test_a3_only_a_mapping_can_be_added(config: Any) -> None:
    with pytest.raises(AKConfigError, match="add_schema of 'minimal' takes a mapping"):
        Minimal().add_schema(config)


def test_a_query_backend_says_whether_it_is_guarded() -> None:
    class Guarded(Minimal):
        def check_read(self, statement: str, *, allow: Collection[str] = ()) -> None: ...

    declared: dict[str, Any] = {"query": True, "query_language": "sql", "derives_schema": True}
    assert (Minimal(**declared).schema()["guarded"], Guarded(**declared).schema()["guarded"]) == (False, True)
    assert "guarded" not in Minimal(search=True, derives_schema=True).schema()


def test_the_default_guard_accepts_everything() -> None:
    Minimal().check_read("DROP TABLE t", allow=["f"])


# A4: rendering and closing


def test_a4_nothing_is_the_sentinel() -> None:
    assert Minimal().format_results([]) == Minimal().format_results(iter(())) == NOTHING_FOUND == "No relevant knowledge found."


def test_a4_a_row_is_text_and_source() -> None:
    rows: list[Record] = [{"text": "a", "metadata": {"id": "1", "source": "s"}}, {"text": "b", "metadata": {"id": "2"}}]
    assert Minimal().format_results(rows) == "- a (source: s)\n- b (source: N/A)"


def test_a4_a_fetch_backend_shows_usable_ids() -> None:
    rows: list[Record] = [{"text": "a", "metadata": {"id": "1", "source": "s"}}, {"text": "b", "metadata": {"id": "2, 3"}}]
    assert Minimal(fetch=True).format_results(rows) == "- [1] a (source: s)\n- b (source: N/A)"


def test_a4_close_is_harmless() -> None:
    backend = Minimal()
    backend.close()
    backend.close()


def test_there_are_no_diagnostics_by_default() -> None:
    assert list(Minimal().get_diagnostics()) == []


# The async twins


async def test_a_twin_runs_in_a_thread_of_the_backend() -> None:
    (record,) = await Searching("store").asearch("x", limit=7, where="w")
    assert record["text"].startswith("kb-store-")
    assert record["metadata"] == {"limit": 7, "where": "w"}


async def test_twins_do_not_block_the_loop() -> None:
    class Waiting(Minimal):
        def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            assert released.wait(timeout=30)
            return []

    released = threading.Event()
    call = asyncio.ensure_future(Waiting().asearch("x"))
    await asyncio.sleep(0)
    released.set()  # Reached only because the loop goes on while the search waits.
    assert await call == []


async def test_backends_do_not_share_threads() -> None:
    class Hung(Minimal):
        max_workers = 1

        def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            assert released.wait(timeout=30)
            return []

    released = threading.Event()
    hung = asyncio.ensure_future(Hung("hung").asearch("x"))
    (record,) = await asyncio.wait_for(Searching("other").asearch("x"), timeout=30)
    released.set()
    await hung
    assert record["text"].startswith("kb-other-")


async def test_context_variables_reach_the_backend() -> None:
    class Reading(Minimal):
        def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return [{"text": principal.get()}]

    principal = contextvars.ContextVar("principal", default="nobody")
    principal.set("ada")
    assert await Reading().asearch("x") == [{"text": "ada"}]


async def test_every_twin_hands_over_its_arguments() -> None:
    class Echo(Minimal):
        def query(self, statement: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            return [{"text": f"{statement} {limit} {kwargs}"}]

        def fetch(self, ids: Sequence[str], **kwargs: Any) -> list[Record]:
            return [{"text": f"{ids} {kwargs}"}]

        def browse(self, path: str = "", limit: int = 50, **kwargs: Any) -> list[Record]:
            return [{"text": f"{path} {limit} {kwargs}"}]

        def write(self, records: Iterable[Record], **kwargs: Any) -> None:
            written.append((list(records), kwargs))

    written: list[object] = []
    echo = Echo()
    assert await echo.aquery("q", unknown=1) == [{"text": "q 3 {'unknown': 1}"}]
    assert await echo.afetch(["i"], unknown=1) == [{"text": "['i'] {'unknown': 1}"}]
    assert await echo.abrowse(unknown=1) == [{"text": " 50 {'unknown': 1}"}]
    assert await echo.aadd([{"text": "a"}], unknown=1) == []
    await echo.awrite([{"text": "b"}])
    assert written == [([{"text": "a"}], {"unknown": 1}), ([{"text": "b"}], {})]


async def test_add_by_default_writes_and_reports_no_ids() -> None:
    class Writing(Minimal):
        def write(self, records: Iterable[Record], **kwargs: Any) -> None:
            written.extend(records)

    written: list[Record] = []
    assert Writing(writable=True).add([{"text": "a"}]) == []
    assert written == [{"text": "a"}]


async def test_aadd_uses_an_async_write_where_there_is_no_add() -> None:
    class Async(Minimal):
        async def awrite(self, records: Iterable[Record], **kwargs: Any) -> None:
            written.extend(records)

    written: list[Record] = []
    assert await Async(writable=True).aadd([{"text": "a"}]) == []
    assert written == [{"text": "a"}]


async def test_aadd_prefers_an_own_add() -> None:
    class Both(Minimal):
        def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
            return ["id"]

        async def awrite(self, records: Iterable[Record], **kwargs: Any) -> None:
            raise AssertionError

    assert await Both(writable=True).aadd([{"text": "a"}]) == ["id"]


def test_overrides_tells_own_members_from_inherited_ones() -> None:
    class Narrower(Searching):
        pass

    assert [member for member in get_args(Operation) if overrides(Narrower(), member)] == ["search"]
    assert not overrides(Minimal(), "search")


def test_no_thread_is_started_before_it_is_needed() -> None:
    before = threading.active_count()
    Searching().search("x")
    assert threading.active_count() == before


async def test_a_forgotten_backend_ends_its_threads() -> None:
    backend = Searching("forgotten")
    await backend.asearch("x")
    gone = weakref.ref(backend)
    del backend
    gc.collect()
    assert gone() is None
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("kb-forgotten-")]
    for thread in workers:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in workers)
