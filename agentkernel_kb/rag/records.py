"""Passages and documents as the records that agents see, and the records that agents write as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import Record
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers.base import END, START
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.values import Document, DocumentSummary, SearchHit

_SHOWN_CHARS = 120


def hit_record(hit: SearchHit, *, with_id: bool) -> Record:
    """Return a hit as a record, with the id of its passage where passages can be fetched."""
    said: dict[str, Any] = {"score": hit.score, "document_id": hit.document_id, "id": hit.chunk_id if with_id else None}
    return {"text": hit.text, "metadata": _metadata(hit.metadata, hit.source, said)}


def passage_record(chunk: Chunk) -> Record:
    """Return a passage as a record."""
    said = {"id": chunk.id, "document_id": chunk.document_id, "passage": f"{chunk.chunk_index + 1} of {chunk.total_chunks}"}
    return {"text": chunk.text, "metadata": _metadata(chunk.metadata, chunk.source, said)}


def document_record(chunks: Sequence[Chunk]) -> Record:
    """Return a document, given all its passages in order, as a record."""
    first = chunks[0]
    metadata = {key: value for key, value in first.metadata.items() if key not in (START, END, "headings")}
    return {"text": joined(chunks), "metadata": _metadata(metadata, first.source, {"id": first.document_id})}


def summary_record(summary: DocumentSummary) -> Record:
    """Return an entry of the list of documents as a record; its id fetches the document."""
    metadata = {key: value for key, value in summary.metadata.items() if key not in (START, END, "headings")}
    name = summary.source or str(metadata.get("source") or metadata.get("title") or "a text without a source")
    passages = "1 passage" if summary.chunk_count == 1 else f"{summary.chunk_count} passages"
    said = {"id": summary.document_id, "kind": "document"}
    return {"text": f"{name[:_SHOWN_CHARS]} ({passages})", "metadata": _metadata(metadata, summary.source, said)}


def to_document(record: object) -> Document:
    """Return a record that an agent writes as a document, which only one of the same id replaces.

    Raises:
        AKConfigError: It is no record, or has no text.
    """
    text: object = cast("Mapping[str, object]", record).get("text") if isinstance(record, Mapping) else None
    if not isinstance(text, str) or not text.strip():
        raise AKConfigError('A record is {"text": …, "metadata": {…}} with some text.')
    supplied: object = cast("Mapping[str, object]", record).get("metadata") or {}
    if not isinstance(supplied, Mapping):
        raise AKConfigError(f"A record's metadata is a mapping, not {type(supplied).__name__}.")
    metadata = dict(cast("Mapping[str, Any]", supplied))
    identity = metadata.pop("id", None)
    source = metadata.get("source")
    return Document(text, metadata=metadata, id=str(identity or digest("record", str(source or ""), text)))


def joined(chunks: Sequence[Chunk]) -> str:
    """Return the text that chunks were cut from, as far as they say where they stood; what overlaps is there once."""
    text, end = "", 0
    for place, chunk in enumerate(chunks):
        start = chunk.metadata.get(START)
        if not isinstance(start, int) or not place:
            text += ("\n\n" if place else "") + chunk.text
        elif start >= end:
            text += ("\n\n" if start - end > 1 else " " * (start - end)) + chunk.text
        else:
            text += chunk.text[end - start :]
        end = max(end, (start if isinstance(start, int) else 0) + len(chunk.text))
    return text


def _metadata(metadata: Mapping[str, Any], source: str | None, said: Mapping[str, Any]) -> dict[str, Any]:
    named = {"source": source} if source else {}
    return {**metadata, **named, **{key: value for key, value in said.items() if value is not None}}
