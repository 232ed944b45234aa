"""The paths by which the shipped suite tries to leave a store (A15, A21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkernel_kb import KnowledgePathError, Record
from agentkernel_kb.testing.contract.canaries import canaries

ODD_IDS = ("lamps/desk.json", ".", "..", "/", "Mr. Smith", "a." + "x" * 300, "https://shop.example/?id=1.5", "知識.ogg")


@pytest.mark.parametrize("below", ["", "notes", "notes/of/ours"], ids=["the folder itself", "one below", "three below"])
def test_a15_a_store_anywhere_below_the_folder_has_a_canary_within_reach(tmp_path: Path, below: str) -> None:
    store = tmp_path / below
    store.mkdir(parents=True, exist_ok=True)
    with canaries(tmp_path, ["desk.json"]) as outside:
        reached = {(store / path).resolve() for path in outside.paths if (store / path).is_file()}
    assert reached
    assert not any(place.is_relative_to(store) for place in reached)


def test_a15_the_canaries_have_the_suffixes_of_ids_and_of_files(tmp_path: Path) -> None:
    (tmp_path / "note.rst").touch()
    with canaries(tmp_path, ODD_IDS) as outside:
        suffixes = {Path(path).suffix for path in outside.paths}
    assert {"", ".json", ".ogg", ".rst"} <= suffixes
    assert not any(" " in suffix or len(suffix) > 100 for suffix in suffixes)


def test_a15_nothing_of_them_is_left(tmp_path: Path) -> None:
    (tmp_path / "note.rst").write_text("A note.", encoding="utf-8")
    before = sorted(tmp_path.parent.rglob("*"))
    with canaries(tmp_path, ODD_IDS):
        assert sorted(tmp_path.parent.rglob("*")) != before
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_a15_nothing_and_a_path_error_are_what_a_backend_may_answer(tmp_path: Path) -> None:
    def refuse() -> list[Record]:
        raise KnowledgePathError("It leaves the store.")

    with canaries(tmp_path, ()) as outside:
        outside.assert_kept("fetch", list)
        outside.assert_kept("fetch", refuse)
        with pytest.raises(AssertionError, match=r"fetch leads out of the store and answers with \[\{'text': 'secret'\}\]"):
            outside.assert_kept("fetch", lambda: [{"text": "secret"}])


def test_a15_any_other_error_goes_on(tmp_path: Path) -> None:
    def fail() -> list[Record]:
        raise IsADirectoryError

    with canaries(tmp_path, ()) as outside, pytest.raises(IsADirectoryError):
        outside.assert_kept("fetch", fail)
