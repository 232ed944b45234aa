"""The shipped suite tests what it says: wrong backends fail the right tests, and nothing is left out in silence (A21)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from typing import Any
from xml.etree import ElementTree

import pytest

from agentkernel_kb.testing import KnowledgeBaseContract
from agentkernel_kb.testing.gating import GatedSuite, contract_tests, requires

WRONG_BACKENDS = '''
"""Backends with one fault each."""
import time
from agentkernel_kb.errors import KnowledgeCapabilityError
from agentkernel_kb.testing import FakeKnowledgeBase, KnowledgeBaseContract

RECORDS = [
    {"text": "Returns are free for thirty days.", "metadata": {"id": "policies/returns"}},
    {"text": "The guarantee covers parts for two years.", "metadata": {"id": "policies/guarantee"}},
    {"text": "Parts ship on two days a week.", "metadata": {"id": "shipping"}},
]


class Contract(KnowledgeBaseContract):
    declares = {"search", "query", "guard", "fetch", "browse", "write", "ids"}
    search_query, search_expects = "what does the guarantee cover: parts?", "two years"
    read_statement, read_expects = "parts", "guarantee"
    empty_statement, bad_statement = "bicycles", "the customer's"
    write_statements = ["DELETE parts"]
    fetch_ids = ["policies/guarantee", "shipping"]
    browse_path, browse_expects = "policies", "policies/returns"
    new_record = {"text": "Repairs take eleven weekdays.", "metadata": {}}
    backend_class = FakeKnowledgeBase

    def make_backend(self, tmp_path):
        has = self.declares
        return self.backend_class(
            "wrong",
            RECORDS,
            search="search" in has,
            query_language="text" if "query" in has else None,
            refused_words={"delete"} if "guard" in has else None,
            fetch="fetch" in has,
            browse="browse" in has,
            writable="write" in has,
        )


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
        def search(self, query, limit=3, **kwargs):
            self.last = getattr(self, "last", 0) + 1
            mine = self.last
            time.sleep(0.05)
            return super().search(query if mine == self.last else "", limit)


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
    "TestRaisesOnUnknownIds": {"test_fetch_leaves_out_unknown_ids"},
    "TestStoresTwice": {"test_writing_twice_stores_once", "test_add_returns_an_id_per_record", "test_aadd_is_add"},
    "TestGluesIdentity": {"test_ids_tell_text_from_source"},
    "TestClosesOnce": {"test_close_may_be_called_twice"},
    "TestOverridesDeclaration": {"test_added_schema_never_overrides_the_declaration"},
    "TestOtherTwin": {"test_asearch_is_search"},
    "TestNotThreadSafe": {"test_search_from_several_threads"},
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

FULL = frozenset({"search", "query", "guard", "fetch", "browse", "write", "ids"})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], dict[str, set[str]]]:
    """How many tests ran, and which failed, for each class of wrong backends."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_wrong.py").write_text(WRONG_BACKENDS, encoding="utf-8")
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "test_wrong.py"]
    bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # The suite needs pytest and no plugin of it.
    result = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    ran: dict[str, int] = defaultdict(int)
    failed: dict[str, set[str]] = defaultdict(set)
    for case in ElementTree.parse(report).iter("testcase"):
        subject = case.attrib["classname"].rpartition(".")[2]
        assert case.find("skipped") is None
        ran[subject] += 1
        if len(case):
            failed[subject].add(case.attrib["name"].partition("[")[0])
    return dict(ran), dict(failed)


@pytest.mark.parametrize("subject", ALL_FAIL)
def test_a_wrong_backend_fails_the_right_tests(subject: str, outcome: tuple[dict[str, int], dict[str, set[str]]]) -> None:
    assert outcome[1].get(subject, set()) == ALL_FAIL[subject]


def test_what_is_not_declared_is_not_collected(outcome: tuple[dict[str, int], dict[str, set[str]]]) -> None:
    ran = outcome[0]
    assert set(ran) == set(ALL_FAIL)
    assert (ran["TestSound"], ran["TestUncovered"]) == (87, 39)


def subclass(**members: Any) -> type[KnowledgeBaseContract]:
    samples = {name: "given" for names in KnowledgeBaseContract.samples.values() for name in names}
    return type("TestIt", (KnowledgeBaseContract,), {**samples, "declares": FULL, **members})


def test_every_test_of_the_suite_is_reachable() -> None:
    every = subclass()
    assert all(getattr(every, name) is test for name, test in contract_tests(KnowledgeBaseContract))


def test_a_test_that_does_not_apply_is_gone() -> None:
    assert getattr(subclass(declares={"fetch"}), "test_search_finds_what_is_known") is None  # noqa: B009 - it is no attribute


def test_a_subclass_of_a_subclass_has_what_it_declares() -> None:
    narrow = subclass(declares={"fetch"})
    wide = type("TestWide", (narrow,), {"declares": {"search", "fetch"}})
    expected = dict(contract_tests(KnowledgeBaseContract))["test_search_finds_what_is_known"]
    assert vars(wide)["test_search_finds_what_is_known"] is expected


def harmless(self: object) -> None: ...


@pytest.mark.parametrize("replacement", [None, harmless], ids=["nothing", "a function"])
def test_a_contract_test_cannot_be_redefined(replacement: object) -> None:
    with pytest.raises(TypeError, match="TestIt redefines test_close_may_be_called_twice of KnowledgeBaseContract"):
        subclass(test_close_may_be_called_twice=replacement)


def test_a_mixin_cannot_redefine_one_either() -> None:
    mixin = type("Mixin", (), {"test_close_may_be_called_twice": None})
    with pytest.raises(TypeError, match="TestMixed redefines test_close_may_be_called_twice"):
        type("TestMixed", (mixin, subclass()), {})


def test_a_subclass_cannot_redefine_one_that_its_parent_does_not_collect() -> None:
    with pytest.raises(TypeError, match="TestLater redefines test_search_finds_what_is_known"):
        type("TestLater", (subclass(declares={"fetch"}),), {"test_search_finds_what_is_known": None})


def test_a_known_fault_can_be_expected() -> None:
    @pytest.mark.xfail(strict=True, reason="the store closes once")
    def known_fault() -> None: ...

    assert vars(subclass(test_close_may_be_called_twice=known_fault))["test_close_may_be_called_twice"] is known_fault


@pytest.mark.parametrize("marks", [{"strict": True}, {"reason": "r"}, {"strict": False, "reason": "r"}], ids=str)
def test_a_fault_is_expected_strictly_and_with_a_reason(marks: dict[str, Any]) -> None:
    @pytest.mark.xfail(**marks)
    def excused() -> None: ...

    with pytest.raises(TypeError, match="redefines"):
        subclass(test_close_may_be_called_twice=excused)


def test_an_unknown_feature_is_a_mistake() -> None:
    with pytest.raises(TypeError, match=r"TestIt.declares names \['fly'\]; KnowledgeBaseContract knows \['browse', "):
        subclass(declares={"fly"})


def test_missing_samples_are_named() -> None:
    with pytest.raises(
        TypeError, match=r"TestIt declares \['fetch', 'search'\] and has to give \['fetch_ids', 'search_query'\]"
    ):
        subclass(declares={"search", "fetch"}, search_query="", fetch_ids=())


def test_another_suite_can_be_gated_in_the_same_way() -> None:
    class Suite(GatedSuite):
        features = frozenset({"fly"})

        @requires("fly")
        def test_flies(self) -> None: ...

        def test_walks(self) -> None: ...

    class TestPenguin(Suite):
        pass

    assert (getattr(TestPenguin, "test_flies"), TestPenguin.test_walks) == (None, Suite.test_walks)  # noqa: B009 - as above
