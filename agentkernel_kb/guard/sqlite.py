"""What only reads in SQLite: its lexical rules, its statements, and its functions, pragmas and tables by name.

Sources: the pages `lang`, `lang_corefunc`, `lang_datefunc`, `lang_mathfunc`, `lang_aggfunc`, `windowfunctions`, `json1`, `fts5`
and `pragma` of SQLite's manual, and its `tokenize.c` and `parse.y`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.dialects import GuardDialect, Replacement
from agentkernel_kb.guard.lexer import LexicalRules, Token
from agentkernel_kb.guard.sqlite_effort import BETWEEN_VALUES, check_effort
from agentkernel_kb.guard.sqlite_search import check_ranked_search

_CORE = """
abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim max min
nullif octet_length printf quote random replace round rtrim sign soundex sqlite_version substr substring subtype trim typeof
unhex unicode unistr unistr_quote unlikely upper
"""
_DATES = "current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch"
_MATHS = """
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin
sinh sqrt tan tanh trunc
"""
_AGGREGATES = "avg count group_concat max median min percentile percentile_cont percentile_disc string_agg sum total"
_WINDOWS = "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"
# Without json_patch, whose cost is quadratic and which no deadline can interrupt.
_JSON = """
json json_array json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object
json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract
jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_remove jsonb_replace jsonb_set
"""
# Without highlight, snippet, matchinfo and offsets, whose cost grows with a power of what was found and cannot be interrupted.
_FULL_TEXT = "bm25"

SQLITE_FUNCTIONS = frozenset(" ".join((_CORE, _DATES, _MATHS, _AGGREGATES, _WINDOWS, _JSON, _FULL_TEXT)).split())
"""Functions that compute a value and do nothing else.

Left out on purpose: whatever loads, reads or writes files, tells about the process or the connection, or makes values of any
size out of nothing (`load_extension`, `readfile`, `zeroblob`, …).
"""

PRAGMAS_OF_OBJECTS = frozenset(["foreign_key_list", "index_info", "index_list", "index_xinfo", "table_info", "table_xinfo"])
"""Pragmas that describe one table or index, which is their argument."""

PRAGMAS_OF_TABLES = PRAGMAS_OF_OBJECTS - {"index_info", "index_xinfo"}
"""Those of them whose argument is a table."""

PRAGMAS_ALONE = frozenset(["collation_list", "encoding", "function_list", "table_list"])
"""Pragmas that are read without an argument."""

PRAGMA_TABLES = frozenset(f"pragma_{name}" for name in PRAGMAS_OF_OBJECTS | PRAGMAS_ALONE)

HIDDEN_TABLES = frozenset(["bytecode", "dbstat", "sqlite_dbpage", "sqlite_memstat", "sqlite_stmt", "tables_used"])
"""Tables that SQLite makes up itself: raw pages, statements, programs. They are not part of the data."""

_OPERATORS = "CAST ESCAPE GLOB IS LIKE MATCH REGEXP"
_TYPES = """
BIGINT CHARACTER DECIMAL DOUBLE FLOAT INT INTEGER NCHAR NUMERIC NVARCHAR REAL SMALLINT TEXT TINYINT VARCHAR VARYING
"""


def _check_pragma(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    """Accept `PRAGMA [schema.]name` and `PRAGMA [schema.]name(argument)` for pragmas that read the catalogue."""
    rest = tokens[1:]
    if len(rest) > 2 and rest[1].text == "." and rest[0].name:
        rest = rest[2:]
    if not rest or not rest[0].name:
        return "A pragma needs a name", tokens[0]
    pragma, arguments = rest[0], rest[1:]
    if not arguments and pragma.name in PRAGMAS_ALONE:
        return None
    if pragma.name not in PRAGMAS_OF_OBJECTS:
        return _PRAGMA_REASON, pragma
    shape = [token.text if token.kind == "mark" else "name" if token.name else "" for token in arguments]
    return None if shape == ["(", "name", ")"] else ("This pragma reads with one name in brackets and in no other way", pragma)


def _without_separators(tokens: Sequence[Token]) -> list[Replacement]:
    """Show the parser `1_000`, which SQLite 3.46 and newer read as one number, without what it does not know in a number."""
    separated = [token for token in tokens if token.kind == "number" and "_" in token.text]
    return [Replacement(token.start, token.end, token.text.replace("_", "")) for token in separated]


_PRAGMA_REASON = f"This pragma may change something; those that only read are {sorted(PRAGMAS_OF_OBJECTS | PRAGMAS_ALONE)}"

SQLITE = GuardDialect(
    name="sqlite",
    rules=LexicalRules(
        comment=r"--[^\n]*+|/\*.*?(?:\*/|\Z)",
        string=r"[xX]'[0-9a-fA-F]*+'|'(?:[^']|'')*+'",
        quoted=r'"(?:[^"]|"")*+"|`(?:[^`]|``)*+`|\[[^\]]*+\]',
        mark=r"->>|->|\|\||<<|>>|<=|>=|<>|==|!=|[-+*/%&|~<>=(),.;]",
        parameter=r"\?[0-9]*|[:@#$]\w+",
        quotes="'\"`[",
        number=(
            r"0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*+"
            r"|(?:[0-9](?:_?[0-9])*+\.?(?:[0-9](?:_?[0-9])*+)?|\.[0-9](?:_?[0-9])*+)(?:[eE][+-]?[0-9](?:_?[0-9])*+)?"
        ),
    ),
    roots=frozenset({"SELECT", "VALUES", "WITH"}),
    explain=(("EXPLAIN", "QUERY", "PLAN"), ("EXPLAIN",)),
    # All of these are reserved in SQLite's grammar: outside quotes they are never a name.
    refusals={
        "ALTER": "This statement changes the schema",
        "COMMIT": "This statement controls transactions",
        "CREATE": "This statement creates something",
        "DELETE": "This statement deletes",
        "DROP": "This statement drops something",
        "INSERT": "This statement inserts",
        "INTO": "This statement writes",
        "RETURNING": "This statement changes data",
        "SET": "This statement sets something",
        "TRANSACTION": "This statement controls transactions",
        "UPDATE": "This statement updates",
    },
    before_bracket=frozenset({*map(str.upper, BETWEEN_VALUES), *_OPERATORS.split(), *_TYPES.split()}),
    slow_words=frozenset({"GLOB", "LIKE"}),
    functions=SQLITE_FUNCTIONS,
    table_functions=PRAGMA_TABLES | {"generate_series", "json_each", "json_tree", "jsonb_each", "jsonb_tree"},
    hidden_tables=HIDDEN_TABLES,
    table_prefixes=("pragma_",),
    statements={"PRAGMA": _check_pragma},
    lexical_check=check_effort,
    tree_check=check_ranked_search,
    shown_to_parser=_without_separators,
    function_schemas=frozenset({("main",), ("temp",)}),
    limit_after_values=False,
    default_schemas=frozenset({("main",), ("temp",)}),
)
