"""Ids and paths: every document has one id, every id leads to it, none leads out (A16)."""

from __future__ import annotations

import unicodedata

import pytest

from agentkernel_kb import KnowledgePathError
from agentkernel_kb.okf.paths import id_of, is_document, paths_named, places_named, reserved_kind
from agentkernel_kb.render import usable_id

ODD_PATHS = [
    "a.md",
    "a b/c d.md",
    "a,b.md",
    "a%2Cb.md",
    "100%.md",
    "50%25.md",
    "a[1.md",
    "a]b.md",
    "[a](b).md",
    "ünïcode/知識.md",
    "e\u0301.md",
    "🙂.md",
    "a#b?c.md",
    "con.md",
    "a'b\"c.md",
    "-.md",
    "a.b.md.md",
    f"{'x' * 200}.md",
]


@pytest.mark.parametrize("path", ODD_PATHS)
def test_a16_every_path_has_an_id_that_a_model_can_name_and_that_leads_back(path: str):
    identity = id_of(path)

    assert usable_id({"id": identity}) == identity
    assert next(iter(paths_named(identity))) == path
    assert path in list(paths_named(f"/{identity}"))
    assert path in list(paths_named(identity.removesuffix(".md")))


def test_a16_no_two_paths_have_one_id():
    assert len({id_of(path) for path in ODD_PATHS}) == len(ODD_PATHS)


def test_a16_a_path_can_be_named_in_any_unicode_form():
    composed, decomposed = (unicodedata.normalize(form, "café.md") for form in ("NFC", "NFD"))

    assert {composed, decomposed} <= set(paths_named(composed))
    assert {composed, decomposed} <= set(paths_named(decomposed))


@pytest.mark.parametrize(
    "identity",
    [
        "../a.md",
        "a/../../b.md",
        "%2e%2e/a.md",
        "//etc/x",
        "a\\..\\b.md",
        "C:/x.md",
        "a\x00.md",
        ".git/x.md",
        "．．/a.md",
        "%2Fetc/x.md",
    ],
)
def test_a16_an_id_that_leaves_the_bundle_is_refused(identity: str):
    with pytest.raises(KnowledgePathError):
        list(paths_named(identity))


@pytest.mark.parametrize("path", ["../", "/../x", "a/../..", "%2e%2e", "~/../..", ".."])
def test_a16_a_folder_that_leaves_the_bundle_is_refused(path: str):
    with pytest.raises(KnowledgePathError):
        places_named(path)


@pytest.mark.parametrize(("path", "folder"), [("", ""), ("/", ""), (".", ""), ("./a/", "a"), ("/a//b/", "a/b"), (" a ", "a")])
def test_a16_a_folder_may_be_spelled_in_many_ways(path: str, folder: str):
    assert places_named(path) == [folder]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        *(("index.md", "index"), ("a/b/index.md", "index"), ("Index.md", "index"), ("INDEX.MD", "index")),
        *(("log.md", "log"), ("a/LOG.md", "log"), ("my-log.md", ""), ("index.md/x.md", ""), ("indexes.md", "")),
    ],
)
def test_a16_index_and_log_are_reserved_at_every_level(path: str, kind: str):
    assert reserved_kind(path) == kind


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("a.md", True),
        ("a.MD", True),
        ("a/.md", False),
        (".md", False),
        ("a.mdx", False),
        ("a.markdown", False),
        ("a.md/b", False),
    ],
)
def test_a16_documents_end_in_md(path: str, is_one: bool):
    assert is_document(path) is is_one
