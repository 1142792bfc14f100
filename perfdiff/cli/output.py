"""Where results go: standard output or a file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from perfdiff import units
from perfdiff.errors import UsageError

_WIDTH = 100  # columns of text that is not for a terminal


def write(text: str, output: Path | None = None) -> None:
    """Write a result to `output`, or to standard output; a reader who closed the pipe early is no error."""
    if output is not None:
        _write_file(text, output)
        return
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
    told = [answer, *(f"written to {file}" for file in files)] if files else []
    told += [f"ticket written to {ticket}"] if ticket else []
    for line in told:
        sys.stderr.write(f"perfdiff: {line}\n")
    sys.stderr.flush()


def tell_stages(seconds: Mapping[str, float]) -> None:
    """Say on standard error how long each stage took."""
    for name, took in seconds.items():
        sys.stderr.write(f"perfdiff: {name}: {units.duration(took * 1e9)}\n")
    sys.stderr.flush()


def _write_file(text: str, output: Path) -> None:
    try:
        output.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the report cannot be written to '{output}': {error.strerror}", slug="output-unwritable") from error


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


def write_picture(data: bytes, output: Path | None) -> None:
    """Write a picture to `output`, or as text to standard output where it is one."""
    if output is None:
        write(data.decode())
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise UsageError(f"the picture cannot be written to '{output}': {error.strerror}", slug="output-unwritable") from error


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


def colour(output: Path | None = None) -> bool:
    """Return whether results may be coloured: on a terminal whose user did not say NO_COLOR."""
    return output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(output: Path | None = None) -> int:
    """Return the columns of the terminal that results go to, 100 where they go elsewhere."""
    return shutil.get_terminal_size(fallback=(_WIDTH, 24)).columns if output is None else _WIDTH
