"""What a consumer derives of a concept's frontmatter: its trust tier and its verifications. Source: OKF 0.2 §5.2, §5.3, §7."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from agentkernel_kb.okf.model import Mark, TrustTier
from agentkernel_kb.okf.times import read_instant
from agentkernel_kb.okf.versions import Profile

HUMAN = "human:"


def verifications(value: object) -> Iterator[tuple[Mark | None, str]]:
    """Yield each verification with what is wrong with it, `""` for nothing; `None` in place of one that does not count.

    A bare mapping is a list of one. What is malformed never counts: one that is no mapping, that names nobody, or whose
    time cannot be read. One without a time does count, as the tier is derived of who verified.
    """
    events = cast("list[object]", value) if isinstance(value, list) else [value]
    for event in events:
        if not isinstance(event, dict):
            yield None, "is no mapping {by, at}"
            continue
        mark = cast("dict[str, Any]", event)
        if not is_actor(mark.get("by")):
            yield None, "does not say by whom"
        elif mark.get("at") is None:
            yield mark, "does not say when"
        else:
            instant = read_instant(mark["at"])
            yield (None if instant.moment is None else mark), instant.doubt and f"has a time that {instant.doubt}"


def is_actor(value: object) -> bool:
    """Tell whether a value names somebody; `human:` alone names nobody."""
    return isinstance(value, str) and bool(value.strip()) and bool(value.strip().removeprefix(HUMAN).strip())


def tier(events: tuple[Mark, ...], generated: Mark, profile: Profile) -> TrustTier:
    """Return the tier that well-formed verifications give.

    Only the exact prefix `human:` is a person. From version 0.3 on, only what was verified after it was generated counts.
    """
    if profile.fresh_verification:
        events = tuple(event for event in events if _is_fresh(event, generated))
    if not events:
        return TrustTier.UNVERIFIED
    human = any(str(event["by"]).strip().startswith(HUMAN) for event in events)
    return TrustTier.HUMAN_REVIEWED if human else TrustTier.MACHINE_CONFIRMED


def _is_fresh(event: Mark, generated: Mark) -> bool:
    verified = read_instant(event.get("at")).moment
    made: datetime | None = read_instant(generated.get("at")).moment
    return verified is not None and (made is None or verified >= made)
