"""How much text one row of a PostgreSQL query makes and looks at, as far as the query itself makes it.

Between the functions of one row the server does not look at its time limit, and what each of them makes stays in memory until
the row is done: `s || s || …` of a million characters, a hundred times, takes 5 GB, and `similarity(s, …)` a second each. So
all of it together is bounded. What is stored counts nothing: it is as large as its owner made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentkernel_kb.guard.postgres_sizes import (
    MAX_BUILT_CHARS,
    MAX_REPEATS,
    columns_of,
    count_of,
    is_gathering,
    is_shrinking,
    name_of,
    number_of,
    queries_of,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_GATHERED = 500_000
_WIDE, _PERHAPS_WIDE = 150_000, 5_000
"""How many digits a number may have that is multiplied with itself, often or as often as some value says."""
_TURNS = 4
_SLOW: Mapping[str, int] = {
    "cast": 3,
    "exp": 100,
    "ln": 100,
    "log": 100,
    "log10": 100,
    "pow": 100,
    "sqrt": 100,
    "daitch_mokotoff": 100,
    "distance": 10,
    "matchagainst": 5,
    "mod": 10,
    "similarity": 10,
    "show_trgm": 10,
    "sub": 10,
    "strict_word_similarity": 10,
    "to_tsvector": 5,
    "ts_headline": 5,
    "unaccent": 5,
    "word_similarity": 10,
}
"""How many times as long as to copy a character it takes to look at one, or at a digit; operators, such as those of pg_trgm,
are called as the parser's nodes are."""
_TOO_MUCH = (
    f"One row of this statement makes or looks at more than {MAX_BUILT_CHARS:,} characters that the statement builds itself; "
    "build fewer or smaller texts"
)
_KEPT = "What is gathered here is built large for each row, and all of it stays in the server's memory; gather what is stored"


def check_lengths(tree: Expr) -> tuple[str, Expr, str] | None:
    """Return the reason, the node and the part of a query whose rows build too much, or `None`."""
    from sqlglot import exp

    lengths = _Lengths(tree)
    total = 0
    for node in tree.find_all(exp.Func, exp.Binary, exp.In):
        looked = sum(lengths.of(child) for child in node.iter_expressions() if not isinstance(child, exp.Query))
        total += max(looked, lengths.of(node)) * _SLOW.get(_called(node), 1)
        if total > MAX_BUILT_CHARS:
            return _TOO_MUCH, node, _shown(node)
        if _keeps_all(node) and lengths.repeated(node):
            return _KEPT, node, _shown(node)
    return None


def _shown(node: Expr) -> str:
    """Return what a refusal calls a node by: as the statement does."""
    from sqlglot import exp

    if isinstance(node, exp.DPipe | exp.In):
        return "||" if isinstance(node, exp.DPipe) else "IN"
    return name_of(node) or (node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__.upper())


def _called(node: Expr) -> str:
    return name_of(node) or type(node).__name__.lower()


def _keeps_all(node: Expr) -> bool:
    """Tell whether a value of every row stays in memory: gathered, or what something is looked for in."""
    from sqlglot import exp

    in_query = isinstance(node, exp.In) and node.args.get("query") is not None
    compared = isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All)
    return is_gathering(node) or in_query or compared or (isinstance(node, exp.Array) and node.find(exp.Select) is not None)


def _digits(number: str) -> int:
    """Return how many digits a number has that is written with more of them than columns hold."""
    exponent = number.lower().partition("e")[2].lstrip("+-")
    digits = len(number) + (int(exponent) if exponent.isdecimal() and len(exponent) < 9 else 0)
    return digits if digits > MAX_REPEATS else 0


class _Lengths:
    """Estimates how many characters values have that one query builds."""

    def __init__(self, tree: Expr) -> None:
        self._names = dict[str, int]()
        self._known = dict[int, int]()
        nodes = list(tree.walk())
        for _ in range(_TURNS):  # Names are handed on from subquery to subquery.
            before = dict(self._names)
            self._known.clear()
            for node in reversed(nodes):  # The parts of a value before the value, so that long chains go no deeper.
                self.of(node)
            self._learn(tree)
            if before == self._names:
                break

    def of(self, node: Expr | None) -> int:
        """Return the length of a value."""
        if node is None:
            return 0
        if (known := self._known.get(id(node))) is None:
            known = self._known[id(node)] = min(self._measured(node), MAX_BUILT_CHARS + 1)
        return known

    def repeated(self, node: Expr) -> bool:
        """Tell whether what stands in an expression is long because it is repeated or padded, and not by what it gathers."""
        from sqlglot import exp

        return any(
            self.of(part) > MAX_REPEATS
            for part in node.find_all(exp.Repeat, exp.Pad, exp.Column)
            if not isinstance(part, exp.Column) or self.of(part) != _GATHERED
        )

    def _measured(self, node: Expr) -> int:
        from sqlglot import exp

        if isinstance(node, exp.Literal):
            return len(node.name) if node.is_string else _digits(node.name)
        if isinstance(node, exp.Pow | exp.Factorial) or name_of(node) == "factorial":
            return self._multiplied(node)
        if isinstance(node, exp.Column):
            return self._names.get(node.name.lower(), 0)
        if isinstance(node, exp.Repeat | exp.Pad):
            number = number_of(count_of(node))
            count = MAX_REPEATS if number is None else number
            return count * max(1, self.of(node.this)) if isinstance(node, exp.Repeat) else max(count, self.of(node.this))
        if isinstance(node, exp.SetOperation):
            return max(self.of(node.this), self.of(node.expression))
        if isinstance(node, exp.Select):
            return max(map(self.of, node.expressions), default=0)
        if isinstance(node, exp.Subquery):
            return self.of(node.this)
        return self._combined(node)

    def _combined(self, node: Expr) -> int:
        """Return the length of what is made of other values."""
        from sqlglot import exp

        if isinstance(node, exp.Replace | exp.RegexpReplace):
            old = node.args.get("expression")
            replaced = max(1, len(old.name)) if isinstance(node, exp.Replace) and isinstance(old, exp.Literal) else 1
            return self.of(node.this) * max(1, -(-self.of(node.args.get("replacement")) // replaced))
        if is_gathering(node):
            return self._gathered(node)
        if isinstance(node, exp.Format):
            uses = node.this.name.count("%") if isinstance(node.this, exp.Literal) else 1
            return uses * max((self.of(part) for part in node.expressions), default=0)
        numeric = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod
        if is_shrinking(node) or (isinstance(node, exp.Binary) and not isinstance(node, exp.DPipe | numeric)):
            return 0
        return sum(self.of(child) for child in node.iter_expressions())

    def _multiplied(self, node: Expr) -> int:
        """Return how many digits a power or a factorial may have."""
        from sqlglot import exp

        times = node.args.get("expression") if isinstance(node, exp.Pow) else ([*node.expressions, node.this])[0]
        if not isinstance(times, exp.Literal) or times.is_string:
            return _PERHAPS_WIDE
        whole = times.name.partition(".")[0]
        return (
            _WIDE
            if len(whole) > len(str(MAX_REPEATS)) or not (whole or "0").isdecimal() or int(whole or 0) > MAX_REPEATS
            else 0
        )

    def _gathered(self, node: Expr) -> int:
        from sqlglot import exp

        if name_of(node) != "array_fill":
            return _GATHERED
        value, sizes = ([*node.expressions, None, None])[:2]
        count = 1
        for item in sizes.expressions if isinstance(sizes, exp.Array) else ():
            count *= number_of(item) or 1
        return count * max(1, self.of(value))

    def _learn(self, tree: Expr) -> None:
        from sqlglot import exp

        for source in tree.find_all(exp.CTE, exp.Subquery, exp.Lateral, exp.Values, exp.Table):
            if isinstance(source, exp.CTE | exp.Subquery):
                columns = columns_of(source)
                for query in queries_of(source.this):
                    for place, part in enumerate(query.expressions):
                        names = [part.alias_or_name.lower(), source.alias_or_name.lower(), *columns[place : place + 1]]
                        self._note(names, self.of(part))
            elif not isinstance(source.this, exp.Identifier):
                size = max((self.of(part) for part in source.iter_expressions()), default=0)
                self._note([source.alias_or_name.lower(), *columns_of(source)], size)

    def _note(self, names: list[str], size: int) -> None:
        for name in names:
            if name and size > self._names.get(name, 0):
                self._names[name] = size
