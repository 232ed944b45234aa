"""HTML as tags and texts, in one pass whose time grows with the length alone, however broken it is.

The standard library's parser takes quadratic time on tags that never end, so that a page of 100 kB could hold it for minutes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Quotes count after an equals sign only; nothing is tried twice (possessive quantifiers).
_START = re.compile(
    r"""<([a-zA-Z][^\s/>]*+)((?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')|["'=])*+)>""",
)
_END = re.compile(r"</([a-zA-Z][^\s/>]*+)[^>]*+>")
_NO_TAG = re.compile(r"(?:<(?![a-zA-Z/!?])[^<]*+)++")
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+""")
_RAW = frozenset(("script", "style", "iframe", "noembed", "noframes", "xmp", "title", "textarea"))
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
# More digits than any character has: the standard library makes a number of them, however many they are.
_LONG_NUMBER = re.compile(r"&#0*+[0-9]{8,}+;?")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of HTML.

    Attributes:
        kind: `start`, `end`, `text` or `raw`, which is the content of an element without markup.
        name: The element, in small letters; of `raw` the one that it is in.
        value: The text, or of a start tag its attributes as they are written.
    """

    kind: str
    name: str
    value: str = ""

    def attributes(self) -> dict[str, str]:
        """Return the attributes of a start tag, the first of each name, by their names in small letters."""
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.value):
            found.setdefault(match[1].lower(), text_of(match[2] or match[3] or match[4] or ""))
        return found


def tokens(markup: str) -> Iterator[Token]:
    """Yield the tags and texts of HTML, in order; a tag, comment or script that never ends takes the rest, as in a browser."""
    place = 0
    while place < len(markup):
        found = markup.find("<", place)
        if found < 0:
            yield Token("text", "", markup[place:])
            return
        if found > place:
            yield Token("text", "", markup[place:found])
        following = markup[found + 1 : found + 3]
        if following[:1].isascii() and following[:1].isalpha():
            match = _START.match(markup, found)
            if match is None:
                return
            name = match[1].lower()
            yield Token("start", name, match[2])
            place = match.end()
            if name in _RAW:
                end = _RAW_ENDS[name].search(markup, place)
                yield Token("raw", name, markup[place : end.start() if end else len(markup)])
                place = end.start() if end else len(markup)
        elif following[:1] == "/" and following[1:].isascii() and following[1:].isalpha():
            match = _END.match(markup, found)
            if match is None:
                return
            yield Token("end", match[1].lower())
            place = match.end()
        elif following[:1] in ("!", "?", "/") and following[:1]:
            end = _comment_end(markup, found)
            if end < 0:
                return
            place = end
        else:
            place = _no_tag_end(markup, found)
            yield Token("text", "", markup[found:place])


def text_of(value: str) -> str:
    """Return a text with characters in place of their references."""
    return html.unescape(_LONG_NUMBER.sub("\ufffd", value)) if "&" in value else value


def _no_tag_end(markup: str, start: int) -> int:
    match = _NO_TAG.match(markup, start)
    return match.end() if match else start + 1


def _comment_end(markup: str, start: int) -> int:
    if markup.startswith("<!--", start):
        end = markup.find("-->", start + 2)
        return end + 3 if end >= 0 else -1
    return markup.find(">", start) + 1 or -1
