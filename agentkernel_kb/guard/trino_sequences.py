"""How many rows `TABLE(sequence(…))` of Trino may make: the server lists their parts, of a million rows each, before the first.

Measured: all whole numbers from 0 kept a coordinator busy long after the deadline and took two gigabytes of its memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.trino_arguments import number_in
from agentkernel_kb.guard.trino_groups import Group, Node, text_of

MAX_NUMBER = 1_000_000_000
_REASON = f"TABLE(sequence(…)) takes plain numbers between -{MAX_NUMBER:,} and {MAX_NUMBER:,} here"


def check_sequences(parts: Sequence[Node]) -> None:
    """Refuse sequences as tables that are longer, or say their bounds otherwise.

    Raises:
        KnowledgeGuardError: There is one.
    """
    before: Node | None = None
    for part in parts:
        if isinstance(part, Group):
            last = part.parts[-1] if part.parts else None
            if text_of(before) == "TABLE" and isinstance(last, Group) and last.called == "sequence":
                _check_numbers(last)
            check_sequences(part.parts)
        before = part


def _check_numbers(call: Group) -> None:
    for item in call.items():
        number = number_in(item[2:] if len(item) > 2 and text_of(item[1]) == "=>" else item)
        if number is None or number > MAX_NUMBER:
            raise KnowledgeGuardError(_REASON, part=call.where.shown, position=call.where.start)
