"""Print what perfdiff says of pairs of upstream revisions whose effect is known: none, or a small regression with a guilty function.

Each pair of a folder, which CONTRIBUTING.md describes, is compared as a user would, `perfdiff BASE HEAD`, under several seeds; builds are
kept between these. The repositories are cloned, which needs the network or `--mirrors`. With `--room`, clones, builds and answers are kept
there, and the same command goes on where it was interrupted: what was measured by one version of perfdiff is not to be mixed with
another's. `--truth` measures the effects themselves, without perfdiff.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studies.support import figures, upstream, upstream_hyperfine, upstream_truth
from studies.support.sizes import listed, say, share
from studies.support.upstream import Effect, Pair, Project

TIMES = 2
FIRST_SEED = 1
TRUTH_PAIRS = 100
TIMEOUT_S = 3600
FAILED = "not measured"
WHOLE_RUNS = ("linking in other layouts", "comparing whole runs")  # stages that hyperfine's runs stand against
LEAST_TIME_S = 10.0  # of hyperfine, where perfdiff needed no run at all
LEAST_SLOWER = 0.05  # perfdiff's own smallest effect of interest
LEAST_STAGE_S = 0.5  # shorter stages are not worth a word
MOST_NAMED = 4  # functions named in a cell of a table
MOST_SAID = 200  # characters of what a failed command said
COLUMNS = (
    "pair",
    "seed",
    "exit",
    "verdict",
    "rung",
    "regressions",
    "improvements",
    "guilty",
    "excluded",
    "s",
    "stages, s",
    "CPU, s",
    "load",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one comparison ended with. `load` is that before and after.

    `report` is the JSON report, None where there is none; `exit_code` is None where there was nothing to compare.
    """

    exit_code: int | None
    wall_s: float
    cpu_s: float
    load: tuple[float, float]
    said: str
    report: dict[str, Any] | None

    @property
    def verdict(self) -> str:
        """Return the verdict, or that there is none."""
        return str(self.report["verdict"]) if self.report else FAILED

    def named(self, verdict: str) -> list[str]:
        """Return the functions that have a verdict, the likeliest cause first."""
        return [function["name"] for function in (self.report or {}).get("functions", ()) if function["verdict"] == verdict]


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair under one seed."""

    pair: Pair
    seed: int
    answer: Answer

    @property
    def guilty_rank(self) -> int | None:
        """Return the place of the first guilty function among the regressed ones, from 1; None where it is not among them."""
        named = enumerate(self.answer.named("regression"), 1)
        places = (rank for rank, name in named if not {name, _plain(name)}.isdisjoint(self.pair.guilty))
        return next(places, None)

    def row(self) -> list[str]:
        """Return the cells under `COLUMNS`."""
        answer, report = self.answer, self.answer.report or {}
        excluded = report.get("excluded")
        stages = {name: seconds for name, seconds in report.get("stages", {}).items() if seconds >= LEAST_STAGE_S}
        return [
            self.pair.label,
            str(self.seed),
            "-" if answer.exit_code is None else str(answer.exit_code),
            answer.verdict,
            report.get("rung", "-"),
            _few(answer.named("regression")),
            _few(answer.named("improvement")),
            str(self.guilty_rank or "-"),
            f"{100 * (excluded - 1):.1f} %" if excluded else "-",
            f"{answer.wall_s:.0f}",
            ", ".join(f"{name} {seconds:.0f}" for name, seconds in sorted(stages.items(), key=lambda stage: -stage[1])) or "-",
            f"{answer.cpu_s:.0f}",
            f"{answer.load[0]:.1f}, {answer.load[1]:.1f}",
        ]

    def line(self) -> str:
        """Return it as a line of a list of misses."""
        said = self.answer.report["sentence"] if self.answer.report else self.answer.said
        return f"{self.pair.label}, seed {self.seed} ({self.answer.verdict}): {said}"


def _plain(name: str) -> str:
    """Return the name of a function without classes, namespaces and arguments."""
    return "operator()" if "operator()" in name else name.partition("(")[0].rpartition("::")[2].strip()


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_NAMED]) + more if names else "-"


def compared(project: Project, pair: Pair, seed: int, room: Path, mirrors: Path | None) -> Measured:
    """Compare a pair, or read what was measured of it before. What failed is tried again the next time."""
    question = f"{project.name} {pair.base} {pair.head} {project.digest()} {seed}"
    place = room / "answers" / f"{question.replace(' ', '-')}.json"
    if place.exists():
        return Measured(pair, seed, Answer(**json.loads(place.read_text(encoding="utf-8"))))
    try:
        clone = project.clone(room / "clones", mirrors)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        load = os.getloadavg()[0]
        return Measured(pair, seed, Answer(None, 0.0, 0.0, (load, load), _said(error), None))
    answer = _asked(
        *(pair.base, pair.head, "--config", str(project.configuration), "--repo", str(clone), "--cache", str(room / "cache")),
        *("--seed", str(seed), "--format", "json", "--quiet"),
    )
    if answer.report:
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".part")
        unfinished.write_text(json.dumps(asdict(answer)), encoding="utf-8")
        unfinished.rename(place)
    return Measured(pair, seed, answer)


def _said(error: FileNotFoundError | subprocess.CalledProcessError) -> str:
    """Return the end of what a command said that failed, or what was not found."""
    said = str(error.stderr or error) if isinstance(error, subprocess.CalledProcessError) else str(error)
    return " ".join(said.split())[-MOST_SAID:]


def _asked(*arguments: str) -> Answer:
    """Run perfdiff and return how it ended; an hour is the most that anybody waits."""
    load, used, start = os.getloadavg()[0], _children_s(), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "perfdiff", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        printed, said = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        printed, said = process.communicate()
        said += f"\nended after {TIMEOUT_S} s"
    return Answer(
        exit_code=process.returncode,
        wall_s=time.perf_counter() - start,
        cpu_s=_children_s() - used,
        load=(load, os.getloadavg()[0]),
        said=" ".join(said.split()),
        report=_report(printed),
    )


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _report(printed: str) -> dict[str, Any] | None:
    try:
        report = json.loads(printed)
    except json.JSONDecodeError:  # it ended before there was one, which is told in a row of its own
        return None
    return report if isinstance(report, dict) else None


def remarks(found: Sequence[Measured]) -> list[str]:
    """Return how often perfdiff is right, with exact intervals, and its misses by name."""
    lines = []
    if null := [each for each in found if each.pair.effect is Effect.NONE]:
        said, n = Counter(each.answer.verdict for each in null), len(null)
        lines += [
            f"Pairs without an effect: no regression {share(said['unchanged'], n)}; false regressions {share(said['regression'], n)}; "
            f"false improvements {share(said['improvement'], n)}; open {share(said['inconclusive'], n)}; "
            f"{FAILED} {share(said[FAILED], n)}.",
            listed("Not called *no regression*", [each.line() for each in null if each.answer.verdict != "unchanged"]),
        ]
    if slower := [each for each in found if each.pair.effect is Effect.SLOWER]:
        said, n = Counter(each.answer.verdict for each in slower), len(slower)
        among = sum(each.guilty_rank is not None for each in slower)
        first = sum(each.guilty_rank == 1 for each in slower)
        lines += [
            f"Slower pairs: found {share(said['regression'], n)}; the guilty function first {share(first, n)}, "
            f"named at all {share(among, n)}; called no regression {share(said['unchanged'] + said['improvement'], n)}; "
            f"open {share(said['inconclusive'], n)}; {FAILED} {share(said[FAILED], n)}.",
            listed("Not found, or not the guilty function first", [each.line() for each in slower if each.guilty_rank != 1]),
        ]
    return lines


def answers(projects: Sequence[Project], room: Path, mirrors: Path | None, times: int) -> None:
    """Print what perfdiff says of each pair, under as many seeds as asked."""
    with figures.printed("Upstream pairs", *COLUMNS) as table:
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + times):
            for project in projects:
                for pair in project.pairs:
                    measured = compared(project, pair, seed, room, mirrors)
                    say(f"{measured.line()} [{measured.answer.wall_s:.0f} s]")
                    found.append(measured)
        for measured in sorted(found, key=lambda each: each.pair.label):
            table.add(*measured.row())
        table.remarks += remarks(found)


def truths(projects: Sequence[Project], room: Path, mirrors: Path | None, pairs: int) -> None:
    """Print how whole runs of each pair compare, found without perfdiff."""
    with figures.printed(
        "Upstream pairs, whole runs by hand", "pair", "effect", "point", "head / base", "95 %", "base, ms of CPU"
    ) as table:
        for project in projects:
            for pair in project.pairs:
                try:
                    clone = project.clone(room / "clones", mirrors)
                    found = upstream_truth.Bench(project, clone, room / "truth", pairs, FIRST_SEED).truths(pair)
                except (FileNotFoundError, subprocess.CalledProcessError) as error:
                    table.add(pair.label, pair.effect, "-", f"{FAILED}: {_said(error)}", "-", "-")
                    continue
                for truth in found:
                    say(f"{pair.label}, {truth.point}: {truth.ratio:.3f} [{truth.low:.3f}, {truth.high:.3f}]")
                    interval = f"{truth.low:.3f} to {truth.high:.3f}"
                    table.add(pair.label, pair.effect, truth.point, f"{truth.ratio:.3f}", interval, f"{truth.base_ms:.1f}")
        table.remarks.append(f"{pairs} pairs of runs in random order, one build a side; medians of CPU time, intervals by bootstrap.")


def hyperfines(projects: Sequence[Project], room: Path, mirrors: Path | None) -> None:
    """Print what hyperfine says of each pair in the time that perfdiff's whole runs took, beside what perfdiff said."""
    columns = ("pair", "effect", "s", "runs a side", "largest ratio", "slower, Welch", f"and by {LEAST_SLOWER:.0%}", "perfdiff")
    kinds = {Effect.NONE: "Pairs without an effect called slower", Effect.SLOWER: "Slower pairs found"}
    counts = {kind: Counter[str]() for kind in kinds}
    with figures.printed("Upstream pairs, hyperfine at the same time", *columns) as table:
        for project in projects:
            for pair in project.pairs:
                known = compared(project, pair, FIRST_SEED, room, mirrors).answer
                stages = (known.report or {}).get("stages", {})
                seconds = max(LEAST_TIME_S, sum(stages.get(stage, 0.0) for stage in WHOLE_RUNS))
                bench = upstream_truth.Bench(project, project.clone(room / "clones", mirrors), room / "truth", 0, FIRST_SEED)
                found = upstream_hyperfine.ask(bench, pair, seconds, room)
                slower = [found.is_slower(least) for least in (0.0, LEAST_SLOWER)]
                counts[pair.effect] += Counter(pairs=1, any=slower[0], clear=slower[1], perfdiff=known.verdict == "regression")
                say(f"{pair.label}: {slower}, perfdiff {known.verdict}")
                runs, largest = min(each.runs for each in found.told), max(each.ratio for each in found.told)
                told = ["yes" if each else "no" for each in slower]
                table.add(pair.label, pair.effect, f"{found.seconds:.0f}", runs, f"{largest:.3f}", *told, known.verdict)
        for kind, says in kinds.items():
            if n := counts[kind]["pairs"]:
                shares = {name: share(counts[kind][name], n) for name in ("any", "clear", "perfdiff")}
                clear = f"by {LEAST_SLOWER:.0%} and more {shares['clear']}"
                table.remarks.append(f"{says}: by hyperfine {shares['any']}, {clear}; by perfdiff {shares['perfdiff']}.")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=Path, metavar="FOLDER", help="what pairs there are; without it, nothing is compared")
    parser.add_argument("--only", nargs="+", metavar="PROJECT", help="projects (default: all)")
    parser.add_argument("--times", type=int, default=TIMES, help=f"seeds that each pair is compared under (default: {TIMES})")
    parser.add_argument("--room", type=Path, help="keep clones, builds and answers in this folder")
    parser.add_argument("--mirrors", type=Path, help="clone from bare repositories OWNER+NAME in this folder")
    truth = f"measure the effects by hand, over so many pairs of runs (default: {TRUTH_PAIRS})"
    parser.add_argument("--truth", nargs="?", type=int, const=TRUTH_PAIRS, metavar="PAIRS", help=truth)
    parser.add_argument("--hyperfine", action="store_true", help="ask hyperfine, in the time of the whole runs of answers that are kept")
    options = parser.parse_args()
    if options.pairs is None:
        say("no pairs: name a folder of them by --pairs")
        return
    projects = [upstream.project(options.pairs.absolute() / name) for name in options.only or upstream.names(options.pairs)]
    with tempfile.TemporaryDirectory() as passing:
        room = (options.room or Path(passing)).absolute()
        if options.truth:
            truths(projects, room, options.mirrors, options.truth)
        elif options.hyperfine:
            hyperfines(projects, room, options.mirrors)
        else:
            answers(projects, room, options.mirrors, options.times)
