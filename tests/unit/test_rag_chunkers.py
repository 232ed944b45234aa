"""Chunkers (P4, S2): sizes, overlaps, borders, numbering, offsets, and nobody's characters broken."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag import Chunk, DataBlock, Document, Section, Splitter, TextBlock
from agentkernel_kb.rag.chunkers import (
    ApproxTokenChunker,
    ChunkerBase,
    HeadingChunker,
    RecursiveCharacterSplitter,
)
from agentkernel_kb.rag.chunkers.tokens import approximate_tokens

SPLITTERS = [
    RecursiveCharacterSplitter(40, 10),
    RecursiveCharacterSplitter(1, 0),
    RecursiveCharacterSplitter(7, 6),
    ApproxTokenChunker(6, 2),
    ApproxTokenChunker(1, 0),
    HeadingChunker(40, 10),
]
CLUSTERS = [
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "🇨🇭",
    "각",
    "ᄀ\u1161\u11a8",
    "ก\u0e33",
    "\r\n",
    "क\u094d",
    "☎\ufe0f",
    "🏴\U000e0067\U000e007f",
]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*CLUSTERS, " ", "\n", "\n\n", ". ", "。", "word", "# Title\n", "```\n", "---\n"]), st.text(max_size=3)
    ),
    max_size=60,
).map("".join)


def split(splitter, text: str) -> list[Chunk]:
    return splitter.split([Document(text, source="s.md", media_type="text/markdown")])


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
@given(text=TEXTS)
def test_every_character_that_is_not_blank_is_in_a_chunk_at_the_place_that_it_says(splitter, text) -> None:
    covered: set[int] = set()
    for chunk in split(splitter, text):
        start, end = chunk.metadata["char_start"], chunk.metadata["char_end"]
        assert text[start:end] == chunk.text
        assert chunk.text == chunk.text.strip() != ""
        covered.update(range(start, end))
    assert all(character.isspace() for place, character in enumerate(text) if place not in covered)


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
@given(text=TEXTS)
def test_chunks_are_numbered_and_run_forward(splitter, text) -> None:
    chunks = split(splitter, text)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.total_chunks for chunk in chunks} <= {len(chunks)}
    starts = [chunk.metadata["char_start"] for chunk in chunks]
    assert starts == sorted(set(starts))


@pytest.mark.parametrize("cluster", CLUSTERS, ids=ascii)
@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_what_a_reader_sees_as_one_character_is_never_cut(splitter, cluster) -> None:
    text = ("x" + cluster * 7) * 30
    for chunk in split(splitter, text):
        assert not unicodedata.category(chunk.text[0]).startswith("M")
        assert chunk.text.replace("x", "").replace(cluster, "").strip() == ""


@given(text=TEXTS, size=st.integers(20, 60))
def test_a_chunk_is_no_longer_than_it_may_be(text, size) -> None:
    cluster = max(map(len, CLUSTERS))
    assert all(len(chunk.text) <= size + cluster for chunk in split(RecursiveCharacterSplitter(size, 5), text))


@given(text=st.text(alphabet="aé漢😀 \n", max_size=300), size=st.integers(1, 20))
def test_tokens_are_reckoned_in_bytes(text, size) -> None:
    assert all(approximate_tokens(chunk.text) <= size for chunk in split(ApproxTokenChunker(size, 0), text))


def test_a_chunk_repeats_at_most_the_overlap() -> None:
    text = " ".join(f"word{n}" for n in range(2_000))
    chunks = split(RecursiveCharacterSplitter(200, 50), text)
    pairs = list(itertools.pairwise(chunks))
    repeated = [first.metadata["char_end"] - second.metadata["char_start"] for first, second in pairs]
    assert max(repeated) <= 50
    assert min(repeated) >= 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("First paragraph here.\n\nSecond paragraph.", ["First paragraph here.", "Second paragraph."]),
        ("First line is here\nSecond line is here", ["First line is here", "Second line is here"]),
        ("First sentence is. Second sentence is.", ["First sentence is.", "Second sentence is."]),
        (
            "最初の文がここにあります最初の文がここにあり。二つ目の文です。",
            ["最初の文がここにあります最初の文がここにあり。", "二つ目の文です。"],
        ),
        ("some words without any mark at all here", ["some words without any", "mark at all here"]),
        ("x" * 60, ["x" * 25, "x" * 25, "x" * 10]),
    ],
)
def test_a_text_is_cut_at_its_strongest_border(text, expected) -> None:
    assert [chunk.text for chunk in split(RecursiveCharacterSplitter(25, 0), text)] == expected


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
async def test_sections_are_never_merged_and_data_passes_through(splitter) -> None:
    image = DataBlock(b"\x89PNG", "image/png")
    chunks = await splitter.chunk(
        [
            Section(TextBlock("one"), "a.pdf", {"page": 1}),
            Section(image, "a.pdf", {"page": 2}),
            Section(TextBlock("two"), "a.pdf", {"page": 3}),
        ]
    )
    assert [chunk.metadata["page"] for chunk in chunks] == sorted(chunk.metadata["page"] for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == "onetwo"
    assert [chunk.content for chunk in chunks if chunk.is_data] == [image]
    assert [(chunk.chunk_index, chunk.total_chunks) for chunk in chunks] == [(n, len(chunks)) for n in range(len(chunks))]


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
@pytest.mark.parametrize("text", ["", " \n\t\u3000 "], ids=["empty", "blank"])
async def test_a_blank_text_has_no_chunks(splitter, text) -> None:
    assert split(splitter, text) == []
    assert await splitter.chunk([Section(TextBlock(text))]) == []


def test_the_chunks_of_two_documents_are_numbered_apart() -> None:
    chunks = RecursiveCharacterSplitter(10, 0).split(
        [Document("one two three four", id="a"), Document("five six seven", id="b")]
    )
    assert [(chunk.document_id, chunk.index, chunk.total_chunks) for chunk in chunks] == [
        ("a", 0, 2),
        ("a", 1, 2),
        ("b", 0, 2),
        ("b", 1, 2),
    ]


def test_a_chunk_has_the_metadata_of_its_document_for_itself() -> None:
    document = Document("one two three four", metadata={"tenant": "a"})
    first, second = RecursiveCharacterSplitter(10, 0).split([document])
    first.metadata["tenant"] = "b"
    assert (second.metadata["tenant"], document.metadata["tenant"]) == ("a", "a")


MARKDOWN = """---
title: Handbook
---

Before.

# Money #

## Receipts

Within 30 days.

```bash
# no heading
```

Travel
------

By train.

# Time

Nine to five.
"""


def test_chunks_carry_the_headings_that_lead_to_them() -> None:
    found = [(chunk.metadata.get("headings"), chunk.text.splitlines()[0]) for chunk in split(HeadingChunker(), MARKDOWN)]
    assert found == [
        (None, "---"),
        (["Money", "Receipts"], "# Money #"),
        (["Money", "Travel"], "Travel"),
        (["Time"], "# Time"),
    ]


def test_a_text_that_is_no_markdown_has_no_headings() -> None:
    chunks = HeadingChunker().split([Document("# A comment\n\nx = 1", media_type="text/x-python")])
    assert [chunk.metadata.get("headings") for chunk in chunks] == [None]


@pytest.mark.parametrize(
    "text",
    [
        "| a |\n|---|\n| b |",
        "- item\n---\nafter",
        "    code\n---\n",
        "text\n\n---\n\ntext",
        "~~~\n# a\n```\n# b\n",
        "#hashtag",
        "####### seven",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text) -> None:
    assert {tuple(chunk.metadata.get("headings", ())) for chunk in split(HeadingChunker(), text)} == {()}


def test_every_chunker_is_a_splitter_and_a_chunker() -> None:
    assert all(isinstance(splitter, Splitter) and isinstance(splitter, ChunkerBase) for splitter in SPLITTERS)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (RecursiveCharacterSplitter, (0, 0)),
        (RecursiveCharacterSplitter, (10, 10)),
        (RecursiveCharacterSplitter, (10, -1)),
        (RecursiveCharacterSplitter, (True, 0)),
        (ApproxTokenChunker, (2.5, 0)),
        (HeadingChunker, (10, "1")),
    ],
)
def test_sizes_that_cannot_be_are_refused(make, sizes) -> None:
    with pytest.raises(AKConfigError, match="must be a whole number"):
        make(*sizes)


@pytest.mark.parametrize(
    "text",
    ["x" * 400_000, "\n" * 400_000, "# " * 200_000, "é" * 400_000, "🇨🇭" * 100_000, "a\n---\n" * 60_000, "```\n" * 90_000],
)
@pytest.mark.parametrize("splitter", [RecursiveCharacterSplitter(), ApproxTokenChunker(), HeadingChunker()], ids=repr)
@pytest.mark.timeout(20)
def test_awkward_texts_of_some_hundred_kilobytes_are_cut_at_once(splitter, text) -> None:
    split(splitter, text)
