"""Where results go: standard output or a file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfdiff import units
from perfdiff.errors import UsageError

_PICTURES = ("svg", "png")
_WIDTH = 100  # columns of text that is not for a terminal


def write(result: str | bytes, output: Path | None = None) -> None:
    """Write a text or a picture to `output`, or as text to standard output; a reader who closed the pipe early is no error."""
    if output is not None:
        _write_file(result, output)
        return
    text = result if isinstance(result, str) else result.decode()
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at exit; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(answer: str, *outputs: Path | None, quiet: bool, ticket: Path | None = None) -> None:
    """Say on standard error where results were written, with the answer where it is not on standard output anyway."""
    if quiet:
        return
    files = [output for output in outputs if output]
    lines = [answer, *(f"written to {file}" for file in files)] if files else []
    lines += [f"ticket written to {ticket}"] if ticket else []
    for line in lines:
        sys.stderr.write(f"perfdiff: {line}\n")
    sys.stderr.flush()


def tell_stages(seconds: Mapping[str, float]) -> None:
    """Say on standard error how long each stage took."""
    for name, took in seconds.items():
        sys.stderr.write(f"perfdiff: {name}: {units.duration(took * 1e9)}\n")
    sys.stderr.flush()


def _write_file(result: str | bytes, output: Path) -> None:
    kind = "report" if isinstance(result, str) else "picture"
    try:
        if isinstance(result, str):
            output.write_text(result if result.endswith("\n") else f"{result}\n", encoding="utf-8")
        else:
            output.write_bytes(result)
    except OSError as error:
        raise UsageError(f"the {kind} cannot be written to '{output}': {error.strerror}", slug="output-unwritable") from error


def append(text: str, output: Path) -> None:
    """Add a result to the end of a file that others write to as well."""
    try:
        with output.open("a", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise UsageError(f"the report cannot be written to '{output}': {error.strerror}", slug="output-unwritable") from error


def step_summary() -> Path | None:
    """Return the file whose Markdown GitHub Actions shows on the page of the running job, None elsewhere."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def check(output: Path) -> None:
    """Raise `UsageError` where `output` cannot be written, before the time for a comparison is spent."""
    writable = os.access(output, os.W_OK) and output.is_file() if output.exists() else os.access(output.parent, os.W_OK)
    if not writable:
        raise UsageError(f"the report cannot be written to '{output}'; name a file in a folder that exists", slug="output-unwritable")


def make_folder(folder: Path) -> None:
    """Make `folder`, or raise `UsageError` where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"'{folder}' cannot be written to: {error.strerror}", slug="output-unwritable") from error


def deliver(  # noqa: PLR0913 (what is told, by which modules, and where)
    report: Any, picture: Any, value: Any, form: str, output: Path | None, *, quiet: bool, page: Any = None, **more: Any
) -> None:
    """Write what modules of reports, pictures and pages tell of a value, and say its answer."""
    if form in _PICTURES:
        write(picture.draw(value, form), output)
    else:
        write(page.render(value) if form == "html" else told(report, value, form, output, **more), output)
    tell(report.answer(value), output, quiet=quiet)


def told(report: Any, value: Any, form: str, output: Path | None, **more: Any) -> str:
    """Return what a module of reports tells of a value: its JSON, or text for the width and the colours of where it goes."""
    from perfdiff.report.json_text import json_text

    if form == "json":
        return json_text(report.json_document(value, **more))
    return str(report.text(value, **more, width=width(output), colour=colour(output)))


def colour(output: Path | None = None) -> bool:
    """Return whether results may be coloured: on a terminal whose user did not say NO_COLOR."""
    return output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(output: Path | None = None) -> int:
    """Return the columns of the terminal that results go to, 100 where they go elsewhere."""
    return shutil.get_terminal_size(fallback=(_WIDTH, 24)).columns if output is None else _WIDTH
