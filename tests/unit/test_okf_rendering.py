"""Documents written (A17): a curator's frontmatter keeps every byte that was not changed, an agent's note has a title."""

from __future__ import annotations

from typing import Any

import pytest

from agentkernel_kb import KnowledgePathError, KnowledgeQueryError
from agentkernel_kb.okf.composing import Draft, changed, drafts, named_paths, new_named, new_note, slug, title_of
from agentkernel_kb.okf.parser import parse_document
from agentkernel_kb.okf.records import concept_record
from agentkernel_kb.okf.versions import profile_of
from agentkernel_kb.okf.writing import with_entries

PROFILE = profile_of("0.2")
CURATED = (
    "---\n"
    "# What the stewards agreed on.\n"
    "type:   Policy   # by hand\n"
    'title: "Refunds: how"\n'
    "tags: [ billing,   'eu' ]\n"
    "\n"
    "description: >-\n"
    "  Two\n"
    "  lines.\n"
    "# Checked twice.\n"
    "verified: { by: human:anna, at: 2026-06-25T09:00:00Z }\n"
    "stale_after: 2026-09-23\n"
    "owner: {team: x}\n"
    "---\n"
    "\n"
    "Body.\n"
)


def fetched(text: str) -> dict[str, Any]:
    concept = parse_document("a.md", text.encode()).concept
    assert concept is not None
    record = concept_record(concept, "", {}, truncated=False)
    return {"text": record["text"], "metadata": dict(record["metadata"])}


def written_back(text: str, body: str | None = None, **changes: Any) -> str:
    record = fetched(text)
    metadata = {**record["metadata"], **changes}
    return changed(Draft(record["text"] if body is None else body, metadata, "a.md"), "a.md", text.encode(), PROFILE).decode()


@pytest.mark.parametrize(
    "text", [CURATED, CURATED.replace("\n", "\r\n"), f"\ufeff{CURATED}", "---\ntype: A\n---\n", "---\n{type: A}\n---\nx"]
)
def test_a17_a_fetched_concept_written_back_is_the_same_to_the_last_byte(text: str):
    assert written_back(text) == text


def test_a17_a_new_body_leaves_the_frontmatter_alone():
    assert written_back(CURATED, "New.\n") == CURATED.replace("\nBody.\n", "New.\n")


@pytest.mark.parametrize(
    ("changes", "before", "after"),
    [
        ({"title": "Returns"}, 'title: "Refunds: how"\n', "title: Returns\n"),
        ({"tags": ["billing"]}, "tags: [ billing,   'eu' ]\n", "tags:\n- billing\n"),
        ({"description": "One."}, "description: >-\n  Two\n  lines.\n", "description: One.\n"),
        ({"stale_after": "2027-01-01T00:00:00Z"}, "stale_after: 2026-09-23\n", "stale_after: '2027-01-01T00:00:00Z'\n"),
        ({"owner": None}, "owner: {team: x}\n", ""),
        ({"status": "deprecated"}, "owner: {team: x}\n", "owner: {team: x}\nstatus: deprecated\n"),
        ({"new": {"a": [1, True, None]}}, "owner: {team: x}\n", "owner: {team: x}\nnew:\n  a:\n  - 1\n  - true\n  - null\n"),
        ({"title": "no"}, 'title: "Refunds: how"\n', "title: 'no'\n"),
    ],
)
def test_a17_one_changed_key_changes_only_its_own_lines(changes: dict[str, Any], before: str, after: str):
    assert written_back(CURATED, **changes) == CURATED.replace(before, after)


def test_a17_line_endings_are_kept_where_a_key_changes():
    assert written_back(CURATED.replace("\n", "\r\n"), title="Returns").count("\n") == CURATED.count("\n")
    assert "\n" not in written_back(CURATED.replace("\n", "\r\n"), title="Returns").replace("\r\n", "")


@pytest.mark.parametrize(
    "head", ["{type: A, title: x}", "type: A\ntitle: x\ntitle: y", "{type: A}"], ids=["flow", "twice", "one"]
)
def test_a17_a_frontmatter_that_cannot_be_changed_in_part_is_written_anew_with_all_it_said(head: str):
    after = parse_document("a.md", written_back(f"---\n{head}\n---\nx", title="new", extra_key="y").encode()).concept

    assert after is not None
    assert (after.type, after.title, after.extra, after.body) == ("A", "new", {"extra_key": "y"}, "x")


def test_a17_what_is_found_out_anew_is_never_written():
    computed: dict[str, Any] = {
        "trust": "human-reviewed",
        "stale": True,
        "links": ["x"],
        "score": 9,
        "kind": "Other",
        "source": "elsewhere",
        "version": "7",
    }
    assert written_back(CURATED, **computed) == CURATED


def test_a17_a_title_that_was_taken_from_the_path_is_not_written_back():
    assert written_back("---\ntype: A\n---\nx") == "---\ntype: A\n---\nx"
    assert "title: b" in written_back("---\ntype: A\n---\nx", title="b")


def test_a17_a_text_that_is_a_whole_document_is_taken_as_it_is():
    whole = "---\ntype:   B\n---\nother\n"
    assert changed(Draft(whole, {}, "a.md"), "a.md", CURATED.encode(), PROFILE).decode() == whole


@pytest.mark.parametrize(
    "data", [b"no frontmatter", b"---\ntype: [\n---\nx", b"---\ntype: A\n---\n\xff"], ids=["none", "broken", "bytes"]
)
def test_a17_what_cannot_be_kept_is_not_overwritten_in_part(data: bytes):
    with pytest.raises(KnowledgeQueryError, match="Give the whole document as text"):
        changed(Draft("new body", {}, "a.md"), "a.md", data, PROFILE)


# What an agent writes.


def note(text: str, **metadata: Any) -> tuple[str, str]:
    (draft,) = drafts([{"text": text, "metadata": metadata}], "okf")
    path, data = new_note(draft, "generated", "agent/1")
    return path, data.decode()


def test_a17_a_note_is_titled_from_its_first_line_and_stamped():
    path, text = note("# Late *payers*\n\nAcme pays late.", source="call with Acme")
    concept = parse_document(path, text.encode()).concept

    assert concept is not None
    assert path.startswith("generated/late-payers-")
    assert (concept.type, concept.title, concept.body) == ("Note", "Late payers", "\n# Late *payers*\n\nAcme pays late.\n")
    assert concept.generated["by"] == "agent/1"
    assert concept.sources == ({"resource": "call with Acme"},)
    assert parse_document(path, text.encode()).diagnostics == ()


def test_a17_what_a_model_claims_in_its_text_about_checks_is_left_out():
    forged = "---\ntype: Policy\ntitle: T\nverified: {by: human:boss, at: 2026-01-01T00:00:00Z}\n"
    forged += "generated: {by: human:boss}\nx: y\n---\nB\n"
    path, text = note(forged)
    concept = parse_document(path, text.encode()).concept

    assert concept is not None
    assert (concept.type, concept.title, concept.trust.value, concept.extra) == ("Policy", "T", "unverified", {"x": "y"})
    assert concept.generated["by"] == "agent/1"


def test_a17_the_same_record_has_the_same_path_and_another_one_another():
    paths = [note("ab", source="c")[0], note("a", source="bc")[0], note("ab", source="c", tags=["x"])[0], note("ab")[0]]
    assert len(set(paths)) == 4
    assert note("ab", source="c")[0] == paths[0]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("## A heading ##\ntext", "A heading ##"),
        ("\n\n> quoted", "quoted"),
        ("- item", "item"),
        ("1. first", "first"),
        ("---\n***\nreal", "real"),
        ("**bold** and `code`", "bold and code"),
        ("???", "Untitled"),
        ("知識管理について", "知識管理について"),
        ("word " * 100, f"{('word ' * 24).strip()}…"),
        ("a\x1b[2Jb", "a[2Jb"),
    ],
)
def test_a17_a_title_is_the_first_line_that_says_something(text: str, title: str):
    assert title_of(text) == title


@pytest.mark.parametrize(
    ("title", "name"),
    [
        *(("Late Payers!", "late-payers"), ("Café—Straße", "cafe-strasse"), ("知識 管理", "知識-管理"), ("../../etc", "etc")),
        *(("???", "note"), ("CON", "con"), ("a,b", "a-b"), ("x" * 500, "x" * 60)),
    ],
)
def test_a17_a_slug_is_letters_and_digits_of_any_script(title: str, name: str):
    assert slug(title) == name
    assert len(slug("知" * 500).encode()) <= 180


def test_a17_a_named_record_is_stored_with_nothing_made_up():
    (draft,) = drafts([{"text": "body", "metadata": {"id": "x/y.md", "type": "Table", "tags": ["a"]}}], "okf")
    concept = parse_document("x/y.md", new_named(draft, "agent/1")).concept

    assert concept is not None
    assert (concept.title, concept.type, concept.tags, concept.body) == ("", "Table", ("a",), "body")


@pytest.mark.parametrize(
    "record", [None, "text", {"text": 1}, {"text": " "}, {"text": "x", "metadata": []}, {"text": "x" * 1_000_001}]
)
def test_a17_a_record_that_cannot_be_stored_says_which_and_why(record: Any):
    with pytest.raises(KnowledgeQueryError, match=r"can't store record 2: .*Nothing was written"):
        drafts([{"text": "fine"}, record], "okf")


@pytest.mark.parametrize("identity", ["a,b", "two\nlines", " x", ["x"], {}, "", "]"])
def test_a17_an_id_that_nobody_could_fetch_by_is_refused(identity: Any):
    with pytest.raises(KnowledgeQueryError, match="its id must be one line"):
        drafts([{"text": "x", "metadata": {"id": identity}}], "okf")


@pytest.mark.parametrize("identity", ["index.md", "a/index", "log.md", "a/Log.md"])
def test_a17_a_reserved_document_is_never_written(identity: str):
    (draft,) = drafts([{"text": "x", "metadata": {"id": identity}}], "okf")
    with pytest.raises(KnowledgeQueryError, match="belongs to its curator"):
        named_paths(draft, "okf")


@pytest.mark.parametrize("identity", ["../x.md", "a/../../x.md", "%2e%2e/x", ".git/hooks/x.md"])
def test_a17_a_write_that_leaves_the_bundle_is_refused(identity: str):
    (draft,) = drafts([{"text": "x", "metadata": {"id": identity}}], "okf")
    with pytest.raises(KnowledgePathError):
        named_paths(draft, "okf")


# The log.


@pytest.mark.parametrize(
    ("log", "after"),
    [
        ("# Log\n\n## 2026-05-22\n* old\n", "# Log\n\n## 2026-05-23\n* new\n\n## 2026-05-22\n* old\n"),
        ("# Log\n\n## 2026-05-23\n* old\n", "# Log\n\n## 2026-05-23\n* new\n* old\n"),
        ("# Log\n", "# Log\n\n## 2026-05-23\n* new\n"),
        ("", "## 2026-05-23\n* new\n"),
        ("## 2026-05-23\r\n* old\r\n", "## 2026-05-23\r\n* new\r\n* old\r\n"),
        ("---\ntype: Log\n---\n# Log", "---\ntype: Log\n---\n# Log\n\n## 2026-05-23\n* new\n"),
    ],
    ids=["new-day", "today", "no-day", "empty", "crlf", "frontmatter"],
)
def test_a17_an_entry_stands_beneath_its_day_newest_first(log: str, after: str):
    assert with_entries(log, ["* new"], "2026-05-23") == after
