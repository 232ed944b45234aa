"""What only reads in Trino: its lexical rules, its statements, and the catalogues and tables of the engine itself.

Sources: the pages "SQL statement syntax", "Reserved keywords" and "System connector" of Trino's manual, and its `SqlBase.g4`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.dialects import GuardDialect, Replacement
from agentkernel_kb.guard.lexer import Lexer, LexicalRules, Token
from agentkernel_kb.guard.tree import HIDDEN_REASON
from agentkernel_kb.guard.trino_functions import TRINO_FUNCTIONS, TRINO_TABLE_FUNCTIONS
from agentkernel_kb.guard.trino_sizes import ROUNDS_OF_A_RECURSION, check_sizes

_RULES = LexicalRules(
    comment=r"--[^\n\r]*+|/\*.*?\*/",
    string=r"(?:[xX]|[uU]&)?'(?:[^']|'')*+'",
    quoted=r'"(?:[^"]|"")*+"',
    # The braces, the question mark, the circumflex and the dollar sign are those of row patterns.
    mark=r"->|=>|\|\||<>|!=|<=|>=|\{(?![{%#])|[-+*/%<>=(),.;:|?^$}\[\]]",
    parameter=r"\?(?=\?\?)",
    quotes="'\"",
)


_SYSTEM_TABLES = [
    ("jdbc", "catalogs"),
    ("jdbc", "columns"),
    ("jdbc", "schemas"),
    ("jdbc", "tables"),
    ("jdbc", "types"),
    ("metadata", "catalogs"),
    ("metadata", "materialized_views"),
    ("metadata", "table_comments"),
]
_HIDDEN_SCHEMAS = frozenset({("jmx",), ("runtime",), ("system",)})
_HIDDEN_VIEWS = frozenset(
    ("information_schema", name)
    for name in ("applicable_roles", "enabled_roles", "role_authorization_descriptors", "roles", "table_privileges")
)
"""Views that show what `SHOW ROLES` and `SHOW GRANTS` do."""
_SHOWN_TABLES = frozenset(("system", *parts) for parts in _SYSTEM_TABLES)


def _check_tokens(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    for token, following in pairwise(tokens):
        if token.kind == following.kind == "string":
            return "Two strings follow each other; write them as one, or put || between", following
    parameter = next((token for token in _outside_patterns(tokens) if token.text == "?"), None)
    if parameter is not None:
        return "Parameters are not supported, write the value itself", parameter
    if row := _bare_row(tokens):
        return "The first row of a WITH that names its columns stands in brackets, as in VALUES (DATE '2024-01-01')", row
    check_sizes(tokens)
    return None


def _bare_row(tokens: tuple[Token, ...]) -> Token | None:
    """Return the word that begins a row without brackets in `t (a) AS (VALUES word …`, which could as well be a type."""
    for index in range(len(tokens) - 4):
        words = [token.keyword or token.text for token in tokens[index : index + 4]]
        if words == [")", "AS", "(", "VALUES"] and tokens[index + 4].kind == "word":
            return tokens[index + 4]
    return None


def _outside_patterns(tokens: tuple[Token, ...]) -> Sequence[Token]:
    """Return the tokens that do not stand in the brackets of a row pattern, where `?` is a quantifier."""
    outside: list[Token] = []
    depth = 0
    for index, token in enumerate(tokens):
        if depth or (token.text == "(" and index and tokens[index - 1].keyword == "PATTERN"):
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        else:
            outside.append(token)
    return outside


_QUERIES = frozenset({"SELECT", "TABLE", "VALUES", "WITH"})


def _as_queries(tokens: Sequence[Token]) -> list[Replacement]:
    """Show the parser `TABLE(a.b.c)`, an argument whose name it would take for a column, as a query of that table."""
    found: list[Replacement] = []
    for index, (token, bracket) in enumerate(pairwise(tokens)):
        name = _name_at(tokens, index + 2)
        following = tokens[index + 2 + len(name) :][:1]
        if token.keyword != "TABLE" or bracket.text != "(" or not name or name[0].keyword in _QUERIES:
            continue
        if not following or following[0].text not in ("(", ")"):
            part, position = name[0].shown, name[0].start
            raise KnowledgeGuardError("TABLE takes the name of a table, a query or a call", part=part, position=position)
        if following[0].text == ")":
            found += [Replacement(token.start, bracket.end, "(FROM "), *_order_of(tokens, index + 3 + len(name))]
    return found


_ORDERED = frozenset({"PARTITION", "ORDER", "PRUNE", "KEEP"})


def _order_of(tokens: Sequence[Token], start: int) -> list[Replacement]:
    """Keep from the parser how the rows of an argument are divided and ordered, where plain columns say so."""
    depth, end = 0, start
    while end < len(tokens) and not (depth == 0 and tokens[end].text in (",", ")")):
        token = tokens[end]
        if not (token.kind in ("word", "quoted") or token.text in ("(", ")", ",", ".")) or token.keyword in _QUERIES:
            return []
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        end += 1
    first = tokens[start].keyword if start < end else ""
    return [Replacement(tokens[start].start, tokens[end - 1].end, "")] if first in _ORDERED else []


def _name_at(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """Return the tokens of the dotted name that starts there; none where no name does."""
    end = start
    while end < len(tokens) and tokens[end].kind in ("word", "quoted"):
        end += 1
        if end == len(tokens) or tokens[end].text != ".":
            break
        end += 1
    return tokens[start:end]


def without_semicolon(statement: str) -> str:
    """Return a proven statement up to the semicolon that may end it: Trino's server takes none."""
    end = next((token.start for token in Lexer(_RULES).read(statement).tokens if token.text == ";"), None)
    return statement if end is None else statement[:end]


_SHOW_REASON = (
    "SHOW takes CATALOGS, SCHEMAS [FROM catalog], TABLES [FROM schema], COLUMNS FROM table or FUNCTIONS [FROM schema], with "
    "LIKE 'pattern' at will, STATS FOR table, or CREATE TABLE, VIEW, MATERIALIZED VIEW or SCHEMA with a name"
)
_LISTS = {"CATALOGS": 0, "COLUMNS": 3, "FUNCTIONS": 2, "SCHEMAS": 1, "TABLES": 2}
_CREATED = {"TABLE": 3, "VIEW": 3, "SCHEMA": 2}


def _check_show(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    """Accept the forms of `SHOW` that list or describe what data there is."""
    what, rest = tokens[1].keyword if len(tokens) > 1 else "", tokens[2:]
    if what == "CREATE":
        rest = rest[1:] if rest and rest[0].keyword == "MATERIALIZED" else rest
        accepted = bool(rest) and _is_name(rest[1:], _CREATED.get(rest[0].keyword, 0))
    elif what == "STATS":
        accepted = bool(rest) and rest[0].keyword == "FOR" and _is_name(rest[1:], 3)
    else:
        accepted = what in _LISTS and _is_list(rest, _LISTS[what], needs_source=what == "COLUMNS")
    if not accepted:
        return _SHOW_REASON, tokens[min(1, len(tokens) - 1)]
    return _check_described(_name_at(rest, 1)) if what in ("COLUMNS", "CREATE", "STATS") else None


def _check_described(name: Sequence[Token]) -> tuple[str, Token] | None:
    """Refuse the name of a table, or of a schema, whose rows a query may not read either."""
    parts = tuple(token.name for token in name[::2])
    is_hidden = any(parts[: len(schema)] == schema for schema in _HIDDEN_SCHEMAS) and parts not in _SHOWN_TABLES
    return (HIDDEN_REASON, name[-1]) if is_hidden else None


def _is_list(tokens: tuple[Token, ...], most_parts: int, *, needs_source: bool) -> bool:
    """Tell whether this is `[FROM name] [LIKE 'pattern' [ESCAPE 'character']]`."""
    kinds = [token.kind if token.kind == "string" else token.keyword for token in tokens]
    end = kinds.index("LIKE") if "LIKE" in kinds else len(kinds)
    if kinds[end:] not in ([], ["LIKE", "string"], ["LIKE", "string", "ESCAPE", "string"]):
        return False
    if not end:
        return not needs_source
    return most_parts > 0 and kinds[0] in ("FROM", "IN") and _is_name(tokens[1:end], most_parts)


def _is_name(tokens: tuple[Token, ...], most_parts: int) -> bool:
    """Tell whether the tokens are one name of at most so many parts."""
    names, dots = tokens[::2], tokens[1::2]
    return (
        len(names) == len(dots) + 1 <= most_parts
        and all(token.kind in ("word", "quoted") for token in names)
        and all(token.text == "." for token in dots)
    )


def _check_describe(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    accepted = _is_name(tokens[1:], 3)
    if not accepted:
        return "DESCRIBE takes the name of one table", tokens[min(1, len(tokens) - 1)]
    return _check_described(tokens[1:])


_GRAMMAR = """
ALL AND ANY ARRAY AS BERNOULLI BETWEEN BY CASE CAST COLUMNS CUBE DISTINCT ELSE ESCAPE EXCEPT EXISTS FILTER FIRST FROM GROUP
HAVING IN INTERSECT JOIN LATERAL LIKE LIMIT MATCH_RECOGNIZE NOT OF OFFSET ON OR OVER PATTERN PERMUTE ROLLUP ROW SELECT SETS
SOME SYSTEM THEN TRY_CAST UNION USING VALUES WHEN WHERE ZONE
"""
_TYPES = "CHAR DECIMAL DEC INTERVAL NUMERIC QDIGEST TIME TIMESTAMP VARCHAR"

TRINO = GuardDialect(
    name="trino",
    rules=_RULES,
    roots=frozenset({"SELECT", "TABLE", "VALUES", "WITH"}),
    explain=(("EXPLAIN", "ANALYZE", "VERBOSE"), ("EXPLAIN", "ANALYZE"), ("EXPLAIN",)),
    explain_options=frozenset(
        ["DISTRIBUTED", "FORMAT", "GRAPHVIZ", "IO", "JSON", "LOGICAL", "TEXT", "TYPE", "VALIDATE"],
    ),
    # The single words are reserved in Trino's grammar: outside quotes they are never a name.
    refusals={
        "ALTER": "This statement changes the schema",
        "CREATE": "This statement creates something",
        "DEALLOCATE": "This statement drops a prepared statement",
        "DELETE": "This statement deletes",
        "DROP": "This statement drops something",
        "FOR UPDATE": "This statement locks rows",
        "EXECUTE": "This statement runs a prepared statement",
        "INSERT": "This statement inserts",
        "INTO": "This statement writes",
        "PREPARE": "This statement prepares another one",
        "WITH FUNCTION": "This statement defines a function",
    },
    before_bracket=frozenset((_GRAMMAR + _TYPES).split()),
    slow_words=frozenset(),
    functions=TRINO_FUNCTIONS,
    table_functions=TRINO_TABLE_FUNCTIONS,
    hidden_tables=frozenset(),
    table_prefixes=(),
    after_operand=frozenset({"COLUMNS", "OVER"}),
    hidden_schemas=_HIDDEN_SCHEMAS,
    hidden_views=_HIDDEN_VIEWS,
    shown_tables=_SHOWN_TABLES,
    statements={"DESC": _check_describe, "DESCRIBE": _check_describe, "SHOW": _check_show},
    shown_to_parser=_as_queries,
    lexical_check=_check_tokens,
    recursion_rounds=ROUNDS_OF_A_RECURSION,
)
