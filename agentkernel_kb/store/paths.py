"""Paths of documents: one spelling per identity, none of which leads out of a store. No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from agentkernel_kb.errors import KnowledgePathError

MAX_PATH_BYTES = 4_096
"""Most bytes of a path in UTF-8, which bounds how deep a tree is walked."""

# Most names are of this kind, for which nothing else has to be looked at.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .()+@=~-]*")
# Control characters and line separators cannot be shown on one line; a backslash is a separator on other systems.
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\\\\]")
_DRIVE = re.compile(r"[A-Za-z]:")


def normalise(path: str) -> str:
    """Return the one spelling of a relative path: segments joined by `/`, no `.`, no empty one, `""` for the root.

    Nothing is decoded and no Unicode form is changed: `%2e%2e` and look-alikes of a slash are names like any other.

    Raises:
        KnowledgePathError: It is absolute, has a `..`, or has a segment that cannot be part of an identity.
    """
    if not isinstance(path, str):
        raise KnowledgePathError(f"A path is text, not {type(path).__name__}.")
    if path.startswith("/"):
        raise KnowledgePathError(f"The path {shown(path)} is absolute; paths are relative to the root of the store.")
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    for segment in segments:
        if fault := segment_fault(segment):
            raise KnowledgePathError(f"The path {shown(path)} {fault}.")
    normal = "/".join(segments)
    if len(normal.encode()) > MAX_PATH_BYTES:
        raise KnowledgePathError(f"The path {shown(path)} has more than {MAX_PATH_BYTES} bytes.")
    return normal


def segment_fault(segment: str) -> str:
    """Return why a segment cannot be part of a path, as the end of a sentence; `""` for one that can."""
    if _PLAIN.fullmatch(segment):
        return ""
    if not unicodedata.normalize("NFKC", segment).strip(". "):
        return "leaves the store, or has a segment of nothing but dots and blanks"
    if segment.startswith("."):
        return "has a hidden segment, one that begins with a dot"
    if _DRIVE.match(segment):
        return "has a segment that begins like a Windows drive"
    if _REFUSED.search(segment):
        return "has a control character or a backslash; segments are joined by /"
    if not is_unicode(segment):
        return "is no valid Unicode"
    return ""


def is_unicode(text: str) -> bool:
    """Tell whether text can be written as UTF-8; a name on disk that is not UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def other_spellings(path: str) -> Iterator[str]:
    """Yield the composed and the decomposed form of a path, where they differ from it (Unicode NFC and NFD)."""
    if not path.isascii():
        forms = (unicodedata.normalize(form, path) for form in ("NFC", "NFD"))
        yield from (form for form in dict.fromkeys(forms) if form != path)


def is_beneath(path: str, prefix: str) -> bool:
    """Tell whether a normal path is `prefix`, or stands beneath it in the namespace."""
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def shown(path: str) -> str:
    """Return a path for a message: on one line, quoted, shortened."""
    return ascii(path) if len(path) <= 200 and not is_unicode(path) else repr(path if len(path) <= 200 else f"{path[:200]}…")
