"""How Neo4jManager is opened and closed on a real server (A12)."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from neo4j_people import EMBED, RUNAWAY, SECRET

from agentkernel_kb import AKConfigError, KnowledgeCapabilityError, KnowledgeError, KnowledgeStateError
from agentkernel_kb.neo4j import Neo4jManager
from servers import PASSWORD, Server

pytestmark = pytest.mark.server("neo4j")


def test_arguments_come_from_the_environment_in_the_old_order(neo4j_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_URI", neo4j_server.url)
    monkeypatch.setenv("NEO4J_USERNAME", "neo4j")
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    own = Neo4jManager()
    assert (own.backend_name, own.ping()) == ("neo4j", own.ping())
    own.close()
    named = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, "neo4j", "graph", "what it holds")
    assert (named.backend_name, named.get_description()) == ("graph", "graph: what it holds")
    named.close()


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_URI", " bolt://127.0.0.1:1\n")
    monkeypatch.setenv("NEO4J_USERNAME", "")
    monkeypatch.setenv("NEO4J_PASSWORD", "")
    own = Neo4jManager(connect="lazy")  # As for a server without logins.
    assert repr(own) == "Neo4jManager('bolt://127.0.0.1:1', database=None, name='neo4j')"
    own.close()
    with pytest.raises(AKConfigError, match="user was given and password was not"):
        Neo4jManager(user="ann", connect="lazy")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"uri": None}, "needs uri=, or NEO4J_URI"),
        ({"uri": f"bolt://neo4j:{SECRET}@127.0.0.1"}, "uri must hold no login"),
        ({"uri": "http://127.0.0.1:7474"}, "uri must be one of bolt"),
        ({"uri": "bolt://"}, "uri must be one of"),
        ({"uri": "bolt://h:99999"}, "uri must be one of"),
        ({"uri": "bolt://h/db"}, "uri must be one of"),
        ({"password": None}, "user was given and password was not"),
        ({"user": None}, "password was given and user was not"),
        ({"uri": "bolt://h?policy=near"}, "only with neo4j://"),
        ({"user": 7}, "user must be text"),
        ({"user": ""}, "user must be text that is not blank"),
        ({"database": " "}, "database must be text that is not blank"),
        ({"database": "System"}, "administers the server and holds no graph"),
        ({"search_index": ""}, "search_index must be text that is not blank"),
        ({"search_index": "notes", "search_text": 7}, "search_text must be text"),
        ({"connect": "late"}, "'eager' or 'lazy'"),
        ({"allow": "apoc.x"}, "allow takes a list of names"),
        ({"described": -1}, "described is a whole number"),
        ({"embedding_function": EMBED}, "go with search_index"),
        ({"database_of": 7}, "database_of maps tenants"),
        ({"certificates": ["/nowhere.pem"]}, "files that are not there"),
    ],
)
def test_a_wrong_argument_is_named(monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str) -> None:
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    good: dict[str, Any] = {"uri": "bolt://127.0.0.1:1", "user": "neo4j", "password": SECRET, "connect": "lazy"}
    with pytest.raises(AKConfigError, match=message) as caught:
        Neo4jManager(**(good | arguments))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("scheme", ["bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"])
def test_every_scheme_is_taken_and_no_representation_holds_the_password(scheme: str) -> None:
    own = Neo4jManager(f"{scheme}://graph.example:7687", "neo4j", SECRET, connect="lazy")
    assert f"{scheme}://graph.example:7687" in repr(own)
    assert SECRET not in repr(own) + repr(vars(own)) + str(own)
    own.close()
    own.close()


def test_a_closed_backend_says_so_and_can_be_connected_again(neo4j_server: Server) -> None:
    own = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)
    own.close()
    for call in (lambda: own.query("RETURN 1"), own.ping, own.schema, lambda: own.write([]), lambda: own.search("x")):
        with pytest.raises((KnowledgeStateError, KnowledgeCapabilityError)):
            call()
    assert own.get_description() == "neo4j: property graph (Cypher)"
    own.connect()
    assert own.query("RETURN 1 AS one")[0]["text"] == "one=1"
    own.close()


def test_closing_ends_what_runs(neo4j_server: Server) -> None:
    own = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            own.query(RUNAWAY, timeout=60)
        except KnowledgeError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)
    own.close()
    thread.join(20)
    assert [type(error) for error in failures] == [KnowledgeStateError]
