"""SentenceTransformerEmbedder: a model of the library sentence-transformers, from a folder or as an object."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentkernel_kb.embed.local import LocalEmbedder, check_model, files_below
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError


class SentenceTransformerEmbedder(LocalEmbedder):
    """Embeds with a model that sentence-transformers loads from a folder. Needs the extra `sentence-transformers`.

    Where the model has prompts of its own for questions and passages, they stand before them. A model that is an object
    already, which has `encode(texts)`, goes into `CallableEmbedder(model.encode, model_id=…)`.

    Args:
        path: The model's folder.
        device: What computes, as PyTorch calls it; the processor by default.
        normalize: Make each vector of length 1.
        max_tokens: Most tokens of a text; what is longer is cut. By default what the model says.
        query_prefix: Stands before each question, in place of the model's own prompt.
        passage_prefix: Stands before each passage, in place of the model's own prompt.
        batch_size: Most texts of one computation.

    Raises:
        AKConfigError: There is no folder, or a number is out of range.
    """

    _kind = "sentence-transformers"

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "cpu",
        normalize: bool = True,
        max_tokens: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 32,
    ) -> None:
        prefixes = {"query_prefix": query_prefix, "passage_prefix": passage_prefix}
        super().__init__(path, **prefixes, batch_size=batch_size, max_tokens=max_tokens)
        check_model(self._subject, self._path, ["modules.json"])
        self._device, self._normalize = device, normalize

    def _identifying(self) -> Sequence[Path]:
        return files_below(self._path)

    def _settings(self) -> Sequence[str]:
        return ("unit" if self._normalize else "raw", str(self._max_tokens or ""))

    def _load(self) -> Any:
        try:
            # Its PyTorch is too large for the environment that types are checked in.
            import sentence_transformers  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise KnowledgeDependencyError("sentence-transformers", "SentenceTransformerEmbedder") from error
        library: Any = sentence_transformers
        try:
            with _without_bars():
                model: Any = library.SentenceTransformer(
                    str(self._path.resolve()), device=self._device, local_files_only=True, trust_remote_code=False
                )
        except Exception as error:  # It raises whatever the formats of its files raise.
            raise AKConfigError(f"{self._path} is no model that can be loaded: {type(error).__name__}.") from error
        if self._max_tokens is not None:
            model.max_seq_length = self._max_tokens
        return model

    def _vectors(self, model: Any, texts: list[str], *, is_query: bool) -> object:
        options: dict[str, Any] = {
            "batch_size": self._batch_size,
            "normalize_embeddings": self._normalize,
            "show_progress_bar": False,
        }
        if self._query_prefix if is_query else self._passage_prefix:
            return model.encode(texts, prompt="", **options).tolist()  # Without one, a model's default prompt stands there too.
        encode: Any = getattr(model, "encode_query" if is_query else "encode_document", model.encode)
        return encode(texts, **options).tolist()


@contextmanager
def _without_bars() -> Generator[None]:
    """Keep the library beneath from drawing on stderr how far it has come with reading a model."""
    import transformers  # pyright: ignore[reportMissingImports] - as above

    beneath: Any = transformers
    logging = beneath.utils.logging
    is_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if is_shown:
            logging.enable_progress_bar()
