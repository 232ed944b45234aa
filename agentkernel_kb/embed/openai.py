"""OpenAIEmbedder: an OpenAI-compatible client that the application made, plain or asynchronous."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from agentkernel_kb.embed.calls import Vectors, call, check_count, checked, failure, in_batches, may_pass, texts_of
from agentkernel_kb.errors import AKConfigError

if TYPE_CHECKING:
    from tenacity import RetryCallState

_MOST_WAIT_SECONDS = 60.0


class OpenAIEmbedder:
    """Embeds through `client.embeddings.create(…)`. The client, its address and its key stay the application's.

    A call that is refused for its rate, or fails on the server, is made again after what the server's `Retry-After` says, or
    after a random and growing time.

    Args:
        client: `openai.OpenAI`, `openai.AsyncOpenAI`, or what is used like them.
        model: Name of the model.
        dimensions: Length of a vector that is asked for; without it the model's own.
        query_prefix: Stands before each question, as some models want it.
        passage_prefix: Stands before each passage.
        batch_size: Most texts of a call.
        concurrency: Most calls at once.
        attempts: How often a call is made at most.

    Raises:
        AKConfigError: The client has no `embeddings.create`, or a number is out of range.
    """

    supports_multimodal: ClassVar[bool] = False
    """It takes texts only."""

    def __init__(
        self,
        client: Any,
        *,
        model: str,
        dimensions: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 128,
        concurrency: int = 4,
        attempts: int = 6,
    ) -> None:
        create = getattr(getattr(client, "embeddings", None), "create", None)
        if not callable(create):
            raise AKConfigError("OpenAIEmbedder takes a client that has embeddings.create(model=…, input=…).")
        if not isinstance(model, str) or not model:
            raise AKConfigError(f"OpenAIEmbedder: model must be the name of a model, not {model!r}.")
        check_count("OpenAIEmbedder", "dimensions", dimensions, optional=True)
        for name, value in (("batch_size", batch_size), ("concurrency", concurrency), ("attempts", attempts)):
            check_count("OpenAIEmbedder", name, value)
        self._create, self._model, self._dimensions = create, model, dimensions
        self._query_prefix, self._passage_prefix = query_prefix, passage_prefix
        self._batch_size, self._concurrency, self._attempts = batch_size, concurrency, attempts

    @property
    def name(self) -> str:
        """What vectors are comparable under: model, dimensions asked for, prefixes."""
        parts = [f"openai:{self._model}", str(self._dimensions or ""), self._query_prefix, self._passage_prefix]
        return "|".join(parts).rstrip("|")

    @property
    def dimensions(self) -> int | None:
        """Length of a vector that is asked for; `None` for the model's own."""
        return self._dimensions

    async def embed_documents(self, texts: Iterable[str]) -> Vectors:
        """Return one vector for each text, in order.

        Raises:
            AKConfigError: `texts` is no list of texts.
            KnowledgeBackendError: The service failed for good, or returned something else than as many vectors.
        """
        given = [f"{self._passage_prefix}{text}" for text in texts_of("OpenAIEmbedder", texts)]
        return await in_batches(self._batch, given, size=self._batch_size, concurrency=self._concurrency)

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            KnowledgeBackendError: As for `embed_documents`.
        """
        given = [f"{self._query_prefix}{each}" for each in texts_of("OpenAIEmbedder", [text])]
        return (await self._batch(given))[0]

    async def _batch(self, texts: list[str]) -> Vectors:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        asked: dict[str, Any] = {"model": self._model, "input": texts}
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self._attempts), wait=_wait, retry=retry_if_exception(may_pass), reraise=True
            ):
                with attempt:
                    answer = await call(self._create, **asked)
                    return checked(_in_order(answer), len(texts), f"The model {self._model}", self._dimensions)
        except Exception as error:  # The client may raise anything, and its text may hold a key.
            raise failure(error, f"Embedding with {self._model}") from error
        raise AssertionError("a retry ends with a value or an error")

    def __repr__(self) -> str:
        return f"OpenAIEmbedder(model={self._model!r}, dimensions={self._dimensions})"


def _in_order(answer: Any) -> list[Any]:
    """Return the vectors of an answer in the order of their texts, which each names by number."""
    return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]


def _wait(state: RetryCallState) -> float:
    from tenacity.wait import wait_random_exponential

    error = state.outcome.exception() if state.outcome else None
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return min(max(0.0, float(headers.get("retry-after"))), _MOST_WAIT_SECONDS)
    except (TypeError, ValueError):
        return wait_random_exponential(multiplier=0.5, max=_MOST_WAIT_SECONDS)(state)
