"""How well a corpus is searched (X13): measures worked out by hand, the files of a collection, and `eval --corpus`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from cli_world import Command, Ran

from agentkernel_kb.cli import main
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.evaluation.corpus import Collection, Passage, read_collection
from agentkernel_kb.evaluation.measures import reciprocal_rank
from agentkernel_kb.evaluation.retrieval import Setting, compare_retrieval, evaluate_retrieval
from agentkernel_kb.rag import Knowledge, SearchHit

DOCUMENTS = [
    {"_id": "cats", "title": "Cats", "text": "Cats sleep most of the day."},
    {"_id": "wings", "title": "", "text": "The lift of wings grows with their angle."},
    {"_id": "trains", "text": "Trains are booked by the travel desk."},
]
QUERIES = [{"_id": "1", "text": "do cats sleep"}, {"_id": "2", "text": "lift of wings"}, {"_id": "3", "text": "never judged"}]
QRELS = "query-id\tcorpus-id\tscore\n1\tcats\t2\n1\ttrains\t0\n2\twings\t1\n2\ttrains\t1\n3\tcats\t0\n"


def write(folder: Path, **changed: str) -> Path:
    folder.mkdir(exist_ok=True)
    files = {
        "corpus.jsonl": "".join(f"{json.dumps(each)}\n" for each in DOCUMENTS),
        "queries.jsonl": "".join(f"{json.dumps(each)}\n" for each in QUERIES),
        "qrels.tsv": QRELS,
    }
    for name, text in (files | {name.replace("_", "."): text for name, text in changed.items()}).items():
        (folder / name).write_text(text, "utf-8")
    return folder


def ranks(*sources: str) -> Knowledge:
    """Knowledge that finds the same chunks for every question, in this order."""

    def search(query: str, *, k: int, where: object = None) -> list[SearchHit]:
        hits = [SearchHit("text", source=source, score=1 - place / 100) for place, source in enumerate(sources)]
        return hits[:k]

    return Knowledge.from_callable(search)


async def test_measures_are_those_worked_out_by_hand():
    grades = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"d": 1.0}}
    collection = Collection((), {"1": "one", "2": "two"}, grades)
    first, second = await evaluate_retrieval(collection, ranks("x", "b", "b", "a", "y"), k=3)
    best = 3 + 2 / math.log2(3) + 1 / 2
    assert first.ndcg == pytest.approx((2 / math.log2(3) + 3 / 2) / best)  # x, b, a: chunks of b count once
    assert (first.recall, first.precision, first.reciprocal_rank) == pytest.approx((2 / 3, 2 / 3, 1 / 2))
    assert (second.ndcg, second.recall, second.precision, second.reciprocal_rank) == (0, 0, 0, 0)


def test_the_reciprocal_rank_is_one_over_the_first_place_that_is_relevant():
    assert reciprocal_rank(["x", "x", "a", "b"], {"a", "b"}) == 1 / 2
    assert reciprocal_rank(["x", "a"], {"a"}, k=1) == 0
    assert reciprocal_rank([], {"a"}) == 0


async def test_documents_are_found_behind_many_chunks_of_one():
    collection = Collection((), {"1": "one"}, {"1": {"last": 1.0}})
    (found,) = await evaluate_retrieval(collection, ranks(*["long"] * 50, "last"), k=2)
    assert found.reciprocal_rank == 1 / 2


async def test_ways_to_search_are_compared_side_by_side(tmp_path: Path):
    collection = read_collection(write(tmp_path / "set"))
    done = await compare_retrieval(collection, [Setting("keyword"), Setting("vector"), Setting("hybrid")], k=2)
    assert [each.mode for each in done] == ["keyword", "vector", "hybrid"]
    keyword = done[0]
    lost = 1 / (1 + 1 / math.log2(3))  # Trains answer the second question in words that nobody finds.
    assert (keyword.ndcg, keyword.recall, keyword.mrr) == pytest.approx(((1 + lost) / 2, 0.75, 1))
    assert (keyword.chunks, len(keyword.scores), keyword.to_dict()["questions"]) == (3, 2, 2)


async def test_any_corpus_is_judged_with_ids_of_ones_own():
    collection = Collection((), {"1": "cats"}, {"1": {"CATS.MD": 1.0}})
    knowledge = ranks("cats.md")
    (found,) = await evaluate_retrieval(collection, knowledge, id_of=lambda hit: (hit.source or "").upper())
    assert found.ndcg == 1


def test_a_title_that_a_text_does_not_repeat_is_searched_too(tmp_path: Path):
    collection = read_collection(write(tmp_path / "set"))
    assert collection.documents[0] == Passage("cats", "Cats sleep most of the day.", "Cats")
    assert list(collection.judged) == ["1", "2"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"corpus_jsonl": "{}\n"}, r"corpus.jsonl:1: _id must be text"),
        ({"corpus_jsonl": '{"_id": "a", "text": "x"}\n\n[]\n'}, r"corpus.jsonl:3: is no JSON object"),
        ({"corpus_jsonl": '{"_id": "a", "text": "x"}\n' * 2}, "two documents of one _id"),
        ({"queries_jsonl": '{"_id": "1", "text": 5}\n'}, r"queries.jsonl:1: text must be text"),
        ({"queries_jsonl": "nothing\n"}, r"queries.jsonl:1: is no JSON"),
        ({"queries_jsonl": "[" * 100_000}, r"queries.jsonl:1: is no JSON"),
        ({"qrels_tsv": "a\tb\tscore\n1\tcats\tgood\n"}, r"qrels.tsv:2: the grade 'good' is no number"),
        ({"qrels_tsv": "a\tb\tscore\n1\tcats\tinf\n"}, r"qrels.tsv:2: the grade 'inf' is no finite number"),
        ({"qrels_tsv": "a b c\n"}, r"qrels.tsv:1: needs a question, a document and a grade"),
        ({"qrels_tsv": "a\tb\tscore\n1\tcats\t0\n"}, "no grade above 0"),
    ],
    ids=["no id", "no object", "twice", "no text", "no json", "too deep", "no number", "no end", "no tabs", "nothing judged"],
)
def test_a_fault_of_a_collection_is_told_with_its_line(tmp_path: Path, changed, message):
    with pytest.raises(AKConfigError, match=message):
        read_collection(write(tmp_path / "set", **changed))


def test_a_file_that_is_missing_is_named(tmp_path: Path):
    (write(tmp_path / "set") / "queries.jsonl").unlink()
    with pytest.raises(AKConfigError, match=r"queries.jsonl cannot be read: No such file"):
        read_collection(tmp_path / "set")


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    write(tmp_path / "set")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def test_the_command_prints_each_way_and_needs_no_configuration(kb: Command):
    done = kb("eval", "--corpus", "set", "--mode", "keyword", "--mode", "hybrid", "--chunker", "tokens:64:8", "--k", "2")
    heading, *rows = [line.split("\t") for line in done.out.splitlines()]
    assert (done.code, heading[3]) == (0, "nDCG@2")
    assert [row[:4] for row in rows] == [
        ["keyword", "hash", "tokens:64:8", "0.807"],
        ["hybrid", "hash", "tokens:64:8", "0.807"],
    ]
    assert done.err == "3 documents, 2 judged questions.\n"


def test_a_build_can_depend_on_the_best_way(kb: Command):
    assert kb("eval", "--corpus", "set", "--mode", "keyword", "--k", "2", "--min-ndcg", "0.8").code == 0
    failed = kb("eval", "--corpus", "set", "--mode", "keyword", "--k", "2", "--min-ndcg", "0.81", "--json")
    assert (failed.code, failed.json["ok"], failed.json["settings"][0]["ndcg"]) == (1, False, 0.8066)
    assert failed.err.endswith("The best nDCG@2 is 0.807; --min-ndcg asks for 0.810.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--corpus", "set", "--mode", "hybrod"), 2, "Did you mean 'hybrid'?"),
        (("--corpus", "set", "--chunker", "tokens:x"), 2, "tokens:SIZE"),
        (("--corpus", "set", "--chunker", "recursive:10:20"), 2, "overlap"),
        (("--corpus", "set", "--embedder", "onxx:m"), 1, "Did you mean 'onnx'?"),
        (("--corpus", "nowhere"), 1, "cannot be read"),
        (("questions.yaml", "--corpus", "set"), 2, "not both"),
        (("--mode", "keyword"), 2, "go with --corpus"),
        ((), 2, "Name a file"),
    ],
    ids=["mode", "size", "overlap", "embedder", "folder", "both", "alone", "nothing"],
)
def test_what_cannot_be_compared_is_told(kb: Command, arguments, code, message):
    done = kb("eval", *arguments)
    assert (done.code, message in done.err) == (code, True), done.err
