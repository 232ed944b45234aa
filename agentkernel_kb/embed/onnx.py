"""OnnxEmbedder: a sentence embedding model in ONNX's format, run by ONNX Runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from agentkernel_kb.embed.calls import check_count
from agentkernel_kb.embed.local import LocalEmbedder, unreadable
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

Pooling = Literal["mean", "cls"]
"""How the vectors of tokens become one: their mean, or the first one."""

_MODELS = ("model.onnx", "onnx/model.onnx")
_MODE = "pooling_mode_"
_POOLINGS: dict[str, Pooling] = {"mean": "mean", "cls": "cls", "mean_tokens": "mean", "cls_token": "cls"}
_MOST_TOKENS = 512
_MOST_THREADS = 4
_PER_TOKEN, _PER_TEXT = 3, 2
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True)
class _Loaded:
    session: Any
    tokenizer: Tokenizer
    inputs: frozenset[str]
    output: str
    is_pooled: bool


class OnnxEmbedder(LocalEmbedder):
    """Embeds with a model in ONNX's format and its `tokenizer.json`, as exports of sentence-transformers have them.

    Vectors of tokens are pooled under the attention mask. Needs the extra `onnx`.

    Args:
        path: The `.onnx` file, or the folder that has it as `model.onnx` or `onnx/model.onnx`.
        tokenizer: The tokenizer's file; by default `tokenizer.json` beside the model, or in the folder above it.
        pooling: `mean` or `cls`. By default what the folder's `1_Pooling/config.json` says, else `mean`. A model that
            returns one vector for each text is not pooled.
        normalize: Make each vector of length 1.
        max_tokens: Most tokens of a text; what is longer is cut. By default what the folder's `sentence_bert_config.json`
            says, or its `tokenizer_config.json` where that is less than 512; else 512.
        query_prefix: Stands before each question, as some models want it.
        passage_prefix: Stands before each passage.
        batch_size: Most texts of one computation.
        threads: Threads of a computation; by default one for each core that this process may use, at most 4.

    Raises:
        AKConfigError: There is no model or no tokenizer, or an argument is out of range.
    """

    _kind = "onnx"

    def __init__(
        self,
        path: str | Path,
        *,
        tokenizer: str | Path | None = None,
        pooling: Pooling | None = None,
        normalize: bool = True,
        max_tokens: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 32,
        threads: int | None = None,
    ) -> None:
        prefixes = {"query_prefix": query_prefix, "passage_prefix": passage_prefix}
        super().__init__(path, **prefixes, batch_size=batch_size, max_tokens=max_tokens)
        check_count("OnnxEmbedder", "threads", threads, optional=True)
        if pooling is not None and pooling not in get_args(Pooling):
            raise AKConfigError(f"OnnxEmbedder: pooling must be one of {', '.join(get_args(Pooling))}, not {pooling!r}.")
        self._file = _model_file(self._path)
        self._tokenizer_file = _tokenizer_file(self._file, tokenizer)
        folder = self._tokenizer_file.parent
        self._pooling = pooling or _pooling_of(folder)
        self._max_tokens = max_tokens or _max_tokens_of(folder) or _MOST_TOKENS
        self._normalize = normalize
        self._threads = threads or min(_cores(), _MOST_THREADS)

    def _identifying(self) -> Sequence[Path]:
        """Return the model, the weights that it keeps beside itself, and the tokenizer."""
        beside = self._file.parent.glob(f"{self._file.stem}*data")
        return [self._file, *sorted(beside), self._tokenizer_file]

    def _settings(self) -> Sequence[str]:
        return (self._pooling, "unit" if self._normalize else "raw", str(self._max_tokens))

    def _load(self) -> _Loaded:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise KnowledgeDependencyError("onnx", "OnnxEmbedder") from error
        runtime: Any = onnxruntime
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = 3  # Errors: what it warns of is about how the model was exported.
        try:
            session = runtime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # Its exceptions have no common base of their own.
            raise AKConfigError(f"{self._file} is no ONNX model that can be run: {type(error).__name__}.") from error
        return self._checked(session, self._read_tokenizer(Tokenizer))

    def _read_tokenizer(self, kind: type[Tokenizer]) -> Tokenizer:
        try:
            tokenizer = kind.from_file(str(self._tokenizer_file))
        except Exception as error:  # It raises bare exceptions.
            raise AKConfigError(f"{self._tokenizer_file} is no tokenizer that can be read.") from error
        tokenizer.no_padding()
        cast("Any", tokenizer).enable_truncation(self._max_tokens)  # Its stubs leave an argument without a type.
        return tokenizer

    def _checked(self, session: Any, tokenizer: Tokenizer) -> _Loaded:
        """Check that a model takes tokens and returns vectors."""
        inputs = frozenset(str(each.name) for each in session.get_inputs())
        if "input_ids" not in inputs or not inputs <= set(_INPUTS):
            raise AKConfigError(f"{self._file} is no model of texts: it takes {', '.join(sorted(inputs)) or 'nothing'}.")
        outputs = {len(each.shape): str(each.name) for each in reversed(session.get_outputs())}
        if not outputs.keys() & {_PER_TOKEN, _PER_TEXT}:
            raise AKConfigError(f"{self._file} returns no vectors of tokens or texts.")
        is_pooled = _PER_TOKEN not in outputs
        return _Loaded(session, tokenizer, inputs, outputs[_PER_TEXT if is_pooled else _PER_TOKEN], is_pooled)

    def _vectors(self, model: _Loaded, texts: list[str], *, is_query: bool) -> object:
        import numpy

        ids, mask = self._tokens(model, texts)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        (found,) = model.session.run([model.output], {name: given[name] for name in model.inputs})
        vectors = found if model.is_pooled else self._pooled(found, mask)
        if self._normalize:
            vectors = vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors.tolist()

    def _tokens(self, model: _Loaded, texts: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the tokens of texts, filled up to the longest, and which of them count.

        One text at a time: to tokenize them all at once starts a thread for each core, which nothing but a variable of the
        environment bounds.
        """
        import numpy

        listed = [model.tokenizer.encode(text).ids for text in texts]
        shape = (len(listed), max(1, *map(len, listed)))
        ids, mask = numpy.zeros(shape, numpy.int64), numpy.zeros(shape, numpy.int64)
        for row, tokens in enumerate(listed):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        return ids, mask

    def _pooled(self, tokens: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
        if self._pooling == "cls":
            return tokens[:, 0]
        counted = mask[:, :, None].astype(tokens.dtype)
        return (tokens * counted).sum(axis=1) / counted.sum(axis=1).clip(min=1)


def _model_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = next((path / name for name in _MODELS if (path / name).is_file()), None)
    if found is None:
        raise AKConfigError(f"OnnxEmbedder: {path} has no {' and no '.join(_MODELS)}; name the file of the model itself.")
    return found


def _tokenizer_file(model: Path, given: str | Path | None) -> Path:
    looked = [Path(given).expanduser()] if given else [model.parent / "tokenizer.json", model.parent.parent / "tokenizer.json"]
    found = next((path for path in looked if path.is_file()), None)
    if found is None:
        raise AKConfigError(f"OnnxEmbedder: there is no tokenizer at {' or '.join(map(str, looked))}; name its file.")
    return found


def _pooling_of(folder: Path) -> Pooling:
    """Return how a folder's vectors are pooled.

    Raises:
        AKConfigError: In a way that is not known here.
    """
    said = _json(folder / "1_Pooling/config.json")
    modes = [name.removeprefix(_MODE) for name, is_on in said.items() if name.startswith(_MODE) and is_on is True]
    mode = said.get("pooling_mode")  # How version 6 of sentence-transformers writes it.
    modes += mode if isinstance(mode, list) else [mode] if mode else []
    if len(modes) > 1 or (modes and modes[0] not in _POOLINGS):
        named = ", ".join(map(str, modes))
        raise AKConfigError(f"OnnxEmbedder: {folder} pools by {named}; known are {', '.join(_POOLINGS)}. Give pooling=.")
    return _POOLINGS[modes[0]] if modes else "mean"


def _max_tokens_of(folder: Path) -> int | None:
    """Return how many tokens of a text a folder says that its model takes, `None` where it says nothing."""
    for file, key, most in (
        ("sentence_bert_config.json", "max_seq_length", None),
        ("tokenizer_config.json", "model_max_length", _MOST_TOKENS),  # Some say a number that stands for no limit.
    ):
        said = _json(folder / file).get(key)
        if isinstance(said, int) and not isinstance(said, bool) and said > 0:
            return min(said, most or said)
    return None


def _json(file: Path) -> dict[str, Any]:
    """Return what a file of settings holds; nothing where there is none.

    Raises:
        AKConfigError: It is no JSON object, or cannot be read.
    """
    if not file.is_file():
        return {}
    try:
        held: object = json.loads(file.read_bytes())
    except OSError as error:
        raise unreadable(file, error) from error
    except ValueError as error:
        raise AKConfigError(f"{file} is no JSON.") from error
    if not isinstance(held, dict):
        raise AKConfigError(f"{file} holds no JSON object.")
    return cast("dict[str, Any]", held)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
