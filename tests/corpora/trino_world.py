"""The shop on which the Trino corpora run: tables of a real server's memory catalog, with awkward types and names."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import trino.dbapi
from filelock import FileLock

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.starburst import StarburstManager
from agentkernel_kb.starburst.asking import Asker
from agentkernel_kb.starburst.server import Server
from agentkernel_kb.starburst.settings import read_settings

sys.path.append(str(Path(__file__).parents[1]))  # `make attack` runs without pytest and its configuration.

import servers

CATALOG, SCHEMA = "memory", "sales"
PLACE = f"{CATALOG}.{SCHEMA}"
UNGUARDED_SECONDS = 1.0
UNGUARDED_ROWS = 100

TABLES = {
    "countries": "SELECT * FROM (VALUES ('CH', 'Switzerland'), ('DE', 'Germany')) AS t (code, label)",
    "regions": "SELECT * FROM (VALUES (1, 'north'), (2, 'south')) AS t (id, title)",
    "customers": """SELECT * FROM (VALUES
        (1, 1, 'Update & Sons', 'buy@update.ch', 'upd', 'CH', 1), (2, 2, 'DROP Ltd.', CAST(NULL AS varchar), NULL, 'DE', 2),
        (3, 3, 'Select; Co', 'office@select.ch', NULL, 'DE', 1), (4, 4, 'Nobody 12', '', NULL, NULL, NULL)
        ) AS t (id, customer_id, name, email, nickname, country, region)""",
    "products": "SELECT * FROM (VALUES ('A-1', 49.9), ('B-2', 199.0)) AS t (sku, price)",
    "orders": """SELECT id, customer_id, status, CAST(total AS decimal(12, 2)) AS total, placed, comment, clerk, country, name,
        CAST(items AS array(row(sku varchar, quantity integer))) AS items, payload, a, b
        FROM (VALUES
        (1, 1, 'paid', 4.5, TIMESTAMP '2024-01-05 10:00:00 UTC', 'Please delete the old address', 'Ada', 'CH', 'one',
            ARRAY[ROW('A-1', 2), ROW('B-2', 1)], '{"items": [{"sku": "A-1", "n": 2}], "a": {"b": [1]}}', 1, 2),
        (2, 1, 'open', 12, TIMESTAMP '2024-02-14 10:00:00 UTC', NULL, 'Brian', 'CH', 'two', ARRAY[ROW('C_3', 1)], '{}', 1, 1),
        (3, 3, 'cancelled', 7, TIMESTAMP '2024-02-14 11:00:00 UTC', 'it''s a gift', 'Ada', 'DE', 'three', NULL, NULL, NULL, 1),
        (4, 2, 'paid', 30, TIMESTAMP '2024-03-31 10:00:00 UTC', 'leave "here"', NULL, NULL, 'four', ARRAY[], '[]', 1, NULL)
        ) AS t (id, customer_id, status, total, placed, comment, clerk, country, name, items, payload, a, b)""",
    "events": """SELECT * FROM (VALUES
        (1, 'insert', 's1', '{"a": {"b": [5]}, "x y": 1, "b": [1, 2], "c": null}'), (2, 'update', 's1', '{"a": 7, "b": [3]}'),
        (3, 'delete', 's2', '{"b": []}'), (4, 'login', 's2', NULL)) AS t (id, kind, session, payload)""",
    "audit": """SELECT * FROM (VALUES ('u', 1, true, 's', 'x', 't')) AS t (update, set, call, show, schema, "table")""",
    '"order items"': """SELECT * FROM (VALUES ('g', 1, DATE '2024-01-01', false, 'q')) AS t
        ("group", "select", "from date", "delete", "drop""s")""",
    '"orders$partitions"': """SELECT * FROM (VALUES ('s3://shop/orders/1', TIMESTAMP '2024-01-05 10:00:00 UTC')) AS t
        ("$path", "$file_modified_time")""",
    "employees": "SELECT * FROM (VALUES (1, NULL, 'Ada'), (2, 1, 'Brian'), (3, 2, 'Chidi')) AS t (id, manager_id, name)",
    "ticks": "SELECT * FROM (VALUES (1, 5), (2, 3), (3, 4), (4, 9)) AS t (t, v)",
    "daily": "SELECT CAST(approx_set(x) AS varbinary) AS sketch FROM (VALUES 1, 2, 3) AS t (x)",
    "hits": "SELECT * FROM (VALUES 'https://shop.example/lamps?q=desk&n=2') AS t (url)",
    "places": "SELECT * FROM (VALUES (8.54, 47.37), (13.4, 52.52)) AS t (lon, lat)",
    "t": """SELECT ARRAY[1, 2, 3] AS xs, ARRAY[3, 4] AS ys, ARRAY[ARRAY[1], ARRAY[2, 3]] AS xss, ARRAY['a', 'b', 'c'] AS words,
        MAP(ARRAY['key', 'x'], ARRAY[1, 2]) AS m, MAP(ARRAY['key'], ARRAY[3]) AS n, 1 AS a,
        CAST(ROW(ROW('Bern')) AS row(address row(city varchar))) AS r, CAST(ROW('Bern') AS row(city varchar)) AS address""",
}
VIEWS = {"totals": "SELECT customer_id, sum(total) AS total FROM memory.sales.orders GROUP BY customer_id"}
VERSION = hashlib.sha256(json.dumps([TABLES, VIEWS]).encode()).hexdigest()[:16]


def build(folder: Path) -> Path:
    """Make the tables on the server, once for everybody who runs the corpora, and return a file that says where it is."""
    path = folder / "server.json"
    path.write_text(json.dumps({"port": servers.shared("trino").port}))
    with FileLock(Path(tempfile.gettempdir()) / "kb-test-trino-corpora.lock"):
        if not _is_built(path):
            _build(path)
    return path


def _is_built(path: Path) -> bool:
    try:
        return _rows(path, f"SELECT version FROM {PLACE}.built") == [[VERSION]]
    except trino.dbapi.Error:
        return False


def _build(path: Path) -> None:
    _rows(path, f"DROP SCHEMA IF EXISTS {PLACE} CASCADE")
    _rows(path, f"CREATE SCHEMA {PLACE}")
    for name, query in TABLES.items():
        _rows(path, f"CREATE TABLE {PLACE}.{name} AS {query}")
    for name, query in VIEWS.items():
        _rows(path, f"CREATE VIEW {PLACE}.{name} AS {query}")
    _rows(path, f"CREATE TABLE {PLACE}.built AS SELECT '{VERSION}' AS version")


def open_backend(path: Path) -> KnowledgeBase:
    """Open the tables as an application would, by a user who may write: nothing but the two locks keeps a read from it."""
    return StarburstManager("127.0.0.1", _port(path), "kb", None, CATALOG, SCHEMA, name="shop")


def fingerprint(path: Path) -> str:
    """Return a hash of what the server has: schemas that attacks make, tables, columns, and the rows that attacks are after."""
    return hashlib.sha256(json.dumps(_rows(path, LOOK), default=str).encode()).hexdigest()


# One small statement, as it is run after every attack.
LOOK = f"""
SELECT (SELECT to_hex(checksum(ROW(table_schema, table_name, column_name, data_type))) FROM {CATALOG}.information_schema.columns
        WHERE table_schema IN ('x', '{SCHEMA}')),
    (SELECT to_hex(checksum(schema_name)) FROM {CATALOG}.information_schema.schemata WHERE schema_name IN ('x', '{SCHEMA}')),
    (SELECT to_hex(checksum(ROW(id, customer_id, status, total, placed, comment))) FROM {PLACE}.orders),
    (SELECT count(*) FROM {PLACE}.customers)
"""


def _port(path: Path) -> int:
    return json.loads(path.read_text())["port"]


def _rows(path: Path, statement: str) -> Sequence[Sequence[Any]]:
    cursor = trino.dbapi.connect(host="127.0.0.1", port=_port(path), user="kb").cursor()
    cursor.execute(statement)
    return cursor.fetchall()


def run_unguarded(path: Path, statement: str) -> str:
    """Send a statement in the transaction that only reads, past the guard, and return what the server answers.

    Raises:
        KnowledgeError: The server refused or rejected it, or stopped it at the deadline.
    """
    return str(_past_the_guard(_port(path)).fetch(statement, UNGUARDED_ROWS, Deadline(UNGUARDED_SECONDS), Asker("kb", ())))


def tear_down(path: Path) -> None:
    """End what the way past the guard keeps; the tables stay for whoever runs the corpora next."""
    if _past_the_guard.cache_info().currsize:
        _past_the_guard(_port(path)).close()
        _past_the_guard.cache_clear()


@cache
def _past_the_guard(port: int) -> Server:
    settings = read_settings(
        "unguarded",
        host="127.0.0.1",
        port=port,
        user="kb",
        password=None,
        http_scheme="http",
        auth=None,
        catalog=CATALOG,
        db_schema=SCHEMA,
    )
    return Server(settings, "unguarded", cores=1_000)
