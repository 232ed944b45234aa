"""The semantic map: what is replaced, what is reported, what is refused at construction (A10, X2)."""

import os

import pytest

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.router.semantic_map import SemanticMap, UnknownTokenError


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        ({"<A>": "t"}, "FROM <A>, <A>", "FROM t, t"),
        ({"ORD": "o", "ORDERS": "os"}, "ORDERS ORD", "os o"),
        ({"ORDERS": "os", "ORD": "o"}, "ORDERS ORD", "os o"),
        ({"ORD": "o"}, "ORDER ORD RECORD ORD_1 ORD.x", "ORDER o RECORD ORD_1 o.x"),
        ({"<A>": "<B>", "<B>": "<A>"}, "<A> <B>", "<B> <A>"),
        ({"<A>": "<A><A>"}, "<A>", "<A><A>"),
        ({"<A>": ""}, "x<A>y", "xy"),
        ({"<A>": r"\1 \g<0>"}, "<A>", r"\1 \g<0>"),
        ({"<A": "1", "<A>": "2"}, "<A> <A", "2 1"),
        ({"${T}": "t", "{{T}}": "u"}, "${T} {{T}}", "t u"),
        ({"два слова": "x"}, "два слова, двадва слова", "x, двадва слова"),
        ({"<A>": "t"}, "", ""),
        ({}, "<A>", "<A>"),
    ],
)
def test_x2_one_pass_longest_first_no_part_of_a_word(tokens, text, expected):
    assert SemanticMap(tokens).resolve(text)[0] == expected


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM <B>",
        "SELECT 1 -- fine\nFROM <B>",
        "SELECT '<B>' FROM <B>",
        "SELECT 1 FROM t WHERE a <<B>",
        "/* <A> */ SELECT * FROM <B>",
        "SELECT 'it''s' FROM <B>",
    ],
)
def test_x2_an_unknown_token_in_the_code_of_a_statement_is_reported(statement):
    with pytest.raises(UnknownTokenError) as caught:
        SemanticMap({"<A>": "t"}).check_statement(statement, "sql")
    assert caught.value.token == "<B>"


@pytest.mark.parametrize(
    ("statement", "language"),
    [
        ("SELECT '<B>'", "sql"),
        ("SELECT 'it''s <B>'", "sql"),
        ('SELECT "<B>"', "sql"),
        ("SELECT `<B>`", "sql"),
        ("SELECT 1 -- <B>", "sql"),
        ("SELECT /* <B> */ 1", "sql"),
        ("SELECT /* <B> unterminated", "sql"),
        ("SELECT '<B> unterminated", "sql"),
        ("SELECT $$<B>$$, $x$ <B> $x$", "sql"),
        ("CAST(a AS ARRAY<BIGINT>)", "sql"),
        ("CAST(a AS ARRAY<ARRAY<BIGINT>>)", "sql"),
        ("SELECT a <b> c", "sql"),
        ("SELECT * FROM <A>", "sql"),
        (r"RETURN 'a\'<B>'", "cypher"),
        ("RETURN 1 // <B>", "cypher"),
        ("MATCH (a)<-[:KNOWS]-(b) RETURN a", "cypher"),
    ],
)
def test_x2_literals_comments_and_types_pass(statement, language):
    SemanticMap({"<A>": "t"}).check_statement(statement, language)


@pytest.mark.parametrize("token", ["<clients>", "<Clients>"])
def test_x2_a_known_token_in_other_letters_is_reported(token):
    with pytest.raises(UnknownTokenError, match="Did you mean <CLIENTS>"):
        SemanticMap({"<CLIENTS>": "c"}).check_statement(f"SELECT * FROM {token}", "sql")


def test_x2_a_backslash_does_not_escape_in_sql():
    with pytest.raises(UnknownTokenError):
        SemanticMap().check_statement(r"SELECT 'a\' FROM <B>", "sql")


def test_x2_the_sentence_names_the_nearest_and_the_known():
    with pytest.raises(UnknownTokenError) as caught:
        SemanticMap({"<CLIENTS>": "c", "<ORDERS>": "o"}).check_name("<CLIENT>/x")
    assert str(caught.value) == "Unknown placeholder <CLIENT>. Did you mean <CLIENTS>? Known: <CLIENTS>, <ORDERS>."


def test_x2_the_sentence_stays_short_with_many_tokens():
    with pytest.raises(UnknownTokenError) as caught:
        SemanticMap({f"<T{number}>": "t" for number in range(1_000)}).check_name("<OTHER>")
    assert str(caught.value).endswith("<T19> and 980 more.")


def test_x2_without_a_map_an_unknown_token_is_reported_too():
    with pytest.raises(UnknownTokenError, match="Known: none"):
        SemanticMap().check_statement("SELECT * FROM <A>", "sql")


@pytest.mark.parametrize(
    "tokens", [{"": "t"}, {"  ": "t"}, {None: "t"}, {3: "t"}, {"<A>": None}, {"<A>": 3}, {"<A>": ["t"]}, ["<A>"], "x"]
)
def test_x2_faults_of_the_map_are_errors_at_construction(tokens):
    with pytest.raises(AKConfigError, match=r"semantic map"):
        SemanticMap(tokens)


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://user:hunter2canary@host/db",
        "user:hunter2canary@host",
        "TABLE(f(password => 'hunter2canary'))",
        "https://host/?api_key=hunter2canary",
        "host;Password=hunter2canary",
        "Authorization: Bearer hunter2canary",
    ],
)
def test_x2_credentials_in_a_value_are_an_error_that_does_not_repeat_them(value):
    with pytest.raises(AKConfigError, match="holds credentials") as caught:
        SemanticMap({"<A>": value})
    assert "hunter2canary" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "catalog.schema.clients",
        "TABLE(kb_sheets.system.sheet(id => 'SHEET_ID'))",
        "neo4j.default.graph",
        "s3://bucket/a:b",
        "tokens",
    ],
)
def test_x2_names_without_credentials_are_accepted(value):
    assert SemanticMap({"<A>": value})["<A>"] == value


def test_x2_the_map_is_copied():
    tokens = {"<A>": "t"}
    semantic_map = SemanticMap(tokens)
    tokens["<A>"] = "u"
    assert semantic_map.resolve("<A>")[0] == "t"


def test_x2_no_value_and_no_text_takes_long_to_search():
    """No figure: what took minutes would run into the time-out of the test."""
    for value in ("a-" * 8_000, "a." * 40_000, "a" * 20_000, "a:" * 20_000):
        SemanticMap({"<A>": value})
    tokens = SemanticMap({f"<T{'A' * number}>": "x" for number in range(40)})
    assert tokens.resolve("<" * 1_000_000)[0] == "<" * 1_000_000


class TestYaml:
    def write(self, tmp_path, text):
        path = tmp_path / "map.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    BASE = (
        "semantic_map:\n  <A>: dev.a\n  <B>: dev.b\nenvironments:\n  prod:\n    semantic_map:\n      <A>: prod.a\n  empty: {}\n"
    )

    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            (None, {"<A>": "dev.a", "<B>": "dev.b"}),
            ("prod", {"<A>": "prod.a", "<B>": "dev.b"}),
            ("empty", {"<A>": "dev.a", "<B>": "dev.b"}),
        ],
    )
    def test_x2_environments_are_overlays_of_one_file(self, tmp_path, environment, expected):
        assert dict(SemanticMap.from_yaml(self.write(tmp_path, self.BASE), environment=environment)) == expected

    def test_x2_an_unknown_environment_names_the_known(self, tmp_path):
        with pytest.raises(AKConfigError, match=r"no environment 'prd'. Known: \['empty', 'prod'\]"):
            SemanticMap.from_yaml(self.write(tmp_path, self.BASE), environment="prd")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("semantic_map:\n  <A>: a\n  <A>: b\n", "line 3: not valid YAML: '<A>' stands twice"),
            ("semantic_map: [1]\n", "'semantic_map' must be a mapping"),
            ("environments: {prod: {semantic_map: 3}}\n", "'prod.semantic_map' must be a mapping"),
            ("environments: {prod: 3}\n", "'prod' must be a mapping"),
            ("semantic_mapp: {}\n", "unknown key 'semantic_mapp'. Did you mean 'semantic_map'?"),
            ("semantic_map: {}\nenvironment: {prod: {}}\n", "unknown key 'environment'. Did you mean 'environments'?"),
            ("stores: {}\n", "expected 'semantic_map"),
            ("- a\n", "expected 'semantic_map"),
            ("", "expected 'semantic_map"),
            ("semantic_map: {<A>: 3}\n", "value for '<A>' must be text, not int"),
            ("semantic_map: {3: x}\n", "must be one line of text such as"),
            ("semantic_map: {<A>: !!python/object:os.system x}\n", "not valid YAML"),
            ("a: [\n", "not valid YAML"),
            ("semantic_map:\n  <A>: !!bool maybe\n", "not valid YAML"),
            ("semantic_map:\n  <A>: !!int ''\n", "not valid YAML"),
            ("semantic_map:\n  <A>: !!timestamp foo\n", "not valid YAML"),
            ("a: " + "[" * 5_000 + "\n", "not valid YAML"),
        ],
    )
    def test_x2_a_faulty_file_is_one_error_that_says_where(self, tmp_path, text, message):
        with pytest.raises(AKConfigError) as caught:
            SemanticMap.from_yaml(self.write(tmp_path, text), environment="prod" if "prod" in text else None)
        assert message in str(caught.value)

    def test_x2_merge_keys_are_understood(self, tmp_path):
        text = "base: &base\n  <A>: a\nsemantic_map:\n  <<: *base\n  <B>: b\n"
        assert dict(SemanticMap.from_yaml(self.write(tmp_path, text))) == {"<A>": "a", "<B>": "b"}

    def test_x2_what_is_no_file_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(AKConfigError, match="is no file"):
            SemanticMap.from_yaml(tmp_path / "pipe")

    @pytest.mark.parametrize(("source", "environment"), [(None, None), (b"x", None), ("x", ["prod"])])
    def test_x2_arguments_of_the_wrong_type_are_errors(self, source, environment):
        with pytest.raises(AKConfigError, match="takes the path of a file"):
            SemanticMap.from_yaml(source, environment=environment)

    def test_x2_a_missing_file_is_an_error_that_names_it(self, tmp_path):
        with pytest.raises(AKConfigError, match=r"nowhere.yaml: cannot be read \(FileNotFoundError\)"):
            SemanticMap.from_yaml(tmp_path / "nowhere.yaml")
