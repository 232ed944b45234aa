"""Calls of PostgreSQL without brackets: it takes `x.f` for `f(x)` where the row source `x` has no column `f`.

What `x` is then decides what can be called. The whole row of a table, view, subquery, CTE, `VALUES` or join is a composite
value: only functions that take any value or that row can be meant, which are those that describe values (`row_to_json`,
`pg_typeof`) and those that the owner of the database made for such rows. Of one function in FROM, `x` is its result itself, so
that a text can be the argument of `pg_read_file`. There, a field has to be a column for all to see, whichever of the sources of
that name is meant.

Sources: section 4.2.6 of PostgreSQL's manual; `ParseFuncOrColumn`, `makeWholeRowVar` and `chooseScalarFunctionAlias` of its
parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentkernel_kb.guard.lexer import folded
from agentkernel_kb.guard.postgres_functions import COLUMNS_OF_FUNCTIONS, NAMED_AS_THEIR_ALIAS, POSTGRES_FUNCTIONS

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_VALUES_WITHOUT_BRACKETS = frozenset(
    """
    current_catalog current_date current_role current_schema current_time current_timestamp current_user localtime
    localtimestamp session_user system_user user
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)
# What a function in FROM without a name of its own can be called by, besides the words that it is written with.
_NAMES_OF_FUNCTIONS = POSTGRES_FUNCTIONS | _VALUES_WITHOUT_BRACKETS
_MADE_BY_THE_PARSER = {"exploding_generate_series": "generate_series"}


@dataclass
class _Sources:
    """What stands in FROM anywhere in a statement, by names in lower case, so that one stands for all that could be meant.

    Attributes:
        rows: Names of sources whose row is a composite value.
        functions: Columns of each function, as far as they are sure, by its name: those that all functions of that name have.
        unnamed: Words by which functions without an alias could be called.
        has_unnamed: There is such a function.
        has_unnamed_cast: There is a cast without an alias, which is called by the engine's own name of its type.
    """

    rows: set[str] = field(default_factory=set[str])
    functions: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    unnamed: set[str] = field(default_factory=set[str])
    has_unnamed: bool = False
    has_unnamed_cast: bool = False

    def add_function(self, name: str, columns: frozenset[str]) -> None:
        self.functions[name] = self.functions.get(name, columns) & columns

    def is_row(self, name: str) -> bool:
        """Tell whether `name` can be nothing but a source whose row is a composite value."""
        if name not in self.rows or name in self.functions or self.has_unnamed_cast:
            return False
        return not (self.has_unnamed and name in self.unnamed | _NAMES_OF_FUNCTIONS)


def check_fields(tree: Expr) -> tuple[str, Expr, str] | None:
    """Return the reason, the node and the name of a field that could be the call of a function, or `None`."""
    from sqlglot import exp

    sources = _sources(tree)
    for node in tree.find_all(exp.Column, exp.Dot):
        before, name = (node.this, node.expression) if isinstance(node, exp.Dot) else (node.args.get("table"), node.this)
        if before is None or not isinstance(name, exp.Identifier):
            continue
        owner = before.name.lower()
        if not sources.is_row(owner) and _compared(name) not in sources.functions.get(owner, frozenset[str]()):
            return f"This can be a function of {owner}; name the columns of {owner} in brackets after AS", node, name.name
    return None


def _sources(tree: Expr) -> _Sources:
    from sqlglot import exp

    sources = _Sources()
    for source in tree.find_all(exp.Table, exp.Unnest, exp.Lateral, exp.Subquery, exp.Values):
        if source.arg_key == "rows_from" or isinstance(source.parent, exp.Lateral):  # The outer one has the name.
            continue
        if _has_composite_rows(source):
            sources.rows.add(source.alias_or_name.lower())
        elif source.alias:
            sources.add_function(source.alias.lower(), _columns(source))
        else:
            _add_unnamed(sources, source)
    return sources


def _add_unnamed(sources: _Sources, source: Expr) -> None:
    from sqlglot import exp

    sources.has_unnamed = True
    sources.has_unnamed_cast |= isinstance(source.this, exp.Cast)
    sources.unnamed.update(re.findall(r"[^\W\d]\w*", source.sql("postgres").lower()))
    name = source.this.name.lower() if isinstance(source.this, exp.Identifier) else _function_name(source)
    sources.add_function(name, _columns(source))


def _has_composite_rows(source: Expr) -> bool:
    from sqlglot import exp

    if isinstance(source, exp.Subquery | exp.Values) or isinstance(source.this, exp.Subquery | exp.JSONTable):
        return True
    return isinstance(source.this, exp.Identifier) and not _is_value_without_brackets(source.this)


def _is_value_without_brackets(name: Expr) -> bool:
    """Tell whether a table is none but a function that is called without brackets, as in `FROM current_user`."""
    return not name.args.get("quoted") and name.name.lower() in _VALUES_WITHOUT_BRACKETS


def _columns(source: Expr) -> frozenset[str]:
    """Return the names that columns of a function in FROM have for sure."""
    from sqlglot import exp

    alias = source.args.get("alias")
    named = [_compared(column) for column in _named_columns(source, alias)]
    if not named and _function_name(source) in NAMED_AS_THEIR_ALIAS:
        own = alias.this if isinstance(alias, exp.TableAlias) else None
        named = [_compared(own) if isinstance(own, exp.Identifier) else _function_name(source)]
    return frozenset(named) | COLUMNS_OF_FUNCTIONS


def _named_columns(source: Expr, alias: object) -> Iterator[Expr]:
    from sqlglot import exp

    for column in alias.columns if isinstance(alias, exp.TableAlias) else []:
        yield column.this if isinstance(column, exp.ColumnDef) else column
    # The parser keeps the name of the position that WITH ORDINALITY adds apart from the others.
    unnest = source if isinstance(source, exp.Unnest) else source.this
    if isinstance(unnest, exp.Unnest) and isinstance(position := unnest.args.get("offset"), exp.Identifier):
        yield position


def _function_name(source: Expr) -> str:
    """Return the name of the one function whose value a source is, or `""`."""
    from sqlglot import exp

    call = source if isinstance(source, exp.Unnest) else source.this
    if not isinstance(call, exp.Func):
        return ""
    name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
    return _MADE_BY_THE_PARSER.get(name, name)


def _compared(name: Expr) -> str:
    """Return a name as the engine compares it with others."""
    return name.name if name.args.get("quoted") else folded(name.name)
