"""What the reader must know of the runs before believing their figures."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from perfdiff import units
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.choosing.survey import ProbeChoice
from perfdiff.deadline import Deadline, Ending
from perfdiff.errors import PerfdiffError, RunFailedError
from perfdiff.records.schema import Note, Phase, Point, Run, Side

# Sizes that lie so many times apart are meant to show growth. Where runs of the largest take so little longer than of the smallest, four
# fifths of each and more do not follow it.
_APART, _ALIKE = 4.0, 1.25
# A number with a unit, or the ends of a range: what people write for sizes, and perfdiff hands on as a text.
_LIKE_SIZES = re.compile(r"\d+(?:\.\d+)?[kKmMgG](?:i?[bB])?|\d+(?:\.\.\.?|:)\d+")
# What a crash by SIGSEGV with probes alone most often comes from.
_WHY_CRASHED = (
    "a likely cause is deep recursion, as functions with probes have no tail calls, so that it takes more stack: start perfdiff behind "
    "`ulimit -s unlimited`; programs that are linked without libc cannot hold probes"
)
_SHOWN = 3  # names that a sentence lists before it only counts


def texts_not_read(subjects: Subjects, choices: Sequence[ProbeChoice], share: float) -> tuple[Note, ...]:
    """Tell of which functions the lengths of texts are no features, because reading them would take more than this `share` of a run."""
    names = subjects.unread(choices)
    if not names:
        return ()
    shown = units.listed([f"`{name}`" for name in names], _SHOWN)
    text = f"texts and files of {shown} are not read, as that would take more than {100 * share:g} % of a run; their sizes explain no cost"
    return (Note("texts-not-read", text),)


def layouts_missing(notes: Mapping[Side, Sequence[Note]]) -> tuple[Note, ...]:
    """Tell what could not be had in other layouts: once where it is the same on both sides, else with the side."""
    distinct = list(dict.fromkeys(note for side_notes in notes.values() for note in side_notes))
    sides = {note: [side for side in notes if note in notes[side]] for note in distinct}
    return tuple(note if len(sides[note]) == len(notes) else Note(note.slug, f"{sides[note][0]}: {note.text}") for note in distinct)


def sizes_not_felt(runs: Iterable[Run], points: Sequence[Point]) -> tuple[Note, ...]:
    """Tell which workloads take about as long at sizes that lie far apart: most of a run is its start, whatever the inputs are."""
    cpu_ns: dict[int, list[float]] = {}
    for run in runs:
        if run.phase is Phase.PLAIN:
            cpu_ns.setdefault(run.point, []).append(run.cpu_ns)
    remarks = []
    for workload in dict.fromkeys(point.workload for point in points):
        own = [point for point in points if point.workload == workload]
        took = sorted((float(np.median(cpu_ns[point.id])), point.label) for point in own if point.id in cpu_ns)
        if _are_apart([point.parameters for point in own]) and len(took) == len(own) and took[-1][0] <= _ALIKE * took[0][0]:
            text = (
                f"runs of {workload} take about as long whatever their size, {units.duration(took[0][0])} of CPU time at {took[0][1]} and "
                f"{units.duration(took[-1][0])} at {took[-1][1]}: starting, and importing, is most of them; larger sizes show more"
            )
            remarks.append(Note("sizes-not-felt", text))
    return tuple(remarks)


def sizes_as_texts(points: Sequence[Point]) -> tuple[Note, ...]:
    """Tell which parameters look like sizes and are no numbers, so that no growth is told over them."""
    values: dict[str, list[str]] = {}
    for name, value in ((name, value) for point in points for name, value in point.parameters.items() if isinstance(value, str)):
        values.setdefault(name, []).append(value)
    return tuple(
        Note(
            "sizes-as-texts",
            f"values of {name} are handed on as texts ({units.listed([*dict.fromkeys(texts)], _SHOWN)}), so no growth is told over it: "
            f"if they are sizes, write each as a number, such as {name}=1000,3000",
        )
        for name, texts in values.items()
        if all(_LIKE_SIZES.fullmatch(text) for text in texts)
    )


def _are_apart(points: Sequence[Mapping[str, float | str]]) -> bool:
    """Return whether a parameter of these points is a size, with values that lie far apart."""
    sizes = ([point[name] for point in points] for name in points[0])
    numbers = ([value for value in values if isinstance(value, int | float) and value > 0] for values in sizes)
    return any(max(values) >= _APART * min(values) for values in numbers if len(values) == len(points))


def calls_not_timed(why: PerfdiffError) -> Note:
    """Say that whole runs and counts alone answer, as builds with probes cannot be made or run."""
    likely = f"; {_WHY_CRASHED}" if isinstance(why, RunFailedError) and signal.SIGSEGV.name in str(why) else ""
    return Note("calls-not-timed", f"no calls were timed, so that whole runs and counts alone answer: {why}{likely}")


def cut_short(deadline: Deadline, stage: str, missing: Sequence[str]) -> Note:
    """Return the note that measuring was cut short: by what, in which stage, and what is `missing`."""
    time_s = units.duration(1e9 * (deadline.time_s or 0.0))
    match deadline.ending:
        case Ending.INTERRUPTED | Ending.TERMINATED:
            how = f"measuring was {deadline.ending.value} in the stage '{stage}'"
        case Ending.TIME:
            how = f"the comparison's time of {time_s} was over in the stage '{stage}'"
        case None:
            how = f"the comparison's time of {time_s} did not suffice for all stages"
    return Note("cut-short", f"{how}, so that this is the answer so far{''.join(f'; {lack}' for lack in missing)}")


def whole_runs_alone() -> Note:
    """Tell that nobody asked for more than whole runs."""
    text = "whole runs alone were compared, as --fast or measure.fast asks: without it, perfdiff says which function takes longer, and why"
    return Note("whole-runs-alone", text)


def recordings_incomplete(runs: Sequence[Run], points: Sequence[Point]) -> tuple[Note, ...]:
    """Tell where a process did not record to its end although its workload succeeded."""
    if not runs:
        return ()
    cut_short = {run.point for run in runs}
    where = units.listed([point.label for point in points if point.id in cut_short], _SHOWN)
    text = (
        f"in {len(runs)} runs ({where}) a process was killed or could not write on: calls that had not ended are not in the figures; let "
        "it end by exit or return"
    )
    return (Note("recording-incomplete", text),)


def trees_written(written: Mapping[str, Sequence[str]], workloads: Collection[str]) -> tuple[Note, ...]:
    """Tell which of the workloads write into the tree they run in, by the paths that each wrote to, without those that git keeps.

    What listings of suites write is nobody's concern: they are no runs that are compared.
    """
    of_workloads = sorted((name, paths) for name, paths in written.items() if name in workloads)
    shown = {name: own for name, paths in of_workloads if (own := [path for path in paths if ".git" not in path.split("/")])}
    return tuple(
        Note(
            "workload-writes-tree",
            f"workload {name} writes into its tree ({units.listed(paths, _SHOWN)}): what it changes there is undone before each run",
        )
        for name, paths in shown.items()
    )


def byte_code_left(left: Mapping[Side, Collection[str] | None]) -> tuple[Note, ...]:
    """Return a note if runs of one side alone leave no byte code; `left` are the compiled modules, None if it imports none."""
    leaving = [(side, names) for side, names in left.items() if names]
    lacking = [side for side, names in left.items() if names is not None and not names]
    if len(leaving) != 1 or len(lacking) != 1:
        return ()
    [(side, names)], [other] = leaving, lacking
    text = (
        f"runs of {other} leave no byte code of modules that they import, as those of {side} do "
        f"({units.listed(sorted(names), _SHOWN)}): each run compiles them again, as it does for users"
    )
    return (Note("byte-code-not-left", text),)


def processes_stay(names: Sequence[str]) -> tuple[Note, ...]:
    """Tell of processes that builds or workloads left, and that may not be killed: what they do takes time from all later runs."""
    if not names:
        return ()
    left = units.listed(names, _SHOWN)
    return (
        Note("processes-stay", f"builds or workloads left processes of another user that may not be killed and go on beside runs: {left}"),
    )
