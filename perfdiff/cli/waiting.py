"""What a person sees on standard error while perfdiff works: a moving line on a terminal, short plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from perfdiff import units
from perfdiff.progress import Progress, Silent

if TYPE_CHECKING:
    import rich.progress


_LINE_EVERY_S = 30.0  # a log of minutes stays short, and whoever watches it sees that something happens


@contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Progress]:
    """Show progress for the length of a piece of work, in the form that standard error can take."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        with _terminal(verbose=verbose) as display:
            yield display
    else:
        yield LineProgress(sys.stderr, verbose=verbose)


def _shown(text: str) -> str:
    """Return what strangers may have written, such as a commit's subject, as it can be shown on a terminal."""
    from perfdiff.report.printable import printable

    return printable(text)


class LineProgress:
    """One line a stage, and in long stages one now and then; with `verbose` one a step."""

    def __init__(self, stream: TextIO, *, verbose: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._verbose = verbose
        self._clock = clock
        self._name, self._total, self._done = "", 0, 0
        self._written = self._started = clock()

    def stage(self, name: str, total: int | None) -> None:
        """Write the stage's line."""
        self._name, self._total, self._done, self._started = name, total or 0, 0, self._clock()
        self._write(f"{name} ({total})" if total else name)

    def advance(self, text: str = "") -> None:
        """Write the step's line where every step is asked for, else how far the stage is where nothing was written for long."""
        self._done += 1
        if self._verbose and text:
            self._write(f"  {text}")
        elif self._clock() - self._written >= _LINE_EVERY_S and self._done < self._total:
            left_s = (self._clock() - self._started) / self._done * (self._total - self._done)
            self._write(f"{self._name}: {self._done} of {self._total}, about {units.duration(left_s * 1e9)} left")

    def note(self, text: str) -> None:
        """Write the note."""
        self._write(f"note: {text}")

    def _write(self, line: str) -> None:
        self._written = self._clock()
        self._stream.write(f"perfdiff: {_shown(line)}\n")
        self._stream.flush()


class Terminal:
    """The current stage with its bar and an estimate; finished stages stay above it with the time they took."""

    def __init__(self, bars: rich.progress.Progress, *, verbose: bool) -> None:
        self._bars = bars
        self._verbose = verbose
        self._task: rich.progress.TaskID | None = None
        self._name = ""
        self._started = 0.0

    def stage(self, name: str, total: int | None) -> None:
        """Finish the stage before and show this one."""
        self.finish()
        self._name, self._started = name, time.monotonic()
        self._task = self._bars.add_task(_shown(name), total=total, step="")

    def advance(self, text: str = "") -> None:
        """Move the bar by one step and name it."""
        if self._task is not None:
            self._bars.update(self._task, advance=1, step=_shown(text))
        if self._verbose and text:
            self._line(f"  {text}")

    def note(self, text: str) -> None:
        """Leave the note above the bar."""
        self._line(f"note: {text}")

    def finish(self) -> None:
        """Replace the current stage by a line with the time it took."""
        if self._task is None:
            return
        self._bars.remove_task(self._task)
        self._task = None
        self._line(f"{self._name}: {units.duration((time.monotonic() - self._started) * 1e9)}")

    def _line(self, text: str) -> None:
        self._bars.console.print(_shown(text), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _terminal(*, verbose: bool) -> Iterator[Terminal]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[step]}", style="dim", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        display = Terminal(bars, verbose=verbose)
        yield display
        display.finish()
