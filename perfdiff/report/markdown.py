"""The report as Markdown for a pull request or ticket: at most 60,000 bytes, the answer first, the evidence folded."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from perfdiff.report.blocks import Block, Cell, Diff, Facts, FunctionSection, Items, Plot, Sentence, Table, TextListing, Tone
from perfdiff.report.document import Document
from perfdiff.report.printable import printable, quoted_parts, shortened
from perfdiff.report.wording import plural

# GitHub refuses a comment of more than 65,536 characters; the rest is room for what a bot puts around the report.
MOST_BYTES = 60_000
# The overview must leave room for the evidence of the first functions.
_MOST_TABLE_BYTES = 20_000
# Room for the sentence that says what was left out.
_RESERVED_BYTES = 400
_BETWEEN = 2  # bytes, of the empty line behind a part
_MOST_SENTENCE = 1_000
_MOST_CODE = 160

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
# What would start a heading, list, quote or underlined heading at the beginning of a paragraph.
_LEADING = re.compile(r"^([#+=-]*|\d+)([#+=.)-])(?=\s|$)")
# What GitHub would turn into a mention, a reference or a link; an empty comment behind it prevents that.
_LINKED = re.compile(r"(@|#(?=\d)|\bwww(?=\.)|:(?=//))")


@dataclass(slots=True)
class _Page:
    """Parts that fit into the limit, in order, and what was left out."""

    parts: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    room: int = MOST_BYTES - _RESERVED_BYTES

    def fits(self, part: str) -> bool:
        """Return whether there is room for a part."""
        return len(part.encode()) + _BETWEEN <= self.room

    def add(self, part: str, says: str) -> None:
        """Add a part if it fits, else note what was left out."""
        if self.fits(part):
            self.put(part)
        else:
            self.left_out.append(says)

    def add_all(self, parts: Iterable[str], of: str) -> None:
        """Add those parts that fit, and note of what how many others were left out."""
        left = 0
        for part in parts:
            if self.fits(part):
                self.put(part)
            else:
                left += 1
        if left:
            self.left_out.append(f"{plural(left, 'part')} of {of}")

    def put(self, part: str) -> None:
        """Add a part that fits."""
        self.parts.append(part)
        self.room -= len(part.encode()) + _BETWEEN

    def add_table(self, table: Table, says: Callable[[int], str], *, titled: bool = False) -> None:
        """Add as many rows of a table as fit into its limit; `says` tells how many were left out."""
        fitting, size = 0, 0
        for row in table.rows:
            size += len(_row(row).encode()) + 1
            if size > _MOST_TABLE_BYTES:
                break
            fitting += 1
        if fitting:
            self.add(_block(replace(table, rows=table.rows[:fitting]), titled=titled), says(fitting))
        if fitting < len(table.rows):
            self.left_out.append(says(len(table.rows) - fitting))

    def text(self) -> str:
        """Return all parts, and a sentence that says what was left out."""
        parts = self.parts
        if self.left_out:
            left_out = "; ".join(dict.fromkeys(self.left_out))
            parts = [*parts, f"Left out to keep this under {MOST_BYTES:,} bytes: {left_out}. The html and json reports hold all."]
        return "\n\n".join(parts) + "\n"


def render(document: Document, lead: Sequence[str] = ()) -> str:
    """Return the report as Markdown of at most `MOST_BYTES` bytes; a last sentence says what was left out.

    `lead` are parts, Markdown themselves, that stand behind the answer.
    """
    page = _Page()
    answer = document.answer[0]
    page.add(f"## {prose(answer.text)}" if isinstance(answer, Sentence) else _block(answer), "the answer")
    page.add(code(document.title), "the revisions")
    page.add_all([*map(_block, (*document.answer[1:], *document.means, *document.search)), *lead], "what stands behind the answer")
    page.add_table(document.overview, lambda count: plural(count, "row") + " of the table of functions")
    for items in (document.work, document.notes):
        if items:
            page.add(_block(items), f"“{escaped(items.title)}”")
    coverage = None if document.coverage in document.answer else document.coverage
    measured = [block for block in (coverage, document.end_to_end, document.requests) if block is not None]
    if measured:
        page.add(_folded("What was measured", measured), "what was measured")
    if document.disagreements:
        page.add_table(document.disagreements, partial(_rows_of, document.disagreements.title), titled=True)
    page.add(_folded("Environment", [document.environment, document.machines]), "the environment")
    _add_functions(page, document.functions)
    if document.skipped:
        functions = plural(len(document.findings.skipped), "function")
        page.add(_folded(document.skipped.title, [document.skipped], titled=False), f"the list of {functions} that were not measured")
    return page.text()


def render_blocks(answer: Sentence, title: str, blocks: Sequence[Block]) -> str:
    """Return blocks as Markdown of at most `MOST_BYTES` bytes behind an answer and a title; a last sentence says what was left out."""
    page = _Page()
    page.add(f"## {prose(answer.text)}", "the answer")
    page.add(code(title), "the revisions")
    for block in blocks:
        if isinstance(block, Table):
            page.add_table(block, partial(_rows_of, block.title), titled=True)
        else:
            page.add(_block(block), "a paragraph" if isinstance(block, Sentence) else "a list")
    return page.text()


def _rows_of(title: str, count: int) -> str:
    return f"{plural(count, 'row')} of “{escaped(title)}”"


def prose(text: str, *, in_table: bool = False) -> str:
    """Return a sentence with the code that it quotes in backticks as code spans, and everything else escaped."""
    parts = quoted_parts(shortened(text.strip(), _MOST_SENTENCE))
    return "".join(code(part, in_table=in_table) if quoted else escaped(part) for quoted, part in parts)


def escaped(text: str) -> str:
    """Return text that Markdown and HTML leave as it is: no markup, mention, reference or link, whatever it holds."""
    text = html.escape(text, quote=False)
    text = _SPECIAL.sub(r"\\\1", text)
    text = _LEADING.sub(r"\1\\\2", text)
    return _LINKED.sub(r"\1<!-- -->", text)


def code(text: str, *, in_table: bool = False) -> str:
    """Return text as a code span, fenced by more backticks than it holds in a row."""
    text = shortened(printable(text), _MOST_CODE) or " "
    fence = _fence(text, 1)
    padding = " " if "`" in (text[0], text[-1]) else ""
    # Within a table even a code span ends at a bar that is not escaped.
    inner = text.replace("|", "\\|") if in_table else text
    return f"{fence}{padding}{inner}{padding}{fence}"


def _fence(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _add_functions(page: _Page, sections: tuple[FunctionSection, ...]) -> None:
    """Add the sections of functions as far as they fit, the last one without its diff where that is too long."""
    left = list(sections)
    while left and page.fits(whole := _function(left[0], with_diff=True)):
        page.put(whole)
        left.pop(0)
    if left and page.fits(bare := _function(left[0], with_diff=False)):
        page.put(bare)
        page.left_out.append(f"the source diff of {code(left.pop(0).name)}")
    if left:
        page.left_out.append(f"the sections of {plural(len(left), 'function')}")


def _function(section: FunctionSection, *, with_diff: bool) -> str:
    name, place = (html.escape(shortened(text, _MOST_CODE)) for text in (section.name, section.place))
    rank = f"#{section.rank} " if section.rank is not None else ""
    summary = f"{rank}<code>{name}</code> <code>{place}</code> {section.standing}: {html.escape(section.figure)}"
    blocks = [Sentence(section.headline), section.facts, section.chain, *section.details, section.diff if with_diff else None]
    return _details(summary, blocks)


def _folded(title: str, blocks: Sequence[Block | None], *, titled: bool = True) -> str:
    return _details(html.escape(title), blocks, titled=titled)


def _details(summary: str, blocks: Sequence[Block | None], *, titled: bool = True) -> str:
    body = "\n\n".join(_block(block, titled=titled) for block in blocks if block is not None)
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _block(block: Block, *, titled: bool = True) -> str:
    match block:
        case Sentence():
            return prose(block.text)
        case Plot():
            return escaped(block.caption)
        case Facts():
            return "\n".join(f"- {_strong(fact.label)}: {prose(fact.text)}" for fact in block.facts)
        case Items():
            text = "\n".join(_items(block))
        case Table():
            text = _table(block)
        case TextListing():
            text = _fenced(block.lines, "")
        case Diff():
            text = _fenced(tuple(_diff_lines(block)), "diff")
    return f"{_strong(block.title)}\n\n{text}" if titled else text


def _strong(text: str) -> str:
    return f"**{escaped(text)}**"


def _items(block: Items) -> Iterator[str]:
    for number, text in enumerate(block.texts, 1):
        yield f"{number}. {prose(text)}" if block.ordered else f"- {prose(text)}"


def _table(table: Table) -> str:
    titles = "|".join(escaped(column.title) or " " for column in table.columns)
    rules = "|".join("--:" if column.right else "---" for column in table.columns)
    return "\n".join([f"|{titles}|", f"|{rules}|", *map(_row, table.rows)])


def _row(row: tuple[Cell, ...]) -> str:
    return f"|{'|'.join(_cell(cell) for cell in row)}|"


def _cell(cell: Cell) -> str:
    if cell.code and cell.text:
        return code(cell.text, in_table=True)
    text = prose(cell.text, in_table=True)
    return f"**{text}**" if text and cell.tone in (Tone.REGRESSION, Tone.IMPROVEMENT) else text


def _fenced(lines: tuple[str, ...], language: str) -> str:
    return fenced([shortened(line, _MOST_CODE) for line in lines], language)


def fenced(lines: Sequence[str], language: str) -> str:
    """Return lines as a block of code, fenced by more backticks than they hold in a row."""
    body = "\n".join(printable(line.expandtabs(8)) for line in lines)
    fence = _fence(body, 3)
    return f"{fence}{language}\n{body}\n{fence}"


def _diff_lines(block: Diff) -> Iterator[str]:
    for line in block.lines:
        yield f"@@ {line.text} @@" if line.mark == "@" else f"{line.mark}{line.text}"
