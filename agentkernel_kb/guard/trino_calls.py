"""How large what a call of Trino returns can be, from the sizes of its arguments, and how many steps it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import comb

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_arguments import Lambda, letters_in, literal_in, number_in, paths_in, split_arguments
from agentkernel_kb.guard.trino_groups import Group, Node, text_of
from agentkernel_kb.guard.trino_kinds import (
    ALL,
    COMPARED,
    COUNTED,
    CROSSED,
    ELEMENT,
    ONE,
    PIECES,
    SMALL,
    SORTED,
    SOUGHT,
    TIMES,
    UNREAD,
)
from agentkernel_kb.guard.trino_kinds import GATHERED as GATHERING
from agentkernel_kb.guard.trino_kinds import SKETCHED as SKETCHING
from agentkernel_kb.guard.trino_replacements import growth_of, replacements
from agentkernel_kb.guard.trino_texts import path_growth, template_size
from agentkernel_kb.guard.trino_values import (
    GATHERED,
    MOST,
    NOTHING,
    SKETCHED,
    Size,
    array,
    as_json,
    either,
    text,
    times,
    together,
)
from agentkernel_kb.guard.trino_values import SMALL as SMALL_VALUE

MAX_BYTES = 100_000
MAX_STEPS = 60_000
MAX_KEPT = 10_000
MAX_ZOOM = 6
_ENTRIES = 10_000  # Trino's own bound for `sequence` and `repeat`.
_BYTES_A_STEP = 64
_BYTES_A_PAIR = 4096  # A corner of 64 bytes with one of another geometry.
_SORT_STEPS = 16
_GROWTH_ROUNDS = 64
_OF_JSON = frozenset(["json_array", "json_object"])
_CELL_BYTES = 40  # A cell of `bar`, with its colour.

DOCUMENT = "\0document"
"""The name by which the columns of `JSON_TABLE` know what they are taken from; no statement can hold it."""

_SMALL_TYPES = frozenset(
    ["bigint", "boolean", "date", "decimal", "double", "integer", "int", "interval", "ipaddress", "real", "smallint", "time"]
) | {"timestamp", "tinyint", "uuid", "number"}


class Calls(ABC):
    """Estimates calls; whoever knows the names of a statement estimates everything else."""

    def __init__(self) -> None:
        self.steps = 0
        self._own: Mapping[str, Callable[[Group, Mapping[str, Size]], Size]] = {
            "array_join": self._array_join,
            "bar": self._bar,
            "bing_tiles_around": self._tiles,
            "cast": self._cast,
            "combinations": self._combinations,
            "concat_ws": self._concat_ws,
            "flatten": self._flatten,
            "format": self._format,
            "geometry_to_bing_tiles": self._tiles,
            "json_exists": self._json_path,
            "json_query": self._json_path,
            "json_table": self._json_path,
            "json_value": self._json_path,
            "lpad": self._pad,
            "map_zip_with": self._mapped,
            "ngrams": self._ngrams,
            "reduce": self._reduce,
            "reduce_agg": self._reduce_agg,
            "regexp_replace": self._regexp_replace,
            "repeat": self._repeat,
            "replace": self._replace,
            "rpad": self._pad,
            "sequence": self._sequence,
            "transform": self._mapped,
            "transform_keys": self._mapped,
            "transform_values": self._mapped,
            "try_cast": self._cast,
            "unnest": self._unnest,
            "zip_with": self._mapped,
        }

    @abstractmethod
    def value(self, parts: Sequence[Node], local: Mapping[str, Size]) -> Size:
        """Return the size of what an expression stands for, where lambdas around it bind `local` names."""

    def bounded(self, size: Size, where: Token) -> Size:
        """Return the size.

        Raises:
            KnowledgeGuardError: It is too large.
        """
        if size.bytes > MAX_BYTES:
            shown = f"{size.bytes:,} bytes" if size.bytes < MOST else "any size"
            raise refused(
                f"This can make a value of {shown}, where {MAX_BYTES:,} bytes are the most; make it shorter, or use rows",
                where,
            )
        return size

    def spend(self, steps: int, where: Token) -> None:
        """Count steps.

        Raises:
            KnowledgeGuardError: They are too many.
        """
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise refused(
                f"Up to here the expressions can take more than {MAX_STEPS:,} steps for one row; use rows (UNNEST) in place of "
                "lambdas inside each other",
                where,
            )

    def call(self, group: Group, local: Mapping[str, Size]) -> Size:
        """Return the size of what a call returns, once it is proven not to be too large and not to take too long.

        Raises:
            KnowledgeGuardError: It is, or does; or what it depends on has to be written out.
        """
        name = group.called
        self._check_counted(group)
        own = self._own.get(name)
        size = own(group, local) if own else self._of_kind(group, local)
        self.bounded(size, group.where)
        self.spend(1 + size.bytes // _BYTES_A_STEP, group.where)
        return size

    def _of_kind(self, group: Group, local: Mapping[str, Size]) -> Size:
        name = group.called
        sizes, body = self._arguments(group, local)
        if name not in UNREAD:
            self.spend(sum(size.bytes for size in sizes) // _BYTES_A_STEP, group.where)
        if name in SOUGHT | CROSSED:
            first, second = ([*sorted((size.bytes for size in sizes), reverse=True), 0, 0])[:2]
            self.spend(first * second // (_BYTES_A_STEP if name in SOUGHT else _BYTES_A_PAIR), group.where)
        if name in SORTED:
            self.spend(either(*sizes).count * _SORT_STEPS, group.where)
        if name in SMALL or name in COMPARED:
            return SMALL_VALUE
        if name in ELEMENT:
            return either(*(size.largest for size in sizes))
        if name in GATHERING | SKETCHING:
            element, whole = either(*sizes), GATHERED if name in GATHERING else SKETCHED
            return Size(max(whole.bytes, element.bytes), whole.count, element)
        if name in PIECES:
            whole = either(*sizes)
            return Size(whole.bytes * 9, whole.bytes, text(whole.bytes))
        if name in _OF_JSON:
            return as_json(together(*sizes, text(50)))
        if name in TIMES:
            return times(together(*sizes, text(50)), TIMES[name])
        if name in ONE:
            return either(*sizes, body)
        return together(*sizes, *([text(16)] if name in ALL else []))

    # Arguments.

    def _arguments(self, group: Group, local: Mapping[str, Size]) -> tuple[list[Size], Size]:
        """Return the sizes of the arguments, and the size of what a lambda among them returns."""
        plain, lambdas = split_arguments(group)
        sizes = [self.value(item, local) for item in plain] or [NOTHING]
        whole = together(*sizes) if lambdas else NOTHING
        bodies = [self._applied(each, [whole.largest], whole.count, local, group.where) for each in lambdas]
        return sizes, either(*bodies)

    def _applied(self, function: Lambda, sizes: Sequence[Size], count: int, local: Mapping[str, Size], where: Token) -> Size:
        """Return what a lambda makes of arguments of those sizes, the last for all that follow, and count its steps."""
        given = {name: sizes[min(index, len(sizes) - 1)] for index, name in enumerate(function.names)}
        before, self.steps = self.steps, 0
        size = self.value(function.body, {**local, **given})
        inner, self.steps = self.steps, before
        self.spend(count * (inner + 1), where)
        return size

    def _check_counted(self, group: Group) -> None:
        items = group.items()
        for place in COUNTED.get(group.called, ()):
            if place < len(items) and ((number := number_in(items[place])) is None or number > MAX_KEPT):
                raise refused(f"How many values this keeps has to be a plain number up to {MAX_KEPT:,}", group.where)

    # Functions with rules of their own.

    def _cast(self, group: Group, local: Mapping[str, Size]) -> Size:
        places = [index for index, part in enumerate(group.parts) if text_of(part) == "AS"]
        place = places[-1] if places else len(group.parts)
        size, target = self.value(group.parts[:place], local), group.parts[place + 1 :]
        first = target[0] if target else None
        kind = first.called if isinstance(first, Group) else first.name if first else ""
        if kind in _SMALL_TYPES:
            return SMALL_VALUE
        if kind in ("char", "character", "varchar") and isinstance(first, Group):
            length = number_in(first.parts) or 0
            return text(length) if kind != "varchar" else text(min(4 * length, max(32, size.bytes)))
        if kind in ("varchar", "varbinary"):
            return text(max(32, size.bytes))
        if kind == "json":
            return as_json(size)
        return times(size, 1 + letters_in(target) // 32)  # The names of a row's fields come back with each row, as in JSON.

    def _array_join(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        between = sum(size.bytes for size in sizes[1:])
        numbers = 3 if sizes[0].largest == SMALL_VALUE else 1
        return text(sizes[0].bytes * numbers + sizes[0].count * between)

    def _concat_ws(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        rest = together(*sizes[1:])
        return text(rest.bytes + rest.count * sizes[0].bytes)

    def _bar(self, group: Group, local: Mapping[str, Size]) -> Size:
        return text(self._length(group, 1, "The width") * _CELL_BYTES)

    def _pad(self, group: Group, local: Mapping[str, Size]) -> Size:
        self._arguments(group, local)
        return text(self._length(group, 1, "The length"))

    def _length(self, group: Group, place: int, what: str) -> int:
        number = number_in(([*group.items(), [], []])[place])
        if number is None:
            raise refused(f"{what} has to be a plain number here, or least(…, 1000)", group.where)
        return number

    def _tiles(self, group: Group, local: Mapping[str, Size]) -> Size:
        self._arguments(group, local)
        items = group.items()
        place = 1 if group.called == "geometry_to_bing_tiles" else 2
        if group.called == "bing_tiles_around" and len(items) <= place + 1:
            return array(9, SMALL_VALUE)
        zoom = number_in(([*items, [], [], []])[place])
        if zoom is None or zoom > MAX_ZOOM:
            raise refused(
                f"The zoom has to be a plain number up to {MAX_ZOOM} here, as a million tiles would be one value", group.where
            )
        return array(4**zoom, SMALL_VALUE)

    def _combinations(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        taken = number_in(group.items()[-1])
        taken = 5 if taken is None else min(taken, 5)  # Trino takes no more than 5 of them, and makes at most 100,000.
        count = min(comb(min(sizes[0].count, 10_000), taken), 100_000)
        return array(count, array(taken, sizes[0].largest))

    def _ngrams(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        taken = number_in(group.items()[-1])
        taken = sizes[0].count if taken is None else min(taken, sizes[0].count)
        return array(sizes[0].count, array(taken, sizes[0].largest))

    def _repeat(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        number = number_in(group.items()[-1])
        return array(_ENTRIES if number is None else min(number, _ENTRIES), sizes[0])

    def _sequence(self, group: Group, local: Mapping[str, Size]) -> Size:
        self._arguments(group, local)
        bounds = [number_in(item) for item in group.items()]
        if None in bounds or len(bounds) not in (2, 3):
            return array(_ENTRIES, SMALL_VALUE)
        numbers = [bound or 0 for bound in bounds]
        step = max(1, numbers[2]) if len(numbers) == 3 else 1
        return array(min(abs(numbers[1] - numbers[0]) // step + 1, _ENTRIES), SMALL_VALUE)

    def _flatten(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        inner = sizes[0].largest
        return Size(sizes[0].bytes, min(sizes[0].count * inner.count, max(sizes[0].bytes, 1)), inner.largest)

    def _unnest(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        return either(*(size.largest for size in sizes))

    def _replace(self, group: Group, local: Mapping[str, Size]) -> Size:
        source, replaced = replacements(group)
        if replaced:  # Of plain strings only: what one puts in is grown by the next only where that looks for a part of it.
            whole = self.value(source, local).bytes
            self.spend(whole * len(replaced) // _BYTES_A_STEP, group.where)
            return text(whole * growth_of(replaced))
        sizes, _ = self._arguments(group, local)
        whole, new = sizes[0].bytes, sizes[2].bytes if len(sizes) > 2 else 0
        self.spend(whole * sizes[-1].bytes // _BYTES_A_STEP, group.where)
        return text((whole + 1) * (new + 1) if new else whole)

    def _regexp_replace(self, group: Group, local: Mapping[str, Size]) -> Size:
        plain, lambdas = split_arguments(group)
        sizes = [self.value(item, local) for item in plain] or [NOTHING]
        whole = sizes[0].bytes
        if not lambdas:
            return text((whole + 1) * (sizes[2].bytes + 1) if len(sizes) > 2 else whole)
        # One match of everything, or many of a letter: what lies between makes less.
        once = self._applied(lambdas[0], [Size(whole * 2, 9, text(whole))], 1, local, group.where)
        often = self._applied(lambdas[0], [Size(9, 9, text(1))], whole + 1, local, group.where)
        return text(whole + max(once.bytes, often.bytes * (whole + 1)))

    def _format(self, group: Group, local: Mapping[str, Size]) -> Size:
        sizes, _ = self._arguments(group, local)
        template = literal_in(group.items()[0])
        if template is None:
            raise refused("The template has to be a plain string, so that its widths can be read", group.where)
        return text(template_size(template, max((max(32, size.bytes) for size in sizes[1:]), default=0)))

    def _json_path(self, group: Group, local: Mapping[str, Size]) -> Size:
        """Read a call whose paths may come to a part of the document more than once."""
        items = group.items()
        document = self.value(items[0], local)
        paths = [path for item in items[1:] for path in paths_in(item)]
        if escaped := next((path for path in paths if path.text[0] in "uU"), None):
            raise refused("A path is written without Unicode escapes, so that it can be read", escaped)
        growth = [path_growth(path.text, document.bytes) for path in paths]
        self.spend(sum(growth), group.where)
        found = self.bounded(times(document, 2 * max(growth, default=1)), group.where)
        for item in items[1:]:
            self.value(item, {**local, DOCUMENT: found})
        return SMALL_VALUE if group.called == "json_exists" else found

    # Functions of lambdas.

    def _mapped(self, group: Group, local: Mapping[str, Size]) -> Size:
        plain, lambdas = split_arguments(group)
        sizes = [self.value(item, local) for item in plain]
        whole = together(*sizes)
        bodies = [self._applied(each, [whole.largest], whole.count, local, group.where) for each in lambdas]
        made = array(whole.count, either(*bodies))
        return made if group.called in ("transform", "zip_with") else together(whole, made)

    def _reduce(self, group: Group, local: Mapping[str, Size]) -> Size:
        plain, lambdas = split_arguments(group)
        sizes = [self.value(item, local) for item in plain]
        if len(sizes) != 2 or not lambdas:
            return together(*sizes)
        values, state = sizes[0], sizes[1]
        state = self._grown(lambdas[0], state, values, local, group.where)
        self._applied(lambdas[0], [state, values.largest], values.count, local, group.where)
        return self._applied(lambdas[-1], [state], 1, local, group.where)

    def _grown(self, step: Lambda, state: Size, values: Size, local: Mapping[str, Size], where: Token) -> Size:
        """Return the size of the state of `reduce` after all values."""
        states = [state]
        for _ in range(min(values.count, _GROWTH_ROUNDS)):
            made = self._applied(step, [states[-1], values.largest], 1, local, where)
            states.append(self.bounded(either(states[0], made), where))
            if len(states) > 2 and states[-1] == states[-2]:
                return states[-1]
            added = states[-1].bytes - states[-2].bytes
            if len(states) > 4 and added and _grows_evenly(states):
                return self.bounded(Size(states[-1].bytes + added * values.count, values.count, states[-1].largest), where)
        if values.count > _GROWTH_ROUNDS:
            raise refused("The state of this reduce grows with every element; keep a number, or use array_join", where)
        return states[-1]

    def _reduce_agg(self, group: Group, local: Mapping[str, Size]) -> Size:
        plain, lambdas = split_arguments(group)
        sizes = [self.value(item, local) for item in plain] or [NOTHING]
        first = either(*sizes[1:])
        state = first
        for _ in range(3):
            made = [self._applied(each, [state, either(sizes[0], state)], 1, local, group.where) for each in lambdas]
            grown = either(first, *made)
            if grown == state:
                return grown
            state = grown
        raise refused(
            "The state of this reduce_agg grows with every row; keep a number, or use array_agg or listagg", group.where
        )


def refused(reason: str, token: Token) -> KnowledgeGuardError:
    """Return the error that refuses a statement for a token of it."""
    return KnowledgeGuardError(reason, part=token.shown, position=token.start)


def _grows_evenly(states: Sequence[Size]) -> bool:
    steps = {later.bytes - earlier.bytes for earlier, later in zip(states[-4:], states[-3:], strict=False)}
    return len(steps) == 1
