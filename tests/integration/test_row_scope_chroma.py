"""A row scope on Chroma: it is Chroma's own filter, and what is written stays in it (A11, X6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb import Access, AKConfigError, KnowledgeBuilder, KnowledgeQueryError
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.chroma.records import Distance
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.model import Operation, Scalar

MAY: frozenset[Operation] = frozenset(("search", "write"))


@pytest.fixture
def tickets(tmp_path: Path) -> Iterator[ChromaManager]:
    backend = ChromaManager(tmp_path / "chroma", name="tickets", embedding_function=HashEmbedder())
    backend.add_schema({"usage": "Ask."})
    yield backend
    backend.close()


def tools_of(backend: ChromaManager, scope: Mapping[str, Scalar]) -> dict[str, Callable[..., str]]:
    access = Access("Agent", {"tickets": MAY}, {"tickets": scope})
    return {tool.__name__: tool for tool in KnowledgeBuilder([backend], access=access).build()}


def ticket(number: int, **metadata: Any) -> dict[str, Any]:
    return {"text": f"The printer number {number} is on fire.", "metadata": {"id": f"t{number}", **metadata}}


def test_x6_the_few_records_of_a_scope_are_found_among_many(tickets: ChromaManager) -> None:
    tickets.write(ticket(number, tenant="acme" if number % 250 == 7 else "globex") for number in range(1_000))
    found = tickets.search("printer on fire", limit=10, filters={"tenant": "acme"})
    assert sorted(hit["metadata"]["id"] for hit in found) == ["t257", "t507", "t7", "t757"]


@pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
def test_x6_what_the_index_does_not_reach_has_the_score_that_chroma_gives(tmp_path: Path, distance: Distance) -> None:
    with_all, with_few = (
        ChromaManager(tmp_path / name, name=name, embedding_function=HashEmbedder(), distance=distance) for name in ("a", "f")
    )
    records = [ticket(number, tenant="acme" if number % 250 == 7 else "globex") for number in range(1_000)]
    with_all.write(records)
    with_few.write(record for record in records if record["metadata"]["tenant"] == "acme")
    try:
        found = [kb.search("printer on fire", 9, filters={"tenant": "acme"}) for kb in (with_all, with_few)]
        scored = [{hit["metadata"]["id"]: hit["metadata"]["score"] for hit in hits} for hits in found]
        assert scored[0] == pytest.approx(scored[1], abs=1e-5)
        assert len(scored[0]) == 4
    finally:
        with_all.close()
        with_few.close()


@pytest.mark.parametrize("value", [7, True, "7", "é\"'} $or"])
def test_x6_a_value_is_compared_with_its_type(tickets: ChromaManager, value: Scalar) -> None:
    values: list[Scalar] = [7, 7.5, True, "7", "é\"'} $or"]
    tickets.write(ticket(number, key=each) for number, each in enumerate(values))
    assert [hit["metadata"]["key"] for hit in tickets.search("printer", 9, filters={"key": value})] == [value]


def test_x6_a_filter_of_the_caller_narrows_and_never_widens(tickets: ChromaManager) -> None:
    tickets.write([ticket(1, tenant="acme", year=1), ticket(2, tenant="acme", year=2), ticket(3, tenant="globex", year=2)])

    def found(where: dict[str, Any]) -> list[str]:
        hits = tickets.search("printer", 9, where=where, filters={"tenant": "acme"})
        return sorted(hit["metadata"]["id"] for hit in hits)

    assert found({"year": 2}) == ["t2"]
    assert found({"$or": [{"tenant": "globex"}, {"year": 2}]}) == ["t2"]
    assert found({"tenant": "globex"}) == []


def test_x6_an_id_of_another_scope_is_not_taken_over(tickets: ChromaManager) -> None:
    tickets.write([ticket(1, tenant="globex"), ticket(2)])
    for number in (1, 2):
        with pytest.raises(KnowledgeQueryError, match="can't store under an id that is in use; nothing was written"):
            tickets.add([ticket(9), ticket(number)], filters={"tenant": "acme"})
    assert tickets.search("printer number", 9, filters={"tenant": "acme"}) == []
    tickets.add([ticket(3)], filters={"tenant": "acme"})
    assert tickets.add([ticket(3)], filters={"tenant": "acme"}) == ["t3"]


def test_x6_agents_that_write_the_same_have_a_record_each(tickets: ChromaManager) -> None:
    scopes: list[Mapping[str, Scalar]] = [{"tenant": "acme"}, {"tenant": "globex"}]
    ids = {tools_of(tickets, scope)["write_kb"]("tickets", text="The door is stuck.", source="desk") for scope in scopes * 2}
    assert len(ids) == 2
    for scope in scopes:
        assert len(tickets.search("door stuck", 9, filters=scope)) == 1


@pytest.mark.parametrize("scope", [{"chroma:document": "x"}, {"#embedding": "x"}, {"$and": "x"}, {"key": 2**64}, {"key": 7.5}])
def test_x6_what_chroma_can_not_filter_by_is_refused_and_nothing_is_stored(
    tickets: ChromaManager, scope: dict[str, Scalar]
) -> None:
    tickets.write([ticket(1)])
    with pytest.raises(AKConfigError, match="can't filter by"):
        tickets.search("printer", filters=scope)
    with pytest.raises(AKConfigError, match="can't filter by"):
        tickets.add([ticket(2)], filters=scope)
    with pytest.raises(AKConfigError, match="can't filter by"):
        tools_of(tickets, scope)
    assert len(tickets.search("printer", 9)) == 1


def test_x6_the_tools_of_an_agent_keep_to_its_scope(tickets: ChromaManager) -> None:
    tickets.write([ticket(1, tenant="acme"), ticket(2, tenant="globex")])
    tools = tools_of(tickets, {"tenant": "acme"})
    assert "number 1" in tools["search_kb"]("tickets", "printer", 9)
    assert "number 2" not in tools["search_kb"]("tickets", "printer number 2 globex", 9)
    assert "number 2" not in tools["read_kb"]("tickets", "printer", 9)
    assert "acme" not in tools["get_schemas"]()
