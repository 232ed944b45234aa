"""The values of the format: a concept, what is wrong with a document, what a bundle holds in all. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

Mark = Mapping[str, Any]
"""A small mapping of the frontmatter, such as `{by, at}`; its values are text, as the author wrote it."""


class TrustTier(StrEnum):
    """How much a concept was checked, lowest first; derived from `verified` and never stored. Source: OKF 0.2 §5.3."""

    UNVERIFIED = "unverified"
    MACHINE_CONFIRMED = "machine-confirmed"
    HUMAN_REVIEWED = "human-reviewed"


class DiagnosticCode(StrEnum):
    """What can be wrong with a bundle without keeping the rest of it from being read."""

    UNREADABLE = "unreadable"
    UNUSABLE_PATH = "unusable_path"
    OVERSIZED = "oversized"
    INVALID_TEXT = "invalid_text"
    MISSING_FRONTMATTER = "missing_frontmatter"
    UNPARSEABLE_FRONTMATTER = "unparseable_frontmatter"
    DUPLICATE_KEY = "duplicate_key"
    MISSING_TYPE = "missing_type"
    COERCED_VALUE = "coerced_value"
    INVALID_VALUE = "invalid_value"
    UNPARSEABLE_STALE_AFTER = "unparseable_stale_after"
    UNPARSEABLE_TIME = "unparseable_time"
    TIME_WITHOUT_OFFSET = "time_without_offset"
    MALFORMED_VERIFICATION = "malformed_verification"
    MISSING_RUNTIME = "missing_runtime"
    VERSION_MISMATCH = "version_mismatch"
    INDEX_FRONTMATTER = "index_frontmatter"
    LOG_HEADING = "log_heading"
    TRUNCATED = "truncated"
    REFRESH_FAILED = "refresh_failed"
    INDEX_UNAVAILABLE = "index_unavailable"
    LOG_NOT_WRITTEN = "log_not_written"


@dataclass(frozen=True, slots=True)
class OKFDiagnostic:
    """Something wrong in a bundle.

    Attributes:
        path: The document it is about, `""` for the bundle.
        code: What kind of thing.
        message: A sentence.
        line: Its line in the document, counted from 1; `None` where it has none.
    """

    path: str
    code: DiagnosticCode
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}" if where else self.message


@dataclass(frozen=True, slots=True)
class OKFConcept:
    """One document of a bundle. Values of the frontmatter are the author's text: no number or truth value is made of them.

    Attributes:
        path: Its path in the bundle, with `.md`.
        type: What kind of thing it describes; never blank.
        title: Its title, `""` where the frontmatter has none.
        description: One sentence on it, or `""`.
        resource: URI of what it describes, or `""`.
        tags: Its tags.
        status: `draft`, `stable`, `deprecated`, or whatever the author wrote; `stable` where there is none.
        stale_after: The instant from which it is stale, as the author wrote it, or `""`.
        deadline: That instant; `None` where there is none or it cannot be read.
        generated: Who made it and when, `{by, at}`.
        verified: Who confirmed it and when, a list of `{by, at}`, the malformed ones left out.
        sources: What it was made from.
        usage_window: What the usage counts of the sources refer to.
        computation: The contract of an attested computation: runtime, parameters, computation, executor, attester.
        extra: Every other key of the frontmatter.
        trust: Its tier.
        body: Everything after the frontmatter.
    """

    path: str
    type: str
    title: str = ""
    description: str = ""
    resource: str = ""
    tags: tuple[str, ...] = ()
    status: str = "stable"
    stale_after: str = ""
    deadline: datetime | None = None
    generated: Mark = field(default_factory=dict[str, Any])
    verified: tuple[Mark, ...] = ()
    sources: tuple[Mark, ...] = ()
    usage_window: Mark = field(default_factory=dict[str, Any])
    computation: Mark = field(default_factory=dict[str, Any])
    extra: Mark = field(default_factory=dict[str, Any])
    trust: TrustTier = TrustTier.UNVERIFIED
    body: str = ""

    def is_stale(self, now: datetime | None = None) -> bool:
        """Tell whether the concept is stale; the instant itself is. A `stale_after` that can't be read is never silently fresh.

        Source: OKF 0.2 §5.5.
        """
        if self.deadline is None:
            return bool(self.stale_after)
        return (now or datetime.now(UTC)) >= self.deadline


@dataclass(frozen=True, slots=True)
class OKFBundle:
    """What a bundle holds in all.

    Attributes:
        okf_version: What its root `index.md` declares, or `0.2`.
        concept_count: How many concepts.
        types: Their types, the most used first.
        top_level_directories: Folders at its root.
        index_files: Paths of its `index.md` files, at most 100.
        log_files: Paths of its `log.md` files, at most 100.
        diagnostic_count: How many things are wrong with it.
        diagnostics: The first of them.
        truncated: It has more documents than `max_concepts`.
    """

    okf_version: str = "0.2"
    concept_count: int = 0
    types: tuple[str, ...] = ()
    top_level_directories: tuple[str, ...] = ()
    index_files: tuple[str, ...] = ()
    log_files: tuple[str, ...] = ()
    diagnostic_count: int = 0
    diagnostics: tuple[OKFDiagnostic, ...] = ()
    truncated: bool = False
