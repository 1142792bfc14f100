"""How often a bisect names the right commit, how many it measures, and how honest its confidence is.

Simulated searches give the error rates: commits whose builds' layout moves their cost, 10 % that do not build, noisy runs; beside each the
same history under `git bisect run` with a threshold at half the effect. Real histories are built and run, by both.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from histories import Plan, make
from perfdiff import configuration
from perfdiff.errors import PerfdiffError
from perfdiff.progress import Silent
from perfdiff.request import Request
from perfdiff.searches import bisecting
from perfdiff.searches.question import SearchQuestion
from programs import git
from simulated_search import BROKEN_SHARE, World, searched, thresholded

EFFECTS = {"10 %": math.log(1.1), "30 %": math.log(1.3), "class": math.log(3)}
NOISE = {"quiet": 0.01, "usual": 0.03, "noisy": 0.06}  # standard errors of a measurement's logarithm
SIZES = (64, 256)
TIMED = ("./words", "18000")  # the longest run of the histories' workload
RUNS = 5  # of which `git bisect run` takes the median


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", type=int, default=100, help="simulated searches per row")
    parser.add_argument("--real", type=int, default=1, help="real histories per effect and size")
    parser.add_argument("--commits", type=int, nargs="*", default=[64], help="sizes of real histories")
    parser.add_argument("--effects", nargs="*", default=list(EFFECTS), choices=list(EFFECTS), help="effects of real histories")
    parser.add_argument("--step", nargs=2, metavar=("FOLDER", "LIMIT"), help=argparse.SUPPRESS)
    parser.add_argument("--time", action="store_true", help="real histories without counted builds, so that time is followed")
    asked = parser.parse_args()
    if asked.step:
        sys.exit(step(Path(asked.step[0]), float(asked.step[1])))
    if asked.simulated:
        simulated(asked.simulated)
    for commits in asked.commits if asked.real else ():
        for effect in asked.effects:
            real(commits, effect, asked.real, counts=not asked.time)


def simulated(trials: int) -> None:
    """Print a row for each size, effect and noise: time, and exact counts."""
    print(f"Simulated, {trials} searches a row, {100 * BROKEN_SHARE:.0f} % of commits do not build")
    print("commits effect  evidence  named right  named wrong  open  suspects hold it  measured (mean, 95 %)  runs  git bisect run")
    for commits in SIZES:
        for effect, size in EFFECTS.items():
            for evidence, world in _worlds(commits, size):
                found = [searched(world, seed) for seed in range(trials)]
                plain = sum(thresholded(world, seed) for seed in range(trials))
                measured = [each.measured for each in found]
                certain = [each for each in found if each.certain]
                cells = (
                    f"{commits:7}",
                    f"{effect:6}",
                    f"{evidence:8}",
                    f"{_share(each.right for each in certain)} of {len(certain)}",
                    f"{sum(not each.right for each in certain):3}",
                    f"{trials - len(certain):3}",
                    f"{sum(each.right for each in found):3}",
                    f"{np.mean(measured):5.1f} {np.quantile(measured, 0.95):5.1f}",
                    f"{np.mean([each.runs for each in found]):5.1f}",
                    f"{plain:3}",
                )
                print("  ".join(cells), flush=True)


def _worlds(commits: int, effect: float) -> Iterable[tuple[str, World]]:
    yield "counts", World(commits, effect, exact=True)
    for name, noise in NOISE.items():
        yield name, World(commits, effect, noise)


def _share(values: Iterable[bool]) -> str:
    return f"{sum(values):3}"


def real(commits: int, effect: str, trials: int, *, counts: bool) -> None:
    """Print a row for each real history: what was named, after how many commits and seconds."""
    print(f"Real histories of {commits} commits, {effect}; at most {math.log2(commits) + 4:.0f} are to be measured")
    for trial in range(trials):
        rng = random.Random(f"{commits} {effect} {trial}")
        culprit = rng.randint(2, commits - 1)
        broken = {number for number in range(1, commits) if rng.random() < BROKEN_SHARE}
        print(f"  {trial:2}  {_bisected(Plan(commits, culprit, effect, broken), culprit, counts=counts)}", flush=True)


def _bisected(plan: Plan, culprit: int, *, counts: bool) -> str:
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "history"
        ids = make(plan, folder)
        config = configuration.load(folder, environment={} if counts else {"PERFDIFF_COUNTERS_SOFTWARE": "false"})
        question = SearchQuestion(
            Request(folder, ("good", "bad"), config, Path(room) / "cache", {"PATH": "/usr/local/bin:/usr/bin:/bin"}),
            function="checksum",
            named=lambda name, _file: name == "checksum",
        )
        started = time.monotonic()
        try:
            found, _ = bisecting.bisect(question, Silent())
        except PerfdiffError as error:
            return f"failed: {error}"
        spent_s = time.monotonic() - started
        before = {entry.name for entry in (Path(room) / "cache" / "trees").iterdir()}
        bisecting.bisect(replace(question, metric="loads" if counts else "wall_ns"), Silent())
        rebuilt = len({entry.name for entry in (Path(room) / "cache" / "trees").iterdir()} - before)
        named = [each.commit for each in found.suspects]
        return (
            f"{'right' if ids[culprit] in named else 'WRONG'}, {len(named)} suspect(s), {'certain' if found.certain else 'open'}, "
            f"followed {found.symptom.says}, measured {len(found.measured)}, skipped {len(found.passed)}, the same {len(found.alike)}, "
            f"{spent_s:.0f} s; a second bisect built {rebuilt}; `git bisect run` {_plainly(folder, ids[culprit])}"
        )


def _plainly(folder: Path, culprit: str) -> str:
    """Say whether `git bisect run` finds `culprit` where a commit is bad whose run takes longer than half-way from good to bad."""
    limit = math.sqrt(math.prod(_run_s(folder, end) for end in ("good", "bad")))
    git(folder, "bisect", "start", "bad", "good")
    command = [sys.executable, "-m", "studies", "bisect", "--step", str(folder), str(limit)]
    run = ["git", "bisect", "run", "sh", "-c", shlex.join(command)]
    # It exits with 2 where skipped commits are left.
    said = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False).stdout
    first = re.search(r"^([0-9a-f]{40}) is the first bad commit$", said, re.MULTILINE)
    named = [first[1]] if first else re.findall(r"^([0-9a-f]{40})$", said, re.MULTILINE)  # any of these: the others do not build
    return f"{'right' if culprit in named else 'WRONG'}, {len(named)} suspect(s), measured {said.count('took ')}"


def step(folder: Path, limit: float) -> int:
    """Judge the commit that is checked out, as `git bisect run` wants it: 125 if it does not build, 1 if it takes more than `limit` s."""
    taken = _run_s(folder)
    print(f"took {taken} s")
    return 125 if math.isnan(taken) else int(taken > limit)


def _run_s(folder: Path, commit: str | None = None) -> float:
    """Return the median time of a run in seconds, not a number where it does not build."""
    if commit:
        git(folder, "checkout", "-q", commit)
    if subprocess.run(["make", "-s", "-B"], cwd=folder, capture_output=True, check=False).returncode:
        return math.nan
    taken = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run(TIMED, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
