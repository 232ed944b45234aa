"""What a store that can be written promises to its writers, and to those who read meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agentkernel_kb.errors import AKConfigError, DocumentChangedError, KnowledgePathError
from agentkernel_kb.store.base import DocumentStat, DocumentStore
from agentkernel_kb.testing.gating import requires
from agentkernel_kb.testing.stores.samples import COMPOSED, DECOMPOSED, DOCUMENTS, ESCAPES, StoreSamples, at_once, outcome

_WRITERS = 6
_ROUNDS = 5


class WriteTests(StoreSamples):
    """Tests of writing, with conditions and without."""

    @requires("write")
    def test_what_is_written_is_there_at_once(self, store: DocumentStore) -> None:
        """Every operation of the next call knows it, and folders need not be made."""
        store.write_bytes("new/folder/x.md", b"new")
        assert (store.read_bytes("new/folder/x.md"), store.exists("new/folder/x.md")) == (b"new", True)
        assert store.list() == sorted([*DOCUMENTS, "new/folder/x.md"])
        assert [found.size for found in store.scan("new")] == [3]

    @requires("write")
    @pytest.mark.parametrize("data", [b"", b"\0\xff\r\n", bytearray(b"array"), memoryview(b"view"), b"long" * 200_000], ids=len)
    def test_bytes_are_kept_as_they_are(self, store: DocumentStore, data: bytes) -> None:
        """Nothing is decoded, translated or cut."""
        store.write_bytes("kept.bin", data)
        assert store.read_bytes("kept.bin") == bytes(data)

    @requires("write")
    def test_a_document_is_replaced_whole(self, store: DocumentStore) -> None:
        """Nothing of a longer one is left."""
        store.write_bytes("binary.bin", b"short")
        assert (store.read_bytes("binary.bin"), store.stat("binary.bin").size) == (b"short", 5)
        assert store.list() == sorted(DOCUMENTS)

    @requires("write")
    def test_a_write_tells_what_it_made(self, store: DocumentStore) -> None:
        """Path, size and version are those that the store tells when asked next."""
        made = store.write_bytes("./a//new.md", b"made")
        known = store.stat("a/new.md")
        assert isinstance(made, DocumentStat)
        assert (made.path, made.size, made.version) == (known.path, known.size, known.version) == ("a/new.md", 4, known.version)

    @requires("write")
    def test_other_bytes_are_another_version(self, store: DocumentStore) -> None:
        """Also where there are as many of them, written at once."""
        versions = [store.write_bytes("a.md", text).version for text in (b"# B\n", b"# C\n", b"# D\n")]
        assert len({store.stat("a0.md").version, *versions}) == 4

    @requires("write")
    def test_writing_under_the_other_unicode_form_makes_no_twin(self, store: DocumentStore) -> None:
        """What is there under one form is replaced under it."""
        store.write_bytes(COMPOSED, b"tea")
        assert (store.read_bytes(DECOMPOSED), len(store.list("forms"))) == (b"tea", 1)

    @requires("write")
    def test_an_unchanged_document_can_be_replaced_on_that_condition(self, store: DocumentStore) -> None:
        """The version may come from `stat`, from a scan or from the last write."""
        made = store.write_bytes("a.md", b"2", if_version=store.stat("a.md").version)
        made = store.write_bytes("a.md", b"3", if_version=made.version)
        (listed,) = store.scan("a.md")
        store.write_bytes("a.md", b"4", if_version=listed.version)
        assert store.read_bytes("a.md") == b"4"

    @requires("write")
    def test_a_changed_document_is_not_replaced(self, store: DocumentStore) -> None:
        """Who saw an older version is told, and nothing is written."""
        seen = store.stat("a.md").version
        store.write_bytes("a.md", b"somebody else's")
        with pytest.raises(DocumentChangedError, match=r"a\.md"):
            store.write_bytes("a.md", b"mine", if_version=seen)
        assert store.read_bytes("a.md") == b"somebody else's"

    @requires("write")
    def test_a_document_that_is_gone_is_not_made_anew_on_that_condition(self, store: DocumentStore) -> None:
        """A version is of something that is there."""
        with pytest.raises(DocumentChangedError):
            store.write_bytes("no-such/x.md", b"mine", if_version=store.stat("a.md").version)
        assert store.list() == sorted(DOCUMENTS)

    @requires("write")
    def test_a_document_can_be_made_only_where_there_is_none(self, store: DocumentStore) -> None:
        """The second one is told, and the first one's bytes stay; the empty document is one."""
        store.write_bytes("once.md", b"first", if_missing=True)
        for path in ("once.md", "empty.md", "./a.md"):
            with pytest.raises(DocumentChangedError):
                store.write_bytes(path, b"second", if_missing=True)
        assert (store.read_bytes("once.md"), store.read_bytes("empty.md")) == (b"first", b"")

    @requires("write")
    def test_conditions_that_exclude_each_other_are_a_mistake(self, store: DocumentStore) -> None:
        """A document cannot be missing and have a version."""
        with pytest.raises(AKConfigError):
            store.write_bytes("a.md", b"x", if_version="v", if_missing=True)

    @requires("write")
    def test_of_many_who_make_one_document_one_succeeds(self, store: DocumentStore) -> None:
        """All others are told."""

        def make(number: int) -> Callable[[], DocumentStat]:
            return lambda: store.write_bytes("race/x.md", b"%d" % number, if_missing=True)

        outcomes = at_once([make(number) for number in range(_WRITERS)])
        winners = [number for number, made in enumerate(outcomes) if isinstance(made, DocumentStat)]
        assert sum(isinstance(made, DocumentChangedError) for made in outcomes) == _WRITERS - 1, outcomes
        assert [store.read_bytes("race/x.md")] == [b"%d" % number for number in winners]

    @requires("write")
    def test_no_change_is_lost(self, store: DocumentStore) -> None:
        """Writers who read, add a line and write on condition, again where they are told, keep each other's lines."""
        store.write_bytes("log.md", b"")

        def add(number: int) -> Callable[[], None]:
            def rounds() -> None:
                for turn in range(_ROUNDS):
                    _append(store, "log.md", b"%d-%d\n" % (number, turn))

            return rounds

        assert at_once([add(number) for number in range(_WRITERS)]) == [None] * _WRITERS
        expected = sorted(b"%d-%d" % (number, turn) for number in range(_WRITERS) for turn in range(_ROUNDS))
        assert sorted(store.read_bytes("log.md").splitlines()) == expected

    @requires("write")
    def test_readers_see_the_old_document_or_the_new_one(self, store: DocumentStore) -> None:
        """Never a mixture, never nothing, and no other path while it is written."""
        store.write_bytes("whole.md", _page(0))

        def write() -> None:
            for number in range(1, 20):
                store.write_bytes("whole.md", _page(number))

        def read() -> set[bytes]:
            return {store.read_bytes("whole.md") for _ in range(40)}

        written, *seen = at_once([write, read, read, lambda: [set(store.list()) for _ in range(10)]])
        pages = {_page(number) for number in range(20)}
        assert written is None
        assert all(isinstance(answer, set) and answer <= pages for answer in seen[:2]), seen[:2]
        assert seen[2] == [{*DOCUMENTS, "whole.md"}] * 10

    @requires("write")
    def test_nothing_is_written_out_of_the_store(self, store: DocumentStore, tmp_path: Path) -> None:
        """A path that leads out, and the root, are refused; inside and outside all stays as it was."""
        beside = sorted(found.name for found in tmp_path.iterdir())
        outcomes = {path: outcome(partial(store.write_bytes, path, b"attack")) for path in (*ESCAPES, "", ".")}
        assert outcomes == dict.fromkeys(outcomes, KnowledgePathError)
        assert sorted(found.name for found in tmp_path.iterdir()) == beside
        assert store.list() == sorted(DOCUMENTS)


class DeleteTests(StoreSamples):
    """Tests of removal."""

    @requires("delete")
    def test_a_removed_document_is_gone(self, store: DocumentStore) -> None:
        """For every operation, and nothing else is."""
        store.delete("./a/inner.md")
        assert (store.exists("a/inner.md"), outcome(lambda: store.read_bytes("a/inner.md"))) == (False, FileNotFoundError)
        assert store.list() == sorted(path for path in DOCUMENTS if path != "a/inner.md")

    @requires("delete")
    def test_nothing_is_removed_out_of_the_store(self, store: DocumentStore) -> None:
        """A path that leads out, and the root, are refused."""
        outcomes = {path: outcome(partial(store.delete, path)) for path in (*ESCAPES, "", ".")}
        assert outcomes == dict.fromkeys(outcomes, KnowledgePathError)

    @requires("delete")
    def test_what_is_no_document_cannot_be_removed(self, store: DocumentStore) -> None:
        """It is missing; a folder with documents in it stays."""
        for path in ("no-such.md", "a", "a/no-such.md", "a.md/beneath.md"):
            assert outcome(partial(store.delete, path)) is FileNotFoundError
        assert store.list() == sorted(DOCUMENTS)

    @requires("delete")
    def test_removal_can_be_conditional(self, store: DocumentStore) -> None:
        """Only the version that was seen is removed."""
        seen = store.stat("a.md").version
        now = store.write_bytes("a.md", b"changed").version
        with pytest.raises(DocumentChangedError):
            store.delete("a.md", if_version=seen)
        assert store.read_bytes("a.md") == b"changed"
        store.delete("a.md", if_version=now)
        assert not store.exists("a.md")

    @requires("delete")
    def test_either_unicode_form_is_removed(self, store: DocumentStore) -> None:
        """As it is found, so it is removed."""
        store.delete(COMPOSED)
        assert store.list("forms") == []


def _append(store: DocumentStore, path: str, line: bytes) -> None:
    while True:
        seen = store.stat(path).version
        text = store.read_bytes(path)
        try:
            store.write_bytes(path, text + line, if_version=seen)
        except DocumentChangedError:
            continue
        return


def _page(number: int) -> bytes:
    return b"%04d" % number * (2_000 * (1 + number % 5))
