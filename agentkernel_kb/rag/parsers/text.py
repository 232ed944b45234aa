"""TextParser: a text as one section."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from agentkernel_kb.rag.content import TextBlock
from agentkernel_kb.rag.parsers.base import ParserBase
from agentkernel_kb.rag.values import Section

_MOST_PATH_CHARS = 4_096


class TextParser(ParserBase):
    """Reads any text as it is.

    Args:
        encoding: Encoding of bytes and of files; what does not decode is replaced.
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

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    @classmethod
    def supported_extensions(cls) -> list[str]:
        """Return the suffixes of files that it reads."""
        return [".csv", ".html", ".htm", ".json", ".md", ".markdown", ".rst", ".txt", ".xml", ".yaml", ".yml"]

    async def parse(self, file: bytes | str, filename: str) -> list[Section]:
        """Return the text as one section. A string that names a file is read, any other is the text itself."""
        if isinstance(file, str):
            text = Path(file).read_text(self.encoding, "replace") if _is_file(file) else file
        else:
            text = file.decode(self.encoding, "replace")
        return [Section(TextBlock(text), filename)]


def _is_file(text: str) -> bool:
    try:
        return len(text) <= _MOST_PATH_CHARS and Path(text).is_file()
    except (OSError, ValueError):
        return False
