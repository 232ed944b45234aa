"""ChromaManager (row A11) on the real embedded Chroma: writing, searching, ids, scores, metadata and what is refused."""

from __future__ import annotations

import enum
import math
import os
import subprocess
import sys
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
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeQueryError, KnowledgeStateError

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


def test_it_declares_semantic_search_and_writing(kb: ChromaManager):
    assert kb.capabilities.model_dump() == {
        "kinds": ["vector"],
        "search": True,
        "search_mode": "semantic",
        "query": False,
        "query_language": None,
        "fetch": False,
        "browse": False,
        "writable": True,
        "derives_schema": False,
    }


def test_the_seeds_positional_arguments_are_kept(tmp_path: Path):
    manager = ChromaManager(str(tmp_path), "notes", "my_notes", "What we noted.", EMBEDDER)
    manager.close()

    assert manager.backend_name == "notes"
    assert manager.get_description() == "notes: What we noted."


def test_the_name_is_chromadb_unless_given(kb: ChromaManager):
    assert kb.backend_name == "chromadb"
    assert "chromadb" in kb.get_description()


def test_what_was_written_is_found_best_first_with_score_id_and_source(kb: ChromaManager):
    kb.write([record("Refunds within 30 days.", source="faq", id="refunds"), record("We ship on Mondays.", id="ship")])

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


def test_a_client_that_was_given_stays_open(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=EMBEDDER)
    manager.write([record("text")])
    manager.close()

    assert client.get_collection("knowledge_base", embedding_function=None).count() == 1


def test_records_are_still_there_after_a_restart(tmp_path: Path):
    with_first = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    with_first.write([record("Refunds within 30 days.", source="faq", when=None)])
    with_first.close()
    again = ChromaManager(tmp_path, embedding_function=EMBEDDER)

    (found,) = again.search("refunds")
    again.close()
    assert found["metadata"]["source"] == "faq"
    assert found["metadata"]["when"] is None


def test_closing_twice_is_fine_and_use_after_it_says_so(kb: ChromaManager):
    kb.close()
    kb.close()

    for call in (lambda: kb.search("text"), lambda: kb.search(""), lambda: kb.write([record("text")])):
        with pytest.raises(KnowledgeStateError, match=r"'chromadb' is closed; call connect\(\)"):
            call()


def test_it_can_be_opened_again(kb: ChromaManager):
    kb.write([record("text")])
    kb.close()
    kb.connect()

    assert texts(kb.search("text")) == ["text"]


def test_managers_on_one_folder_do_not_break_each_other(tmp_path: Path):
    first = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    second = ChromaManager(str(tmp_path) + "/../" + tmp_path.name, embedding_function=EMBEDDER)
    first.write([record("one")])
    second.write([record("two")])
    first.close()
    second.write([record("three")])

    assert sorted(texts(second.search("one two three", limit=9))) == ["one", "three", "two"]
    second.close()


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


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(KnowledgeBackendError, match="'chromadb' can't open the folder"):
        ChromaManager(tmp_path / "file" / "db", embedding_function=EMBEDDER)


def test_a_broken_database_is_a_clear_error_and_can_be_mended(tmp_path: Path):
    (tmp_path / "chroma.sqlite3").write_text("not a database" * 1_000)
    with pytest.raises(KnowledgeBackendError, match="failed with InternalError while 'chromadb' tried to open it"):
        ChromaManager(tmp_path, embedding_function=EMBEDDER)

    (tmp_path / "chroma.sqlite3").unlink()
    ChromaManager(tmp_path, embedding_function=EMBEDDER).close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collection_name": "a b"}, "'a b' can't name a collection"),
        ({"collection_name": ""}, "collection_name must be text"),
        ({"description": None}, "description must be text"),
        ({"distance": "manhattan"}, "distance must be one of"),
        ({"download": "yes"}, "download must be True or False"),
        ({"embedding_function": "all-MiniLM"}, "embedding_function must be a callable"),
        ({"embedding_function": HashEmbedder}, "is not the class HashEmbedder"),
        ({"persist_path": " "}, "persist_path must be a folder"),
        ({"persist_path": "elsewhere", "host": "db"}, "persist_path and host exclude each other"),
        ({"port": 8000}, r"\['port'\] need host="),
        ({"headers": {"x": "SECRET"}}, r"\['headers'\] need host="),
        ({"host": "user:SECRET@db"}, "credentials belong in headers="),
        ({"host": "db", "port": 0}, "port must be a whole number"),
        ({"host": "db", "headers": {"x": 1}}, "headers must map names to values"),
        ({"client": object()}, "client must be a synchronous Chroma client"),
        ({"client": object(), "host": "db"}, r"client= stands alone; leave out \['host'\]"),
    ],
)
def test_wrong_arguments_are_refused_at_construction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(AKConfigError, match=message) as caught:
        ChromaManager(**dict[str, Any]({"name": "docs", "embedding_function": EMBEDDER, **arguments}))

    assert "'docs'" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_nothing_is_printed(kb: ChromaManager, capfd: pytest.CaptureFixture[str]):
    kb.write([record("text")])
    kb.search("text")
    kb.close()

    assert capfd.readouterr() == ("", "")


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout


def test_importing_the_manager_loads_no_sdk():
    code = (
        "import sys, agentkernel_kb.chroma; print(sorted({'chromadb', 'numpy', 'filelock', 'onnxruntime'} & set(sys.modules)))"
    )

    assert run_python(code) == "[]\n"


def test_a_missing_chroma_names_the_extra():
    code = """
import sys
sys.modules["chromadb"] = None  # As if it were not installed.
from agentkernel_kb.chroma import ChromaManager
try:
    ChromaManager(name="docs")
except ImportError as error:
    print(type(error).__name__, error)
"""

    assert run_python(code) == (
        "KnowledgeDependencyError ChromaManager 'docs' needs the extra 'chroma': pip install 'agentkernel-kb[chroma]'\n"
    )
