"""Files of any name and content in a bundle: each with an outcome of its own, and none takes the others down (A16)."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from okf_bundles import CountingStore, concept, ids, opened, write

from agentkernel_kb import KnowledgePathError
from agentkernel_kb.errors import KnowledgeBackendError


@pytest.mark.parametrize(
    "name",
    [
        "a b.md",
        "a,b.md",
        "100%.md",
        "a%2Cb.md",
        "a[b.md",
        "知識.md",
        "🙂.md",
        "con.md",
        "a'b.md",
        "a;b&c.md",
        "-x.md",
        f"{'y' * 250}.md",
        "A.MD",
    ],
)
def test_a16_a_document_of_any_name_is_searched_browsed_and_fetched(tmp_path: Path, name: str):
    backend = opened(tmp_path / "x", {f"sub dir/{name}": concept("Found", "peculiar")})
    for (record,) in (backend.search("peculiar"), backend.browse("sub dir"), backend.fetch(ids(backend.search("peculiar")))):
        assert record["metadata"]["source"] == f"sub dir/{name}"
    assert "," not in record["metadata"]["id"]
    backend.close()


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_a16_a_document_is_reached_in_every_unicode_form(tmp_path: Path, stored: Any, asked: Any):
    backend = opened(tmp_path / "x", {unicodedata.normalize(stored, "é/café.md"): concept("C")})
    assert len(backend.fetch([unicodedata.normalize(asked, "é/café.md")])) == 1
    backend.close()


def test_a16_two_names_that_differ_only_in_their_form_are_two_documents(tmp_path: Path):
    names = [unicodedata.normalize(form, "café.md") for form in ("NFC", "NFD")]
    backend = opened(tmp_path / "x", {name: concept(name) for name in names})
    assert [record["metadata"]["source"] for record in backend.fetch(names)] == names
    backend.close()


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_a16_a_folder_is_browsed_and_filtered_by_in_every_unicode_form(tmp_path: Path, stored: Any, asked: Any):
    folder = "caf\u00e9/\u00fc"
    document = unicodedata.normalize(stored, f"{folder}/a.md")
    backend = opened(tmp_path / "x", {document: concept("A", "words"), "other/b.md": concept("B", "words")})
    named = unicodedata.normalize(asked, folder)
    assert [record["metadata"]["source"] for record in backend.browse(named)] == [document]
    for query in (f"path:{named}", f"words path:{named}/", f"words path:*{named.rpartition('/')[2]}*"):
        assert [record["metadata"]["source"] for record in backend.search(query)] == [document]
    backend.close()


@pytest.mark.parametrize("name", ["100%41", "a, b", "p%2Cq", "p,q", "[x]", "%25", "a%20b", "a b", "x.md"])
def test_a16_a_folder_is_browsed_by_the_name_that_is_shown(tmp_path: Path, name: str):
    others = {f"{other}/c.md": concept("O") for other in ("p%2Cq", "p,q", "a%20b", "a b")}
    backend = opened(tmp_path / "x", {**others, f"{name}/c.md": concept("C")})
    shown = [record["text"] for record in backend.browse() if record["metadata"]["source"] == f"{name}/"]
    assert [record["metadata"]["source"] for record in backend.browse(*shown)] == [f"{name}/c.md"]
    backend.close()


def test_a16_devices_pipes_hidden_files_and_other_endings_are_passed_over(tmp_path: Path):
    folder = write(
        tmp_path / "x",
        {"a.md": concept("A"), "b.txt": "x", "c.mdx": "x", ".hidden.md": concept("H"), ".git/x.md": concept("G")},
    )
    os.mkfifo(folder / "pipe.md")
    (folder / "folder.md").mkdir()
    (folder / "loop").symlink_to(folder)
    backend = opened(folder)
    assert backend.bundle.concept_count == 1
    backend.close()


def test_a16_links_of_the_file_system_that_leave_the_bundle_are_passed_over_and_refused(tmp_path: Path):
    write(tmp_path, {"secret.md": concept("Secret", "hidden treasure")})
    folder = write(tmp_path / "x", {"a.md": concept("A")})
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    backend = opened(folder)
    assert list(backend.search("treasure")) == []
    for identity in ("out.md", "up/secret.md"):
        try:
            assert list(backend.fetch([identity])) == []
        except KnowledgePathError:
            continue
    backend.close()


def test_a16_a_file_that_was_swapped_for_a_link_after_it_was_indexed_is_not_followed(tmp_path: Path):
    write(tmp_path, {"secret.md": concept("Secret", "hidden treasure")})
    backend = opened(tmp_path / "x", {"a.md": concept("A")}, refresh_seconds=None)
    (tmp_path / "x" / "a.md").unlink()
    (tmp_path / "x" / "a.md").symlink_to(tmp_path / "secret.md")
    with suppress(KnowledgePathError, KnowledgeBackendError):
        assert not any("treasure" in record["text"] for record in backend.fetch(["a.md"]))
    backend.close()


def test_a16_a_file_that_may_not_be_read_is_a_diagnostic_and_is_read_once_it_may(tmp_path: Path):
    write(tmp_path / "x", {"a.md": concept("A"), "b.md": concept("B")})
    store = CountingStore(tmp_path / "x")
    store.unreadable = {"b.md"}
    backend = opened(tmp_path / "x", store=store)
    assert backend.bundle.concept_count == 1
    assert backend.get_diagnostics() == ["b.md: It can't be read: PermissionError."]
    store.unreadable = set()
    assert (backend.reload().concept_count, backend.get_diagnostics()) == (2, [])
    backend.close()


class LockedFolder(CountingStore):
    """A folder in which one can't be entered, once it is locked: rights mean nothing to a test that runs as root."""

    locked = False

    def scan(self, prefix: str = "", **options: Any) -> Iterator[Any]:
        for found in super().scan(prefix, **options):
            if not (self.locked and found.path.startswith("locked/")):
                yield found
        if self.locked:
            options["on_skip"]("locked", "Permission denied")


def test_a16_a_folder_that_cannot_be_entered_is_a_diagnostic_and_what_was_known_of_it_stays(tmp_path: Path):
    store = LockedFolder(write(tmp_path / "x", {"a.md": concept("A"), "locked/b.md": concept("B", "words")}))
    backend = opened(tmp_path / "x", store=store, refresh_seconds=None)
    store.locked = True
    assert backend.reload().concept_count == 2
    assert backend.get_diagnostics() == ["locked: It is passed over: Permission denied."]
    assert ids(backend.search("words")) == ["locked/b.md"]
    store.locked = False
    assert (backend.reload().concept_count, backend.get_diagnostics()) == (2, [])
    backend.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 1_000,
        b"\xff\xfe" + "---\ntype: A\n---\n".encode("utf-16-le"),
        b"---\n" * 10_000,
        b"---\ntype: A\n",
        b"---\ntype: " + b"9" * 5_000 + b"\n---\n",
        b"---\ntype: A\nstale_after: 2024-13-45\n---\n",
        b"---\ntype: A\nx: " + b"[" * 60_000 + b"\n---\n",
        b"---\ntype: A\n---\n" + b"word " * 1_000_000,
        b"---\ntype: A\n---\n" + b"[" * 200_000,
        b"---\r\ntype: A\r\n---\r\nx\r\n",
        b"---\rtype: A\r---\rx\r",
    ],
    ids=[
        "empty",
        "nul",
        "utf-16",
        "dashes",
        "unclosed",
        "digits",
        "date",
        "brackets",
        "5-mb",
        "brackets-in-body",
        "crlf",
        "cr",
    ],
)
def test_a16_one_bad_document_takes_nothing_down(tmp_path: Path, content: bytes):
    backend = opened(tmp_path / "x", {"bad.md": content, "good.md": concept("Good", "fine words")})
    assert ids(backend.search("fine")) == ["good.md"]
    assert ids(backend.fetch(["bad.md", "good.md"]))[-1] == "good.md"
    json.dumps(backend.schema())
    backend.close()


def test_a16_a_large_document_is_bounded_and_says_so(tmp_path: Path):
    backend = opened(tmp_path / "x", {"big.md": concept("Big", "word " * 1_200_000 + "needle")})
    (record,) = backend.fetch(["big.md"])
    assert record["metadata"]["truncated"] is True
    assert len(record["text"]) <= 4 << 20
    assert "more than 4 MiB" in backend.get_diagnostics()[0]
    backend.close()
