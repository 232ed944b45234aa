"""What a document says: every rule of OKF 0.2 for consumers, and what is made of what breaks one (A16)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentkernel_kb.okf.model import DiagnosticCode, OKFConcept, TrustTier
from agentkernel_kb.okf.parser import Parsed, parse_document
from agentkernel_kb.okf.times import read_instant
from agentkernel_kb.okf.versions import profile_of

AT = "2026-06-25T09:00:00Z"


def parsed(head: str, body: str = "Body.\n", version: str = "0.2") -> Parsed:
    return parse_document("a/b.md", f"---\n{head}\n---\n{body}".encode(), profile_of(version))


def concept(head: str, version: str = "0.2") -> OKFConcept:
    document = parsed(f"type: A\n{head}", version=version)
    assert document.concept is not None, document.diagnostics
    return document.concept


def codes(head: str) -> list[str]:
    return [diagnostic.code.value for diagnostic in parsed(f"type: A\n{head}").diagnostics]


# §4.1, §11: what makes a concept.


def test_a16_a_type_alone_is_a_whole_concept():
    document = parsed("type: Metric")

    assert document.diagnostics == ()
    assert document.concept == OKFConcept("a/b.md", "Metric", body="Body.\n")


@pytest.mark.parametrize(
    "head", ["title: x", "type:", "type: ''", "type: '  '", "type: ~", "type: [a]", "type: {a: b}", ""], ids=range(8)
)
def test_a16_a_document_without_a_type_is_no_concept_and_says_so(head: str):
    document = parsed(head)

    assert document.concept is None
    assert [diagnostic.code for diagnostic in document.diagnostics] == [DiagnosticCode.MISSING_TYPE]


def test_a16_a_document_without_frontmatter_is_no_concept_and_says_so():
    document = parse_document("README.md", b"# Read me\n")

    assert document.concept is None
    assert [(one.code, one.line) for one in document.diagnostics] == [(DiagnosticCode.MISSING_FRONTMATTER, 1)]


@pytest.mark.parametrize("kind", ["Unheard Of", "123", "yes", "表", "a/b", "Attested Computation Of Sorts"])
def test_a16_an_unknown_type_is_tolerated(kind: str):
    document = parsed(f"type: {kind}")

    assert document.concept is not None
    assert (document.concept.type, document.diagnostics) == (kind, ())


def test_a16_unknown_keys_are_kept_and_are_no_fault():
    document = parsed("type: A\nowner: team:x\nnested: {a: [b, 1]}")

    assert document.concept is not None
    assert (document.concept.extra, document.diagnostics) == ({"owner": "team:x", "nested": {"a": ["b", "1"]}}, ())


def test_a16_a_file_that_is_not_utf_8_keeps_what_can_be_read():
    document = parse_document("a.md", b"---\ntype: A\n---\ncaf\xe9 latte\n")

    assert document.concept is not None
    assert document.concept.body == "caf\ufffd latte\n"
    assert [diagnostic.code for diagnostic in document.diagnostics] == [DiagnosticCode.INVALID_TEXT]


@pytest.mark.parametrize(
    ("value", "tags", "faults"),
    [
        ("[a, b, a]", ("a", "b"), []),
        ("\n- a\n- 'b, c'", ("a", "b, c"), []),
        ("a, b", ("a", "b"), ["coerced_value"]),
        ("", (), []),
        ("[]", (), []),
        ("[a, [b], {c: d}, ~]", ("a",), ["invalid_value"]),
        ("{a: b}", (), ["invalid_value"]),
    ],
    ids=["list", "block", "text", "null", "empty", "mixed", "mapping"],
)
def test_a16_tags_are_a_list_of_text(value: str, tags: tuple[str, ...], faults: list[str]):
    assert concept(f"tags: {value}").tags == tags
    assert codes(f"tags: {value}") == faults


@pytest.mark.parametrize("key", ["title", "description", "resource", "status"])
def test_a16_text_that_is_none_is_left_out_with_a_diagnostic(key: str):
    assert getattr(concept(f"{key}: [a]"), key) == ("stable" if key == "status" else "")
    assert codes(f"{key}: [a]") == ["invalid_value"]


def test_a16_a_title_is_one_line():
    assert concept("title: |\n  one\n  two\n").title == "one two"


# §5.1: provenance.


def test_a16_sources_carry_what_their_author_wrote():
    found = concept(
        "sources:\n- {id: s, resource: https://x, title: T, author: 'team:a', usage_count: 5000, last_modified: " + AT + "}\n"
        "- {resource: all queries in project X}\n"
        "usage_window: {from: a, to: b}"
    )
    assert found.sources[0]["usage_count"] == 5000
    assert found.sources[1] == {"resource": "all queries in project X"}
    assert found.usage_window == {"from": "a", "to": "b"}


@pytest.mark.parametrize(
    ("value", "count", "fault"),
    [
        ("{resource: x}", 1, []),
        ("[x]", 1, ["coerced_value"]),
        ("[{title: x}]", 1, ["invalid_value"]),
        ("[[x]]", 0, ["invalid_value"]),
    ],
    ids=["mapping", "text", "no-resource", "list"],
)
def test_a16_sources_that_are_written_otherwise_are_taken_as_far_as_they_go(value: str, count: int, fault: list[str]):
    assert len(concept(f"sources: {value}").sources) == count
    assert codes(f"sources: {value}") == fault


# §5.2, §5.3: trust.


@pytest.mark.parametrize(
    ("verified", "tier"),
    [
        ("", "unverified"),
        ("verified:", "unverified"),
        ("verified: []", "unverified"),
        (f"verified: {{by: 'human:a', at: {AT}}}", "human-reviewed"),
        (f"verified: [{{by: 'process:n', at: {AT}}}]", "machine-confirmed"),
        (f"verified: [{{by: agent/1, at: {AT}}}, {{by: 'human:a', at: {AT}}}]", "human-reviewed"),
        (f"verified: [{{by: 'Human:a', at: {AT}}}]", "machine-confirmed"),
        (f"verified: [{{by: 'team:a', at: {AT}}}]", "machine-confirmed"),
        ("verified: {by: 'human:a'}", "human-reviewed"),
        ("verified: {by: 'human:a', at: 2026-06-25}", "human-reviewed"),
    ],
)
def test_a16_the_tier_follows_from_who_verified(verified: str, tier: str):
    assert concept(verified).trust == TrustTier(tier)


@pytest.mark.parametrize(
    "verified",
    [
        "true",
        "human:a",
        "[human:a]",
        f"[{{at: {AT}}}]",
        f"{{by: 'human:', at: {AT}}}",
        f"{{by: '  ', at: {AT}}}",
        f"{{by: [human:a], at: {AT}}}",
        "{by: 'human:a', at: 2026-13-45}",
        "{by: 'human:a', at: [x]}",
        "[[{by: human:a}]]",
    ],
)
def test_a16_a_malformed_verification_never_raises_the_tier(verified: str):
    assert concept(f"verified: {verified}").trust is TrustTier.UNVERIFIED
    assert set(codes(f"verified: {verified}")) == {"malformed_verification"}


def test_a16_a_bare_verification_is_a_list_of_one():
    bare, listed = (concept(f"verified: {value}") for value in (f"{{by: x/1, at: {AT}}}", f"[{{by: x/1, at: {AT}}}]"))
    assert bare == listed


def test_a16_version_0_3_counts_only_what_was_verified_after_it_was_generated():
    head = f"generated: {{by: x/1, at: 2026-07-01T00:00:00Z}}\nverified: {{by: 'human:a', at: {AT}}}"
    assert concept(head).trust is TrustTier.HUMAN_REVIEWED
    assert concept(head, "0.3").trust is TrustTier.UNVERIFIED
    assert concept(head.replace("2026-07", "2026-05"), "0.3").trust is TrustTier.HUMAN_REVIEWED


def test_a16_version_0_3_takes_a_plain_document_for_no_concept_and_no_fault():
    document = parse_document("README.md", b"# Read me\n", profile_of("0.3"))
    assert (document.concept, document.diagnostics) == (None, ())


def test_a16_the_time_of_version_0_1_is_read_where_there_is_no_other():
    assert concept("timestamp: '2026-05-28T22:53:05+00:00'").generated == {"at": "2026-05-28T22:53:05+00:00"}
    assert concept(f"timestamp: x\ngenerated: {{by: y/1, at: {AT}}}").generated == {"by": "y/1", "at": AT}


# §5.4, §5.5: lifecycle.


@pytest.mark.parametrize(
    ("line", "status"), [("", "stable"), ("status:", "stable"), ("status: draft", "draft"), ("status: odd", "odd")]
)
def test_a16_a_concept_without_a_status_is_stable(line: str, status: str):
    assert concept(line).status == status


def test_a16_equality_is_stale():
    moment = datetime(2026, 9, 23, tzinfo=UTC)
    found = concept("stale_after: 2026-09-23T00:00:00Z")
    assert [found.is_stale(moment + timedelta(seconds=step)) for step in (-1, 0, 1)] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "moment", "doubt"),
    [
        ("2026-09-23T00:00:00Z", "2026-09-23T00:00:00+00:00", ""),
        ("2026-09-23T00:00:00z", "2026-09-23T00:00:00+00:00", ""),
        ("2026-09-23T02:00:00+02:00", "2026-09-23T00:00:00+00:00", ""),
        ("2026-09-23 00:00:00Z", "2026-09-23T00:00:00+00:00", ""),
        ("2026-09-23T00:00:00.123456Z", "2026-09-23T00:00:00.123456+00:00", ""),
        ("20260923T000000Z", "2026-09-23T00:00:00+00:00", ""),
        ("2026-09-23", "2026-09-23T00:00:00+00:00", "has no time; it is read as the start of that day in UTC"),
        ("2026-09-23T10:00", "2026-09-23T10:00:00+00:00", "has no offset; it is read as UTC"),
        ("2026-13-45", None, "is no date that exists"),
        ("2026-02-30T00:00:00Z", None, "is no date that exists"),
        ("tomorrow", None, "is no ISO 8601 date and time"),
        ("1790000000", None, "is no ISO 8601 date and time"),
        ("", None, "is no ISO 8601 date and time"),
        ("9" * 5_000, None, "is no ISO 8601 date and time"),
    ],
)
def test_a16_an_instant_is_read_in_both_spellings_and_every_doubt_is_named(text: str, moment: str | None, doubt: str):
    found = read_instant(text)
    assert (found.moment.astimezone(UTC).isoformat() if found.moment else None, found.doubt) == (moment, doubt)


@pytest.mark.parametrize("value", ["2024-13-45", "soon", "[2030-01-01]", "{a: b}", "9" * 5_000])
def test_a16_a_stale_after_that_cannot_be_read_is_never_silently_fresh(value: str):
    assert concept(f"stale_after: {value}").is_stale()
    assert codes(f"stale_after: {value}") == ["unparseable_stale_after"]


def test_a16_a_date_alone_is_the_start_of_that_day_in_utc_with_a_diagnostic():
    found = concept("stale_after: 2026-09-23")
    assert not found.is_stale(datetime(2026, 9, 22, 23, 59, tzinfo=UTC))
    assert found.is_stale(datetime(2026, 9, 23, tzinfo=UTC))
    assert codes("stale_after: 2026-09-23") == ["time_without_offset"]


@pytest.mark.parametrize("line", ["", "stale_after:", "stale_after: 9999-01-01T00:00:00Z"])
def test_a16_a_concept_with_no_or_a_far_end_is_fresh(line: str):
    assert not concept(line).is_stale()


# §10: attested computations are carried as data.


def test_a16_an_attested_computation_is_carried_and_never_followed():
    head = "type: Attested Computation\nruntime: bigquery\nparameters: [{name: year, type: integer, required: true}]\n"
    head += "executor: {resource: run.md, receipt: [job_id]}\nattester: {resource: check.py}"
    document = parsed(head)
    assert document.concept is not None
    assert document.concept.computation["parameters"] == [{"name": "year", "type": "integer", "required": "true"}]
    assert document.concept.computation["attester"] == {"resource": "check.py"}
    assert document.diagnostics == ()


def test_a16_an_attested_computation_without_a_runtime_says_so_and_is_kept():
    document = parsed("type: Attested Computation")
    assert document.concept is not None
    assert [diagnostic.code for diagnostic in document.diagnostics] == [DiagnosticCode.MISSING_RUNTIME]


# §12: versions.


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3", "9.7", "two"])
def test_a16_every_version_is_read_as_well_as_can_be(version: str):
    assert parsed("type: A", version=version).concept is not None
    assert profile_of(version).known is (version in ("0.1", "0.2", "0.3"))
