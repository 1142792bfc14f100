"""What the requests of a run took, on its way from the load to who asked for it."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.config import RequestMix
from perfdiff.errors import WorkloadError
from perfdiff.load.client import RequestOutcome
from perfdiff.load.plan import Planned
from perfdiff.records import codec
from perfdiff.records.requests import RequestTimes

_TAIL = 0.95


@dataclass(frozen=True, slots=True)
class Results:
    """How long requests were under way, what those of each kind took, and a digest of all that was answered.

    `late_ns` is for how long client and servers waited for a CPU meanwhile, as far as that is known.
    """

    elapsed_ns: float
    kinds: tuple[RequestTimes, ...]
    answered: str
    late_ns: float = 0.0


def results(
    mix: RequestMix, requests: Sequence[Planned], answers: Sequence[RequestOutcome], elapsed_ns: float, late_ns: float = 0.0
) -> Results:
    """Return the times of the requests of each kind; failed ones have no time."""
    kinds = []
    for kind, config in enumerate(mix.requests):
        own = [(request, answer) for request, answer in zip(requests, answers, strict=True) if request.kind == kind]
        if not own:
            continue
        latencies = sorted(answer.latency_ns for _, answer in own if not answer.failure)
        failed = [(request, answer) for request, answer in own if answer.failure]
        kinds.append(
            RequestTimes(
                name=config.name,
                made=len(own),
                failed=dict(Counter(answer.failure for _, answer in failed)),
                example=f"{failed[0][0].method} {failed[0][0].target}" if failed else "",
                median_ns=float(statistics.median(latencies)) if latencies else None,
                tail_ns=float(latencies[int(_TAIL * (len(latencies) - 1))]) if latencies else None,
            )
        )
    return Results(elapsed_ns, tuple(kinds), _digest(answers), late_ns)


def _digest(answers: Sequence[RequestOutcome]) -> str:
    """Return a digest of all that was answered."""
    whole = hashlib.blake2b(digest_size=16)
    for answer in answers:
        whole.update(f"{answer.status} {answer.failure} {answer.size}\n".encode() + answer.digest)
    return whole.hexdigest()


def write(path: Path, results: Results) -> None:
    """Write results."""
    path.write_text(json.dumps(codec.encode(results)))


def read(path: Path) -> Results:
    """Read results; raise WorkloadError where there are none."""
    try:
        return codec.decode(Results, json.loads(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise WorkloadError(f"the load left no results in {path}: {error}", slug="workload-failed") from error
