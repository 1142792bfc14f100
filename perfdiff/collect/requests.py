"""Runs that are made of requests: what the load is told, what it tells, and requests that fail on one side only."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import perfdiff
from perfdiff.collect.executor import Execution
from perfdiff.config import RequestMix
from perfdiff.errors import WorkloadError
from perfdiff.load import results
from perfdiff.records import codec
from perfdiff.records.requests import RequestTimes
from perfdiff.records.schema import Note, Point, Side

_MIX, _RESULTS = "requests.mix", "requests.results"


def command(mix: RequestMix, folder: Path) -> str:
    """Return the command that sends the requests of a run, for which `folder` will be there."""
    words = [sys.executable, "-P", "-m", "perfdiff.load", str(folder / _MIX), str(folder / _RESULTS)]
    return f"{shlex.join(words)} {mix.url}"


def environment() -> Mapping[str, str]:
    """Return the variables by which the load finds perfdiff, wherever it runs."""
    return {"PYTHONPATH": str(Path(perfdiff.__file__).parent.parent)}


def leave(mix: RequestMix, values: Mapping[str, float | str], folder: Path) -> None:
    """Leave what the load reads."""
    (folder / _MIX).write_text(json.dumps({"mix": codec.encode(mix), "values": dict(values)}))


def taken(execution: Execution, folder: Path) -> Execution:
    """Return a run with what its requests took; its time is from the first one on to the last answer. Raise WorkloadError."""
    found = results.read(folder / _RESULTS)
    return replace(execution, wall_ns=found.elapsed_ns, requests=found.kinds)


@dataclass(slots=True)
class Failures:
    """Which requests failed so far, at each point on each side; what fails there does other work, which has no time to compare."""

    notes: dict[Note, None] = field(default_factory=dict)
    _seen: dict[tuple[int, Side], Mapping[str, RequestTimes]] = field(default_factory=dict)

    def add(self, point: Point, side: Side, requests: tuple[RequestTimes, ...]) -> None:
        """Take notice of a run; raise WorkloadError where others fail than on the other side, or than before."""
        found = {each.name: each for each in requests}
        other_side = Side.HEAD if side is Side.BASE else Side.BASE
        earlier = self._seen.setdefault((point.id, side), found)
        _require_equal(found, side, earlier, f"an earlier run of {side}", point)
        if beside := self._seen.get((point.id, other_side)):
            _require_equal(found, side, beside, other_side, point)
        for kind in requests:
            if kind.failed and self._seen.get((point.id, other_side)):
                remedy = "if the answer is right, list its status in 'expect'"
                text = f"{_says(kind)} on both sides ({point.label}): these have no times; {remedy}"
                self.notes[Note("requests-failed", text)] = None


def _require_equal(found: Mapping[str, RequestTimes], who: str, others: Mapping[str, RequestTimes], other: str, point: Point) -> None:
    """Raise WorkloadError where requests of one kind fail otherwise in two runs; the one with more failures is named first."""
    for name in found.keys() & others.keys():
        if found[name].failed == others[name].failed:
            continue
        pair = sorted([(found[name], who), (others[name], other)], key=lambda each: -sum(each[0].failed.values()))
        (worse, first), (better, second) = pair
        raise WorkloadError(
            f"{first} {_says(worse)}, {second} fails {sum(better.failed.values()) or 'none'} of them ({point.label}): what fails does "
            "other work, so that times say nothing; send such a request by hand, or list the status in 'expect' if both answers are right",
            slug="requests-failed-on-one-side",
        )


def _says(kind: RequestTimes) -> str:
    """Say how requests failed: `answers 500 to GET /x, 12 of 40 requests 'list'`."""
    reason = max(kind.failed, key=lambda each: kind.failed[each])
    how = f"answers {reason} to" if reason.isdigit() else f"fails ({reason}) at"
    return f"{how} {kind.example}, {sum(kind.failed.values()):,} of {kind.made:,} requests '{kind.name}'"
