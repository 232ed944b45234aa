"""What a parser is: the base class of seed 003."""

from __future__ import annotations

import mimetypes
from abc import ABC, abstractmethod
from typing import ClassVar

from agentkernel_kb.rag.values import Section


class ParserBase(ABC):
    """Turns a file into sections. Derive from it for a parser of your own."""

    supported_media_types: ClassVar[list[str]] = []
    """The IANA media types that it reads."""

    @classmethod
    def supported_extensions(cls) -> list[str]:
        """Return the suffixes of files that it reads, with their dots, sorted."""
        return sorted({each for media_type in cls.supported_media_types for each in mimetypes.guess_all_extensions(media_type)})

    @abstractmethod
    async def parse(self, file: bytes | str, filename: str) -> list[Section]:
        """Return the sections of a file, in order.

        Args:
            file: Its bytes; what a text means, a path or the content itself, is the parser's to say.
            filename: What it is called; the source of its sections.
        """
