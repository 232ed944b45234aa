"""The visible text of HTML and XML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.parsers import expat

from agentkernel_kb.errors import KnowledgeBackendError

_HIDDEN = frozenset(
    ("script", "style", "template", "noscript", "head", "svg", "iframe", "object", "select", "option", "button")
)
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure"),
        *(
            "footer",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hr",
            "li",
            "main",
            "nav",
            "ol",
            "p",
            "pre",
            "section",
        ),
        *("table", "tbody", "thead", "tfoot", "tr", "ul"),
    )
)
_CELLS = frozenset(("td", "th"))


class _Visible(HTMLParser):
    """Collects what a reader sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._hidden: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title" and not self.title
        if tag in _VOID:
            self.parts += ["\n"] if tag in _BLOCKS and not self._hidden else []
        elif tag in _HIDDEN or self._is_hidden(attrs):
            self._hidden.append(tag)
        elif self._hidden:
            return
        elif tag in _BLOCKS:
            self.parts.append("\n\n" if tag in ("h1", "h2", "h3", "h4", "h5", "h6", "p", "table") else "\n")
        elif tag in _CELLS:
            self.parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                continue
        elif tag in _BLOCKS and not self._hidden:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))

    @staticmethod
    def _is_hidden(attrs: list[tuple[str, str | None]]) -> bool:
        given = dict(attrs)
        return (
            "hidden" in given
            or given.get("aria-hidden") == "true"
            or "display:none" in (given.get("style") or "").replace(" ", "")
        )


def visible_text(markup: str) -> tuple[str, str]:
    """Return what a reader of HTML sees, and its title; broken markup is read as far as it goes."""
    reader = _Visible()
    reader.feed(markup)
    reader.close()
    return _tidied("".join(reader.parts)), " ".join(reader.title.split())


def text_of_xml(content: bytes | str) -> str:
    """Return the text of XML, one element after the other.

    Raises:
        KnowledgeBackendError: It is not well-formed, or declares entities, which could grow without bounds.
    """
    parts: list[str] = []
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise KnowledgeBackendError("XML that declares entities is not read.")

    parser.EntityDeclHandler = refuse
    parser.CharacterDataHandler = parts.append
    parser.StartElementHandler = lambda name, attributes: parts.append("\n")
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise KnowledgeBackendError(f"The XML is not well-formed (line {error.lineno}).") from None
    return _tidied("".join(parts))


def _tidied(text: str) -> str:
    lines = (" ".join(line.split()).strip(" |") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
