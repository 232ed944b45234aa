"""What a record becomes in a bundle: its path, its frontmatter, its body. No I/O. Source: seed 002, "The OKF backend"."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from agentkernel_kb.errors import KnowledgePathError, KnowledgeQueryError
from agentkernel_kb.lexical.text import fold
from agentkernel_kb.model import Record
from agentkernel_kb.okf.frontmatter import FrontmatterError, read_head, split
from agentkernel_kb.okf.parser import parse_document
from agentkernel_kb.okf.paths import is_document, name_of, paths_named, reserved_kind
from agentkernel_kb.okf.records import COMPUTED_KEYS, comparable, frontmatter_of
from agentkernel_kb.okf.rendering import RenderingError, edited, new_document
from agentkernel_kb.okf.versions import Profile
from agentkernel_kb.render import clean, encode, one_line, usable_id

DEFAULT_TYPE = "Note"
"""Type of what an agent writes without saying what it is."""

MAX_TEXT_CHARS = 1_000_000
_MAX_TITLE_CHARS = 120
_MAX_SLUG_CHARS = 60
_TOOL_SOURCE = "agent"
# What a model claims about who made or checked its text is not taken from the text.
_CLAIMS = frozenset(("generated", "verified"))
_MARKUP = re.compile(r"^(?:#{1,6}[ \t]+|>[ \t]*|[-*+][ \t]+|\d{1,9}[.)][ \t]+)+")
_EMPHASIS = re.compile(r"(\*\*|__|[*`])(?=\S)(.+?)(?<=\S)\1")


@dataclass(frozen=True, slots=True)
class Draft:
    """A record that was checked.

    Attributes:
        text: Its text.
        metadata: Its metadata, without what is found out anew.
        id: The id it names, or `""`.
        version: The state of the document that its author saw, or `""`.
    """

    text: str
    metadata: Mapping[str, Any]
    id: str = ""
    version: str = ""


def drafts(records: Iterable[Record], subject: str) -> list[Draft]:
    """Check records before the first is written.

    Raises:
        KnowledgeQueryError: One is no mapping, has no text, or an id that is none; the message says which.
    """
    supplied = cast("object", records)
    if isinstance(supplied, Mapping | str) or not isinstance(supplied, Iterable):
        kind = type(cast("object", records)).__name__
        raise KnowledgeQueryError(f"'{subject}' stores a list of records, not a {kind}; nothing was written.")
    return [_draft(record, number, subject) for number, record in enumerate(cast("Iterable[object]", supplied), 1)]


def _draft(record: object, number: int, subject: str) -> Draft:
    def refuse(what: str) -> KnowledgeQueryError:
        return KnowledgeQueryError(f"'{subject}' can't store record {number}: {what}. Nothing was written.")

    if not isinstance(record, Mapping):
        raise refuse(f"it must be a mapping {{'text': …, 'metadata': {{…}}}}, not {type(record).__name__}")
    fields = cast("Mapping[str, object]", record)
    text, raw = fields.get("text"), fields.get("metadata")
    if not isinstance(text, str):
        raise refuse(f"its 'text' must be a string, not {type(text).__name__}")
    if raw is not None and not isinstance(raw, Mapping):
        raise refuse(f"its 'metadata' must be a mapping, not {type(raw).__name__}")
    metadata = {str(key): value for key, value in cast("Mapping[object, object]", raw or {}).items()}
    identity = metadata.get("id")
    if identity is not None and usable_id(metadata) is None:
        raise refuse("its id must be one line of text without a comma")
    if identity is None and not text.strip():
        raise refuse("its 'text' is blank")
    if len(text) > MAX_TEXT_CHARS:
        raise refuse(f"its 'text' has more than {MAX_TEXT_CHARS:,} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    version = metadata.get("version")
    name = str(identity) if identity is not None else ""
    return Draft(text, metadata, name, version if isinstance(version, str) else "")


def named_paths(draft: Draft, subject: str) -> list[str]:
    """Return the paths that a record's id may mean, the likeliest first.

    Raises:
        KnowledgePathError: The id leaves the store.
        KnowledgeQueryError: It names a reserved document.
    """
    paths = list(paths_named(draft.id))
    if not paths or not is_document(paths[0]):
        raise KnowledgePathError(f"{draft.id!r} can't be the id of a concept.")
    if reserved_kind(paths[0]):
        raise KnowledgeQueryError(f"'{subject}' never writes {draft.id!r}: an index.md or log.md belongs to its curator.")
    return paths


def new_note(draft: Draft, prefix: str, actor: str) -> tuple[str, bytes]:
    """Return path and bytes of a concept that is made of a text on behalf of its author.

    It is titled from the first line of its text, and its path is the title as a slug and a digest of the record, so that the
    same record is the same document.
    """
    values, body = _taken_over(draft)
    title = values.get("title") or title_of(body)
    path = f"{prefix}/" if prefix else ""
    path += f"{slug(str(title))}-{_digest(draft)}.md"
    body = f"\n{body}" if body.endswith("\n") else f"\n{body}\n"
    return path, _rendered(draft, {"type": DEFAULT_TYPE, "title": title, **values}, body, actor)


def new_named(draft: Draft, actor: str) -> bytes:
    """Return the bytes of a concept at a path that its author named and at which there is none: nothing is made up for it."""
    if _is_document_text(draft.text):
        return draft.text.encode()
    return _rendered(draft, {"type": DEFAULT_TYPE, **_given(draft.metadata)}, draft.text, actor)


def changed(draft: Draft, path: str, data: bytes, profile: Profile) -> bytes:
    """Return the bytes of a concept in place of `data`: exactly what the record says, and otherwise what stood there.

    A text that is a whole document is taken as it is. Any other is the body; the frontmatter keeps every byte except for keys
    whose value in the metadata differs from what a fetch shows.

    Raises:
        KnowledgeQueryError: What stands there can't be kept.
    """
    parsed = parse_document(path, data, profile)
    current = parsed.concept
    if current is not None and draft.text == current.body:
        pass  # A body may itself begin like a document.
    elif _is_document_text(draft.text):
        return draft.text.encode()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    parts = split(text) if text is not None else None
    if current is None or parts is None or parsed.head is None:
        raise KnowledgeQueryError(f"{path!r} can't be changed in part: {_why(text)}. Give the whole document as text.")
    # A fetch shows the name of the file where there is no title, which is no reason to give the document one.
    shown = {"title": name_of(path), **frontmatter_of(current)}
    changes = {key: value for key, value in _given(draft.metadata).items() if comparable(value) != comparable(shown.get(key))}
    try:
        return edited(parts, parsed.head, changes, draft.text).encode()
    except RenderingError as error:
        raise KnowledgeQueryError(f"{path!r} can't be written: {error}.") from error


def _why(text: str | None) -> str:
    return "it is not UTF-8" if text is None else "its frontmatter can't be read"


def _is_document_text(text: str) -> bool:
    parts = split(text)
    if parts is None:
        return False
    try:
        return isinstance(read_head(parts.head).values.get("type"), str)
    except FrontmatterError:
        return False


def _taken_over(draft: Draft) -> tuple[dict[str, Any], str]:
    """Return frontmatter and body of a text that may be a document itself; what it claims about checks is left out."""
    given = _given(draft.metadata)
    if not _is_document_text(draft.text):
        return given, draft.text
    parts = split(draft.text)
    if parts is None:
        return given, draft.text
    own = {key: value for key, value in read_head(parts.head).values.items() if key not in _CLAIMS and value is not None}
    return {**own, **given}, parts.body.lstrip("\r\n")


def _given(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in COMPUTED_KEYS}


def _rendered(draft: Draft, values: dict[str, Any], body: str, actor: str) -> bytes:
    values = {key: value for key, value in values.items() if value not in (None, "", [], {})}
    if not (isinstance(values.get("type"), str) and values["type"].strip()):
        values["type"] = DEFAULT_TYPE
    values.setdefault("generated", {"by": actor, "at": datetime.now(UTC).isoformat(timespec="seconds")})
    source: object = draft.metadata.get("source")
    if isinstance(source, str) and source.strip() and source not in (_TOOL_SOURCE, draft.id):
        values.setdefault("sources", [{"resource": one_line(source)}])
    try:
        return new_document(values, body).encode()
    except RenderingError as error:
        raise KnowledgeQueryError(f"The record can't be stored: {error}. Nothing was written.") from error


def title_of(text: str) -> str:
    """Return the first line of a text that says something, without its markup, as a title."""
    for line in clean(text).split("\n"):
        bare = _EMPHASIS.sub(r"\2", _MARKUP.sub("", line.strip())).strip()
        if any(character.isalnum() for character in bare):
            return bare if len(bare) <= _MAX_TITLE_CHARS else f"{bare[:_MAX_TITLE_CHARS].rsplit(' ', 1)[0]}…"
    return "Untitled"


def slug(title: str) -> str:
    """Return a title as part of a name of a file: letters and digits of any script, joined by hyphens."""
    kept = (character if unicodedata.category(character)[0] in "LNM" else " " for character in fold(title))
    words = "-".join("".join(kept).split())[:_MAX_SLUG_CHARS].strip("-")
    while len(words.encode()) > 180:
        words = words[:-1]
    return words or "note"


def _digest(draft: Draft) -> str:
    metadata = {key: value for key, value in draft.metadata.items() if key not in COMPUTED_KEYS or key == "source"}
    canonical = json.dumps([draft.text, encode(metadata)], sort_keys=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:10]
