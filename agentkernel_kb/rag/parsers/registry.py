"""Which parser reads which media type, and which suffix stands for which."""

from __future__ import annotations

import mimetypes
import threading
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.parsers.base import ParserBase
from agentkernel_kb.rag.parsers.code import CodeParser, PythonParser
from agentkernel_kb.rag.parsers.html_page import HTMLParser
from agentkernel_kb.rag.parsers.jsons import JSONLinesParser, JSONParser, NotebookParser
from agentkernel_kb.rag.parsers.markdown import MarkdownParser, RSTParser
from agentkernel_kb.rag.parsers.tables import CSVParser
from agentkernel_kb.rag.parsers.text import PlainParser
from agentkernel_kb.rag.parsers.xmls import XMLParser

_PLAIN = "text/plain"
# What mimetypes does not know, or takes for something else.
_MEDIA_TYPES = {
    "text/markdown": ".md .markdown .mdown .mkd .mdx",
    "text/html": ".html .htm .xhtml",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv .tab",
    "text/x-rst": ".rst .rest",
    "application/json": ".json .geojson",
    "application/x-ipynb+json": ".ipynb",
    "application/x-ndjson": ".jsonl .ndjson",
    "application/x-yaml": ".yaml .yml",
    "application/xml": ".xml .xsd .xsl .xslt .rss .atom .svg",
    "application/toml": ".toml",
    "text/x-python": ".py .pyi",
    "text/x-source": " ".join(CodeParser.extensions),
    _PLAIN: ".txt .text .log .cfg .conf .ini .properties .env .adoc .asciidoc .org .tex .bib .srt .vtt .diff .patch",
}
_BY_SUFFIX = {suffix: media_type for media_type, suffixes in _MEDIA_TYPES.items() for suffix in suffixes.split()}
_NAMES = frozenset([
    "readme", "license", "licence", "changelog", "contributing", "makefile", "dockerfile", "jenkinsfile", "authors",
    "notice", "copying",
])  # fmt: skip


class ParserRegistry:
    """Parsers by media type.

    Args:
        parsers: Parsers to begin with; a later one takes the place of an earlier one of the same media type.
        suffixes: Media types by suffix, beside those of the parsers.
        behind: Where to look for what is not registered here.
    """

    def __init__(
        self,
        parsers: Iterable[ParserBase] = (),
        *,
        suffixes: Mapping[str, str] | None = None,
        behind: ParserRegistry | None = None,
    ) -> None:
        self._behind = behind
        self._parsers: dict[str, ParserBase] = {}
        self._suffixes = dict(suffixes or {})
        self._lock = threading.Lock()
        for parser in parsers:
            self.register(parser)

    def register(self, parser: ParserBase) -> None:
        """Have a parser read its media types from now on, and the files with its suffixes.

        Raises:
            AKConfigError: It is no parser, or names no media type.
        """
        if not isinstance(parser, ParserBase) or not parser.supported_media_types:
            raise AKConfigError(
                f"A parser derives from ParserBase and names its supported_media_types; {type(parser).__name__} does not."
            )
        with self._lock:
            self._parsers = {**self._parsers, **{each.lower(): parser for each in parser.supported_media_types}}
            self._suffixes = {**self._suffixes, **_suffixes_of(parser)}

    def parser_for(self, media_type: str) -> ParserBase | None:
        """Return what reads a media type, its parameters aside; `None` where nothing does.

        Any other text is read as plain text, `+json` as JSON and `+xml` as XML.
        """
        name = media_type.partition(";")[0].strip().lower()
        found = self._found(name)
        if found is None and name.endswith(("+json", "+xml")):
            found = self._found(f"application/{name.rpartition('+')[2]}")
        return found or (self._found(_PLAIN) if name.startswith("text/") else None)

    def media_type_of(self, name: str) -> str | None:
        """Return the media type of a file by its name, whatever its case; `None` for one that nothing is known of."""
        path = PurePath(name)
        return self._meant(path.suffix.lower()) or (_PLAIN if path.name.lower() in _NAMES else None)

    def _found(self, media_type: str) -> ParserBase | None:
        return self._parsers.get(media_type) or (self._behind._found(media_type) if self._behind else None)

    def _meant(self, suffix: str) -> str | None:
        return self._suffixes.get(suffix) or (self._behind._meant(suffix) if self._behind else None)


def _suffixes_of(parser: ParserBase) -> dict[str, str]:
    """Return the suffixes that a parser reads, with the media type that each stands for."""
    mine = [each.lower() for each in parser.supported_media_types]
    found: dict[str, str] = {}
    for suffix in map(str.lower, parser.supported_extensions()):
        known = _BY_SUFFIX.get(suffix) or mimetypes.guess_type(f"file{suffix}", strict=False)[0]
        found[suffix] = known if known in mine else mine[0]
    return found


PARSERS = ParserRegistry(
    (
        *(PlainParser(), MarkdownParser(), RSTParser(), HTMLParser(), CSVParser(), XMLParser()),
        *(JSONParser(), JSONLinesParser(), NotebookParser(), PythonParser(), CodeParser()),
    ),
    suffixes=_BY_SUFFIX,
)
"""The parsers that every loader knows."""


def register(parser: ParserBase) -> None:
    """Have every loader read the media types and suffixes of a parser with it.

    Raises:
        AKConfigError: It is no parser, or names no media type.
    """
    PARSERS.register(parser)


def parser_for(media_type: str) -> ParserBase | None:
    """Return what reads a media type; `None` where nothing does."""
    return PARSERS.parser_for(media_type)
