"""Chunks of texts with a structure (P4, S2): what belongs together stays together where it fits, and says where it stands."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentkernel_kb
from agentkernel_kb.rag import Chunk, Document
from agentkernel_kb.rag.chunkers import ApproxTokenChunker, HeadingChunker, RecursiveCharacterSplitter
from agentkernel_kb.rag.parsers import parser_for

CHUNKERS = [RecursiveCharacterSplitter(), ApproxTokenChunker(), HeadingChunker(), RecursiveCharacterSplitter(400, 50)]
SOURCES = sorted(Path(agentkernel_kb.__file__).parent.glob("rag/**/*.py"))[::6]
JAVASCRIPT = "import x from 'y';\n\nclass Basket {\n" + "".join(
    f"  // Number {n}.\n  add{n}(item) {{\n    const a = {n};\n\n    return this.total + a * {n};\n  }}\n\n" for n in range(30)
) + "}\n\nexport default Basket;\n"  # fmt: skip
GO = "package main\n\nimport \"fmt\"\n\n" + "".join(
    f"// F{n} prints.\nfunc F{n}() {{\n\tfmt.Println({n})\n\n\tfmt.Println(\"{'x' * 300}\")\n}}\n\n" for n in range(9)
)  # fmt: skip


def split(chunker, text: str, media_type: str) -> list[Chunk]:
    return chunker.split([Document(text, "file", media_type=media_type)])


def whole(chunks: list[Chunk], part: str) -> bool:
    return any(part.strip() in chunk.text for chunk in chunks)


@pytest.mark.parametrize("chunker", CHUNKERS, ids=repr)
def test_a_function_of_python_that_fits_is_in_one_chunk(chunker) -> None:
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        chunks = split(chunker, text, "text/x-python")
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        parts = [ast.get_source_segment(text, node) or "" for node in functions]
        assert [part for part in parts if len(part) < chunker.most_chars - 200 and not whole(chunks, part)] == []


@pytest.mark.parametrize("chunker", CHUNKERS, ids=repr)
@pytest.mark.parametrize(
    ("text", "begin", "end"), [(JAVASCRIPT, "  // Number", "\n  }\n"), (GO, "// F", "\n}\n")], ids=["js", "go"]
)
def test_a_function_of_other_code_that_fits_is_in_one_chunk(chunker, text: str, begin: str, end: str) -> None:
    chunks = split(chunker, text, "text/x-source")
    parts = [begin + rest.partition(end)[0] + end for rest in text.split(begin)[1:]]
    assert len(parts) > 8
    assert [part for part in parts if not whole(chunks, part)] == []


@pytest.mark.parametrize("chunker", CHUNKERS, ids=repr)
def test_chunks_of_code_say_their_lines_and_what_they_define(chunker) -> None:
    text = "import re\n\n\ndef one():\n    return 1\n\n\nclass Two:\n    def three(self):\n        return 3\n" + "x = 1\n" * 400
    chunks = split(chunker, text, "text/x-python")
    lines = text.split("\n")
    for chunk in chunks:
        held = "\n".join(lines[chunk.metadata["line_start"] - 1 : chunk.metadata["line_end"]])
        assert chunk.text in held
        assert chunk.text.split("\n")[0] in held.split("\n")[0]
    assert chunks[0].metadata["symbol"] == "one, Two"
    assert "symbol" not in chunks[-1].metadata


@pytest.mark.parametrize("chunker", CHUNKERS, ids=repr)
def test_what_stands_under_a_heading_that_fits_is_in_one_chunk_that_says_which(chunker) -> None:
    text = "Top\n===\n\nA\n-\n\n" + "alpha " * 60 + "\n\nB\n-\n\n" + "beta " * 60 + "\n\nC\n-\n\n" + "gamma " * 60
    for chunk in split(chunker, text, "text/x-rst"):
        held = [name for name, word in (("A", "alpha"), ("B", "beta"), ("C", "gamma")) if word in chunk.text]
        assert all(chunk.text.count(word) in (0, 60) for word in ("alpha", "beta", "gamma"))
        assert chunk.metadata["headings"] == (["Top", *held] if len(held) == 1 else ["Top"])


def test_lines_of_json_are_whole() -> None:
    records = [json.dumps({"number": n, "text": "word " * 30}) for n in range(50)]
    chunks = split(RecursiveCharacterSplitter(), "\n".join(records), "application/x-ndjson")
    assert [each for each in records if not whole(chunks, each)] == []
    assert len(chunks) < 15


@pytest.mark.parametrize(
    "media_type", ["text/x-python", "text/x-source", "text/x-rst", "text/markdown", "application/x-ndjson"]
)
@pytest.mark.parametrize("chunker", CHUNKERS[:3], ids=repr)
@given(
    text=st.lists(
        st.sampled_from(["def f():\n", "    return 1\n", "\n", "}\n", "# T\n", "T\n", "==\n", "é {\n", " \n", '"""\n']),
        max_size=40,
    )
)
def test_nothing_is_lost_whatever_the_structure(chunker, media_type: str, text: list[str]) -> None:
    parser = parser_for(media_type)
    assert parser is not None
    whole_text = "".join(text)
    covered = {
        place
        for chunk in split(chunker, whole_text, media_type)
        for place in range(chunk.metadata["char_start"], chunk.metadata["char_end"])
    }
    assert all(character.isspace() for place, character in enumerate(whole_text) if place not in covered)


@pytest.mark.parametrize(
    "text",
    ["class A {\n\n" * 20_000, "  x\n\n" * 60_000, ("\t" * 40 + "x\n\n") * 5_000, "{\n\n}\n" * 50_000],
    ids=["open", "flat", "deep", "closed"],
)
@pytest.mark.timeout(30)
def test_awkward_code_is_cut_at_once(text: str) -> None:
    split(RecursiveCharacterSplitter(), text, "text/x-source")
