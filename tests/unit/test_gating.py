"""A suite's subclass is checked when it is made: what it declares, what it gives, and that it changes no test (A21)."""

from __future__ import annotations

from typing import Any

import pytest

from agentkernel_kb.testing import KnowledgeBaseContract, Samples
from agentkernel_kb.testing.gating import GatedSuite, contract_tests, requires

FULL = frozenset({"search", "query", "guard", "fetch", "browse", "write", "ids", "filters"})


def make_backend(self: object, tmp_path: object) -> None: ...


def subclass(**members: Any) -> type[KnowledgeBaseContract]:
    samples: dict[str, object] = {name: "given" for names in KnowledgeBaseContract.samples.values() for name in names}
    samples |= {"fetch_ids": ["a", "b"], "write_statements": ["given"], "new_record": {"text": "given", "metadata": {}}}
    samples["make_backend"] = make_backend
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


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"fetch_ids": "lamp.json"}, r"TestIt: fetch_ids has to be a list of at least two ids, not 'lamp.json'\."),
        ({"fetch_ids": {"a": 1, "b": 2}}, r"fetch_ids has to be a list of at least two ids, not \{'a': 1, 'b': 2\}\."),
        ({"fetch_ids": ["lamp.json"]}, "fetch_ids has to list at least two ids, so that their order can be tested"),
        ({"fetch_ids": ["a", "a"]}, "fetch_ids has to list at least two ids"),
        ({"fetch_ids": ["a,b", "c"]}, r"fetch_ids: id 'a,b' contains a comma, by which fetch_kb separates ids\."),
        ({"fetch_ids": ["a", " b"]}, r"fetch_ids: id ' b' cannot be asked for: an id is one short line"),
        ({"fetch_ids": ["a", None]}, r"fetch_ids: id None is no text\."),
        ({"fetch_ids": ["a", 7]}, r"fetch_ids: id 7 is no text\."),
        ({"write_statements": "DELETE"}, "write_statements has to be a list of statements, not the text 'DELETE'"),
        ({"new_record": "Repairs"}, r'new_record has to be \{"text": one short line, "metadata": .*\}, not \'Repairs\''),
        ({"new_record": {"text": " "}}, "new_record has to be"),
        ({"new_record": {"text": "a\nb"}}, "new_record has to be"),
        ({"declares": {"write"}}, "find_written searches, and search is not declared: override it"),
    ],
)
def test_a_sample_of_the_wrong_kind_is_named(members: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        subclass(**members)


def test_every_fault_of_the_samples_is_named_at_once() -> None:
    with pytest.raises(
        TypeError, match=r"fetch_ids has to be(.|\n)*write_statements|write_statements(.|\n)*fetch_ids has to be"
    ):
        subclass(fetch_ids="lamp.json", write_statements="DELETE")


def test_samples_of_what_is_not_declared_are_not_looked_at() -> None:
    assert issubclass(subclass(declares={"search"}, fetch_ids="lamp.json", new_record="x"), KnowledgeBaseContract)


@pytest.mark.parametrize(("word", "meant"), [("writable", "write"), ("add", "ids"), ("check_read", "guard")])
def test_a_word_of_the_contract_leads_to_the_word_of_the_suite(word: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"'{word}' is called '{meant}' here"):
        subclass(declares={word})


def test_a_missing_method_is_named_where_pytest_would_run_nothing() -> None:
    with pytest.raises(TypeError, match=r"TestNotes is missing make_backend\(self, tmp_path: .*Path.*\)"):
        type("TestNotes", (KnowledgeBaseContract,), {})


def test_a_base_for_other_classes_may_lack_it() -> None:
    base = type("NotesContract", (KnowledgeBaseContract,), {})
    kept = type("TestKept", (KnowledgeBaseContract,), {"__test__": False})
    assert all(issubclass(type("TestNotes", (one,), {"make_backend": make_backend}), one) for one in (base, kept))


def test_samples_are_found_where_the_suite_is() -> None:
    assert issubclass(KnowledgeBaseContract, Samples)
    assert {name for names in KnowledgeBaseContract.samples.values() for name in names} <= set(Samples.__annotations__)


def test_another_suite_can_be_gated_in_the_same_way() -> None:
    class Suite(GatedSuite):
        features = frozenset({"fly"})

        @requires("fly")
        def test_flies(self) -> None: ...

        def test_walks(self) -> None: ...

    class TestPenguin(Suite):
        pass

    assert (getattr(TestPenguin, "test_flies"), TestPenguin.test_walks) == (None, Suite.test_walks)  # noqa: B009 - as above
