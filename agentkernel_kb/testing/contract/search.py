"""What a backend that declares search promises."""

from __future__ import annotations

import pytest

from agentkernel_kb.base import KnowledgeBase
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


class SearchTests(Samples):
    """Tests of `search` and `asearch`."""

    @requires("search")
    def test_search_finds_what_is_known(self, backend: KnowledgeBase) -> None:
        """The best hit is the expected one."""
        assert self.search_expects in backend.search(self.search_query)[0]["text"]

    @requires("search")
    def test_search_answers_with_records(self, backend: KnowledgeBase) -> None:
        """A hit is a mapping of text and metadata."""
        assert_are_records(backend.search(self.search_query, limit=MANY))

    @requires("search")
    def test_search_limit_cuts_the_end(self, backend: KnowledgeBase) -> None:
        """A smaller limit gives the first of the same hits."""
        hits = backend.search(self.search_query, limit=MANY)
        for limit in (1, 2):
            assert backend.search(self.search_query, limit=limit) == hits[:limit]

    @requires("search")
    def test_search_limit_is_three_by_default(self, backend: KnowledgeBase) -> None:
        """A call without a limit gives what a limit of three gives."""
        assert backend.search(self.search_query) == backend.search(self.search_query, limit=3)

    @requires("search")
    def test_search_scores_fall(self, backend: KnowledgeBase) -> None:
        """Where hits carry a score, the best stands first."""
        scores = [
            hit["metadata"]["score"] for hit in backend.search(self.search_query, limit=MANY) if "score" in hit["metadata"]
        ]
        assert scores == sorted(scores, reverse=True)

    @requires("search")
    def test_search_is_deterministic(self, backend: KnowledgeBase) -> None:
        """The same question has the same answer."""
        assert backend.search(self.search_query, limit=MANY) == backend.search(self.search_query, limit=MANY)

    @requires("search")
    @pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
    def test_blank_search_finds_nothing(self, backend: KnowledgeBase, blank: str) -> None:
        """No question, no answer, and no error."""
        assert list(backend.search(blank)) == []

    @requires("search")
    @pytest.mark.parametrize(
        "text", ["'; --", '"(*) AND OR NOT', "<b>%s{0}</b>", "naïve 知識 🙂", "word " * 2_000], ids=range(5)
    )
    def test_search_takes_any_text(self, backend: KnowledgeBase, text: str) -> None:
        """Text is never read as syntax: odd text finds something or nothing."""
        assert_are_records(backend.search(text))

    @requires("search")
    def test_search_ignores_unknown_arguments(self, backend: KnowledgeBase) -> None:
        """Keyword arguments that the backend does not know change nothing."""
        assert backend.search(self.search_query, limit=1, unknown="x") == backend.search(self.search_query, limit=1)

    @requires("search")
    def test_asearch_is_search(self, backend: KnowledgeBase) -> None:
        """The async twin gives the same answer."""
        assert run(backend.asearch(self.search_query, limit=2)) == backend.search(self.search_query, limit=2)

    @requires("search")
    def test_search_from_several_threads(self, backend: KnowledgeBase) -> None:
        """One instance serves several threads at once."""
        assert_same_from_threads(lambda: texts(backend.search(self.search_query)))

    @requires("search", "fetch")
    def test_hits_can_be_fetched(self, backend: KnowledgeBase) -> None:
        """The ids of hits can be fed straight back into `fetch`."""
        hits = backend.search(self.search_query)
        assert_have_ids(hits)
        found = ids(hits)
        assert ids(backend.fetch([name for name in found if name])) == found
