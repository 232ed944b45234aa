"""Which values of a PostgreSQL query may be large because the query itself builds them.

What is stored counts as small: it is as large as its owner made it. Large is what gathers rows into one value, repeats a text,
or doubles itself; and each column that has its name from such an expression, in whichever subquery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_WRITTEN_CHARS = 2_000
MAX_WRITTEN_ITEMS = 500
MAX_REPEATS = 1_000
MAX_BUILT_CHARS = 20_000_000
_TURNS = 12

_GATHERING = frozenset(
    """
    array_fill json_agg json_agg_strict json_arrayagg json_object_agg json_object_agg_strict json_object_agg_unique
    json_object_agg_unique_strict json_objectagg jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict
    jsonb_object_agg_unique jsonb_object_agg_unique_strict range_agg
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)
# Their result is a number or a hash, whatever they are given.
_SHRINKING = frozenset(
    """
    array_length array_ndims array_upper array_lower array_position bit_length bool_and bool_or cardinality char_length count
    json_array_length jsonb_array_length length md5 numnode octet_length pg_column_size sum avg similarity ts_rank ts_rank_cd
    hashtext
    """.split()  # noqa: SIM905
)
_WIDTH = re.compile(r"%(?:\d+\$)?-?(?:\d{4,}|\*)")


class Sizes:
    """Tells which values of one query may be large.

    Args:
        tree: The query.
        has_plain_sources: Every row is one of a table or view.
    """

    def __init__(self, tree: Expr, has_plain_sources: bool) -> None:
        self._is_plain = has_plain_sources
        self._names: set[str] = set()
        self._has_unnamed = False
        self._large = dict[int, bool]()
        if has_plain_sources:
            return
        known = -1
        for _ in range(_TURNS):  # Names are handed on from subquery to subquery.
            if known == len(self._names) + self._has_unnamed:
                break
            known = len(self._names) + self._has_unnamed
            self._large.clear()
            self._learn(tree)
        else:
            self._has_unnamed = True  # Too far to follow: any name may stand for something large.
        self._large.clear()
        for node in reversed(list(tree.walk())):  # The parts of a value before the value, so that long chains go no deeper.
            self.is_large(node)

    def is_large(self, node: Expr | None) -> bool:
        """Tell whether the value of an expression may be large."""
        if node is None:
            return False
        if (known := self._large.get(id(node))) is None:
            known = self._large[id(node)] = self._is_large(node)
        return known

    def _is_large(self, node: Expr) -> bool:
        from sqlglot import exp

        if isinstance(node, exp.Column):
            return self._has_unnamed or node.name.lower() in self._names
        if is_shrinking(node):
            return False
        return self._grows(node) or any(self.is_large(child) for child in node.iter_expressions())

    def _grows(self, node: Expr) -> bool:
        from sqlglot import exp

        if isinstance(node, exp.Literal):
            return node.is_string and len(node.name) > MAX_WRITTEN_CHARS
        if isinstance(node, exp.Array):
            return len(node.expressions) > MAX_WRITTEN_ITEMS or node.find(exp.Select) is not None
        if isinstance(node, exp.Repeat | exp.Pad):
            count = number_of(count_of(node))
            return count is None or count * _written(node) >= MAX_WRITTEN_CHARS
        if isinstance(node, exp.DPipe | exp.Concat | exp.ArrayConcat):
            return not self._is_plain and _doubles(node)
        if name_of(node) == "polygon" and len(node.expressions) > 1:  # Made of a circle, with so many points.
            count = number_of(node.expressions[0])
            return count is None or count > MAX_WRITTEN_ITEMS
        return is_gathering(node)

    def _learn(self, tree: Expr) -> None:
        """Note the names of columns that hold large values."""
        from sqlglot import exp

        recursive = {
            id(cte) for clause in tree.find_all(exp.With) if clause.args.get("recursive") for cte in clause.expressions
        }
        for source in tree.find_all(exp.CTE, exp.Subquery, exp.Lateral, exp.Unnest, exp.Values, exp.Table):
            if isinstance(source, exp.CTE | exp.Subquery):
                self._learn_columns(source, is_recursive=id(source) in recursive)
            elif not isinstance(source.this, exp.Identifier) and any(map(self.is_large, source.iter_expressions())):
                self._names |= {*columns_of(source), source.alias_or_name.lower()}

    def _learn_columns(self, source: Expr, *, is_recursive: bool) -> None:
        from sqlglot import exp

        branches = [select.expressions for select in queries_of(source.this)]
        columns = columns_of(source)
        for branch in branches:
            for place, part in enumerate(branch):
                # What a recursion adds to in each round may become of any size.
                if self.is_large(part) or (is_recursive and part.find(exp.DPipe, exp.Func) is not None):
                    self._names.add(source.alias_or_name.lower())  # A whole row is a value too.
                    self._learn_place(place, branches, columns)
        self._names.discard("")

    def _learn_place(self, place: int, branches: list[list[Expr]], columns: list[str]) -> None:
        """Note the names of one column of a source."""
        from sqlglot import exp

        parts = [branch[place] for branch in branches if place < len(branch)]
        has_star = any(part.is_star for branch in branches for part in branch)
        self._names |= {part.alias_or_name.lower() for part in parts}
        self._names |= set(columns if has_star else columns[place : place + 1])
        self._has_unnamed |= not columns and not isinstance(parts[0], exp.Alias | exp.Column)


def is_gathering(node: Expr) -> bool:
    """Tell whether this puts many values into one."""
    from sqlglot import exp

    gathering = (exp.GroupConcat, exp.ArrayAgg, exp.JSONArrayAgg, exp.JSONObjectAgg, exp.JSONBObjectAgg)
    return isinstance(node, gathering) or name_of(node) in _GATHERING


def _doubles(node: Expr) -> bool:
    """Tell whether a column stands more than once in what is put together."""
    from sqlglot import exp

    names = [column.sql() for column in node.find_all(exp.Column)]
    return len(set(names)) < len(names)


def queries_of(body: Expr) -> list[Expr]:
    """Return the queries whose rows a body hands out, one after the other."""
    from sqlglot import exp

    found: list[Expr] = []
    left = [body]
    while left:
        node = left.pop()
        if isinstance(node, exp.SetOperation):
            left += [node.expression, node.this]
        elif isinstance(node, exp.Subquery | exp.Paren):
            left.append(node.this)
        elif isinstance(node, exp.Select):
            found.append(node)
    return found


def check_built(tree: Expr, has_plain_sources: bool, sizes: Sizes) -> tuple[str, Expr, str] | None:
    """Return the reason, the node and the part of a text that is built too large, or `None`.

    The engine bounds a value at 1 GB, but not how many of them one expression makes, nor the memory that they take together.
    """
    from sqlglot import exp

    built = 0
    for node in tree.find_all(exp.Repeat, exp.Pad, exp.Format, exp.DataType, exp.Anonymous):
        size = _built(node, has_plain_sources)
        what = _called(node)
        if isinstance(node, exp.Repeat) and node.find(exp.Column) is not None and sizes.is_large(node.this):
            return "What is repeated here is large already; repeat it at once", node, "repeat"
        if size is None:
            return "The size of what is built here has to be a plain number; write least(…, 1000) around it", node, what
        built += size * _around(node)
        if built > MAX_BUILT_CHARS:
            return (
                f"This statement builds texts of more than {MAX_BUILT_CHARS:,} characters; build fewer or smaller ones",
                node,
                what,
            )
    return None


def _built(node: Expr, has_plain_sources: bool) -> int | None:
    """Return how many characters or items a call makes of each that it is given; `None` where that cannot be seen."""
    from sqlglot import exp

    if isinstance(node, exp.Format):
        return None if node.this is None or not isinstance(node.this, exp.Literal) or _WIDTH.search(node.this.name) else 0
    if isinstance(node, exp.DataType):
        numbers = [number_of(parameter.this) for parameter in node.expressions if isinstance(parameter, exp.DataTypeParam)]
        return max((number for number in numbers if number is not None), default=0)
    if isinstance(node, exp.Anonymous):
        if node.name.lower() != "array_fill":
            return 0
        sizes = node.expressions[1] if len(node.expressions) > 1 else None
        numbers = [number_of(item) for item in sizes.expressions] if isinstance(sizes, exp.Array) else [None]
        return None if None in numbers else _product(number for number in numbers if number is not None)
    count = number_of(count_of(node))
    if count is None:
        return MAX_REPEATS if has_plain_sources and _is_stored(count_of(node)) else None
    return count * (_written(node.this) if isinstance(node, exp.Repeat) else 1)


def _around(node: Expr) -> int:
    """Return how often what surrounds a call repeats it."""
    from sqlglot import exp

    times, parent = 1, node.parent
    while parent is not None:
        if isinstance(parent, exp.Repeat):
            times *= max(1, number_of(count_of(parent)) or 1)
        parent = parent.parent
    return min(times, MAX_BUILT_CHARS)


def _written(node: Expr) -> int:
    """Return the length of the longest string that is written in an expression, at least 1."""
    from sqlglot import exp

    return max([1, *(len(literal.name) for literal in node.find_all(exp.Literal) if literal.is_string)])


def _is_stored(node: Expr | None) -> bool:
    """Tell whether a number comes from rows of tables and is not multiplied on its way."""
    from sqlglot import exp

    if node is None or node.find(exp.Column, exp.Star) is None:
        return False
    products = (
        len(list(node.find_all(exp.Mul, exp.Pow, exp.BitwiseLeftShift, exp.Exp))) + (node.find(exp.Factorial) is not None) * 9
    )
    return products < 2 and not any(map(_enlarges, node.find_all(exp.Literal)))


def _enlarges(literal: Expr) -> bool:
    """Tell whether a number makes another one many times as large: as a factor, or as a fraction that divides it."""
    from sqlglot import exp

    try:
        number = 0.0 if literal.args.get("is_string") else float(literal.name)
    except ValueError:
        return True
    divides = isinstance(literal.parent, exp.Div) and literal.parent.expression is literal
    return 0 < number < 1 / MAX_REPEATS if divides else number > MAX_REPEATS


def count_of(node: Expr) -> Expr | None:
    """Return how often a call repeats, or how wide it pads."""
    from sqlglot import exp

    return node.args.get("times") if isinstance(node, exp.Repeat) else node.args.get("expression")


def number_of(node: Expr | None) -> int | None:
    """Return a whole number that is written out, or the number that `least(…)` keeps another one below."""
    from sqlglot import exp

    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Least):
        bounds = [number_of(part) for part in (node.this, *node.expressions)]
        return min((bound for bound in bounds if bound is not None), default=None)
    if isinstance(node, exp.Neg):
        return 0
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdecimal() and len(node.name) < 12 else None


def _product(numbers: Iterator[int]) -> int:
    result = 1
    for number in numbers:
        result = min(result * max(1, number), MAX_BUILT_CHARS + 1)
    return result


def _called(node: Expr) -> str:
    """Return what a refusal calls a node by: as the statement does."""
    from sqlglot import exp

    if isinstance(node, exp.Pad):
        return "lpad" if node.args.get("is_left") else "rpad"
    if isinstance(node, exp.DataType):
        return "char"  # The only type that pads its values.
    return name_of(node) or type(node).__name__.lower()


def name_of(node: Expr) -> str:
    """Return the name of a function that the parser does not know, `""` for anything else."""
    from sqlglot import exp

    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def is_shrinking(node: Expr) -> bool:
    """Tell whether a function makes a number or a hash of whatever it is given."""
    from sqlglot import exp

    if not isinstance(node, exp.Func) or isinstance(node, exp.Cast):
        return False
    names = {name_of(node)} if isinstance(node, exp.Anonymous) else {name.lower() for name in node.sql_names()}
    return not names.isdisjoint(_SHRINKING) or isinstance(node, exp.Length | exp.ArraySize | exp.Count | exp.Sum | exp.MD5)


def columns_of(source: Expr) -> list[str]:
    """Return the names that stand in brackets behind the name of a source."""
    from sqlglot import exp

    alias = source.args.get("alias")
    return [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
