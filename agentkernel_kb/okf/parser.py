"""One document of a bundle read: its concept, and everything that is wrong with it. Never raises, whatever the bytes are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from agentkernel_kb.okf.frontmatter import FrontmatterError, Head, read_head, split
from agentkernel_kb.okf.model import DiagnosticCode, Mark, OKFConcept, OKFDiagnostic
from agentkernel_kb.okf.signals import tier, verifications
from agentkernel_kb.okf.times import read_instant
from agentkernel_kb.okf.versions import CURRENT, Profile, profile_of

ATTESTED = "Attested Computation"
CONTRACT_KEYS = ("runtime", "parameters", "computation", "executor", "attester")

_KNOWN_KEYS = frozenset(
    (
        *("type", "title", "description", "resource", "tags", "status", "stale_after", "generated", "verified", "sources"),
        "usage_window",
        *CONTRACT_KEYS,
    )
)
_MAX_SHOWN = 60
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What reading a document gave.

    Attributes:
        concept: The concept, `None` where the document is none.
        diagnostics: What is wrong with it.
        head: Its frontmatter, for writing it back.
    """

    concept: OKFConcept | None
    diagnostics: tuple[OKFDiagnostic, ...]
    head: Head | None = None


def decode(data: bytes) -> tuple[str, bool]:
    """Return a document as text, and whether it was UTF-8; what was not is replaced by U+FFFD."""
    try:
        return data.decode("utf-8"), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), False


def parse_document(path: str, data: bytes, profile: Profile | None = None) -> Parsed:
    """Read a document.

    Args:
        path: Where it stands in the bundle; its last segment gives no meaning here.
        data: Its bytes.
        profile: How the bundle's version is read; `None` is the current one.

    Returns:
        The concept, unless the document has no readable frontmatter or no type, and what is wrong.
    """
    return _DocumentReader(path, profile or profile_of(CURRENT)).read(data)


class _DocumentReader:
    """Reads one document, and notes what is wrong as it goes."""

    def __init__(self, path: str, profile: Profile) -> None:
        self._path = path
        self._profile = profile
        self._noted: list[OKFDiagnostic] = []
        self._head = Head()

    def read(self, data: bytes) -> Parsed:
        text, sound = decode(data)
        if not sound:
            self._note(DiagnosticCode.INVALID_TEXT, "It is not UTF-8; what can't be read is replaced.")
        parts = split(text)
        if parts is None and self._profile.default_type:
            return Parsed(self._plain(text.removeprefix("\ufeff")), tuple(self._noted))
        if parts is None:
            if not self._profile.plain_documents:
                self._note(DiagnosticCode.MISSING_FRONTMATTER, "It has no frontmatter between two lines of ---; skipped.", 1)
            return Parsed(None, tuple(self._noted))
        try:
            self._head = read_head(parts.head)
        except FrontmatterError as error:
            self._note(DiagnosticCode.UNPARSEABLE_FRONTMATTER, f"Skipped: {error}.", error.line)
            return Parsed(None, tuple(self._noted))
        for key, line in self._head.duplicates:
            self._note(DiagnosticCode.DUPLICATE_KEY, f"The key {_shown(key)} stands there twice; the later one counts.", line)
        kind = self._type()
        concept = self._concept(kind, parts.body) if kind else None
        return Parsed(concept, tuple(self._noted), self._head)

    def _plain(self, text: str) -> OKFConcept:
        heading = _HEADING.search(text)
        return OKFConcept(self._path, self._profile.default_type, title=_line_of(heading[1]) if heading else "", body=text)

    def _type(self) -> str:
        value = self._head.values.get("type")
        if isinstance(value, str) and value.strip():
            return _line_of(value)
        if self._profile.default_type and not isinstance(value, dict | list):
            return self._profile.default_type
        if self._profile.plain_documents and value is None:
            return ""
        what = "is no text" if isinstance(value, dict | list) else "is blank" if "type" in self._head.values else "is missing"
        self._note(DiagnosticCode.MISSING_TYPE, f"Skipped: its type {what}.", self._head.lines.get("type", 1))
        return ""

    def _concept(self, kind: str, body: str) -> OKFConcept:
        values = self._head.values
        stale_after, deadline = self._stale_after() if "stale_after" in values else ("", None)
        generated = self._generated()
        verified = self._verified() if "verified" in values else ()
        return OKFConcept(
            path=self._path,
            type=kind,
            title=self._text("title"),
            description=self._text("description"),
            resource=self._text("resource"),
            tags=self._tags() if "tags" in values else (),
            status=self._text("status") or "stable",
            stale_after=stale_after,
            deadline=deadline,
            generated=generated,
            verified=verified,
            sources=self._sources() if "sources" in values else (),
            usage_window=self._mark("usage_window") if "usage_window" in values else {},
            computation=self._computation(kind),
            extra={key: value for key, value in values.items() if key not in _KNOWN_KEYS},
            trust=tier(verified, generated, self._profile),
            body=body,
        )

    def _text(self, key: str) -> str:
        value = self._head.values.get(key)
        if value is None:
            return ""
        if isinstance(value, str):
            return _line_of(value)
        self._note(DiagnosticCode.INVALID_VALUE, f"Its {key} is no text and is left out.", self._line(key))
        return ""

    def _tags(self) -> tuple[str, ...]:
        value = self._head.values["tags"]
        if value is None:
            return ()
        if isinstance(value, str):
            self._note(DiagnosticCode.COERCED_VALUE, "Its tags are no list; they are split at commas.", self._line("tags"))
            value = value.split(",")
        if isinstance(value, dict):
            self._note(DiagnosticCode.INVALID_VALUE, "Its tags are no list and are left out.", self._line("tags"))
            return ()
        items = cast("list[object]", value)
        if any(not isinstance(item, str) for item in items):
            self._note(DiagnosticCode.INVALID_VALUE, "A tag that is no text is left out.", self._line("tags"))
        tags = (_line_of(item) for item in items if isinstance(item, str))
        return tuple(dict.fromkeys(tag for tag in tags if tag))

    def _stale_after(self) -> tuple[str, Any]:
        value = self._head.values["stale_after"]
        if value is None:
            return "", None
        instant, line = read_instant(value), self._line("stale_after")
        if instant.moment is None:
            message = f"Its stale_after {instant.doubt}; it counts as stale."
            self._note(DiagnosticCode.UNPARSEABLE_STALE_AFTER, message, line)
        elif instant.doubt:
            self._note(DiagnosticCode.TIME_WITHOUT_OFFSET, f"Its stale_after {instant.doubt}.", line)
        return (_line_of(value) if isinstance(value, str) else "") or "unreadable", instant.moment

    def _generated(self) -> Mark:
        if "generated" in self._head.values:
            mark = self._mark("generated")
            self._check_time(mark.get("at"), "generated.at", "generated")
            return mark
        legacy = self._head.values.get("timestamp")  # Source: OKF 0.2 §13.1
        return {"at": legacy} if isinstance(legacy, str) else {}

    def _check_time(self, value: object, what: str, key: str) -> None:
        if value is None:
            return
        instant = read_instant(value)
        if instant.doubt:
            code = DiagnosticCode.UNPARSEABLE_TIME if instant.moment is None else DiagnosticCode.TIME_WITHOUT_OFFSET
            self._note(code, f"Its {what} {instant.doubt}.", self._line(key))

    def _verified(self) -> tuple[Mark, ...]:
        value = self._head.values["verified"]
        if value is None:
            return ()
        found = list(verifications(value))
        for event, fault in found:
            if fault:
                counts = "" if event is not None else "; it does not count"
                message = f"A verification {fault}{counts}."
                self._note(DiagnosticCode.MALFORMED_VERIFICATION, message, self._line("verified"))
        return tuple(event for event, _ in found if event is not None)

    def _sources(self) -> tuple[Mark, ...]:
        value = self._head.values["sources"]
        if value is None:
            return ()
        listed = cast("list[object]", value) if isinstance(value, list) else [value]
        sources: list[Mark] = []
        for source in listed:
            if isinstance(source, str) and source.strip():
                message = "A source is text in place of a mapping; it is read as its resource."
                self._note(DiagnosticCode.COERCED_VALUE, message, self._line("sources"))
                sources.append({"resource": source})
            elif isinstance(source, dict):
                sources.append(self._source(cast("dict[str, Any]", source)))
            else:
                self._note(DiagnosticCode.INVALID_VALUE, "A source that is no mapping is left out.", self._line("sources"))
        return tuple(sources)

    def _source(self, source: dict[str, Any]) -> Mark:
        resource = source.get("resource")
        if not (isinstance(resource, str) and resource.strip()):
            self._note(DiagnosticCode.INVALID_VALUE, "A source has no resource.", self._line("sources"))
        self._check_time(source.get("last_modified"), "source's last_modified", "sources")
        count = source.get("usage_count")
        if isinstance(count, str) and count.strip().isascii() and count.strip().isdigit() and len(count) < 16:
            return {**source, "usage_count": int(count)}
        return source

    def _mark(self, key: str) -> Mark:
        value = self._head.values[key]
        if isinstance(value, dict):
            return cast("Mark", value)
        if value is not None:
            self._note(DiagnosticCode.INVALID_VALUE, f"Its {key} is no mapping and is left out.", self._line(key))
        return {}

    def _computation(self, kind: str) -> Mark:
        values = self._head.values
        contract = {key: values[key] for key in CONTRACT_KEYS if values.get(key) is not None}
        if kind == ATTESTED and not (isinstance(contract.get("runtime"), str) and contract["runtime"].strip()):
            self._note(DiagnosticCode.MISSING_RUNTIME, "An attested computation needs a runtime.", self._line("type"))
        return contract

    def _line(self, key: str) -> int:
        return self._head.lines.get(key, 1)

    def _note(self, code: DiagnosticCode, message: str, line: int | None = None) -> None:
        self._noted.append(OKFDiagnostic(self._path, code, message, line))


def _line_of(text: str) -> str:
    return text if text.isprintable() and text[:1] != " " != text[-1:] else " ".join(text.split())


def _shown(key: str) -> str:
    return repr(key if len(key) <= _MAX_SHOWN else f"{key[:_MAX_SHOWN]}…")
