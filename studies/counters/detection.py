"""Whether defects of sharing and placement are found and named: by perfdiff, and by each detector alone.

Each program is compared with itself, with its harmless change and with its defect, at one number of threads at a time. With one thread a
defect has no effect: such comparisons are the negative control, in which every alarm is a false one. Detectors judge the functions in
which the defect shows, once from counts of the software PMU, once from what the timed build measures (times and software metrics).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sharing
from perfdiff import pipeline
from perfdiff.analysis.counts import anomaly
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig
from perfdiff.languages.packs import Packs
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.progress import Silent
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Side
from studies.null import Suspicious
from studies.support import figures

HEADS = sharing.REVISIONS
FIRST_SEED = 7000
SOURCES = ("counts", "times")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: numbers of threads, timed runs a side, comparisons of each kind. Counted runs are as many as perfdiff wants."""

    threads: tuple[int, ...]
    runs: int
    repeats: int


SIZES: Mapping[str, Size] = {
    "quick": Size(threads=(1, 2), runs=6, repeats=1),
    "short": Size(threads=(1, 2, 4), runs=6, repeats=1),
    "full": Size(threads=(1, 2, 4), runs=6, repeats=4),  # 24 counted runs a side of each kind
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a detector says of a comparison: the verdict, and how many of head's runs are anomalous."""

    raised: bool
    anomalous: int
    runs: int


@dataclass(frozen=True, slots=True)
class Kindred:
    """Comparisons of one kind: base with a head, at a number of threads."""

    program: sharing.Program
    head: str
    threads: int

    def __str__(self) -> str:
        return f"{self.program.name}, {self.head}, {self.threads} threads"

    @property
    def is_defect(self) -> bool:
        """Return whether there is something to be found."""
        return self.head == "defective" and self.threads > 1


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison: perfdiff's answer, and each detector's from each source; no entry where it could not tell."""

    of: Kindred
    verdict: Verdict
    cause_is_right: bool
    guilty_is_first: bool
    alarms: Mapping[tuple[str, DetectorKind], Alarm]


def study(names: Sequence[str], size: Size, room: Path) -> None:
    """Make all comparisons, a line for each as it ends, then print the tables."""
    programs = [program for program in sharing.programs() if program.name in names]
    total = len(programs) * len(HEADS) * len(size.threads)
    title = f"Defects and harmless changes: {total} kinds of comparison, {size.repeats} of each"
    judged: list[Judged] = []
    with figures.printed(title, "program", "defect", "threads", "harmless or none", "defective", "cause", "guilty first") as table:
        for program in programs:
            judged += _compared(program, size, room)
        for program in programs:
            for threads in size.threads:
                table.add(*_verdicts(program, threads, judged))
        table.remarks += _missed(judged)
    for source in SOURCES:
        _print_detectors(source, judged)


def _compared(program: sharing.Program, size: Size, room: Path) -> Iterator[Judged]:
    for threads in size.threads:
        for head in HEADS:
            for repeat in range(size.repeats):
                of, seed = Kindred(program, head, threads), FIRST_SEED + repeat
                kept = room / "judged" / f"{program.name}-{head}-{threads}-{size.runs}-{seed}.json"
                start = time.perf_counter()
                if not kept.exists():
                    _keep(_compare(of, size, seed, room), kept)
                found = _kept(of, kept)
                cause = ", cause named" if found.cause_is_right else ""
                print(f"{of}: {found.verdict}{cause}, {time.perf_counter() - start:.1f} s", flush=True)
                yield found


def _keep(found: Judged, path: Path) -> None:
    """Keep a comparison, so that a study that was interrupted goes on behind it."""
    alarms = [[source, kind, alarm.raised, alarm.anomalous, alarm.runs] for (source, kind), alarm in found.alarms.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([found.verdict, found.cause_is_right, found.guilty_is_first, alarms]))


def _kept(of: Kindred, path: Path) -> Judged:
    verdict, cause, guilty, alarms = json.loads(path.read_text())
    return Judged(of, Verdict(verdict), cause, guilty, {(source, DetectorKind(kind)): Alarm(*rest) for source, kind, *rest in alarms})


def _compare(of: Kindred, size: Size, seed: int, room: Path) -> Judged:
    asked = sharing.request(of.program, room, "base", of.head)
    sizes = asked.config.workloads[0].parameters["n"][:1]
    config = sharing.with_workload(asked.config, threads=(of.threads,), sizes=sizes, runs=size.runs)
    config = replace(config, compare=replace(config.compare, seed=seed))
    packs = Packs(Suspicious(asked.packs.compiled)) if of.head == "base" else None
    outcome = pipeline.compare(replace(asked, config=config), Silent(), packs=packs)
    expected = of.program.expected["defective"]
    shows = {*expected["guilty"], *expected.get("shows", ())}
    suspects = [function for function in outcome.findings.functions if sharing.plain_name(function.info.name) in shows]
    guilty = [function for function in suspects if sharing.plain_name(function.info.name) in expected["guilty"]]
    first = next((function for function in outcome.findings.functions if function.rank == 1), None)
    return Judged(
        of=of,
        verdict=outcome.findings.verdict,
        cause_is_right=expected["cause"] in {cause.name for function in guilty for cause in function.causes},
        guilty_is_first=first is not None and sharing.plain_name(first.info.name) in expected["guilty"],
        alarms={
            (source, kind): alarm
            for source, samples in zip(SOURCES, (outcome.counts, outcome.samples), strict=True)
            for kind in DetectorKind
            if (alarm := _alarm(suspects, samples, config.compare, kind)) is not None
        },
    )


def _alarm(suspects: Sequence[FunctionFinding], samples: Samples, config: CompareConfig, kind: DetectorKind) -> Alarm | None:
    """Return a detector's answer over the functions where the defect would show; a run is anomalous where it is in one of them."""
    raised, anomalous, runs = False, set[int](), set[int]()
    for function in suspects:
        base, head = (samples(function.info.id, side) for side in Side)
        found = anomaly.find(base, head, config, kind=kind) if base is not None and head is not None else None
        if found is None:
            continue
        raised |= found.is_anomalous
        usual = max(each.share for each in found.errors if each.side is Side.BASE)
        of_head = [each for each in found.errors if each.side is Side.HEAD]
        # Beyond the share of each of base's held-out runs by what is told.
        anomalous |= {each.run for each in of_head if each.share >= usual + POLICY.anomalous}
        runs |= {each.run for each in of_head}
    return Alarm(raised, len(anomalous), len(runs)) if runs else None


def _verdicts(program: sharing.Program, threads: int, judged: Sequence[Judged]) -> Iterator[str]:
    here = [each for each in judged if each.of.program == program and each.of.threads == threads]
    harmless = [each for each in here if each.of.head != "defective"]
    defective = [each for each in here if each.of.head == "defective"]
    yield program.name
    yield str(program.expected["defective"]["cause"])
    yield str(threads)
    for group in (harmless, defective):
        yield f"{sum(each.verdict is Verdict.REGRESSION for each in group)} of {len(group)}"
    for right in ("cause_is_right", "guilty_is_first"):
        yield f"{sum(getattr(each, right) for each in defective)} of {len(defective)}" if threads > 1 else "no defect"


def _missed(judged: Sequence[Judged]) -> Iterator[str]:
    """Say what perfdiff got wrong, with every miss by name."""
    defects, others = _parted(judged)
    missed = [each for each in defects if each.verdict is not Verdict.REGRESSION]
    itself = [each for each in judged if each.of.head == "base"]
    better = [each for each in itself if each.verdict is Verdict.IMPROVEMENT]
    false = [each for each in others if each.verdict is Verdict.REGRESSION]
    unnamed = [each for each in defects if not each.cause_is_right]
    for what, wrong, n in (
        ("not found", missed, defects),
        ("false alarms", false, others),
        ("cause not named", unnamed, defects),
        ("base called faster than itself", better, itself),
    ):
        said = "; ".join(f"{each.of} ({each.verdict})" for each in wrong)
        yield f"Comparisons, {what}: {len(wrong)} of {len(n)}, bar 0, {figures.against(len(wrong), 0)}{': ' + said if said else ''}."


def _parted(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    return [each for each in judged if each.of.is_defect], [each for each in judged if not each.of.is_defect]


def _print_detectors(source: str, judged: Sequence[Judged]) -> None:
    """Print the error rates of each detector over runs and over comparisons."""
    rates = (
        "false positives, runs",
        "of one thread",
        "false negatives, runs",
        "false positives, comparisons",
        "false negatives, comparisons",
        "could not tell",
    )
    with figures.printed(f"Detectors alone, from {source}", "detector", *rates) as table:
        defects, others = _parted(judged)
        single = [each for each in others if each.of.threads == 1]
        many = [each for each in others if each.of.threads > 1]
        for kind in DetectorKind:
            key = source, kind
            table.add(
                kind,
                _share(sum(each.alarms[key].anomalous for each in many if key in each.alarms), _runs(many, key)),
                _share(sum(each.alarms[key].anomalous for each in single if key in each.alarms), _runs(single, key)),
                _share(
                    sum(each.alarms[key].runs - each.alarms[key].anomalous for each in defects if key in each.alarms), _runs(defects, key)
                ),
                _share(sum(each.alarms[key].raised for each in others if key in each.alarms), sum(key in each.alarms for each in others)),
                _share(
                    sum(not each.alarms[key].raised for each in defects if key in each.alarms), sum(key in each.alarms for each in defects)
                ),
                sum(key not in each.alarms for each in judged),
            )
            local = [each for each in defects if each.of.program.expected["defective"]["cause"] != "remote-memory"]
            overlooked = sum(each.alarms[key].runs - each.alarms[key].anomalous for each in local if key in each.alarms)
            table.remarks.append(f"{kind}: without remote memory, false negatives {_share(overlooked, _runs(local, key))} of runs.")
            missed = [each for each in defects if key not in each.alarms or not each.alarms[key].raised]
            false = [each for each in others if key in each.alarms and each.alarms[key].raised]
            table.remarks += [
                f"{kind}, {what}: {'; '.join(str(each.of) for each in wrong)}."
                for what, wrong in (("missed", missed), ("false alarms", false))
                if wrong
            ]


def _runs(judged: Sequence[Judged], key: tuple[str, DetectorKind]) -> int:
    return sum(each.alarms[key].runs for each in judged if key in each.alarms)


def _share(count: int, n: int) -> str:
    return f"{count / n:.2f} ({count} of {n})" if n else "none"
