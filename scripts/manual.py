"""Writes what the command line says of itself as a manual page (roff) or as the reference in docs/commands.md.

Usage: manual.py man|markdown. scripts/reference runs both.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfdiff import __version__
from perfdiff.cli import COMPARISON
from perfdiff.cli.whole import PROGRAM, Command, command, commands

_ABOUT = """\
`scripts/reference` writes this page from the help texts of the commands; `COMMAND --help` shows the same, and so does the manual page,
which it writes as well. Options that several commands have alike stand [once](#common-options). [report.md](report.md) and
[history.md](history.md) explain what the commands print."""

_INDEX = "Other commands:"
_COMMON = 3  # commands that have an option alike: it is explained once


@dataclass(frozen=True, slots=True)
class Entry:
    """An option or argument: how it is written, and what it does."""

    written: str
    says: str


@dataclass(frozen=True, slots=True)
class Page:
    """A command: its usage, its help in paragraphs (those of several lines keep them), arguments and options."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    entries: tuple[Entry, ...]


def pages() -> Iterator[Page]:
    """Yield the comparison, then each command, then each command's own commands."""
    yield page(PROGRAM, command(COMPARISON))
    for name, each in commands().items():
        yield page(f"{PROGRAM} {name}", each)
        for below, other in getattr(each, "commands", {}).items():
            yield page(f"{PROGRAM} {name} {below}", other)


def page(name: str, each: Command) -> Page:
    """Return what a command says of itself."""
    context = each.make_context(name, [], resilient_parsing=True)
    usage = _plain(" ".join([name, *each.collect_usage_pieces(context)]))
    entries = []
    for parameter in each.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            entries.append(Entry(_plain(record[0]), " ".join(record[1].split())))
    texts = [each.help or "", each.epilog or ""]
    return Page(name, usage, tuple(part for text in texts for part in _paragraphs(text)), tuple(entries))


def _plain(written: str) -> str:
    """Return how an option or argument is written, without typer's marks of what is required and of types that say nothing."""
    return " ".join(re.sub(r" <(list\[)?(str|path)\]?>| <range>", "", re.sub(r"\{(\w+)\}", r"\1", written)).split())


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs as one line each; those below `\\b` keep their lines."""
    for block in re.split(r"\n\s*\n", text.replace("\f", "").strip()):
        lines = [line.rstrip() for line in block.splitlines()]
        if lines and lines[0].strip() == "\b":
            yield "\n".join(lines[1:])
        elif lines:
            yield " ".join(line.strip() for line in lines)


def roff() -> str:
    """Return the manual page."""
    first, *others = pages()
    parts = [
        f'.TH PERFDIFF 1 "" "perfdiff {__version__}" "User Commands"',
        ".SH NAME",
        r"perfdiff \- compare the performance of two git revisions, function by function",
        ".SH SYNOPSIS",
        f".B {_roff(first.usage)}",
        *(f".br\n.B {_roff(other.usage)}" for other in others),
        ".SH DESCRIPTION",
        *_roff_body(first),
        ".SH COMMANDS",
    ]
    for other in others:
        parts += [f".SS {_roff(other.usage)}", *_roff_body(other)]
    parts += [".SH SEE ALSO", r"The documentation in docs/ of the source: report.md, configuration.md, messages.md, history.md."]
    return "\n".join(parts) + "\n"


def _roff_body(each: Page) -> Iterator[str]:
    for paragraph in each.paragraphs:
        yield ".PP" if "\n" not in paragraph else f".PP\n.nf\n{_roff(paragraph)}\n.fi"
        if "\n" not in paragraph:
            yield _roff(paragraph)
    for entry in each.entries:
        yield f".TP\n.B {_roff(entry.written)}\n{_roff(entry.says)}"


def _roff(text: str) -> str:
    """Return text that roff shows as it stands."""
    escaped = text.replace("\\", "\\e").replace("-", r"\-").replace("…", "...").replace("×", r"\(mu")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.splitlines())


def markdown() -> str:
    """Return the reference of all commands and options; what several commands have alike stands once, at its end."""
    whole = list(pages())
    times = Counter(entry for each in whole for entry in each.entries)
    common = [entry for entry, count in times.items() if count >= _COMMON]
    parts = ["# Commands", _ABOUT]
    for each in whole:
        parts.append(f"## `{each.name}`")
        parts.append(f"```\n{each.usage}\n```")
        for paragraph in each.paragraphs:
            if paragraph.startswith(_INDEX):  # what the page's own headings are
                continue
            parts.append(f"```\n{paragraph}\n```" if "\n" in paragraph else textwrap.fill(paragraph, 140, break_on_hyphens=False))
        own = [entry for entry in each.entries if entry not in common]
        if own:
            parts.append(_table(own))
        if shared := [f"`{_long(entry)}`" for entry in each.entries if entry in common]:
            parts.append(textwrap.fill(f"[Common options](#common-options): {', '.join(shared)}.", 140, break_on_hyphens=False))
    return "\n\n".join([*parts, "## Common options", _table(common)]) + "\n"


def _long(entry: Entry) -> str:
    return next(word.rstrip(",") for word in entry.written.split() if word.startswith("--"))


def _table(entries: Iterable[Entry]) -> str:
    rows = [f"| `{_cell(entry.written)}` | {_cell(entry.says)} |" for entry in entries]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write({"man": roff, "markdown": markdown}[sys.argv[1]]())
