"""Corners of Trino's grammar before the guard: rows of a recursion, table functions, versions of tables (X1)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import analyse_read, check_read_only

ALLOWED = ["lake.system.forecast"]


@pytest.mark.parametrize("row", ["DATE '2024-01-01'", "ROW(1, 2)", "NULL", "true", "ARRAY[1]"])
def test_a_row_without_brackets_in_a_with_that_names_its_columns_is_told_as_such(row: str) -> None:
    statement = f"WITH RECURSIVE t (a) AS (VALUES {row} UNION ALL SELECT a FROM t) SELECT * FROM t"
    with pytest.raises(KnowledgeGuardError, match="stands in brackets, as in VALUES") as refusal:
        check_read_only(statement, dialect="trino")
    assert refusal.value.part == row.partition(" ")[0].partition("(")[0].partition("[")[0]
    check_read_only(statement.replace(row, f"({row})"), dialect="trino")


@pytest.mark.parametrize(
    "argument",
    [
        "TABLE(orders) PARTITION BY status",
        "TABLE(lake.s.orders) PARTITION BY (status, country) ORDER BY (id, total)",
        "TABLE(orders) ORDER BY id DESC NULLS LAST",
        "TABLE(orders) PARTITION BY status KEEP WHEN EMPTY ORDER BY id",
        "TABLE(orders) PRUNE WHEN EMPTY",
    ],
)
def test_the_rows_of_an_argument_can_be_divided_and_ordered(argument: str) -> None:
    statement = f"SELECT * FROM TABLE(lake.system.forecast(input => {argument}, days => 7))"
    assert analyse_read(statement, dialect="trino", allow=ALLOWED).tables == frozenset({"orders"})
    with pytest.raises(KnowledgeGuardError, match="not known to only read"):
        check_read_only(statement, dialect="trino")


@pytest.mark.parametrize(
    "order",
    [
        "PARTITION BY evil(a)",
        "PARTITION BY (a, evil(b))",
        "ORDER BY (SELECT id FROM system.runtime.queries)",
        "PARTITION BY a ORDER BY (TABLE other)",
        "ORDER BY 'a'",
    ],
)
def test_nothing_but_columns_divides_them(order: str) -> None:
    statement = f"SELECT * FROM TABLE(lake.system.forecast(input => TABLE(orders) {order}))"
    with pytest.raises(KnowledgeGuardError):
        check_read_only(statement, dialect="trino", allow=ALLOWED)


@pytest.mark.parametrize("alias", ["AS o", "o", "AS o (a, b)", "o (a, b)", 'AS "o" ("a", b)'])
@pytest.mark.parametrize(
    "around", ["{}", "orders JOIN {} ON id = o.a", "(SELECT * FROM {})", "orders, LATERAL (SELECT * FROM {})"]
)
def test_the_table_that_a_function_makes_is_named_with_its_columns(alias: str, around: str) -> None:
    statement = f"SELECT * FROM {around.format(f'TABLE(lake.system.forecast(days => 7)) {alias}')}"
    check_read_only(statement, dialect="trino", allow=ALLOWED)
    with pytest.raises(KnowledgeGuardError, match=r"not known to only read \(forecast"):
        check_read_only(statement, dialect="trino")


def test_a_name_with_brackets_elsewhere_is_a_call_all_the_same() -> None:
    for statement in ("SELECT evil (a, b) FROM TABLE(lake.system.forecast(days => 7)) o", "SELECT * FROM TABLE(evil (a, b))"):
        with pytest.raises(KnowledgeGuardError, match=r"not known to only read \(evil"):
            check_read_only(statement, dialect="trino", allow=ALLOWED)


@pytest.mark.parametrize(
    "version",
    [
        "FOR VERSION AS OF 8954597067493422955",
        "FOR VERSION AS OF 'audit'",
        "FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00 UTC'",
        "FOR TIMESTAMP AS OF current_timestamp - INTERVAL '1' DAY",
    ],
)
def test_an_older_version_of_a_table_is_read(version: str) -> None:
    statement = f"SELECT o.id FROM lake.sales.orders {version} AS o WHERE o.id = 1"
    assert analyse_read(statement, dialect="trino").tables == frozenset({"orders"})


def test_a_version_is_no_place_to_hide_a_table_or_a_call() -> None:
    for version in ("evil(1)", "(SELECT max(query) FROM system.runtime.queries)"):
        with pytest.raises(KnowledgeGuardError):
            check_read_only(f"SELECT * FROM orders FOR VERSION AS OF {version}", dialect="trino")


@pytest.mark.parametrize("table", ["system.metadata.table_comments", "system.jdbc.tables", "system.jdbc.columns"])
def test_tables_that_describe_data_can_be_described(table: str) -> None:
    for statement in (f"DESCRIBE {table}", f"SHOW COLUMNS FROM {table}"):
        check_read_only(statement, dialect="trino")
