"""AutoLoader: whatever an application calls a source, as documents."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.loading.fetch import Fetcher
from agentkernel_kb.rag.loading.items import SourceItem
from agentkernel_kb.rag.loading.media import MEDIA_TYPES, decoded, is_binary, media_type_of, readable
from agentkernel_kb.rag.values import Document

_IGNORED = frozenset(
    (".git", ".hg", ".svn", ".bzr", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".nox", ".cache", ".mypy_cache",
     ".pytest_cache", ".ruff_cache", ".idea", ".vscode", ".eggs")
)  # fmt: skip
_URL = re.compile(r"https?://", re.IGNORECASE)
_MOST_PATH_CHARS = 4_096


class AutoLoader:
    """Loads documents, files, folders, URLs, bytes and texts.

    A `Path` has to exist. So has a string without white space that ends in `/` or in a suffix that is loaded; any other string
    that names nothing is a text itself. Folders are read in the order of their names; folders of version control and caches,
    links that lead out, and files that are no text are left out. Use `Document` for a text that looks like a path.

    Args:
        fetcher: What fetches URLs; public hosts only by default.
        max_bytes: Most bytes of a file.

    Raises:
        AKConfigError: `max_bytes` is not positive.
    """

    def __init__(self, *, fetcher: Fetcher | None = None, max_bytes: int = 50_000_000) -> None:
        if max_bytes <= 0:
            raise AKConfigError(f"AutoLoader: max_bytes must be positive, not {max_bytes}.")
        self._fetcher, self._max_bytes = fetcher or Fetcher(), max_bytes

    async def load(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> list[Document]:
        """Return the documents of a source.

        Raises:
            AKConfigError: It is of no kind that is known, does not exist, or must not be fetched.
            KnowledgeBackendError: It cannot be read.
        """
        found: list[Document] = []
        async for item in self.items(source, metadata=metadata):
            if not item.skipped:
                found += await item.load()
        return found

    async def items(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> AsyncIterator[SourceItem]:
        """Yield what stands in a source, one file after the other, unread.

        Raises:
            AKConfigError: As for `load`.
        """
        extra = dict(metadata or {})
        match source:
            case Document():
                yield _item(source.source or source.id, [_with(source, extra)])
            case bytes() | bytearray():
                yield _text_item(bytes(source).decode("utf-8", "replace"), extra)
            case str() if _URL.match(source):
                yield SourceItem(source, partial(self._page, source, extra))
            case str() | os.PathLike():
                path = _path(cast("str | os.PathLike[str]", source))
                if path is None:
                    yield _text_item(cast("str", source), extra)
                    return
                for each in _walked(path):
                    yield await asyncio.to_thread(self._file_item, each, extra, path.is_dir())
            case _:
                raise AKConfigError(f"A source is a path, a URL, a text, bytes or a Document, not {type(source).__name__}.")

    def _file_item(self, path: Path, metadata: Mapping[str, Any], in_folder: bool) -> SourceItem:
        name = path.as_posix()
        stat = path.stat()
        if in_folder and (media_type_of(path.name) is None or stat.st_size > self._max_bytes):
            return SourceItem(name, _nothing, skipped=True)
        version = f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ino}"
        return SourceItem(name, partial(self._file, path, metadata), version)

    async def _file(self, path: Path, metadata: Mapping[str, Any]) -> list[Document]:
        return await asyncio.to_thread(self._read, path, metadata)

    def _read(self, path: Path, metadata: Mapping[str, Any]) -> list[Document]:
        with path.open("rb") as stream:
            content = stream.read(self._max_bytes + 1)
        if len(content) > self._max_bytes:
            raise KnowledgeBackendError(f"The file has more than {self._max_bytes:,} bytes.")
        if is_binary(content):
            raise KnowledgeBackendError("The file is no text.")
        media_type = media_type_of(path.name) or "text/plain"
        text, said = readable(decoded(content), media_type)
        return [Document(text, path.as_posix(), {**said, **metadata}, media_type=media_type)]

    async def _page(self, url: str, metadata: Mapping[str, Any]) -> list[Document]:
        page = await self._fetcher.fetch(url)
        text, said = readable(decoded(page.content, page.charset), page.media_type)
        return [Document(text, url, {**said, **metadata}, media_type=page.media_type)]

    def __repr__(self) -> str:
        return f"AutoLoader(max_bytes={self._max_bytes})"


def _path(source: str | os.PathLike[str]) -> Path | None:
    """Return the path that a source is; `None` for a text.

    Raises:
        AKConfigError: It is a path, and nothing is there.
    """
    if not isinstance(source, str):
        path = Path(source)
        if not path.exists():
            raise AKConfigError(f"There is no file or folder {path.as_posix()!r}.")
        return path
    if source and len(source) <= _MOST_PATH_CHARS and "\n" not in source and "\0" not in source:
        path = Path(source)
        if _exists(path):
            return path
        if re.search(r"\s", source) is None and (source.endswith("/") or path.suffix.lower() in MEDIA_TYPES):
            raise AKConfigError(
                f"There is no file or folder {source!r}. For a text that only looks like a path use Document(text=…)."
            )
    return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _walked(root: Path) -> Iterator[Path]:
    """Yield the files of a folder in the order of their names, or the file itself; links are followed only within it."""
    if not root.is_dir():
        yield root
        return
    real = root.resolve()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_file() and path.resolve().is_relative_to(real):
                yield path


def _with(document: Document, metadata: Mapping[str, Any]) -> Document:
    if not metadata:
        return document
    return Document(document.text, document.source, {**document.metadata, **metadata}, document.id, document.media_type)


def _text_item(text: str, metadata: Mapping[str, Any]) -> SourceItem:
    document = Document(text, None, dict(metadata))
    return _item(f"text:{digest(text)}", [document])


def _item(source: str, documents: list[Document]) -> SourceItem:
    async def load() -> list[Document]:
        return documents

    return SourceItem(source, load)


async def _nothing() -> list[Document]:
    return []
