"""The operations of `Knowledge` for code without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from agentkernel_kb.errors import KnowledgeStateError

if TYPE_CHECKING:
    from agentkernel_kb.rag.knowledge import Knowledge
    from agentkernel_kb.rag.values import Document, DocumentSummary, IndexReport, SearchHit
    from agentkernel_kb.rag.verify import VerifyReport

T = TypeVar("T")


class SyncKnowledge:
    """Blocking calls; each raises what the asynchronous one raises.

    Raises:
        KnowledgeStateError: An event loop runs in this thread, which a blocking call would bring to a stop.

    Args:
        knowledge: What is called.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def ready(self) -> IndexReport:
        """See `Knowledge.ready`."""
        return run(self._knowledge.ready())

    def search(self, query: str, *, k: int | None = None, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        """See `Knowledge.search`."""
        return run(self._knowledge.search(query, k=k, where=where))

    def search_all(
        self, queries: Sequence[str], *, k: int | None = None, where: Mapping[str, Any] | None = None
    ) -> list[list[SearchHit]]:
        """See `Knowledge.search_all`."""
        return run(self._knowledge.search_all(queries, k=k, where=where))

    def retrieve(self, query: str, *, k: int | None = None, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        """See `Knowledge.retrieve`."""
        return run(self._knowledge.retrieve(query, k=k, where=where))

    def add(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> IndexReport:
        """See `Knowledge.add`."""
        return run(self._knowledge.add(source, metadata=metadata))

    def add_text(self, text: str, *, source: str | None = None, metadata: Mapping[str, Any] | None = None) -> IndexReport:
        """See `Knowledge.add_text`."""
        return run(self._knowledge.add_text(text, source=source, metadata=metadata))

    def upsert(self, documents: Document | Sequence[Document]) -> IndexReport:
        """See `Knowledge.upsert`."""
        return run(self._knowledge.upsert(documents))

    def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        sources: Sequence[str] | None = None,
    ) -> int:
        """See `Knowledge.delete`."""
        return run(self._knowledge.delete(ids=ids, document_ids=document_ids, where=where, sources=sources))

    def refresh(
        self, sources: Any | Sequence[Any], *, metadata: Mapping[str, Any] | None = None, delete_missing: bool = False
    ) -> IndexReport:
        """See `Knowledge.refresh`."""
        return run(self._knowledge.refresh(sources, metadata=metadata, delete_missing=delete_missing))

    def sync_sources(
        self, sources: Any | Sequence[Any], *, metadata: Mapping[str, Any] | None = None, delete_missing: bool = False
    ) -> IndexReport:
        """See `Knowledge.sync_sources`."""
        return run(self._knowledge.sync_sources(sources, metadata=metadata, delete_missing=delete_missing))

    def reindex(self, sources: Any | Sequence[Any] | None = None, *, metadata: Mapping[str, Any] | None = None) -> IndexReport:
        """See `Knowledge.reindex`."""
        return run(self._knowledge.reindex(sources, metadata=metadata))

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """See `Knowledge.verify`."""
        return run(self._knowledge.verify(repair=repair))

    def list_documents(self, where: Mapping[str, Any] | None = None) -> list[DocumentSummary]:
        """See `Knowledge.list_documents`."""
        return run(self._knowledge.list_documents(where))

    def close(self) -> None:
        """See `Knowledge.close`."""
        run(self._knowledge.close())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end.

    Raises:
        KnowledgeStateError: An event loop runs in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise KnowledgeStateError("`.sync` cannot be used inside a running event loop: await the asynchronous method instead.")


def in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in an event loop of its own, in a thread where this one has a loop that runs.

    Some frameworks call plain tools on the thread of their loop, where a second loop cannot be run.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    done: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(asyncio.run, work))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where the work was asked for
            done.set_exception(error)

    threading.Thread(target=run, name="kb-rag", daemon=True).start()
    return done.result()
