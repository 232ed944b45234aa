"""The compose file and the image agree with the scripts that start the same servers (A20)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVERS = ("chroma", "neo4j", "postgres", "s3", "trino")
VERSIONS = {"chroma": "1.5.9", "neo4j": "5.26.30", "postgres": "18", "s3": "4.48", "trino": "476"}


def script(name: str) -> str:
    return (ROOT / "servers" / f"{name}.sh").read_text()


def setting(name: str, variable: str) -> str:
    found = re.search(rf"\$\{{{variable}:?-([^}}]*)\}}", script(name))
    assert found
    return found[1]


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_the_version_and_the_port_of_its_script(name: str):
    service = COMPOSE["services"][name]
    version = setting(name, f"KB_{name.upper()}_VERSION")
    assert version.startswith(VERSIONS[name])
    assert re.search(rf"(?<!\d){re.escape(VERSIONS[name])}(?!\d)", service["image"].partition(":")[2])
    assert service["ports"] == [
        f"127.0.0.1:{setting(name, f'KB_{name.upper()}_PORT')}:{service['ports'][0].rpartition(':')[2]}"
    ]


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_a_health_check_that_others_wait_for(name: str):
    assert COMPOSE["services"][name]["healthcheck"]["test"]
    for tool in ("sample-data", "demo"):
        assert COMPOSE["services"][tool]["depends_on"][name] == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", SERVERS)
def test_a_health_check_that_needs_bash_asks_for_it(name: str):
    """`CMD-SHELL` runs `sh`, which is dash in images made from Debian and knows no /dev/tcp."""
    shell, *command = COMPOSE["services"][name]["healthcheck"]["test"]
    assert shell in ("CMD", "CMD-SHELL")
    assert "/dev/tcp" not in command[-1] or (shell, command[0]) == ("CMD", "bash")


def test_every_tag_is_pinned():
    assert all(re.search(r":\d", service["image"]) for service in COMPOSE["services"].values() if "image" in service)


@pytest.mark.parametrize("name", SERVERS)
def test_what_is_mounted_is_there(name: str):
    mounts = [volume.partition(":")[0] for volume in COMPOSE["services"][name].get("volumes", ())]
    for mount in mounts:
        assert mount in COMPOSE["volumes"] or (DOCKER / mount).exists()


def test_trino_has_the_catalogs_and_the_rules_of_its_script():
    for catalog in (DOCKER / "trino" / "catalog").glob("*.properties"):
        assert f"echo '{catalog.read_text().strip()}' >" in script("trino")
    rules = re.search(r"<<CONF\n(\{\n  \"catalogs\".*?\n\})\nCONF", script("trino"), re.DOTALL)
    assert rules
    assert json.loads((DOCKER / "trino" / "rules.json").read_text()) == json.loads(rules[1])


def test_s3_has_the_logins_of_its_script():
    logins = re.search(r"<<CONF\n(\{\n  \"identities\".*?\n\})\nCONF", script("s3"), re.DOTALL)
    assert logins
    written = logins[1].replace("$access_key", setting("s3", "KB_S3_ACCESS_KEY"))
    written = written.replace("$secret_key", setting("s3", "KB_S3_SECRET_KEY"))
    assert json.loads((DOCKER / "s3" / "logins.json").read_text()) == json.loads(written)


def test_postgres_gets_the_second_login_of_its_script():
    assert "create role reader login" in script("postgres")
    assert "in role pg_read_all_data" in script("postgres")
    assert "CREATE ROLE reader LOGIN" in (DOCKER / "postgres" / "reader.sh").read_text()
    assert "IN ROLE pg_read_all_data" in (DOCKER / "postgres" / "reader.sh").read_text()


def test_the_tools_know_every_address_that_the_demo_reads():
    read = set(re.findall(r'"(KB_DEMO_\w+)"', (ROOT / "examples/multi/multi_demo/server_stores.py").read_text()))
    read |= set(re.findall(r'"(KB_DEMO_\w+)"', (DOCKER / "sample_data.py").read_text()))
    for tool in ("sample-data", "demo"):
        assert set(COMPOSE["services"][tool]["environment"]) == read


def test_what_the_image_copies_and_installs_is_there():
    dockerfile = (DOCKER / "Dockerfile").read_text()
    assert re.match(r"(?s)#.*\nFROM python:3\.\d+-slim\n", dockerfile)
    for line in re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE):
        assert all((ROOT / source).exists() for source in line.split())
    for command in re.findall(r"examples/\S+\.py|docker/\S+\.py", dockerfile + (DOCKER / "compose.yaml").read_text()):
        assert (ROOT / command).exists()
    extras = re.search(r'"\.\[([\w,]+)\]"', dockerfile)
    assert extras
    assert all(f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text() for extra in extras[1].split(","))
