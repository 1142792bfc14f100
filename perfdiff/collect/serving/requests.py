"""Runs that are made of requests: what the load is told, what it tells, and requests that fail on one side only."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import perfdiff
from perfdiff.collect.execution.executor import Execution
from perfdiff.config import RequestMix
from perfdiff.errors import WorkloadError
from perfdiff.load import results
from perfdiff.records import codec
from perfdiff.records.behaviour import Shape
from perfdiff.records.requests import RequestTimes
from perfdiff.records.schema import Note, Point, Side

_MIX, _RESULTS = "requests.mix", "requests.results"
_LEAST = 0.1  # of the time of requests is never a wait for a CPU: the kernel's clocks differ from ours
_LOAD = shlex.join([sys.executable, "-P", "-m", "perfdiff.load"])


def command(mix: RequestMix, folder: Path) -> str:
    """Return the command that sends the requests of a run, for which `folder` will be there."""
    return f"{_LOAD} {shlex.join([str(folder / _MIX), str(folder / _RESULTS)])} {mix.url}"


def in_turns(commands: Sequence[str]) -> str:
    """Return the command that sends the requests of several runs, one of each in turn."""
    return " ".join([commands[0], *(command.removeprefix(_LOAD).lstrip() for command in commands[1:])])


def environment() -> Mapping[str, str]:
    """Return the variables by which the load finds perfdiff, wherever it runs."""
    return {"PYTHONPATH": str(Path(perfdiff.__file__).parent.parent)}


def leave(mix: RequestMix, values: Mapping[str, float | str], servers: Sequence[int], folder: Path) -> None:
    """Leave what the load reads; `servers` are the processes that answer."""
    (folder / _MIX).write_text(json.dumps({"mix": codec.encode(mix), "values": dict(values), "servers": servers}))


def taken(execution: Execution, folder: Path) -> Execution:
    """Return a run with what its requests took and how they were answered, which stands for what it prints; raise WorkloadError.

    Its time is that in which requests were under way; of those in turns, without what client and services waited for a CPU meanwhile. Where
    both were ready at once, some of that is counted twice, on both sides alike.
    """
    load = results.read(folder / _RESULTS)
    wall_ns = max(load.elapsed_ns - load.late_ns, _LEAST * load.elapsed_ns)
    behaviour = execution.behaviour
    if behaviour is not None:
        answers = Shape(sum(kind.made for kind in load.kinds), 0, load.answered, "", "")
        behaviour = replace(behaviour, output=answers)
    return replace(execution, wall_ns=wall_ns, output=load.answered, requests=load.kinds, behaviour=behaviour)


@dataclass(frozen=True, slots=True)
class _Answered:
    """How the requests of a run were answered, by kind; `who` made it, and `printed` is what its services said where some failed."""

    who: str
    kinds: Mapping[str, RequestTimes]
    printed: str

    def failures(self, name: str) -> int:
        """Return how many requests of a kind failed."""
        return sum(self.kinds[name].failed.values())


@dataclass(slots=True)
class Failures:
    """Which requests failed so far, at each point on each side; what fails there does other work, which has no time to compare."""

    notes: dict[Note, None] = field(default_factory=dict)
    _seen: dict[tuple[int, Side], _Answered] = field(default_factory=dict)

    def add(self, point: Point, side: Side, requests: tuple[RequestTimes, ...], printed: str = "") -> None:
        """Take notice of a run and what its services printed; raise WorkloadError where all fail, or others than elsewhere or before."""
        answered = _Answered(side, {request.name: request for request in requests}, printed)
        other_side = Side.HEAD if side is Side.BASE else Side.BASE
        earlier = self._seen.setdefault((point.id, side), answered)
        _require_equal(answered, replace(earlier, who=f"an earlier run of {side}"), point)
        if beside := self._seen.get((point.id, other_side)):
            _require_equal(answered, beside, point)
            if all(answered.failures(kind.name) == kind.made for kind in requests):
                _fail(answered, requests, point)
        for kind in requests:
            if kind.failed and self._seen.get((point.id, other_side)):
                remedy = "if the answer is right, list its status in 'expect'"
                text = f"{_says(kind)} on both sides ({point.label}): these have no times; {remedy}"
                self.notes[Note("requests-failed", text)] = None


def _fail(run: _Answered, requests: Sequence[RequestTimes], point: Point) -> None:
    """Raise WorkloadError, as nothing that was asked for was answered on either side."""
    said = "; ".join(_says(kind) for kind in requests)
    raise WorkloadError(
        f"no request succeeds, on both sides: {run.who} {said} ({point.label}); send one by hand to the service as it is started here, "
        "or list the status in 'expect' if it is right",
        slug="requests-failed",
        detail=run.printed,
    )


def _require_equal(run: _Answered, other: _Answered, point: Point) -> None:
    """Raise WorkloadError where requests of one kind fail otherwise in two runs; the one with more failures is named first."""
    for name in run.kinds.keys() & other.kinds.keys():
        if run.kinds[name].failed == other.kinds[name].failed:
            continue
        worse, better = sorted((run, other), key=lambda answered: -answered.failures(name))
        raise WorkloadError(
            f"{worse.who} {_says(worse.kinds[name])}, {better.who} fails {better.failures(name) or 'none'} of them ({point.label}): what "
            "fails does other work, so that times say nothing; send such a request by hand, or list the status in 'expect' if both answers "
            "are right",
            slug="requests-failed-on-one-side",
            detail=worse.printed,
        )


def _says(kind: RequestTimes) -> str:
    """Say how requests failed: `answers 500 to GET /x, 12 of 40 requests 'list'`."""
    reason = max(kind.failed, key=lambda failure: kind.failed[failure])
    how = f"answers {reason} to" if reason.isdigit() else f"fails ({reason}) at"
    return f"{how} {kind.example}, {sum(kind.failed.values()):,} of {kind.made:,} requests '{kind.name}'"
