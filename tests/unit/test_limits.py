"""Rows and characters of an answer: bounded, and said so at the top with how to get the rest (X3, X21)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import RecordPage
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.testing import FakeKnowledgeBase


def records(count, text="row"):
    return [{"text": f"{text} {number}", "metadata": {"id": f"r{number}"}} for number in range(count)]


def ask(tool, rows, limit=None, *, query="SELECT a FROM t", limits=None, **declared):
    events = []
    declared = declared or {"search": False, "query_language": "sql"}
    backend = FakeKnowledgeBase("b", **declared)
    for operation in ("search", "query", "fetch", "browse"):
        backend.on(operation, (lambda *args, **kwargs: rows))
    builder = KnowledgeBuilder([backend], limits=limits, on_event=events.append)
    chosen = {t.__name__: t for t in builder.build()}[tool]
    name = {"fetch_kb": "ids", "browse_kb": "path"}.get(tool, "query")
    answer = chosen("b", **{name: query}, **({} if limit is None else {"limit": limit}))
    return answer, events[-1]


def shown(answer):
    return sum(line.startswith("- ") for line in answer.splitlines())


@pytest.mark.parametrize(
    ("statement", "limit", "expected"),
    [
        ("SELECT a FROM t", 3, 3),
        ("SELECT a FROM t LIMIT 50", 3, 50),
        ("SELECT a FROM t LIMIT 5 OFFSET 10", 3, 5),
        ("SELECT a FROM t LIMIT 10, 6", 3, 6),
        ("SELECT a FROM t FETCH FIRST 7 ROWS ONLY", 3, 7),
        ("SELECT a FROM t limit 8 ;  -- done", 3, 8),
        ("SELECT a FROM t LIMIT 1000", 3, 200),
        ("SELECT a FROM t LIMIT 99999999999999999999999999", 3, 3),
        ("SELECT a FROM t -- LIMIT 50", 3, 3),
        ("SELECT a FROM t /* LIMIT 50 */", 3, 3),
        ("SELECT 'x LIMIT 50'", 3, 3),
        ("SELECT a FROM (SELECT a FROM t LIMIT 50)", 3, 3),
        ("SELECT a FROM (SELECT a FROM t LIMIT 50) x", 3, 3),
        ("SELECT a AS my_limit FROM t", 3, 3),
        ("SELECT a FROM t", 500, 200),
    ],
)
def test_x3_a_statements_own_outer_limit_wins_up_to_the_cap(statement, limit, expected):
    answer, event = ask("read_kb", records(20_000), limit, query=statement)
    assert shown(answer) == expected == event.rows
    assert event.outcome == "partial"


@pytest.mark.parametrize(
    ("tool", "declared", "first_line"),
    [
        ("read_kb", {"search": False, "query_language": "sql"}, "Partial: 3 of 5 rows, limited by limit. More: limit=5."),
        ("search_kb", {"search": True}, "Partial: 3 of 5 records, limited by limit. More: limit=5."),
        ("browse_kb", {"browse": True}, "Partial: 3 of 5 records, limited by limit. More: limit=5."),
    ],
)
def test_x3_what_was_cut_is_said_at_the_top(tool, declared, first_line):
    answer, event = ask(tool, records(5), 3, **declared)
    assert answer.splitlines()[0] == first_line
    assert (event.outcome, event.rows) == ("partial", 3)


def test_x3_a_backend_can_say_that_it_has_more():
    answer, event = ask("read_kb", RecordPage(records(3), more=True))
    assert answer.splitlines()[0] == "Partial: 3 of more than 3 rows, limited by limit. More: limit=30."
    assert event.outcome == "partial"


def test_x3_a_backend_can_say_how_many_there_are():
    answer, _ = ask("search_kb", RecordPage(records(2), more=True, total=9), 2, search=True)
    assert answer.splitlines()[0] == "Partial: 2 of 9 records, limited by limit. More: limit=9."


def test_x3_at_the_cap_the_statement_is_what_can_be_changed():
    answer, _ = ask("read_kb", RecordPage(records(200), more=True), 500)
    assert answer.splitlines()[0] == (
        "Partial: 200 of more than 200 rows, limited by rows. "
        "Aggregate, narrow or page through it with the statement for the rest."
    )


def test_x3_as_many_rows_as_the_limit_may_not_be_all():
    answer, event = ask("read_kb", records(3))
    assert answer.splitlines()[0] == "3 rows, as many as limit=3 allows; there may be more."
    assert event.outcome == "ok"


def test_x3_a_backend_that_knows_better_is_believed():
    assert ask("read_kb", RecordPage(records(3)))[0] == "\n".join(f"- row {n} (source: N/A)" for n in range(3))


@pytest.mark.parametrize("tool", ["search_kb", "fetch_kb"])
def test_x3_as_many_records_as_asked_for_need_no_note(tool):
    answer, event = ask(tool, records(3), *([3] if tool == "search_kb" else []), query="r0,r1,r2", search=True, fetch=True)
    assert (shown(answer), event.outcome) == (3, "ok")
    assert len(answer.splitlines()) == 3


def test_x3_characters_are_cut_at_a_records_border():
    answer, event = ask("read_kb", records(100, "x" * 300), 100, limits=Limits(characters=5_000))
    lines = answer.splitlines()
    assert lines[0].startswith(f"Partial: {len(lines) - 1} of 100 rows, cut at 5,000 characters.")
    assert all(line.endswith("(source: N/A)") for line in lines[1:])
    assert 4_000 < len(answer) <= 5_000
    assert event.outcome == "partial"


def test_x3_one_record_that_is_too_long_is_shown_from_its_beginning():
    huge = [{"text": "ab" * 5_000_000, "metadata": {"id": "r0", "source": "s"}}]
    answer, event = ask("fetch_kb", huge, query="r0", fetch=True)
    assert len(answer) <= 20_000
    assert answer.startswith(
        "Partial: one record, cut at 20,000 characters. The rest does not fit into one answer.\n- [r0] abab"
    )
    assert answer.endswith("… (source: s)")
    assert event.outcome == "partial"


def test_x3_custom_rendering_is_bounded_too():
    class Verbose(FakeKnowledgeBase):
        def format_results(self, rows):
            return "y" * 100_000

    backend = Verbose("v", records(1))
    assert len(KnowledgeBuilder([backend]).build()[1]("v", "row")) == 20_000


@pytest.mark.parametrize("characters", [1, 50, 300])
def test_x3_no_answer_is_longer_than_the_limit(characters):
    for answer in (
        ask("read_kb", records(500, "x" * 40), 200, limits=Limits(characters=characters))[0],
        ask("read_kb", [], query="<UNKNOWN>", limits=Limits(characters=characters))[0],
        ask("read_kb", [], query="", limits=Limits(characters=characters))[0],
    ):
        assert len(answer) <= characters


@given(
    st.lists(st.text(max_size=400), max_size=30),
    st.integers(1, 40),
    st.integers(1, 50),
    st.integers(150, 3_000),
)
def test_x3_whatever_the_records_an_answer_keeps_every_bound(texts, limit, rows, characters):
    rows_of_texts = [{"text": text, "metadata": {}} for text in texts]
    answer, event = ask("search_kb", rows_of_texts, limit, limits=Limits(rows=rows, characters=characters), search=True)
    assert len(answer) <= characters
    assert shown(answer) <= min(limit, rows)
    assert event.outcome in ("ok", "empty", "partial")
    assert (event.outcome == "empty") == (not texts)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"rows": -1},
        {"rows": 2.5},
        {"rows": True},
        {"characters": 0},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"seconds": "5"},
    ],
)
def test_x3_a_bound_that_is_no_positive_number_is_an_error(wrong):
    with pytest.raises(AKConfigError, match=f"Limits.{next(iter(wrong))} must be a positive number"):
        Limits(**wrong)


class TestSchemas:
    def schemas(self, *added, characters=20_000):
        backends = [FakeKnowledgeBase(f"b{number}").add_schema(schema) for number, schema in enumerate(added)]
        return KnowledgeBuilder(backends, limits=Limits(characters=characters)).build()[0]()

    def test_x3_large_schemas_are_shortened_and_stay_json(self):
        tables = {f"table_{number}": {f"column_{c}": "TEXT" for c in range(50)} for number in range(300)}
        answer = self.schemas({"tables": tables}, {"description": "small"})
        assert len(answer) <= 20_000
        parsed = json.loads(answer)
        assert parsed["b0"]["truncated"] == "Parts are left out, marked by …"
        assert parsed["b0"]["capabilities"]["search"] is True
        assert parsed["b1"]["description"] == "small"
        assert "truncated" not in parsed["b1"]

    @pytest.mark.parametrize("schema", [{"x": "y" * 1_000_000}, {"x": list(range(10**6))}, {"x": [["a"] * 100] * 1_000}])
    def test_x3_any_schema_fits(self, schema):
        answer = self.schemas(schema)
        assert len(answer) <= 20_000
        assert json.loads(answer)["b0"]["backend"] == "b0"

    def test_a9_a_schema_that_json_cannot_hold_is_encoded(self):
        cycle = {}
        cycle["self"] = cycle
        parsed = json.loads(self.schemas({"a": {1, 2}, "b": float("nan"), "c": object(), "d": cycle, ("t",): b"x"}))
        assert parsed["b0"]["a"] == [1, 2]
        assert parsed["b0"]["b"] == "NaN"
        assert parsed["b0"]["d"] == {"self": "<cycle>"}


class TestDescriptions:
    def test_x3_descriptions_that_do_not_fit_are_cut_alike_and_said_so(self):
        backends = [FakeKnowledgeBase(f"b{number}", description="word " * 1_000) for number in range(30)]
        lines = KnowledgeBuilder(backends).build()[3]().splitlines()
        assert lines[0] == "Partial: descriptions are cut to fit 20,000 characters. More: get_schemas."
        assert [line.split(":")[0] for line in lines[1:]] == [f"- b{number}" for number in range(30)]
        assert all(line.endswith("…") for line in lines[1:])


@pytest.mark.parametrize(
    ("statement", "limit", "passed"),
    [("SELECT a LIMIT 50", 3, 50), ("SELECT a", 3, 3), ("SELECT a LIMIT 900", 3, 200), ("SELECT a LIMIT 0", 7, 7)],
)
def test_x3_a_plain_backend_is_asked_for_as_many_rows_as_the_statement_wants(statement, limit, passed):
    backend = FakeKnowledgeBase("b", search=False, query_language="sql")
    KnowledgeBuilder([backend]).build()[1]("b", statement, limit)
    assert backend.calls[0][2] == {"limit": passed}


def test_x3_one_row_is_one_row():
    assert ask("read_kb", RecordPage(records(1), more=True), 1)[0].startswith(
        "Partial: 1 of more than 1 row, limited by limit."
    )


@pytest.mark.parametrize("text", [["a"] * 2_000, {"k": "v" * 50_000}, list(range(100))])
def test_x3_texts_that_are_no_text_are_bounded_before_they_are_rendered(text):
    answer, _ = ask("search_kb", [{"text": text, "metadata": {}}] * 200, 200, search=True)
    assert len(answer) <= 20_000


@pytest.mark.parametrize("characters", [300, 20_000])
def test_x3_what_is_echoed_is_bounded_too(characters):
    backend = FakeKnowledgeBase("b", fetch=True, browse=True, writable=True)
    backend.on("write", lambda *args, **kwargs: ["a\nPartial: forged"] * 10_000)
    tools = {t.__name__: t for t in KnowledgeBuilder([backend], limits=Limits(characters=characters)).build()}
    answers = [
        tools["fetch_kb"]("b", "x" * 50_000),
        tools["fetch_kb"]("b", [f"id-{number}" * 100 for number in range(200)]),
        tools["write_kb"]("b", text="x"),
        tools["search_kb"]("b", "x", **{f"argument_{number}": 1 for number in range(20_000)}),
        tools["search_kb"]("b" * 50_000, "x"),
    ]
    assert max(map(len, answers)) <= min(characters, 3_000)
    assert not any(line.startswith("Partial: forged") for answer in answers for line in answer.splitlines())


@pytest.mark.parametrize(
    ("tool", "name", "most"), [("search_kb", "query", 100_000), ("browse_kb", "path", 100_000), ("write_kb", "text", 1_000_000)]
)
def test_x3_an_argument_that_is_too_long_is_refused(tool, name, most):
    backend = FakeKnowledgeBase("b", browse=True, writable=True)
    tools = {t.__name__: t for t in KnowledgeBuilder([backend]).build()}
    assert (
        tools[tool]("b", **{name: "x" * (most + 1)}) == f"{name} has {most + 1:,} characters, more than {most:,}. Shorten it."
    )


def test_x21_one_bad_record_spoils_no_other():
    class Odd(dict[str, str]):
        def get(self, *args):
            raise RuntimeError

    bad = [{"text": "huge", "metadata": {"id": 10**5_000}}, {"text": "odd", "metadata": Odd(id="x")}]
    answer, event = ask("fetch_kb", [{"text": "good", "metadata": {"id": "g"}}, *bad], query="g,h,i", fetch=True)
    assert answer.splitlines() == [
        "- [g] good (source: N/A)",
        "- huge (source: N/A)",
        "- (a record that cannot be shown: RuntimeError)",
    ]
    assert event.outcome == "ok"


def test_x21_the_total_of_an_iterator_is_not_known():
    answer, _ = ask("search_kb", iter(records(5_000)), 3, search=True)
    assert answer.startswith("Partial: 3 of more than 3 records, limited by limit. More: limit=30.")


@pytest.mark.parametrize("total", [-1, float("nan"), "many", 2])
def test_x21_a_total_that_cannot_be_is_not_told(total):
    answer, _ = ask("search_kb", RecordPage(records(3), more=True, total=total), 3, search=True)
    assert answer.startswith("Partial: 3 of more than 3 records, limited by limit. More: limit=30.")


def test_x3_many_backends_have_schemas_that_fit():
    for count, characters in ((400, 20_000), (40, 200)):
        backends = [FakeKnowledgeBase(f"b{number}") for number in range(count)]
        answer = KnowledgeBuilder(backends, limits=Limits(characters=characters)).build()[0]()
        assert len(answer) <= characters
        assert "too long for one answer" in json.dumps(json.loads(answer))
