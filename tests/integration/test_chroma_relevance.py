"""ChromaManager (row A11) and what a search leaves out: "nothing known" is an empty result, and ties are cut by id."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import chromadb
import pytest
from chromadb.api import ClientAPI
from chromadb.config import Settings

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError

HANDBOOK = [
    {"text": "Refunds are granted within 30 days of the delivery.", "metadata": {"id": "refunds"}},
    {"text": "We ship on Mondays, and the parcel is with you on Friday.", "metadata": {"id": "ship"}},
    {"text": "The guarantee covers parts for two years.", "metadata": {"id": "guarantee"}},
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ClientAPI]:
    own = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    yield own
    cast("Any", own).close()


@pytest.fixture
def handbook(client: ClientAPI) -> ChromaManager:
    manager = ChromaManager(client=client, embedding_function=HashEmbedder())
    manager.write(HANDBOOK)
    return manager


def ids(found: list[Any]) -> list[str]:
    return [one["metadata"]["id"] for one in found]


def invented_words(number: int, letters: str, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(letters, k=8)) for _ in range(number)]


@pytest.mark.parametrize("query", ["Who discovered penicillin?", "What is the capital of Peru?", "天気", "zebra"])
def test_a_query_that_shares_no_telling_word_finds_nothing(handbook: ChromaManager, query: str):
    assert handbook.search(query) == []


def test_an_agent_is_told_that_nothing_is_known(handbook: ChromaManager):
    outcomes: list[str] = []
    builder = KnowledgeBuilder([handbook], on_event=lambda event: outcomes.append(event.outcome))
    search = next(tool for tool in builder.build() if tool.__name__ == "search_kb")

    assert "No relevant knowledge found." in search("chromadb", "Who discovered penicillin?")
    assert outcomes == ["empty"]


def test_only_records_that_share_a_word_are_found(handbook: ChromaManager):
    assert ids(handbook.search("Which parts are covered by the guarantee?")) == ["guarantee"]


def test_function_words_count_where_a_query_has_no_others(handbook: ChromaManager):
    assert ids(handbook.search("you and we")) == ["ship"]


def test_collisions_of_unrelated_words_are_not_shown(client: ClientAPI):
    """Measured: the words of long texts fall on the places of other words, which scores up to 0.2."""
    manager = ChromaManager(client=client, embedding_function=HashEmbedder(64))
    words = invented_words(2_000, "bcdfgh", seed=1)
    manager.write([{"text": " ".join(words[start : start + 20])} for start in range(0, 2_000, 20)])

    assert [found for query in invented_words(50, "klmnpr", seed=2) for found in manager.search(query)] == []


def test_the_one_word_that_a_long_text_shares_is_enough(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=HashEmbedder())
    words = invented_words(10_000, "bcdfgh", seed=1)
    needles = invented_words(20, "klmnpr", seed=2)
    noise = [{"text": " ".join(words[start : start + 20])} for start in range(0, 4_000, 20)]
    hidden = [
        {"text": " ".join([*words[4_000 + number * 250 : 4_250 + number * 250], needle]), "metadata": {"id": needle}}
        for number, needle in enumerate(needles)
    ]
    manager.write([*noise, *hidden])

    assert [ids(manager.search(needle)) for needle in needles] == [[needle] for needle in needles]


def test_a_record_that_has_only_a_vector_is_not_judged_by_its_words(client: ClientAPI):
    embedder = HashEmbedder(8)
    collection = client.create_collection("knowledge_base", embedding_function=None)
    collection.add(ids=["1"], embeddings=cast("Any", embedder(["refund"])))

    assert ids(ChromaManager(client=client, embedding_function=embedder).search("money")) == ["1"]


def by_first_number(texts: list[str]) -> list[list[float]]:
    """Vectors whose inner product with that of "1" is the number that a text begins with."""
    return [[float(text.split()[0]), 0.0, 1.0] if text != "1" else [1.0, 0.0, 0.0] for text in texts]


def numbered(client: ClientAPI, min_score: float | None) -> ChromaManager:
    manager = ChromaManager(client=client, embedding_function=by_first_number, distance="ip", min_score=min_score)
    manager.write([{"text": f"{number} text", "metadata": {"id": str(number)}} for number in (-2, -1, 0, 2, 3)])
    return manager


def test_hits_below_min_score_are_left_out_and_those_at_it_are_kept(client: ClientAPI):
    assert ids(numbered(client, 2.0).search("1", limit=9)) == ["3", "2"]
    assert numbered(client, 3.5).search("1", limit=9) == []


def test_without_min_score_a_function_that_cannot_tell_shows_the_nearest_whatever_they_are(client: ClientAPI):
    assert ids(numbered(client, None).search("1", limit=9)) == ["3", "2", "0", "-1", "-2"]


def test_min_score_and_what_the_function_tells_both_hold(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=HashEmbedder(), min_score=0.9)
    manager.write(HANDBOOK)

    assert manager.search("guarantee") == []
    assert ids(manager.search("The guarantee covers parts for two years.")) == ["guarantee"]


@pytest.mark.parametrize("bad", ["0.5", True, float("nan"), float("inf"), [0.5]])
def test_a_min_score_that_is_no_number_is_refused(client: ClientAPI, bad: Any):
    with pytest.raises(AKConfigError, match="'docs': min_score must be a finite number or None"):
        ChromaManager(name="docs", client=client, embedding_function=HashEmbedder(), min_score=bad)


@pytest.mark.parametrize(("distance", "refused"), [("cosine", True), ("l2", True), ("ip", False)])
def test_a_min_score_that_nothing_can_reach_is_refused(client: ClientAPI, distance: Any, refused: bool):
    def construct() -> ChromaManager:
        return ChromaManager(client=client, embedding_function=HashEmbedder(), distance=distance, min_score=1.5)

    if refused:
        with pytest.raises(AKConfigError, match=rf"distance '{distance}', whose scores are at most 1; min_score=1.5"):
            construct()
    else:
        assert construct().search("anything") == []


class Judge:
    """An embedding function that is asked which texts are related, and answers as it is told."""

    name = "judge"

    def __init__(self, related: Callable[[str, list[str]], Any]) -> None:
        self.related = related

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]


def test_any_function_may_tell_what_is_related(client: ClientAPI):
    manager = ChromaManager(
        client=client, embedding_function=Judge(lambda query, texts: [query[0] == text[0] for text in texts])
    )
    manager.write([{"text": text} for text in ("apple", "banana", "avocado")])

    assert sorted(found["text"] for found in manager.search("a")) == ["apple", "avocado"]


def fails(query: str, texts: list[str]) -> list[bool]:
    raise RuntimeError("key=SECRET")


@pytest.mark.parametrize(
    ("related", "message"),
    [
        (fails, "'judge' of 'chromadb' raised RuntimeError"),
        (lambda query, texts: None, "raised TypeError"),
        (lambda query, texts: [True] * (len(texts) + 1), "answered 2 times for 1 texts when asked which are related"),
    ],
)
def test_a_wrong_answer_to_what_is_related_is_a_clear_error(client: ClientAPI, related: Any, message: str):
    manager = ChromaManager(client=client, embedding_function=Judge(related))
    manager.write([{"text": "text"}])

    with pytest.raises(KnowledgeBackendError, match=message) as caught:
        manager.search("text")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("seed", range(3))
def test_which_of_many_equal_records_are_shown_depends_on_their_ids_only(client: ClientAPI, seed: int):
    manager = ChromaManager(client=client, embedding_function=HashEmbedder(16))
    names = [f"{number:03}" for number in range(100)]
    random.Random(seed).shuffle(names)
    manager.write([{"text": "same", "metadata": {"id": name}} for name in names])
    manager.write([{"text": "same same", "metadata": {"id": "first"}}, {"text": "same other", "metadata": {"id": "last"}}])

    assert ids(manager.search("same", limit=3)) == ["000", "001", "002"]
