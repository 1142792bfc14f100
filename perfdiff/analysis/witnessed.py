"""What the runs of both sides did at a point, and how that differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from perfdiff.analysis.claims import Claim
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.schema import Point


@dataclass(frozen=True, slots=True)
class Amount:
    """The least and the most of something over several runs."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class OutputAmounts:
    """How many lines and bytes runs wrote to one place, and how many `runs` wrote there at all."""

    runs: int
    lines: Amount
    bytes: Amount


@dataclass(frozen=True, slots=True)
class SideBehaviour:
    """What the whole runs of one side did: how many ended with which exit code, what they wrote, and how many left processes.

    `elsewhere_bytes` is what they wrote neither to their standard streams nor to files of their tree, None where nobody knows. `left` are
    names of processes, `left_cpu_ns` is the most CPU time of processes that a run did not wait for. `concurrency` is that of an average
    run, None where nobody looked, or where runs of both sides took turns on one CPU, as only those of a single task do.
    """

    runs: int
    exit_codes: Mapping[int, int]
    output: OutputAmounts
    errors: OutputAmounts
    files: Mapping[str, OutputAmounts] = field(default_factory=dict)
    elsewhere_bytes: Amount | None = None
    leaving: int = 0
    left: tuple[str, ...] = ()
    left_cpu_ns: float = 0.0
    concurrency: Concurrency | None = None


class BehaviourDifferenceKind(StrEnum):
    """In what head's runs do something else than base's."""

    EXIT_CODE = "exit-code"
    PROCESSES_LEFT = "processes-left"
    OTHER_INPUTS = "other-inputs"
    ERRORS = "errors"
    LESS_OUTPUT = "less-output"
    LESS_FILES = "less-files"
    LESS_WORK = "less-work"
    LESS_ELSEWHERE = "less-elsewhere"
    FEWER_ERRORS = "fewer-errors"
    OTHER_OUTPUT = "other-output"
    OTHER_FILES = "other-files"
    OTHER_NUMBERS = "other-numbers"
    OTHER_ORDER = "other-order"

    @property
    def suggests_less_work(self) -> bool:
        """Return whether head probably does less, or other work, and does not only show something else."""
        return self in _LESS


_LESS = frozenset(
    (
        BehaviourDifferenceKind.EXIT_CODE,
        BehaviourDifferenceKind.PROCESSES_LEFT,
        BehaviourDifferenceKind.OTHER_INPUTS,
        BehaviourDifferenceKind.ERRORS,
        BehaviourDifferenceKind.LESS_OUTPUT,
        BehaviourDifferenceKind.LESS_FILES,
        BehaviourDifferenceKind.LESS_WORK,
    )
)


@dataclass(frozen=True, slots=True)
class BehaviourDifference:
    """In what head's runs do something else; what it `says` continues a sentence about head."""

    kind: BehaviourDifferenceKind
    says: Claim


@dataclass(frozen=True, slots=True)
class PointBehaviour:
    """What the whole runs of both sides did at a point. `checked`: a command of the user's has passed all of them."""

    point: Point
    base: SideBehaviour
    head: SideBehaviour
    differences: tuple[BehaviourDifference, ...] = ()
    checked: bool = False
