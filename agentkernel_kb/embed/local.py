"""What embedders of a model on this machine have in common: its files, its identity, batches of texts of like length."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agentkernel_kb.embed.calls import Vectors, check_count, checked, failure, in_batches, texts_of
from agentkernel_kb.errors import AKConfigError

_DIGEST_CHARS = 16


class LocalEmbedder(ABC):
    """Embeds with a model whose files are on this machine. Nothing is fetched, and nothing is read before the first use.

    A subclass has `_load`, which returns what it computes with, and `_vectors`, which embeds one batch with it.

    Args:
        path: Where the model is.
        query_prefix: Stands before each question, as some models want it.
        passage_prefix: Stands before each passage.
        batch_size: Most texts of one computation.
        max_tokens: Most tokens of a text; `None` for what the model says.

    Raises:
        AKConfigError: There is nothing at the path, or a number is out of range.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 32,
        max_tokens: int | None = None,
    ) -> None:
        self._subject = type(self).__name__
        if not isinstance(path, str | Path) or not str(path):
            raise AKConfigError(f"{self._subject}: path must be where a model is, not {path!r}.")
        self._path = Path(path).expanduser()
        try:
            is_there = self._path.exists()
        except OSError as error:
            raise unreadable(self._path, error) from error
        if not is_there:
            raise AKConfigError(f"{self._subject}: there is no model at {self._path}. Models are never downloaded.")
        check_count(self._subject, "batch_size", batch_size)
        check_count(self._subject, "max_tokens", max_tokens, optional=True)
        self._query_prefix, self._passage_prefix, self._batch_size = query_prefix, passage_prefix, batch_size
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._model: Any = None
        self._name = ""
        self._dimensions: int | None = None

    @property
    def name(self) -> str:
        """What its vectors are comparable under: a digest of the model's files, and what else decides them. Reads them once.

        Raises:
            AKConfigError: A file cannot be read.
        """
        with self._lock:
            if not self._name:
                parts = [f"{self._kind}:{_digest(self._identifying())}", *self._settings()]
                self._name = "|".join([*parts, self._query_prefix, self._passage_prefix]).rstrip("|")
            return self._name

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; `None` before the first one."""
        return self._dimensions

    def load(self) -> None:
        """Load the model now, in place of at the first use, which may be too late to hear that it can't be.

        Raises:
            AKConfigError: The files are no model of this kind.
            KnowledgeDependencyError: The extra is not installed.
        """
        with self._lock:
            if self._model is None:
                self._model = self._load()

    async def embed_documents(self, texts: Iterable[str]) -> Vectors:
        """Return one vector for each text, in order.

        Raises:
            AKConfigError: `texts` is no list of texts, or the files are no model of this kind.
            KnowledgeDependencyError: The extra is not installed.
            KnowledgeBackendError: The model failed.
        """
        return await self._embedded(
            [f"{self._passage_prefix}{text}" for text in texts_of(self._subject, texts)], is_query=False
        )

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            AKConfigError: As for `embed_documents`.
            KnowledgeDependencyError: As for `embed_documents`.
            KnowledgeBackendError: As for `embed_documents`.
        """
        return (await self.embed_queries([text]))[0]

    async def embed_queries(self, texts: Iterable[str]) -> Vectors:
        """Return one vector for each question, in order.

        Raises:
            AKConfigError: As for `embed_documents`.
            KnowledgeDependencyError: As for `embed_documents`.
            KnowledgeBackendError: As for `embed_documents`.
        """
        return await self._embedded([f"{self._query_prefix}{text}" for text in texts_of(self._subject, texts)], is_query=True)

    _kind: str

    @abstractmethod
    def _load(self) -> Any:
        """Return what `_vectors` computes with."""

    @abstractmethod
    def _vectors(self, model: Any, texts: list[str], *, is_query: bool) -> object:
        """Return one vector for each text of a batch."""

    @abstractmethod
    def _identifying(self) -> Sequence[Path]:
        """Return the files that decide the vectors."""

    def _settings(self) -> Sequence[str]:
        """Return what else decides them."""
        return ()

    async def _embedded(self, texts: list[str], *, is_query: bool) -> Vectors:
        """Embed texts of like length together, since a batch is padded to its longest."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))

        async def batch(texts: list[str]) -> Vectors:
            return await asyncio.to_thread(self._computed, texts, is_query)

        sorted_texts = [_encodable(texts[place]) for place in order]
        found = await in_batches(batch, sorted_texts, size=self._batch_size, concurrency=1)
        vectors: Vectors = [[]] * len(texts)
        for place, vector in zip(order, found, strict=True):
            vectors[place] = vector
        return vectors

    def _computed(self, texts: list[str], is_query: bool) -> Vectors:
        self.load()
        try:
            returned = self._vectors(self._model, texts, is_query=is_query)
        except Exception as error:  # A model's runtime may raise anything.
            raise failure(error, self._subject) from error
        vectors = checked(returned, len(texts), self._subject, self._dimensions)
        self._dimensions = len(vectors[0])
        return vectors

    def __repr__(self) -> str:
        return f"{self._subject}({str(self._path)!r})"


def unreadable(file: Path, error: OSError) -> AKConfigError:
    """Return what to raise for a model's file that cannot be read."""
    return AKConfigError(f"The model's file {file} cannot be read: {error.strerror or type(error).__name__}.")


def check_model(subject: str, path: Path, names: Sequence[str]) -> None:
    """Check that a model's folder has one of the files that make it one.

    Raises:
        AKConfigError: It has none of them.
    """
    if not any((path / name).is_file() for name in names):
        raise AKConfigError(f"{subject}: {path} is no folder of a model; it has no {' and no '.join(names)}.")


def files_below(folder: Path) -> list[Path]:
    """Return the files of a model's folder, sorted; without hidden ones and those for people."""
    below = (path for path in folder.rglob("*") if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return sorted(path for path in below if path.is_file() and path.suffix.lower() not in (".md", ".txt"))


def _digest(files: Sequence[Path]) -> str:
    """Return a digest of the files' contents, in order.

    Raises:
        AKConfigError: One cannot be read.
    """
    whole = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as opened:
                whole.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise unreadable(file, error) from error
    return whole.hexdigest()[:_DIGEST_CHARS]


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
