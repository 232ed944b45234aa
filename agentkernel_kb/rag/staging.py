"""Sources that are staged: indexed once, before the first search, whoever asks first; and not forgotten where that failed."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from agentkernel_kb.errors import KnowledgeBackendError
from agentkernel_kb.rag.values import IndexReport

_LOG = logging.getLogger("agentkernel_kb.rag")
_LOOKED_AGAIN_SECONDS = 0.01


class Staging:
    """The staged sources of one corpus.

    Args:
        name: Name of the corpus.
        sources: What is staged.

    Attributes:
        sources: What is still staged.
    """

    def __init__(self, name: str, sources: list[Any]) -> None:
        self.sources = sources
        self._name = name
        self._lock = threading.Lock()
        self._fault = ""

    async def index(self, index: Callable[[list[Any]], Awaitable[IndexReport]]) -> IndexReport:
        """Index what is staged, once; what fails stays staged no longer and is in the report.

        Args:
            index: Indexes sources.
        """
        if not self.sources and not self._lock.locked():
            return IndexReport()
        while not self._lock.acquire(blocking=False):  # Whoever waits may have another loop, in another thread.
            await asyncio.sleep(_LOOKED_AGAIN_SECONDS)
        try:
            report = await index(self.sources) if self.sources else None
            self.sources = []
            self._note(report)
            return report or IndexReport()
        finally:
            self._lock.release()

    def settle(self) -> None:
        """Note that all of it is indexed by other means."""
        self.sources, self._fault = [], ""

    def told(self, report: IndexReport) -> IndexReport:
        """Return a report, and note where there is something to search now, whatever became of the staged sources."""
        self._fault = "" if report.documents else self._fault
        return report

    def check(self) -> None:
        """Check, where a search found nothing, that this is no wonder.

        Raises:
            KnowledgeBackendError: None of the sources could be indexed.
        """
        if self._fault:
            raise KnowledgeBackendError(self._fault)

    def _note(self, report: IndexReport | None) -> None:
        if report is None or not report.failed:
            return
        told_by = "ready() before the first search, or `agentkernel-kb ingest`, names them"
        line = f"%d of the sources of '%s' could not be indexed; {told_by}"
        _LOG.warning(line, len(report.failed), self._name)
        if not report.documents and not report.unchanged:
            self._fault = f"None of the sources of '{self._name}' could be indexed: {report.failed[0].reason}"
