"""What only reads in Trino: its lexical rules, its statements, and the catalogues and tables of the engine itself.

Sources: the pages "SQL statement syntax", "Reserved keywords" and "System connector" of Trino's manual, and its `SqlBase.g4`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agentkernel_kb.guard.dialects import GuardDialect
from agentkernel_kb.guard.lexer import Lexer, LexicalRules, Token
from agentkernel_kb.guard.trino_functions import TRINO_FUNCTIONS, TRINO_TABLE_FUNCTIONS

_RULES = LexicalRules(
    comment=r"--[^\n\r]*+|/\*.*?\*/",
    string=r"(?:[xX]|[uU]&)?'(?:[^']|'')*+'",
    quoted=r'"(?:[^"]|"")*+"',
    # The braces, the question mark, the circumflex and the dollar sign are those of row patterns.
    mark=r"->|=>|\|\||<>|!=|<=|>=|\{(?![{%#])|[-+*/%<>=(),.;:|?^$}\[\]]",
    parameter=r"\?(?=\?\?)",
    quotes="'\"",
)


def _check_tokens(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    for token, following in pairwise(tokens):
        if token.kind == following.kind == "string":
            return "Two strings follow each other; write them as one, or put || between", following
    parameter = next((token for token in _outside_patterns(tokens) if token.text == "?"), None)
    return None if parameter is None else ("Parameters are not supported, write the value itself", parameter)


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
    return None if accepted else (_SHOW_REASON, tokens[min(1, len(tokens) - 1)])


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
    return None if accepted else ("DESCRIBE takes the name of one table", tokens[min(1, len(tokens) - 1)])


_GRAMMAR = """
ALL AND ANY ARRAY AS BERNOULLI BETWEEN BY CASE CAST COLUMNS CUBE DISTINCT ELSE ESCAPE EXCEPT EXISTS FILTER FIRST FROM GROUP
HAVING IN INTERSECT JOIN LATERAL LIKE LIMIT MATCH_RECOGNIZE NOT OF OFFSET ON OR OVER PATTERN PERMUTE ROLLUP ROW SELECT SETS
SOME SYSTEM THEN TRY_CAST UNION USING VALUES WHEN WHERE ZONE
"""
_TYPES = "CHAR DECIMAL DEC INTERVAL NUMERIC QDIGEST TIME TIMESTAMP VARCHAR"

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
    hidden_schemas=frozenset({("jmx",), ("runtime",), ("system",)}),
    shown_tables=frozenset(("system", *parts) for parts in _SYSTEM_TABLES),
    statements={"DESC": _check_describe, "DESCRIBE": _check_describe, "SHOW": _check_show},
    lexical_check=_check_tokens,
)
