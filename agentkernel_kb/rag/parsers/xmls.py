"""XML as lines of text."""

from __future__ import annotations

from typing import ClassVar
from xml.parsers import expat

from agentkernel_kb.errors import KnowledgeBackendError
from agentkernel_kb.rag.parsers.base import Reading, TextFormatParser, reading


class XMLParser(TextFormatParser):
    """Reads XML: a line for each element that says something, its name, its attributes and its text.

    Nothing is fetched. XML that declares entities is refused, for they may grow without bounds, or stand for files.
    """

    supported_media_types: ClassVar[list[str]] = ["application/xml", "text/xml"]
    extensions = (".xml", ".xsd", ".xsl", ".xslt", ".rss", ".atom", ".svg")

    def read(self, text: str) -> Reading:
        """Return the elements as lines.

        Raises:
            KnowledgeBackendError: It is not well-formed, or declares entities.
        """
        return reading(_Lines().of(text), "text/plain")


class _Lines:
    """Collects lines while expat, which does not recurse, goes over the elements."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._has_text: list[bool] = []

    def of(self, text: str) -> str:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True  # Defaults of a DTD could make a small file a large one.
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._data
        try:
            parser.Parse(text.strip(), True)
        except expat.ExpatError as error:
            raise KnowledgeBackendError(f"The XML is not well-formed (line {error.lineno}).") from None
        except ValueError:  # Half of a surrogate pair.
            raise KnowledgeBackendError("The XML has characters that XML does not allow.") from None
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        return "\n".join(line for line in lines if line and not line.endswith("\0:")).replace("\0", "")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        mixed = bool(self._has_text) and self._has_text[-1]
        self._has_text.append(False)
        if mixed:
            self._parts.append(" ")
            return
        given = [f"{key}={' '.join(value.split())}" for key, value in attributes.items() if not key.startswith("xmlns")]
        # A NUL, which no XML holds, marks a line that says nothing but a name.
        self._parts.append(f"\n{name.rpartition(':')[2]} {' '.join(given)}: " if given else f"\n{name.rpartition(':')[2]}\0: ")

    def _end(self, name: str) -> None:
        self._has_text.pop()

    def _data(self, data: str) -> None:
        if self._has_text and data.strip():
            self._has_text[-1] = True
        self._parts.append(data.replace("\n", " "))

    @staticmethod
    def _refuse(*_: object) -> None:
        raise KnowledgeBackendError("XML that declares entities is not read.")
