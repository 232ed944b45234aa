"""What a file's suffix says about it, its bytes as text, and its text as it is indexed."""

from __future__ import annotations

import codecs
import re
from pathlib import PurePath
from typing import Any

from agentkernel_kb.rag.parsers.markup import text_of_xml, visible_text
from agentkernel_kb.rag.parsers.tables import text_of_json, text_of_rows

_BY_SUFFIX = {
    "text/markdown": ".md .markdown .mdown .mkd .mdx",
    "text/html": ".html .htm .xhtml",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv .tab",
    "text/x-rst": ".rst .rest",
    "application/json": ".json .geojson .ipynb",
    "application/x-ndjson": ".jsonl .ndjson",
    "application/x-yaml": ".yaml .yml",
    "application/xml": ".xml .xsd .xsl .xslt .rss .atom .svg",
    "application/toml": ".toml",
    "text/x-python": ".py .pyi",
    "text/x-source": ".c .h .cc .cpp .hpp .cs .go .java .js .jsx .kt .lua .php .pl .r .rb .rs .scala .sh .sql .swift .ts"
    " .tsx .vue",
    "text/plain": ".txt .text .log .cfg .conf .ini .properties .env .adoc .asciidoc .org .tex .bib .srt .vtt .diff .patch",
}
MEDIA_TYPES = {suffix: media_type for media_type, suffixes in _BY_SUFFIX.items() for suffix in suffixes.split()}
"""Suffix to media type, of all that is loaded."""

_NAMES = frozenset(
    ("readme", "license", "licence", "changelog", "contributing", "makefile", "dockerfile", "authors", "notice", "copying")
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LOOKED_AT = 65_536
_FIRST_HEADING = re.compile(r"^#{1,2}[ \t]+(\S[^\n]*?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)


def media_type_of(name: str) -> str | None:
    """Return the media type of a file by its name; `None` for one that is not loaded."""
    path = PurePath(name)
    return MEDIA_TYPES.get(path.suffix.lower()) or ("text/plain" if path.name.lower() in _NAMES else None)


def decoded(content: bytes, charset: str | None = None) -> str:
    """Return bytes as text: by their mark, as UTF-8, as what they look like, and in the end as UTF-8 with replacements."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    for encoding in ("utf-8", charset):
        try:
            return content.decode(encoding) if encoding else _guessed(content)
        except (UnicodeDecodeError, LookupError):
            continue
    return content.decode("utf-8", "replace")


def is_binary(content: bytes) -> bool:
    """Tell whether bytes are no text: they hold a NUL and are not marked as UTF-16 or UTF-32."""
    return b"\0" in content[:_LOOKED_AT] and not content.startswith(tuple(mark for mark, _ in _MARKS))


def readable(text: str, media_type: str) -> tuple[str, dict[str, Any]]:
    """Return a text as it is indexed, and what it says about itself.

    Raises:
        KnowledgeBackendError: It is XML, and not well-formed.
    """
    match media_type:
        case "text/html" | "application/xhtml+xml":
            visible, title = visible_text(text)
            return visible, {"title": title} if title else {}
        case "text/csv":
            return text_of_rows(text, ","), {}
        case "text/tab-separated-values":
            return text_of_rows(text, "\t"), {}
        case "application/json" | "application/ld+json":
            return text_of_json(text), {}
        case "application/xml" | "text/xml":
            return text_of_xml(text), {}
        case "text/markdown":
            heading = _FIRST_HEADING.search(text)
            return text, {"title": heading[1]} if heading else {}
        case _:
            return text, {}


def _guessed(content: bytes) -> str:
    """Decode by what the bytes look like, where the library that tells is installed."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        raise LookupError("charset_normalizer is not installed") from None
    best = from_bytes(content[:_LOOKED_AT]).best()
    if best is None:
        raise LookupError("no encoding fits")
    return content.decode(best.encoding)
