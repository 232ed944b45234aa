"""The files of a folder, streamed and contained: opened step by step beneath it, so that no link leads out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from agentkernel_kb.store.base import DocumentStat
from agentkernel_kb.store.walking import walk

IGNORED = frozenset(["CVS", "node_modules", "bower_components", "__pycache__", "__pypackages__", "venv", "site-packages"])
"""Folders that are not entered, beside hidden ones: of version control, of caches, of installed packages."""

_FIRST_BATCH, _LARGEST_BATCH = 8, 512
_ON_PURPOSE = ("is a symbolic link", "is no document")


@dataclass(frozen=True, slots=True)
class Passed:
    """What was passed over.

    Attributes:
        path: Where, beneath the folder.
        reason: Why, as the end of a sentence.
    """

    path: str
    reason: str

    @property
    def on_purpose(self) -> bool:
        """It is nothing that could be read, rather than something that should have been."""
        return self.reason.startswith(_ON_PURPOSE)


async def walked(root: str) -> AsyncGenerator[DocumentStat | Passed]:
    """Yield the files beneath a folder in the order of their paths, in batches that grow, each made in a thread.

    Raises:
        KnowledgeConnectionError: The folder is gone, or may not be read.
        KnowledgeBackendError: It cannot be listed.
    """
    size = _FIRST_BATCH
    with closing(_walked(root)) as found:
        while batch := await asyncio.to_thread(_taken, found, size):
            for each in batch:
                yield each
            size = min(2 * size, _LARGEST_BATCH)


def _taken(found: Iterator[DocumentStat | Passed], size: int) -> list[DocumentStat | Passed]:
    return list(islice(found, size))


def _walked(root: str) -> Generator[DocumentStat | Passed]:
    passed: list[Passed] = []
    for stat in walk(root, "", lambda path, reason: passed.append(Passed(path, reason)), leave_out=IGNORED):
        yield from passed
        passed.clear()
        yield stat
    yield from passed
