"""The shop on which the SQLite corpora run: tables of every kind that a real database has, awkward names included."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import make_url

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader

UNGUARDED_SECONDS = 1.0
UNGUARDED_ROWS = 100

SCHEMA = """
CREATE TABLE countries (code TEXT PRIMARY KEY, name TEXT NOT NULL, region TEXT) WITHOUT ROWID;
CREATE TABLE cities (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, country TEXT NOT NULL REFERENCES countries (code),
    population INTEGER, "land area" REAL, lat REAL, lon REAL
);
CREATE TABLE employees (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, manager_id INTEGER REFERENCES employees (id), team TEXT, salary INTEGER,
    hired TEXT
);
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, name TEXT, email TEXT, city_id INTEGER REFERENCES cities (id), joined TEXT, tags TEXT
);
CREATE TABLE products (sku TEXT PRIMARY KEY, title TEXT, price_cents INTEGER, attributes TEXT, photo BLOB);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), placed TEXT, status TEXT, comment TEXT
);
CREATE TABLE order_lines (
    order_id INTEGER REFERENCES orders (id), line INTEGER, sku TEXT REFERENCES products (sku), quantity INTEGER,
    price_cents INTEGER, total_cents INTEGER GENERATED ALWAYS AS (quantity * price_cents) VIRTUAL,
    PRIMARY KEY (order_id, line)
);
CREATE TABLE events (id INTEGER PRIMARY KEY, happened INTEGER, kind TEXT, payload TEXT);
CREATE TABLE parts (parent TEXT, child TEXT, quantity INTEGER);
CREATE TABLE readings (station TEXT, taken TEXT, celsius REAL);
CREATE TABLE audit (entry TEXT);
CREATE TABLE "order" ("group" TEXT, "select" INTEGER, "from date" TEXT, "drop""s" TEXT);
CREATE VIRTUAL TABLE notes USING fts5 (title, body);
CREATE VIRTUAL TABLE boxes USING rtree (id, west, east, south, north);
CREATE INDEX cities_by_country ON cities (country, population);
CREATE INDEX open_orders ON orders (placed) WHERE status = 'open';
CREATE VIEW order_totals AS SELECT order_id, sum(total_cents) AS total_cents FROM order_lines GROUP BY order_id;
CREATE VIEW city_names AS SELECT id, name, replace(country, 'CH', 'ch') AS country FROM cities;
CREATE TRIGGER rename_city INSTEAD OF UPDATE OF name ON city_names
    BEGIN UPDATE cities SET name = new.name WHERE id = new.id; END;
CREATE TRIGGER log_order AFTER INSERT ON orders BEGIN INSERT INTO audit VALUES ('order ' || new.id); END;
"""

CONTENT = """
INSERT INTO countries VALUES ('CH', 'Switzerland', 'Europe'), ('DE', 'Germany', 'Europe'), ('JP', 'Japan', 'Asia');
INSERT INTO cities (name, country, population, "land area", lat, lon) VALUES
    ('Zürich', 'CH', 443037, 87.9, 47.37, 8.54), ('Bern', 'CH', NULL, 51.6, 46.95, 7.45),
    ('Berlin', 'DE', 3755251, 891.7, 52.52, 13.4), ('東京', 'JP', 14094034, 2194.1, 35.68, 139.69);
INSERT INTO employees VALUES
    (1, 'Ada', NULL, 'board', 200000, '2012-01-15'), (2, 'Brian', 1, 'sales', 90000, '2015-06-01'),
    (3, 'Chidi', 1, 'engineering', 110000, '2016-02-29'), (4, 'Dolores', 3, 'engineering', 110000, '2020-11-30'),
    (5, 'O''Neill', 2, 'sales', 70000, '2023-03-01');
INSERT INTO customers VALUES
    (1, 'Update & Sons', 'buy@update.example', 1, '2021-03-04', '["vip", "wholesale"]'),
    (2, 'DROP Ltd.', NULL, 3, '2022-07-19', '[]'),
    (3, 'Select; Co', 'office@select.example', 3, '2023-12-31', '["vip"]'), (4, 'Nobody', '', NULL, NULL, NULL);
INSERT INTO products VALUES
    ('A-1', 'Lamp', 4990, '{"colour": "red", "sizes": [1, 2, 3], "stock": {"zrh": 4}}', x'89504e47'),
    ('B-2', 'Desk', 19900, '{"colour": null, "sizes": []}', NULL), ('C_3', '100% wool rug', 7550, NULL, x'00ff');
INSERT INTO orders VALUES
    (1, 1, '2024-01-05', 'paid', 'Please delete the old address'), (2, 1, '2024-02-14', 'open', NULL),
    (3, 3, '2024-02-14', 'cancelled', 'it''s a gift'), (4, 2, '2024-03-31', 'paid', 'leave at "the back"');
INSERT INTO order_lines (order_id, line, sku, quantity, price_cents) VALUES
    (1, 1, 'A-1', 2, 4990), (1, 2, 'B-2', 1, 19900), (2, 1, 'C_3', 1, 7550), (3, 1, 'A-1', 10, 4500), (4, 1, 'B-2', 3, 18900);
INSERT INTO events VALUES
    (1, 1704412800, 'insert', '{"by": "Ada", "rows": 3}'), (2, 1704416400, 'update', '{"by": "Brian", "rows": 1}'),
    (3, 1704499200, 'delete', '{"by": "Ada", "rows": 12, "why": {"text": "duplicate; drop"}}'), (4, 1704502800, 'login', NULL);
INSERT INTO parts VALUES
    ('desk', 'top', 1), ('desk', 'leg', 4), ('leg', 'tube', 1), ('leg', 'screw', 6), ('top', 'board', 2), ('top', 'screw', 8);
INSERT INTO readings VALUES
    ('north', '2024-01-01 00:00', -3.5), ('north', '2024-01-01 12:00', 1.25), ('north', '2024-01-02 00:00', NULL),
    ('north', '2024-01-03 00:00', -7.0), ('south', '2024-01-01 00:00', 14.0), ('south', '2024-01-02 12:00', 19.5);
INSERT INTO "order" VALUES ('a', 1, '2024-01-01', 'x'), ('b', 2, '2024-06-30', NULL);
INSERT INTO boxes VALUES (1, 8.4, 8.7, 47.3, 47.5), (3, 13.0, 13.8, 52.3, 52.7);
INSERT INTO notes VALUES
    ('Returns', 'Delete the order within 30 days and insert the slip into the box'),
    ('Lamp care', 'Do not drop the lamp; update its bulb once a year');
"""


def build(folder: Path) -> Path:
    """Make the database in `folder` and return its path."""
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA + CONTENT)
    return path


def open_backend(path: Path) -> KnowledgeBase:
    """Open the database as an application would."""
    return SQLManager(f"sqlite:///{path}", name="shop")


def fingerprint(path: Path) -> str:
    """Return a hash of the file: data, schema and settings."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_unguarded(path: Path, statement: str) -> str:
    """Send a statement to the engine's own lock, past the guard, and return what it answers.

    Raises:
        KnowledgeError: The engine refused or rejected it, or stopped it at the deadline.
    """
    with closing(
        Reader(lock_for(make_url(f"sqlite:///{path}"), tables=None, max_value_bytes=1_000_000), "unguarded")
    ) as reader:
        return str(reader.fetch(statement, UNGUARDED_ROWS, UNGUARDED_SECONDS))
