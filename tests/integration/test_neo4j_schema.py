"""The schema and the searches of Neo4jManager on a real server (A12)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from neo4j_people import CITY, EMBED, FACES, KNOWS, NOTES, PERSON, RUN, people, record

from agentkernel_kb import AKConfigError, KnowledgeCapabilityError
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.neo4j import Neo4jManager
from servers import PASSWORD, Server

pytestmark = pytest.mark.server("neo4j")


@pytest.fixture(scope="module")
def graph(neo4j_server: Server) -> Iterator[Neo4jManager]:
    with people(neo4j_server) as graph:
        yield graph


# The schema.


def test_the_schema_says_all_that_a_statement_needs(graph: Neo4jManager) -> None:
    graph.reload()
    schema = graph.schema()
    assert schema["nodes"][PERSON].startswith("age INTEGER, ")
    assert "name STRING (unique)" in schema["nodes"][PERSON]
    assert "face LIST<FLOAT>" in schema["nodes"][PERSON]
    assert schema["nodes"][PERSON].endswith("| 3 nodes")
    assert schema["nodes"][f"`{CITY}`"] == "`land area` FLOAT, name STRING | 1 node"
    assert schema["relationships"][KNOWS] == f"(:{PERSON})-[:{KNOWS}]->(:{PERSON}) | since INTEGER | 1 relationship"
    assert f"{FACES}: vector index on nodes :{PERSON}(face)" in schema["indexes"]
    assert f"{NOTES}: fulltext index on nodes :{PERSON}(note)" in schema["indexes"]
    assert json.loads(json.dumps(schema)) == schema
    assert graph.get_description().startswith("people: property graph (Cypher) with the nodes ")


def test_what_is_described_is_bounded_and_what_was_added_wins(neo4j_server: Server, graph: Neo4jManager) -> None:
    small = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, described=0, description="people").add_schema({"nodes": "mine"})
    assert small.schema()["nodes"] == "mine"
    assert "more labels and types are not described here" in small.schema()["further"]
    assert small.get_description() == "neo4j: people"
    small.close()


def test_a_new_label_is_in_the_schema_after_a_write(graph: Neo4jManager) -> None:
    label = f"New{RUN}"
    assert label not in graph.schema()["nodes"]
    graph.write([record(f"CREATE (:{label} {{x: 1}})")])
    assert graph.schema()["nodes"][label] == "x INTEGER | 1 node"
    graph.write([record(f"MATCH (n:{label}) DELETE n")])


# Searching.


def test_a_full_text_index_is_searched_by_words_that_are_no_syntax(graph: Neo4jManager, neo4j_server: Server) -> None:
    searched = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, search_index=NOTES)
    assert searched.capabilities.search_mode == "lexical"
    (best, second) = searched.search("lamps bicycles")
    assert (best["text"], best["metadata"]["kind"]) == ("sells bicycles and lamps", PERSON)
    assert best["metadata"]["score"] > second["metadata"]["score"] > 0
    assert len(searched.search("bicycles", limit=1)) == 1
    for text in ('"', "\\", "xyz OR", "* OR [", '+-&&||!(){}[]^"~*?:\\/', "note:*", "", "  \n"):
        assert searched.search(text) == []
    assert searched.format_results(searched.search("houses")) == "- paints houses (source: neo4j)"
    searched.close()


def test_what_a_search_returns_is_bounded_by_its_bytes(graph: Neo4jManager, neo4j_server: Server) -> None:
    searched = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, search_index=NOTES)
    graph.write([record(f"MATCH (p:{PERSON}) SET p.scan = $scan", scan="x" * 9_000_000)])
    page = searched.search("bicycles lamps houses", limit=3)
    graph.write([record(f"MATCH (p:{PERSON}) REMOVE p.scan")])
    assert (len(page), page.more) == (2, True)
    page = searched.search("bicycles lamps houses", limit=3)
    assert (len(page), page.more) == (3, False)
    searched.close()


def test_a_vector_index_is_searched_by_an_embedding_function(graph: Neo4jManager, neo4j_server: Server) -> None:
    searched = Neo4jManager(
        neo4j_server.url, "neo4j", PASSWORD, search_index=FACES, embedding_function=EMBED, search_text="note"
    )
    assert searched.capabilities.search_mode == "semantic"
    (best,) = searched.search("paints houses", limit=1)
    assert best["text"] == "paints houses"
    assert best["metadata"]["row"]["face"] == "[64 numbers]"
    searched.close()


def test_a_vector_of_zeros_finds_nothing_by_its_angle(graph: Neo4jManager, neo4j_server: Server) -> None:
    def zeros(texts: list[str]) -> list[list[float]]:
        return [[0.0] * 64 for _ in texts]

    searched = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, search_index=FACES, embedding_function=zeros)
    assert searched.search("paints houses") == []
    searched.close()


def test_an_index_that_is_not_there_or_of_another_kind_is_named(neo4j_server: Server, graph: Neo4jManager) -> None:
    for index, embed, wanted in (
        (f"no{RUN}", None, "no index"),
        (FACES, None, "needs embedding_function"),
        (NOTES, EMBED, "type FULLTEXT"),
        (FACES, HashEmbedder(8), "has vectors of 64 numbers, embedding_function= makes 8"),
    ):
        searched = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, search_index=index, embedding_function=embed)
        with pytest.raises(AKConfigError, match=wanted):
            searched.search("x")
        searched.close()
    with pytest.raises(KnowledgeCapabilityError):
        graph.search("x")
