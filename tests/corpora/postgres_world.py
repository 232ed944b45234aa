"""The shop on which the PostgreSQL corpora run: a database of its own on a real server.

With the guard it is entered by a login that may do all, superuser's functions included; past the guard by an owner of tables,
as a superuser could do harm to other tests' databases.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader

sys.path.append(str(Path(__file__).parents[1]))  # `make attack` runs without pytest and its configuration.

import postgres

import servers

UNGUARDED_SECONDS = 1.0
UNGUARDED_ROWS = 100
PATIENCE_SECONDS = 5.0

SCHEMA = r"""
CREATE EXTENSION dblink; CREATE EXTENSION fuzzystrmatch; CREATE EXTENSION lo; CREATE EXTENSION pg_trgm;
CREATE EXTENSION tablefunc; CREATE EXTENSION unaccent; CREATE EXTENSION vector;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE customers (
    id int PRIMARY KEY, name text NOT NULL, email varchar(80), country char(2), created timestamptz, tags text[], profile jsonb
);
CREATE TABLE products (
    id int PRIMARY KEY, name text, price numeric(10, 2), "delete" boolean, sizes int[], tags text[], photo bytea,
    search tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce(name, ''))) STORED
);
CREATE TABLE orders (
    id serial PRIMARY KEY, customer_id int REFERENCES customers, status text, currency char(3), total numeric(12, 2),
    placed timestamptz, comment text, ship_to jsonb
);
CREATE TABLE order_lines (
    id int REFERENCES orders, line int, product_id int REFERENCES products, quantity int, PRIMARY KEY (id, line)
);
CREATE TABLE employees (id int PRIMARY KEY, name text, manager_id int REFERENCES employees, team text, salary int);
CREATE TABLE events (id int PRIMARY KEY, happened timestamptz, kind text, session_id text, duration interval, ip inet);
CREATE TABLE prices (product_id int REFERENCES products, valid daterange, price numeric(10, 2));
CREATE TABLE "Order Items" ("group" text, "select" int, "from date" date, "update" boolean, "drop""s" text);
CREATE TABLE audit (entry text);
CREATE TABLE places (name text, feeling mood, embedding vector(3));
CREATE SCHEMA sales;
CREATE TABLE sales.regions (share real, position int, "user" text, target numeric);
CREATE MATERIALIZED VIEW v AS SELECT status, count(*) AS orders FROM orders GROUP BY status;
CREATE FUNCTION frobnicate(n int) RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING id';
CREATE FUNCTION evil(VARIADIC n int[]) RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING id';
CREATE FUNCTION evil(n int) RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING id';
CREATE FUNCTION cheat(o orders) RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING id';
CREATE FUNCTION lower(o varchar) RETURNS text LANGUAGE plpgsql AS 'BEGIN DELETE FROM orders; RETURN 1; END';
CREATE PROCEDURE cleanup() LANGUAGE sql AS 'DELETE FROM orders';
CREATE SCHEMA evil;
CREATE FUNCTION evil.plus(a int, b int) RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING id';
CREATE OPERATOR evil.+ (FUNCTION = evil.plus, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR +-* (FUNCTION = evil.plus, LEFTARG = int, RIGHTARG = int);
COMMENT ON TABLE orders IS 'What was ordered, and where it goes';
COMMENT ON COLUMN orders.total IS 'in the order''s currency';
"""

CONTENT = r"""
INSERT INTO customers VALUES
    (1, 'Update & Sons', 'buy@update.example', 'CH', '2021-03-04 10:00+01', '{vip,wholesale}',
     '{"a": {"b": [1, 2]}, "tags": ["x"]}'),
    (2, 'DROP Ltd.', NULL, 'DE', '2022-07-19 09:30+02', '{}', '{"a": 1}'),
    (3, 'Select; Co', 'office@select.example', 'DE', '2023-12-31 23:59+01', '{vip}', '{}'),
    (4, 'Nobody', '', NULL, NULL, NULL, NULL);
INSERT INTO products VALUES
    (1, 'Lamp', 49.90, false, '{1,2,3}', '{x}', '\x89504e47'), (2, 'Desk', 199.00, true, '{}', '{x,y}', NULL),
    (3, '100% wool rug', 75.50, NULL, NULL, NULL, '\x00ff');
INSERT INTO orders (id, customer_id, status, currency, total, placed, comment, ship_to) VALUES
    (1, 1, 'paid', 'CHF', 119.80, '2024-01-05 10:00+01', 'Please delete the old address',
     '{"city": "Bern", "zip": 3000, "items": [{"sku": "A-1"}, {"sku": "B-2"}]}'),
    (2, 1, 'open', 'CHF', 75.50, '2024-02-14 12:00+01', NULL, '{"city": "Basel", "zip": null, "items": []}'),
    (3, 3, 'cancelled', 'EUR', 450.00, '2024-02-14 13:00+01', 'it''s a gift', '{"city": "Köln", "zip": 50667, "items": []}'),
    (4, 2, 'paid', 'EUR', NULL, '2024-03-31 02:30+01', 'leave at "the back"', '{"items": [{"sku": null}]}');
INSERT INTO order_lines VALUES (1, 1, 1, 2), (1, 2, 2, 1), (2, 1, 3, 1), (3, 1, 1, 10), (4, 1, 2, 3);
INSERT INTO employees VALUES
    (1, 'Ada', NULL, 'board', 200000), (2, 'Brian', 1, 'sales', 90000), (3, 'Chidi', 1, 'engineering', 110000),
    (4, 'Dolores', 3, 'engineering', NULL);
INSERT INTO events VALUES
    (1, '2024-01-05 00:00+00', 'insert', 's1', '1 hour', '10.0.0.7'),
    (2, '2024-01-05 01:00+00', 'update', 's1', '90 seconds', '::1'),
    (3, '2024-01-06 00:00+00', 'delete', 's2', NULL, NULL);
INSERT INTO prices VALUES (1, '[2020-01-01,2021-01-01)', 39.90), (1, '[2021-01-01,)', 49.90);
INSERT INTO "Order Items" VALUES ('a', 1, '2024-01-01', true, 'x'), ('b', 2, '2024-06-30', false, NULL);
INSERT INTO places VALUES ('Bern', 'happy', '[1,0,0]'), ('Köln', 'ok', '[0,1,0]');
INSERT INTO sales.regions VALUES (0.5, 1, 'Ada', 1000), (0.25, 2, 'Brian', 800);
SELECT setval('orders_id_seq', 4);
SELECT lo_from_bytea(16400, 'large');
"""

OWNERSHIP = """
GRANT ALL ON ALL TABLES IN SCHEMA public, sales TO {owner};
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {owner};
GRANT ALL ON SCHEMA public, sales, evil TO {owner};
ALTER TABLE orders OWNER TO {owner};
ALTER MATERIALIZED VIEW v OWNER TO {owner};
ALTER LARGE OBJECT 16400 OWNER TO {owner};
"""

# Data of every table, and of the server what an attack could change: objects, settings, locks, files, statements that run.
_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm', 'S') AND n.nspname NOT LIKE 'pg\\_t%' AND n.nspname NOT IN ('information_schema', 'pg_catalog')
ORDER BY 1
"""
_STATE = [
    "SELECT oid, relname, relkind, relfilenode, relacl, reloptions FROM pg_class",
    "SELECT oid, xmin, proname FROM pg_proc WHERE oid >= 16384",
    "SELECT loid, pageno, md5(data) FROM pg_largeobject",
    "SELECT objoid, description FROM pg_description WHERE objoid >= 16384",
    "SELECT oid, extname, extversion FROM pg_extension",
    "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting",
    "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()",
    "SELECT slot_name FROM pg_replication_slots",
    "SELECT name, setting FROM pg_settings WHERE source = 'configuration file'",
    "SELECT objid FROM pg_locks, pg_database WHERE oid = database AND locktype = 'advisory' AND datname = current_database()",
    "SELECT name FROM pg_ls_dir('.') AS name WHERE name NOT LIKE 'pgsql%'",
]
_RUNNING = """
SELECT query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND backend_type LIKE '%%backend'
"""


def build(folder: Path) -> Path:
    """Make the database and the owner of its tables, and in `folder` a file that holds both URLs; return that file's path."""
    server = servers.shared("postgres").url
    owner = f"kb_owner_{secrets.token_hex(6)}"
    password = make_url(server).password
    postgres.run(server, f"CREATE ROLE {owner} LOGIN PASSWORD '{password}'")
    url = postgres.make(server, SCHEMA + CONTENT + OWNERSHIP.replace("{owner}", owner))
    path = folder / "shop.url"
    path.write_text(f"{url}\n{postgres.as_login(url, owner)}")
    return path


def tear_down(path: Path) -> None:
    """Remove the database and the login."""
    url, owner = path.read_text().split()
    postgres.drop(url)
    postgres.run(url.rpartition("/")[0] + "/kb", f"DROP ROLE {make_url(owner).username}")


def _url(path: Path, *, as_owner: bool = False) -> str:
    return path.read_text().split()[as_owner]


def open_backend(path: Path) -> KnowledgeBase:
    """Open the database as no application should: by a login that may do all."""
    return SQLManager(_url(path), name="shop")


def fingerprint(path: Path) -> str:
    """Return a hash of all data and of what else an attack could change; a statement that goes on is part of it."""
    with psycopg.connect(_url(path), autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
        content = [sorted(map(str, connection.execute(f"TABLE {name}".encode()).fetchall())) for name in tables]
        state = [sorted(map(str, connection.execute(statement.encode()).fetchall())) for statement in _STATE]
        return hashlib.sha256(repr([tables, content, state, _still_running(connection)]).encode()).hexdigest()


def _still_running(connection: psycopg.Connection[tuple[str]]) -> list[str]:
    until = time.monotonic() + PATIENCE_SECONDS
    while (running := [query for (query,) in connection.execute(_RUNNING).fetchall()]) and time.monotonic() < until:
        time.sleep(0.05)
    return running


def run_unguarded(path: Path, statement: str) -> str:
    """Send a statement to the engine's own lock, past the guard, and return what it answers.

    Raises:
        KnowledgeError: The engine refused or rejected it, or stopped it at the deadline.
    """
    lock = lock_for(make_url(_url(path, as_owner=True)), tables=None, max_value_bytes=1_000_000)
    with closing(Reader(lock, "unguarded")) as reader:
        return str(reader.fetch(statement, UNGUARDED_ROWS, UNGUARDED_SECONDS))
