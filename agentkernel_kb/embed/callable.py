"""CallableEmbedder: the application's own embedding functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from agentkernel_kb.embed.calls import Vectors, call, check_count, checked, failure, in_batches, texts_of
from agentkernel_kb.errors import AKConfigError


class CallableEmbedder:
    """Embeds with functions of the application, plain or asynchronous; plain ones run in a thread.

    Args:
        embed_documents: Takes a list of texts and returns as many vectors.
        embed_query: Takes one text and returns its vector; `embed_documents` does it where there is none.
        model_id: What the model is called, with its version: vectors of one name are comparable. Stored with an index, so that
            another model is noticed when it is opened; without a name the vector of a probe text is stored.
        dimensions: Length of a vector, where it is known.
        query_prefix: Stands before each question, as some models want it.
        passage_prefix: Stands before each passage.
        batch_size: Most texts of a call.
        concurrency: Most calls at once.

    Raises:
        AKConfigError: A function is none, or a number is out of range.
    """

    supports_multimodal: ClassVar[bool] = False
    """It takes texts only."""

    def __init__(
        self,
        embed_documents: Callable[[list[str]], Any],
        embed_query: Callable[[str], Any] | None = None,
        *,
        model_id: str | None = None,
        dimensions: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 128,
        concurrency: int = 4,
    ) -> None:
        if not callable(embed_documents) or not (embed_query is None or callable(embed_query)):
            raise AKConfigError(
                "CallableEmbedder takes functions: embed_documents(texts), and embed_query(text) if you have it."
            )
        check_count("CallableEmbedder", "dimensions", dimensions, optional=True)
        check_count("CallableEmbedder", "batch_size", batch_size)
        check_count("CallableEmbedder", "concurrency", concurrency)
        self._documents, self._query = embed_documents, embed_query
        self._model_id, self._dimensions = model_id, dimensions
        self._query_prefix, self._passage_prefix = query_prefix, passage_prefix
        self._batch_size, self._concurrency = batch_size, concurrency

    @property
    def name(self) -> str | None:
        """What the model is called, prefixes included; `None` where nobody said."""
        if self._model_id is None:
            return None
        prefixes = f"{self._query_prefix!r}-{self._passage_prefix!r}" if self._query_prefix or self._passage_prefix else ""
        return f"{self._model_id}{prefixes and f' {prefixes}'}"

    @property
    def dimensions(self) -> int | None:
        """Length of a vector, where it is known."""
        return self._dimensions

    async def embed_documents(self, texts: Iterable[str]) -> Vectors:
        """Return one vector for each text, in order.

        Raises:
            AKConfigError: `texts` is no list of texts.
            KnowledgeBackendError: The function failed, or did not return as many vectors of finite numbers of one length.
        """
        given = [f"{self._passage_prefix}{text}" for text in texts_of("CallableEmbedder", texts)]
        return await in_batches(self._batch, given, size=self._batch_size, concurrency=self._concurrency)

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            KnowledgeBackendError: As for `embed_documents`.
        """
        (given,) = (f"{self._query_prefix}{each}" for each in texts_of("CallableEmbedder", [text]))
        if self._query is None:
            return (await self._batch([given]))[0]
        try:
            returned = await call(self._query, given)
        except Exception as error:  # The application's function may raise anything.
            raise failure(error, "embed_query") from error
        return checked([returned], 1, "embed_query", self._dimensions)[0]

    async def _batch(self, texts: list[str]) -> Vectors:
        try:
            returned = await call(self._documents, texts)
        except Exception as error:  # The application's function may raise anything.
            raise failure(error, "embed_documents") from error
        return checked(returned, len(texts), "embed_documents", self._dimensions)

    def __repr__(self) -> str:
        return f"CallableEmbedder(model_id={self._model_id!r}, dimensions={self._dimensions})"
