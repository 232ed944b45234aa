"""What only reads in Ladybug: its lexical rules, its clauses, and its functions and procedures by name.

Sources: the pages `cypher`, `query-clauses`, `expressions`, `data-types` and `import` of Ladybug's manual, its grammar
`Cypher.g4`, and what version 0.22 does when it is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from agentkernel_kb.guard.cypher_engine import CypherEngine
from agentkernel_kb.guard.lexer import LexicalRules, Token

MAX_RANGE = 1_000
MAX_PADDING = 10_000
MAX_COMPARED_CHARS = 256
_SIZES = frozenset(["cardinality", "length", "size"])

_TEXT = """
concat concat_ws contains decode encode ends_with initcap lcase left length levenshtein list_to_string lower lpad ltrim
octet_length prefix regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
replace reverse right rpad rtrim size split_part starts_with string_split string_to_array str_split substr substring suffix
tolower toupper trim ucase upper
"""
_NUMBERS = """
abs acos asin atan atan2 bitshift_left bitshift_right bitwise_and bitwise_or bitwise_xor cbrt ceil ceiling cos cot degrees even
floor gamma greatest least lgamma ln log log10 log2 negate pi pow radians random round sign sin sqrt tan
"""
_AGGREGATES = "avg collect count count_if count_star histogram max min percentilecont percentiledisc sum"
_TIMES = """
century current_date current_timestamp date datepart datetrunc date_part date_trunc dayname duration epoch_ms interval last_day
make_date monthname time_bucket timestamp to_date to_days to_epoch_ms to_hours to_interval to_microseconds to_milliseconds
to_minutes to_months to_seconds to_timestamp to_years
"""
# Without list_reduce, list_has_all and list_has_any on purpose: their cost is quadratic and nothing interrupts it.
_LISTS = """
array_append array_cat array_concat array_contains array_cosine_similarity array_cross_product array_distance
array_dot_product array_extract array_has array_indexof array_inner_product array_position array_prepend array_push_back
array_push_front array_slice array_squared_distance array_value element_at list_any_value list_append list_cat list_concat
list_contains list_creation list_distinct list_element list_extract list_filter list_has list_indexof list_max list_min
list_position list_prepend list_product list_reverse list_reverse_sort list_slice list_sort list_sum list_transform list_unique
range
"""
_MAPS = """
cardinality keys map map_extract map_keys map_values struct_extract struct_pack union_extract union_tag union_value
"""
_WITHOUT_NULL = """
array_cross_product cost element_at end_node id list_any_value list_product list_reverse_sort list_sum map map_extract map_keys
map_values nodes properties relationships rels rowid start_node struct_extract union_extract
"""
_GRAPHS = "cost end_node id is_acyclic is_trail label labels length nodes offset properties relationships rels rowid start_node"
_CASTS = """
blob cast gen_random_uuid string to_blob to_bool to_double to_float to_int128 to_int16 to_int32 to_int64 to_int8 to_string
to_uint128 to_uint16 to_uint32 to_uint64 to_uint8 to_uuid typeof uuid
"""
_VALUES = "coalesce constant_or_null hash ifnull md5 nullif sha256"

LADYBUG_FUNCTIONS = frozenset(" ".join((_TEXT, _NUMBERS, _AGGREGATES, _TIMES, _LISTS, _MAPS, _GRAPHS, _CASTS, _VALUES)).split())
"""Functions that compute a value from their arguments and do nothing else.

Left out on purpose: those that read files (`read_csv_serial`, …), change something (`nextval`, `setseed`), fail at will
(`error`), make values of any size out of nothing (`repeat`), or take quadratic time that nothing interrupts.
"""

_CATALOGUE = """
catalog_version db_version projected_graph_info show_connection show_functions show_graphs show_indexes show_macros
show_projected_graphs show_sequences show_tables stats_info storage_version table_info
"""

LADYBUG_PROCEDURES = frozenset(_CATALOGUE.split())
"""Procedures that describe the catalogue.

Left out on purpose: what tells about the machine, its files, its settings or other databases (`current_setting`, `file_info`,
`disk_info`, `bm_info`, `show_attached_databases`, `show_loaded_extensions`, …), and what makes or drops projected graphs.
"""


def _check_range(arguments: Sequence[Token]) -> str:
    """Accept whole numbers up to `MAX_RANGE`, and sizes, put together with plus and minus."""
    inside = 0
    for token, following in zip_longest(arguments, arguments[1:]):
        if token.text in ("(", ")"):
            inside += 1 if token.text == "(" else -1
        elif not (inside or token.text in ("+", "-", ",") or _is_number(token, MAX_RANGE) or _is_size(token, following)):
            return f"range takes whole numbers up to {MAX_RANGE:,}, or the size of a list"
    return ""


def _is_number(token: Token, most: int) -> bool:
    return token.kind == "number" and token.text.isdecimal() and int(token.text[:9]) <= most


def _is_size(token: Token, following: Token | None) -> bool:
    return token.name in _SIZES and following is not None and following.text == "("


def _check_padding(arguments: Sequence[Token]) -> str:
    """Accept a length that is a plain number up to `MAX_PADDING`."""
    parts = _split(arguments)
    length = parts[1] if len(parts) > 1 else ()
    if len(length) == 1 and _is_number(length[0], MAX_PADDING):
        return ""
    return f"Padding takes a length that is a plain number up to {MAX_PADDING:,}"


def _check_levenshtein(arguments: Sequence[Token]) -> str:
    """Accept a comparison with a short string, whose cost grows with the other one alone."""
    for part in _split(arguments):
        if len(part) == 1 and part[0].kind == "string" and len(part[0].text) <= MAX_COMPARED_CHARS:
            return ""
    return f"levenshtein compares with a string of up to {MAX_COMPARED_CHARS} characters, written out"


_NULL_ALONE = ({"NULL"}, {"NULL", "(", ")"})


def _check_values(arguments: Sequence[Token]) -> str:
    """Refuse a NULL without a type, with which these functions end the process (0.22.0), where it stands in the call itself.

    One that comes from elsewhere ends the process that runs the engine, and not the application's.
    """
    if any({token.text.upper() for token in part} in _NULL_ALONE for part in _split(arguments)):
        return "The engine does not survive a NULL here; give it a value or a cast(NULL AS …)"
    return ""


def _split(arguments: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each argument."""
    parts: list[list[Token]] = [[]]
    inside = 0
    for token in arguments:
        if token.kind == "mark":
            inside += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == "," and token.kind == "mark" and not inside:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


_SPACES = "[\x0b\x1c-\x1f\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_ESCAPE = r"""\\(?:[\\'"bBfFnNrRtT]|[xX][0-9a-fA-F]{2}|[uU][0-9a-fA-F]{4})"""
_STRING = rf"""'(?:[^'\\]|{_ESCAPE})*+'|"(?:[^"\\]|{_ESCAPE})*+\""""

_RULES = LexicalRules(
    # A star inside a comment takes the next character with it, so that `**/` does not end one.
    comment=rf"//[^\n\r]*+\r?(?:\n|\Z)|/\*(?:[^*]|\*[^/])*+\*/|{_SPACES}",
    string=_STRING,
    quoted=r"(?:`[^`]+`)++",
    mark=r"\.\.|=~|<=|>=|<>|!=|<<|>>|->|[-+*/%^=<>(){}\[\],.:;|&!]",
    parameter=r"\$(?:\w+|`[^`]*`)",
    quotes="'\"`",
)

_FILES = "This statement reads or writes files, or opens connections"
_CHANGES = "This statement changes the schema"
_SESSION = "This statement changes the session"
_TRANSACTIONS = "This statement controls transactions"

LADYBUG = CypherEngine(
    name="ladybug",
    rules=_RULES,
    # In a write a parameter is a literal; it is bound and never part of the text.
    write_rules=replace(_RULES, string=rf"{_STRING}|\$\w++", parameter=r"(?!)"),
    prefixes=(("EXPLAIN", "LOGICAL"), ("EXPLAIN",), ("PROFILE",)),
    openings=frozenset(["CALL", "MATCH", "OPTIONAL", "RETURN", "UNWIND", "WITH"]),
    clauses=frozenset(
        ["CALL", "LIMIT", "MATCH", "OPTIONAL", "ORDER", "RETURN", "SKIP", "UNION", "UNWIND", "WHERE", "WITH", "YIELD"]
    ),
    operators=frozenset(["AND", "AS", "CONTAINS", "HINT", "IN", "IS", "JOIN", "MULTI_JOIN", "OR", "XOR"]),
    pairs={"OPTIONAL": "MATCH", "ORDER": "BY"},
    comparisons={"STARTS": "WITH", "ENDS": "WITH"},
    orders=frozenset(["ASC", "ASCENDING", "DESC", "DESCENDING"]),
    prefix_words=frozenset(["DISTINCT", "NOT"]),
    path_words=frozenset(["ACYCLIC", "ALL", "SHORTEST", "TRAIL", "WSHORTEST"]),
    subqueries=frozenset(["COUNT", "EXISTS"]),
    quantifiers=frozenset(["ALL", "ANY", "NONE", "SINGLE"]),
    types=frozenset(["DECIMAL", "MAP", "STRUCT", "UNION"]),
    functions=LADYBUG_FUNCTIONS,
    equivalents={
        "datetime": "use timestamp('2024-01-31 12:00:00')",
        "elementid": "use id(n)",
        "exists": "use EXISTS { MATCH … } or IS NOT NULL",
        "head": "use list[1]",
        "last": "use list[-1]",
        "list_has_all": "use all(x IN wanted WHERE list_contains(list, x))",
        "list_has_any": "use any(x IN wanted WHERE list_contains(list, x))",
        "list_reduce": "use list_sum, list_product or an aggregate",
        "reduce": "use list_sum, list_product or an aggregate",
        "split": "use string_split(text, separator)",
        "toboolean": "use cast(x AS BOOL)",
        "tofloat": "use cast(x AS DOUBLE)",
        "tointeger": "use cast(x AS INT64)",
        "tostring": "use cast(x AS STRING)",
        "type": "use label(r)",
    },
    bounded={
        **dict.fromkeys(_WITHOUT_NULL.split(), _check_values),
        "levenshtein": _check_levenshtein,
        "lpad": _check_padding,
        "range": _check_range,
        "rpad": _check_padding,
    },
    stalling=frozenset(["list_has_all", "list_has_any", "list_reduce", "read_csv_parallel", "read_csv_serial", "repeat"]),
    # Elsewhere a lambda ends the process while the statement is bound (0.22.0).
    lambdas=frozenset(["list_filter", "list_transform"]),
    growing=frozenset(
        ["+", "array_cat", "array_concat", "concat", "concat_ws", "list_cat", "list_concat", "regexp_replace", "replace"]
    ),
    procedures=LADYBUG_PROCEDURES,
    reserved={
        "CREATE": "This statement creates something",
        "INSTALL": _FILES,
        "MACRO": _CHANGES,
        "GLOB": _FILES,
        "HEADERS": _FILES,
    },
    reasons={
        "ALTER": _CHANGES,
        "ANALYZE": "This statement writes statistics",
        "ATTACH": _FILES,
        "BEGIN": _TRANSACTIONS,
        "CHECKPOINT": _TRANSACTIONS,
        "COMMENT": _CHANGES,
        "COMMIT": _TRANSACTIONS,
        "COPY": _FILES,
        "DELETE": "This statement deletes",
        "DETACH": "This statement deletes or detaches something",
        "DROP": "This statement drops something",
        "EXPORT": _FILES,
        "FORCE": _FILES,
        "FOREACH": "This statement changes data",
        "IMPORT": _FILES,
        "LOAD": _FILES,
        "MERGE": "This statement creates something",
        "PROJECT": "This statement changes the session",
        "REMOVE": "This statement removes something",
        "ROLLBACK": _TRANSACTIONS,
        "SET": "This statement sets something",
        "UNINSTALL": _FILES,
        "UPDATE": _FILES,
        "USE": _SESSION,
    },
    write_openings=frozenset(["ALTER", "COMMENT", "CREATE", "DROP", "MATCH", "MERGE", "OPTIONAL", "RETURN", "UNWIND", "WITH"]),
)
"""The embedded graph, as of version 0.22."""
