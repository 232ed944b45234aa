"""Bytes to documents: the parser of their media type, and what the application adds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agentkernel_kb.errors import KnowledgeBackendError
from agentkernel_kb.rag.content import TextBlock, digest
from agentkernel_kb.rag.parsers.base import ParserBase, TextFormatParser, well_formed
from agentkernel_kb.rag.parsers.encodings import is_binary
from agentkernel_kb.rag.parsers.files import shown
from agentkernel_kb.rag.parsers.registry import ParserRegistry
from agentkernel_kb.rag.values import Document, Section


async def documents_of(
    content: bytes,
    source: str,
    media_type: str,
    parsers: ParserRegistry,
    metadata: Mapping[str, Any],
    charset: str | None = None,
) -> list[Document]:
    """Return the documents of a file or page: one of a text, one for each section of what another parser reads.

    Sections that hold no text are left out. What `metadata` says counts before what the file says.

    Raises:
        KnowledgeBackendError: Nothing reads this media type, or it is no text.
    """
    parser = parsers.parser_for(media_type)
    if parser is None:
        raise KnowledgeBackendError(f"{shown(source)} is {media_type}, which no parser reads.")
    if isinstance(parser, TextFormatParser):
        return await asyncio.to_thread(_read, parser, content, source, metadata, charset)
    sections = await _parsed(parser, content, source)
    return [
        _section(section, source, number, metadata)
        for number, section in enumerate(sections)
        if isinstance(section.content, TextBlock) and section.text.strip()
    ]


def _read(
    parser: TextFormatParser, content: bytes, source: str, metadata: Mapping[str, Any], charset: str | None
) -> list[Document]:
    if is_binary(content):
        raise KnowledgeBackendError(f"{shown(source)} is no text: it holds bytes that no text has.")
    found = parser.read(parser.decode(content, charset))
    return [Document(found.text, source, {**found.metadata, **metadata}, media_type=found.media_type)]


async def _parsed(parser: ParserBase, content: bytes, source: str) -> list[Section]:
    return await parser.parse(content, source)


def _section(section: Section, source: str, number: int, metadata: Mapping[str, Any]) -> Document:
    text = well_formed(section.text)
    return Document(text, source, {**section.metadata, **metadata}, digest("section", source, str(number), text))
