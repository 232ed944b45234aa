"""What backends promise that declare fetch or browse."""

from __future__ import annotations

from pathlib import Path

from agentkernel_kb.base import KnowledgeBase, overrides
from agentkernel_kb.testing.contract.canaries import canaries
from agentkernel_kb.testing.contract.samples import (
    MANY,
    Samples,
    assert_are_records,
    assert_have_ids,
    assert_same_from_threads,
    ids,
    run,
    texts,
)
from agentkernel_kb.testing.gating import requires


class FetchTests(Samples):
    """Tests of `fetch` and `afetch`."""

    @requires("fetch")
    def test_fetch_keeps_the_order_asked_for(self, backend: KnowledgeBase) -> None:
        """Records come in the order of the ids."""
        wanted = list(self.fetch_ids)
        assert ids(backend.fetch(wanted)) == wanted
        assert ids(backend.fetch(wanted[::-1])) == wanted[::-1]

    @requires("fetch")
    def test_fetch_answers_with_records(self, backend: KnowledgeBase) -> None:
        """What is fetched is a mapping of text and metadata, with an id by which it can be fetched again."""
        records = backend.fetch(list(self.fetch_ids))
        assert_are_records(records)
        assert_have_ids(records)

    @requires("fetch")
    def test_fetch_leaves_out_unknown_ids(self, backend: KnowledgeBase) -> None:
        """An unknown id is no error and does not hold up the known ones."""
        assert list(backend.fetch([self.missing_id])) == []
        assert ids(backend.fetch([self.missing_id, self.fetch_ids[0]])) == [self.fetch_ids[0]]

    @requires("fetch")
    def test_fetch_of_no_ids(self, backend: KnowledgeBase) -> None:
        """Nothing asked for, nothing found."""
        assert list(backend.fetch([])) == []

    @requires("fetch")
    def test_fetch_ignores_unknown_arguments(self, backend: KnowledgeBase) -> None:
        """Keyword arguments that the backend does not know change nothing."""
        assert backend.fetch(list(self.fetch_ids), unknown="x") == backend.fetch(list(self.fetch_ids))

    @requires("fetch")
    def test_afetch_is_fetch(self, backend: KnowledgeBase) -> None:
        """The async twin gives the same answer."""
        assert run(backend.afetch(list(self.fetch_ids))) == backend.fetch(list(self.fetch_ids))

    @requires("fetch")
    def test_fetch_from_several_threads(self, backend: KnowledgeBase) -> None:
        """One instance serves several threads at once."""
        assert_same_from_threads(lambda: texts(backend.fetch(list(self.fetch_ids))))

    @requires("fetch")
    def test_ids_stand_before_the_text(self, backend: KnowledgeBase) -> None:
        """A model reads each record's id where it can copy it from."""
        answer = backend.format_results(backend.fetch(list(self.fetch_ids)))
        assert [name for name in self.fetch_ids if f"- [{name}] " not in answer] == [], answer

    @requires("fetch")
    def test_fetch_stays_in_the_store(self, backend: KnowledgeBase, tmp_path: Path) -> None:
        """An id that reads as a path out of the store is an unknown one, or a `KnowledgePathError`."""
        with canaries(tmp_path, self.fetch_ids) as outside:
            for identity in outside.paths:
                outside.assert_kept(f"fetch([{identity!r}])", lambda wanted=identity: backend.fetch([wanted]))
                if overrides(backend, "afetch"):
                    outside.assert_kept(f"afetch([{identity!r}])", lambda wanted=identity: run(backend.afetch([wanted])))


class BrowseTests(Samples):
    """Tests of `browse` and `abrowse`."""

    @requires("browse")
    def test_browse_shows_what_is_known(self, backend: KnowledgeBase) -> None:
        """The expected record is among those at the path."""
        entries = backend.browse(self.browse_path)
        assert any(self.browse_expects in f"{entry['metadata'].get('id')} {entry['text']}" for entry in entries)

    @requires("browse")
    def test_browse_answers_with_records(self, backend: KnowledgeBase) -> None:
        """What is browsed is a mapping of text and metadata."""
        assert_are_records(backend.browse(self.browse_path))

    @requires("browse")
    def test_browse_begins_at_the_root(self, backend: KnowledgeBase) -> None:
        """A call without a path is one at the root, and a root has something in it."""
        assert backend.browse() == backend.browse("", limit=50)
        assert list(backend.browse())

    @requires("browse")
    def test_browse_limit_cuts_the_end(self, backend: KnowledgeBase) -> None:
        """A smaller limit gives the first of the same entries."""
        entries = backend.browse(self.browse_path, limit=MANY)
        assert backend.browse(self.browse_path, limit=1) == entries[:1]

    @requires("browse")
    def test_browse_where_nothing_is(self, backend: KnowledgeBase) -> None:
        """An unknown path is no error."""
        assert list(backend.browse(self.missing_path)) == []

    @requires("browse")
    def test_browse_ignores_unknown_arguments(self, backend: KnowledgeBase) -> None:
        """Keyword arguments that the backend does not know change nothing."""
        assert backend.browse(self.browse_path, unknown="x") == backend.browse(self.browse_path)

    @requires("browse")
    def test_abrowse_is_browse(self, backend: KnowledgeBase) -> None:
        """The async twin gives the same answer."""
        assert run(backend.abrowse(self.browse_path)) == backend.browse(self.browse_path)

    @requires("browse")
    def test_browse_from_several_threads(self, backend: KnowledgeBase) -> None:
        """One instance serves several threads at once."""
        assert_same_from_threads(lambda: texts(backend.browse(self.browse_path)))

    @requires("browse", "fetch")
    def test_entries_can_be_fetched(self, backend: KnowledgeBase) -> None:
        """Each id that browsing shows can be fed straight back into `fetch`; what can't be fetched, as a folder, has none."""
        entries = [entry for entry in backend.browse(self.browse_path) if entry["metadata"].get("id") is not None]
        assert_have_ids(entries)
        assert ids(backend.fetch([name for name in ids(entries) if name])) == ids(entries)

    @requires("browse")
    def test_browse_stays_in_the_store(self, backend: KnowledgeBase, tmp_path: Path) -> None:
        """A path out of the store is an unknown one, or a `KnowledgePathError`."""
        with canaries(tmp_path, self.fetch_ids) as outside:
            for path in outside.paths:
                outside.assert_kept(f"browse({path!r})", lambda wanted=path: backend.browse(wanted))
                if overrides(backend, "abrowse"):
                    outside.assert_kept(f"abrowse({path!r})", lambda wanted=path: run(backend.abrowse(wanted)))
