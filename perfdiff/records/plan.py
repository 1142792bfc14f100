"""The plan file that tells a probed process what each of its probes does (format: `docs/architecture/records.md`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

_MAGIC = b"PDPLAN1\0"
_HEADER = struct.Struct("<8sII")
_ENTRY = struct.Struct("<BBHHHII")

SURVEY_SAMPLES = 16  # calls per run that tell how often a condition is met; their mean is all that is used
TALLY_PERIOD = 256  # of the calls looked at where all are only counted: at 30 ns a look, a tenth of a ns a call


class Mode(IntEnum):
    """What a probe does with a call."""

    OFF = 0
    COUNT = 1
    TIME = 2
    SAMPLE = 3


# Flags.
_DETAIL = 1  # counters of sampled calls: CPU time, page faults, context switches, events
_PASSING = 2  # calls between two timed ones pass without a look
_OWN = 4  # counters of every call, without those of probed callees
_LENGTHS = 8  # calls by their length, too
_RECURSIVE = 16  # sums come from the outermost calls; most of those inside pass without a look
_BRIEF = 32  # texts are read until it is known what that takes
_MARKED = 64  # calls between two timed ones have no entry on the shadow stack


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """What one probe does; `reservoir` is the number of calls kept per thread, `period` k times one call in k.

    With `passing`, the calls between are counted in sum alone: how many each caller made is estimated from the timed ones. With `marked`,
    they are counted by their callers, and what is timed below them is no part of the times of those around. With
    `detail` the counters of sampled calls are read, with `own` those of all calls, callees that are probed taken off. With `lengths`,
    calls are counted by their length. With `brief` texts are read up to some MB in all. With `inner`, a function that calls itself,
    and no other probed one that calls it, is measured by its outermost calls, for which all else holds; of the calls inside, one in
    `inner` is timed and kept, and the others pass.
    """

    mode: Mode
    period: int = 1
    detail: bool = False
    reservoir: int = 0
    features: int = 0
    branches: int = 0
    passing: bool = False
    marked: bool = False
    own: bool = False
    lengths: bool = False
    brief: bool = False
    inner: int = 0

    @classmethod
    def tally(cls) -> ProbePlan:
        """Return a plan that only counts calls, at about 1 ns each; a few are also kept, below which each callee is told its caller."""
        return cls(Mode.SAMPLE, TALLY_PERIOD, reservoir=SURVEY_SAMPLES, passing=True, brief=True)

    @classmethod
    def survey(cls, *, sampled: bool) -> ProbePlan:
        """Return a plan that counts and times calls; if `sampled`, it keeps a few, to learn what reading their inputs takes."""
        mode, reservoir = (Mode.SAMPLE, SURVEY_SAMPLES) if sampled else (Mode.TIME, 0)
        return cls(mode, reservoir=reservoir, lengths=True, brief=True)

    @classmethod
    def timed(cls, *, detail: bool, reservoir: int) -> ProbePlan:
        """Return a plan that counts and times calls, and keeps up to `reservoir` of them."""
        return cls(Mode.SAMPLE, detail=detail, reservoir=reservoir)

    @classmethod
    def counted(cls, *, reservoir: int) -> ProbePlan:
        """Count every call with its own counters, and keep up to `reservoir` of them."""
        return cls(Mode.SAMPLE, reservoir=reservoir, own=True)

    @classmethod
    def calls(cls) -> ProbePlan:
        """Return a plan that counts calls by caller."""
        return cls(Mode.COUNT)

    @classmethod
    def sums(cls) -> ProbePlan:
        """Count every call with its own counters, in sum alone."""
        return cls(Mode.TIME, own=True)

    def paced(self, *, period: int, passing: bool, inner: int, marked: bool) -> ProbePlan:
        """Return the entry with one call in `period` timed."""
        return replace(self, period=period, passing=passing, inner=inner, marked=marked)

    def sized(self, *, features: int, branches: int) -> ProbePlan:
        """Return the plan for a probe with a number of features and conditions."""
        return replace(self, features=features, branches=branches)


def turn(path: Path, rates: Mapping[int, tuple[int, bool]]) -> None:
    """Begin a new epoch of a plan by which processes may be running: from now on they keep other calls.

    Of the probes in `rates`, one call in a period is timed from then on, and with True the calls between pass; others go on as they did.
    """
    with path.open("r+b", buffering=0) as file:
        for number, (period, passing) in rates.items():
            place = _HEADER.size + number * _ENTRY.size
            file.seek(place)
            mode, flags, features, branches, inner, _, reservoir = _ENTRY.unpack(file.read(_ENTRY.size))
            flags = flags & ~_PASSING | _PASSING * passing
            file.seek(place)
            file.write(_ENTRY.pack(mode, flags, features, branches, inner, period, reservoir))
        file.seek(0)
        magic, size, epoch = _HEADER.unpack(file.read(_HEADER.size))
        file.seek(0)
        file.write(_HEADER.pack(magic, size, (epoch + 1) % 2**32))


def write(path: Path, entries: Mapping[int, ProbePlan]) -> None:
    """Write the plan of probes by number; numbers without an entry are off."""
    size = max(entries, default=0) + 1
    rows = bytearray(_HEADER.pack(_MAGIC, size, 0))
    for number in range(size):
        entry = entries.get(number, ProbePlan(Mode.OFF))
        flags = _DETAIL * entry.detail | _PASSING * entry.passing | _OWN * entry.own | _LENGTHS * entry.lengths
        flags |= _RECURSIVE * (entry.inner > 0) | _BRIEF * entry.brief | _MARKED * entry.marked
        rows += _ENTRY.pack(entry.mode, flags, entry.features, entry.branches, entry.inner, entry.period, entry.reservoir)
    path.write_bytes(rows)
