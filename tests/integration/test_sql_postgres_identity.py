"""On whose behalf PostgreSQL answers (X18): roles and settings of one call, and nothing left of them for the next one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import postgres
import pytest
from sqlalchemy.engine import make_url

import servers
from agentkernel_kb import AKConfigError, KnowledgeBuilder, KnowledgeGuardError, KnowledgeIdentityError
from agentkernel_kb.identity import Identity, acting_as
from agentkernel_kb.sql import SQLManager

pytestmark = pytest.mark.server("postgres")

ROWS_OF_THE_TENANT = "current_setting('app.tenant', true) = tenant"
SETUP = """
CREATE TABLE notes (tenant text, owner text, body text);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON notes USING (tenant = current_setting('app.tenant', true) OR owner = current_user);
INSERT INTO notes SELECT t, NULL, t || ' ' || n FROM unnest(ARRAY['red', 'blue']) AS t, generate_series(1, 3) AS n;
INSERT INTO notes VALUES (NULL, '{ada}', 'of ada'), (NULL, '{bob}', 'of bob');
"""
WHO = "SELECT current_user AS who, session_user AS login"


class Office:
    """A database with row-level security, a login, and two roles that the login may become."""

    def __init__(self, url: str, login: str, roles: dict[str, str]) -> None:
        self.url, self.login, self.roles = url, login, roles

    def role_of(self, identity: Identity) -> str:
        return self.roles.get(identity.principal, identity.principal)


@pytest.fixture(scope="module")
def office(postgres_server: servers.Server) -> Iterator[Office]:
    roles = {name: f"kb_{name}_{secrets.token_hex(4)}" for name in ("ada", "bob")}
    with (
        postgres.database(postgres_server.url) as url,
        postgres.login(url, *roles.values()) as login,
    ):
        postgres.run(url, SETUP.format(**roles))
        for role in [*roles.values(), make_url(login).username]:
            postgres.run(url, f"GRANT SELECT ON notes TO {role}")
        yield Office(url, login, roles)


@pytest.fixture
def by_role(office: Office) -> Iterator[SQLManager]:
    with closing(SQLManager(office.login, name="office", role_of=office.role_of)) as manager:
        yield manager


@pytest.fixture
def by_setting(office: Office) -> Iterator[SQLManager]:
    with closing(SQLManager(office.login, name="office", settings_prefix="app")) as manager:
        yield manager


def bodies(manager: SQLManager) -> list[str]:
    return [record["metadata"]["row"]["body"] for record in manager.query("SELECT body FROM notes ORDER BY body", limit=10)]


def one(manager: SQLManager, statement: str) -> dict[str, Any]:
    (record,) = manager.query(statement)
    return record["metadata"]["row"]


def test_a_call_runs_as_the_role_of_its_principal(by_role: SQLManager, office: Office) -> None:
    with acting_as("ada"):
        assert one(by_role, WHO) == {"who": office.roles["ada"], "login": make_url(office.login).username}
        assert bodies(by_role) == ["of ada"]
    with acting_as("bob"):
        assert bodies(by_role) == ["of bob"]


def test_a_call_carries_the_tenant_to_the_policy(by_setting: SQLManager) -> None:
    with acting_as("ada", tenant="red"):
        assert bodies(by_setting) == ["red 1", "red 2", "red 3"]
    with acting_as("ada", tenant="blue"):
        assert bodies(by_setting) == ["blue 1", "blue 2", "blue 3"]
    with acting_as("ada"):
        assert bodies(by_setting) == []


def test_names_are_values_and_never_part_of_a_statement(by_setting: SQLManager) -> None:
    with acting_as("x', true); DROP TABLE notes; --", tenant="red' OR true --", roles=["a,b", 'c"d']):
        assert bodies(by_setting) == []
    with acting_as("ada", tenant="red"):
        assert len(bodies(by_setting)) == 3


@pytest.mark.parametrize("backend", ["by_role", "by_setting"])
def test_a_call_for_nobody_is_refused(backend: str, request: pytest.FixtureRequest) -> None:
    manager: SQLManager = request.getfixturevalue(backend)
    with pytest.raises(KnowledgeIdentityError, match="'office' answers only on behalf of a user"):
        manager.query("SELECT body FROM notes")
    assert manager.requires_identity


def test_where_it_need_not_be_bound_nobody_sees_what_a_policy_hides(office: Office) -> None:
    with closing(SQLManager(office.login, settings_prefix="app", requires_identity=False)) as manager:
        with acting_as("ada", tenant="red"):
            assert len(bodies(manager)) == 3
        assert bodies(manager) == []


@pytest.mark.parametrize("principal", ["nobody_of_that_name", "none", "kb", "postgres", "NONE"])
def test_a_role_that_the_login_may_not_become_is_refused(by_role: SQLManager, principal: str) -> None:
    with acting_as(principal), pytest.raises(KnowledgeIdentityError):
        by_role.query("SELECT body FROM notes")
    with acting_as("ada"):
        assert bodies(by_role) == ["of ada"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT set_config('app.tenant', 'blue', true), body FROM notes",
        "SELECT set_config('role', 'none', true)",
        "SET app.tenant = 'blue'",
        "SET LOCAL ROLE none",
        "RESET ROLE",
        "SET SESSION AUTHORIZATION DEFAULT",
        "RESET ALL",
        "DISCARD ALL",
    ],
)
def test_a_statement_cannot_make_itself_somebody_elses(by_setting: SQLManager, statement: str) -> None:
    with acting_as("ada", tenant="red"):
        with pytest.raises(KnowledgeGuardError):
            by_setting.query(statement)
        assert len(bodies(by_setting)) == 3


def test_a_hundred_calls_from_threads_each_see_their_own_rows(by_setting: SQLManager) -> None:
    def ask(number: int) -> bool:
        tenant = ("red", "blue")[number % 2]
        with acting_as(f"user {number}", tenant=tenant):
            return all(body.startswith(tenant) for body in bodies(by_setting))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(100)))


async def test_a_hundred_calls_from_tasks_each_run_as_their_own_role(by_role: SQLManager, office: Office) -> None:
    async def ask(number: int) -> tuple[str, str]:
        principal = ("ada", "bob")[number % 2]
        with acting_as(principal):
            (record,) = await by_role.aquery(f"SELECT current_user AS who, body FROM notes WHERE {number} > -1", timeout=60)
        return principal, record["text"]

    answers = await asyncio.gather(*map(ask, range(100)))
    assert set(answers) == {(who, f"who={office.roles[who]}, body=of {who}") for who in ("ada", "bob")}


def test_the_tools_of_a_builder_act_for_whom_the_application_bound(by_role: SQLManager) -> None:
    with KnowledgeBuilder([by_role]) as builder:
        read_kb = {tool.__name__: tool for tool in builder.build()}["read_kb"]
        with builder.acting_as("ada"):
            assert "of ada" in read_kb("office", "SELECT body FROM notes")
        refusal = read_kb("office", "SELECT body FROM notes")
        assert "of ada" not in refusal
        assert "on behalf of" in refusal or "acts for" in refusal


def test_the_schema_needs_nobody_and_counts_no_rows_that_a_policy_hides(by_role: SQLManager) -> None:
    assert by_role.schema()["tables"] == {"notes": "tenant text, owner text, body text"}


def test_engines_without_roles_say_so() -> None:
    with pytest.raises(AKConfigError, match="databases with roles"):
        SQLManager("sqlite:////nowhere.db", settings_prefix="app")


@pytest.mark.parametrize("prefix", ["", "a.b", "app'", "1a", 5])
def test_a_prefix_that_is_no_word_is_an_error(office: Office, prefix: Any) -> None:
    with pytest.raises(AKConfigError, match="settings_prefix"):
        SQLManager(office.login, settings_prefix=prefix)
