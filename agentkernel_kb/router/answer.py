"""From what a backend returned to what the model reads: bounded rows, bounded characters, and a word on what was left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from agentkernel_kb.model import Record, RecordPage
from agentkernel_kb.render import metadata_of, one_line, record_line, to_text, usable_id
from agentkernel_kb.router.breaker import Kind
from agentkernel_kb.router.events import Outcome
from agentkernel_kb.router.failures import broken_contract
from agentkernel_kb.router.fusion import Hit, keys_of
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import Plan

_RENDERED_ANSWERS = 4
"""How many answers' worth of text is rendered at most: what a backend makes of its records may be shorter than their texts."""

_SHOWN_IDS = 10
_SHOWN_ID_CHARS = 100

_BY_ROWS = {
    "query": "Aggregate, narrow or page through it with the statement for the rest.",
    "search": "Narrow the query for the rest.",
    "browse": "Browse a deeper path for the rest.",
    "fetch": "Fetch fewer ids at a time for the rest.",
}
_BY_CHARACTERS = {
    "query": "Select fewer columns or rows.",
    "search": "Lower the limit or narrow the query.",
    "browse": "Lower the limit or browse a deeper path.",
    "fetch": "Fetch fewer ids at a time.",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call tells the model, and how it counts.

    Attributes:
        text: What the model reads; of a call whose records are to be fused, only what is to be said besides.
        outcome: How it ended.
        rows: Records in it.
        hits: The records, where they are to be fused.
        more: The store has more than these hits.
        kind: How the backend was not there, where that is what happened.
    """

    text: str
    outcome: Outcome
    rows: int = 0
    hits: tuple[Hit, ...] = ()
    more: bool = False
    kind: Kind | None = None

    @property
    def size(self) -> int:
        """Characters of it."""
        return len(self.text) + sum([len(hit.line) for hit in self.hits])


def written_answer(plan: Plan, ids: object, limits: Limits) -> Answer:
    """Say that a record was stored, under which id where the backend told it."""
    listed: Sequence[object] = cast("Sequence[object]", ids) if isinstance(ids, list | tuple) else ()
    shown = [one_line(to_text(identity)) for identity in listed[:_SHOWN_IDS]]
    more = f" and {len(listed) - _SHOWN_IDS} more" if len(listed) > _SHOWN_IDS else ""
    under = f" Id: {', '.join(shown)}{more}." if shown else ""
    return Answer(f"Written to '{plan.target.name}'.{under}"[: limits.characters], "ok", 1)


def records_answer(plan: Plan, returned: object, limits: Limits) -> Answer:
    """Render what a reading operation returned.

    Raises:
        Refusal: It is no list of records.
    """
    most, bounded_by = _most_rows(plan, limits.rows)
    records = _records(plan, returned, most)
    if not records:
        return Answer("\n".join(filter(None, (_nothing(plan), _missing(plan, records))))[: limits.characters], "empty")
    page = _Page(plan, limits, _shortened(records[:most], limits.characters), bounded_by)
    page.learn(returned, len(records), min(len(records), most))
    return page.fit()


def hits_answer(plan: Plan, returned: object, limits: Limits) -> Answer:
    """Take what a search returned as hits to be fused with those of other backends.

    Raises:
        Refusal: It is no list of records.
    """
    records = _records(plan, returned, plan.limit)
    shown = _shortened(records[: plan.limit], limits.characters)
    more = len(records) > len(shown) or (isinstance(returned, RecordPage) and returned.more)
    return Answer("", "ok" if shown else "empty", len(shown), tuple(_hit(plan, record) for record in shown), more)


def _hit(plan: Plan, record: Record) -> Hit:
    metadata = metadata_of(record)
    identity = usable_id(metadata) or ""
    source: object = metadata.get("source")
    line = _line(plan, record, identity)
    keys = keys_of(identity, "" if source is None else to_text(source), record["text"])
    return Hit(plan.target.name, identity if plan.target.capabilities.fetch else "", keys, line)


def _line(plan: Plan, record: Record, identity: str) -> str:
    """Return a record as its backend renders it, without dash and id; one that renders no lines with dashes is not asked."""
    rendered = to_text(plan.target.backend.format_results([record]))
    if not rendered.startswith("- "):
        rendered = record_line(record, with_id=False)
    text = rendered.removeprefix("- ")
    if identity and text.startswith(f"[{identity}] "):
        return text.removeprefix(f"[{identity}] ")
    return f"\\{text}" if text.startswith("[") else text


def _most_rows(plan: Plan, cap: int) -> tuple[int, str]:
    """Return how many rows to show, and what bounds them: `limit`, the cap on `rows`, or the `statement` itself."""
    if plan.operation == "fetch":
        return cap, "rows"
    if plan.operation == "query" and "max_rows" in plan.way.options | plan.way.async_options:
        return cap, "limit"  # The backend reads its own dialect: it bounds by the statement's limit, or else by `limit`.
    return plan.limit, plan.bounded_by


def _records(plan: Plan, returned: object, most: int) -> Sequence[Record]:
    if inspect.iscoroutine(returned):
        returned.close()
    if isinstance(returned, list | tuple):
        records = cast("Sequence[object]", returned)
    elif isinstance(returned, Iterable) and not isinstance(returned, str | bytes | Mapping):
        records = list(islice(cast("Iterable[object]", returned), most + 1))
    else:
        raise broken_contract(plan.target.name, plan.operation, type(cast("object", returned)).__name__)
    for record in islice(records, most):
        if not isinstance(record, Mapping):
            raise broken_contract(plan.target.name, plan.operation, f"{type(record).__name__} records")
    return cast("Sequence[Record]", records)


def _shortened(records: Sequence[Record], characters: int) -> list[Record]:
    """Return records whose texts are text and no longer than an answer, and no more of them than could be shown.

    What is rendered stays small, whatever the backend returned: rendering runs where the caller runs, perhaps an event loop.
    """
    shortened: list[Record] = []
    room = _RENDERED_ANSWERS * characters
    for record in records:
        text: object = record.get("text")
        shown = "" if text is None else (text if isinstance(text, str) else to_text(text))
        shortened.append(record if shown is text and len(shown) <= characters else {**record, "text": shown[:characters]})
        room -= min(len(shown), characters)
        if room < 0:
            break
    return shortened


def _nothing(plan: Plan) -> str:
    return to_text(plan.target.backend.format_results([]))


def _missing(plan: Plan, records: Sequence[Record]) -> str:
    """Say which of the ids that were asked for were not found.

    A backend may understand an id in other spellings than the one it gives; then only how many were found is known.
    """
    if plan.operation != "fetch" or len(records) >= len(plan.positional[0]):
        return ""
    asked: list[str] = plan.positional[0]
    found = {str(metadata_of(record).get("id")) for record in records}
    if not found <= set(asked):
        return f"{len(records)} of the {len(asked)} ids were found in '{plan.target.name}'."
    missing = [identity for identity in asked if identity not in found]
    more = f" and {len(missing) - _SHOWN_IDS} more" if len(missing) > _SHOWN_IDS else ""
    return f"'{plan.target.name}' has no record with the id {', '.join(map(_quoted, missing[:_SHOWN_IDS]))}{more}."


def _quoted(identity: str) -> str:
    return repr(identity if len(identity) <= _SHOWN_ID_CHARS else f"{identity[:_SHOWN_ID_CHARS]}…")


class _Page:
    """The records of one answer and the note that stands over them."""

    def __init__(self, plan: Plan, limits: Limits, records: list[Record], bounded_by: str) -> None:
        self._plan = plan
        self._limits = limits
        self._records = records
        self._cut = False
        self._bounded_by = bounded_by
        self._total: int | None = None
        self._may_be_more = False
        self._bounded = len(records)
        self._missing = _missing(plan, records)

    def learn(self, returned: object, count: int, bounded: int) -> None:
        """Take over what the backend says of the rest, or what can be told from the number of records.

        Args:
            returned: What the backend returned.
            count: How many records that holds.
            bounded: How many of them the bound on rows leaves.
        """
        self._bounded = bounded
        if count > bounded:
            self._cut, self._total = True, count
        if isinstance(returned, RecordPage):
            self._cut = self._cut or returned.more
            if returned.more or returned.total is not None:
                self._total = returned.total if isinstance(returned.total, int) and returned.total > bounded else None
            if returned.more and bounded >= self._limits.rows:
                self._bounded_by = "rows"
        elif self._plan.operation in ("query", "browse") and not self._cut:
            self._may_be_more = self._bounded_by == "limit" and bounded == self._plan.limit

    def fit(self) -> Answer:
        """Render as many records as the characters allow."""
        characters = self._limits.characters
        text = self._text(len(self._records)) if len(self._records) == self._bounded else ""
        if text and len(text) <= characters:
            partial = self._cut or bool(self._missing)
            return Answer(text, "partial" if partial else "ok", len(self._records))
        count = _largest(len(self._records), lambda k: len(self._text(k)) <= characters)
        text = self._text(count) if count else self._first_record_cut()
        return Answer(text[:characters], "partial", max(count, 1))

    def _text(self, count: int) -> str:
        rendered: object = self._plan.target.backend.format_results(self._records[:count])
        return "\n".join(part for part in (self._note(count), self._missing, to_text(rendered)) if part)

    def _note(self, count: int) -> str:
        operation = self._plan.operation
        if count < self._bounded:
            total = self._counted(count, self._total or self._bounded)
            return f"Partial: {total}, cut at {self._limits.characters:,} characters. {_BY_CHARACTERS[operation]}"
        if self._cut:
            rest = self._more_by_limit() if self._bounded_by == "limit" else _BY_ROWS[operation]
            return f"Partial: {self._counted(count, self._total)}, limited by {self._bounded_by}. {rest}"
        if self._may_be_more:
            return f"{self._noun(count)}, as many as limit={self._plan.limit} allows; there may be more."
        return ""

    def _counted(self, count: int, total: int | None) -> str:
        if total is not None and total > count:
            return f"{count} of {self._noun(total)}"
        return f"{count} of more than {self._noun(count)}"

    def _noun(self, count: int) -> str:
        noun = "row" if self._plan.operation == "query" else "record"
        return f"{count:,} {noun}{'' if count == 1 else 's'}"

    def _more_by_limit(self) -> str:
        wanted = self._total or 10 * max(self._plan.limit, self._bounded)
        return f"More: limit={min(wanted, self._limits.rows)}."

    def _first_record_cut(self) -> str:
        """Show the beginning of one record that is longer than an answer may be."""
        note = f"Partial: one record, cut at {self._limits.characters:,} characters. The rest does not fit into one answer."
        note = f"{note}\n{self._missing}" if self._missing else note
        record = self._records[0]
        text: str = record["text"]

        def render(size: int) -> str:
            return to_text(self._plan.target.backend.format_results([{**record, "text": text[:size] + "…"}]))

        size = _largest(len(text), lambda size: len(note) + 1 + len(render(size)) <= self._limits.characters)
        return f"{note}\n{render(size)}"


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to `most` that fits, where everything below one that fits does too."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
