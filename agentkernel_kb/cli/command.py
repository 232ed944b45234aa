"""What every command has in common: its options, what it is handed, and how it ends."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from agentkernel_kb.cli import completion
from agentkernel_kb.cli.diagnostics import listening
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.failures import explained
from agentkernel_kb.cli.output import Output, forget_stdout

PANEL = "Options of every command"
UsageError = cast("type[Exception]", typer.BadParameter.__base__)
"""What typer raises for a command line that it cannot take; it exports only this class's heirs."""


@dataclass(frozen=True)
class Options:
    """The options that every command takes.

    Attributes:
        config: The configuration file, `None` for the usual one.
        env: The environment, `None` for the usual one.
        agent: On whose behalf: only what this agent may do; `None` for all that the configuration describes.
        as_json: One JSON document on stdout.
        quiet: No notes and warnings.
        timeout: Seconds for each call, `None` for what the configuration says.
        debug: Show tracebacks.
    """

    config: Path | None
    env: str | None
    agent: str | None
    as_json: bool
    quiet: bool
    timeout: float | None
    debug: bool


def _common(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            rich_help_panel=PANEL,
            help="The configuration. Default: what AGENTKERNEL_KB_CONFIG names, else kb.yaml in this folder.",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME",
            rich_help_panel=PANEL,
            autocompletion=completion.environments,
            help="The environment, one of the file's environments. Default: what AGENTKERNEL_KB_ENV names, else none.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="NAME",
            rich_help_panel=PANEL,
            autocompletion=completion.agents,
            help="Act as this agent: only what it may do is there. Default: everything that the file describes.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=PANEL, help="Print one JSON document on stdout, and nothing else there.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", rich_help_panel=PANEL, help="Print no notes and no warnings.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.001,
            max=86_400,
            rich_help_panel=PANEL,
            help="Longest time for each call to a store. Default: the file's limits.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", rich_help_panel=PANEL, help="Show the traceback of a failure.")] = False,
) -> None: ...


@dataclass(frozen=True)
class Run:
    """One run of a command.

    Attributes:
        name: The command.
        options: The options that every command takes.
        out: Where results and messages go.
    """

    name: str
    options: Options
    out: Output

    def result(self, **values: Any) -> None:
        """Print the JSON document of a result: `ok`, the command's name, and these values."""
        self.out.json({"ok": True, "command": self.name, **values})


def add_command(app: typer.Typer, function: Callable[..., Code | None], *, title: str | None = None, **settings: Any) -> None:
    """Add a command.

    Args:
        app: Where to.
        function: Does the work. It takes a `Run`, then its own arguments and options, and returns the exit code, `None` for
            `Code.OK`. Whatever it raises becomes one sentence on stderr.
        title: What the command is called as a whole, with the group that it stands in; the function's name by default.
        settings: Handed to typer.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    common = list(inspect.signature(_common, eval_str=True).parameters.values())

    def command(**arguments: Any) -> None:
        options = Options(**{field.name: arguments.pop(field.name) for field in fields(Options)})
        run = Run(title or function.__name__, options, Output(as_json=options.as_json, quiet=options.quiet))
        raise typer.Exit(_ended(run, lambda: function(run, **arguments)))

    parameters = sorted([*own, *common], key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(keyword_only)  # pyright: ignore[reportFunctionMemberAccess] - typer reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("\\b\n", "\b\n")  # Click's mark: keep these lines.
    app.command(function.__name__, **settings)(command)


def _ended(run: Run, work: Callable[[], Code | None]) -> Code:
    """Do the work and say how it ended; nothing is raised but what typer makes a usage error of."""
    try:
        with listening(run.out, debug=run.options.debug):
            code = work() or Code.OK
            run.out.flush()
            return code
    except BrokenPipeError:
        forget_stdout()
        return Code.CLOSED_PIPE
    except KeyboardInterrupt:
        run.out.error("Interrupted.")
        return Code.INTERRUPTED
    except (typer.Exit, UsageError):
        raise
    except Exception as error:  # noqa: BLE001 - a person reads a sentence, not a traceback
        return failed(run.out, run.name, error, debug=run.options.debug)


def failed(out: Output, name: str, error: Exception, *, debug: bool) -> Code:
    """Tell of a failure and return its exit code."""
    failure = explained(error)
    if debug:
        out.traceback("".join(traceback.format_exception(error)).rstrip())
    out.error(failure.sentence)
    if out.as_json:
        message = out.safe(failure.sentence)
        out.json({"ok": False, "command": name, "error": {"kind": type(error).__name__, "message": message}})
    return failure.code
