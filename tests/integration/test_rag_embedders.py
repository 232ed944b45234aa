"""Embedders (P4): the application's functions, and OpenAI's client against a service on loopback."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import openai
import pytest
from embedding_service import Service, embedding_service

from agentkernel_kb.embed import CallableEmbedder, HashEmbedder, OpenAIEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.rag import Embedder

EXACT = HashEmbedder(8)


def plain(texts: list[str]) -> list[list[float]]:
    return EXACT(texts)


async def asynchronous(texts: list[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return EXACT(texts)


def asynchronous_in_disguise(texts: list[str]):
    return asynchronous(texts)


class CallableObject:
    async def __call__(self, texts: list[str]) -> list[list[float]]:
        return EXACT(texts)


@pytest.mark.parametrize("function", [plain, asynchronous, asynchronous_in_disguise, CallableObject()])
async def test_any_function_embeds_in_order(function) -> None:
    embedder = CallableEmbedder(function, batch_size=2)
    texts = ["one", "two", "three", "four", "five"]
    assert await embedder.embed_documents(texts) == EXACT(texts)
    assert await embedder.embed_query("one") == EXACT(["one"])[0]
    assert await embedder.embed_documents([]) == []


async def test_questions_have_a_function_of_their_own_where_the_application_gives_one() -> None:
    embedder = CallableEmbedder(plain, lambda text: [float(len(text))] * 8)
    assert await embedder.embed_query("four") == [4.0] * 8


async def test_prefixes_stand_before_questions_and_passages() -> None:
    embedder = CallableEmbedder(plain, model_id="m", query_prefix="query: ", passage_prefix="passage: ")
    assert await embedder.embed_documents(["a"]) == EXACT(["passage: a"])
    assert await embedder.embed_query("a") == EXACT(["query: a"])[0]
    assert embedder.name != CallableEmbedder(plain, model_id="m").name


async def test_a_plain_function_does_not_block_the_loop() -> None:
    answered = threading.Event()

    def waits(texts: list[str]) -> list[list[float]]:
        assert answered.wait(5)
        return EXACT(texts)

    task = asyncio.create_task(CallableEmbedder(waits).embed_documents(["a"]))
    await asyncio.sleep(0.01)
    answered.set()
    assert await task == EXACT(["a"])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([], "0 vectors for 2 texts"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([[], []], "different lengths, or empty"),
        ([["a"], ["b"]], "vectors of numbers"),
        (None, "vectors of numbers"),
        ([[math.nan], [1.0]], "not finite"),
        ([[1e400], [1.0]], "not finite"),
    ],
)
async def test_what_a_function_returns_is_checked(returned, message) -> None:
    with pytest.raises(KnowledgeBackendError, match=message):
        await CallableEmbedder(lambda texts: returned).embed_documents(["a", "b"])


async def test_a_vector_of_another_length_than_declared_is_an_error_that_names_both() -> None:
    with pytest.raises(KnowledgeBackendError, match="8 dimensions in place of 5"):
        await CallableEmbedder(plain, dimensions=5).embed_query("a")


async def test_what_a_function_raises_is_told_without_its_text() -> None:
    def fails(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("key sk-secret")

    with pytest.raises(KnowledgeBackendError, match="RuntimeError") as failed:
        await CallableEmbedder(fails).embed_documents(["a"])
    assert "sk-secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (CallableEmbedder, {"embed_documents": 5}),
        (CallableEmbedder, {"embed_documents": plain, "embed_query": 5}),
        (CallableEmbedder, {"embed_documents": plain, "batch_size": 0}),
        (CallableEmbedder, {"embed_documents": plain, "dimensions": True}),
        (OpenAIEmbedder, {"client": object(), "model": "m"}),
        (OpenAIEmbedder, {"client": openai.OpenAI(api_key="x"), "model": ""}),
        (OpenAIEmbedder, {"client": openai.OpenAI(api_key="x"), "model": "m", "attempts": 0}),
    ],
)
def test_wrong_construction_is_refused(make, options) -> None:
    with pytest.raises(AKConfigError):
        make(**options)


@pytest.mark.parametrize("wrong", ["one text", [5], [None]])
async def test_what_is_no_list_of_texts_is_refused(wrong) -> None:
    with pytest.raises(AKConfigError, match="takes"):
        await CallableEmbedder(plain).embed_documents(wrong)


@pytest.fixture
def service():
    with embedding_service() as service:
        yield service


@pytest.fixture(params=[openai.OpenAI, openai.AsyncOpenAI])
async def client(request, service: Service):
    made = request.param(api_key="sk-secret", base_url=service.url, max_retries=0)
    yield made
    closing: Any = made.close()
    if closing is not None:
        await closing


async def test_a_client_of_either_kind_embeds_in_order(client, service: Service) -> None:
    embedder = OpenAIEmbedder(client, model="m", dimensions=8, batch_size=2, concurrency=2)
    texts = [f"text {n}" for n in range(9)]
    found = await embedder.embed_documents(texts)
    assert [[round(x, 5) for x in v] for v in found] == [[round(x, 5) for x in v] for v in EXACT(texts)]
    assert len(service.calls) == 5
    assert service.at_once <= 2


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_call_that_may_do_better_is_made_again_when_the_server_says(client, service: Service, status) -> None:
    service.refusals += [(status, "0"), (status, "0.01")]
    assert len(await OpenAIEmbedder(client, model="m").embed_query("a")) == 8
    assert len(service.calls) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_call_that_cannot_do_better_is_made_once_and_told_without_secrets(client, service: Service, status) -> None:
    service.refusals += [(status, None)]
    embedder = OpenAIEmbedder(client, model="m")
    with pytest.raises(KnowledgeBackendError, match="Embedding with m failed") as failed:
        await embedder.embed_query("a")
    assert len(service.calls) == 1
    assert "sk-secret" not in f"{failed.value} {embedder!r}"


async def test_attempts_end(client, service: Service) -> None:
    service.refusals += [(429, "0")] * 10
    with pytest.raises(KnowledgeBackendError, match="RateLimitError"):
        await OpenAIEmbedder(client, model="m", attempts=3).embed_query("a")
    assert len(service.calls) == 3


async def test_one_failed_batch_ends_the_others(client, service: Service) -> None:
    service.refusals += [(400, None)]
    with pytest.raises(KnowledgeBackendError):
        await OpenAIEmbedder(client, model="m", batch_size=1, concurrency=1).embed_documents(["a", "b", "c"])
    assert len(service.calls) == 1


def test_vectors_of_other_models_dimensions_or_prefixes_have_other_names() -> None:
    client = openai.OpenAI(api_key="x")
    options: list[dict[str, Any]] = [{}, {"dimensions": 8}, {"query_prefix": "q: "}, {"passage_prefix": "q: "}]
    assert len({OpenAIEmbedder(client, model=model, **each).name for each in options for model in ("a", "b")}) == 8


def test_every_embedder_is_one_by_its_methods() -> None:
    assert isinstance(CallableEmbedder(plain), Embedder)
    assert isinstance(OpenAIEmbedder(openai.OpenAI(api_key="x"), model="m"), Embedder)
    assert isinstance(HashEmbedder(), Embedder)
