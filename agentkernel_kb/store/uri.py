"""store_from_uri: the store that a line of configuration names. An error repeats nothing of a URI but its scheme."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.store.base import DocumentStore

SCHEMES = ("file", "python", "s3")

# One letter before a colon is a Windows drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,254}")
_FORMS = "a path, file:///…, s3://bucket/prefix or python:package.module.Class"


def store_from_uri(uri: str | Path, **options: Any) -> DocumentStore:
    """Return the store that `uri` names; see `DocumentStore.from_uri`.

    Raises:
        AKConfigError: The scheme is unknown, or the store cannot be made of this.
        KnowledgeDependencyError: It needs an extra that is not installed.
    """
    if isinstance(uri, os.PathLike):
        return _local(os.fspath(uri), **options)
    if not isinstance(uri, str) or not uri.strip():
        raise AKConfigError(f"A store needs {_FORMS}.")
    found = _SCHEME.match(uri)
    if not found:
        return _local(uri, **options)
    scheme = found[1].lower()
    make = _MAKERS.get(scheme)
    if make is None:
        raise AKConfigError(_unknown(scheme))
    return make(uri, **options)


def store_class(name: str) -> type[DocumentStore]:
    """Return the store class at a dotted path such as `package.module.Class`, imported now.

    Raises:
        AKConfigError: It cannot be imported, or is not a subclass of `DocumentStore`.
    """
    module_name, dot, class_name = name.replace(":", ".").rpartition(".")
    if not dot or not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise AKConfigError(f"A store class is named as package.module.Class, not {name[:200]!r}.")
    try:
        loaded: object = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:  # The import runs code of the application, which may raise anything.
        raise AKConfigError(f"The store class {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, DocumentStore)):
        raise AKConfigError(f"{name!r} is not a subclass of DocumentStore.")
    return loaded


def s3_place(uri: str) -> tuple[str, str]:
    """Return the bucket and the prefix of an S3 URI.

    Raises:
        AKConfigError: It names no bucket.
    """
    bucket, _, prefix = uri.partition(":")[2].removeprefix("//").partition("/")
    if not uri[2:].startswith("://") or not _BUCKET.fullmatch(bucket):
        raise AKConfigError("An S3 URI is s3://bucket/prefix; credentials and endpoint come from the environment.")
    return bucket, prefix


def _local(path: str, **options: Any) -> DocumentStore:
    from agentkernel_kb.store.local import LocalDocumentStore  # It knows the base, which leads here.

    return _made(LocalDocumentStore, (Path(path).expanduser(),), options)


def _file(uri: str, **options: Any) -> DocumentStore:
    parts = urlsplit(uri)
    if parts.query or parts.fragment:
        raise AKConfigError("A file:// URI has no query and no fragment; write ? as %3F and # as %23.")
    if parts.netloc.lower() not in ("", "localhost"):
        raise AKConfigError("A file:// URI names a folder of this machine: file:///srv/kb has three slashes.")
    path = unquote(parts.path, errors="surrogateescape")
    if not path.startswith("/") or "\0" in path:
        raise AKConfigError("A file:// URI has an absolute path: file:///srv/kb. A relative one has no scheme.")
    return _local(path, **options)


def _s3(uri: str, **options: Any) -> DocumentStore:
    from agentkernel_kb.store.s3 import S3DocumentStore

    return _made(S3DocumentStore, s3_place(uri), options)


def _python(uri: str, **options: Any) -> DocumentStore:
    return _made(store_class(uri.partition(":")[2].strip()), (), options)


_MAKERS: dict[str, Callable[..., DocumentStore]] = {"file": _file, "python": _python, "s3": _s3}


def _made(store: type[DocumentStore], arguments: tuple[Any, ...], options: dict[str, Any]) -> DocumentStore:
    if inspect.isabstract(store):
        missing = sorted(store.__abstractmethods__)
        raise AKConfigError(f"{store.__name__} cannot be made: it does not implement {missing}.")
    try:
        inspect.signature(store).bind(*arguments, **options)
    except TypeError as error:
        raise AKConfigError(f"{store.__name__} cannot be made of the options {sorted(options)}: {error}.") from error
    return store(*arguments, **options)


def _unknown(scheme: str) -> str:
    near = difflib.get_close_matches(scheme, SCHEMES, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"Unknown scheme {scheme[:40]!r} of a store; it takes {_FORMS}, and a path with a colon as ./a:b.{hint}"
