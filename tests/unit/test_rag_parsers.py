"""Parsers (S1, S8, P3): files of text as sections, by their structure."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.rag import ParserBase, Section, TextBlock, TextParser
from agentkernel_kb.rag.parsers import (
    CodeParser,
    CSVParser,
    JSONLinesParser,
    JSONParser,
    MarkdownParser,
    NotebookParser,
    ParserRegistry,
    PlainParser,
    PythonParser,
    RSTParser,
    XMLParser,
    parser_for,
    register,
)


def parse(parser: ParserBase, file: bytes | str, filename: str = "file") -> list[Section]:
    return asyncio.run(parser.parse(file, filename))


def text_of(parser: ParserBase, file: bytes | str) -> str:
    return "\n".join(section.text for section in parse(parser, file))


# Seed 003's TextParser.


def test_text_parser_declares_the_media_types_of_the_seed() -> None:
    assert TextParser.supported_media_types == [
        "text/plain", "text/markdown", "text/csv", "text/html", "text/x-rst", "application/json", "application/xml",
        "application/x-yaml",
    ]  # fmt: skip


def test_supported_extensions_are_suffixes_with_their_dots() -> None:
    assert {".md", ".txt", ".csv", ".html", ".rst", ".json", ".xml", ".yaml"} <= set(TextParser.supported_extensions())


def test_bytes_are_one_section() -> None:
    sections = parse(TextParser(), b"# Cats\nCats sleep 12-16 hours per day.\n", "cats.md")

    assert sections == [Section(TextBlock("# Cats\nCats sleep 12-16 hours per day.\n"), "cats.md")]


def test_a_path_is_read_and_any_other_string_is_the_text(tmp_path: Path) -> None:
    path = tmp_path / "cats.md"
    path.write_text("# Cats")

    assert [each.text for each in parse(TextParser(), str(path), "cats.md")] == ["# Cats"]
    assert [each.text for each in parse(TextParser(), "./no-such-cats.md", "cats.md")] == ["./no-such-cats.md"]


def test_the_encoding_is_the_one_that_is_configured(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("naïve".encode("utf-16"))

    assert text_of(TextParser(encoding="utf-16"), str(path)) == "naïve"
    assert text_of(TextParser(encoding="latin-1"), b"\xe9") == "é"
    assert text_of(TextParser(), b"\xe9") == "\ufffd"


@pytest.mark.parametrize("encoding", ["no-such", "hex", "zlib", ""])
def test_an_encoding_that_is_none_is_refused_at_construction(encoding: str) -> None:
    with pytest.raises(AKConfigError, match="no encoding of text"):
        TextParser(encoding=encoding)


# Registry.


def test_the_registry_finds_a_parser_by_media_type() -> None:
    found = {
        name: type(parser_for(name)) for name in ("text/markdown; charset=utf-8", "Application/JSON", "application/ld+json")
    }

    assert list(found.values()) == [MarkdownParser, JSONParser, JSONParser]
    assert type(parser_for("application/vnd.api+json")) is JSONParser
    assert type(parser_for("image/svg+xml")) is XMLParser
    assert type(parser_for("text/x-anything")) is PlainParser
    assert parser_for("application/pdf") is None


def test_a_parser_registers_for_its_media_types_and_suffixes() -> None:
    registry = ParserRegistry(behind=ParserRegistry([MarkdownParser()]))
    registry.register(Slides())

    assert type(registry.parser_for("application/x-slides")) is Slides
    assert registry.media_type_of("Deck.SLIDES") == "application/x-slides"
    assert registry.media_type_of("a.md") == "text/markdown"
    assert registry.media_type_of("a.bin") is None


@pytest.mark.parametrize("given", [None, "markdown", MarkdownParser])
def test_what_is_no_parser_is_not_registered(given: object) -> None:
    with pytest.raises(AKConfigError, match="ParserBase"):
        register(given)  # pyright: ignore[reportArgumentType] - the point of the test


class Slides(ParserBase):
    supported_media_types: ClassVar[list[str]] = ["application/x-slides"]

    @classmethod
    def supported_extensions(cls) -> list[str]:
        return [".slides"]

    async def parse(self, file: bytes | str, filename: str) -> list[Section]:
        return []


# Markdown and reStructuredText.

MARKDOWN = """Before.

# Guide
Intro.
## Install
Run it.
```
# no heading
```
## Use
Call it.
"""


def test_markdown_is_cut_at_headings_with_the_path_that_leads_there() -> None:
    sections = parse(MarkdownParser(), MARKDOWN, "guide.md")

    assert [each.metadata.get("headings") for each in sections] == [None, ["Guide"], ["Guide", "Install"], ["Guide", "Use"]]
    assert "".join(each.text for each in sections) == MARKDOWN
    assert {(each.source, each.metadata["title"]) for each in sections} == {("guide.md", "Guide")}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Refunds\nauthor: x\n---\n# Other\n", "Refunds"), ('---\ntitle: "Quoted: yes"\n---\nx', "Quoted: yes"),
        ("---\ntitle: |\n  block\n---\n# H\n", "H"), ("---\ntitle: *alias\n---\n# H\n", "H"), ("# A\n\nx\n\n# B\n", "A"),
        ("Title\n=====\n\ntext", "Title"), ("no heading", None), ("---\ntitle: never ends\n", None),
        ("---\r\ntitle: Windows\r\n---\r\ntext\r\n", "Windows"),
    ],
)  # fmt: skip
def test_the_title_is_that_of_the_front_matter_or_the_first_heading(text: str, title: str | None) -> None:
    reading = MarkdownParser().read(text)

    assert reading.metadata.get("title") == title
    assert reading.text == text.replace("\r\n", "\n")


def test_front_matter_says_nothing_but_a_title() -> None:
    assert MarkdownParser().read("---\ntitle: A\ntenant_id: other\n---\nx").metadata == {"title": "A"}


def test_rst_is_cut_at_titles_whose_marks_nest_in_order_of_use() -> None:
    text = "=====\nGuide\n=====\n\nIntro.\n\nInstall\n-------\n\nRun.\n\n"
    text += "Use\n---\n\n====  ====\na     b\n====  ====\n\nDeep\n~~~~\n\nx\n"
    sections = parse(RSTParser(), text)

    assert [each.metadata["headings"] for each in sections] == [
        ["Guide"], ["Guide", "Install"], ["Guide", "Use"], ["Guide", "Use", "Deep"],
    ]  # fmt: skip
    assert "".join(each.text for each in sections) == text


# Tables.


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_rows_name_their_columns(delimiter: str) -> None:
    text = "name,age,city\nAnn,30,Oslo\nBo,,Rome\n".replace(",", delimiter)

    assert text_of(CSVParser(), text) == "name: Ann; age: 30; city: Oslo\nname: Bo; city: Rome"


def test_a_quoted_field_may_hold_delimiters_quotes_and_lines() -> None:
    assert text_of(CSVParser(), 'a,b\n"x, ""y""\nz",2\n') == 'a: x, "y" z; b: 2'


def test_rows_that_are_longer_or_shorter_than_the_first_lose_nothing() -> None:
    assert text_of(CSVParser(), "a,b\n1\n1,2,3\n") == "a: 1\na: 1; b: 2; 3"


@pytest.mark.parametrize("text", ["only,names", "one line of prose", 'a,b\n"never ends' + "x" * 200_000])
def test_what_is_no_table_stays_as_it_is(text: str) -> None:
    assert text_of(CSVParser(), text) == text


def test_long_names_of_columns_do_not_make_a_small_table_a_large_text() -> None:
    text = f"{'n' * 100_000},b\n" + "1,2\n" * 100_000

    assert len(text_of(CSVParser(), text)) <= 5 * len(text)


# JSON, JSON lines, notebooks, YAML, XML.


def test_json_is_indented_and_escapes_are_characters() -> None:
    assert text_of(JSONParser(), '{"a":{"b":[1,2]},"c":"\\u00e9"}') == '{\n  "a": {\n    "b": [1, 2]\n  },\n  "c": "é"\n}'


@pytest.mark.parametrize("kept", ["1" * 5000, "NaN", "-Infinity", "1e999", "0.10", "1E5"])
def test_numbers_stay_as_they_are_written(kept: str) -> None:
    assert text_of(JSONParser(), f'{{"a": {kept}}}') == f'{{\n  "a": {kept}\n}}'


def test_repeated_keys_are_all_kept() -> None:
    assert text_of(JSONParser(), '{"a": 1, "a": 2}') == '{\n  "a": 1,\n  "a": 2\n}'


@pytest.mark.parametrize("text", ["{broken", "[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000, "[" * 60 + "1" + "]" * 60])
def test_json_that_is_broken_or_too_deep_stays_as_it_is(text: str) -> None:
    assert text_of(JSONParser(), text) == text


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    assert text_of(JSONParser(), '"\\ud800"') == '"\ufffd"'


def test_json_lines_are_sections_with_the_number_of_their_line() -> None:
    sections = parse(JSONLinesParser(), '{"a": 1}\n\n{"b": "\\u00e9"}\nbroken \\u\n')

    assert [(each.metadata["line"], each.text) for each in sections] == [(1, '{"a": 1}'), (3, '{"b": "é"}'), (4, "broken \\u")]


def test_a_notebook_is_the_sources_of_its_cells() -> None:
    text = """{"nbformat": 4, "cells": [
        {"cell_type": "markdown", "source": ["# Model\\n", "We fit it."]},
        {"cell_type": "code", "source": "fit(x)  # ```", "outputs": [{"text": "SECRET OUTPUT"}]},
        {"cell_type": "code", "source": []}, 7]}"""
    reading = NotebookParser().read(text)

    assert reading.text == "# Model\nWe fit it.\n\n````\nfit(x)  # ```\n````"
    assert (reading.metadata, reading.media_type) == ({"title": "Model"}, "text/markdown")


@pytest.mark.parametrize("text", ["[]", "{}", "broken", '{"cells": 3}', '{"worksheets": [3]}', '{"worksheets": []}'])
def test_what_is_no_notebook_is_read_as_json(text: str) -> None:
    assert NotebookParser().read(text) == JSONParser().read(text)


def test_yaml_is_text_and_no_alias_is_resolved() -> None:
    bomb = "a: &a [x,x]\n" + "".join(
        f"{new}: &{new} [*{old},*{old}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )

    assert text_of(PlainParser(), bomb) == bomb


def test_xml_is_a_line_for_each_element_that_says_something() -> None:
    text = '<?xml version="1.0" encoding="Shift_JIS"?><c:shop>'
    text += '<item id="7"><name>Tea &amp; é</name><p>Very <b>hot</b> drink</p></item></c:shop>'

    assert text_of(XMLParser(), text.replace("c:", "")) == "item id=7:\nname: Tea & é\np: Very hot drink"


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&f;</x>',
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1/x.dtd">%p;]><x/>',
    ],
)
def test_xml_that_declares_entities_is_refused(text: str) -> None:
    with pytest.raises(KnowledgeBackendError, match="entities"):
        parse(XMLParser(), text)


def test_defaults_of_a_dtd_do_not_make_a_small_file_a_large_one() -> None:
    text = f'<!DOCTYPE x [<!ATTLIST y z CDATA "{"v" * 1000}">]><x>{"<y/>" * 1000}</x>'

    assert len(text_of(XMLParser(), text)) < len(text)


@pytest.mark.parametrize(
    "text", ["<a><b></a>", "<a>&undefined;</a>", "no xml", "<a>\ud800</a>", "<a>\0</a>", "<a " + "x" * 10_000]
)
def test_xml_that_is_broken_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(KnowledgeBackendError, match="XML"):
        parse(XMLParser(), text)


# Source code.

PYTHON = '''"""About."""

import re

LIMIT = 3


# Finds things.
@cached
def find(x):
    return """
def no_definition():
"""


class Index:
    def search(self):
        return re.compile("\\\\d \\q")


if __name__ == "__main__":
    find(1)
'''


def test_python_is_cut_at_its_definitions_with_their_lines() -> None:
    sections = parse(PythonParser(), PYTHON, "index.py")
    lines = PYTHON.split("\n")

    assert [each.metadata.get("symbol") for each in sections] == [None, "find", "Index", None]
    assert "".join(each.text for each in sections) == PYTHON
    for each in sections:
        start, end = each.metadata["line_start"], each.metadata["line_end"]
        assert "\n".join(lines[start - 1 : end]).strip() == each.text.strip()


def test_methods_of_a_long_class_are_sections() -> None:
    methods = "".join(f"    def m{n}(self):\n        return {'x' * 500!r}\n\n" for n in range(5))
    sections = parse(PythonParser(), f"class Long:\n    kind = 1\n\n{methods}")

    assert [each.metadata["symbol"] for each in sections] == ["Long", *(f"Long.m{n}" for n in range(5))]


@pytest.mark.parametrize(
    "text", ["def broken(:\n  pass\n", "print 'two'\n", "\0", "(" * 10_000, "-" * 100_000 + "1", "a" + ".b" * 50_000]
)
def test_python_that_cannot_be_parsed_is_cut_as_other_code_is(text: str) -> None:
    assert PythonParser().read(text) == CodeParser().read(text)


def test_other_code_is_cut_between_blocks_at_the_margin() -> None:
    function = "// Adds.\nfunc {}(a int) int {{\n\n\treturn a + {}\n\n}}\n\n"
    text = "".join(function.format(f"add{n}", "1" * 250) for n in range(3))
    sections = parse(CodeParser(), text, "add.go")

    assert [each.text.count("func") for each in sections] == [1, 1, 1]
    assert [each.metadata for each in sections] == [{"line_start": 7 * n + 1, "line_end": 7 * n + 6} for n in range(3)]
    assert "".join(each.text for each in sections) == text
