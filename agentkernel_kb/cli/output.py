"""What the command prints: answers and JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentkernel_kb.cli.text import hidden, printable
from agentkernel_kb.render import encode, one_line
from agentkernel_kb.router.redaction import redact

Row = Sequence[object]


class Output:
    """Where results and messages go.

    Args:
        as_json: Only one JSON document goes to stdout.
        quiet: Only errors go to stderr.
        out: Where results go; stdout by default.
        err: Where messages go; stderr by default.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, out: IO[str] | None = None, err: IO[str] | None = None
    ) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.secrets: set[str] = set()
        self._out = Console(file=out or sys.stdout, highlight=False, markup=False, emoji=False)
        self._err = Console(file=err or sys.stderr, highlight=False, markup=False, emoji=False)

    @property
    def is_terminal(self) -> bool:
        """Results are read by a person, on a terminal."""
        return self._out.is_terminal and not self.as_json

    def json(self, value: Any, *, trusted: bool = False) -> None:
        """Print one JSON document.

        Args:
            value: What it holds.
            trusted: It is of this library's making and may be as large and deep as it likes.
        """
        document = json.dumps(value if trusted else encode(value), ensure_ascii=False, indent=2)
        print(document if trusted else printable(document), file=self._out.file)

    def text(self, text: str) -> None:
        """Print text as it stands, on no matter how long a line, without anything that steers a terminal."""
        print(printable(text), file=self._out.file)

    def heading(self, text: str) -> None:
        """Print the heading of a part."""
        self._out.print(Text(printable(text), style="bold"), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Row], *, styles: Sequence[str] = ()) -> None:
        """Print rows: as a table on a terminal, else a line each with tabs between the cells and no heading.

        Args:
            columns: The headings.
            rows: The cells of each row.
            styles: The colour of each row, if any.
        """
        shown = [[one_line(printable(str(cell))).replace("\t", " ") for cell in row] for row in rows]
        if not self.is_terminal:
            for row in shown:
                print("\t".join(row), file=self._out.file)
            return
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for number, row in enumerate(shown):
            table.add_row(*map(Text, row), style=styles[number] if number < len(styles) else None)
        self._out.print(table)

    def note(self, text: str) -> None:
        """Print a message to stderr, unless it is to be quiet."""
        if not self.quiet:
            self._message(text, "dim")

    def warning(self, text: str) -> None:
        """Print a warning to stderr, unless it is to be quiet."""
        if not self.quiet:
            self._message(text, "yellow")

    def error(self, text: str) -> None:
        """Print an error to stderr."""
        self._message(text, "red")

    def traceback(self, text: str) -> None:
        """Print a traceback to stderr; what has the shape of a credential is left out, as it may be anybody's."""
        self._message(redact(text), "")

    def ask(self, prompt: str) -> str:
        """Ask on stderr and return the line that is typed.

        Raises:
            EOFError: There is nobody to answer.
        """
        self._err.print(Text(printable(prompt), style="bold"), end=" ", soft_wrap=True)
        return input()

    @contextmanager
    def progress(self, what: str) -> Generator[Callable[[str], None]]:
        """Show on a terminal that something takes its time; what is yielded shows how far it has come."""
        if self.quiet or not self._err.is_terminal:
            yield lambda _: None
            return
        with self._err.status(Text(printable(what))) as status:
            yield lambda text: status.update(Text(printable(text)))

    def flush(self) -> None:
        """Write out what was printed.

        Raises:
            BrokenPipeError: Nobody reads it.
        """
        self._out.file.flush()

    def safe(self, text: str) -> str:
        """Return `text` as a message may show it: no secrets, nothing that steers a terminal."""
        return printable(hidden(text, self.secrets))

    def _message(self, text: str, style: str) -> None:
        self._err.print(Text(self.safe(text), style=style), soft_wrap=True)


def forget_stdout() -> None:
    """Let the interpreter flush what nobody reads to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
