"""Print how many seconds perfdiff takes to its first word and to its answer, beside what hyperfine takes with both builds at hand.

Compared are the fixtures of each language, each once with an empty cache. The seconds of builds, in which nothing can be known, stand
apart. hyperfine runs both sides at the last point as it does by itself, on builds that are made as the configuration says.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.collect.runs import workloads
from perfdiff.errors import PerfdiffError
from perfdiff.progress import Silent
from perfdiff.request import Request
from programs import PROGRAMS, Case, cases, git
from studies.support import figures, inputs
from studies.support.fixture_verdicts import is_right
from studies.support.peers import packages

COLUMNS = ("language", "program", "verdict", "", "builds, s", "first word after them, s", "answer after them, s", "hyperfine, s", "CPU, s")
BARS_S = {"c": 15.0, "python": 25.0, "php": 25.0, "java": 40.0}  # of the median to a located answer of a clear slow-down, after the builds
WITHOUT_EFFECT_S = 20.0  # of the median where nothing got slower
AT_WORST = 3.0  # times a bar
CLEAR = 1.5  # times as slow is clear
_BUILDING = ("building", "linking")  # what the names of stages in which nothing runs begin with


@dataclass(slots=True)
class Listening(Silent):
    """Keeps when the first word on whole runs came, and how long the builds took."""

    started_s: float
    builds_s: float = 0.0
    first_word_s: float | None = None
    _name: str = ""
    _since_s: float = 0.0

    def stage(self, name: str, total: int | None) -> None:
        """End a stage, and begin another."""
        now = time.monotonic()
        if self._name.startswith(_BUILDING):
            self.builds_s += now - self._since_s
        self._name, self._since_s = name, now

    def note(self, text: str) -> None:
        """Keep when the first preliminary word came."""
        if self.first_word_s is None and "preliminary" in text:
            self.first_word_s = time.monotonic() - self.started_s - self.builds_s


@dataclass(frozen=True, slots=True)
class Answer:
    """How a comparison of a fixture ended, and the seconds of builds, to the first word and the answer after these, and of hyperfine."""

    language: str
    case: Case
    findings: Findings
    builds_s: float
    first_word_s: float | None
    after_builds_s: float
    hyperfine_s: float | None
    cpu_s: float

    @property
    def is_clear(self) -> bool:
        """Return whether head is clearly slower at some point of whole runs."""
        slower = (end.ratio.value for end in self.findings.end_to_end if end.ratio is not None)
        return self.findings.verdict is Verdict.REGRESSION and max(slower, default=1.0) >= CLEAR

    def row(self) -> tuple[str, ...]:
        """Return the cells under `COLUMNS`."""
        seconds = (self.builds_s, self.first_word_s, self.after_builds_s, self.hyperfine_s, self.cpu_s)
        words = ("-" if value is None else f"{value:.1f}" for value in seconds)
        return self.language, self.case.name, self.findings.verdict, "" if is_right(self.case, self.findings) else "**otherwise**", *words


def answer(language: str, case: Case, room: Path, *, asks_hyperfine: bool) -> Answer:
    """Compare a fixture; raise PerfdiffError where it cannot be."""
    asked = inputs.request(case.name, room, "base", "head", language=language)
    used_s, started_s = figures.cpu_s(), time.monotonic()
    listening = Listening(started_s)
    findings = pipeline.compare(asked, listening).findings
    listening.stage("", None)
    took_s, cpu_s = time.monotonic() - started_s, figures.cpu_s() - used_s
    by_hand_s = _hyperfine_s(asked, room) if asks_hyperfine else None
    return Answer(language, case, findings, listening.builds_s, listening.first_word_s, took_s - listening.builds_s, by_hand_s, cpu_s)


def _hyperfine_s(asked: Request, room: Path) -> float:
    """Return how long hyperfine runs both sides at the last point as it does by itself."""
    installed = shutil.which("hyperfine")
    tool = installed or str(packages(room / "hyperfine", "hyperfine") / "usr/bin/hyperfine")
    point = workloads.points(asked.config.workloads)[-1]
    with tempfile.TemporaryDirectory(dir=room) as trees:
        commands = []
        for side in ("base", "head"):
            tree = Path(trees) / side
            git(asked.repository, "worktree", "add", "-q", "--detach", str(tree), side)
            subprocess.run(["/bin/sh", "-c", asked.config.build.command or "true"], cwd=tree, check=True, capture_output=True)
            commands.append(f"cd {tree} && {point.command}")
        times = Path(trees) / "times.json"
        started_s = time.monotonic()
        words = [tool, "--style", "none", "--ignore-failure", "--export-json", str(times), *commands]
        subprocess.run(words, check=True, capture_output=True, env=dict(asked.environment))
        took_s = time.monotonic() - started_s
        assert len(json.loads(times.read_text(encoding="utf-8"))["results"]) == len(commands), "hyperfine measures both"
    git(asked.repository, "worktree", "prune")
    return took_s


def remarks(language: str, answers: Sequence[Answer]) -> list[str]:
    """Return the median and the worst seconds to an answer, of clear slow-downs and where nothing got slower, against their bars."""
    kinds = {
        f"clear slow-downs (×{CLEAR} and more)": ([one for one in answers if one.is_clear], BARS_S[language]),
        "no effect": ([one for one in answers if one.findings.verdict is Verdict.UNCHANGED], WITHOUT_EFFECT_S),
    }
    lines = []
    for kind, (of_kind, bar_s) in kinds.items():
        if of_kind:
            seconds = [one.after_builds_s for one in of_kind]
            median_s, worst_s = statistics.median(seconds), max(seconds)
            bars = (
                f"bar {bar_s:.0f}, {figures.against(median_s, bar_s)}",
                f"bar {AT_WORST * bar_s:.0f}, {figures.against(worst_s, AT_WORST * bar_s)}",
            )
            words = [one.first_word_s for one in of_kind if one.first_word_s is not None]
            first = f"; first word {statistics.median(words):.1f} s in the median" if words else ""
            said = f"answer {median_s:.1f} s ({bars[0]}), at worst {worst_s:.1f} ({bars[1]}){first}"
            lines.append(f"{language}, {kind}, {len(of_kind)} programs: {said}.")
    return lines


def main() -> None:
    """Compare all fixtures, or those of the languages and names that are given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--language", nargs="+", choices=BARS_S, default=list(BARS_S), help="languages (default: all)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--hyperfine", action="store_true", help="run hyperfine as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as room, figures.printed("Seconds to the answer", *COLUMNS) as table:
        for language in options.language:
            folder = inputs.FOLDERS.get(language, PROGRAMS)
            answers = []
            for case in cases(folder):
                if options.only and case.name not in options.only:
                    continue
                try:
                    answers.append(answer(language, case, Path(room) / language, asks_hyperfine=options.hyperfine))
                except PerfdiffError as error:
                    table.add(language, case.name, f"no answer: {error.slug}", *["-"] * (len(COLUMNS) - 3))
                    continue
                table.add(*answers[-1].row())
                print(*answers[-1].row(), sep=" | ", file=sys.stderr, flush=True)
            table.remarks += remarks(language, answers)
