"""HTMLParser: what a reader of a page sees, as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from typing import ClassVar

from agentkernel_kb.rag.chunkers.headings import parts
from agentkernel_kb.rag.parsers.base import Reading, TextFormatParser, reading
from agentkernel_kb.rag.parsers.html_blocks import Blocks, Table
from agentkernel_kb.rag.parsers.html_tokens import Token, text_of, tokens
from agentkernel_kb.rag.parsers.markdown import first_heading

_VOID = frozenset([
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link", "meta",
    "param", "source", "track", "wbr",
])  # fmt: skip
_UNSEEN = frozenset([
    "script", "style", "template", "noscript", "head", "svg", "math", "iframe", "noembed", "noframes", "object", "audio",
    "video", "canvas", "select", "datalist", "button", "rp", "dialog",
])  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html", "legend", "li", "main", "menu",
    "nav", "ol", "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
]).union(_HEADINGS)  # fmt: skip
_TABLE_PARTS = frozenset(["table", "caption", "tbody", "thead", "tfoot", "tr", "td", "th"])
_LISTS = frozenset(("ul", "ol", "menu"))
# What a start tag ends that has no end tag of its own, and where the search for it stops (HTML, 13.1.2.4).
_ENDS = {
    "li": (("li",), ("ul", "ol", "menu", "td", "th")),
    "dt": (("dt", "dd"), ("dl", "td", "th")),
    "dd": (("dt", "dd"), ("dl", "td", "th")),
    "td": (("td", "th", "caption"), ("table", "tr")),
    "th": (("td", "th", "caption"), ("table", "tr")),
    "tr": (("tr", "caption"), ("table",)),
    "tbody": (("tbody", "thead", "tfoot", "caption"), ("table",)),
    "thead": (("tbody", "thead", "tfoot", "caption"), ("table",)),
    "tfoot": (("tbody", "thead", "tfoot", "caption"), ("table",)),
    "option": (("option",), ("select",)),
}
_LOOK_BACK = 16
_MOST_TABLES = 3
_TELLING = re.compile(r"hidden|display|visibility", re.IGNORECASE)
_INVISIBLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)


class HTMLParser(TextFormatParser):
    """Reads HTML as what a reader of the page sees, in Markdown: headings, lists, tables, code; cut at the headings.

    Scripts, styles and what is hidden are left out. Broken markup is read as far as it goes.
    """

    supported_media_types: ClassVar[list[str]] = ["text/html", "application/xhtml+xml"]
    extensions = (".html", ".htm", ".xhtml")

    def read(self, text: str) -> Reading:
        """Return the visible text, cut at its headings."""
        page = _Page()
        for token in tokens(text):
            page.take(token)
        shown = page.text()
        cuts = parts(shown)
        return reading(shown, "text/markdown", {"title": page.title or first_heading(cuts)}, cuts)


class _Page:
    """What is open at a place of the page, and what was seen up to it."""

    def __init__(self) -> None:
        self.title = ""
        self._open: list[str] = []
        self._scopes: list[Counter[str]] = [Counter()]  # A cell ends nothing that began outside of it.
        self._table_parts: Counter[str] = Counter()
        self._hidden_at = -1
        self._blocks = Blocks()
        self._tables: list[Table | None] = []

    def take(self, token: Token) -> None:
        match token.kind:
            case "start":
                self._start(token)
            case "end":
                self._end(token.name)
            case "raw":
                self._raw(token)
            case _:
                if self._hidden_at < 0:
                    self._blocks.write(text_of(token.value))

    def text(self) -> str:
        while self._open:
            self._pop()
        self._blocks.flush()
        return self._blocks.text()

    def _raw(self, token: Token) -> None:
        if token.name == "title" and not self.title and not self._scopes[-1]["svg"]:
            self.title = " ".join(text_of(token.value).split())[:300]
        elif token.name in ("textarea", "xmp") and self._hidden_at < 0:
            self._blocks.write(text_of(token.value))

    def _start(self, token: Token) -> None:
        name = token.name
        if name in _BLOCKS:
            self._end_nearest(("p",), ("td", "th", "button", "table"))
        if name in _HEADINGS:
            self._end_nearest(tuple(_HEADINGS), ("td", "th", "table"))
        if name in _ENDS:
            self._end_nearest(*_ENDS[name])
        if name in _VOID:
            if self._hidden_at < 0:
                self._void(token)
            return
        if self._hidden_at < 0:
            if name in _UNSEEN or _is_hidden(token):
                self._hidden_at = len(self._open)
            else:
                self._begin(token)
        self._push(name)

    def _void(self, token: Token) -> None:
        if token.name == "br":
            self._blocks.write("\n", is_break=True)
        elif token.name == "hr":
            self._blocks.flush()
        elif token.name == "img" and "alt" in token.value.lower() and not _is_hidden(token):
            self._blocks.write(f" {token.attributes().get('alt', '')} ")

    def _begin(self, token: Token) -> None:
        name = token.name
        if name in _BLOCKS or name in ("td", "th"):
            self._blocks.flush()
        if name in _LISTS:
            self._blocks.begin_list(numbered=name == "ol")
        elif name == "li":
            self._blocks.begin_item()
        elif name == "pre":
            self._blocks.is_code = True
        elif name == "table":
            self._tables.append(Table(self._blocks) if len(self._tables) < _MOST_TABLES else None)
            self._follow_table()
        elif table := self._tables[-1] if self._tables else None:
            self._begin_part(table, name)

    def _begin_part(self, table: Table, name: str) -> None:
        if name == "tr":
            table.begin_row()
        elif name in ("td", "th"):
            table.begin_cell()
        self._follow_table()

    def _follow_table(self) -> None:
        if self._tables and (table := self._tables[-1]):
            self._blocks = table.sink

    def _end(self, name: str) -> None:
        if (self._table_parts if name in _TABLE_PARTS else self._scopes[-1])[name]:
            while self._pop() != name:
                continue

    def _end_nearest(self, names: tuple[str, ...], borders: tuple[str, ...]) -> None:
        """End the nearest of some elements; only a few steps back, which is as far as they are nested in pages."""
        for place in range(len(self._open) - 1, max(-1, len(self._open) - 1 - _LOOK_BACK), -1):
            if self._open[place] in names:
                while len(self._open) > place:
                    self._pop()
                return
            if self._open[place] in borders:
                return

    def _push(self, name: str) -> None:
        self._open.append(name)
        self._scopes[-1][name] += 1
        if name in _TABLE_PARTS:
            self._table_parts[name] += 1
        if name in ("td", "th"):
            self._scopes.append(Counter())

    def _pop(self) -> str:
        name = self._open.pop()
        if name in ("td", "th"):
            self._scopes.pop()
        if name in _TABLE_PARTS:
            self._table_parts[name] -= 1
        self._scopes[-1][name] -= 1
        if self._hidden_at < 0:
            self._finish(name)
        elif len(self._open) == self._hidden_at:
            self._hidden_at = -1
        return name

    def _finish(self, name: str) -> None:
        if name in _HEADINGS:
            self._blocks.flush(level=_HEADINGS[name])
        elif name in _BLOCKS or name in ("td", "th"):
            self._blocks.flush()
        if name in _LISTS:
            self._blocks.end_list()
        elif name == "pre":
            self._blocks.is_code = False
        elif name == "table" and self._tables:
            if table := self._tables.pop():
                self._blocks = table.finish()
        elif name in ("td", "th") and self._tables and (table := self._tables[-1]):
            self._blocks = table.end_cell()


def _is_hidden(token: Token) -> bool:
    if not _TELLING.search(token.value):
        return False
    given = token.attributes()
    return (
        "hidden" in given
        or given.get("aria-hidden", "").strip().lower() == "true"
        or _INVISIBLE.search(given.get("style", "")) is not None
    )
