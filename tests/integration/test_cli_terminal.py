"""What the command prints on a terminal, into a pipe, and when it is interrupted (X10)."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_terminal import Terminal, hears_interrupts
from cli_world import environment, make_world, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("terminal"))


def test_rows_are_a_table_with_headings_on_a_terminal(folder: Path) -> None:
    terminal = Terminal("query", "sales", "SELECT name, budget FROM clients", folder=folder)
    assert terminal.ended() == 0
    assert "name" in terminal.shown
    assert "Acme" in terminal.shown
    assert "|" not in terminal.shown


def test_rows_are_plain_text_in_a_pipe(folder: Path) -> None:
    ran = run("query", "sales", "SELECT name, budget FROM clients", folder=folder)
    assert ran.out.splitlines()[0] == "| name | budget |"
    assert "\x1b" not in ran.out


def test_nothing_is_wrapped_in_a_pipe_however_narrow(folder: Path) -> None:
    (folder / "handbook" / f"{'long-' * 40}name.md").write_text("---\ntype: Policy\ntitle: Long\n---\n\nText.\n")
    ran = run("browse", "handbook", folder=folder, env={"COLUMNS": "20"})
    assert f"[{'long-' * 40}name.md]" in ran.out


def test_id_is_not_broken_by_the_width_of_a_terminal(folder: Path) -> None:
    (folder / "handbook" / f"{'wide-' * 20}name.md").write_text("---\ntype: Policy\ntitle: Wide\n---\n\nText.\n")
    terminal = Terminal("browse", "handbook", folder=folder, columns=40)
    assert terminal.ended() == 0
    assert f"[{'wide-' * 20}name.md]" in terminal.shown


@pytest.mark.parametrize("arguments", [("fetch", "handbook", "travel.md"), ("fetch", "handbook", "travel.md", "--json")])
def test_text_of_a_store_steers_no_terminal(folder: Path, arguments: tuple[str, ...]) -> None:
    terminal = Terminal(*arguments, "--quiet", folder=folder)
    assert terminal.ended() == 0
    assert "Trains before planes." in terminal.shown
    assert not set("\x1b\x07\x9b\u202e") & set(terminal.shown)


def test_name_of_a_column_steers_no_terminal(folder: Path) -> None:
    terminal = Terminal("query", "sales", "SELECT 1 AS \"a\x1b[31mb\", '\x1b]0;t\x07' AS c", "--quiet", folder=folder)
    terminal.ended()
    own = {"\x1b[1m", "\x1b[0m"}  # The bold of the headings.
    shown = terminal.shown
    for sequence in own:
        shown = shown.replace(sequence, "")
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_errors_are_plain_text_in_a_pipe(folder: Path) -> None:
    ran = run("search", "nope", "text", folder=folder)
    assert "\x1b" not in ran.err


def test_reader_that_stops_ends_the_command_without_a_word(folder: Path) -> None:
    command = [sys.executable, "-m", "agentkernel_kb", "validate", "--schema"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=4_096
    ) as process:  # What is printed is longer than the pipe and what is read of it.
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == ""


def test_pipe_that_nobody_reads_from_the_start_is_no_traceback(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CLOSED, "browse", "handbook"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, "")


_CLOSED = """
import os, sys
ours, theirs = os.pipe()
os.close(ours)
os.dup2(theirs, 1)
from agentkernel_kb.cli import main
sys.exit(main())
"""


def test_interrupt_ends_the_command_while_a_store_hangs(folder: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # Takes connections and says nothing.
        port = silent.getsockname()[1]
        (tmp_path / "kb.yaml").write_text(f"backends:\n  slow: {{type: sql, url: 'postgresql://kb@127.0.0.1:{port}/kb'}}\n")
        terminal = Terminal("query", "slow", "SELECT 1", folder=tmp_path)
        silent.settimeout(60)
        connection, _ = silent.accept()
        terminal.type("\x03")
        assert terminal.ended() == 130
        connection.close()
    assert "Interrupted." in terminal.shown
    assert "Traceback" not in terminal.shown


def test_interrupt_from_outside_is_the_same(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        (tmp_path / "kb.yaml").write_text(f"backends:\n  slow: {{type: sql, url: 'postgresql://kb@127.0.0.1:{port}/kb'}}\n")
        command = [sys.executable, "-m", "agentkernel_kb", "doctor", "--timeout", "60"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True, preexec_fn=hears_interrupts
        ) as process:
            silent.settimeout(60)
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert process.stderr is not None
            assert process.stderr.read() == "Interrupted.\n"
            connection.close()


def test_timeout_bounds_a_call_and_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        (tmp_path / "kb.yaml").write_text(f"backends:\n  slow: {{type: sql, url: 'postgresql://kb@127.0.0.1:{port}/kb'}}\n")
        ran = run("query", "slow", "SELECT 1", "--timeout", "1", folder=tmp_path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "There was no answer within 1 s (--timeout).\n"


def test_confirmation_is_asked_for_and_can_be_denied(folder: Path) -> None:
    terminal = Terminal("write", "notes", "Denied text.", folder=folder)
    terminal.wait_for("[y/N]")
    terminal.type("n\n")
    assert terminal.ended() == 1
    assert "Nothing was written." in terminal.shown
    assert "Denied text." not in run("search", "notes", "denied text", folder=folder).out


def test_confirmation_is_asked_for_and_can_be_given(folder: Path) -> None:
    terminal = Terminal("write", "notes", "Confirmed text.", folder=folder)
    assert "'notes'" in terminal.wait_for("[y/N]")
    terminal.type("y\n")
    assert terminal.ended() == 0
    assert "Confirmed text." in run("search", "notes", "confirmed text", folder=folder).out


def test_help_fits_a_terminal_and_a_pipe(folder: Path) -> None:
    terminal = Terminal("search", "--help", folder=folder, columns=100)
    assert terminal.ended() == 0
    assert "agentkernel-kb search handbook refund period" in terminal.shown
    assert "\x1b" not in run("search", "--help", folder=folder).out
