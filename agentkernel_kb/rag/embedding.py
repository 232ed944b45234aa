"""An embedder as the pipeline uses it: plain or asynchronous, checked, and with a fingerprint to know its vectors by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from agentkernel_kb.embed.calls import Vectors, call, checked, failure
from agentkernel_kb.embed.hashed import HashEmbedder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunk import Chunk

_PROBE = "Knowledge is kept in passages, and found by what they mean."
_ROUNDED = 3


class Embedding:
    """Calls an embedder.

    Args:
        embedder: An object with `embed_documents(texts)` and `embed_query(text)`, plain or asynchronous.

    Raises:
        AKConfigError: It has not both.
    """

    def __init__(self, embedder: Any) -> None:
        documents, query = getattr(embedder, "embed_documents", None), getattr(embedder, "embed_query", None)
        if not callable(documents) or not callable(query):
            raise AKConfigError(
                f"An embedder has embed_documents(texts) and embed_query(text); {type(embedder).__name__} has not. "
                "CallableEmbedder makes one of plain functions."
            )
        self._documents, self._query = documents, query
        batch = getattr(embedder, "embed_queries", None)
        self._queries = batch if callable(batch) else None
        self._embedder = embedder
        self._fingerprint: dict[str, Any] | None = None
        self.is_multimodal = bool(getattr(embedder, "supports_multimodal", False))
        self.is_lexical = isinstance(embedder, HashEmbedder)
        self._subject = type(embedder).__name__

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, in order.

        Raises:
            KnowledgeBackendError: The embedder failed, or returned something else.
        """
        if not texts:
            return []
        try:
            returned = await call(self._documents, list(texts))
        except Exception as error:  # The application's embedder may raise anything.
            raise failure(error, self._subject) from error
        return checked(returned, len(texts), self._subject)

    async def chunks(self, chunks: Sequence[Chunk]) -> list[Sequence[float]]:
        """Return one vector for each chunk, in order; an empty one for data where only texts can be embedded.

        Raises:
            KnowledgeBackendError: As for `documents`.
        """
        taken = [chunk for chunk in chunks if self.is_multimodal or not chunk.is_data]
        contents = [chunk.content if chunk.is_data else chunk.text for chunk in taken]
        vectors = iter(await self.documents(cast("list[str]", contents)))
        return [next(vectors) if self.is_multimodal or not chunk.is_data else [] for chunk in chunks]

    async def queries(self, queries: Sequence[Any]) -> Vectors:
        """Return the vectors of several questions: in one call where the embedder has `embed_queries`, else all at once.

        Raises:
            KnowledgeBackendError: As for `documents`.
        """
        if self._queries is None or not queries:
            return await asyncio.gather(*(self.query(query) for query in queries))
        try:
            returned = await call(self._queries, list(queries))
        except Exception as error:  # The application's embedder may raise anything.
            raise failure(error, self._subject) from error
        return checked(returned, len(queries), self._subject)

    async def query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            KnowledgeBackendError: As for `documents`.
        """
        try:
            returned = await call(self._query, text)
        except Exception as error:  # The application's embedder may raise anything.
            raise failure(error, self._subject) from error
        return checked([returned], 1, self._subject)[0]

    async def fingerprint(self) -> dict[str, Any]:
        """Return what its vectors are known by: the model's name, or the vector of a probe text where it has none."""
        if self._fingerprint is None:
            # To know its name, an embedder may have to read its model's files.
            name: object = await asyncio.to_thread(getattr, self._embedder, "name", None)
            if isinstance(name, str) and name:
                self._fingerprint = {"model": name}
            else:
                (vector,) = await self.documents([_PROBE])
                self._fingerprint = {"model": self._subject, "probe": [round(value, _ROUNDED) for value in vector[:8]]}
        return self._fingerprint
