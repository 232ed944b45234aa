"""The second proof: in the parser's tree stand only queries, expressions and their clauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.dialects import GuardDialect
from agentkernel_kb.guard.lexer import folded

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# Classes of sqlglot that are neither query nor expression, by name, so that one which another version lacks does no harm.
_CLAUSES = frozenset(
    [
        "Alias",
        "AtTimeZone",
        "CTE",
        "ColumnDef",
        "Cube",
        "DataType",
        "DataTypeParam",
        "Distinct",
        "Fetch",
        "Filter",
        "From",
        "Group",
        "GroupingSets",
        "Having",
        "Identifier",
        "IgnoreNulls",
        "Interval",
        "IntervalSpan",
        "JSONColumnDef",
        "JSONKeyValue",
        "JSONSchema",
        "JSONTable",
        "JSONValue",
        "Join",
        "Lambda",
        "Lateral",
        "Limit",
        "LimitOptions",
        "MatchRecognize",
        "MatchRecognizeMeasure",
        "National",
        "ObjectIdentifier",
        "Offset",
        "OnCondition",
        "Order",
        "Ordered",
        "OverflowTruncateBehavior",
        "RespectNulls",
        "Rollup",
        "Slice",
        "Star",
        "Table",
        "TableAlias",
        "TableSample",
        "Tuple",
        "Values",
        "Var",
        "Version",
        "Where",
        "WindowSpec",
        "With",
        "WithinGroup",
    ]
)
_CLAUSE_PREFIXES = ("JSONPath",)

HIDDEN_REASON = "This table belongs to the engine and is not part of the data"


def check_tree(tree: Expr, rules: GuardDialect, allowed: frozenset[tuple[str, ...]]) -> None:
    """Refuse a tree that holds anything but a read.

    Args:
        tree: What the parser made of the statement.
        rules: The dialect.
        allowed: Table functions that this statement may use besides the dialect's own, by the parts of their names, in lower
            case.

    Raises:
        KnowledgeGuardError: A node is no part of a read, or names a table of the engine itself.
    """
    from sqlglot import exp

    if not (isinstance(tree, exp.Query | exp.Values) or type(tree).__name__.upper() in rules.roots):
        raise _refused("This is not a query", tree)
    functions = rules.callable_names | {parts[-1] for parts in allowed}
    clauses = _CLAUSES | rules.clauses
    for node in tree.walk():
        kind = type(node).__name__
        if not (isinstance(node, exp.Query | exp.Condition) or kind in clauses or kind.startswith(_CLAUSE_PREFIXES)):
            raise _refused(f"{kind.upper()} is not part of a read", node)
        if isinstance(node, exp.Table):
            _check_table(node, tuple(part.name.lower() for part in node.parts), rules, allowed)
        elif isinstance(node, exp.In) and (field := node.args.get("field")) is not None:  # `x IN name`: the name is a table.
            _check_table(node, (field.name.lower(),), rules, allowed)
        elif isinstance(node, exp.Anonymous) and node.name.lower() not in functions:
            raise _refused("This function is not known to only read", node, node.name)
    if refused := rules.tree_check(tree):
        raise _refused(*refused)


def _check_table(node: Expr, parts: tuple[str, ...], rules: GuardDialect, allowed: frozenset[tuple[str, ...]]) -> None:
    name = parts[-1] if parts else ""
    unknown_function = name.startswith(rules.table_prefixes) and name not in rules.table_functions and parts not in allowed
    hidden = any(parts[: len(schema)] == schema for schema in rules.hidden_schemas)
    if (
        name in rules.hidden_tables
        or parts[-2:] in rules.hidden_views
        or ((unknown_function or hidden) and parts not in rules.shown_tables)
    ):
        raise _refused(HIDDEN_REASON, node, name)


def starts_of_aliases(tree: Expr) -> frozenset[int]:
    """Return the characters at which names that the statement itself gives to tables start."""
    from sqlglot import exp

    names = (alias.this for alias in tree.find_all(exp.TableAlias))
    return frozenset(name.meta["start"] for name in names if isinstance(name, exp.Identifier) and "start" in name.meta)


def _refused(reason: str, node: Expr, part: str = "") -> KnowledgeGuardError:
    starts = (found.meta["start"] for found in node.walk() if "start" in found.meta)
    return KnowledgeGuardError(reason, part=part[:40], position=next(starts, None))


def outer_limit(tree: Expr) -> tuple[bool, int | None]:
    """Return whether the outermost query has a LIMIT, and its number where it is a plain one."""
    from sqlglot import exp

    while isinstance(tree, exp.Subquery) and tree.args.get("limit") is None:
        tree = tree.this
    limit = tree.args.get("limit")
    if not isinstance(limit, exp.Limit):
        return limit is not None, None
    number = limit.expression
    is_plain = isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()
    if (options := limit.args.get("limit_options")) is not None and options.args.get("percent"):
        return True, None
    return True, int(number.name) if is_plain else None


def takes_limit(tree: Expr) -> bool:
    """Tell whether the outermost query has no LIMIT and needs one: rows that the statement itself holds need none."""
    from sqlglot import exp

    return not isinstance(tree, exp.Values) and not outer_limit(tree)[0]


def names_of_tables(tree: Expr, rules: GuardDialect) -> frozenset[str]:
    """Return the names of the tables that the tree reads, folded, without those of common table expressions.

    What tells about tables and types in another way counts as one, where the dialect has such functions.
    """
    from sqlglot import exp

    names = _telling(tree, rules)
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            parts = tuple(_compared(part, rules) for part in table.parts)
            if len(parts) > 1 or not _is_common_table(table, _compared(table.this, rules), rules):
                names.add(_known_as(parts, rules))
    for found in tree.find_all(exp.In):
        if (field := found.args.get("field")) is not None:
            name, is_qualified = folded(field.name), isinstance(field, exp.Column) and len(field.parts) > 1
            if is_qualified or not _is_common_table(found, name, rules):
                names.add(name)
    return frozenset(names - {""})


def _telling(tree: Expr, rules: GuardDialect) -> set[str]:
    """Return the functions that tell of tables or types, and the types that are the database's own, whose values that tells."""
    from sqlglot import exp

    if not rules.catalogue_functions:
        return set()
    functions = {
        (found.name if isinstance(found, exp.Anonymous) else found.sql_name()).lower() for found in tree.find_all(exp.Func)
    }
    types = {f"the type {found.sql()}" for found in tree.find_all(exp.DataType) if found.this == exp.DataType.Type.USERDEFINED}
    return (functions & rules.catalogue_functions) | types


def _compared(name: Expr, rules: GuardDialect) -> str:
    """Return a name as the engine compares it with others."""
    return name.name if rules.exact_quoted and name.args.get("quoted") else folded(name.name)


def _known_as(parts: tuple[str, ...], rules: GuardDialect) -> str:
    if not rules.default_schemas or parts[:-1] in rules.default_schemas | {()}:
        return parts[-1]
    return ".".join(parts)


def _is_common_table(node: Expr, name: str, rules: GuardDialect) -> bool:
    """Tell whether `name`, where `node` stands, is a common table expression and hides a table of that name."""
    from sqlglot import exp

    child, parent = node, node.parent
    while parent is not None:
        clause = parent.args.get("with_")
        if isinstance(parent, exp.With):  # Inside one of the expressions: it sees those before it, and itself in a recursion.
            own = next(index for index, cte in enumerate(parent.expressions) if cte is child)
            visible = parent.expressions[: own + bool(parent.args.get("recursive"))]
        else:
            visible = clause.expressions if isinstance(clause, exp.With) and clause is not child else []
        if any(_compared(cte.args["alias"].this, rules) == name for cte in visible):
            return True
        child, parent = parent, parent.parent
    return False
