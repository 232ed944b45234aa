"""What every backend of SQL answers alike (A13): SQLite, DuckDB, PostgreSQL and Trino; another one is an entry in `engines`.

Where they differ honestly, `engines` says so: how endless rows are made, and what tables are. What `SQLManager` promises on top
is in `test_sql_engines`, what `StarburstManager` does in `test_starburst`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import engines
import pytest
from engines import Source

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBase,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
    RecordPage,
)

pytestmark = engines.on_sources()


@pytest.fixture(scope="module")
def kb(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with source.open(tmp_path_factory.mktemp(source.name)) as backend:
        yield backend


def asked(backend: KnowledgeBase, statement: str, **options: Any) -> RecordPage:
    return cast("RecordPage", backend.query(statement, **options))


def rows(backend: KnowledgeBase, statement: str, limit: int = 100, **options: Any) -> list[dict[str, Any]]:
    return [record["metadata"]["row"] for record in backend.query(statement, limit, **options)]


def test_rows_are_typed_and_shown_on_one_line(kb: KnowledgeBase) -> None:
    found = asked(kb, "SELECT id, name, population, 'a\nb' AS note FROM cities WHERE id = 3")
    assert list(found) == [
        {
            "text": "id=3, name=Bern, population=NULL, note=a b",
            "metadata": {"row": {"id": 3, "name": "Bern", "population": None, "note": "a\nb"}, "source": "geo"},
        }
    ]


def test_names_of_columns_that_repeat_are_made_distinct(kb: KnowledgeBase) -> None:
    found = rows(kb, "SELECT a.name, c.name, a.name FROM cities a JOIN countries c ON c.code = a.country WHERE a.id = 2")
    assert found == [{"name": "Berlin", "name_2": "Germany", "name_3": "Berlin"}]


def test_the_order_of_a_statement_is_kept(kb: KnowledgeBase) -> None:
    assert [row["name"] for row in rows(kb, "SELECT name FROM cities ORDER BY id DESC")] == ["Bern", "Berlin", "Zürich"]


@pytest.mark.parametrize(
    ("suffix", "options", "count", "more"),
    [
        ("", {}, 3, True),
        ("", {"limit": 5}, 5, True),
        (" LIMIT 4", {}, 4, False),
        (" LIMIT 4", {"max_rows": 2}, 2, True),
        (" -- LIMIT 5", {}, 3, True),
        ("", {"limit": 5, "max_rows": 4}, 4, True),
        (" LIMIT 1000000", {}, 1_000, True),
        (" LIMIT 0", {}, 0, False),
        ("", {"limit": 1_500}, 1_500, True),
    ],
)
def test_an_endless_result_is_streamed_bounded_and_known_to_have_more(
    source: Source, kb: KnowledgeBase, suffix: str, options: dict[str, Any], count: int, more: bool
) -> None:
    found = asked(kb, source.numbers + suffix, **options)
    assert (len(found), found.more) == (count, more)


@pytest.mark.parametrize(
    ("suffix", "options", "count", "more"),
    [
        ("", {}, 3, False),
        ("", {"limit": 2}, 2, True),
        (" LIMIT 2", {}, 2, False),
        (" LIMIT 3", {"max_rows": 2}, 2, True),
        (" WHERE id > 9", {}, 0, False),
    ],
)
def test_it_is_known_when_there_are_no_more(
    kb: KnowledgeBase, suffix: str, options: dict[str, Any], count: int, more: bool
) -> None:
    found = asked(kb, "SELECT id FROM cities" + suffix, **options)
    assert (len(found), found.more) == (count, more)


@pytest.mark.parametrize("limits", [{"limit": 0}, {"limit": -1}, {"max_rows": 0}])
def test_a_limit_below_one_is_an_error(kb: KnowledgeBase, limits: dict[str, Any]) -> None:
    with pytest.raises(AKConfigError, match="at least 1"):
        kb.query("SELECT 1", **limits)


def test_without_time_left_nothing_is_sent(kb: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query("SELECT 1", timeout=0)


def test_many_threads_get_their_own_answers(kb: KnowledgeBase) -> None:
    def ask(number: int) -> object:
        return rows(kb, f"SELECT {number} AS n, name FROM cities WHERE id = {number % 3 + 1}", timeout=60)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(100)))
    names = ["Zürich", "Berlin", "Bern"]
    assert answers == [[{"n": number, "name": names[number % 3]}] for number in range(100)]


async def test_the_async_twin_answers_the_same(kb: KnowledgeBase) -> None:
    assert [record["text"] for record in await kb.aquery("SELECT name FROM cities ORDER BY id", 1, timeout=10)] == [
        "name=Zürich"
    ]


@pytest.mark.parametrize("write", engines.WRITES)
def test_the_guard_alone_refuses(kb: KnowledgeBase, write: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        kb.check_read(write)


def test_a_statement_is_stopped_at_its_deadline_and_the_next_one_answered(source: Source, kb: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query(f"SELECT count(*) AS n FROM ({source.numbers}) AS endless", timeout=0.5)
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize("statement", ["SELECT namex FROM cities", "SELECT x.nam FROM cities AS x"])
def test_a_rejected_statement_gets_a_near_name(kb: KnowledgeBase, statement: str) -> None:
    with pytest.raises(KnowledgeQueryError, match=r"Did you mean name\?"):
        kb.query(statement)
