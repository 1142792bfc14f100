"""What a person sees on standard error while perfdiff works: a moving line on a terminal, short plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from perfdiff import units
from perfdiff.deadline import Deadline
from perfdiff.progress import Progress, Silent

if TYPE_CHECKING:
    import rich.progress


_LINE_EVERY_S = 30.0  # a log of minutes stays short, and whoever watches it sees that something happens
_LOOK_EVERY_S = 1.0  # whether that time is over


@contextmanager
def progress(*, quiet: bool, verbose: bool, deadline: Deadline | None = None) -> Iterator[Progress]:
    """Show progress for the length of a piece of work, in the form that standard error can take.

    Beside what is known by now stands the time that is left until the `deadline`, where one is limited.
    """
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        with _terminal(verbose=verbose, deadline=deadline or Deadline()) as display:
            yield display
    else:
        lines, ended = LineProgress(sys.stderr, verbose=verbose, deadline=deadline), threading.Event()
        thread = threading.Thread(target=_tell_now_and_then, args=(lines, ended), daemon=True)
        thread.start()
        try:
            yield lines
        finally:
            ended.set()
            thread.join()


def _tell_now_and_then(lines: LineProgress, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_EVERY_S):
        lines.look()


def _left(deadline: Deadline) -> str:
    """Return how much of a limited time is left, "" where it is not limited."""
    if deadline.time_s is None:
        return ""
    return f"{max(deadline.remaining_s, 0.0):.0f} s of {deadline.time_s:.0f} s left"


def _shown(text: str) -> str:
    """Return what strangers may have written, such as a commit's subject, as it can be shown on a terminal."""
    from perfdiff.report.printable import printable

    return printable(text)


class LineProgress:
    """One line a stage, and in long stages one every half minute: how far it is, and what is known; with `verbose` one a step."""

    def __init__(
        self, stream: TextIO, *, verbose: bool, clock: Callable[[], float] = time.monotonic, deadline: Deadline | None = None
    ) -> None:
        self._stream = stream
        self._verbose = verbose
        self._clock = clock
        self._deadline = deadline or Deadline()
        self._name, self._total, self._done, self._known = "", 0, 0, ""
        self._written = self._started = clock()
        self._writing = threading.Lock()  # another thread looks at the clock

    def stage(self, name: str, total: int | None) -> None:
        """Write the stage's line."""
        self._name, self._total, self._done, self._started = name, total or 0, 0, self._clock()
        self._write(f"{name} ({total})" if total else name)

    def advance(self, text: str = "") -> None:
        """Write the step's line where every step is asked for."""
        self._done += 1
        if self._verbose and text:
            self._write(f"  {text}")
        self.look()

    def note(self, text: str) -> None:
        """Write the note."""
        self._write(f"note: {text}")

    def know(self, text: str) -> None:
        """Have it in the next lines."""
        self._known = text

    def look(self) -> None:
        """Write how far the stage is, and what is known, where nothing was written for long."""
        if self._name and self._clock() - self._written >= _LINE_EVERY_S:
            self._write("; ".join(filter(None, (f"{self._name}: {self._how_far()}", self._known, _left(self._deadline)))))

    def _how_far(self) -> str:
        took_s = self._clock() - self._started
        if not 0 < self._done < self._total:
            return f"for {units.duration(took_s * 1e9)}"
        left_s = took_s / self._done * (self._total - self._done)
        return f"{self._done} of {self._total}, about {units.duration(left_s * 1e9)} left"

    def _write(self, line: str) -> None:
        with self._writing:
            self._written = self._clock()
            self._stream.write(f"perfdiff: {_shown(line)}\n")
            self._stream.flush()


@dataclass(slots=True)
class BottomLine:
    """What stands below the bars: what is known by now, and the time that is left."""

    deadline: Deadline
    known: str = ""

    def __str__(self) -> str:
        """Return it as one line, "" where there is neither."""
        return "; ".join(filter(None, (_shown(self.known), _left(self.deadline))))


class Terminal:
    """The current stage with its bar and an estimate, below it what is known; finished stages stay above with the time they took."""

    def __init__(self, bars: rich.progress.Progress, bottom: BottomLine, *, verbose: bool) -> None:
        self._bars = bars
        self._bottom = bottom
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

    def know(self, text: str) -> None:
        """Show below the bar what is known."""
        self._bottom.known = text

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
def _terminal(*, verbose: bool, deadline: Deadline) -> Iterator[Terminal]:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    bottom = BottomLine(deadline)

    class Bars(Progress):
        """Bars, and the line below them."""

        def get_renderables(self) -> Iterable[RenderableType]:
            """Yield the bars and the line."""
            yield from super().get_renderables()
            if line := str(bottom):
                yield Text(f"  {line}", style="dim", overflow="ellipsis", no_wrap=True)

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[step]}", style="dim", markup=False),
    )
    bars = Bars(*columns, console=Console(stderr=True), transient=True)
    display = Terminal(bars, bottom, verbose=verbose)
    with bars:
        yield display
        display.finish()
