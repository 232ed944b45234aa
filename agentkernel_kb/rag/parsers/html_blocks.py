"""Blocks of a page: paragraphs, headings, items, code and tables, as lines of Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOST_INDENT = 6
_LONG_CELL = 500
# What would be read as a heading, or as the fence of code.
_MISREAD = re.compile(r"(?=#{1,6}(?:\s|$)|```|~~~)")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together.

    Attributes:
        text: The lines.
        kind: `text`, `heading`, `item`, `code` or `row`; items and rows follow one another without a blank line.
    """

    text: str
    kind: str


class Blocks:
    """A page, or a cell of a table, while it is written.

    Attributes:
        blocks: What is finished.
        is_code: White space counts.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.is_code = False
        self._pieces: list[str] = []
        self._lists: list[int] = []  # The number of the last item, -1 where there are no numbers.
        self._mark = ""

    def write(self, text: str, *, is_break: bool = False) -> None:
        """Write into the block that is open."""
        self._pieces.append(text if is_break or self.is_code else text.replace("\n", " "))

    def begin_list(self, *, numbered: bool) -> None:
        """Begin a list, perhaps in a list."""
        self._lists.append(0 if numbered else -1)

    def end_list(self) -> None:
        """End the innermost list."""
        if self._lists:
            self._lists.pop()
        self._mark = ""

    def begin_item(self) -> None:
        """Begin an item of the innermost list; the next block is marked as such."""
        indent = "  " * min(max(len(self._lists) - 1, 0), _MOST_INDENT)
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            self._mark = f"{indent}{self._lists[-1]}. "
        else:
            self._mark = f"{indent}- "

    def flush(self, *, level: int = 0) -> None:
        """Finish the block that is open, as a heading where a level is given."""
        written = "".join(self._pieces)
        self._pieces.clear()
        if not written.strip():
            return
        if self.is_code and not level:
            fence = "````" if "```" in written else "```"
            self.blocks.append(Block(f"{fence}\n{written.strip(chr(10)).rstrip()}\n{fence}", "code"))
            return
        lines = [line for line in (" ".join(line.split()) for line in written.split("\n")) if line]
        if level:
            self.blocks.append(Block(f"{'#' * level} {' '.join(lines)}", "heading"))
            return
        mark, self._mark = self._mark, ""
        text = "\n".join(_MISREAD.sub(r"\\", line, count=1) if _MISREAD.match(line) else line for line in lines)
        self.blocks.append(Block(mark + text, "item" if mark else "text"))

    def text(self) -> str:
        """Return all blocks as one text."""
        parts: list[str] = []
        before = ""
        for block in self.blocks:
            if before:
                parts.append("\n" if before == block.kind and block.kind in ("item", "row") else "\n\n")
            parts.append(block.text)
            before = block.kind
        return "".join(parts)


class Table:
    """A table while it is written: cells are joined to lines, and those of a table that only serves the layout stay blocks.

    Args:
        outside: Where the table stands.
    """

    def __init__(self, outside: Blocks) -> None:
        self._outside = outside
        self._before = Blocks()
        self._rows: list[list[Blocks]] = []
        self.sink = self._before
        """Where text goes: into the cell that is open, or before the table."""

    def begin_row(self) -> None:
        """Begin a row."""
        self.end_cell()
        self._rows.append([])

    def begin_cell(self) -> None:
        """Begin a cell, and a row where none is open."""
        if not self._rows:
            self._rows.append([])
        self.sink = Blocks()
        self._rows[-1].append(self.sink)

    def end_cell(self) -> Blocks:
        """End the cell that is open, and return where text goes then."""
        self.sink.flush()
        self.sink = self._before
        return self.sink

    def finish(self) -> Blocks:
        """Write the table where it stands, and return that place."""
        self.end_cell()
        self._outside.blocks += self._before.blocks
        self._outside.blocks += self._laid_out() if self._is_layout() else self._lines()
        return self._outside

    def _is_layout(self) -> bool:
        cells = [cell for row in self._rows for cell in row]
        return (
            all(len(row) < 2 for row in self._rows)
            or any(block.kind in ("heading", "code") for cell in cells for block in cell.blocks)
            or any(sum(len(block.text) for block in cell.blocks) > _LONG_CELL for cell in cells)
        )

    def _laid_out(self) -> list[Block]:
        return [block for row in self._rows for cell in row for block in cell.blocks]

    def _lines(self) -> list[Block]:
        lines = (" | ".join(map(_in_one_line, row)) for row in self._rows)
        return [Block(f"| {line} |", "row") for line in lines if line.strip(" |")]


def _in_one_line(cell: Blocks) -> str:
    return "; ".join(" ".join(block.text.removeprefix("- ").replace("\n", " ").split()).strip("| ") for block in cell.blocks)
