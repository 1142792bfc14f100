"""Hardware events through the real libpapi: on an emulated arm64 machine, whose PMU counts exactly, and on this machine's where it has one.

This is also where the runtime is tested on aarch64: shared library, interposed functions, recording and all.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import emulated_machine
from emulated_machine import Job
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.hosts import machine
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.config import CompareConfig
from perfdiff.languages.c import runtime_library
from perfdiff.languages.c.index import index
from perfdiff.languages.c.matching import match
from perfdiff.languages.c.probes import insert
from perfdiff.languages.protocol import CompileCommand, Probe
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Experiment, Phase, Point, Revision, Run, SampleTable, Side, Workload

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).parent / "emulated" / "program.c"
INSTRUCTIONS, CYCLES = "PAPI_TOT_INS", "PAPI_TOT_CYC"
EVENTS = (INSTRUCTIONS, CYCLES)
SIZES = (300, 1000, 3000)
RUNS = 5
# Instructions a round of each loop, as the source has them.
SCAN, PARSE, SLOWER_PARSE = 4, 3, 4
# What a function has beside its loop: to be called, its prologue, its return.
AROUND = 20
LOOKED = 1000  # at most, for a look at the clocks at the end of a call that was interrupted for so long that it seems long
# What it costs a caller to call one of them, its probe's reading of the argument included; the probe's reading of counters takes 1700.
CALL = 50
# Paths through three probes that differ by single instructions.
FEW = 6


@dataclass(frozen=True, slots=True)
class Place:
    """Where programs run. `exact`: its counts are the same in every run, to the last one."""

    compiler: str
    exact: bool
    run: Callable[[Mapping[Side, Path], Path, Sequence[Run], Path], dict[int, list[Recording]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A base and a head that were run, with the pairs of their functions by number."""

    place: Place
    subjects: Subjects
    probes: Mapping[Side, Mapping[int, Probe]]
    runs: tuple[Run, ...]
    recordings: Mapping[int, list[Recording]]

    def number(self, name: str) -> int:
        return next(number for number, pair in self.subjects.pairs.items() if pair.base and pair.base.name == name)

    def counted(self, name: str, event: str, side: Side) -> dict[int, list[float]]:
        """Return the values that an event had in calls of a function, by their argument.

        Without the first call, in which the dynamic linker looks up the end of a probe.
        """
        found: dict[int, list[float]] = {}
        for run in self.runs:
            if run.side is side:
                (record,) = self.recordings[run.id]
                samples = record.samples[self.number(name)].rows(record.samples[self.number(name)].call > 1)
                for n, value in zip(samples.cells[:, 0].astype(int).tolist(), samples.counters[event].tolist(), strict=True):
                    found.setdefault(n, []).append(value)
        return found


POINTS = tuple(Point(number, "serve", {"n": float(size)}, f"program {size}") for number, size in enumerate(SIZES))


def size_of(run: Run) -> str:
    return f"{POINTS[run.point].parameters['n']:.0f}"


def steering(out: Path | str, plan_file: Path | str, run: Run) -> dict[str, str]:
    return {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(plan_file), "PERFDIFF_SEED": str(run.id), "PERFDIFF_EVENTS": ",".join(EVENTS)}


def emulate(programs: Mapping[Side, Path], plan_file: Path, runs: Sequence[Run], folder: Path) -> dict[int, list[Recording]]:
    """Run everything in one boot of the emulated machine."""
    library = runtime_library.build(emulated_machine.COMPILER, folder)
    jobs = [Job(str(run.id), (f"/bin/{run.side}", size_of(run)), steering("/out", "/plan", run)) for run in runs]
    files = {"/lib/libperfdiff.so": library / "libperfdiff.so", "/plan": plan_file}
    results = emulated_machine.run(folder, {**files, **{f"/bin/{side}": path for side, path in programs.items()}}, jobs)
    found = {}
    for run in runs:
        result = results[str(run.id)]
        assert result.status == 0, result
        found[run.id] = [read(content, folder / f"{run.id}.pdrec") for content in result.files]
    return found


def read(content: bytes, path: Path) -> Recording:
    path.write_bytes(content)
    return recording.read(path)


def run_here(programs: Mapping[Side, Path], plan_file: Path, runs: Sequence[Run], folder: Path) -> dict[int, list[Recording]]:
    """Run everything on this machine."""
    library = runtime_library.build("gcc", folder)
    found = {}
    for run in runs:
        out = folder / f"out-{run.id}"
        out.mkdir()
        variables = os.environ | steering(out, plan_file, run) | {"LD_LIBRARY_PATH": str(library)}
        subprocess.run([programs[run.side], size_of(run)], env=variables, check=True)
        found[run.id] = [recording.read(path) for path in out.glob("*.pdrec")]
    return found


@pytest.fixture(scope="module", params=["emulated", "here"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "emulated":
        if not emulated_machine.available():
            pytest.skip(str(emulated_machine.packages()))
        return Place(emulated_machine.COMPILER, True, emulate)
    if machine.pmu() is not Pmu.PRESENT:
        pytest.skip("this machine has no PMU that we may use")
    return Place("gcc", False, run_here)


@pytest.fixture(scope="module")
def measured(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Measure both versions: probes by the rewriter, functions paired by the matcher, every run a process of its own."""
    folder = tmp_path_factory.mktemp("measured")
    programs = {}
    for side in Side:
        tree = folder / side
        tree.mkdir()
        text = PROGRAM.read_text()
        (tree / "program.c").write_text(text if side is Side.BASE else text.replace('PARSE "nop\\n "', 'PARSE "nop\\n nop\\n "'))
        command = CompileCommand(tree / "program.c", tree, "gcc", ("-O2", "-c", str(tree / "program.c")), False)
        programs[side] = index(tree, [command], depth=1, workers=1)
    subjects = Subjects.number(match(programs[Side.BASE], programs[Side.HEAD]))
    probes = {
        side: {number: replace(probe, features=(0,), branches=()) for number, probe in subjects.survey_probes(side, subjects.pairs).items()}
        for side in Side
    }
    built = {side: build(place.compiler, folder, side, tuple(probes[side].values())) for side in Side}
    plan.write(folder / "plan", dict.fromkeys(subjects.pairs, ProbePlan(Mode.SAMPLE, 1, True, 1000, 1, 0)))
    runs = tuple(
        Run(1 + 2 * (block * len(POINTS) + point.id) + order, Phase.TIMED, point.id, side, block, 1e6, 1e6, 1e6, 0.0, 0.0, "same")
        for block in range(RUNS)
        for point in POINTS
        for order, side in enumerate(Side)
    )
    return Measured(place, subjects, probes, runs, place.run(built, folder / "plan", runs, folder))


def build(compiler: str, folder: Path, side: Side, probes: Sequence[Probe]) -> Path:
    tree, path = folder / side, folder / f"program-{side}"
    header = insert(tree, probes)
    library = runtime_library.build(compiler, folder)
    flags = ("-O2", "-include", header, "-isystem", library, tree / "program.c", "-o", path, "-L", library, "-lperfdiff")
    subprocess.run([compiler, *flags], check=True)
    return path


def test_every_process_records_its_events_and_ends_its_recording(measured: Measured) -> None:
    for run in measured.runs:
        (record,) = measured.recordings[run.id]
        assert record.complete
        assert set(EVENTS) <= set(record.samples[measured.number("scan")].counters)
        assert not record.multiplexed


@pytest.mark.parametrize(
    ("name", "side", "expected"),
    [("scan", Side.BASE, SCAN), ("parse", Side.BASE, PARSE), ("parse", Side.HEAD, SLOWER_PARSE)],
)
def test_instructions_of_a_call_are_those_of_its_loop(measured: Measured, name: str, side: Side, expected: int) -> None:
    counted = measured.counted(name, INSTRUCTIONS, side)
    assert len(counted) >= 100
    for n, values in counted.items():
        around = np.array(values) - expected * n
        if measured.place.exact:
            usual = np.median(around)
            others = around[around != usual]
            assert len(others) <= 1, (n, values)
            assert all((usual < others) & (others <= usual + LOOKED)), (n, values)
            assert 0 <= usual <= AROUND
        else:
            assert 0 <= np.median(around) <= max(AROUND, 0.01 * expected * n)


def test_counts_of_calls_differ_by_whole_rounds(measured: Measured) -> None:
    counted = {n: np.median(values) for n, values in measured.counted("scan", INSTRUCTIONS, Side.BASE).items()}
    sizes = np.array(sorted(counted))
    slopes = np.diff([counted[n] for n in sizes]) / np.diff(sizes)
    assert slopes == pytest.approx(SCAN, abs=0 if measured.place.exact else 0.5)


def test_cycles_grow_with_instructions(measured: Measured) -> None:
    instructions, cycles = (measured.counted("scan", event, Side.BASE) for event in EVENTS)
    ratios = [np.median(cycles[n]) / np.median(instructions[n]) for n in instructions if n >= 1000]
    if measured.place.exact:  # an emulated instruction takes two cycles of 1 GHz
        assert ratios == pytest.approx([2.0] * len(ratios), rel=0.02)
    else:
        assert 0.05 < np.median(ratios) < 20


def test_callers_count_what_their_callees_count_without_the_probes(measured: Measured) -> None:
    for side, parse in ((Side.BASE, PARSE), (Side.HEAD, SLOWER_PARSE)):
        counted = measured.counted("serve", INSTRUCTIONS, side)
        beside = [np.median(values) - SCAN * n - parse * n - SCAN * (n // 2) for n, values in counted.items()]
        assert 0 <= np.median(beside) <= 3 * CALL
    # Now and then the runtime looks at more clocks at a callee's end: the least of several runs is without.
    base, head = (measured.counted("serve", INSTRUCTIONS, side) for side in Side)
    extra = np.array([min(head[n]) - min(base[n]) - n for n in base])
    if measured.place.exact:
        assert (abs(extra) <= FEW).mean() > 0.95


def test_comparison_names_the_guilty_function_by_its_instructions(measured: Measured) -> None:
    findings = compared(measured)
    assert findings.verdict is Verdict.REGRESSION
    first = next(one for one in findings.functions if one.rank == 1)
    assert (first.info.name, first.verdict) == ("parse", Verdict.REGRESSION)
    guilty = first.metrics[INSTRUCTIONS].ratio
    assert guilty is not None
    assert guilty.value == pytest.approx(SLOWER_PARSE / PARSE, rel=0.05)
    others = {one.info.name: one for one in findings.functions if one.info.name == "scan"}
    scan = others["scan"].metrics.get(INSTRUCTIONS)
    assert scan is None or scan.ratio is None or scan.ratio.value == pytest.approx(1.0, abs=0.01)


def compared(measured: Measured) -> Findings:
    assembly = Assembly(measured.probes, {point.id: point for point in POINTS})
    for run in measured.runs:
        assembly.add(run, measured.recordings[run.id])
    tables: dict[tuple[int, Side], SampleTable] = {(table.function, table.side): table for table in assembly.tables()}
    experiment = Experiment(
        base=Revision("base", None, "before"),
        head=Revision("head", None, "after"),
        environment=machine.environment({}),
        workloads=(Workload("serve", "program {n}", ("n",)),),
        points=POINTS,
        functions=measured.subjects.infos(set(measured.subjects.pairs)),
        skipped=(),
        runs=measured.runs,
        totals=assembly.totals(),
        edges=assembly.edges(),
    )
    return analyse(experiment, lambda function, side: tables.get((function, side)), CompareConfig())
