"""Commits whose cost is written in a file, and a stand-in for comparing them: bisecting without building or running anything."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import findings as examples
from perfdiff.analysis.findings import Findings, Ratio, Verdict
from perfdiff.config import BuildConfig, Config, WorkloadConfig
from perfdiff.errors import BuildError
from perfdiff.outcome import Outcome
from perfdiff.progress import Progress
from perfdiff.records.schema import Revision, Source
from perfdiff.request import Request
from programs import git

FAST, SLOW = "100", "130"
BROKEN, ABSENT = "broken", "absent"
RUNS = 5


def commit(folder: Path, cost: str, subject: str = "", **files: str) -> str:
    """Commit a cost, and further files by name (with `__` for a dot), and return the commit's id."""
    (folder / "cost.txt").write_text(f"{cost} {git(folder, 'rev-list', '--all', '--count')}\n")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject or f"cost {cost}")
    return git(folder, "rev-parse", "HEAD")


def line(folder: Path, costs: list[str]) -> list[str]:
    """Make a repository with a commit for each cost and return their ids; the first is tagged `good`, the last `bad`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    commits = [commit(folder, cost) for cost in costs]
    git(folder, "tag", "good", commits[0])
    git(folder, "tag", "bad", commits[-1])
    return commits


def request(folder: Path, good: str = "good", bad: str = "bad") -> Request:
    """Return what is asked of a bisect of this repository."""
    config = Config(BuildConfig("make"), (WorkloadConfig("w", "./w"),))
    return Request(folder, (good, bad), config, folder.parent / "cache", {})


@dataclass
class Laboratory:
    """Stands in for `pipeline.compare`: costs are read from the commits, with `noise` (of the logarithm); every comparison is listed."""

    folder: Path
    noise: float = 0.005
    made: list[tuple[str, str, int]] = field(default_factory=list)

    def compare(self, asked: Request, progress: Progress) -> Outcome:
        """Return findings on the only function, `work`."""
        progress.stage("measuring", None)
        base, head = (git(self.folder, "rev-parse", f"{rev}^{{commit}}") for rev in asked.revisions)
        seed = asked.config.compare.seed
        self.made.append((base, head, seed))
        costs = [self.cost(each) for each in (base, head)]
        if BROKEN in costs:
            raise BuildError(f"'make' exited 2 in head ({head[:7]})", slug="build-failed", detail="error: broken")
        places = [git(self.folder, "rev-list", "--count", each) for each in (base, head)]  # ids differ from day to day
        rng = random.Random(f"{places} {seed}")
        absent = ABSENT in costs
        effect = 0.0 if absent else math.log(float(costs[1]) / float(costs[0])) + rng.gauss(0, self.noise)
        return Outcome(self._findings(effect, asked, absent=absent), lambda _function, _side: None)

    def cost(self, commit: str) -> str:
        """Return what is written in a commit."""
        return git(self.folder, "show", f"{commit}:cost.txt").split()[0]

    def _findings(self, effect: float, asked: Request, *, absent: bool) -> Findings:
        half = 2 * self.noise
        ratio = Ratio(math.exp(effect), math.exp(effect - half), math.exp(effect + half), RUNS, RUNS)
        shown = math.log(1.05)
        verdict = Verdict.REGRESSION if effect - half > shown else Verdict.IMPROVEMENT if effect + half < -shown else Verdict.UNCHANGED
        if half > shown and verdict is Verdict.UNCHANGED:
            verdict = Verdict.INCONCLUSIVE
        example = examples.regressed()
        metric = replace(example.metrics["wall_ns"], ratio=ratio, overall=ratio, total=ratio)
        function = replace(
            example,
            info=replace(example.info, name="work", file="work.c", base=Source("work.c", 3, "x"), head=Source("work.c", 3, "x")),
            verdict=verdict,
            rank=1 if verdict is Verdict.REGRESSION else None,
            metrics={"wall_ns": metric},
            counts={},
        )
        base, head = (Revision(rev, git(self.folder, "rev-parse", f"{rev}^{{commit}}"), "") for rev in asked.revisions)
        return replace(
            examples.findings(),
            verdict=verdict,
            sentence=examples.worded(f"{verdict}: `work` is ×{ratio.value:.2f}"),
            base=base,
            head=head,
            functions=() if absent else (function,),
            end_to_end=(),
        )
