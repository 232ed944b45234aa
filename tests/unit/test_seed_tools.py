"""Seed 002, "KnowledgeBuilder and Tools" and "KB Router Pattern", sentence by sentence (A7, A8, A9, A10)."""

import inspect
import json
import typing
from typing import Any, ClassVar

import pytest

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.errors import KnowledgeCapabilityError, KnowledgePathError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import KnowledgeCapabilities, describe
from agentkernel_kb.testing import FakeKnowledgeBase


def vectors(**kwargs):
    return FakeKnowledgeBase("vectors", search=True, writable=True, **kwargs)


def graph(**kwargs):
    return FakeKnowledgeBase("graph", search=False, query_language="cypher", writable=True, **kwargs)


def lake(**kwargs):
    return FakeKnowledgeBase("lake", search=False, query_language="sql", **kwargs)


def bundle(**kwargs):
    return FakeKnowledgeBase("bundle", search=True, fetch=True, browse=True, writable=True, **kwargs)


def tools(*backends, semantic_map=None, writable=True):
    return {tool.__name__: tool for tool in KnowledgeBuilder(list(backends), semantic_map).build(writable=writable)}


FOUR = ["get_schemas", "read_kb", "write_kb", "get_all_kb_descriptions"]


class TestEmission:
    def test_a7_four_tools_are_always_built(self):
        assert list(tools(lake())) == FOUR

    def test_a7_chroma_alone_gets_five_tools(self):
        assert list(tools(vectors())) == [*FOUR, "search_kb"]

    def test_a7_the_multi_demo_gets_five_tools(self):
        assert list(tools(vectors(), graph(), lake())) == [*FOUR, "search_kb"]

    def test_a7_an_okf_application_gets_seven_tools(self):
        assert list(tools(bundle())) == [*FOUR, "search_kb", "fetch_kb", "browse_kb"]

    def test_a7_a_gated_tool_is_emitted_when_some_backend_can_serve_it(self):
        fetcher = FakeKnowledgeBase("f", search=False, fetch=True)
        assert list(tools(lake(), fetcher)) == [*FOUR, "fetch_kb"]

    def test_a7_build_without_writable_drops_write_kb_and_may_return_three(self):
        assert list(tools(lake(), writable=False)) == ["get_schemas", "read_kb", "get_all_kb_descriptions"]

    def test_a7_writable_may_be_given_by_position(self):
        assert "write_kb" not in [tool.__name__ for tool in KnowledgeBuilder([lake()]).build(False)]

    def test_a7_no_backend_still_gets_the_four_tools(self):
        empty = tools()
        assert list(empty) == FOUR
        assert empty["get_schemas"]() == "{}"
        assert empty["get_all_kb_descriptions"]() == "No knowledge bases are registered."
        assert empty["read_kb"]("x", "y") == "Unknown backend 'x'. Available: []."

    @pytest.mark.parametrize(
        ("name", "signature"),
        [
            ("get_schemas", "() -> str"),
            ("read_kb", "(backend: str, query: str, limit: int = 3) -> str"),
            (
                "write_kb",
                "(backend: str, text: str = '', source: str = 'agent', query: str = '', params_json: str = '{}') -> str",
            ),
            ("get_all_kb_descriptions", "() -> str"),
            ("search_kb", "(backend: str, query: str, limit: int = 3) -> str"),
            ("fetch_kb", "(backend: str, ids: str) -> str"),
            ("browse_kb", "(backend: str, path: str = '', limit: int = 50) -> str"),
        ],
    )
    def test_a7_signatures_and_defaults_are_exact(self, name, signature):
        tool = tools(bundle())[name]
        assert str(inspect.signature(tool)) == signature
        assert typing.get_type_hints(tool) == {
            **{p.name: p.annotation for p in inspect.signature(tool).parameters.values()},
            "return": str,
        }

    def test_a7_tools_are_plain_callables_with_a_docstring_for_every_argument(self):
        for name, tool in tools(bundle()).items():
            assert inspect.isfunction(tool)
            assert not inspect.iscoroutinefunction(tool)
            assert tool.__qualname__ == name
            for parameter in inspect.signature(tool).parameters:
                assert f"    {parameter}: " in (tool.__doc__ or "")


class TestReading:
    def test_a8_read_kb_calls_query_on_a_backend_that_declares_a_language(self):
        backend = FakeKnowledgeBase("both", search=True, query_language="sql")
        tools(backend)["read_kb"]("both", "SELECT 1")
        assert [call[0] for call in backend.calls] == ["query"]

    def test_a8_read_kb_calls_search_on_every_other_backend(self):
        backend = vectors()
        tools(backend)["read_kb"]("vectors", "refunds", 7)
        assert backend.calls == [("search", "refunds", {"limit": 7})]

    def test_a8_read_kb_passes_the_default_limit_of_three(self):
        backend = lake()
        tools(backend)["read_kb"]("lake", "SELECT 1")
        assert backend.calls[0][2]["limit"] == 3

    def test_a8_a_read_method_of_a_backend_is_never_called(self):
        class Reader(FakeKnowledgeBase):
            def read(self, *args, **kwargs):
                raise AssertionError

        assert "hello" in tools(Reader("r", [{"text": "hello", "metadata": {}}]))["read_kb"]("r", "hello")

    def test_a8_search_kb_ranks_and_refuses_a_backend_that_cannot(self):
        answer = tools(vectors(), graph())["search_kb"]("graph", "refunds")
        assert answer.startswith("Backend 'graph' does not support search. Backends that do: ['vectors'].")
        assert "read_kb with cypher statements" in answer

    def test_a8_read_kb_of_a_backend_that_can_only_fetch_says_what_it_takes(self):
        answer = tools(FakeKnowledgeBase("f", search=False, fetch=True), vectors())["read_kb"]("f", "x")
        assert answer.startswith("Backend 'f' does not support search. Backends that do: ['vectors'].")
        assert "fetch_kb" in answer

    def test_a8_an_unknown_backend_is_named_with_the_known_ones_and_the_nearest(self):
        answer = tools(vectors(), graph())["read_kb"]("grahp", "x")
        assert answer == "Unknown backend 'grahp'. Available: ['vectors', 'graph']. Did you mean 'graph'?"

    def test_a8_a_capability_error_of_the_backend_is_caught_at_the_boundary(self):
        backend = vectors().on("search", KnowledgeCapabilityError("vectors", "fetch"))
        answer = tools(backend, bundle())["search_kb"]("vectors", "x")
        assert answer.startswith("Backend 'vectors' does not support fetch. Backends that do: ['bundle'].")

    def test_a8_an_operation_declared_and_not_implemented_is_told_apart(self):
        class Liar(KnowledgeBase):
            def __init__(self):
                super().__init__(KnowledgeCapabilities(search=True))

            @property
            def backend_name(self):
                return "liar"

            def connect(self, **kwargs): ...

            def get_description(self):
                return "liar"

        assert tools(Liar())["search_kb"]("liar", "x") == (
            "Backend 'liar' declares search but does not implement it. Use another backend or tool."
        )

    def test_a8_nothing_found_is_the_sentinel(self):
        assert tools(vectors())["search_kb"]("vectors", "x") == "No relevant knowledge found."

    def test_a8_format_results_of_the_backend_is_always_called(self):
        class Shouting(FakeKnowledgeBase):
            def format_results(self, rows):
                return f"{len(list(rows))} ROWS"

        call = tools(Shouting("s", [{"text": "hello", "metadata": {}}]))["search_kb"]
        assert [call("s", "hello"), call("s", "nobody")] == ["1 ROWS", "0 ROWS"]

    def test_a8_a_path_that_escapes_is_a_refusal_and_not_an_empty_result(self):
        backend = bundle().on("browse", KnowledgePathError("'../x' leaves the store"))
        assert tools(backend)["browse_kb"]("bundle", "../x") == "Refused: '../x' leaves the store"


class TestFetchingAndBrowsing:
    RECORDS = ({"text": "A", "metadata": {"id": "a.md", "source": "s"}}, {"text": "B", "metadata": {"id": "b.md"}})

    def test_a8_fetch_kb_takes_one_identity(self):
        assert tools(bundle(records=self.RECORDS))["fetch_kb"]("bundle", "a.md") == "- [a.md] A (source: s)"

    def test_a8_fetch_kb_takes_several_separated_by_commas(self):
        answer = tools(bundle(records=self.RECORDS))["fetch_kb"]("bundle", "b.md, a.md")
        assert answer == "- [b.md] B (source: N/A)\n- [a.md] A (source: s)"

    def test_a8_a_search_result_can_be_fed_back_into_a_fetch(self):
        own = tools(bundle(records=self.RECORDS))
        identity = own["search_kb"]("bundle", "A").split("]")[0].split("[")[1]
        assert own["fetch_kb"]("bundle", identity) == "- [a.md] A (source: s)"

    def test_x21_unknown_ids_are_named(self):
        own = tools(bundle(records=self.RECORDS))
        assert own["fetch_kb"]("bundle", "c.md").splitlines() == [
            "No relevant knowledge found.",
            "'bundle' has no record with the id 'c.md'.",
        ]
        assert own["fetch_kb"]("bundle", "c.md,a.md").splitlines() == [
            "'bundle' has no record with the id 'c.md'.",
            "- [a.md] A (source: s)",
        ]

    def test_x21_ids_that_a_backend_understands_in_another_spelling_are_not_called_missing(self):
        backend = bundle().on("fetch", [{"text": "A", "metadata": {"id": "a.md"}}])
        assert tools(backend)["fetch_kb"]("bundle", "a, gone").splitlines() == [
            "1 of the 2 ids were found in 'bundle'.",
            "- [a.md] A (source: N/A)",
        ]

    def test_a7_browse_kb_passes_path_and_limit(self):
        backend = bundle()
        tools(backend)["browse_kb"]("bundle", "docs")
        assert backend.calls == [("browse", "docs", {"limit": 50})]


class TestWriting:
    def test_a8_a_write_reaches_the_backend_with_text_and_source(self):
        backend = vectors()
        tools(backend)["write_kb"]("vectors", text="Acme moved", source="mail")
        assert backend.calls == [("write", [{"text": "Acme moved", "metadata": {"source": "mail"}}], {})]

    def test_a8_the_default_source_is_agent(self):
        backend = vectors()
        tools(backend)["write_kb"]("vectors", "Acme moved")
        assert backend.calls[0][1][0]["metadata"] == {"source": "agent"}

    def test_a8_a_write_by_statement_uses_the_generic_keys(self):
        backend = graph()
        tools(backend)["write_kb"]("graph", query="CREATE (:C {name: $n})", params_json='{"n": "Acme"}')
        assert backend.calls[0][1][0]["metadata"] == {
            "source": "agent",
            "query": "CREATE (:C {name: $n})",
            "params": {"n": "Acme"},
        }

    def test_a8_a_write_to_a_read_only_backend_names_the_writable_ones(self):
        answer = tools(lake(), graph(), vectors())["write_kb"]("lake", text="x")
        assert answer.startswith("Backend 'lake' does not support write. Backends that do: ['graph', 'vectors'].")

    def test_a8_what_was_written_is_told_with_its_id(self):
        backend = bundle()
        answer = tools(backend)["write_kb"]("bundle", text="Acme moved")
        (identity,) = [record["metadata"]["id"] for record in backend.search("Acme")]
        assert answer == f"Written to 'bundle'. Id: {identity}."

    def test_a8_the_refusal_stays_reachable_as_write_kb_names_all_backends(self):
        description = describe(tools(lake(), graph())["write_kb"])
        assert description is not None
        assert description.parameters["properties"]["backend"]["enum"] == ["lake", "graph"]

    def test_a8_a_statement_for_a_backend_without_a_language_is_not_stored_as_nothing(self):
        backend = vectors()
        answer = tools(backend)["write_kb"]("vectors", query="DELETE FROM x", params_json='{"a": 1}')
        assert answer == "Backend 'vectors' takes no statements. Give what to store in text."
        assert backend.calls == []


class TestOverview:
    def test_a9_get_schemas_is_json_with_the_declared_capabilities(self):
        backend = vectors(derives_schema=False).add_schema({"description": "Facts"})
        schema = json.loads(tools(backend)["get_schemas"]())["vectors"]
        assert schema["backend"] == "vectors"
        assert schema["description"] == "Facts"
        assert schema["capabilities"] == backend.capabilities.model_dump()

    def test_a9_a_backend_whose_schema_fails_degrades_to_an_error(self):
        schemas = json.loads(tools(vectors(derives_schema=False), graph())["get_schemas"]())
        assert "has no schema" in schemas["vectors"]["error"]
        assert schemas["graph"]["backend"] == "graph"

    def test_a9_descriptions_are_one_line_each(self):
        assert tools(vectors(), lake())["get_all_kb_descriptions"]().splitlines() == [
            "- vectors: vectors holds records in memory.",
            "- lake: lake holds records in memory.",
        ]

    def test_a9_a_description_that_begins_with_the_name_does_not_name_it_twice(self):
        answer = tools(FakeKnowledgeBase("geo", description="geo: cities"))["get_all_kb_descriptions"]()
        assert answer == "- geo: cities"

    def test_a9_a_description_that_is_no_text_is_a_fault_of_its_backend(self):
        answer = tools(FakeKnowledgeBase("x").add_schema({}), lake())["get_all_kb_descriptions"]
        assert "- lake: " in answer()

        class Nothing(FakeKnowledgeBase):
            def get_description(self) -> Any:
                return None

        assert "NoneType in place of text" in tools(Nothing("x"))["get_all_kb_descriptions"]()

    def test_a9_diagnostics_are_surfaced(self):
        class Diagnosed(FakeKnowledgeBase):
            def get_diagnostics(self):
                return ["x.md, line 3: not YAML"]

        answer = tools(Diagnosed("d", description="d is a bundle"))["get_all_kb_descriptions"]()
        assert answer == "- d: d is a bundle\n  | x.md, line 3: not YAML"

    def test_a9_a_backend_whose_description_fails_does_not_spoil_the_others(self):
        class Broken(FakeKnowledgeBase):
            def get_description(self):
                raise RuntimeError("secret-canary")

        answer = tools(Broken("b"), lake())["get_all_kb_descriptions"]()
        assert "- lake: lake holds records in memory." in answer.splitlines()
        assert "RuntimeError" in answer
        assert "secret-canary" not in answer


class TestSemanticMap:
    MAP: ClassVar = {"<MONGO_SOURCE>": "catalog.schema.clients", "<ROOT>": "docs/eu"}

    @pytest.mark.parametrize(
        ("tool", "arguments", "operation", "expected"),
        [
            ("read_kb", {"query": "SELECT * FROM <MONGO_SOURCE>"}, "query", "SELECT * FROM catalog.schema.clients"),
            ("search_kb", {"query": "what is in <ROOT>"}, "search", "what is in docs/eu"),
            ("browse_kb", {"path": "<ROOT>/law"}, "browse", "docs/eu/law"),
            ("fetch_kb", {"ids": "<ROOT>/a.md,b.md, <ROOT>/c.md"}, "fetch", ["docs/eu/a.md", "b.md", "docs/eu/c.md"]),
        ],
    )
    def test_a10_placeholders_are_resolved_before_the_backend_runs(self, tool, arguments, operation, expected):
        backend = FakeKnowledgeBase("all", search=True, query_language="sql", fetch=True, browse=True)
        tools(backend, semantic_map=self.MAP)[tool]("all", **arguments)
        assert backend.calls[0][:2] == (operation, expected)

    def test_a10_placeholders_are_resolved_in_written_statements(self):
        backend = graph()
        tools(backend, semantic_map=self.MAP)["write_kb"]("graph", query="CREATE (<MONGO_SOURCE>)")
        assert backend.calls[0][1][0]["metadata"]["query"] == "CREATE (catalog.schema.clients)"

    def test_a10_written_text_is_left_as_it_is(self):
        backend = vectors()
        tools(backend, semantic_map=self.MAP)["write_kb"]("vectors", text="<ROOT> is a token")
        assert backend.calls[0][1][0]["text"] == "<ROOT> is a token"

    def test_a10_another_map_swaps_the_environment(self):
        statements = []
        for name in ("dev.clients", "prod.clients"):
            backend = lake()
            tools(backend, semantic_map={"<C>": name})["read_kb"]("lake", "SELECT * FROM <C>")
            statements.append(backend.calls[0][1])
        assert statements == ["SELECT * FROM dev.clients", "SELECT * FROM prod.clients"]

    def test_x1_functions_that_map_values_name_are_passed_on_for_the_statement_that_uses_them(self):
        class Lake(FakeKnowledgeBase):
            def query(self, statement, limit=3, *, allow=(), **kwargs):
                self.seen = tuple(allow)
                return []

        backend = Lake("lake", search=False, query_language="sql")
        read = tools(backend, semantic_map={"<S>": "TABLE(kb.system.sheet(id => 'f(x)'))"})["read_kb"]
        read("lake", "SELECT * FROM <S>")
        assert backend.seen == ("kb.system.sheet",)
        read("lake", "SELECT * FROM TABLE(kb.system.sheet(id => '1'))")
        assert backend.seen == ()
