"""AutoLoader: whatever an application calls a source, as documents."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.loading.fetch import Fetcher
from agentkernel_kb.rag.loading.items import SourceItem, given, of_documents
from agentkernel_kb.rag.loading.paths import path_of
from agentkernel_kb.rag.loading.reading import documents_of
from agentkernel_kb.rag.loading.walk import Passed, walked
from agentkernel_kb.rag.parsers.base import ParserBase, well_formed
from agentkernel_kb.rag.parsers.files import MAX_BYTES, check_size, read_file, shown
from agentkernel_kb.rag.parsers.registry import PARSERS, ParserRegistry
from agentkernel_kb.rag.values import Document
from agentkernel_kb.store.base import DocumentStat
from agentkernel_kb.store.local import LocalDocumentStore
from agentkernel_kb.store.walking import stat_of

_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_PLAIN = "text/plain"


class AutoLoader:
    """Loads documents, files, folders, URLs, bytes and texts.

    A `Path` has to exist. So has a string without white space that ends in `/` or in a suffix that is known; any other string
    that names nothing is a text itself. Use `Document` for a text that looks like a path. `~` is the home folder.

    Folders are read file by file in the order of their paths. Left out are hidden names, folders of version control, caches
    and installed packages, files of a kind that no parser reads, links that lead out, pipes and devices. What should have been
    read and cannot be is a failure of that file alone.

    Args:
        fetcher: What fetches URLs; public hosts only by default.
        max_bytes: Most bytes of a file.
        parsers: Parsers that go before the registered ones, such as one of your own for `text/markdown`.

    Raises:
        AKConfigError: `max_bytes` is not positive, or a parser is none.
    """

    def __init__(
        self, *, fetcher: Fetcher | None = None, max_bytes: int = MAX_BYTES, parsers: Iterable[ParserBase] = ()
    ) -> None:
        if max_bytes <= 0:
            raise AKConfigError(f"AutoLoader: max_bytes must be positive, not {max_bytes}.")
        self._fetcher, self._max_bytes = fetcher or Fetcher(), max_bytes
        self._parsers = ParserRegistry(parsers, behind=PARSERS)

    async def load(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> list[Document]:
        """Return the documents of a source, all or none; `items` gives them one by one.

        Args:
            source: A document, path, URL, text or bytes.
            metadata: Is added to what each document says about itself, and counts before it.

        Raises:
            AKConfigError: It is of no kind that is known, does not exist, or must not be fetched.
            KnowledgeBackendError: It, or something in it, cannot be read.
        """
        found: list[Document] = []
        async for item in self.items(source, metadata=metadata):
            if not item.skipped:
                found += await item.load()
        return found

    async def items(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> AsyncGenerator[SourceItem]:
        """Yield what stands in a source, one file after the other, unread.

        Raises:
            AKConfigError: As for `load`.
            KnowledgeConnectionError: A folder is gone, or may not be read.
        """
        extra = dict(metadata or {})
        match source:
            case Document():
                yield given(source, extra)
            case bytes() | bytearray():
                yield _text_item(bytes(source).decode("utf-8", "replace").removeprefix("\ufeff"), extra)
            case str() if _URL.fullmatch(source):
                yield SourceItem(source, partial(self._page, source, extra))
            case str() | os.PathLike():
                path = await asyncio.to_thread(path_of, cast("str | os.PathLike[str]", source), self._parsers)
                if path is None:
                    yield _text_item(well_formed(cast("str", source)), extra)
                elif path.is_dir():
                    async with aclosing(self._folder(path, extra)) as found:
                        async for item in found:
                            yield item
                else:
                    yield await asyncio.to_thread(self._file_item, path, extra)
            case _:
                raise AKConfigError(f"A source is a path, a URL, a text, bytes or a Document, not {type(source).__name__}.")

    async def _folder(self, root: Path, metadata: Mapping[str, Any]) -> AsyncGenerator[SourceItem]:
        store = LocalDocumentStore(root, writable=False)
        prefix, whole = _prefix(root.as_posix()), _prefix(os.path.realpath(root))
        async with aclosing(walked(str(store.root))) as entries:
            async for found in entries:
                name = f"{prefix}{found.path}"
                if isinstance(found, Passed):
                    yield _passed(found, name)
                elif (media_type := self._parsers.media_type_of(found.path)) is None:
                    yield SourceItem(name, of_documents([]), skipped=True, reason="is of a kind that no parser reads")
                else:
                    load = partial(self._in_folder, store, found, name, media_type, metadata)
                    yield SourceItem(name, load, found.version, identity=f"{whole}{found.path}")

    async def _in_folder(
        self, store: LocalDocumentStore, found: DocumentStat, name: str, media_type: str, metadata: Mapping[str, Any]
    ) -> list[Document]:
        check_size(name, found.size, self._max_bytes)
        content = await asyncio.to_thread(store.read_prefix_bytes, found.path, self._max_bytes + 1)
        check_size(name, len(content), self._max_bytes)  # It may have grown since.
        return await documents_of(content, name, media_type, self._parsers, metadata)

    def _file_item(self, path: Path, metadata: Mapping[str, Any]) -> SourceItem:
        name = path.as_posix()
        try:
            version = stat_of(name, path.stat()).version
        except OSError:  # Reading it says what is wrong.
            version = None
        return SourceItem(name, partial(self._file, path, metadata), version, identity=os.path.realpath(path))

    async def _file(self, path: Path, metadata: Mapping[str, Any]) -> list[Document]:
        name = path.as_posix()
        content = await asyncio.to_thread(read_file, path, self._max_bytes)
        return await documents_of(content, name, self._parsers.media_type_of(name) or _PLAIN, self._parsers, metadata)

    async def _page(self, url: str, metadata: Mapping[str, Any]) -> list[Document]:
        page = await self._fetcher.fetch(url)
        named = self._parsers.media_type_of(page.url.partition("?")[0]) if page.media_type == _PLAIN else None
        return await documents_of(page.content, url, named or page.media_type, self._parsers, metadata, page.charset)

    def __repr__(self) -> str:
        return f"AutoLoader(max_bytes={self._max_bytes})"


def _prefix(folder: str) -> str:
    return "" if folder == "." else f"{folder.rstrip('/')}/"


def _passed(found: Passed, name: str) -> SourceItem:
    async def fail() -> list[Document]:
        raise KnowledgeBackendError(f"{shown(name)} {found.reason}.")

    return SourceItem(name, fail, skipped=found.on_purpose, reason=found.reason)


def _text_item(text: str, metadata: Mapping[str, Any]) -> SourceItem:
    return SourceItem(f"text:{digest(text)}", of_documents([Document(text, None, dict(metadata))]), is_text=True)
