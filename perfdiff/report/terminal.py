"""The report for a terminal: the answer in the first lines, then the tables. Returns text; colours only where asked for."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from perfdiff.report.blocks import Block, Cell, Diff, Facts, FunctionSection, Items, Plot, Sentence, Table, TextListing, Tone
from perfdiff.report.document import Document

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.MUTED: "dim",
    Tone.REGRESSION: "bold red",
    Tone.IMPROVEMENT: "bold green",
    Tone.INCONCLUSIVE: "bold yellow",
}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "dim", " ": ""}
# Rows of a terminal's table, and notes of a list: what is further down is in the other formats. A page tries these in turn until it fits.
MOST_ROWS = 30
_FEWER_ROWS = (MOST_ROWS, 12, 6, 3)
ALL = sys.maxsize  # rows
PAGE = 60  # lines that an answer on a terminal takes at most
_INDENT = 2
_GAP = 2
# A table of more columns than this is stacked where the page is too narrow, a smaller one folds its cells.
_STACKED = 5
_JOINTS = re.compile(r".+?(?:::|[./ ]|$)")  # parts of a name with what joins them to the next one


def render(document: Document, *, width: int = 100, colour: bool = False, lines: int | None = None) -> str:
    """Return the report as text of at most `width` columns where names allow it, with ANSI colours only if `colour`.

    With `lines`, tables and lists are as short as it takes to keep to so many, and then what says least is left out.
    """
    before = render_blocks(list(document.search), width=width, colour=colour, rows=ALL) + "\n" if document.search else ""
    if lines is None:
        blocks = _blocks(replace(document, skipped=document.unmeasured))
        return before + render_blocks(blocks, width=width, colour=colour, rows=ALL)
    blocks, spared = _blocks(document), [document.skipped, document.work, document.machines, document.coverage]
    for rows in _FEWER_ROWS:
        compared = render_blocks(blocks, width=width, colour=colour, rows=rows)
        if compared.count("\n") <= lines:
            return before + compared
    for block in spared:
        blocks = [other for other in blocks if other is not block]
        compared = render_blocks([*blocks, Sentence("… more with --full", Tone.MUTED)], width=width, colour=colour, rows=_FEWER_ROWS[-1])
        if compared.count("\n") <= lines:
            break
    return before + compared


def _blocks(document: Document) -> list[Block]:
    """Return what a terminal shows of a comparison, in its order."""
    blocks: list[Block | None] = [Sentence(document.title, Tone.MUTED), *document.answer, *document.means]
    blocks += [document.overview if document.overview.rows else None, document.work]
    if document.coverage not in document.answer:
        blocks.append(document.coverage)
    blocks += [document.end_to_end, document.requests, document.disagreements, document.machines, document.skipped, document.notes]
    return [block for block in blocks if block is not None]


def render_section(section: FunctionSection, *, width: int = 100, colour: bool = False) -> str:
    """Return all that is said of one function, the source diff included."""
    title = Sentence(f"{section.name}  {section.place}", Tone.STRONG)
    blocks = [title, Sentence(section.headline), section.facts, section.chain, *section.details, section.diff]
    return render_blocks([block for block in blocks if block is not None], width=width, colour=colour, rows=ALL)


def render_blocks(blocks: list[Block], *, width: int, colour: bool, rows: int = MOST_ROWS) -> str:
    """Return blocks as text, an empty line between them; tables and lists are cut after some `rows`."""
    from rich.console import Console

    target = io.StringIO()
    console = Console(
        file=target,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for index, block in enumerate(blocks):
        if index:
            console.print()
        for part in _parts(block, console, rows):
            console.print(part, soft_wrap=isinstance(block, TextListing | Diff))
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines()) + "\n"


def _parts(block: Block, console: Console, rows: int) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    if isinstance(block, Sentence):
        yield Text(block.text, _STYLES[block.tone])
        return
    if isinstance(block, Facts):
        yield Padding(_facts(block), (0, 0, 0, _INDENT))
        return
    if block.title:
        yield Text(block.title, "bold")
    match block:
        case Table():
            yield Padding(_table(replace(block, rows=block.rows[:rows]), console), (0, 0, 0, _INDENT))
            if len(block.rows) > rows:
                yield Text(f"  … {len(block.rows) - rows:,} more; --full, and the html and json reports, hold all", "dim")
        case Items():
            yield Padding(_items(replace(block, texts=block.texts[:rows])), (0, 0, 0, _INDENT))
            if len(block.texts) > rows:
                yield Text(f"  … {len(block.texts) - rows:,} more; --full, and the html and json reports, hold all", "dim")
        case TextListing():
            for line in block.lines:
                yield Text(f"  {line}")
        case Diff():
            yield from _diff(block)
        case Plot():
            yield Text(block.caption)


def _facts(block: Facts) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for fact in block.facts:
        grid.add_row(Text(fact.label, "dim"), Text(fact.text, _STYLES[fact.tone]))
    return grid


def _items(block: Items) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for number, text in enumerate(block.texts, 1):
        grid.add_row(Text(f"{number}." if block.ordered else "-", "dim"), Text(text))
    return grid


def _table(block: Table, console: Console) -> RenderableType:
    from rich.cells import cell_len

    widths = [
        max(cell_len(text) for text in (column.title, *(row[i].text for row in block.rows))) for i, column in enumerate(block.columns)
    ]
    everything = range(len(widths))
    major = [i for i in everything if not block.columns[i].minor]
    room = console.width - _INDENT
    for shown in (list(everything), major):
        if sum(widths[i] for i in shown) + _GAP * (len(shown) - 1) <= room:
            return _grid(block, shown)
    return _grid(block, major) if len(major) <= _STACKED else _stacked(block, major, room)


def _grid(block: Table, shown: list[int]) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for i in shown:
        grid.add_column(Text(block.columns[i].title), justify="right" if block.columns[i].right else "left", overflow="fold")
    for row in block.rows:
        grid.add_row(*(_cell(row[i]) for i in shown))
    return grid


def _stacked(block: Table, shown: list[int], room: int) -> RenderableType:
    """Return rows of two lines, each column but the first over its right neighbour, for a table that a narrow page cannot hold.

    The second column has what the others leave of the `room`; long names are broken there where their parts meet.
    """
    from rich.cells import cell_len
    from rich.table import Table as Grid
    from rich.text import Text

    pairs = [shown[:1], *(shown[i : i + 2] for i in range(1, len(shown), 2))]
    grid = Grid(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for pair in pairs:
        grid.add_column(Text("\n".join(block.columns[i].title for i in pair)), overflow="fold")
    others = [i for i in shown if i not in pairs[1]]
    widest = {i: max(cell_len(text) for text in (block.columns[i].title, *(row[i].text for row in block.rows))) for i in others}
    taken = sum(max(widest[i] for i in pair) + _GAP for pair in pairs if pair != pairs[1])
    for row in block.rows:
        cells = {i: replace(row[i], text=_broken(row[i].text, room - taken)) if i in pairs[1] else row[i] for i in shown}
        grid.add_row(*(Text("\n").join(_cell(cells[i]) for i in pair) for pair in pairs))
    return grid


def _broken(name: str, width: int) -> str:
    """Return a name in lines of at most `width` columns, broken behind `::`, `.`, `/` or a blank where it has these."""
    lines = [""]
    for part in _JOINTS.findall(name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _cell(cell: Cell) -> Text:
    from rich.text import Text

    return Text(cell.text, _STYLES[cell.tone])


def _diff(block: Diff) -> Iterator[RenderableType]:
    from rich.text import Text

    for line in block.lines:
        numbers = f"{line.base or '':>6} {line.head or '':>6} "
        text = f"  … {line.text}" if line.mark == "@" else f"{line.mark} {line.text}"
        yield Text(numbers + text, _DIFF_STYLES[line.mark])
