"""Writing through to the store: all of a call or nothing, nobody's work overwritten unseen, the log kept. Source: row A17."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from agentkernel_kb.errors import DocumentChangedError, KnowledgeError, KnowledgeQueryError
from agentkernel_kb.okf import composing, refresh
from agentkernel_kb.okf.composing import Draft
from agentkernel_kb.okf.model import DiagnosticCode, OKFDiagnostic
from agentkernel_kb.okf.paths import LOG, folder_of
from agentkernel_kb.okf.rows import MAX_BYTES
from agentkernel_kb.okf.versions import Profile
from agentkernel_kb.store.base import DocumentStore

_LOG_ATTEMPTS = 5
_DATE_HEADING = re.compile(r"^##[ \t]+(\d{4}-\d\d-\d\d)[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Written:
    """A document after a write.

    Attributes:
        path: Where.
        data: Its bytes.
        version: What the store calls this state.
        title: Its title, for the log.
        before: What stood there, `None` where nothing did.
        is_new_state: It was written, and not found to be there already.
    """

    path: str
    data: bytes
    version: str
    title: str
    before: bytes | None
    is_new_state: bool


class Writer:
    """Writes drafts to a store.

    Args:
        store: Where.
        prefix: Folder for concepts that name no id.
        actor: Who is named in `generated`.
        subject: Name of the backend, for messages.
    """

    def __init__(self, store: DocumentStore, prefix: str, actor: str, subject: str) -> None:
        self._store = store
        self._prefix = prefix
        self._actor = actor
        self._subject = subject

    def write(
        self, drafts: Iterable[Draft], profile: Profile, seen: Callable[[str], tuple[str, str] | None], done: list[Written]
    ) -> None:
        """Write all drafts, or none of them.

        Args:
            drafts: What to write.
            profile: How the bundle is read.
            seen: Gives for a path of an id the path and version of the document as the index knows it, `None` for none.
            done: Gets what was written; where the call fails, all of it was taken back.

        Raises:
            DocumentChangedError: A document is not as its author saw it. What was written before is taken back.
            KnowledgeError: The store refused, likewise.
        """
        try:
            # One by one, so that what was written is known when the next one fails.
            for draft in drafts:
                done.append(self._write_one(draft, profile, seen))  # noqa: PERF401
        except BaseException:
            self._take_back(done)
            raise

    def _write_one(self, draft: Draft, profile: Profile, seen: Callable[[str], tuple[str, str] | None]) -> Written:
        if not draft.id:
            path, data = composing.new_note(draft, self._prefix, self._actor)
            return self._create(path, data, profile, keep=True)
        paths = composing.named_paths(draft, self._subject)
        known = next((found for path in paths if (found := seen(path))), None)
        path, version = known or (paths[0], "")
        try:
            now = self._store.stat(path)
        except FileNotFoundError:
            if draft.version:
                raise DocumentChangedError(path, "is gone") from None
            return self._create(path, composing.new_named(draft, self._actor), profile, keep=False)
        expected = draft.version or version or now.version
        if now.version != expected:
            raise DocumentChangedError(path)
        if now.size > MAX_BYTES:
            raise KnowledgeQueryError(f"{path!r} is too large to be changed here: it has {now.size:,} bytes.")
        before = self._store.read_bytes(path)
        data = composing.changed(draft, path, before, profile)
        if data == before:
            return self._written(path, data, now.version, before, profile, is_new_state=False)
        after = self._store.write_bytes(path, data, if_version=now.version)
        return self._written(path, data, after.version, before, profile)

    def _create(self, path: str, data: bytes, profile: Profile, *, keep: bool) -> Written:
        try:
            after = self._store.write_bytes(path, data, if_missing=True)
        except DocumentChangedError:
            if not keep:
                raise
            # The same record was written before, and may have been edited since: it is left as it is.
            now = self._store.stat(path)
            there = self._store.read_bytes(path)
            return self._written(path, there, now.version, there, profile, is_new_state=False)
        return self._written(path, data, after.version, None, profile)

    def _written(
        self, path: str, data: bytes, version: str, before: bytes | None, profile: Profile, *, is_new_state: bool = True
    ) -> Written:
        concept = composing.parse_document(path, data, profile).concept
        title = concept.title if concept and concept.title else path.rpartition("/")[2][:-3]
        return Written(path, data, version, title, before, is_new_state)

    def _take_back(self, done: list[Written]) -> None:
        """Undo what a call has written before it failed, unless somebody else changed it since."""
        for written in reversed(done):
            if not written.is_new_state:
                continue
            with suppress(KnowledgeError, OSError):
                if written.before is None:
                    self._store.delete(written.path, if_version=written.version)
                else:
                    self._store.write_bytes(written.path, written.before, if_version=written.version)

    # The log.

    def keep_log(
        self, written: Iterable[Written], logs: frozenset[str]
    ) -> tuple[dict[str, tuple[bytes, str]], OKFDiagnostic | None]:
        """Note what was written in the nearest `log.md` above it, where the bundle keeps one. Source: OKF 0.2 §9.

        Returns:
            The logs as they are now, with bytes and version, and what went wrong: what was written stays written all the same.
        """
        entries: dict[str, list[str]] = {}
        for one in written:
            log = _nearest_log(one.path, logs)
            if log and one.is_new_state:
                entries.setdefault(log, []).append(_entry(one, log))
        changed: dict[str, tuple[bytes, str]] = {}
        fault = None
        for path, lines in entries.items():
            try:
                changed[path] = self._append(path, lines)
            except (KnowledgeError, OSError) as error:
                message = f"The last write has no entry in it: {refresh.reason_of(error)}."
                fault = OKFDiagnostic(path, DiagnosticCode.LOG_NOT_WRITTEN, message)
        return changed, fault

    def _append(self, path: str, lines: list[str]) -> tuple[bytes, str]:
        for attempt in range(_LOG_ATTEMPTS):
            version = self._store.stat(path).version
            text = self._store.read_bytes(path).decode()
            data = with_entries(text, lines, datetime.now(UTC).date().isoformat()).encode()
            try:
                return data, self._store.write_bytes(path, data, if_version=version).version
            except DocumentChangedError:
                if attempt == _LOG_ATTEMPTS - 1:
                    raise
        raise DocumentChangedError(path)


def with_entries(log: str, lines: list[str], today: str) -> str:
    """Return a log with entries of today: beneath today's heading where that stands first, else under a new one above all."""
    newline = "\r\n" if "\r\n" in log else "\n"
    entries = "".join(f"{line}{newline}" for line in lines)
    newest = _DATE_HEADING.search(log)
    if newest and newest[1] == today:
        return f"{log[: newest.end()]}{entries}{log[newest.end() :]}"
    section = f"## {today}{newline}{entries}"
    if newest:
        return f"{log[: newest.start()]}{section}{newline}{log[newest.start() :]}"
    gap = "" if not log or log.endswith(newline * 2) else newline if log.endswith(newline) else newline * 2
    return f"{log}{gap}{section}"


def _nearest_log(path: str, logs: frozenset[str]) -> str:
    folder = folder_of(path)
    while True:
        place = f"{folder}/{LOG}" if folder else LOG
        if place in logs:
            return place
        if not folder:
            return ""
        folder = folder_of(folder)


def _entry(written: Written, log: str) -> str:
    title = written.title.replace("[", "\\[").replace("]", "\\]")
    what = "**Creation**: Added" if written.before is None else "**Update**: Changed"
    return f"* {what} [{title}](/{quote(written.path)})."
