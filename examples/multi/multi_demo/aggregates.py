"""SQL that the stand-in composes where a question asks for a sum, a median, or the greatest of each group."""

from __future__ import annotations

import re
from collections.abc import Sequence

from multi_demo.statements import Place, Table, restricted, within
from multi_demo.wording import MONTHS, bounds, counts, direction, stem, words

_FUNCTIONS = {
    "average": ("average", "round(avg({}), 2)"),
    "mean": ("average", "round(avg({}), 2)"),
    "total": ("total", "sum({})"),
    "sum": ("total", "sum({})"),
}
_SORTED = "array_sort(array_agg({0}))"
_MEDIANS = {
    "duckdb": "median({0})",
    # Trino's own percentiles are approximate; this is the mean of the two in the middle, which are one where the count is odd.
    "trino": f"(element_at({_SORTED}, (count(*) + 1) / 2) + element_at({_SORTED}, (count(*) + 2) / 2)) / 2e0",
}
_MONTH_NAMES = {"duckdb": "monthname({0})", "trino": "date_format({0}, '%M')"}
_PERIODS = frozenset(("year", "quarter", "month", "week", "day"))
_GROUP = re.compile(r"\b(?:each|every|per|which)\s+(\w+)", re.IGNORECASE)


def aggregate(question: str, table: Table, tables: Sequence[Table], places: Sequence[Place], *, dialect: str) -> str | None:
    """Return the statement for a question about groups or sums of a table's rows.

    Returns:
        `None` if it asks for neither. Medians, periods and the first of each group are for DuckDB and Trino alone.
    """
    has_more = dialect in _MEDIANS
    prefix, source, conditions = restricted(table, tables, places)
    measure, groups = _measure(question, table, prefix, dialect), _groups(question, table, prefix, has_more)
    if not measure and not (has_more and groups and direction(question)):
        return None
    conditions += [*(_months(question, table, prefix, dialect) if has_more else []), *_ranges(question, table, prefix)]
    tail = f"{source}\nWHERE {' AND '.join(conditions)}" if conditions else source
    if not measure:
        return _first_of_each(question, table, groups, prefix, tail, dialect)
    if not groups:
        return f"SELECT {measure} {tail}"
    keys = ", ".join(str(number) for number in range(1, len(groups) + 1))
    order = f"{len(groups) + 1} {direction(question)} LIMIT 1" if direction(question) else keys
    return f"SELECT {', '.join(groups.values())}, {measure}\n{tail}\nGROUP BY {keys} ORDER BY {order}"


def _first_of_each(question: str, table: Table, groups: dict[str, str], prefix: str, tail: str, dialect: str) -> str:
    """Return the statement for the row of each group whose number is the greatest or the smallest."""
    column, label = f"{prefix}{_numbers(question, table)[0]}", f"{prefix}{table.label}"
    group = ", ".join(groups)
    rank = f"row_number() OVER (PARTITION BY {group} ORDER BY {column} {direction(question)}, {label})"
    columns = f"{', '.join(groups.values())}, {label}, {column}"
    if dialect == "duckdb":
        return f"SELECT {columns}\n{tail}\nQUALIFY {rank} = 1\nORDER BY {group}"
    shown = ", ".join([group, table.label, column.removeprefix(prefix)])
    return f"SELECT {shown}\nFROM (SELECT {columns}, {rank} AS place {tail})\nWHERE place = 1\nORDER BY {group}"


def _measure(question: str, table: Table, prefix: str, dialect: str) -> str:
    """Return the aggregate that is asked for, under a name that says what it is; nothing if none is."""
    asked = words(question)
    medians = {"median": ("median", _MEDIANS[dialect])} if dialect in _MEDIANS else {}
    for word, (name, function) in {**_FUNCTIONS, **medians}.items():
        if word in asked:
            column = _numbers(question, table)[0]
            return f"{function.format(prefix + column)} AS {name}_{column}"
    return f"COUNT(*) AS {table.rows}" if counts(question, table.topic) else ""


def _numbers(question: str, table: Table) -> list[str]:
    """Return the columns of numbers that a question speaks of, in its order; the table's first if it speaks of none."""
    numbers = table.numbers()
    spoken = [column for word in words(question) for column in table.mentioned(word) if column in numbers]
    return spoken or numbers[:1]


def _groups(question: str, table: Table, prefix: str, has_periods: bool) -> dict[str, str]:
    """Return the groups that are asked for, each by its name, with what a statement selects for it."""
    groups: dict[str, str] = {}
    for word in _GROUP.findall(question):
        period, dates = word.casefold(), table.dates()
        column = next((column for column in table.columns if stem(column) == stem(word)), None)
        if column:
            groups[column] = prefix + column
        elif period in _PERIODS and dates and has_periods:
            groups[period] = f"CAST(date_trunc('{period}', {prefix}{dates[0]}) AS DATE) AS {period}"
    return groups


def _months(question: str, table: Table, prefix: str, dialect: str) -> list[str]:
    named = ", ".join(f"'{month}'" for month in MONTHS if re.search(rf"\b{month}\b", question))
    if not named or not table.dates():
        return []
    return [f"{_MONTH_NAMES[dialect].format(prefix + table.dates()[0])} IN ({named})"]


def _ranges(question: str, table: Table, prefix: str) -> list[str]:
    """Return the conditions of ranges; what is spoken of last is what they bound, as in `cost of trips over 3 days`."""
    column = prefix + _numbers(question, table)[-1]
    return [part for limits in bounds(question) for part in within(column, limits)]
