"""Which operation a question asks for, among those that a knowledge base declares. The cues are English."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentkernel_kb.model import Operation

_IN_DOUBT: tuple[Operation, ...] = ("search", "query", "fetch", "browse", "write")


def _cue(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_CUES: tuple[tuple[Operation, re.Pattern[str]], ...] = (
    (
        "write",
        _cue(
            r"^\W*(?:please |kindly |can you |could you |would you |i want to |i'd like to )*"
            r"(?:remember|memori[sz]e|store|save|note|record|write|log|add|insert|register|keep in mind|take down)\b",
            r"^\W*(?:please )?make a note\b",
        ),
    ),
    (
        "fetch",
        _cue(
            r"\bfetch\b",
            r"\bthe (?:whole|full|entire|complete) (?:document|text|record|page|article|entry)\b",
            r"\b(?:open|read|show|get|print)\b.*(?:\[\S+\]|\S+/\S+|\S+\.(?:md|txt|pdf|html?|docx?|json|csv)\b)",
            r"\b(?:document|record|entry|concept) (?:with (?:the )?)?(?:id|number)\b",
        ),
    ),
    (
        "browse",
        _cue(
            r"\b(?:browse|folders?|director(?:y|ies)|table of contents|what is (?:there|in there))\b",
            r"\b(?:what|which) (?:documents|files|pages|articles|topics|notes)\b",
            r"\blist (?:all |of )?(?:the )?(?:documents|files|pages|articles|topics|notes)\b",
        ),
    ),
    (
        "query",
        _cue(
            r"\b(?:how (?:many|much)|number of|counts?|averages?|mean|median|sum|totals?|top \d+)\b",
            r"\b(?:most|least|fewest|highest|lowest|largest|smallest|biggest)\b",
            r"\b(?:more|less|fewer|greater) than\b",
            r"\b(?:per \w+|(?:group|sort)(?:ed)? by|between .+ and|since \d|at least|at most)\b",
            r"\b(?:list (?:all|every|the)|all (?:the )?\w+ (?:who|that|which|with|whose))\b",
            r"\b(?:connected to|related to|path (?:from|between)|neighbou?rs?)\b",
            r"\bselect\b.+\bfrom\b",
            r"\bmatch\s*\(",
        ),
    ),
)


def operation_of(question: str, declared: Collection[Operation]) -> Operation | None:
    """Return the declared operation that a question asks for; `None` where none is declared.

    The first cue of the question that fits a declared operation decides, in the order write, fetch, browse, query. Without any,
    it is the first declared one of search, query, fetch, browse, write.
    """
    for operation, cue in _CUES:
        if operation in declared and cue.search(question):
            return operation
    return next((operation for operation in _IN_DOUBT if operation in declared), None)
