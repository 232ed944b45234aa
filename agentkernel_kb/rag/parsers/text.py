"""TextParser: a text as one section."""

from __future__ import annotations

import codecs
from typing import ClassVar

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.parsers.base import Reading, TextFormatParser, reading


class TextParser(TextFormatParser):
    """Reads any text as it is.

    Args:
        encoding: Encoding of bytes and of files; what does not decode is replaced.

    Raises:
        AKConfigError: There is no such encoding.
    """

    supported_media_types: ClassVar[list[str]] = [
        "text/plain",
        "text/markdown",
        "text/csv",
        "text/html",
        "text/x-rst",
        "application/json",
        "application/xml",
        "application/x-yaml",
    ]
    extensions = (".csv", ".html", ".htm", ".json", ".md", ".markdown", ".rst", ".txt", ".xml", ".yaml", ".yml")

    def __init__(self, encoding: str = "utf-8") -> None:
        try:
            "".encode(encoding)
            codecs.lookup(encoding)
        except LookupError:
            raise AKConfigError(f"TextParser: there is no encoding of text {encoding!r}; 'utf-8' is one.") from None
        self.encoding = encoding

    def read(self, text: str) -> Reading:
        """Return the text as one section."""
        return reading(text, "text/plain")

    def decode(self, content: bytes, charset: str | None = None) -> str:
        """Return bytes in the encoding that was given to the parser; what does not decode is replaced."""
        return content.decode(self.encoding, "replace").removeprefix("\ufeff")

    def __repr__(self) -> str:
        return f"TextParser({self.encoding!r})"


class PlainParser(TextFormatParser):
    """Reads plain text, YAML and TOML as they are, in whatever encoding. YAML is not resolved: no alias can explode."""

    supported_media_types: ClassVar[list[str]] = ["text/plain", "application/x-yaml", "application/yaml", "application/toml"]
    extensions = (".txt", ".yaml", ".yml", ".toml")

    def read(self, text: str) -> Reading:
        """Return the text as one section."""
        return reading(text, "text/plain")
