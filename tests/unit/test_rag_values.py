"""The values of managed knowledge (P13), and the one `Chunk` of both seeds (P13, S2)."""

from __future__ import annotations

import dataclasses
import json

import pytest

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag import (
    Chunk,
    Citation,
    DataBlock,
    Document,
    DocumentSummary,
    Failure,
    IndexReport,
    RAGAnswer,
    SearchHit,
    Section,
    TextBlock,
    VectorRecord,
)

HIT = SearchHit("Receipts within 30 days.", 0.5, "policy.md", {"page": 2}, "d1", "c1", 1)
VALUES = [
    Document("Receipts.", source="policy.md", metadata={"page": 1}, media_type="text/markdown"),
    Section(TextBlock("Receipts."), "policy.md", {"heading": "Money"}),
    Section(DataBlock(b"\x89PNG", "image/png", name="cat"), "cat.png"),
    Chunk("Receipts.", "d1", 3, "policy.md", {"page": 1}, total_chunks=9),
    Chunk(DataBlock(url="https://example.org/cat.png", media_type="image/png"), id="mine"),
    HIT,
    Citation.from_hit(HIT, 7),
    RAGAnswer("Within 30 days [1].", [Citation.from_hit(HIT, 1)], [HIT], "When?"),
    IndexReport(2, 5, 5, 1, 3, 4, ["a.md", "b.md"], [Failure("c.md", "is no text")], [Failure("d.jpg", "is no text")]),
    DocumentSummary("d1", "policy.md", 9, {"page": 1}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_from_json_as_it_was(value) -> None:
    assert type(value).from_dict(json.loads(json.dumps(value.to_dict()))) == value


@pytest.mark.parametrize("value", [v for v in VALUES if not isinstance(v, Chunk)], ids=lambda value: type(value).__name__)
def test_a_value_is_frozen(value) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.metadata = {}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_file_of_a_newer_version_with_another_field_is_read(value) -> None:
    assert type(value).from_dict({**value.to_dict(), "from_the_future": 1}) == value


def test_a_document_has_the_same_id_wherever_it_is_made_and_another_for_another_text_or_source() -> None:
    ids = {
        Document("a", source="x").id,
        Document("a", source="x").id,
        Document("a", source="y").id,
        Document("b", source="x").id,
    }
    assert len(ids) == 3
    assert Document("a", id="mine").id == "mine"


def test_a_document_keeps_metadata_of_its_own() -> None:
    metadata = {"tenant": "a"}
    document = Document("text", metadata=metadata)
    metadata["tenant"] = "b"
    assert document.metadata == {"tenant": "a"}


def test_a_chunk_is_made_in_the_words_of_either_seed() -> None:
    assert Chunk(text="a", document_id="d", index=2, source="s") == Chunk(
        content=TextBlock(text="a"), document_id="d", chunk_index=2, source="s"
    )


def test_a_chunk_is_renumbered_as_the_chunkers_of_seed_003_do() -> None:
    chunk = Chunk(content=TextBlock(text="a"), source="s", chunk_index=0, total_chunks=0, metadata={})
    before = chunk.id
    chunk.chunk_index, chunk.total_chunks = 4, 5
    assert (chunk.index, chunk.total_chunks) == (4, 5)
    assert chunk.id != before


def test_a_chunk_id_says_nothing_but_document_place_and_content() -> None:
    first = Chunk("a", "d", 1, "s", {"page": 1})
    assert first.id == Chunk("a", "d", 1, "other", {"page": 2}).id
    assert len({first.id, Chunk("b", "d", 1).id, Chunk("a", "e", 1).id, Chunk("a", "d", 2).id}) == 4


def test_a_chunk_of_data_has_no_text() -> None:
    chunk = Chunk(DataBlock(b"\x00", "image/png"))
    assert (chunk.text, chunk.is_data) == ("", True)


def test_a_chunk_without_content_or_with_two_is_refused() -> None:
    with pytest.raises(AKConfigError, match="Chunk needs content"):
        Chunk(document_id="d")
    with pytest.raises(AKConfigError, match="different values"):
        Chunk("a", text="b")


def test_a_record_has_the_names_of_both_seeds() -> None:
    record = VectorRecord(Chunk("a", "d"), [1.0, 0.0])
    assert (record.vector, record.document_id) == ([1.0, 0.0], "d")


def test_a_data_block_has_either_data_or_an_address() -> None:
    for data, url in ((b"", None), (b"x", "https://example.org/x")):
        with pytest.raises(AKConfigError, match="either data or url"):
            DataBlock(data, "image/png", url)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Document, (5,)),
        (Document, ("a", 5)),
        (Document, ("a", "source", [])),
        (Section, (5,)),
        (TextBlock, (b"a",)),
        (DataBlock, ("a", "image/png")),
        (DataBlock, (b"a", "png")),
        (SearchHit, (None,)),
        (Chunk, (5,)),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(kind, arguments) -> None:
    with pytest.raises(AKConfigError, match="must be"):
        kind(*arguments)


def test_a_repr_shows_no_bytes() -> None:
    assert "secret" not in repr(DataBlock(b"secret", "image/png"))


def test_reports_are_added_up() -> None:
    total = IndexReport(1, 2, 2, 0, 1, 0, ["a"]) + IndexReport(1, 1, 1, 3, 0, 2, ["a", "b"], [Failure("c", "why")])
    assert total == IndexReport(2, 3, 3, 3, 1, 2, ["a", "b"], [Failure("c", "why")])


def test_an_answer_reads_as_its_text_and_a_citation_has_a_label() -> None:
    answer = RAGAnswer("Within 30 days [1].", [Citation.from_hit(HIT, 1)])
    assert str(answer) == "Within 30 days [1]."
    assert answer.citations[0].label == "[1]"
