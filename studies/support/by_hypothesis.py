"""Drive a Python program by Hypothesis for some seconds, and keep the inputs on which it did most: FOLDER PROGRAM SAMPLES SECONDS KEPT.

Inputs are texts, and tokens of the samples in any order. What is to be large is how many lines run, and the CPU time.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import itertools
import runpy
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies, target

from perfdiff.fuzzing.proposals import tokens

_MOST_KEPT = 50
_LONGEST_S = 5.0  # that an input may take, as others are to have their turn


class _Driven:
    """A program in this process, with the inputs on which it did most: (lines or CPU time, number, input)."""

    def __init__(self, folder: Path, program: str, seconds: float, room: Path) -> None:
        self.folder, self.program, self.input = str(folder), str(folder / program), room / "input"
        self.end = time.monotonic() + seconds
        self.numbers = itertools.count()
        self.lines = 0
        self.most: dict[str, list[tuple[float, int, bytes]]] = {"lines": [], "cpu": []}

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        self.lines += event == "line"
        return self.trace if frame.f_code.co_filename.startswith(self.folder) else None

    def run(self, text: str) -> None:
        if time.monotonic() > self.end:
            raise KeyboardInterrupt
        content = text.encode(errors="replace")
        self.input.write_bytes(content)
        sys.argv, self.lines, began = [self.program, str(self.input)], 0, time.process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit, TimeoutError):
            signal.setitimer(signal.ITIMER_REAL, _LONGEST_S)
            sys.settrace(self.trace)
            try:
                runpy.run_path(self.program, run_name="__main__")
            finally:
                sys.settrace(None)
                signal.setitimer(signal.ITIMER_REAL, 0)
        for kind, figure in (("lines", float(self.lines)), ("cpu", time.process_time() - began)):
            target(figure, label=kind)
            add = heapq.heappush if len(self.most[kind]) < _MOST_KEPT else heapq.heappushpop
            add(self.most[kind], (figure, next(self.numbers), content))


def _late(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    """Drive the program that the command line names, and print how many inputs were tried."""
    folder, program, samples, seconds, room = sys.argv[1:]
    driven = _Driven(Path(folder), program, float(seconds), Path(room))
    sys.path.insert(0, folder)
    signal.signal(signal.SIGALRM, _late)
    pieces = sorted({piece.decode() for path in Path(samples).iterdir() for piece in tokens(path.read_bytes())})
    texts = strategies.text() | strategies.lists(strategies.sampled_from(pieces)).map("".join)
    everything = settings(max_examples=10**9, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            everything(given(texts)(driven.run))()
    for number, (_, _, content) in enumerate(itertools.chain(*driven.most.values())):
        (Path(room) / f"kept-{number}").write_bytes(content)
    driven.input.unlink()
    print(next(driven.numbers) // 2)


main()
