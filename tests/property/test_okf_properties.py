"""OKF under any input (A16, A17): nothing raises, what is written reads as meant, what is not changed keeps its bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentkernel_kb import KnowledgePathError, KnowledgeQueryError
from agentkernel_kb.lexical.excerpt import excerpt
from agentkernel_kb.lexical.text import index_text, words_of
from agentkernel_kb.okf import rows, schema, search
from agentkernel_kb.okf.composing import Draft, changed, drafts, new_note
from agentkernel_kb.okf.database import create_tables
from agentkernel_kb.okf.frontmatter import FrontmatterError, read_head, split
from agentkernel_kb.okf.links import targets
from agentkernel_kb.okf.parser import parse_document
from agentkernel_kb.okf.paths import id_of, paths_named
from agentkernel_kb.okf.query import parse
from agentkernel_kb.okf.records import comparable, concept_record
from agentkernel_kb.okf.rendering import RenderingError, new_document
from agentkernel_kb.okf.versions import profile_of
from agentkernel_kb.render import encode
from agentkernel_kb.store.base import DocumentStore

PROFILE = profile_of("0.2")
SCALARS = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
KEYS = st.sampled_from(["title", "description", "tags", "status", "verified", "generated", "sources", "stale_after", "owner"])
YAML_LIKE = st.text(st.sampled_from(list("ab: -[]{}&*!|>'\"%@#?,\n\t~0\u00e9\ufeff")))
HEADS = YAML_LIKE | st.text() | st.builds("type: A\n{}".format, YAML_LIKE)

on_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
"""No example fails because the machine is busy."""


@on_any_machine
@given(st.binary() | HEADS.map(lambda head: f"---\n{head}\n---\nbody".encode("utf-8", "replace")))
def test_a16_the_parser_never_raises_and_every_document_is_a_concept_or_has_a_diagnostic(data: bytes):
    document = parse_document("a.md", data)

    assert document.concept is not None or document.diagnostics
    assert all(str(diagnostic) and "\n" not in str(diagnostic) for diagnostic in document.diagnostics)
    rows.row_of("a.md", data, "1", PROFILE)


@on_any_machine
@given(st.text())
def test_a16_taking_a_document_apart_loses_nothing(text: str):
    parts = split(text)
    assert parts is None or parts.opening + parts.head + parts.closing + parts.body == text


@on_any_machine
@given(st.dictionaries(st.text(min_size=1), VALUES), st.text())
@example(values={"a": "\r"}, body="")
@example(values={"a": "one\rtwo"}, body="")
def test_a16_what_is_rendered_reads_as_what_was_meant(values: dict[str, Any], body: str):
    try:
        text = new_document(values, body)
    except RenderingError:
        return
    parts = split(text)
    assert parts is not None
    assert parts.body == body
    read = read_head(parts.head).values
    plain = {key: value for key, value in values.items() if key.isprintable() and key != "<<" and isinstance(value, str)}
    assert {key: read[key] for key in plain} == {key: encode(value) for key, value in plain.items()}


@on_any_machine
@given(HEADS, st.text())
def test_a16_a_fetched_concept_written_back_keeps_every_byte(head: str, body: str):
    data = f"---\n{head}\n---\n{body}".encode("utf-8", "replace")
    concept = parse_document("a.md", data).concept
    if concept is None:
        return
    record = concept_record(concept, "", {}, truncated=False)
    assert changed(Draft(record["text"], record["metadata"], "a.md"), "a.md", data, PROFILE) == data


@on_any_machine
@given(st.builds("type: A\n{}".format, YAML_LIKE), KEYS, VALUES)
def test_a16_a_change_changes_nothing_but_what_it_names(head: str, key: str, value: Any):
    data = f"---\n{head}\n---\nbody".encode()
    before = parse_document("a.md", data)
    if before.concept is None or before.head is None or value is None:
        return
    try:
        after = changed(Draft("body", {key: value}, "a.md"), "a.md", data, PROFILE)
    except KnowledgeQueryError:
        return
    parts = split(after.decode())
    assert parts is not None
    others = {name: kept for name, kept in before.head.values.items() if name != key}
    assert comparable({name: kept for name, kept in read_head(parts.head).values.items() if name != key}) == comparable(others)


@on_any_machine
@given(st.text(), st.dictionaries(st.text(), VALUES))
def test_a16_whatever_an_agent_writes_becomes_a_concept_or_is_refused_in_words(text: str, metadata: dict[str, Any]):
    metadata = {name: value for name, value in metadata.items() if name != "id"}
    try:
        (draft,) = drafts([{"text": text, "metadata": metadata}], "okf")
        path, data = new_note(draft, "generated", "agent/1")
    except KnowledgeQueryError:
        return
    assert DocumentStore.normalise_relative(path) == path
    assert parse_document(path, data).concept is not None


@on_any_machine
@given(st.text(min_size=1))
def test_a16_an_id_leads_back_to_its_path(name: str):
    try:
        path = DocumentStore.document_path(f"{name}.md")
    except KnowledgePathError:
        return
    assert next(iter(paths_named(id_of(path)))) == path


@on_any_machine
@given(st.text())
def test_a16_links_and_frontmatter_of_any_text_are_found_without_an_exception(text: str):
    targets(text)
    excerpt(text, words_of(text)[:3])
    with suppress(FrontmatterError):
        read_head(text)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_tables(connection)
        connection.executescript(schema.INDEXES)
        document = b"---\ntype: Policy\ntitle: Refunds\ntags: [a]\n---\nThirty days. C++"
        rows.put(connection, [rows.row_of("a/b.md", document, "1", PROFILE)], new=True)
        yield connection


@on_any_machine
@given(query=st.text() | st.text(st.sampled_from(list("\"'()*:^-+{}.ab type:tag:path:知é\x00\n"))))
def test_a16_no_query_is_ever_an_error_of_the_index(index: sqlite3.Connection, query: str):
    assert isinstance(search.find(index, parse(query), 3), list)


@on_any_machine
@given(text=st.text())
def test_a16_every_word_of_a_text_is_found_again_and_forgotten_again(index: sqlite3.Connection, text: str):
    row = rows.row_of("x.md", f"---\ntype: A\n---\n{text}".encode("utf-8", "replace"), "1", PROFILE)
    rows.put(index, [row], new=False)
    try:
        (number,) = index.execute("SELECT id FROM document WHERE path = 'x.md'").fetchone()
        for word in words_of(row.body):
            if word.isascii():
                found = index.execute("SELECT rowid FROM words WHERE words MATCH ?", (f'"{word}"',)).fetchall()
                assert (number,) in found, word
    finally:
        rows.take_out(index, ["x.md"])
    index.execute("INSERT INTO words(words) VALUES ('integrity-check')")


@on_any_machine
@given(st.text())
def test_a16_analysing_a_text_twice_gives_the_same(text: str):
    assert index_text(text) == index_text(text)
    assert words_of(text) == words_of(text)
