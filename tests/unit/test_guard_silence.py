"""The guard writes nothing of a statement into the log (X1): the parser's own warnings quote it."""

from __future__ import annotations

import logging

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard import check_read_only, supported_dialects

ODD_PATH = "SELECT json_extract(a, '$.hunter2[#-1]') FROM t"


def test_a_path_that_the_parser_does_not_know_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    check_read_only(ODD_PATH, dialect="sqlite")
    assert caplog.records == []


@pytest.mark.parametrize("dialect", supported_dialects())
def test_a_statement_that_the_parser_gives_up_on_is_not_logged(dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only("SELECT 1 FROM (ALTER SESSION hunter2 'x')", dialect=dialect)
    assert caplog.records == []


def test_what_an_application_parses_itself_is_logged_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    from sqlglot import parse_one

    check_read_only(ODD_PATH.replace("a,", "b,"), dialect="sqlite")
    with caplog.at_level(logging.WARNING, "sqlglot"):
        parse_one(ODD_PATH, dialect="sqlite")
    assert [record.name for record in caplog.records] == ["sqlglot"]
