"""Frontmatter taken apart and read: the author's text, within bounds, with the line of every fault (A16)."""

from __future__ import annotations

import pytest

from agentkernel_kb.okf.frontmatter import FrontmatterError, read_head, split
from agentkernel_kb.okf.model import DiagnosticCode
from agentkernel_kb.okf.parser import Parsed, parse_document


def parsed(head: str, body: str = "Body.\n") -> Parsed:
    return parse_document("a.md", f"---\n{head}\n---\n{body}".encode())


def codes(document: Parsed) -> list[DiagnosticCode]:
    return [diagnostic.code for diagnostic in document.diagnostics]


@pytest.mark.parametrize(
    ("text", "head", "body"),
    [
        ("---\ntype: A\n---\nx", "type: A\n", "x"),
        ("---\r\ntype: A\r\n---\r\nx\r\n", "type: A\r\n", "x\r\n"),
        ("\ufeff---\ntype: A\n---\nx", "type: A\n", "x"),
        ("--- \t\ntype: A\n---  \nx", "type: A\n", "x"),
        ("---\ntype: A\n  ---\nx", "type: A\n", "x"),
        ("---\nd: |\n  ---\n  a\n---\nx", "d: |\n  ---\n  a\n", "x"),
        ("---\n---\nx", "", "x"),
        ("---\ntype: A\n---", "type: A\n", ""),
        ("---\ntype: A\n---\n---\nx", "type: A\n", "---\nx"),
        ("---\ntype: A\n---\n\nx\n---\ny", "type: A\n", "\nx\n---\ny"),
        ("---\ntype: A\n----\n---\nx", "type: A\n----\n", "x"),
    ],
    ids=[
        "plain",
        "crlf",
        "bom",
        "blanks",
        "indented",
        "in-a-scalar",
        "empty",
        "no-end",
        "twice",
        "rule-in-body",
        "four-dashes",
    ],
)
def test_a16_a_document_is_taken_apart_and_loses_nothing(text: str, head: str, body: str):
    parts = split(text)

    assert parts is not None
    assert (parts.head, parts.body) == (head, body)
    assert parts.opening + parts.head + parts.closing + parts.body == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "\n---\ntype: A\n---\n",
        "--- yaml\ntype: A\n---\n",
        "----\ntype: A\n---\n",
        "+++\ntype: A\n+++\n",
        "---\ntype: A\n...\n",
    ],
    ids=["empty", "text", "blank-line-first", "language", "four-dashes", "toml", "dots-close"],
)
def test_a16_what_is_not_between_two_lines_of_dashes_is_no_frontmatter(text: str):
    assert split(text) is None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("0.2", "0.2"),
        ("012", "012"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-06-30T14:00:00Z", "2026-06-30T14:00:00Z"),
        ("2026-13-45", "2026-13-45"),
        (".inf", ".inf"),
        ("0x1F", "0x1F"),
        ("'null'", "null"),
        ("!!binary aGk=", "aGk="),
        ("!!python/name:os.system", ""),
        ("9" * 5_000, "9" * 5_000),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_a16_a_value_is_the_authors_text(value: str, read: str | None):
    assert read_head(f"key: {value}\n").values == {"key": read}


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("type: A\ntitle: a: b", 3),
        ("type: A\ntags: [a, b", 4),
        ("type: A\n\ttitle: x", 3),
        ("- type: A", 2),
        ("just text", 2),
        ("type: A\n? [a, b]\n: c", 3),
        ("type: A\nb: *nobody", 3),
        ("type: A\nx: " + "[" * 5_000, 3),
        ("type: A\nx: " + "{a: " * 5_000, 3),
        ("- " * 30_000, 2),
        ("a: &a [*a]", 2),
    ],
    ids=[
        *("colon", "bracket", "tab", "list", "text", "key", "alias", "deep-brackets", "deep-braces", "deep-dashes", "cycle"),
    ],
)
def test_a16_what_cannot_be_read_is_a_diagnostic_with_its_line(head: str, line: int):
    document = parsed(head)

    assert document.concept is None
    assert codes(document) == [DiagnosticCode.UNPARSEABLE_FRONTMATTER]
    assert document.diagnostics[0].line == line
    assert str(document.diagnostics[0]).startswith(f"a.md:{line}: Skipped: ")


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\ufffe"])
def test_a16_characters_that_yaml_forbids_are_a_diagnostic(character: str):
    assert codes(parsed(f"type: A{character}")) == [DiagnosticCode.UNPARSEABLE_FRONTMATTER]


def test_a16_aliases_that_explode_are_refused_and_small_ones_taken():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert codes(parsed(f"{bomb}type: A")) == [DiagnosticCode.UNPARSEABLE_FRONTMATTER]
    assert read_head("a: &a {by: x}\nb: *a\nc: {<<: *a, at: y}\n").values == {
        "a": {"by": "x"},
        "b": {"by": "x"},
        "c": {"at": "y", "by": "x"},
    }


def test_a16_a_key_that_stands_there_twice_is_a_diagnostic_and_the_later_one_counts():
    document = parsed("type: A\ntitle: one\ntitle: two")

    assert document.concept is not None
    assert document.concept.title == "two"
    assert [(diagnostic.code, diagnostic.line) for diagnostic in document.diagnostics] == [(DiagnosticCode.DUPLICATE_KEY, 4)]


def test_a16_a_frontmatter_is_bounded():
    with pytest.raises(FrontmatterError, match="more than 131,072 characters"):
        read_head(f"type: A\nx: {'y' * 140_000}\n")


def test_a16_brackets_in_a_text_are_not_nesting():
    assert read_head("x: 'a [b] {c} " + "[d] " * 200 + "'\n").values["x"].count("[") == 201
