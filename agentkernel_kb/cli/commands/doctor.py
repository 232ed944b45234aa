"""`doctor`: reaches each backend, and says what is in the way."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.diagnosis import Diagnosis, diagnosed
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.faulty import show_faults
from agentkernel_kb.cli.location import find
from agentkernel_kb.cli.opening import opened
from agentkernel_kb.config import ConfigurationError

_SECONDS = 10.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, doctor)


def doctor(run: Run) -> Code:
    r"""Reach each backend, and say what is wrong.

    One line for each: how long it took, what is in the way, and how to mend it.

    All are asked at once, for at most --timeout seconds (10 by default). The exit code is 3 where one cannot be reached or does
    not let this application in, else 1 where anything else is wrong.

    \b
    Examples:
      agentkernel-kb doctor
      agentkernel-kb doctor --env prod --timeout 3
      agentkernel-kb doctor --json | jq '.backends[] | select(.state != "ok")'
    """
    try:
        with opened(run, lazy=True) as knowledge:
            names = [backend.backend_name for backend in knowledge.builder.backends]
            with run.out.progress(f"Reaching {', '.join(names)}…"):
                health = knowledge.builder.health(run.options.timeout or _SECONDS)
            found = diagnosed(knowledge.configuration, health, run.options.agent)
    except ConfigurationError as error:
        sentence = f"{find(run.options.config)} can't be loaded, so that no backend was asked."
        return show_faults(run, error, sentence, backends=[])
    code = max((each.code for each in found), default=Code.OK)
    if run.options.as_json:
        listed = [each.to_dict() for each in found]
        run.out.json({"ok": code == Code.OK, "command": run.name, "backends": listed, "faults": []})
    else:
        _show(run, found)
    return code


def _show(run: Run, found: Sequence[Diagnosis]) -> None:
    rows = [(each.name, each.type, each.state, _took(each), run.out.safe(_words(each))) for each in found]
    run.out.table(
        ("Backend", "Type", "State", "Took", ""), rows, styles=["" if each.state == "ok" else "red" for each in found]
    )
    ill = sum(each.state != "ok" for each in found)
    run.out.note(f"{len(found) - ill} of {len(found)} backends can be used.")


def _took(each: Diagnosis) -> str:
    return "" if each.milliseconds is None else f"{each.milliseconds:,.0f} ms"


def _words(each: Diagnosis) -> str:
    if each.state == "ok":
        return " · ".join(filter(None, [", ".join(each.can), each.detail]))
    return " ".join(filter(None, [each.detail, each.cure]))
