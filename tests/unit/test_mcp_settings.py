"""Where MCP may be served over HTTP, and what is told of a wrong setting (X11)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.serve.mcp import HTTPSettings, ServedAgent
from agentkernel_kb.serve.mcp.agent import served


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"host": ""}, "host"),
        ({"host": 7}, "host"),
        ({"port": -1}, "port"),
        ({"port": 65_536}, "port"),
        ({"port": "80"}, "port"),
        ({"port": True}, "port"),
        ({"path": "mcp"}, "path"),
        ({"path": "/{id}"}, "path"),
        ({"allowed_hosts": "kb.example.com"}, "allowed_hosts"),
        ({"allowed_hosts": [7]}, "allowed_hosts"),
        ({"allowed_origins": [""]}, "allowed_origins"),
        ({"max_body_bytes": 0}, "max_body_bytes"),
        ({"max_sessions": 1.5}, "max_sessions"),
        ({"max_connections": True}, "max_connections"),
        ({"session_idle_s": float("nan")}, "session_idle_s"),
        ({"session_idle_s": float("inf")}, "session_idle_s"),
        ({"request_s": 0}, "request_s"),
    ],
)
def test_a_wrong_setting_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(AKConfigError, match=rf"^HTTPSettings\.{named} "):
        HTTPSettings(**given)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_what_listens_on_every_address_has_to_say_how_it_is_reached(host: str) -> None:
    with pytest.raises(AKConfigError, match="say in allowed_hosts how it is reached"):
        HTTPSettings(host=host)
    assert HTTPSettings(host=host, allowed_hosts=["kb.example.com"]).hosts == ["kb.example.com", "kb.example.com:*"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_on_loopback_the_names_of_loopback_are_accepted(host: str) -> None:
    settings = HTTPSettings(host=host)
    assert settings.is_loopback
    assert {"127.0.0.1:*", "localhost:*", "[::1]:*"} <= set(settings.hosts)
    assert {"http://127.0.0.1:*", "http://localhost:*"} <= set(settings.origins)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "kb.example.com", "127.0.0.1.example.com"])
def test_elsewhere_no_page_may_ask_unless_it_is_named(host: str) -> None:
    settings = HTTPSettings(host=host, allowed_hosts=["kb.example.com:8443"])
    assert not settings.is_loopback
    assert settings.origins == []
    assert "localhost" not in settings.hosts


def test_an_address_of_version_six_is_accepted_as_it_is_written_in_a_header() -> None:
    assert HTTPSettings(host="2001:db8::7").hosts == ["[2001:db8::7]", "[2001:db8::7]:*"]


def test_what_is_no_agent_is_named() -> None:
    with pytest.raises(AKConfigError, match="must be a KnowledgeBuilder, not str"):
        served("builder")  # pyright: ignore[reportArgumentType] - What an untyped caller hands over.
    with pytest.raises(AKConfigError, match=r"ServedAgent\.name"):
        ServedAgent(" ", None)  # pyright: ignore[reportArgumentType] - For the same reason.


def test_importing_it_loads_no_sdk_and_using_it_without_names_the_extra() -> None:
    program = (
        "import sys\n"
        "from agentkernel_kb import KnowledgeBuilder, KnowledgeDependencyError\n"
        "from agentkernel_kb.serve.mcp import http_app, mcp_server, run_http, run_stdio\n"
        "assert not {'mcp', 'starlette', 'uvicorn', 'pydantic'} & set(sys.modules)\n"
        "sys.modules['mcp'] = None\n"
        "for serve in (http_app, mcp_server, run_http, run_stdio):\n"
        "    try:\n"
        "        serve(KnowledgeBuilder([]))\n"
        "    except KnowledgeDependencyError as error:\n"
        "        print(error.extra)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["mcp"] * 4
