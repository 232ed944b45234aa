"""ChromaManager (row A11) and its embedding function: what may be given, what is checked, and that none is swapped silently."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import chromadb
import numpy as np
import pytest
from chromadb.api import ClientAPI
from chromadb.config import Settings
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.chroma.embedding import Embedding, name_of
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError

Vectors = list[list[float]]


def three(texts: list[str]) -> Vectors:
    return [[1.0, float(len(text)), 0.5] for text in texts]


def two(texts: list[str]) -> Vectors:
    return [[1.0, float(len(text))] for text in texts]


class ChromasOwn(chromadb.EmbeddingFunction[chromadb.Documents]):
    """An embedding function as Chroma wants it, with another vector for queries."""

    def __init__(self, model: str = "small") -> None:
        self.model = model

    def __call__(self, input: chromadb.Documents) -> chromadb.Embeddings:
        return cast("chromadb.Embeddings", [np.array([1.0, 0.0], dtype=np.float32) for _ in input])

    def embed_query(self, input: chromadb.Documents) -> chromadb.Embeddings:
        return cast("chromadb.Embeddings", [np.array([0.0, 1.0], dtype=np.float32) for _ in input])

    @staticmethod
    def name() -> str:
        return "acme"

    def get_config(self) -> dict[str, Any]:
        return {"model_name": self.model, "api_key_env_var": "ACME_KEY"}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> ChromasOwn:
        return ChromasOwn(config["model_name"])


class Documents:
    """An object of the kind that LangChain calls embeddings: not callable."""

    name = "documents"

    def embed_documents(self, texts: list[str], /) -> Vectors:
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str, /) -> list[float]:
        return [1.0, 1.0]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ClientAPI]:
    own = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    yield own
    cast("Any", own).close()


def write_and_find(client: ClientAPI, function: Any, **arguments: Any) -> float:
    manager = ChromaManager(client=client, embedding_function=function, **arguments)
    manager.write([{"text": "text"}])
    return manager.search("text")[0]["metadata"]["score"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (three, 1.0),
        (lambda texts: [(1, 0) for _ in texts], 1.0),  # pyright: ignore[reportUnknownLambdaType] - an application's lambda
        (lambda texts: np.ones((len(texts), 4), dtype=np.float64), 1.0),  # pyright: ignore[reportUnknownLambdaType] - as above
        (lambda texts: [np.ones(4, dtype=np.float32) for _ in texts], 1.0),  # pyright: ignore[reportUnknownLambdaType] - as above
        (HashEmbedder(16), 1.0),
        (ChromasOwn(), 0.0),
        (Documents(), math.sqrt(0.5)),
    ],
)
def test_any_callable_from_texts_to_vectors_will_do(client: ClientAPI, function: Any, expected: float):
    assert math.isclose(write_and_find(client, function), expected, abs_tol=1e-5)


async def asynchronous(texts: list[str]) -> Vectors:
    return three(texts)


def failing(texts: list[str]) -> Vectors:
    raise RuntimeError("key=SECRET")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda texts: three(texts)[1:], "returned 0 vectors for 1 texts"),
        (lambda texts: [[] for _ in texts], "returned an empty vector"),
        (lambda texts: [[math.nan] for _ in texts], "not finite"),
        (lambda texts: [[math.inf] for _ in texts], "not finite"),
        (lambda texts: [[1e39] for _ in texts], "not finite"),
        (lambda texts: [["1", "x"] for _ in texts], "did not return a list of vectors of numbers"),
        (lambda texts: ["12" for _ in texts], "did not return a list of vectors of numbers"),
        (lambda texts: [1.0 for _ in texts], "did not return a list of vectors of numbers"),
        (lambda texts: None, "did not return a list of vectors of numbers"),
        (asynchronous, "is asynchronous"),
        (failing, "raised RuntimeError"),
    ],
)
def test_wrong_vectors_are_a_clear_error(client: ClientAPI, function: Callable[[list[str]], Any], message: str):
    manager = ChromaManager(client=client, embedding_function=function)

    for call in (lambda: manager.write([{"text": "text"}]), lambda: manager.search("text")):
        with pytest.raises(KnowledgeBackendError, match=message) as caught:
            call()
        assert "SECRET" not in str(caught.value)
    assert client.get_collection("knowledge_base", embedding_function=None).count() == 0


def test_vectors_of_different_lengths_are_a_clear_error(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=lambda texts: [[1.0] * len(text) for text in texts])

    with pytest.raises(KnowledgeBackendError, match="returned vectors of different lengths"):
        manager.write([{"text": "a"}, {"text": "bb"}])


def test_another_function_is_refused_with_both_names_and_a_way_out(client: ClientAPI):
    write_and_find(client, HashEmbedder(64))

    with pytest.raises(AKConfigError) as caught:
        ChromaManager(client=client, embedding_function=HashEmbedder(128))

    message = str(caught.value)
    assert "built with the embedding function 'hash-64-v2', not with 'hash-128-v2'" in message
    assert "choose another collection_name=" in message


def test_another_dimension_is_refused_even_under_the_same_name(client: ClientAPI):
    def named(function: Any) -> Any:
        wrapped = functools.partial(function)
        cast("Any", wrapped).name = "ours"
        return wrapped

    write_and_find(client, named(three))
    manager = ChromaManager(client=client, embedding_function=named(two))

    for call in (lambda: manager.write([{"text": "text"}]), lambda: manager.search("text")):
        with pytest.raises(AKConfigError, match=r"holds vectors of 3 numbers, but the embedding function 'ours' gives 2"):
            call()


def test_another_distance_is_refused_and_none_keeps_what_there_is(client: ClientAPI):
    write_and_find(client, three, distance="l2")

    with pytest.raises(AKConfigError, match="built with the distance 'l2', not with 'cosine'"):
        ChromaManager(client=client, embedding_function=three, distance="cosine")
    assert write_and_find(client, three) == 1.0


def test_a_collection_that_never_held_a_vector_takes_any_function(client: ClientAPI):
    ChromaManager(client=client, embedding_function=HashEmbedder(64))

    assert math.isclose(write_and_find(client, three), 1.0, abs_tol=1e-5)


def test_of_two_functions_on_an_empty_collection_the_first_to_write_wins(client: ClientAPI):
    first = ChromaManager(client=client, embedding_function=HashEmbedder(64))
    second = ChromaManager(client=client, embedding_function=three)
    first.write([{"text": "text"}])

    for call in (lambda: second.write([{"text": "text"}]), lambda: second.search("text")):
        with pytest.raises(AKConfigError, match="built with the embedding function 'hash-64-v2'"):
            call()


def test_a_collection_made_by_chroma_itself_opens_with_the_function_it_names(client: ClientAPI):
    collection = client.create_collection("knowledge_base", embedding_function=cast("Any", ChromasOwn()))
    collection.add(ids=["1"], documents=["text"])

    assert ChromaManager(client=client, embedding_function=ChromasOwn()).search("text")[0]["metadata"]["id"] == "1"
    with pytest.raises(AKConfigError, match=r"function 'acme\(small\)', not with 'acme\(large\)'"):
        ChromaManager(client=client, embedding_function=ChromasOwn("large"))
    with pytest.raises(AKConfigError, match=r"function 'acme\(small\)', not with 'hash-2-v2'"):
        ChromaManager(client=client, embedding_function=HashEmbedder(2))


def test_a_collection_that_names_no_function_opens_if_the_dimension_fits_and_is_named_at_the_first_write(client: ClientAPI):
    collection = client.create_collection(
        "knowledge_base", embedding_function=None, metadata={"hnsw:space": "l2", "owner": "us"}
    )
    collection.add(ids=["1"], embeddings=[[1.0, 2.0, 3.0]], documents=["text"])

    with pytest.raises(AKConfigError, match=r"holds vectors of 3 numbers, but the embedding function 'hash-2-v2' gives 2"):
        ChromaManager(client=client, embedding_function=HashEmbedder(2))
    write_and_find(client, three)
    assert (client.get_collection("knowledge_base", embedding_function=None).metadata or {})["owner"] == "us"
    with pytest.raises(AKConfigError, match="not with 'hash-3-v2'"):
        ChromaManager(client=client, embedding_function=HashEmbedder(3))


def test_a_query_without_any_feature_finds_nothing_by_cosine(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=lambda texts: [[0.0, 0.0] for _ in texts])
    manager.write([{"text": "text"}])

    assert manager.search("text") == []


def test_functions_are_named_by_their_name_or_by_where_they_are_defined():
    named: Any = functools.partial(three)
    named.name = "ours"

    assert name_of(HashEmbedder(8)) == "hash-8-v2"
    assert name_of(ChromasOwn()) == "acme(small)"
    assert name_of(ONNXMiniLM_L6_V2()) == "default"
    assert name_of(three) == f"{__name__}.three"
    assert name_of(functools.partial(three)) == f"partial({__name__}.three)"
    assert name_of(named) == "ours"
    assert Embedding(None, "docs").name == "default"


@pytest.fixture
def without_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", folder)
    return folder


def test_where_the_default_model_is_absent_the_first_use_says_so_and_what_to_pass(client: ClientAPI, without_model: Path):
    manager = ChromaManager(client=client, name="docs")

    for call in (lambda: manager.write([{"text": "text"}]), lambda: manager.search("text")):
        with pytest.raises(AKConfigError, match=r"'docs' has no embedding function.*embedding_function=.*download=True"):
            call()
    assert not without_model.exists()


def test_after_that_error_another_function_can_be_given(client: ClientAPI, without_model: Path):
    with pytest.raises(AKConfigError):
        ChromaManager(client=client).write([{"text": "text"}])

    assert math.isclose(write_and_find(client, HashEmbedder(64)), 1.0, abs_tol=1e-5)
    assert not without_model.exists()
