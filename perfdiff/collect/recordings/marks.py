"""What each test of one run called: the driver that runs them marks where each ends, and the probes' runtime counts from mark to mark.

A mark is a line of a file, as `languages/c/runtime/marks.c` writes it. What other processes called is that of the test in whose time they
began; where a shell runs commands one after the other, all is, and it marks them itself.
"""

from __future__ import annotations

import bisect
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.records.recording import Recording

WANTED, LIMIT_S = "PERFDIFF_MARKS", "PERFDIFF_MARKS_S"  # variables: the file of marks, and for how many seconds tests may begin
_START, _PASSED, _FAILED = "start", "passed", "failed"
_SHELL = 0  # in place of the process, where a shell marks
_SCRIPT = """\
mark() {{ printf '{process} %s\\t\\t%s\\n' "$(date +%s%N)" "$1" >> "${file}"; }}
began=$(date +%s)
mark {start}
"""
_STEP = """\
if [ $(($(date +%s) - began)) -lt "${{{limit}%.*}}" ]; then
{command}
if [ $? = 0 ]; then mark {passed}; else mark {failed}; fi
fi
"""

Calls = Mapping[int, float]  # by the number of the function


@dataclass(frozen=True, slots=True)
class MarkedRun:
    """What a run of tests called: by each of those that `passed`, by its name and for one run of it, and before the first one."""

    passed: Mapping[str, Calls]
    failed: frozenset[str]
    start: Calls


@dataclass(frozen=True, slots=True)
class _Mark:
    process: int
    unix_ns: int
    calls: Counter[int]
    state: str
    name: str


def script(commands: Mapping[str, str]) -> str:
    """Return what has a shell run commands one after the other, whichever fail, and mark where each ends, by its name."""
    steps = (
        _STEP.format(
            limit=LIMIT_S,
            command=command,
            passed=shlex.quote(f"{_PASSED} {name}"),
            failed=shlex.quote(f"{_FAILED} {name}"),
        )
        for name, command in commands.items()
    )
    return "".join((_SCRIPT.format(process=_SHELL, file=WANTED, start=_START), *steps))


def read(file: Path, recordings: Sequence[Recording]) -> MarkedRun | None:
    """Return what the marks in a file tell, with the recordings of the run's processes; None where there are none."""
    try:
        lines = file.read_text(errors="replace").split("\n")[:-1]  # what a killed process did not end is no line
        marks = list(_last_run([_mark(line) for line in lines]))
    except (OSError, ValueError):
        return None
    if not marks:
        return None
    if marks[0].process == _SHELL and not recordings:  # of a run that was ended nothing is there to be told apart
        return None
    _add_children(marks, recordings)
    calls: dict[str, Counter[int]] = {}
    for mark in marks:
        calls.setdefault(mark.name, Counter()).update(mark.calls)
    runs = Counter(mark.name for mark in marks if mark.state == _PASSED)
    failed = frozenset(mark.name for mark in marks if mark.state == _FAILED)
    start = calls.pop("", Counter())
    passed = {
        name: {function: count / runs[name] for function, count in own.items()}
        for name, own in calls.items()
        if runs[name] and name not in failed
    }
    return MarkedRun(passed, failed, {function: float(count) for function, count in start.items()})


def _mark(line: str) -> _Mark:
    """Return the mark of a line; raise ValueError where it is none."""
    moment, pairs, text = line.split("\t")
    process, unix_ns = map(int, moment.split())
    numbers = list(map(int, pairs.split()))
    state, _, name = text.partition(" ")
    return _Mark(process, unix_ns, Counter(dict(zip(numbers[::2], numbers[1::2], strict=True))), state, name)


def _last_run(marks: Sequence[_Mark]) -> Iterator[_Mark]:
    """Yield the marks from the last start on: a run whose code was compiled by it is made again."""
    starts = [place for place, mark in enumerate(marks) if mark.state == _START]
    if starts:
        yield from marks[starts[-1] :]


def _add_children(marks: Sequence[_Mark], recordings: Sequence[Recording]) -> None:
    moments = [mark.unix_ns for mark in marks]
    for recording in recordings:
        if recording.pid == marks[0].process or recording.started_unix_ns is None:
            continue
        place = bisect.bisect_left(moments, recording.started_unix_ns)
        if place < len(marks):
            counts = zip(recording.totals.probe.tolist(), recording.totals.calls.tolist(), strict=True)
            marks[place].calls.update({function: int(count) for function, count in counts})
