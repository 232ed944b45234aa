"""Whatever a path is made of: it has one spelling or none, and leads nowhere but into the store (A15)."""

from __future__ import annotations

import functools
import os
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentkernel_kb import DocumentStore, KnowledgeBackendError, KnowledgePathError, LocalDocumentStore
from agentkernel_kb.testing.stores.samples import ESCAPES, LOOK_ALIKES

SECRET = b"what no path may lead to"

# The pieces of which attacks are made, and of which honest names are.
PIECES = st.sampled_from(
    [
        "..", ".", "/", "//", "\\", "...", "", " ", "a", "a.md", "b", "secret.md", "outside", "link", "C:", "c:", "~", "\0",
        "\n", "%2e", "%2E%2E", "%2f", "%5c", "%00", "..%c0%af", "\uff0e", "\uff0f", "\u2024", "\u2025", "\u2026", "\u2215",
        "\u2044", "\u29f8", "\u200b", "\u202e", "\u00a0", "\u3000", "\ufeff", "\ud800", "\U0001f389", "e\u0301", "\u00e9",
        "CON", "nul.md", "file://", "\\\\?\\", "\\\\server\\share", "x" * 300, "d/" * 40, ".git", "?", "*", ":", "a:stream",
        "-rf",
    ]
)  # fmt: skip
ATTACKS = st.lists(PIECES, max_size=12).map("".join) | st.sampled_from([*ESCAPES, *LOOK_ALIKES]) | st.text(max_size=60)


def spelling(path: str) -> str | None:
    """Return the one spelling of a path, `None` for one that has none."""
    try:
        return DocumentStore.normalise_relative(path)
    except KnowledgePathError:
        return None


@given(ATTACKS)
def test_a15_a_spelling_has_nothing_that_could_lead_out(path: str) -> None:
    normal = spelling(path)
    if normal:
        segments = normal.split("/")
        assert not {"", ".", ".."} & set(segments)
        assert not any(segment.startswith(".") or "\\" in segment for segment in segments)
        assert not any(segment[1:2] == ":" and segment[0].isascii() and segment[0].isalpha() for segment in segments)
        assert not {unicodedata.normalize("NFKC", segment) for segment in segments} & {".", "..", "..."}
        assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in normal)
        assert os.path.normpath(f"/root/{normal}") == f"/root/{normal}"
        assert len(normal.encode()) <= 4_096


@given(ATTACKS)
def test_a_spelling_is_its_own_spelling(path: str) -> None:
    normal = spelling(path)
    assert normal is None or spelling(normal) == normal


@given(ATTACKS, st.sampled_from(["./{}", "{}/", "{}//", ".//./{}/./"]))
def test_what_means_the_same_is_spelled_the_same(path: str, other: str) -> None:
    normal = spelling(path)
    if normal:
        assert spelling(other.format(normal)) == normal
        assert spelling(normal.replace("/", "//")) == spelling(normal.replace("/", "/./")) == normal


@given(
    st.lists(st.text(st.characters(categories=["L", "N", "P", "S", "M"], exclude_characters="/\\:."), min_size=1), min_size=1)
)
def test_an_honest_name_is_kept_as_it_is(segments: list[str]) -> None:
    honest = "/".join(segments)
    if len(honest.encode()) <= 4_096 and all(unicodedata.normalize("NFKC", segment).strip(". ") for segment in segments):
        assert spelling(honest) == honest


@pytest.fixture(scope="module")
def store() -> Iterator[LocalDocumentStore]:
    """A folder with documents, links out of it, and a secret all around it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "outside/root"
        for place in (root / "a", root / "b"):
            place.mkdir(parents=True)
        for file in (root / "a.md", root / "a/a.md", root / "b/e\u0301"):
            file.write_bytes(b"inside")
        for place in (Path(folder), Path(folder) / "outside"):
            (place / "secret.md").write_bytes(SECRET)
            (place / "a.md").write_bytes(SECRET)
        (root / "link").symlink_to("..")
        (root / "b/link").symlink_to(folder)
        (root / "secret.md").symlink_to("../secret.md")
        yield LocalDocumentStore(root)


def around(store: LocalDocumentStore) -> set[str]:
    """Return all names outside of the store, and check that the secrets are as they were."""
    outside = store.root.parent.parent
    names = {str(found.relative_to(outside)) for found in outside.rglob("*") if not found.is_relative_to(store.root)}
    assert all((outside / name).read_bytes() == SECRET for name in names if name.endswith(".md"))
    return names


def answer(operation: functools.partial[object]) -> object:
    """Return what an operation answers, `None` where it refuses or finds nothing; any other failure is one of the test."""
    try:
        return operation()
    except (KnowledgePathError, FileNotFoundError, KnowledgeBackendError):
        return None


@given(path=ATTACKS)
@example(path="link/secret.md")
@example(path="b/link/outside/secret.md")
@example(path="b/link/outside/root/a.md")
@example(path="secret.md")
def test_a15_nothing_outside_is_read_whatever_the_path(store: LocalDocumentStore, path: str) -> None:
    assert answer(functools.partial(store.read_bytes, path)) in (None, b"inside", b"written")
    assert answer(functools.partial(store.read_prefix_bytes, path, 6)) in (None, b"inside", b"written"[:6])
    found = answer(functools.partial(store.stat, path))
    assert found is None or getattr(found, "size", 0) in (6, 7)
    listed = answer(functools.partial(store.list, path)) or []
    assert isinstance(listed, list)
    assert all(answer(functools.partial(store.read_bytes, inner)) in (b"inside", b"written") for inner in listed)


@given(path=ATTACKS | ATTACKS.map(functools.partial(quote, errors="replace")))
@example(path="link/new.md")
@example(path="b/link/new.md")
@example(path="secret.md")
def test_a15_nothing_outside_is_written_whatever_the_path(store: LocalDocumentStore, path: str) -> None:
    before = around(store)
    answer(functools.partial(store.write_bytes, path, b"written"))
    assert around(store) == before
