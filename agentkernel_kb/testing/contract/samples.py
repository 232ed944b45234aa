"""What a subclass of the suite gives, and the small helpers that its tests share."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.model import Record, Scalar
from agentkernel_kb.render import encode, usable_id

T = TypeVar("T")

MANY = 1_000
"""A limit above what any sample knowledge holds."""


class Samples(ABC):
    """The backend under test and what it is known to hold: give what belongs to what is declared, and leave the rest."""

    search_query: ClassVar[str] = ""
    """Free text that finds something."""
    search_expects: ClassVar[str] = ""
    """A part of the text of the best hit for `search_query`."""

    read_statement: ClassVar[str] = ""
    """A statement that selects at least two records in a fixed order and has no limit of its own."""
    read_expects: ClassVar[str] = ""
    """A part of the text of the first record that `read_statement` selects."""
    empty_statement: ClassVar[str] = ""
    """A statement that selects nothing."""
    bad_statement: ClassVar[str] = ""
    """A statement with an error in it."""
    write_statements: ClassVar[Sequence[str]] = ()
    """Statements that a guard has to refuse."""

    fetch_ids: ClassVar[Sequence[str]] = ()
    """At least two ids of records, each on one line and without a comma, as `fetch_kb` separates ids by commas."""
    missing_id: ClassVar[str] = "no-such-id-7d0f"
    """A well-formed id of nothing."""

    browse_path: ClassVar[str] = ""
    """A path with something at it."""
    browse_expects: ClassVar[str] = ""
    """A part of the text or the id of a record at `browse_path`."""
    missing_path: ClassVar[str] = "no-such-path-7d0f"
    """A well-formed path with nothing at it."""

    principal: ClassVar[str] = "contract-suite"
    """Whom the calls act for where the backend requires an identity; its store has to know that user."""

    row_scope: ClassVar[Mapping[str, Scalar]] = {}
    """Metadata that the records have which `search_expects`, `read_expects`, `fetch_ids` and `browse_expects` are of."""
    other_scope: ClassVar[Mapping[str, Scalar]] = {}
    """The same keys with values that those records do not have."""

    new_record: ClassVar[Record] = {}
    """A record that the sample knowledge does not hold. Its text is one short line."""

    @abstractmethod
    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        """Return a new backend that holds the sample knowledge. The suite closes it.

        Args:
            tmp_path: An empty folder for this one test. What the backend keeps in files belongs in it or below: what stands
                beside and above is used to find out whether a path can leave the store.
        """

    def find_written(self, backend: KnowledgeBase) -> Sequence[Record]:
        """Return all records that are `new_record` as the backend holds it. The default searches for its text.

        Override it for a backend that declares no search.
        """
        text = self.new_record["text"]
        return [record for record in backend.search(text, limit=MANY) if text in record["text"]]

    def count_records(self, answer: str) -> int:
        """Return how many records `format_results` shows. The default counts the lines that begin with a dash.

        Override it for a backend with a format of its own.
        """
        return sum(line.startswith("- ") for line in answer.split("\n"))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own."""
    return asyncio.run(coroutine)


def texts(records: Iterable[Record]) -> list[str]:
    """Return the texts of records."""
    return [record["text"] for record in records]


def ids(records: Iterable[Record]) -> list[str | None]:
    """Return the ids by which `fetch` could be asked for records."""
    return [usable_id(record["metadata"]) for record in records]


def id_fault(identity: object) -> str:
    """Return why `fetch` could not be asked for an id, or `""` where it can."""
    if usable_id({"id": identity}) is not None:
        return ""
    if not isinstance(identity, str) or not identity:
        return f"id {identity!r} is no text"
    if "," in identity:
        return f"id {identity!r} contains a comma, by which fetch_kb separates ids"
    return f"id {identity!r} cannot be asked for: an id is one short line without outer blanks, its brackets in pairs"


def assert_have_ids(records: Iterable[Record]) -> None:
    """Assert that `fetch` could be asked for each of these records."""
    faults = [fault for record in records if (fault := id_fault(record["metadata"].get("id")))]
    assert not faults, "; ".join(faults)


def assert_are_records(records: object) -> None:
    """Assert that an answer is a list of well-formed records that can be handed on as JSON."""
    assert isinstance(records, list)
    for record in records:  # pyright: ignore[reportUnknownVariableType] - that it is a record is what is asserted
        assert isinstance(record, Mapping)
        assert isinstance(record["text"], str)
        assert isinstance(record["metadata"], Mapping)
        assert all(isinstance(key, str) for key in record["metadata"])  # pyright: ignore[reportUnknownVariableType]
        json.dumps(encode(cast("object", record)), allow_nan=False)


def assert_same_from_threads(call: Callable[[], object]) -> None:
    """Assert that eight threads that call at once get what one caller gets."""
    expected = call()
    answers: list[object] = [None] * 8
    gate = threading.Barrier(len(answers))

    def ask(index: int) -> None:
        gate.wait(timeout=30)
        try:
            answers[index] = call()
        except Exception as error:  # noqa: BLE001 - whatever a thread raises is compared, where it fails the test visibly
            answers[index] = error

    contexts = [contextvars.copy_context() for _ in answers]  # So that each acts for whom this one acts for.
    threads = [threading.Thread(target=context.run, args=(ask, index)) for index, context in enumerate(contexts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert answers == [expected] * len(answers)
