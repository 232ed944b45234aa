"""The embedding function of a collection: how it is named, how it is called, and what is checked about its vectors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeError

DEFAULT_NAME = "default"
"""The name of Chroma's default model, as Chroma stores it."""

_SAME_AS_DEFAULT = "onnx_mini_lm_l6_v2"
_MODEL_SETTINGS = ("model_name", "model", "model_id", "repo_id", "dimensions", "dimension")
_MODEL_FILES = ("config.json", "model.onnx", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt")
_TEXTS_PER_CALL = 256
_LARGEST_FLOAT32 = 3.4028234663852886e38

Vectors = list[list[float]]

T = TypeVar("T")


class EmbedsTexts(Protocol):
    """An object that embeds documents and queries each in its own way."""

    def embed_documents(self, texts: list[str], /) -> Any:
        """Return one vector for each text."""
        ...

    def embed_query(self, text: str, /) -> Any:
        """Return the vector of a query."""
        ...


EmbeddingFunction = Callable[[list[str]], Any] | EmbedsTexts
"""What can be given as an embedding function; those of Chroma are callables of this kind."""


class Embedding:
    """Texts to vectors, through whatever function the application gave.

    Args:
        function: `None` for Chroma's default model, an embedding function of Chroma, an object with `embed_documents(texts)`
            and `embed_query(text)`, or any callable from a list of texts to as many vectors.
        subject: Name of the backend, for messages.
        download: Chroma's default model may be fetched where it is absent.

    Raises:
        AKConfigError: `function` is none of these.
    """

    def __init__(self, function: object, subject: str, *, download: bool = False) -> None:
        self._subject = subject
        chosen = DefaultModel(subject, download=download) if function is None else function
        self._embed_documents, self._embed_query = _callables(chosen, subject)
        self.name = DEFAULT_NAME if function is None else name_of(chosen)
        declared = getattr(chosen, "dimensions", None)
        self._related = _related_of(chosen)
        self.dimensions = declared if isinstance(declared, int) and not isinstance(declared, bool) else None

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, all of one length.

        Raises:
            KnowledgeBackendError: The function failed, or did not return as many vectors of finite numbers, all of one length.
        """
        vectors: Vectors = []
        for start in range(0, len(texts), _TEXTS_PER_CALL):
            part = list(texts[start : start + _TEXTS_PER_CALL])
            vectors += self._checked(self._call(self._embed_documents, part), len(part))
        if len({len(vector) for vector in vectors}) > 1:
            raise self._failure("returned vectors of different lengths")
        return vectors

    def query(self, text: str) -> list[float]:
        """Return the vector of a query.

        Raises:
            KnowledgeBackendError: As for `documents`.
        """
        return self._checked(self._call(self._embed_query, [text]), 1)[0]

    def related_to(self, query: str) -> Callable[[Sequence[str]], Sequence[bool]] | None:
        """Return what tells which texts have anything in common with `query`, or `None` where the function cannot tell.

        What is returned raises a `KnowledgeBackendError` if the function fails, or does not answer for each text.
        """
        related = self._related
        if related is None:
            return None

        def ask(texts: Sequence[str]) -> list[bool]:
            answers = self._call(lambda given: [bool(answer) for answer in related(query, given)], list(texts))
            if len(answers) != len(texts):
                raise self._failure(f"answered {len(answers)} times for {len(texts)} texts when asked which are related")
            return answers

        return ask

    def _call(self, function: Callable[[list[str]], T], texts: list[str]) -> T:
        try:
            return function(texts)
        except KnowledgeError:
            raise
        except Exception as error:  # The application's function may raise anything, and its text may hold a key.
            raise self._failure(f"raised {type(error).__name__}") from error

    def _checked(self, returned: object, expected: int) -> Vectors:
        if inspect.iscoroutine(returned):
            returned.close()
            raise self._failure("is asynchronous; give a plain function")
        try:
            vectors = [_numbers(vector) for vector in cast("Iterable[object]", _plain(returned))]
        except (TypeError, ValueError, OverflowError) as error:
            raise self._failure("did not return a list of vectors of numbers") from error
        if len(vectors) != expected:
            raise self._failure(f"returned {len(vectors)} vectors for {expected} texts")
        if not all(vectors):
            raise self._failure("returned an empty vector")
        if not all(-_LARGEST_FLOAT32 <= number <= _LARGEST_FLOAT32 for vector in vectors for number in vector):
            raise self._failure("returned numbers that are not finite 32-bit floats")
        return vectors

    def _failure(self, what: str) -> KnowledgeBackendError:
        return KnowledgeBackendError(f"The embedding function '{self.name}' of '{self._subject}' {what}.")


class DefaultModel:
    """Chroma's default model, run from the files on this machine; they are fetched only where that is allowed."""

    def __init__(self, subject: str, *, download: bool) -> None:
        self._subject = subject
        self._download = download
        self._function: Callable[[list[str]], object] | None = None

    def __call__(self, texts: list[str]) -> object:
        """Return the vectors of `texts`.

        Raises:
            AKConfigError: The model is not on this machine and may not be fetched.
        """
        if self._function is None:
            self._function = self._load()
        return self._function(texts)

    def _load(self) -> Callable[[list[str]], object]:
        from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

        folder = Path(ONNXMiniLM_L6_V2.DOWNLOAD_PATH) / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
        if not self._download and not all((folder / name).is_file() for name in _MODEL_FILES):
            raise AKConfigError(
                f"'{self._subject}' has no embedding function: Chroma's default model is not on this machine, and nothing "
                "is downloaded unasked. Pass embedding_function=, for example agentkernel_kb.embed.HashEmbedder(), or "
                "download=True."
            )
        model = ONNXMiniLM_L6_V2()
        model.tqdm = functools.partial(model.tqdm, disable=True)  # A library draws no progress bar into its host's output.
        return model


def name_of(function: object) -> str:
    """Return the fingerprint of an embedding function: its own `name` where it has one, else where it is defined.

    An embedding function of Chroma is named with its model. Two lambdas of one function, or two instances of one class without
    a `name`, have the same fingerprint.
    """
    own = getattr(function, "name", None)
    own = own() if callable(own) and not _is_chromas_default(own) else own
    if isinstance(own, str) and own.strip():
        return name_with_settings(own, _settings(function))
    if isinstance(function, functools.partial):
        return f"partial({name_of(function.func)})"
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{getattr(named, '__qualname__', '')}"


def name_with_settings(name: str, settings: Mapping[str, Any]) -> str:
    """Return the fingerprint of a function that Chroma knows by name and settings, such as `openai(text-embedding-3-small)`."""
    if name in (DEFAULT_NAME, _SAME_AS_DEFAULT):
        return DEFAULT_NAME
    chosen = [str(settings[key]) for key in _MODEL_SETTINGS if settings.get(key) is not None]
    return f"{name}({', '.join(chosen)})" if chosen else name


def stored_name(configuration: Mapping[str, Any]) -> str | None:
    """Return the fingerprint of the function that Chroma itself has stored with a collection, if there is one."""
    stored: object = configuration.get("embedding_function")
    if not isinstance(stored, Mapping):
        return None
    function = cast("Mapping[str, Any]", stored)
    name, settings = function.get("name"), function.get("config")
    if not isinstance(name, str):
        return None
    return name_with_settings(name, cast("Mapping[str, Any]", settings) if isinstance(settings, Mapping) else {})


def _settings(function: object) -> Mapping[str, Any]:
    describe = getattr(function, "get_config", None)
    if not callable(describe) or _is_chromas_default(describe):
        return {}
    settings = describe()
    return cast("Mapping[str, Any]", settings) if isinstance(settings, Mapping) else {}


def _is_chromas_default(method: object) -> bool:
    """Tell whether a method is the one of Chroma's protocol, which only warns that it should have been overridden."""
    return str(getattr(method, "__qualname__", "")).startswith("EmbeddingFunction.")


def _callables(function: Any, subject: str) -> tuple[Callable[[list[str]], object], Callable[[list[str]], object]]:
    """Return how to embed documents and how to embed a list of one query."""
    if isinstance(function, type):
        raise AKConfigError(f"'{subject}': embedding_function is not the class {function.__name__} but an instance of it.")
    documents, query = getattr(function, "embed_documents", None), getattr(function, "embed_query", None)
    if callable(documents) and callable(query):
        of_texts = cast("EmbedsTexts", function)
        return of_texts.embed_documents, lambda texts: [of_texts.embed_query(text) for text in texts]
    if not callable(function):
        raise AKConfigError(
            f"'{subject}': embedding_function must be a callable from a list of texts to a list of vectors, "
            f"not {type(function).__name__}."
        )
    called = cast("Callable[[list[str]], object]", function)
    return called, cast("Callable[[list[str]], object]", query) if callable(query) else called


def _related_of(function: object) -> Callable[[str, list[str]], Iterable[object]] | None:
    """Return the method `related(query, texts)` of an embedding function that can tell what has nothing in common."""
    related = getattr(function, "related", None)
    return cast("Callable[[str, list[str]], Iterable[object]]", related) if callable(related) else None


def _plain(value: object) -> object:
    to_list = getattr(value, "tolist", None)  # NumPy arrays and what behaves like them.
    return to_list() if callable(to_list) else value


def _numbers(vector: object) -> list[float]:
    if isinstance(vector, str | bytes):
        raise TypeError("a vector is a list of numbers")
    return [float(number) for number in cast("Iterable[Any]", _plain(vector))]
