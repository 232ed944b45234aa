"""What only reads in PostgreSQL: its lexical rules, its statements, and its settings and catalogue tables by name.

Sources: chapters 4 (lexical structure, attribute notation), 9, 52 and 54 and the pages of `SELECT`, `EXPLAIN` and `SHOW` in
PostgreSQL's manual, and its `scan.l` and `kwlist.h`.
"""

from __future__ import annotations

import re

from agentkernel_kb.guard.dialects import GuardDialect
from agentkernel_kb.guard.lexer import LexicalRules, Token
from agentkernel_kb.guard.postgres_costs import check_costs
from agentkernel_kb.guard.postgres_fields import check_fields
from agentkernel_kb.guard.postgres_functions import POSTGRES_FUNCTIONS
from agentkernel_kb.guard.postgres_types import check_types

_NESTED_COMMENTS = 4
MAX_NAME_BYTES = 63


def _nested_comment(depth: int) -> str:
    """Return the expression of a comment that may hold others, `depth` deep."""
    inner = rf"|{_nested_comment(depth - 1)}" if depth > 1 else ""
    return rf"/\*(?:[^*/]|\*(?!/)|/(?!\*){inner})*+\*/"


def _operators() -> str:
    """Return the expression of the operators that PostgreSQL and its common extensions bring along.

    The engine takes the longest run of signs for one operator; only from one of `+ - * / < > =` alone it gives back `+` and
    `-` at the end, as in `a*-1`. A run that is none of these operators could be one that somebody made, and is refused.
    """
    special = (
        "|/ ||/ @ & | # ~ ^ % !! || ~* !~ !~* ~~ ~~* !~~ !~~* ^@ @@ @@@ #> #>> @> <@ ? ?| ?& #- @? && &< &> &<| |&> != -|-"
    )
    special += " <<| |>> <^ >^ ?# ?- ?-| ?|| ~= ## @-@ <#> <~> <%> <% %> <<% %>> "
    plain = "+ - * / < > = <= >= <> << >> <<= >>= -> ->> <-> <=> <+> <<-> <->> <<<-> <->>> =>"
    by_length = [sorted(map(re.escape, group.split()), key=len, reverse=True) for group in (special, plain)]
    sign = r"(?!--|/\*)[~!@#%^&|`?*/<>="
    return rf"(?:{'|'.join(by_length[0])})(?!{sign}+\-])|(?:{'|'.join(by_length[1])})(?!{sign}])"


_TAG = r"\$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?)\$"

_RULES = LexicalRules(
    comment=rf"--[^\n\r]*+|{_nested_comment(_NESTED_COMMENTS)}",
    string=rf"[eE]'(?:[^'\\]|\\.|'')*+'|(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*+'|{_TAG}.*?\$(?P=tag)\$",
    quoted=r'(?:[uU]&)?"(?:[^"]|"")*+"',
    mark=rf"::|:=|[():,.;\[\]]|{_operators()}",
    parameter=r"\$[0-9]+",
    quotes="'\"$",
)

# A string that the engine would end elsewhere where the setting standard_conforming_strings is off.
_ESCAPED_QUOTE = re.compile(r"(?<!\\)\\(?:\\\\)*'")


def _check_tokens(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if token.kind in ("word", "quoted") and len(token.unquoted.encode()) > MAX_NAME_BYTES:
            return f"PostgreSQL cuts names after {MAX_NAME_BYTES} bytes; shorten this one", token  # Two names could become one.
        if token.kind == "string":
            if before is not None and before.kind == "string":  # Across a line break the engine joins them by rules of its own.
                return "Two strings follow each other; write them as one, or put || between", token
            if token.text[0] not in "eE$" and _ESCAPED_QUOTE.search(token.text):
                return r"This string can end in two places; write it as E'…' with \\ for each backslash", token
        elif token.kind == "quoted" and token.text[0] in "uU":
            return "A name with Unicode escapes can stand for any name; write the name itself", token
        elif token.keyword == "OPERATOR" and tokens[index + 1 : index + 2] and tokens[index + 1].text == "(":
            return "Operators are written as signs and not by name", token
        elif before is not None and before.keyword == "TABLESAMPLE" and token.keyword not in ("BERNOULLI", "SYSTEM"):
            return "Samples are taken by BERNOULLI or SYSTEM", token
        elif token.keyword in ("CUBE", "ROLLUP") and before is not None and before.keyword == "FROM":
            return "In FROM this is no grouping; put the word in double quotes if it is a name", token
        elif token.name and before is not None and before.text == "." and index > 1 and tokens[index - 2].text in (")", "]"):
            # `(x).name` is also a call of the function `name`.
            return "A field of an expression can be a function; name the columns in a subquery in FROM instead", token
    return None


SHOWN_SETTINGS = frozenset(
    """
    bytea_output client_encoding datestyle default_text_search_config extra_float_digits integer_datetimes intervalstyle
    lc_collate lc_ctype lc_monetary lc_numeric lc_time max_identifier_length search_path server_encoding server_version
    server_version_num standard_conforming_strings statement_timeout timezone transaction_isolation transaction_read_only
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)
"""Settings that tell how the engine reads and writes values, and nothing about the machine or the people."""


def _check_show(tokens: tuple[Token, ...]) -> tuple[str, Token] | None:
    words = tuple(token.name for token in tokens[1:])
    if words in (("time", "zone"), ("transaction", "isolation", "level")):
        return None
    if len(words) == 1 and words[0] in SHOWN_SETTINGS:
        return None
    return f"SHOW takes one of these settings: {', '.join(sorted(SHOWN_SETTINGS))}", tokens[min(1, len(tokens) - 1)]


_WRITES = "{} changes data; put the word in double quotes if it is a name"

_GRAMMAR = """
ALL AND ANY ARRAY AS BERNOULLI BETWEEN BY CASE CAST COLUMNS CUBE DISTINCT ELSE ESCAPE EXCEPT EXISTS FILTER FROM GROUP HAVING
ILIKE IN INTERSECT JOIN LATERAL LIKE LIMIT MATERIALIZED NOT OFFSET ON ONLY OR OVER OVERLAPS PASSING REPEATABLE ROLLUP ROW
SELECT SETS SOME SYMMETRIC SYSTEM THEN TO UNION USING VALUES WHEN WHERE ZONE
"""
_TYPES = "BIT CHAR CHARACTER DEC DECIMAL FLOAT INTERVAL NCHAR NUMERIC TIME TIMESTAMP VARCHAR VARYING"

_UNPARSED_OPERATORS = """
@ @@@ &> &<| |&> -|- <<| |>> <^ >^ ?# ?- ?-| ?|| ~= ## @-@ <<= >>= <% %> <<% %>>
"""

_EXPLAIN_OPTIONS = """
ANALYZE BUFFERS COSTS FALSE FORMAT JSON MEMORY OFF ON SUMMARY TEXT TIMING TRUE VERBOSE WAL XML YAML
"""

_CATALOGUE = """
pg_attrdef pg_attribute pg_class pg_collation pg_constraint pg_depend pg_description pg_enum pg_index pg_indexes pg_inherits
pg_matviews pg_namespace pg_opclass pg_operator pg_partitioned_table pg_range pg_sequence pg_sequences pg_stat_all_indexes
pg_stat_all_tables pg_stat_user_indexes pg_stat_user_tables pg_tables pg_timezone_abbrevs pg_timezone_names pg_ts_config pg_type
pg_views
"""

HIDDEN_TABLES = frozenset(
    [
        "foreign_data_wrapper_options",
        "foreign_data_wrappers",
        "foreign_server_options",
        "foreign_servers",
        "foreign_table_options",
        "user_mapping_options",
        "user_mappings",
    ]
)
"""Views of `information_schema` that show where other databases are and how they are entered."""

_HIDDEN = """
administrable_role_authorizations applicable_roles column_privileges data_type_privileges enabled_roles parameters
role_column_grants role_routine_grants role_table_grants role_udt_grants role_usage_grants routine_privileges routines
table_privileges triggers udt_privileges usage_privileges
"""
_HIDDEN_VIEWS = frozenset(("information_schema", name) for name in _HIDDEN.split())
"""Views that show the text of functions, or who may log in and do what."""

POSTGRES = GuardDialect(
    name="postgres",
    rules=_RULES,
    roots=frozenset({"SELECT", "TABLE", "VALUES", "WITH"}),
    explain=(("EXPLAIN", "ANALYZE", "VERBOSE"), ("EXPLAIN", "ANALYZE"), ("EXPLAIN", "VERBOSE"), ("EXPLAIN",)),
    explain_options=frozenset(_EXPLAIN_OPTIONS.split()),
    # INTO and CREATE are reserved words. The others may be names without quotes, but hardly ever are.
    refusals={
        "CREATE": "This statement creates something",
        "DELETE": _WRITES.format("DELETE"),
        "FOR KEY": "This statement locks rows",
        "FOR NO": "This statement locks rows",
        "FOR SHARE": "This statement locks rows",
        "FOR UPDATE": "This statement locks rows",
        "INSERT": _WRITES.format("INSERT"),
        "INTO": "This statement writes",
        "MERGE": _WRITES.format("MERGE"),
        "UPDATE": _WRITES.format("UPDATE"),
    },
    before_bracket=frozenset((_GRAMMAR + _TYPES).split()),
    slow_words=frozenset(),
    functions=POSTGRES_FUNCTIONS,
    table_functions=frozenset(),
    hidden_tables=HIDDEN_TABLES,
    hidden_views=_HIDDEN_VIEWS,
    table_prefixes=("pg_", "_pg_"),
    shown_tables=frozenset(parts for name in _CATALOGUE.split() for parts in ((name,), ("pg_catalog", name))),
    statements={"SHOW": _check_show},
    after_operand=frozenset({"COLUMNS", "ESCAPE", "FILTER", "JOIN", "OVER"}),
    function_schemas=frozenset({("pg_catalog",)}),
    exact_quoted=True,
    unparsed_operators=frozenset(_UNPARSED_OPERATORS.split()),
    lexical_check=_check_tokens,
    tree_check=lambda tree: check_fields(tree) or check_types(tree) or check_costs(tree),
    default_schemas=frozenset({("public",)}),
)
