"""Arguments and environment of StarburstManager (A13): what the contract names, and what is told of a wrong one."""

from __future__ import annotations

import inspect
from types import MappingProxyType
from typing import Any

import pytest
import trino.auth

from agentkernel_kb import AKConfigError
from agentkernel_kb.starburst import StarburstManager
from agentkernel_kb.starburst.settings import read_settings

SECRET = "canary-password-93b1"
VARIABLES = ("STARBURST_HOST", "STARBURST_PORT", "STARBURST_USER", "STARBURST_PASSWORD")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def lazy(*arguments: Any, **options: Any) -> StarburstManager:
    return StarburstManager(*arguments, connect="lazy", **options)


def test_positional_arguments_are_the_contracts() -> None:
    parameters = inspect.signature(StarburstManager).parameters.values()
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    assert list(positional.items()) == [
        ("host", None),
        ("port", None),
        ("user", None),
        ("password", None),
        ("catalog", ""),
        ("schema", ""),
        ("table_name", ""),
        ("name", "starburst"),
        ("description", None),
    ]


def test_the_environment_fills_in_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(VARIABLES, ("galaxy.example", "8443", "ada", SECRET), strict=True):
        monkeypatch.setenv(name, value)
    assert repr(lazy()) == "StarburstManager(https://galaxy.example:8443, user='ada', catalog='', schema='', name='starburst')"
    given = lazy("lake.example", 443, "bob", "other", "tpch", "tiny", name="lake")
    assert repr(given) == "StarburstManager(https://lake.example:443, user='bob', catalog='tpch', schema='tiny', name='lake')"


def test_the_name_of_trinos_schema_is_db_schema() -> None:
    backend = lazy("lake.example", user="ada", catalog="tpch", schema="tiny", table_name="nation")
    assert (backend.catalog, backend.db_schema, backend.table_name) == ("tpch", "tiny", "nation")
    assert callable(backend.schema)


@pytest.mark.parametrize(
    ("arguments", "options", "address"),
    [
        (("lake.example",), {}, "https://lake.example:443"),
        (("lake.example", 8080), {}, "http://lake.example:8080"),
        (("lake.example", 8443), {"password": SECRET}, "https://lake.example:8443"),
        (("lake.example", 8443), {"http_scheme": "https"}, "https://lake.example:8443"),
        (("https://lake.example:8443",), {}, "https://lake.example:8443"),
        (("http://lake.example:8080", 443), {}, "http://lake.example:8080"),
        (("[::1]", "8080"), {}, "http://[::1]:8080"),
    ],
)
def test_where_the_server_is(arguments: tuple[Any, ...], options: dict[str, Any], address: str) -> None:
    assert repr(lazy(*arguments, user="ada", **options)).startswith(f"StarburstManager({address},")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"host": None}, "needs a host: pass host=, or set STARBURST_HOST"),
        ({"user": None}, "needs a user: pass user=, or set STARBURST_USER"),
        ({"host": f"ada:{SECRET}@lake.example"}, "takes no login in its host"),
        ({"host": "lake.example/path"}, "takes a host without a path"),
        ({"host": "lake example"}, "has a host that cannot be read"),
        ({"port": 0}, "has a port that is no number from 1 to 65535"),
        ({"port": "many"}, "has a port that is no number"),
        ({"password": SECRET, "http_scheme": "http"}, "would send its login in clear text over http"),
        ({"host": "http://lake.example", "password": SECRET}, "would send its login in clear text over http"),
        ({"http_scheme": "ftp"}, "http_scheme is 'http' or 'https', not 'ftp'"),
        ({"password": SECRET, "auth": trino.auth.JWTAuthentication(SECRET)}, "takes a password or auth=, not both"),
        ({"http_scheme": "http", "auth": trino.auth.JWTAuthentication(SECRET)}, "in clear text over http"),
        ({"user": "zoë"}, "takes a user of printable ASCII characters"),
        ({"user": " ada"}, "takes a user of printable ASCII characters without outer blanks"),
        ({"user": 5}, "takes a user of printable ASCII characters"),
        ({"host": 5}, "needs a host"),
        ({"password": 5}, "takes a password that is text"),
        ({"client_tags": ["a,b"]}, "takes client_tags as a list of tags of printable ASCII characters without commas"),
        ({"client_tags": "nightly"}, "takes client_tags as a list"),
        ({"client_tags": 5}, "takes client_tags as a list"),
        ({"catalog": "tpch\n"}, "takes a catalog that an HTTP header can carry"),
        ({"catalog": 5}, "takes a catalog that an HTTP header can carry"),
        ({"catalog": "tpch", "schema": "中"}, "takes a schema that an HTTP header can carry"),
        ({"schema": "tiny"}, "has a schema without a catalog"),
        ({"source": "a\r\nX-Trino-User: root"}, "takes a source that an HTTP header can carry"),
        ({"verify": ""}, "takes verify=True, False, or the path"),
        ({"verify": None}, "takes verify=True, False, or the path"),
        ({"verify": "/not/there.pem"}, "takes verify=True, False, or the path"),
        ({"verify": "x" * 300}, "takes verify=True, False, or the path"),
        ({"roles": 5}, "takes roles as one name, or a mapping"),
        ({"roles": {"tpch": 5}}, "takes roles as one name, or a mapping"),
        ({"session_properties": ["x"]}, "takes session_properties as a mapping"),
        ({"extra_credential": [("token",)]}, "takes extra_credential as a list of pairs"),
        ({"extra_credential": [("token", SECRET, SECRET)]}, "takes extra_credential as a list of pairs"),
        ({"extra_credential": SECRET}, "takes extra_credential as a list of pairs"),
        ({"http_headers": {"X-Token": f"{SECRET}\n"}}, "takes http_headers as a mapping of names to texts"),
        ({"http_headers": {"X-Token": f"{SECRET}中"}}, "takes http_headers as a mapping of names to texts"),
        ({"http_headers": {"X:Token": SECRET}}, "takes http_headers as a mapping of names to texts"),
        ({"http_headers": {"": SECRET}}, "takes http_headers as a mapping of names to texts"),
        ({"timezone": "Mars/Olympus"}, "does not know the time zone 'Mars/Olympus'"),
        ({"table_name": "nation"}, "table_name needs a catalog and a schema"),
        ({"cpu_cores": 0}, "cpu_cores is a whole number from 1, not 0"),
        ({"connect": "later"}, "connect is 'eager' or 'lazy', not 'later'"),
    ],
)
def test_a_wrong_argument_is_one_clear_error_without_the_secret(options: dict[str, Any], expected: str) -> None:
    arguments: dict[str, Any] = {"host": "lake.example", "user": "ada", "connect": "lazy", **options}
    with pytest.raises(AKConfigError) as caught:
        StarburstManager(**arguments)
    assert expected in str(caught.value)
    assert SECRET not in str(caught.value)


def test_mappings_may_be_of_any_kind_and_what_becomes_of_them_later_changes_nothing() -> None:
    given = {"tpch": "reader"}
    read = MappingProxyType(given)
    place: dict[str, Any] = {"host": "lake.example", "port": 443, "user": "ada", "password": None, "http_scheme": None}
    settings = read_settings("lake", **place, auth=None, roles=read, session_properties=read, http_headers=read)
    given["tpch"] = "owner"
    kept = {"tpch": "reader"}
    assert (settings.roles, settings.session_properties, settings.http_headers) == (kept, kept, kept)


def test_nobody_is_needed_by_name_where_a_token_names_somebody() -> None:
    assert "user=None" in repr(lazy("lake.example", auth=trino.auth.JWTAuthentication(SECRET)))


def test_a_table_can_bring_its_catalog_and_schema() -> None:
    assert lazy("lake.example", user="ada", table_name="tpch.tiny.nation").capabilities.derives_schema


def test_the_description_names_the_backend_and_where_its_tables_are() -> None:
    assert lazy("h", user="ada", name="lake").get_description() == "lake: tables to be read by Trino SQL"
    placed = lazy("h", user="ada", catalog="tpch", schema="tiny", name="lake")
    assert placed.get_description() == "lake: tables to be read by Trino SQL, in tpch.tiny"
    assert lazy("h", user="ada", description="Orders.").get_description() == "starburst: Orders."
