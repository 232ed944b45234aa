"""What only reads in Neo4j: its lexical rules, its clauses, and its functions and procedures by name.

Sources: Neo4j's Cypher Manual (`clauses`, `patterns`, `expressions`, `functions`, `syntax/parsing`), the procedures that its
Operations Manual lists, and what version 5.26 does when it is tried.
"""

from __future__ import annotations

from dataclasses import replace

from agentkernel_kb.guard.cypher_engine import CypherEngine
from agentkernel_kb.guard.lexer import LexicalRules
from agentkernel_kb.guard.neo4j_effort import check_range, check_reduce, check_work
from agentkernel_kb.guard.neo4j_writes import check_reach

_TEXT = """
btrim char_length character_length left lower ltrim normalize replace reverse right rtrim size split substring tolower toupper
trim upper
"""
_NUMBERS = """
abs acos asin atan atan2 ceil cos cosh cot coth degrees e exp floor haversin isnan log log10 pi radians rand round sign sin sinh
sqrt tan tanh
"""
_AGGREGATES = "avg collect count max min percentilecont percentiledisc stdev stdevp sum"
_TIMES = """
date date.realtime date.statement date.transaction date.truncate datetime datetime.fromepoch datetime.fromepochmillis
datetime.realtime datetime.statement datetime.transaction datetime.truncate duration duration.between duration.indays
duration.inmonths duration.inseconds localdatetime localdatetime.realtime localdatetime.statement localdatetime.transaction
localdatetime.truncate localtime localtime.realtime localtime.statement localtime.transaction localtime.truncate time
time.realtime time.statement time.transaction time.truncate timestamp
"""
_LISTS = """
head isempty keys last length range reduce tail tobooleanlist tofloatlist tointegerlist tostringlist
"""
_GRAPHS = """
allshortestpaths elementid endnode exists id labels nodes properties relationships shortestpath startnode type
"""
_PLACES = "point point.distance point.withinbbox"
_VECTORS = "vector vector.similarity.cosine vector.similarity.euclidean vector_dimension_count vector_distance vector_norm"
_CASTS = """
toboolean tobooleanornull tofloat tofloatornull tointeger tointegerornull tostring tostringornull valuetype
"""
_VALUES = "coalesce nullif randomuuid"

_TYPES = """
ANY ARRAY BOOL BOOLEAN DATE DATETIME DURATION EDGE FLOAT INT INTEGER LIST LOCAL MAP NODE NOTHING NULL PATH POINT PROPERTY
RELATIONSHIP SIGNED STRING TIME TIMESTAMP VALUE VARCHAR VECTOR VERTEX ZONED
"""

NEO4J_FUNCTIONS = frozenset(
    " ".join((_TEXT, _NUMBERS, _AGGREGATES, _TIMES, _LISTS, _GRAPHS, _PLACES, _VECTORS, _CASTS, _VALUES)).split()
)
"""Functions that compute a value from their arguments and do nothing else.

Left out on purpose: `file` and `linenumber`, which belong to `LOAD CSV`; `graph.*`, which name other databases; `genai.*`,
which call services; every `apoc.*`, among which are those that read files and call services.
"""

_CATALOGUE = """
db.index.fulltext.listavailableanalyzers db.index.fulltext.querynodes db.index.fulltext.queryrelationships
db.index.vector.querynodes db.index.vector.queryrelationships db.labels db.ping db.propertykeys db.relationshiptypes
db.schema.nodetypeproperties db.schema.reltypeproperties db.schema.visualization
"""

NEO4J_PROCEDURES = frozenset(_CATALOGUE.split())
"""Procedures that describe the schema or look things up in an index.

Left out on purpose, though the server takes them for reads: `db.stats.*`, `db.resampleIndex`, `db.resampleOutdatedIndexes` and
`db.prepareForReplanning` change what the server keeps, `db.awaitIndex` waits, `db.info` tells about the store; and all of
`dbms.*`, `tx.*`, `apoc.*` and `genai.*`.
"""

_SPACES = "[\x0b\x1c-\x1f\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_STRING = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""

_RULES = LexicalRules(
    comment=rf"//[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+\*/|{_SPACES}",
    string=_STRING,
    quoted=r"(?:`[^`]*`)++",
    mark=r"\.\.|=~|<=|>=|<>|->|\|\||[-+*/%^=<>(){}\[\],.:;|&!]",
    parameter=r"\$(?:\w+|`[^`]*`)",
    quotes="'\"`",
    number=r"0[xX][0-9a-fA-F_]+|0o[0-7_]+|(?:[0-9][0-9_]*+\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
)

_ADMINISTRATION = "This statement administers the server or lists what it administers"
_CREATES = "This statement creates something"
_CHANGES = "This statement changes data"

NEO4J = CypherEngine(
    name="neo4j",
    rules=_RULES,
    # In a write a parameter is a literal; it is bound and never part of the text.
    write_rules=replace(_RULES, string=rf"{_STRING}|\$\w++", parameter=r"(?!)"),
    prefixes=(("EXPLAIN",),),
    openings=frozenset(["CALL", "MATCH", "OPTIONAL", "RETURN", "UNWIND", "WITH"]),
    clauses=frozenset(
        [
            *("CALL", "FILTER", "LET", "LIMIT", "MATCH", "OFFSET", "OPTIONAL", "ORDER", "RETURN", "SKIP", "UNION", "UNWIND"),
            *("WHERE", "WITH", "YIELD"),
        ]
    ),
    operators=frozenset(["AND", "AS", "CONTAINS", "IN", "IS", "OR", "XOR"]),
    pairs={"OPTIONAL": "MATCH", "ORDER": "BY"},
    comparisons={"STARTS": "WITH", "ENDS": "WITH"},
    orders=frozenset(["ASC", "ASCENDING", "DESC", "DESCENDING"]),
    prefix_words=frozenset(["DISTINCT", "NOT"]),
    path_words=frozenset(),
    subqueries=frozenset(["COLLECT", "COUNT", "EXISTS"]),
    quantifiers=frozenset(["ALL", "ANY", "NONE", "SINGLE"]),
    types=frozenset(),
    functions=NEO4J_FUNCTIONS,
    equivalents={
        "concat": "use a + b",
        "distance": "use point.distance(a, b)",
        "ifnull": "use coalesce(a, b)",
        "isnull": "use IS NULL",
        "label": "use labels(n) or type(r)",
        "length_of": "use size(list)",
        "now": "use datetime()",
        "rels": "use relationships(path)",
        "substr": "use substring(text, start, length)",
        "to_string": "use toString(x)",
    },
    bounded={"range": check_range, "reduce": check_reduce},
    stalling=frozenset(),
    lambdas=frozenset(),
    growing=frozenset(["+", "replace", "||"]),
    procedures=NEO4J_PROCEDURES,
    reserved={},
    reasons={
        "ALTER": _ADMINISTRATION,
        "BEGIN": "This statement controls transactions",
        "COMMIT": "This statement controls transactions",
        "CREATE": _CREATES,
        "CYPHER": "Options of the server (CYPHER …) are refused; leave them out",
        "DEALLOCATE": _ADMINISTRATION,
        "DELETE": "This statement deletes",
        "DENY": _ADMINISTRATION,
        "DETACH": "This statement deletes",
        "DROP": "This statement drops something",
        "DRYRUN": _ADMINISTRATION,
        "ENABLE": _ADMINISTRATION,
        "FINISH": "FINISH returns nothing; end with RETURN",
        "FOREACH": _CHANGES,
        "GRANT": _ADMINISTRATION,
        "INSERT": _CREATES,
        "LOAD": "This statement reads files or opens connections",
        "MERGE": _CREATES,
        "NODETACH": "This statement deletes",
        "PROFILE": "PROFILE is refused; EXPLAIN tells the plan without running it",
        "REALLOCATE": _ADMINISTRATION,
        "REMOVE": "This statement removes something",
        "RENAME": _ADMINISTRATION,
        "REVOKE": _ADMINISTRATION,
        "ROLLBACK": "This statement controls transactions",
        "SET": "This statement sets something",
        "SHOW": f"{_ADMINISTRATION}; for labels, types and properties CALL db.labels(), db.relationshipTypes() and "
        "db.schema.nodeTypeProperties(), for indexes see the schema",
        "START": _ADMINISTRATION,
        "STOP": _ADMINISTRATION,
        "TERMINATE": _ADMINISTRATION,
        "USE": "This statement chooses another database",
        "USING": "Hints for the planner (USING …) are refused; leave them out",
    },
    write_openings=frozenset(["CALL", "CREATE", "DROP", "FOREACH", "MATCH", "MERGE", "OPTIONAL", "RETURN", "UNWIND", "WITH"]),
    paths=True,
    called_subqueries=True,
    value_types=frozenset(_TYPES.split()),
    # Some of its versions read these as the characters they stand for before they look for quotes and comments.
    unreadable={
        "\\u": "A character written by its number (\\u…) can be read in two ways; write the character itself",
    },
    further=check_work,
    further_write=check_reach,
)
"""The graph server, as of versions 5.26 and 2026."""
