"""The commands put together, and how a run of them begins and ends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, cast

import typer

from agentkernel_kb.cli.command import UsageError, failed
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.output import Output, forget_stdout

NAME = "agentkernel-kb"
_HELP = """
One file describes what an agent may know: kb.yaml. This command writes it, checks it, asks it and serves it.

\b
First steps:
  agentkernel-kb init                          write a kb.yaml, by asking
  agentkernel-kb validate                      list everything that is wrong with it
  agentkernel-kb doctor                        reach each store, and say what is in the way
  agentkernel-kb search handbook refund period
  agentkernel-kb ask                           a session with a router agent

\b
Exit codes:
  0    done; finding nothing is no failure
  1    faults were found, or the answer is a failure
  2    the command cannot be run like this
  3    a store cannot be reached, or does not answer in time
  130  interrupted
  141  whoever read the output stopped, as head does
"""

_COMMANDS = (
    "init",
    "validate",
    "doctor",
    "schemas",
    "search",
    "query",
    "fetch",
    "browse",
    "write",
    "ask",
    "tools",
    "serve",
    "eval",
    "ingest",
)
"""Modules in `agentkernel_kb.cli.commands`, in the order of the help."""


class _Commands(Protocol):
    def register(self, app: typer.Typer) -> None: ...


def make_app(*, rich: bool) -> typer.Typer:
    """Return the application with all commands.

    Args:
        rich: The help is read on a terminal: with colours and frames.
    """
    app = typer.Typer(
        name=NAME,
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if rich else None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_main)
    for name in _COMMANDS:
        module = cast("_Commands", importlib.import_module(f"agentkernel_kb.cli.commands.{name}"))
        module.register(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(NAME, version("agentkernel-kb"))
        except PackageNotFoundError:  # Run from its sources.
            print(NAME, "of an unknown version")
        raise typer.Exit(Code.OK)


def _main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_version),
    ] = False,
) -> None: ...


def run(arguments: Sequence[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        _take_any_character(stream)
    try:
        code = _dispatched(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()
        return Code.CLOSED_PIPE
    return code


def _dispatched(arguments: Sequence[str]) -> int:
    app = make_app(rich=sys.stdout.isatty())
    try:
        return int(app(list(arguments), prog_name=NAME, standalone_mode=False) or Code.OK)
    except UsageError as error:
        return _misused(error, as_json="--json" in arguments)
    except typer.Abort:
        return Code.INTERRUPTED


def _misused(error: Any, *, as_json: bool) -> int:
    """Tell of a usage error in one sentence, with the way to the help. Where nothing was asked for, that is the help itself."""
    message = str(error.format_message())
    if type(error).__name__ == "NoArgsIsHelpError":  # Its message is the help, which colours have printed already.
        print(message, end="\n" if message else "")
        return Code.USAGE
    path = error.ctx.command_path if error.ctx else NAME
    sentence = message if message.endswith(("?", "?)")) else f"{message.rstrip('.')}."
    failure = CommandError(f"{sentence} See `{path} --help`.", Code.USAGE)
    return failed(Output(as_json=as_json), path.removeprefix(NAME).strip(), failure, debug=False)


def _take_any_character(stream: object) -> None:
    """Let a stream whose encoding lacks a character show an escape for it."""
    reconfigure = getattr(stream, "reconfigure", None)
    if callable(reconfigure):
        reconfigure(errors="backslashreplace")
