"""What every store promises to its readers."""

from __future__ import annotations

from functools import partial

import pytest

from agentkernel_kb.errors import KnowledgeCapabilityError
from agentkernel_kb.store.base import DocumentStat, DocumentStore
from agentkernel_kb.testing.stores.samples import COMPOSED, DECOMPOSED, DOCUMENTS, StoreSamples, at_once, outcome

_SPELLINGS = ("a/inner.md", "./a/inner.md", "a//inner.md", "a/./inner.md", "a/inner.md/", ".//a/././/inner.md")


class ReadingTests(StoreSamples):
    """Tests of reading, listing and what is known without reading."""

    def test_tests_cover_what_the_store_can(self, store: DocumentStore) -> None:
        """What the suite was told to test is what the store can do, so that nothing is left out unseen."""
        can = {"write"} if store.writable else set[str]()
        can |= {"delete"} if store.writable and type(store).delete is not DocumentStore.delete else set[str]()
        assert set(getattr(self, "declares", ())) == can

    def test_documents_are_read_whole(self, store: DocumentStore) -> None:
        """Every document comes back byte for byte, whatever its name."""
        assert {path: store.read_bytes(path) for path in DOCUMENTS} == DOCUMENTS

    def test_all_spellings_of_a_path_are_one_identity(self, store: DocumentStore) -> None:
        """Empty segments, single dots and a separator at the end change nothing."""
        for path in _SPELLINGS:
            assert store.normalise_relative(path) == "a/inner.md"
            assert (store.read_bytes(path), store.exists(path), store.stat(path).path) == (b"inner", True, "a/inner.md")

    def test_either_unicode_form_is_found(self, store: DocumentStore) -> None:
        """Whether an accent is its own character makes no difference to who asks, and none to what is listed."""
        for path in (DECOMPOSED, COMPOSED):
            assert (store.read_bytes(path), store.read_prefix_bytes(path, 3), store.exists(path)) == (b"coffee", b"cof", True)
        assert store.list("forms") == [store.stat(COMPOSED).path] == [store.stat(DECOMPOSED).path]

    def test_what_is_no_document_is_missing(self, store: DocumentStore) -> None:
        """A document that is not there is a `FileNotFoundError`, and so is a folder; it does not exist."""
        for path in ("no-such.md", "no-such/x.md", "a/no-such.md", "a.md/beneath.md", "a", "a/deep", "names"):
            assert outcome(partial(store.read_bytes, path)) is FileNotFoundError, path
            assert outcome(partial(store.read_prefix_bytes, path, 9)) is FileNotFoundError, path
            assert outcome(partial(store.stat, path)) is FileNotFoundError, path
            assert store.exists(path) is False, path

    def test_the_beginning_of_a_document_is_read(self, store: DocumentStore) -> None:
        """As many bytes as asked for, all of a shorter document, nothing of an empty one, and nothing for 0 or less."""
        wanted = [(-1, 0), (0, 0), (1, 1), (300, 300), (2_048, 2_048), (1 << 20, 2_048)]
        whole = DOCUMENTS["binary.bin"]
        assert [store.read_prefix_bytes("binary.bin", most) for most, _ in wanted] == [whole[:length] for _, length in wanted]
        assert [store.read_prefix_bytes("empty.md", most) for most in (0, 1, 9)] == [b"", b"", b""]

    def test_existence_is_told(self, store: DocumentStore) -> None:
        """Every document exists, the empty one included."""
        assert all(store.exists(path) for path in DOCUMENTS)

    def test_all_is_listed_in_the_order_of_whole_paths(self, store: DocumentStore) -> None:
        """`a-b/…` stands before `a/…`, as the texts do, wherever the folders stand."""
        assert store.list() == store.list("") == store.list(".") == store.list("./") == sorted(DOCUMENTS)

    def test_a_prefix_is_a_place_in_the_namespace(self, store: DocumentStore) -> None:
        """What is at or beneath it is listed: `a` is not the prefix of `ab/…`, and a document is its own."""
        for prefix in ("a", "a/", "./a", "a/deep", "a-b", "ab", "names/", "a.md", "a/inner.md", "a/inner.md/"):
            place = prefix.removeprefix("./").rstrip("/")
            expected = sorted(path for path in DOCUMENTS if path == place or path.startswith(f"{place}/"))
            assert store.list(prefix) == [found.path for found in store.scan(prefix)] == expected != [], prefix

    def test_an_unknown_prefix_gives_nothing(self, store: DocumentStore) -> None:
        """A place that is not there is empty, and no error."""
        for prefix in ("no-such", "no-such/deeper", "a/in", "a/inner", "a.m", "A", "a.md/beneath", "name"):
            assert store.list(prefix) == list(store.scan(prefix)) == [], prefix

    def test_a_scan_is_the_list_with_what_is_known(self, store: DocumentStore) -> None:
        """The same documents in the same order, each with its size, its time and its version."""
        found = list(store.scan())
        assert [document.path for document in found] == store.list()
        assert {document.path: document.size for document in found} == {path: len(data) for path, data in DOCUMENTS.items()}
        assert all(document.modified >= 0 and document.version for document in found)

    def test_a_scan_and_a_question_for_one_document_agree_on_versions(self, store: DocumentStore) -> None:
        """A version from a listing is good for a conditional write."""
        assert {found.path: found.version for found in store.scan()} == {path: store.stat(path).version for path in DOCUMENTS}

    def test_what_is_known_of_a_document_stays_while_it_does(self, store: DocumentStore) -> None:
        """Asking again, and reading, gives no new version."""
        before = store.stat("a.md")
        store.read_bytes("a.md")
        assert isinstance(before, DocumentStat)
        assert store.stat("a.md") == before

    def test_many_are_read_in_the_order_asked_for(self, store: DocumentStore) -> None:
        """Each path comes back as it was given, also one that is asked for twice, from any iterable."""
        paths = [*reversed(list(DOCUMENTS)), "./a.md", "a.md", "a.md"]
        assert list(store.read_many(iter(paths))) == [(path, DOCUMENTS[path.removeprefix("./")]) for path in paths]
        assert list(store.read_many([])) == []

    def test_many_are_read_up_to_a_length(self, store: DocumentStore) -> None:
        """With `max_bytes` only the beginning of each comes."""
        paths = list(DOCUMENTS)
        assert list(store.read_many(paths, max_bytes=3)) == [(path, DOCUMENTS[path][:3]) for path in paths]

    def test_one_that_cannot_be_read_does_not_take_the_others_with_it(self, store: DocumentStore) -> None:
        """Its error stands in its place."""
        answers = [answer for _, answer in store.read_many(["a.md", "no-such.md", "../out.md", "a0.md"])]
        kinds = [answer if isinstance(answer, bytes) else type(answer).__name__ for answer in answers]
        assert kinds == [b"# A\n", "FileNotFoundError", "KnowledgePathError", b"zero"]

    def test_reading_many_can_be_given_up(self, store: DocumentStore) -> None:
        """Who takes only the first answers leaves nothing behind that stops a later call."""
        reading = store.read_many(list(DOCUMENTS) * 20)
        assert next(iter(reading))[1] == DOCUMENTS[next(iter(DOCUMENTS))]
        del reading
        assert store.read_bytes("a.md") == b"# A\n"

    def test_threads_read_at_once(self, store: DocumentStore) -> None:
        """Eight threads get what one gets."""
        answers = at_once([lambda: (store.list(), store.read_bytes("binary.bin"), store.stat("a.md"))] * 8)
        assert answers == [(store.list(), DOCUMENTS["binary.bin"], store.stat("a.md"))] * 8

    def test_a_store_that_is_not_writable_says_so(self, store: DocumentStore) -> None:
        """`writable` is a truth value; where it is false, writing and deleting are undeclared operations."""
        assert store.writable is ("write" in getattr(self, "declares", ()))
        if not store.writable:
            with pytest.raises(KnowledgeCapabilityError):
                store.write_bytes("new.md", b"new")
            with pytest.raises(KnowledgeCapabilityError):
                store.delete("a.md")
            assert store.list() == sorted(DOCUMENTS)

    def test_closing_twice_does_nothing(self, store: DocumentStore) -> None:
        """A store may be closed by each who holds it."""
        store.close()
        store.close()
