"""An embedder by a short name, for command lines and files: `hash`, `onnx:models/minilm`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentkernel_kb.embed.hashed import HashEmbedder
from agentkernel_kb.embed.model2vec import Model2VecEmbedder
from agentkernel_kb.embed.onnx import OnnxEmbedder
from agentkernel_kb.embed.sentence import SentenceTransformerEmbedder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.near import nearest

_LOCAL: dict[str, Callable[[str], Any]] = {
    "onnx": OnnxEmbedder,
    "model2vec": Model2VecEmbedder,
    "sentence-transformers": SentenceTransformerEmbedder,
}


KINDS = tuple(_LOCAL)
"""What stands before the path of a model."""


def named_embedder(name: str) -> Any:
    """Return an embedder by its kind and the path of its model.

    Args:
        name: `hash`, `onnx:PATH`, `model2vec:PATH` or `sentence-transformers:PATH`.

    Raises:
        AKConfigError: The kind is not known, or there is no such model at the path.
    """
    kind, _, path = name.partition(":")
    if kind == "hash" and not path:
        return HashEmbedder()
    if kind not in _LOCAL or not path:
        known = ["hash", *(f"{each}:PATH" for each in _LOCAL)]
        near = nearest(kind, ["hash", *_LOCAL])
        hint = f" Did you mean '{near}'?" if near and near != kind else ""
        raise AKConfigError(f"Unknown embedder {name!r}.{hint} Known: {', '.join(known)}.")
    return _LOCAL[kind](path)
