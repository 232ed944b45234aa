"""Parsers over anything (P3): no bytes and no text make them raise anything but errors of ours."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.rag import AutoLoader, TextBlock, TextParser
from agentkernel_kb.rag.parsers import (
    CodeParser,
    CSVParser,
    HTMLParser,
    JSONLinesParser,
    JSONParser,
    MarkdownParser,
    NotebookParser,
    PlainParser,
    PythonParser,
    RSTParser,
    TextFormatParser,
    XMLParser,
)

PARSERS = [
    TextParser(), PlainParser(), MarkdownParser(), RSTParser(), HTMLParser(), CSVParser(), JSONParser(), JSONLinesParser(),
    NotebookParser(), XMLParser(), PythonParser(), CodeParser(),
]  # fmt: skip
AS_IT_IS = [PlainParser(), MarkdownParser(), RSTParser(), PythonParser(), CodeParser()]

PIECES = st.sampled_from(
    [
        *("<", ">", "</", "<!--", "-->", "<p>", "<table><tr><td>", "</td>", "<div hidden>", "<pre>", "<li>", "<h2>", "&#"),
        *("&amp;", "'"),
        *("#", "# a\n", "```\n", "---\n", "===\n", "\n", "\r\n", "\r", " ", "\t", '"', ",", ";", "|", "a", "é", "\u3042"),
        *("\ud800", "\0"),
        *("{", "}", "[", "]", ":", "1", "null", '"cells"', "\\u00e9", "def a():\n", "class B:\n", " x\n", "@c\n"),
        *("\\", "\f", "\x1c", "\u2028"),
    ]
)  # fmt: skip
MARKED = st.lists(PIECES, max_size=40).map("".join)
names = pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: type(parser).__name__)


@names
@given(text=st.one_of(MARKED, st.text(max_size=200)))
@example(text="\ud83d")
@example(text="a\r\rb")
def test_any_text_is_read_or_refused_with_an_error_of_ours(parser: TextFormatParser, text: str) -> None:
    try:
        found = parser.read(text)
    except KnowledgeError:
        return
    found.text.encode()
    borders = [place for cut in found.cuts for place in (cut.start, cut.end)]
    assert borders == sorted(borders)
    assert all(0 <= place <= len(found.text) for place in borders)
    assert all(found.text[cut.start : cut.end].strip() for cut in found.cuts)
    covered = "".join(found.text[cut.start : cut.end] for cut in found.cuts)
    assert "".join(covered.split()) == "".join(found.text.split())


@names
@given(content=st.one_of(st.binary(max_size=200), MARKED.map(lambda text: text.encode("utf-16", "surrogatepass"))))
def test_any_bytes_are_sections_or_refused_with_an_error_of_ours(parser: TextFormatParser, content: bytes) -> None:
    try:
        sections = asyncio.run(parser.parse(content, "file"))
    except KnowledgeError:
        return
    assert all(isinstance(each.content, TextBlock) and each.text.strip() and each.source == "file" for each in sections)


@pytest.mark.parametrize("parser", AS_IT_IS, ids=lambda parser: type(parser).__name__)
@given(text=MARKED.filter(lambda text: not set(text) & {"\r", "\f", "\ud800"}))
def test_what_is_text_already_stays_as_it_is(parser: TextFormatParser, text: str) -> None:
    assert parser.read(text).text == text


@given(content=st.binary(max_size=500))
def test_any_bytes_are_one_document(content: bytes) -> None:
    (found,) = asyncio.run(AutoLoader().load(content))

    assert found.text == content.decode("utf-8", "replace").removeprefix("\ufeff")
