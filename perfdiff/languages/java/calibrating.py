"""What the way from Java to a probe costs on this machine: the runtime knows its own part of a probe's cost, not how it is called."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from perfdiff import temporary
from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.java import start, weaving
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.java.weaving import ProbedMethod
from perfdiff.records import plan, recording
from perfdiff.records.arrays import Floats
from perfdiff.records.plan import Mode, ProbePlan

_SOURCE = Path(__file__).parent / "calibration" / "Calibrated.java"
_CALLED, _BATCH = 1, 2
_CALLS = 2000  # of a batch, as the source has it
_METHODS = (
    ProbedMethod(_CALLED, "Calibrated.called", "Calibrated called (I)I", ()),
    ProbedMethod(_BATCH, "Calibrated.batch", "Calibrated batch ()V", ()),
)
_KINDS = {"counted": ProbePlan(Mode.COUNT), "timed": ProbePlan(Mode.TIME), "passed": ProbePlan(Mode.TIME, period=256, passing=True)}
_WARM = 0.5  # of the batches, which the JVM may run interpreted, or compiled in a first way
_QUIET = 0.25  # the quantile of the batches that counts: whatever disturbs one only makes it slower
_RUNS = 3  # their median counts: a machine may be busy for as long as a run
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class JvmProbeCosts:
    """What a call's probe costs its caller beyond what the runtime knows, in ns; `inside` is the part between its time stamps."""

    counted_ns: float
    timed_ns: float
    inside_ns: float
    passed_ns: float

    @property
    def text(self) -> str:
        """Return the costs as the agent's option has them: whole picoseconds, parted by blanks."""
        return " ".join(f"{1e3 * cost:.0f}" for cost in (self.counted_ns, self.timed_ns, self.inside_ns, self.passed_ns))


@dataclass(frozen=True, slots=True)
class _Batches:
    wall_ns: Floats
    self_ns: Floats


def measure(jdk: Jdk, agent: Path, cache: Path) -> JvmProbeCosts:
    """Return the costs under a JDK, measuring them at the first call; raise BuildError where its JVM does not run the agent."""
    folder = compiled.kept(cache, f"java-costs-{agent.parent.name.rpartition('-')[2]}", partial(_make, jdk, agent, cache))
    return JvmProbeCosts(*(float(cost) / 1e3 for cost in (folder / "costs").read_text().split()))


def _make(jdk: Jdk, agent: Path, cache: Path, folder: Path) -> None:
    compiled.run([str(jdk.javac), "-J-XX:TieredStopAtLevel=1", "-d", str(folder), str(_SOURCE)])
    sheet = weaving.weave(jdk, folder, _METHODS, cache)
    variables = start.environment(sheet, agent)
    rounds = [{name: _run(jdk, folder, variables, entry) for name, entry in _KINDS.items()} for _ in range(_RUNS)]
    whole = {name: statistics.median(_per_call(runs[name].wall_ns) for runs in rounds) for name in _KINDS}
    inside = statistics.median(_per_call(runs["timed"].wall_ns - runs["timed"].self_ns) for runs in rounds)
    (folder / "costs").write_text(JvmProbeCosts(whole["counted"], whole["timed"], inside, whole["passed"]).text)


def _run(jdk: Jdk, classes: Path, variables: Mapping[str, str], entry: ProbePlan) -> _Batches:
    """Return the batches of a run once all is compiled."""
    with temporary.folder() as out:
        plan.write(out / "plan", {_CALLED: entry, _BATCH: ProbePlan(Mode.SAMPLE, reservoir=1 << 14)})
        steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(out / "plan"), "PERFDIFF_SEED": "1", "LC_ALL": "C.UTF-8"}
        command = [str(jdk.java), "-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp", str(classes), "Calibrated"]
        try:
            subprocess.run(command, env={**steering, **variables}, capture_output=True, check=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise BuildError(f"what probes cost under Java {jdk.release} cannot be measured: {error}", slug="java-helper-failed") from error
        recordings = [recording.read(path) for path in out.glob("*.pdrec")]
    if len(recordings) != 1 or _BATCH not in recordings[0].samples:
        raise BuildError(f"the JVM of {jdk.home} does not run methods with probes", slug="java-helper-failed")
    samples = recordings[0].samples[_BATCH]
    is_warm = samples.call > _WARM * samples.call.max()
    return _Batches(samples.wall_ns[is_warm], samples.self_ns[is_warm])


def _per_call(batches_ns: Floats) -> float:
    """Return what a call costs in a quiet batch."""
    return max(float(np.nanquantile(batches_ns, _QUIET)), 0.0) / _CALLS
