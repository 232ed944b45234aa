"""What a backend that declares a query language promises, and what one promises that proves its statements."""

from __future__ import annotations

import pytest

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.errors import KnowledgeError, KnowledgeGuardError, KnowledgeQueryError
from agentkernel_kb.testing.contract.samples import MANY, Samples, assert_are_records, assert_same_from_threads, run, texts
from agentkernel_kb.testing.gating import requires


class QueryTests(Samples):
    """Tests of `query`, `aquery` and `check_read`."""

    @requires("query")
    def test_query_selects_what_is_known(self, backend: KnowledgeBase) -> None:
        """The first record is the expected one."""
        assert self.read_expects in backend.query(self.read_statement)[0]["text"]

    @requires("query")
    def test_query_answers_with_records(self, backend: KnowledgeBase) -> None:
        """A row is a mapping of text and metadata."""
        assert_are_records(backend.query(self.read_statement, limit=MANY))

    @requires("query")
    def test_query_limit_holds_where_the_statement_has_none(self, backend: KnowledgeBase) -> None:
        """A smaller limit gives the first of the same rows."""
        rows = texts(backend.query(self.read_statement, limit=MANY))
        assert len(rows) >= 2
        for limit in (1, 2):
            assert texts(backend.query(self.read_statement, limit=limit)) == rows[:limit]

    @requires("query")
    def test_query_limit_is_three_by_default(self, backend: KnowledgeBase) -> None:
        """A call without a limit gives what a limit of three gives."""
        assert backend.query(self.read_statement) == backend.query(self.read_statement, limit=3)

    @requires("query")
    def test_query_that_selects_nothing(self, backend: KnowledgeBase) -> None:
        """Nothing found is no error."""
        assert list(backend.query(self.empty_statement)) == []

    @requires("query")
    def test_query_with_an_error_in_it(self, backend: KnowledgeBase) -> None:
        """A bad statement is an error of the kind that its writer can mend, and says something."""
        with pytest.raises((KnowledgeQueryError, KnowledgeGuardError)) as caught:
            backend.query(self.bad_statement)
        assert str(caught.value).strip()

    @requires("query")
    @pytest.mark.parametrize("blank", ["", "  \n"])
    def test_blank_query(self, backend: KnowledgeBase, blank: str) -> None:
        """No statement is refused or selects nothing."""
        try:
            rows = backend.query(blank)
        except KnowledgeError:
            return
        assert list(rows) == []

    @requires("query")
    def test_query_ignores_unknown_arguments(self, backend: KnowledgeBase) -> None:
        """Keyword arguments that the backend does not know change nothing."""
        assert backend.query(self.read_statement, limit=1, unknown="x") == backend.query(self.read_statement, limit=1)

    @requires("query")
    def test_aquery_is_query(self, backend: KnowledgeBase) -> None:
        """The async twin gives the same answer."""
        assert run(backend.aquery(self.read_statement, limit=2)) == backend.query(self.read_statement, limit=2)

    @requires("query")
    def test_query_from_several_threads(self, backend: KnowledgeBase) -> None:
        """One instance serves several threads at once."""
        assert_same_from_threads(lambda: texts(backend.query(self.read_statement)))

    @requires("query", "guard")
    def test_guard_accepts_a_read(self, backend: KnowledgeBase) -> None:
        """An honest read is not refused."""
        backend.check_read(self.read_statement)
        backend.check_read(self.read_statement, allow=("some_function",))

    @requires("query", "guard")
    def test_guard_refuses_writes(self, backend: KnowledgeBase) -> None:
        """What is not provably a read is refused, with a reason."""
        for statement in self.write_statements:
            with pytest.raises(KnowledgeGuardError) as caught:
                backend.check_read(statement)
            assert str(caught.value).strip()

    @requires("query", "guard")
    def test_query_itself_is_guarded(self, backend: KnowledgeBase) -> None:
        """A direct call of `query` or its twin is refused as well, and changes nothing."""
        before = texts(backend.query(self.read_statement, limit=MANY))
        for statement in self.write_statements:
            with pytest.raises(KnowledgeGuardError):
                backend.query(statement)
            with pytest.raises(KnowledgeGuardError):
                run(backend.aquery(statement))
        assert texts(backend.query(self.read_statement, limit=MANY)) == before
