"""What a parser is: the base class of seed 003, and one for formats that are text."""

from __future__ import annotations

import asyncio
import mimetypes
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agentkernel_kb.rag.chunkers.structure import Cut
from agentkernel_kb.rag.content import TextBlock
from agentkernel_kb.rag.parsers.encodings import decoded
from agentkernel_kb.rag.parsers.files import file_at, read_file
from agentkernel_kb.rag.values import Section

_SURROGATES = re.compile("[\ud800-\udfff]")


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


@dataclass(frozen=True, slots=True)
class Reading:
    """A file as text.

    Attributes:
        text: The text that is indexed.
        media_type: IANA media type of that text.
        metadata: What the file says about itself, such as its title.
        cuts: Its sections, in order.
    """

    text: str
    media_type: str
    metadata: dict[str, Any]
    cuts: tuple[Cut, ...]


class TextFormatParser(ParserBase):
    """A parser of a format that is text. Derive from it and implement `read`.

    A string that names a file is read, any other is the content itself. A mark of the byte order, the encoding that the file
    declares and its bytes tell how it is decoded.
    """

    extensions: ClassVar[tuple[str, ...]] = ()
    """The suffixes of files that it reads, with their dots."""

    @classmethod
    def supported_extensions(cls) -> list[str]:
        """Return the suffixes of files that it reads, with their dots, sorted."""
        return sorted(cls.extensions) or super().supported_extensions()

    @abstractmethod
    def read(self, text: str) -> Reading:
        """Return a content as it is indexed.

        Raises:
            KnowledgeBackendError: It cannot be read.
        """

    def pieces(self, text: str, most: int) -> Sequence[Cut]:
        """Return the parts of a text as it is indexed that a chunk should hold whole, if they fit; none where it has none.

        Args:
            text: The text of a `Reading`, as `read` returned it.
            most: About how many characters a chunk has at most; what is longer is taken apart where it can be.
        """
        found = self.read(text)
        return found.cuts if found.text == text else ()

    def decode(self, content: bytes, charset: str | None = None) -> str:
        """Return bytes as text.

        Args:
            content: The bytes.
            charset: The encoding that they were sent with.
        """
        return decoded(content, charset)

    async def parse(self, file: bytes | str, filename: str) -> list[Section]:
        """Return the sections of a file, in order; blank ones are left out.

        Args:
            file: Its bytes, its path, or its content.
            filename: What it is called.

        Raises:
            KnowledgeBackendError: It cannot be read.
        """
        return await asyncio.to_thread(self._sections, file, filename)

    def _sections(self, file: bytes | str, filename: str) -> list[Section]:
        if isinstance(file, str):
            path = file_at(file)
            text = file if path is None else self.decode(read_file(path))
        else:
            text = self.decode(bytes(file))
        reading = self.read(text)
        return [
            Section(TextBlock(reading.text[cut.start : cut.end]), filename, {**reading.metadata, **cut.metadata})
            for cut in reading.cuts
        ]


def reading(text: str, media_type: str, metadata: dict[str, Any] | None = None, cuts: Iterable[Cut] | None = None) -> Reading:
    """Return a reading of a text, as one section unless its cuts are given; blank sections are left out."""
    whole = well_formed(text)
    given = (Cut(0, len(whole)),) if cuts is None else cuts
    held = tuple(cut for cut in given if whole[cut.start : cut.end].strip())
    return Reading(whole, media_type, {key: value for key, value in (metadata or {}).items() if value}, held)


def well_formed(text: str) -> str:
    """Return a text that can be written as UTF-8: halves of surrogate pairs are replaced, each by one character."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
