"""What only reads in DuckDB: its lexical rules, its statements, and its functions and tables by name.

Sources: the pages of DuckDB's manual on `SELECT`, `FROM`, `PIVOT`, `DESCRIBE`, `EXPLAIN`, literals and identifiers, and the
tables `duckdb_functions()` and `duckdb_keywords()` of DuckDB 2.0.1.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from agentkernel_kb.guard.dialects import GuardDialect
from agentkernel_kb.guard.duckdb_functions import DUCKDB_FUNCTIONS, DUCKDB_TABLE_FUNCTIONS, TELLING_FUNCTIONS
from agentkernel_kb.guard.duckdb_sizes import check_sizes
from agentkernel_kb.guard.lexer import LexicalRules, Token

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_INNER_COMMENT = r"/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/"
_RULES = LexicalRules(
    comment=rf"--[^\n\r]*+|/\*(?:[^*/]|\*(?!/)|/(?!\*)|{_INNER_COMMENT})*+\*/",
    string=r"[eE]'(?:[^'\\]|\\.|'')*+'|'(?:[^']|'')*+'|\$\$.*?\$\$",
    quoted=r'"(?:[^"]|"")*+"',
    mark=r"!?~~\*?|~~~|!?~\*?|::|:=|=>|->>?|//|\*\*|/(?!\*)|-(?!-)|[+*%&|<>=!@^#(),.;:\[\]{}]",
    parameter=r"\?[0-9]*|\$\w+",
    quotes="'\"$",
    number=r"(?:[0-9](?:_?[0-9])*+\.?(?:[0-9](?:_?[0-9])*+)?|\.[0-9](?:_?[0-9])*+)(?:[eE][+-]?[0-9]++)?",
)

_GRAMMAR = """
ALL AND ANY ARRAY AS BERNOULLI BETWEEN BY CASE CAST CUBE DISTINCT ELSE ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FILTER FOR FROM
GROUP HAVING ILIKE IN INTERSECT JOIN KEY LATERAL LIKE LIMIT MATERIALIZED NAME NOT NULLS OFFSET ON OR OVER OVERLAY PIVOT POSITION
QUALIFY RENAME REPEATABLE REPLACE RESERVOIR ROLLUP SAMPLE SELECT SETS SOME SUBSTRING SYSTEM TABLESAMPLE THEN TO TRIM TRY_CAST
UNION UNPACK UNPIVOT USING VALUES WHEN WHERE
"""
_TYPES = "BIT CHAR CHARACTER DEC DECIMAL ENUM FLOAT INTERVAL MAP NUMERIC ROW STRING STRUCT TEXT TIME TIMESTAMP VARCHAR VARYING"

# Classes of sqlglot's tree that only DuckDB's queries have.
_CLAUSES = frozenset(
    """
    AtTimeZone Comprehension Cube GroupingSets HavingMax IgnoreNulls Pivot PivotAlias PositionalColumn Qualify RespectNulls
    Rollup Slice TableSample UnpivotColumns WithinGroup
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)

HIDDEN_TABLES = frozenset({"duckdb_logs", "sqlite_temp_master", "sqlite_temp_schema"})
"""Tables of the engine itself; those that `_PREFIXES` begin are hidden as well."""

_PREFIXES = ("duckdb_", "pragma_", "pg_")

# Endings by which a name that is no table is taken for the name of a file.
_FILE_ENDINGS = frozenset(
    """
    arrow arrows avro bz2 csv db ddb duckdb feather geojson gpkg gz ipc json jsonl lance ndjson parquet pq shp sqlite sqlite3
    tsv txt vortex xls xlsx zip zst
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)
_PATH_SIGN = re.compile(r"[./\\:*?\[\]{}~$%]")
_FILE_REASON = "This name can be that of a file; tables are named by words, schemas and tables apart"

SHOWN_AS_CATALOGUE = "information_schema"
"""What `SHOW` counts as where a statement may read some tables only."""


def _is_file(parts: tuple[str, ...]) -> bool:
    return any(map(_PATH_SIGN.search, parts)) or (len(parts) > 1 and parts[-1].lower() in _FILE_ENDINGS)


def _name(tokens: tuple[Token, ...]) -> tuple[str, ...]:
    """Return the parts of the dotted name that `tokens` are, or `()` if they are something else."""
    names, dots = tokens[::2], tokens[1::2]
    is_name = len(tokens) % 2 == 1 and all(token.kind in ("word", "quoted") for token in names)
    return tuple(token.name for token in names) if is_name and all(dot.text == "." for dot in dots) else ()


def _check_describe(tokens: tuple[Token, ...]) -> tuple[str, Token] | frozenset[str]:
    """Accept `DESCRIBE table` and `SUMMARIZE table`; what stands in front of a query is proven as one."""
    parts = _name(tokens[1:])
    if not parts:
        return "One table or one query follows here", tokens[-1]
    if _is_file(parts):
        return _FILE_REASON, tokens[1]
    if parts[-1].startswith(_PREFIXES) or parts[-1] in HIDDEN_TABLES:
        return "This table belongs to the engine and is not part of the data", tokens[-1]
    return frozenset({".".join(parts[parts[0] == "main" and len(parts) == 2 :])})


def _check_show(tokens: tuple[Token, ...]) -> tuple[str, Token] | frozenset[str]:
    words = tuple(token.keyword for token in tokens[1:])
    listed = words in ((), ("TABLES",), ("ALL", "TABLES"), ("SCHEMAS",), ("DATABASES",))
    within = words[:2] == ("TABLES", "FROM") and bool(_name(tokens[3:])) and not _is_file(_name(tokens[3:]))
    if listed or within:
        return frozenset({SHOWN_AS_CATALOGUE})
    return "SHOW lists TABLES, ALL TABLES, SCHEMAS or DATABASES here; for one table use DESCRIBE", tokens[1]


# Reserved words that begin a query in brackets for the engine, and that the parser takes for the name of a table.
_NOT_IN_BRACKETS = frozenset({"DESC", "DESCRIBE", "SHOW", "SUMMARIZE", "TABLE"})


def _check_tokens(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    for before, token in pairwise(tokens):
        if before.text == "(" and token.keyword in _NOT_IN_BRACKETS:
            return "This cannot stand in brackets; name the table after FROM", token
    return check_sizes(tokens)


def _check_tree(tree: Expr) -> tuple[str, Expr, str] | None:
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        source = table.this
        if isinstance(source, exp.Identifier):
            if _is_file(tuple(part.name for part in table.parts)):
                return _FILE_REASON, table, table.name
        elif isinstance(source, exp.Anonymous):
            if source.name.lower() in DUCKDB_FUNCTIONS - DUCKDB_TABLE_FUNCTIONS:
                return "This function does not stand for a table", table, source.name
        elif not isinstance(source, exp.GenerateSeries | exp.ReadCSV | exp.ReadParquet):  # The readers were named in `allow`.
            return "This is neither a table nor a function that stands for one", table, source.sql()[:40]
    return None


DUCKDB = GuardDialect(
    name="duckdb",
    rules=_RULES,
    roots=frozenset({"FROM", "PIVOT", "SELECT", "TABLE", "UNPIVOT", "VALUES", "WITH"}),
    explain=(("EXPLAIN", "ANALYZE"), ("EXPLAIN",), ("DESCRIBE",), ("DESC",), ("SUMMARIZE",)),
    explain_options=frozenset({"ANALYZE", "FORMAT", "JSON", "TEXT"}),
    # CREATE and RETURNING are reserved words. INSERT, UPDATE and DELETE may be names of columns; the tree tells.
    refusals={
        "COPY FROM": "This statement reads a file",
        "CREATE": "This statement creates something",
        "INSERT INTO": "This statement inserts",
        "INSERT OR": "This statement inserts",
        "MERGE INTO": "This statement changes data",
        "RETURNING": "This statement changes data",
    },
    before_bracket=frozenset((_GRAMMAR + _TYPES).split()),
    after_operand=frozenset({"NULLS"}),  # Behind UNPIVOT INCLUDE; it is no reserved word.
    slow_words=frozenset({"SIMILAR"}),
    functions=DUCKDB_FUNCTIONS,
    table_functions=DUCKDB_TABLE_FUNCTIONS,
    hidden_tables=HIDDEN_TABLES,
    table_prefixes=_PREFIXES,
    statements={"DESC": _check_describe, "DESCRIBE": _check_describe, "SHOW": _check_show, "SUMMARIZE": _check_describe},
    chained_calls=True,
    default_schemas=frozenset({("main",)}),
    catalogue_functions=TELLING_FUNCTIONS,
    clauses=_CLAUSES,
    lexical_check=_check_tokens,
    tree_check=_check_tree,
)
