"""ChromaManager (row A11) on the real embedded Chroma: records written and found, ids, scores, metadata, what is refused."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import chromadb
import pytest
from chromadb.api import ClientAPI
from chromadb.config import Settings

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import KnowledgeQueryError

EMBEDDER = HashEmbedder(64)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[ChromaManager]:
    manager = ChromaManager(tmp_path / "db", embedding_function=EMBEDDER)
    yield manager
    manager.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ClientAPI]:
    own = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    yield own
    cast("Any", own).close()


def record(text: str, /, **metadata: Any) -> dict[str, Any]:
    return {"text": text, "metadata": metadata}


def texts(found: list[Any]) -> list[str]:
    return [one["text"] for one in found]


def test_what_was_written_is_found_best_first_with_score_id_and_source(kb: ChromaManager):
    kb.write(
        [
            record("Refunds within 30 days.", source="faq", id="refunds"),
            record("Ship refunds by registered post on Mondays, never on other days.", id="ship"),
        ]
    )

    found = kb.search("refunds", limit=2)

    assert [(one["metadata"]["id"], one["metadata"].get("source")) for one in found] == [("refunds", "faq"), ("ship", None)]
    assert texts(found)[0] == "Refunds within 30 days."
    assert found[0]["metadata"]["score"] > found[1]["metadata"]["score"]
    assert sorted(found[0]) == ["metadata", "text"]


def test_the_same_text_scores_one(kb: ChromaManager):
    kb.write([record("Refunds within 30 days.")])

    assert math.isclose(kb.search("Refunds within 30 days.")[0]["metadata"]["score"], 1.0, abs_tol=1e-5)


def test_equal_scores_are_ordered_by_id(kb: ChromaManager):
    kb.write([record("same", id=name) for name in ("c", "a", "b")])

    assert [one["metadata"]["id"] for one in kb.search("same")] == ["a", "b", "c"]


def test_add_returns_the_ids_and_write_returns_none(kb: ChromaManager):
    ids = kb.add([record("one", id="first"), record("two")])

    assert ids[0] == "first"
    assert len(ids[1]) == 32
    assert kb.write([record("three")]) is None


def test_writing_twice_stores_once(kb: ChromaManager):
    assert kb.add([record("one", source="s")]) == kb.add([record("one", source="s")])
    assert len(kb.search("one", limit=10)) == 1


def test_source_and_text_are_told_apart_in_ids(kb: ChromaManager):
    ids = kb.add([record("ab", source="c"), record("a", source="bc"), record("a", source=None), record("a", source="null")])

    assert len(set(ids)) == 4


def test_an_id_that_fetch_could_not_be_asked_for_is_replaced_by_a_digest(kb: ChromaManager):
    (first,) = kb.add([record("one", id="a,b")])
    (second,) = kb.add([record("one")])

    assert first == second


def test_of_one_id_in_one_call_the_last_is_kept(kb: ChromaManager):
    assert kb.add([record("old", id="x", a=1), record("new", id="x")]) == ["x"]
    assert kb.search("new") == [{"text": "new", "metadata": {"id": "x", "score": pytest.approx(1.0, abs=1e-5)}}]


def test_a_record_replaces_the_older_one_with_its_metadata(kb: ChromaManager):
    kb.write([record("old", id="x", gone=1, tags=["a"], nested={"a": 1}, kept="old")])
    kb.write([record("new", id="x", kept="new")])

    (found,) = kb.search("new")
    assert found["metadata"] == {"id": "x", "kept": "new", "score": found["metadata"]["score"]}

    kb.write([record("new", id="x")])
    assert sorted(kb.search("new")[0]["metadata"]) == ["id", "score"]


def test_metadata_that_chroma_cannot_hold_is_restored(kb: ChromaManager):
    metadata: dict[str, Any] = {
        "text": "é\u2028",
        "integer": 2**63 - 1,
        "float": 1.5,
        "yes": True,
        "words": ["a", "b"],
        "numbers": list(range(100)),
        "nothing": None,
        "empty": "",
        "nested": {"a": {"b": [1, None, {"c": 2}]}},
        "mixed": [1, "a", None],
        "no_items": [],
        "no_keys": {},
        "huge": 10**40,
        "infinite": math.inf,
        "chroma:document": "reserved by Chroma",
        "#embedding": 1,
        "$and": 2,
        "": "no name",
        "agentkernel_kb:json": "reserved by us",
        "agentkernel_kb:embedder": "reserved by us",
        "surrogate": "a\ud800",
        "nul": "a\x00b",
    }
    kb.write([record("text", **metadata)])

    found = dict(kb.search("text")[0]["metadata"])
    del found["id"], found["score"]
    assert found == metadata


class Colour(enum.StrEnum):
    RED = "red"


def test_values_that_json_has_no_word_for_come_back_as_text(kb: ChromaManager):
    loop: dict[str, Any] = {}
    loop["self"] = loop
    kb.write([record("text", day=date(2026, 1, 2), price=Decimal("1.10"), raw=b"\x01", colour=Colour.RED, loop=loop)])

    found = dict(kb.search("text")[0]["metadata"])
    del found["id"], found["score"]
    assert found == {"day": "2026-01-02", "price": "1.10", "raw": "0x01", "colour": "red", "loop": {"self": "<cycle>"}}


def test_keys_that_are_no_text_become_text(kb: ChromaManager):
    kb.write([{"text": "text", "metadata": {1: "one", (2, 3): "two"}}])

    found = kb.search("text")[0]["metadata"]
    assert (found["1"], found["[2, 3]"]) == ("one", "two")


def test_a_key_that_is_no_text_does_not_replace_one_that_is(kb: ChromaManager):
    kb.write([{"text": "text", "metadata": {1: "number", "1": "text", 1.0 + 1: "float", "id": "x", ("id",): "tuple"}}])

    found = kb.search("text")[0]["metadata"]
    del found["score"]
    assert found == {"id": "x", "1": "text", "1 (2)": "number", "2.0": "float", "['id']": "tuple"}


def test_plain_values_can_be_filtered_by_chroma(kb: ChromaManager):
    kb.write([record("refund old", id="old", year=2020), record("refund new", id="new", year=2024, tags=["faq", "shop"])])

    assert [one["metadata"]["id"] for one in kb.search("refund", where={"year": {"$gte": 2021}})] == ["new"]
    assert [one["metadata"]["id"] for one in kb.search("refund", where={"tags": {"$contains": "faq"}})] == ["new"]
    assert [one["metadata"]["id"] for one in kb.search("refund", where_document={"$contains": "old"})] == ["old"]


def test_a_wrong_filter_is_an_error_that_names_the_argument(kb: ChromaManager):
    kb.write([record("text")])

    with pytest.raises(KnowledgeQueryError, match=r"rejects where= or where_document= of 'chromadb'"):
        kb.search("text", where={"a": {"$like": "secret"}})


@pytest.mark.parametrize("query", ["", "  ", "\n\t"])
def test_a_blank_query_finds_nothing(kb: ChromaManager, query: str):
    kb.write([record("text")])

    assert kb.search(query) == []


def test_an_empty_collection_finds_nothing(kb: ChromaManager):
    assert kb.search("anything") == []


def test_a_limit_beyond_the_collection_returns_all(kb: ChromaManager):
    kb.write([record(f"text {number}") for number in range(5)])

    assert len(kb.search("text", limit=1_000)) == len(kb.search("text", limit=10**12)) == 5


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_means_one(kb: ChromaManager, limit: int):
    kb.write([record("text 1"), record("text 2")])

    assert len(kb.search("text", limit=limit)) == 1


def test_unknown_keyword_arguments_are_ignored(kb: ChromaManager):
    kb.write([record("text")], unknown=1)

    assert len(kb.search("text", unknown=1)) == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"text": "  "}, "record 2: its 'text' is blank"),
        ({"text": "\x00"}, "record 2: its 'text' is blank"),
        ({"text": 5}, "record 2: its 'text' must be a string, not int"),
        ({"metadata": {}}, "record 2: its 'text' must be a string, not NoneType"),
        ("text", "record 2: it must be a mapping"),
        ({"text": "a", "metadata": ["b"]}, "record 2: its 'metadata' must be a mapping, not list"),
    ],
)
def test_one_bad_record_is_named_and_nothing_is_written(kb: ChromaManager, bad: Any, message: str):
    with pytest.raises(KnowledgeQueryError, match=message):
        kb.write([record("good"), bad])

    assert kb.search("good") == []


@pytest.mark.parametrize("records", ["text", {"text": "one record"}, 5, None])
def test_what_is_no_list_of_records_is_refused(kb: ChromaManager, records: Any):
    with pytest.raises(KnowledgeQueryError, match="stores a list of records"):
        kb.write(records)


def test_writing_nothing_is_fine(kb: ChromaManager):
    assert kb.add([]) == []


def test_text_that_utf8_cannot_hold_is_mended(kb: ChromaManager):
    kb.write([record("broken \ud800 text\x00")])

    assert texts(kb.search("broken")) == ["broken \ufffd text"]


def test_more_records_than_one_batch_of_chroma_are_all_written(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=HashEmbedder(8))
    number = client.get_max_batch_size() + 100
    ids = manager.add([record(f"text {i}") for i in range(number)])
    manager.close()

    assert len(set(ids)) == number
    assert client.get_collection("knowledge_base", embedding_function=None).count() == number


def test_l2_and_ip_scores_are_greater_for_what_is_nearer(tmp_path: Path):
    vectors = {"near": [3.0, 0.0], "far": [0.0, 1.0], "query": [2.0, 0.0]}
    scores: dict[str, list[tuple[str, float]]] = {}
    for distance in ("l2", "ip"):
        manager = ChromaManager(
            tmp_path,
            collection_name=f"by_{distance}",
            distance=distance,
            embedding_function=lambda batch: [vectors[text] for text in batch],
        )
        manager.write([record("near"), record("far")])
        scores[distance] = [(one["text"], round(one["metadata"]["score"], 4)) for one in manager.search("query")]
        manager.close()

    assert scores == {"l2": [("near", 0.5), ("far", 0.1667)], "ip": [("near", 6.0), ("far", 0.0)]}
