"""StarburstManager on a real Trino server: what it tells about tables, and how it is opened and closed (A13)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import pytest
import trino_statements as admin

from agentkernel_kb import KnowledgeConnectionError, KnowledgeStateError
from agentkernel_kb.registry import backend_class
from agentkernel_kb.starburst import StarburstManager
from servers import Server, free_port

pytestmark = pytest.mark.server("trino")


@pytest.fixture
def port(trino_server: Server) -> int:
    return trino_server.port


@pytest.fixture
def tiny(port: int) -> Iterator[StarburstManager]:
    with closing(StarburstManager("127.0.0.1", port, "kb", None, "tpch", "tiny", name="lake")) as backend:
        yield backend


# The schema and browsing.


@pytest.fixture
def shop(port: int) -> Generator[str]:
    with admin.own_schema(
        port, "orders AS SELECT 1 AS id, 'x' AS \"Unit\", DECIMAL '1.5' AS price", '"a/b %" AS SELECT 1 AS x'
    ) as name:
        admin.rows(port, f"COMMENT ON TABLE memory.{name}.orders IS 'What was sold'")
        admin.rows(port, f"COMMENT ON COLUMN memory.{name}.orders.price IS 'in francs'")
        yield name


def test_the_columns_of_the_table_stand_in_the_schema(port: int, shop: str) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", None, "memory", shop, "orders")) as backend:
        schema = backend.add_schema({"use": "all"}).schema()
        assert schema["tables"] == {"orders": "id integer, unit varchar(1), price decimal(2,1) (in francs)"}
        assert (schema["comment"], schema["use"], schema["dialect"]) == ("What was sold", "all", "trino")
        admin.rows(port, f"ALTER TABLE memory.{shop}.orders ADD COLUMN more integer")
        assert backend.schema() == schema
        backend.reload()
        assert backend.schema()["tables"]["orders"].endswith("more integer")


def test_a_table_that_is_not_there_leaves_the_rest_of_the_schema(port: int, shop: str) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", None, "memory", shop, "gone")) as backend:
        schema = backend.add_schema({"use": "all"}).schema()
    assert (schema["tables"], schema["use"]) == ({}, "all")
    assert "does not exist" in schema["note"]


def test_without_a_table_it_declares_what_the_seed_declares(tiny: StarburstManager) -> None:
    assert tiny.capabilities.model_dump() == {
        "kinds": ["structured"],
        "search": False,
        "search_mode": None,
        "query": True,
        "query_language": "sql",
        "fetch": False,
        "browse": False,
        "writable": False,
        "derives_schema": False,
    }
    with pytest.raises(ValueError, match="has no schema"):
        tiny.schema()


def test_browsing_leads_from_catalogs_to_columns(port: int, shop: str) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", name="lake", browse=True)) as backend:
        assert [record["text"] for record in backend.browse()] == ["memory/", "tpch/"]
        assert f"memory/{shop}/" in [record["text"] for record in backend.browse("memory", 10_000)]
        tables = backend.browse(f"memory/{shop}/")
        assert [record["text"] for record in tables] == [
            f"memory/{shop}/a%2Fb %25/",
            f"memory/{shop}/orders/ (What was sold)",
        ]
        assert [record["text"] for record in backend.browse(f"/memory/{shop}/orders")] == [
            "id integer",
            "unit varchar(1)",
            "price decimal(2,1) (in francs)",
        ]
        assert [record["text"] for record in backend.browse(f"memory/{shop}/a%2Fb %25/")] == ["x integer"]


@pytest.mark.parametrize(
    "path",
    ["nowhere", "tpch/nowhere", "tpch/tiny/nowhere", "tpch/tiny/nation/name", "system/runtime", "tpch'/x", '"', "../etc"],
)
def test_there_is_nothing_at_an_unknown_path(port: int, path: str) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", browse=True)) as backend:
        assert backend.browse(path) == []


def test_browsing_is_bounded_and_says_that_there_is_more(port: int) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", browse=True)) as backend:
        page = backend.browse("tpch/tiny", 3)
    assert (len(page), page.more) == (3, True)


# Opening and closing.


def test_ping_tells_the_version(tiny: StarburstManager) -> None:
    assert tiny.ping(timeout=30).isdigit()


@pytest.mark.parametrize(("catalog", "schema"), [("nowhere", ""), ("nowhere", "tiny"), ("tpch", "nowhere")])
def test_a_catalog_or_schema_that_is_not_there_is_told_at_once(port: int, catalog: str, schema: str) -> None:
    with pytest.raises(KnowledgeConnectionError, match="nowhere") as caught:
        StarburstManager("127.0.0.1", port, "kb", None, catalog, schema)
    assert caught.value.state == "missing"


def test_a_catalog_that_is_missing_later_is_no_fault_of_the_statement(port: int) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", None, "nowhere", "tiny", connect="lazy")) as backend:
        with pytest.raises(KnowledgeConnectionError) as caught:
            backend.query("SELECT * FROM nation")
        assert caught.value.state == "missing"
        assert len(backend.query("SELECT * FROM tpch.tiny.nation")) == 3


def test_a_server_that_is_not_there_is_told_at_once_or_at_first_use() -> None:
    port = free_port()
    with pytest.raises(KnowledgeConnectionError, match=f"127.0.0.1:{port} can't be reached") as caught:
        StarburstManager("127.0.0.1", port, "kb")
    assert caught.value.state == "unreachable"
    with closing(StarburstManager("127.0.0.1", port, "kb", connect="lazy")) as backend:
        for call in (lambda: backend.query("SELECT 1"), lambda: backend.ping()):
            with pytest.raises(KnowledgeConnectionError, match="can't be reached"):
                call()


def test_a_closed_backend_says_so(port: int) -> None:
    backend = StarburstManager("127.0.0.1", port, "kb", connect="lazy")
    backend.close()
    backend.close()
    for call in (lambda: backend.query("SELECT 1"), lambda: backend.ping()):
        with pytest.raises(KnowledgeStateError, match="closed"):
            call()
    backend.connect()
    assert backend.query("SELECT 1")[0]["text"] == "_col0=1"
    backend.close()


def test_it_is_found_by_its_name() -> None:
    assert backend_class("starburst") is StarburstManager
