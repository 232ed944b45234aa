"""Bytes as text: by their mark, as UTF-8, as they are declared, as they look, and in the end with replacements."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT = 65_536
_DECLARED_AT = 2_048
# XML's declaration, HTML's meta element, Python's cookie (PEP 263).
_DECLARED = re.compile(rb"""(?:encoding\s{0,9}=|charset\s{0,9}=|coding[:=])\s{0,9}["']?([A-Za-z0-9._:-]{2,40})""")
# Codecs that are encodings of text, and can be had at a bounded cost; a server may name any codec at all.
_TEXT_CODECS = re.compile(
    r"utf-(?:8|16|32)|ascii|iso8859|iso2022|cp\d|windows|koi8|mac|shift_jis|euc|big5|gb|hz|tis|johab|latin|kz|ptcp|hp-?roman"
)
# What a page calls by these names is the wider set (WHATWG Encoding, 4.2).
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
}
_USUAL: list[str] = [
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp932", "euc_jp", "gb18030", "big5",
    "cp949", "koi8_r", "koi8_u", "cp850", "cp866", "tis_620",
]  # fmt: skip
_LATIN = frozenset(("cp1250", "cp1254", "cp1257", "cp850"))
_SURE_ENOUGH, _ABOUT_AS_TIDY = 0.1, 0.1
_FEW = 0.02
_BESIDE_LETTER, _RUN = re.compile(rb"[A-Za-z][\x80-\xff]"), re.compile(rb"[\x80-\xff]{3}")


def decoded(content: bytes, charset: str | None = None) -> str:
    """Return bytes as text, without a mark of the byte order.

    Args:
        content: The bytes.
        charset: The encoding that they were sent with, which counts where they are not UTF-8.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    if b"\x1b$" in content[:_LOOKED_AT] and (text := _strictly(content, "iso2022_jp")) is not None:
        return text  # Seven bits, so that it is UTF-8 too.
    if wide := _wide(content):
        return content.decode(wide, "replace")
    for encoding in ("utf-8", charset, _declared(content)):
        if encoding and (text := _strictly(content, encoding)) is not None:
            return text
    guessed = _guessed(content)
    return content.decode(guessed or "utf-8", "replace")


def is_binary(content: bytes) -> bool:
    """Tell whether bytes are no text: they hold a NUL, and are not UTF-16 or UTF-32."""
    return b"\0" in content[:_LOOKED_AT] and not content.startswith(tuple(mark for mark, _ in _MARKS)) and not _wide(content)


def _strictly(content: bytes, encoding: str) -> str | None:
    try:
        name = codecs.lookup(encoding).name
        return content.decode(_WIDER.get(name, name)) if _TEXT_CODECS.match(name) else None
    except (UnicodeError, LookupError, ValueError):
        return None


def _declared(content: bytes) -> str | None:
    found = _DECLARED.search(content[:_DECLARED_AT])
    return found[1].decode("ascii") if found else None


def _wide(content: bytes) -> str | None:
    """Return the form of UTF-16 without a mark: every other byte of mostly Latin text is then a NUL."""
    head = content[: _LOOKED_AT // 16 * 2]
    if len(head) < 4 or len(content) % 2 or b"\0" not in head:
        return None
    half = len(head) / 2
    first, second = head[::2].count(0) / half, head[1::2].count(0) / half
    if second > 0.5 and first < _FEW:
        return "utf-16-le"
    return "utf-16-be" if first > 0.5 and second < _FEW else None


def _guessed(content: bytes) -> str | None:
    """Return what the bytes look like, where the library that tells is installed (extra `rag`)."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    telling = _telling(content)
    found = from_bytes(telling, cp_isolation=_USUAL, threshold=0.5)
    best = found.best()
    if best is None:
        return None
    if best.encoding not in _LATIN:
        return "cp1252" if _has_accents(telling) else best.encoding
    if best.coherence >= _SURE_ENOUGH:
        return best.encoding
    western = next((each for each in found if "cp1252" in each.could_be_from_charset), None)
    if western is not None and western.chaos <= best.chaos + _ABOUT_AS_TIDY:
        return "cp1252"  # By far the most frequent of those that fit alike.
    return best.encoding


def _has_accents(content: bytes) -> bool:
    """Tell whether what is not ASCII stands beside Latin letters and by ones or twos, as in no other script."""
    return _BESIDE_LETTER.search(content) is not None and _RUN.search(content) is None


def _telling(content: bytes) -> bytes:
    """Return the lines that tell something, those that are not ASCII, as far as they are looked at."""
    lines, size = list[bytes](), 0
    for line in content.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line)
            size += len(line)
            if size >= _LOOKED_AT:
                break
    return b"".join(lines)[: 2 * _LOOKED_AT]
