"""Whose a placeholder is: an agent is told of none that speaks of a backend which is not there for it (X6, A9)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb import AKConfigError, KnowledgeBuilder
from agentkernel_kb.config import check, load
from agentkernel_kb.router.access import Access
from agentkernel_kb.testing import FakeKnowledgeBase

MAP = {"<CLIENTS>": {"shop": "clients_2026", "graph": "Client"}, "<PAYROLL>": {"vault": "payroll_2026"}, "<YEAR>": "2026"}
FILE = """
backends:
  shop: {type: sql, url: "sqlite:///shop.db"}
  vault: {type: sql, url: "sqlite:///vault.db"}
semantic_map:
  <CLIENTS>: {shop: clients_2026}
  <PAYROLL>: {vault: payroll_2026}
  <SALARY>: salary_2026
agents:
  Support: {shop: consumer}
  Boss: {shop: consumer, vault: consumer}
"""


def stores() -> list[FakeKnowledgeBase]:
    return [FakeKnowledgeBase(name, query_language="sql") for name in ("shop", "graph", "vault")]


def builder(*names: str) -> KnowledgeBuilder:
    """The router of an agent that may read some of the stores."""
    return KnowledgeBuilder(stores(), MAP, access=Access("agent", {name: frozenset(("search", "query")) for name in names}))


def tools(own: KnowledgeBuilder) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in own.build()}


def statements(own: KnowledgeBuilder, backend: str) -> list[Any]:
    asked = next(each for each in own.backends if each.backend_name == backend)
    assert isinstance(asked, FakeKnowledgeBase)
    return [argument for _, argument, _ in asked.calls]


def test_x6_each_backend_knows_a_placeholder_by_its_own_name() -> None:
    own = builder("shop", "graph")
    for backend in ("shop", "graph"):
        tools(own)["read_kb"](backend, "SELECT * FROM <CLIENTS> WHERE year = <YEAR>")
    assert statements(own, "shop") == ["SELECT * FROM clients_2026 WHERE year = 2026"]
    assert statements(own, "graph") == ["SELECT * FROM Client WHERE year = 2026"]


def test_x6_a_search_of_all_asks_each_in_its_own_words() -> None:
    own = builder("shop", "graph")
    tools(own)["search_kb"]("*", "who is in <CLIENTS>")
    assert statements(own, "shop") + statements(own, "graph") == ["who is in clients_2026", "who is in Client"]


def test_x6_a_placeholder_of_a_hidden_backend_is_a_word_like_any_other() -> None:
    read = tools(builder("shop"))["read_kb"]
    answers = {read("shop", f"SELECT * FROM {token}").replace(token, "…") for token in ("<PAYROLL>", "<PAYROLE>", "<OTHER>")}
    assert answers == {"Unknown placeholder …. Known: <CLIENTS>."}


def test_x6_the_prompt_names_the_agents_own_placeholders_and_whose_they_are() -> None:
    assert "resolved for you: <CLIENTS> (shop)." in builder("shop").instructions()
    everything = builder("shop", "graph", "vault").instructions()
    assert "resolved for you: <YEAR>, <CLIENTS> (shop, graph), <PAYROLL> (vault)." in everything
    assert "laceholder" not in KnowledgeBuilder(stores()[:1], {"<X>": {"vault": "x"}}).instructions()


def test_x6_a_placeholder_for_all_is_resolved_and_not_named_to_an_agent_that_may_not_use_all() -> None:
    own = builder("shop")
    assert "<YEAR>" not in own.instructions() + tools(own)["read_kb"]("shop", "SELECT <YEARS>")
    tools(own)["read_kb"]("shop", "SELECT <YEAR>")
    assert statements(own, "shop") == ["SELECT 2026"]


@pytest.mark.parametrize("value", [{}, {"shop": 7}, {7: "x"}, {"shop": {"x": "y"}}, {"shop": "postgresql://u:pw@host/x"}])
def test_a9_what_is_no_name_in_a_backend_is_refused(value: Any) -> None:
    with pytest.raises(AKConfigError, match="<CLIENTS>"):
        KnowledgeBuilder(stores(), {"<CLIENTS>": value})


def test_x10_nothing_that_an_agent_of_a_file_is_told_names_a_placeholder_of_a_hidden_backend(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text(FILE)
    with load(tmp_path / "kb.yaml") as knowledge:
        support, boss = knowledge.instructions("Support"), knowledge.instructions("Boss")
    assert "<CLIENTS> (shop)" in support
    assert "PAYROLL" not in support
    assert "SALARY" not in support
    assert "<SALARY>, <CLIENTS> (shop), <PAYROLL> (vault)" in boss


def test_x10_a_placeholder_of_a_backend_that_is_not_there_is_a_fault_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text(FILE.replace("{vault: payroll_2026}", "{vualt: payroll_2026, shop: 7}"))
    assert [str(fault).removeprefix(f"{tmp_path}/") for fault in check(tmp_path / "kb.yaml")] == [
        "kb.yaml:7: semantic_map.<PAYROLL>.shop: must be the name that <PAYROLL> stands for, not a number. Put it in quotes.",
        "kb.yaml:7: semantic_map.<PAYROLL>.vualt: there is no backend 'vualt'. Did you mean 'vault'? Declared: shop, vault.",
    ]
