"""What a run did besides taking time: how it ended, what it printed and wrote, and which processes it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REST = "…"  # stands for the names of all files beyond those that are told apart
COLUMNS = 8  # of numbers are told apart in a `Sketch`


@dataclass(frozen=True, slots=True)
class Sketch:
    """A text by parts, so that some can be compared where others vary: digests between blanks, "" where a part has nothing.

    Lines are dealt to parts in turn. `texts` is without any numbers. `numbers` is without times, each line's numbers in `COLUMNS` parts
    beside each other. Of long texts `level` says how many times half of the lines were left out, the same ones of each text.
    """

    level: int
    texts: str
    numbers: str


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run wrote to one place: how much, and digests of it, the most specific one first.

    `exact` is of every byte. `timeless` is without times of day, durations and the numbers beside them, `unordered` that of the lines in
    any order, and `masked` of these without numbers. They are "" where there was more than is looked at so closely. `numbers` are digests
    of the first numbers that are no times. `sketch` is None where nobody made one. `unechoed` is
    the shape without times and what repeats the run's parameters, of a short text that repeats any.
    """

    lines: int
    bytes: int
    exact: str
    timeless: str
    masked: str
    unordered: str = ""
    numbers: tuple[str, ...] = ()
    sketch: Sketch | None = None
    unechoed: Shape | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What can be seen of one run from outside.

    `files` are those that it wrote in its tree, by their names without numbers; None where nobody looked. `written_bytes` is all that it
    and the processes that it waited for wrote anywhere: to files, pipes and sockets; None where the kernel does not tell. `left` are the
    names of processes that outlived it and were ended. `left_cpu_ns` is the CPU time of all processes that it did not wait for, which is
    part of the run's. `inputs` are the files that a setup had left in its tree before, but for programs; None where there was none.
    """

    exit_code: int
    output: Shape
    errors: Shape
    files: Mapping[str, Shape] | None = None
    written_bytes: int | None = None
    left: tuple[str, ...] = ()
    left_cpu_ns: float = 0.0
    inputs: Mapping[str, Shape] | None = None


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How much of a run was, and could have been, done at the same time.

    `several` is the share of its time in which two or more of its tasks ran or waited for a CPU. `wanted` is how many of them did so on
    average, no more than it may use CPUs; `ran` is how many CPUs it really used.
    """

    several: float
    wanted: float
    ran: float
