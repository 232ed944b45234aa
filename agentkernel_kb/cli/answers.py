"""How an answer is shown: as the model reads it, tables of rows as tables on a terminal."""

from __future__ import annotations

import re

from agentkernel_kb.cli.command import Run
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.opening import Answered
from agentkernel_kb.cli.output import Output

_CELL_END = re.compile(r"(?<!\\)\|")
_FEWEST_LINES = 2


def show(run: Run, answered: Answered) -> Code:
    """Print an answer, or what went wrong in its place, and return the exit code."""
    if run.options.as_json:
        run.out.json({"ok": answered.code == Code.OK, "command": run.name, **answered.to_dict()})
    if answered.code != Code.OK:
        run.out.error(answered.text)
    elif not run.options.as_json:
        show_text(run.out, answered.text)
    return answered.code


def show_text(out: Output, text: str) -> None:
    """Print the text of an answer."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith("| ")), len(lines))
    rows = lines[start:]
    if not out.is_terminal or len(rows) < _FEWEST_LINES or not all(map(_is_row, rows)):
        out.text(text)
        return
    if start:
        out.text("\n".join(lines[:start]))
    out.table(_cells(rows[0]), [_cells(row) for row in rows[2:]])


def _is_row(line: str) -> bool:
    return line.startswith("| ") and line.endswith(" |")


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(row)[1:-1]]
