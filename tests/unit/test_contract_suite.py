"""The shipped suite tests what it says: wrong backends fail the right tests, and nothing is left out in silence (A21)."""

from __future__ import annotations

import pytest
from wrong_backends import Outcome, outcome_of

WRONG_BACKENDS = '''
class TestSound(Contract):
    pass


class TestUncovered(Contract):
    declares = {"search"}

    def make_backend(self, tmp_path):
        return FakeKnowledgeBase("two", RECORDS, fetch=True)


class TestIgnoresLimit(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, **kwargs):
            return super().search(query, 1_000)


class TestWorstFirst(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, **kwargs):
            return super().search(query, 1_000)[::-1][:limit]


class TestAnswersBlank(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, **kwargs):
            return super().search(query.strip() or "parts", limit)


class TestAnswersUndeclared(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def fetch(self, ids, **kwargs):
            return []


class TestUnguardedQuery(Contract):
    declares = {"guard", "query"}

    class backend_class(FakeKnowledgeBase):
        def query(self, statement, limit=3, **kwargs):
            return self._containing(statement)[:limit]


class TestForgesLines(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def format_results(self, rows):
            found = [f"- [{(row.get('metadata') or {}).get('id')}] {row.get('text')}" for row in rows]
            return "\\n".join(found) or "No relevant knowledge found."


class TestShufflesIds(Contract):
    declares = {"fetch"}

    class backend_class(FakeKnowledgeBase):
        def fetch(self, ids, **kwargs):
            return super().fetch(sorted(ids))


class TestRaisesOnUnknownIds(Contract):
    declares = {"fetch"}

    class backend_class(FakeKnowledgeBase):
        def fetch(self, ids, **kwargs):
            return [self._records[name] for name in ids]


class TestStoresTwice(Contract):
    declares = {"ids", "search", "write"}

    class backend_class(FakeKnowledgeBase):
        def add(self, records, **kwargs):
            count = len(self._records)
            given = [{**record, "metadata": {"id": f"{count}-{index}"}} for index, record in enumerate(records)]
            return super().add(given)


class TestGluesIdentity(Contract):
    declares = {"ids", "search", "write"}

    class backend_class(FakeKnowledgeBase):
        def add(self, records, **kwargs):
            return super().add({**one, "metadata": {"id": f"{one['text']}{one['metadata'].get('source')}"}} for one in records)


class TestClosesOnce(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def close(self):
            self.on = None if callable(self.on) else self.on()


class TestPingsWithoutAnAnswer(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def ping(self, *, timeout=None):
            return None


class TestActsForSomebody(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs, version="1", requires_identity=True)

        def search(self, query, limit=3, **kwargs):
            required_identity(self.backend_name)
            return super().search(query, limit, **kwargs)


class TestOverridesDeclaration(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def schema(self):
            return {**super().schema(), **self._dynamic_schema}


class TestOtherTwin(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, **kwargs):
            return []


class TestNotThreadSafe(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        numbers, pairs = itertools.count(), threading.Barrier(2)

        def search(self, query, limit=3, **kwargs):
            self.last = mine = next(self.numbers)
            if threading.current_thread().name.startswith("Thread-"):
                self.pairs.wait(timeout=60)  # Two searches at a time, one of which has overwritten what the other keeps.
            return super().search(query if mine == self.last else "", limit)


class TestThreadBound(Contract):
    declares = {"search"}

    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, **kwargs):
            if threading.current_thread() is not threading.main_thread():
                raise RuntimeError("made in another thread")
            return super().search(query, limit)


class Folder(KnowledgeBase):
    """A folder of notes that is served as far as a path leads."""
    backend_name = "folder"

    def __init__(self, root):
        self.root = root
        super().__init__(KnowledgeCapabilities(fetch=True, browse=True))
        self.add_schema({"holds": "notes"})

    def connect(self, **kwargs):
        pass

    def get_description(self):
        return "folder: notes"

    def fetch(self, ids, **kwargs):
        return [self.note(place) for place in map(self.place, ids) if place.is_file()]

    def browse(self, path="", limit=50, **kwargs):
        place = self.place(path)
        return [self.note(file) for file in sorted(place.glob("*.json"))[:limit]]

    def note(self, place):
        return {"text": place.read_text(), "metadata": {"id": place.name}}

    def place(self, path):
        return self.root / path


class TestServesTheDisk(Contract):
    declares = {"fetch", "browse"}
    fetch_ids = ["lamp.json", "desk.json"]
    browse_path, browse_expects = "", "lamp.json"
    backend_class = Folder

    def make_backend(self, tmp_path):
        root = tmp_path / "notes"
        root.mkdir()
        for name in self.fetch_ids:
            (root / name).write_text("A note.")
        return self.backend_class(root)


class TestServesWhatBeginsAlike(TestServesTheDisk):
    class backend_class(Folder):
        def place(self, path):
            place = (self.root / path).resolve()
            return place if str(place).startswith(str(self.root)) else self.root / "nothing"

    def make_backend(self, tmp_path):
        for name in self.fetch_ids:
            (tmp_path / name).write_text("A note.")
        return self.backend_class(tmp_path)


class TestServesItsFolder(TestServesTheDisk):
    class backend_class(Folder):
        def place(self, path):
            place = (self.root / path).resolve()
            return place if place.is_relative_to(self.root.resolve()) else self.root / "nothing"


class TestRefusesOtherFolders(TestServesTheDisk):
    class backend_class(Folder):
        def place(self, path):
            place = (self.root / path).resolve()
            if not place.is_relative_to(self.root.resolve()):
                raise KnowledgePathError(f"{path!r} leaves the folder.")
            return place


class TestCommas(Contract):
    declares = {"search", "fetch", "browse"}

    class backend_class(FakeKnowledgeBase):
        def held(self):
            return [self.comma(record) for record in super().held()]

        def fetch(self, ids, **kwargs):
            return [self.comma(record) for record in super().fetch([name.replace(",", "/") for name in ids])]

        def browse(self, path="", limit=50, **kwargs):
            return [self.comma(record) for record in super().browse(path, limit)]

        def comma(self, record):
            return {**record, "metadata": {**record["metadata"], "id": record["metadata"]["id"].replace("/", ",")}}


class TestMakesNothing(Contract):
    declares = {"search"}

    def make_backend(self, tmp_path):
        pass


class TestForgetsToStore(Contract):
    declares = {"fetch", "ids", "search", "write"}

    class backend_class(FakeKnowledgeBase):
        def add(self, records, **kwargs):
            return [self._identify(record) for record in records]

        def _identify(self, record):
            return str(hash((record["text"], record["metadata"].get("source"))))
'''

ALL_FAIL: dict[str, set[str]] = {
    "TestSound": set(),
    "TestUncovered": {"test_tests_cover_the_declaration"},
    "TestIgnoresLimit": {"test_search_limit_cuts_the_end"},
    "TestWorstFirst": {"test_search_finds_what_is_known", "test_search_scores_fall"},
    "TestAnswersBlank": {"test_blank_search_finds_nothing"},
    "TestAnswersUndeclared": {
        "test_declaration_is_what_is_implemented",
        "test_undeclared_operations_are_refused",
        "test_undeclared_operations_are_refused_without_blocking_too",
    },
    "TestUnguardedQuery": {"test_query_itself_is_guarded"},
    "TestForgesLines": {
        "test_records_cannot_be_forged",
        "test_rendered_text_holds_no_control_characters",
        "test_long_vectors_are_not_rendered",
    },
    "TestShufflesIds": {"test_fetch_keeps_the_order_asked_for"},
    "TestRaisesOnUnknownIds": {"test_fetch_leaves_out_unknown_ids", "test_fetch_stays_in_the_store"},
    "TestStoresTwice": {"test_writing_twice_stores_once", "test_add_returns_an_id_per_record", "test_aadd_is_add"},
    "TestGluesIdentity": {"test_ids_tell_text_from_source"},
    "TestClosesOnce": {"test_close_may_be_called_twice"},
    "TestPingsWithoutAnAnswer": {"test_ping_answers_with_one_line", "test_ping_says_that_it_is_closed"},
    "TestActsForSomebody": set(),
    "TestOverridesDeclaration": {"test_added_schema_never_overrides_the_declaration"},
    "TestOtherTwin": {"test_asearch_is_search"},
    "TestNotThreadSafe": {"test_search_from_several_threads"},
    "TestThreadBound": {
        "test_search_from_several_threads",
        "test_asearch_is_search",
        "test_search_kb_answers",
        "test_read_kb_answers",
    },
    "TestServesTheDisk": {"test_fetch_stays_in_the_store", "test_browse_stays_in_the_store"},
    "TestServesWhatBeginsAlike": {"test_fetch_stays_in_the_store", "test_browse_stays_in_the_store"},
    "TestServesItsFolder": set(),
    "TestRefusesOtherFolders": set(),
    "TestCommas": {
        "test_browse_kb_answers",
        "test_browse_shows_what_is_known",
        "test_entries_can_be_fetched",
        "test_fetch_answers_with_records",
        "test_fetch_keeps_the_order_asked_for",
        "test_fetch_kb_answers",
        "test_fetch_leaves_out_unknown_ids",
        "test_hits_can_be_fetched",
        "test_ids_stand_before_the_text",
    },
    "TestForgetsToStore": {
        "test_what_is_written_is_found",
        "test_writing_twice_stores_once",
        "test_write_takes_any_iterable",
        "test_write_ignores_unknown_arguments",
        "test_awrite_is_write",
        "test_add_stores",
        "test_what_is_added_can_be_fetched",
        "test_write_kb_stores",
    },
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return outcome_of(WRONG_BACKENDS, tmp_path_factory.mktemp("suite"))


@pytest.mark.parametrize("subject", ALL_FAIL)
def test_a_wrong_backend_fails_the_right_tests(subject: str, outcome: Outcome) -> None:
    assert set(outcome.failed.get(subject, {})) == ALL_FAIL[subject]


def test_what_is_not_declared_is_not_collected(outcome: Outcome) -> None:
    assert set(outcome.ran) == {*ALL_FAIL, "TestMakesNothing"}
    assert (outcome.ran["TestSound"], outcome.ran["TestUncovered"]) == (93, 43)


@pytest.mark.parametrize("test", ["test_hits_can_be_fetched", "test_entries_can_be_fetched", "test_fetch_answers_with_records"])
def test_an_id_with_a_comma_is_named(test: str, outcome: Outcome) -> None:
    assert "id 'policies,guarantee' contains a comma, by which fetch_kb separates ids" in outcome.failed["TestCommas"][test]


@pytest.mark.parametrize("operation", ["fetch", "browse"])
def test_what_is_given_away_is_named_with_the_path_to_it(operation: str, outcome: Outcome) -> None:
    said = outcome.failed["TestServesTheDisk"][f"test_{operation}_stays_in_the_store"]
    assert {"fetch": "fetch(['../canary-7d0f'])", "browse": "browse('../')"}[operation] in said
    assert "leads out of the store and answers with [{'text': " in said
    assert "in place of [] or a KnowledgePathError" in said


def test_a_backend_that_is_not_made_is_one_clear_error_each_time(outcome: Outcome) -> None:
    said = outcome.failed["TestMakesNothing"]
    assert set(said) > {"test_close_may_be_called_twice", "test_search_finds_what_is_known", "test_read_kb_answers"}
    assert set(said.values()) == {"TestMakesNothing.make_backend returned None; it has to return a KnowledgeBase."}
