"""Model2VecEmbedder: static vectors of words, distilled from a sentence embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentkernel_kb.embed.local import LocalEmbedder, check_model, files_below
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError

_WEIGHTS = ("model.safetensors", "0_StaticEmbedding/model.safetensors")


class Model2VecEmbedder(LocalEmbedder):
    """Embeds with a folder that `StaticModel.save_pretrained` wrote, or a copy of a published one. Needs the extra `model2vec`.

    Args:
        path: The model's folder.
        max_tokens: Most tokens of a text; what is longer is cut. By default what the model says.
        query_prefix: Stands before each question.
        passage_prefix: Stands before each passage.
        batch_size: Most texts of one computation.

    Raises:
        AKConfigError: There is no model in the folder, or a number is out of range.
    """

    _kind = "model2vec"

    def __init__(
        self,
        path: str | Path,
        *,
        max_tokens: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 1024,
    ) -> None:
        prefixes = {"query_prefix": query_prefix, "passage_prefix": passage_prefix}
        super().__init__(path, **prefixes, batch_size=batch_size, max_tokens=max_tokens)
        # The library takes the name of a folder that holds no model for one to be downloaded.
        check_model(self._subject, self._path, _WEIGHTS)

    def _identifying(self) -> Sequence[Path]:
        return files_below(self._path)

    def _settings(self) -> Sequence[str]:
        return (str(self._max_tokens or ""),)

    def _load(self) -> Any:
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise KnowledgeDependencyError("model2vec", "Model2VecEmbedder") from error
        try:
            return StaticModel.from_pretrained(self._path.resolve())
        except Exception as error:  # It raises whatever the formats of its files raise.
            raise AKConfigError(f"{self._path} is no model of Model2Vec that can be read: {type(error).__name__}.") from error

    def _vectors(self, model: Any, texts: list[str], *, is_query: bool) -> object:
        limits = {} if self._max_tokens is None else {"max_length": self._max_tokens}
        return model.encode(texts, use_multiprocessing=False, **limits).tolist()
