"""RAGManager: managed knowledge, or a retriever, as one backend of the router."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.embed.named import named_embedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeCapabilityError
from agentkernel_kb.model import KnowledgeCapabilities, Operation, Record, RecordPage, Scalar
from agentkernel_kb.rag.create import create_knowledge
from agentkernel_kb.rag.knowledge import Knowledge
from agentkernel_kb.rag.records import document_record, hit_record, passage_record, summary_record, to_document
from agentkernel_kb.rag.sync import in_own_loop
from agentkernel_kb.rag.values import IndexReport

_MANAGED = "Search in plain words. A hit is a passage; fetch its document_id for the whole document. Browse lists documents."
_SEARCHED = "Search in plain words."


class RAGManager(KnowledgeBase):
    """Knowledge for agents: search; and where it is managed here, fetch, browse and write.

    A search indexes staged sources first. The plain operations work where an event loop runs too: each has a loop of its own,
    in a thread.

    Args:
        knowledge: What is searched; without it the other arguments make it, as those of `create_knowledge` do.
        name: Name of this backend; empty means that of the knowledge.
        description: What it holds; that of the knowledge by default.
        path: Without `knowledge`: the file of the corpus; none means memory.
        namespace: Without `knowledge`: name of the corpus in the file.
        sources: Without `knowledge`: what is indexed first.
        where: Without `knowledge`: the application's scope.
        language: Without `knowledge`: the language whose inflections search knows, such as `german`; English by default.
        embedder: Without `knowledge`: what makes the vectors: `hash` (the default), `onnx:PATH`, `model2vec:PATH` or
            `sentence-transformers:PATH`.
        read_only: Agents may not write.

    Raises:
        AKConfigError: Arguments do not go together, or one is faulty.
    """

    def __init__(
        self,
        knowledge: Knowledge | None = None,
        name: str = "",
        description: str | None = None,
        *,
        path: str | None = None,
        namespace: str | None = None,
        sources: list[str] | None = None,
        where: dict[str, Any] | None = None,
        language: str | None = None,
        embedder: str | None = None,
        read_only: bool = False,
    ) -> None:
        made = {
            "path": path,
            "namespace": namespace,
            "sources": sources,
            "where": where,
            "language": language,
            "embedder": embedder,
        }
        self._knowledge = _made(name, made) if knowledge is None else _given(knowledge, made)
        managed = self._knowledge.managed and hasattr(self._knowledge.store, "chunks")
        capabilities = KnowledgeCapabilities(
            kinds=["vector", "document"] if managed else ["vector"],
            search=True,
            search_mode=self._knowledge.search_mode,
            fetch=managed,
            browse=managed,
            writable=managed and not read_only,
            derives_schema=True,
            filters=managed,
        )
        super().__init__(capabilities, name or self._knowledge.name)
        self._description = description or self._knowledge.description

    @property
    def backend_name(self) -> str:
        """The name by which tools and schemas refer to this backend."""
        return self._given_name

    @property
    def knowledge(self) -> Knowledge:
        """What is searched."""
        return self._knowledge

    def connect(self, **kwargs: Any) -> None:
        """Do nothing: knowledge opens what it needs at its first use."""

    def get_description(self) -> str:
        """Return the name, what the corpus holds, and how it is asked."""
        return f"{self.backend_name}: {self._description} {_MANAGED if self.capabilities.fetch else _SEARCHED}"

    def _derived_schema(self) -> Mapping[str, Any]:
        return {"description": self._description, "tool": self._knowledge.tool_name}

    # Reading.

    def search(self, query: str, limit: int = 3, *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any) -> list[Record]:
        """Return the passages that answer a question best, best first; nothing for a blank one."""
        return in_own_loop(self.asearch(query, limit, filters=filters))

    async def asearch(
        self, query: str, limit: int = 3, *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any
    ) -> list[Record]:
        """`search` without blocking the event loop."""
        hits = await self._knowledge.search(query, k=limit, where=filters)
        return [hit_record(hit, with_id=self.capabilities.fetch) for hit in hits]

    def fetch(self, ids: Sequence[str], *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any) -> list[Record]:
        """Return passages and whole documents by their ids, in the order asked for; unknown ids are left out."""
        return in_own_loop(self.afetch(ids, filters=filters))

    async def afetch(self, ids: Sequence[str], *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any) -> list[Record]:
        """`fetch` without blocking the event loop."""
        self._require("fetch")
        chunks = await self._knowledge.passages(ids=ids, document_ids=ids, where=filters)
        records: dict[str, Record] = {chunk.id: passage_record(chunk) for chunk in chunks}
        asked = set(ids)
        for document in {chunk.document_id: None for chunk in chunks}:
            if document in asked and document not in records:
                records[document] = document_record([chunk for chunk in chunks if chunk.document_id == document])
        return [records[name] for name in ids if name in records]

    def browse(
        self, path: str = "", limit: int = 50, *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any
    ) -> list[Record]:
        """Return the documents whose source begins with a path, by source; all of them for an empty one."""
        return in_own_loop(self.abrowse(path, limit, filters=filters))

    async def abrowse(
        self, path: str = "", limit: int = 50, *, filters: Mapping[str, Scalar] | None = None, **kwargs: Any
    ) -> list[Record]:
        """`browse` without blocking the event loop."""
        self._require("browse")
        listed = await self._knowledge.list_documents(filters)
        under = path.rstrip("/")
        found = [each for each in listed if not under or each.source == under or each.source.startswith(f"{under}/")]
        return RecordPage([summary_record(each) for each in found[:limit]], more=len(found) > limit, total=len(found))

    # Writing.

    def write(self, records: Iterable[Record], **kwargs: Any) -> None:
        """Index records, each as a document; its source, where it has one, is replaced.

        Raises:
            KnowledgeBackendError: A record could not be indexed.
        """
        self.add(records)

    def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
        """`write`, and return the ids of the documents."""
        return in_own_loop(self.aadd(records))

    async def awrite(self, records: Iterable[Record], **kwargs: Any) -> None:
        """`write` without blocking the event loop."""
        await self.aadd(records)

    async def aadd(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
        """`add` without blocking the event loop."""
        self._require("write")
        documents = [to_document(record) for record in records]
        if documents:
            await self._knowledge.ready()
            _check(await self._knowledge.upsert(documents))
        return [document.id for document in documents]

    def close(self) -> None:
        """Close the corpus. May be called twice."""
        in_own_loop(self.aclose())

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await self._knowledge.close()

    def _require(self, operation: Operation) -> None:
        if not self.capabilities.supports(operation):
            raise KnowledgeCapabilityError(self.backend_name, operation)


def _check(report: IndexReport) -> None:
    """Raise what went wrong.

    Raises:
        KnowledgeBackendError: A record could not be indexed.
    """
    if report.failed:
        reasons = "; ".join(sorted({failure.reason for failure in report.failed})[:3])
        raise KnowledgeBackendError(f"{len(report.failed)} records could not be stored, {report.documents} were: {reasons}")


def _made(name: str, options: Mapping[str, Any]) -> Knowledge:
    given = {key: value for key, value in options.items() if value is not None}
    backend = "sqlite" if "path" in given else "memory"
    if "embedder" in given:
        given["embedder"] = named_embedder(given["embedder"])
    return create_knowledge(backend, name=name or "knowledge", **given)


def _given(knowledge: object, options: Mapping[str, Any]) -> Knowledge:
    if not isinstance(knowledge, Knowledge):
        raise AKConfigError(f"RAGManager takes Knowledge, as create_knowledge returns it, not {type(knowledge).__name__}.")
    if given := sorted(key for key, value in options.items() if value is not None):
        raise AKConfigError(f"{', '.join(given)}: these make knowledge, and knowledge was given.")
    return knowledge
