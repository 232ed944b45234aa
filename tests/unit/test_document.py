"""DocumentKnowledgeBase over a store: the more restrictive side decides whether it can be written (A14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb import (
    AKConfigError,
    DocumentKnowledgeBase,
    KnowledgeBase,
    KnowledgeCapabilities,
    KnowledgeCapabilityError,
    LocalDocumentStore,
)


class Shelf(DocumentKnowledgeBase):
    """A format of which nothing is read."""

    @property
    def backend_name(self) -> str:
        return "shelf"

    def connect(self, **kwargs: Any) -> None:
        pass

    def get_description(self) -> str:
        return "shelf"


def shelf(folder: Path, *, store: bool | None, backend: bool, fetch: bool = True) -> Shelf:
    """Return a backend that is willing to write, or not, over a store that can be written, or not."""
    declared = KnowledgeCapabilities(kinds=["document"], writable=backend, fetch=fetch)
    return Shelf(LocalDocumentStore(folder, store), declared, "shelf")


@pytest.mark.parametrize(
    ("store", "backend", "expected"), [(True, True, True), (True, False, False), (False, True, False), (False, False, False)]
)
def test_a14_writability_is_folded_with_and(tmp_path: Path, store: bool, backend: bool, expected: bool) -> None:
    made = shelf(tmp_path, store=store, backend=backend)
    assert (made.capabilities.writable, made.capabilities.fetch, made.capabilities.kinds) == (expected, True, ["document"])


def test_a14_a_backend_over_a_read_only_store_refuses_to_write(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeCapabilityError, match="'shelf' does not support write"):
        shelf(tmp_path, store=False, backend=True).write([])


def test_a14_the_file_system_is_asked_where_nothing_is_said(tmp_path: Path) -> None:
    assert shelf(tmp_path, store=None, backend=True).capabilities.writable is True


def test_the_declaration_that_was_given_stays_as_it_was(tmp_path: Path) -> None:
    declared = KnowledgeCapabilities(fetch=True, writable=True)
    Shelf(LocalDocumentStore(tmp_path, writable=False), declared)
    assert declared.writable is True


def test_a_backend_with_nothing_left_to_do_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(AKConfigError, match="'shelf' declares nothing"):
        shelf(tmp_path, store=False, backend=True, fetch=False)


@pytest.mark.parametrize("store", ["./bundle", None, Path()])
def test_what_is_no_store_is_refused_with_what_makes_one(store: Any) -> None:
    with pytest.raises(AKConfigError, match="from_uri"):
        Shelf(store, KnowledgeCapabilities(fetch=True))


def test_a_declaration_of_another_kind_is_refused_as_elsewhere(tmp_path: Path) -> None:
    capabilities: Any = {"fetch": True}
    with pytest.raises(AKConfigError, match="KnowledgeCapabilities"):
        Shelf(LocalDocumentStore(tmp_path), capabilities)


def test_it_is_a_backend_with_its_store_that_may_be_closed_twice(tmp_path: Path) -> None:
    store = LocalDocumentStore(tmp_path)
    made = Shelf(store, KnowledgeCapabilities(fetch=True))
    assert isinstance(made, KnowledgeBase)
    assert made.store is store
    made.close()
    made.close()
