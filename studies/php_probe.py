"""Print what a call of a PHP function costs in ns beyond itself: not probed, and per kind of recording; and what counting it costs.

A run times many short batches of calls in CPU time and gives the median; a figure is the least of several runs, less the same for the
program without the extension. The kinds take turns, so that a busy machine disturbs all alike. The last rows are of a
function that does some work, without a probe. PHPs are those named as arguments, or the one on PATH. Needs gcc and PHP's headers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.c import runtime_library
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.php import extension, interpreters, places, start
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from studies.support import figures

RUNS = 7
BUDGET_NS = 120.0  # for a call with time and three features
UNPROBED_PART = 0.02  # of the time of functions that are not probed

PROGRAM = """<?php
class Box {
    public $name = "box";
    public $items = [1, 2, 3];
}
function called($n, $values, $box) {
    return $n ? $n : 0;
}
function other() {
}
function works($n, $values, $box) {
    $found = [];
    foreach ($box->items as $item) {
        $found[] = $item + $n;
    }
    return implode(",", $found) . str_repeat($box->name, 2);
}
function spent() {
    $usage = getrusage();
    return 1e9 * ($usage["ru_utime.tv_sec"] + $usage["ru_stime.tv_sec"]) + 1e3 * ($usage["ru_utime.tv_usec"] + $usage["ru_stime.tv_usec"]);
}
$box = new Box;
$values = [1, 2];
$found = [];
$works = $argv[1] === "works";
for ($batch = 0; $batch < 101; $batch++) {
    $begun = spent();
    if ($works) {
        for ($n = 0; $n < 4000; $n++) {
            works($n, $values, $box);
        }
    } else {
        for ($n = 0; $n < 4000; $n++) {
            called($n, $values, $box);
        }
    }
    $found[] = spent() - $begun;
}
sort($found);
echo $found[50] / 4000;
"""
WATCHED = "time + 3 features, all calls, an outcome of a condition"
BARE, UNPROBED, COUNTED = "without the extension", "not probed, beside a probed one", "counted run, all calls"
WORKS_BARE, WORKS = "a function that works, without the extension", "a function that works, not probed"
WORKS_COUNTED, WORKS_LINES = "a function that works, in a counted run", "a function that works, lines counted"
FEATURES = ("number $n", "length $values", "length $box->items")
KINDS = {
    "off, by the plan": ProbePlan(Mode.OFF),
    "count": ProbePlan(Mode.COUNT),
    "time, one call in 256, the others pass": ProbePlan(Mode.TIME, period=256, passing=True),
    "time": ProbePlan(Mode.TIME),
    "time + 3 features, reservoir of 1000": ProbePlan(Mode.SAMPLE, reservoir=1000, features=3),
    "time + 3 features, all calls": ProbePlan(Mode.SAMPLE, reservoir=1_000_000, features=3),
    WATCHED: ProbePlan(Mode.SAMPLE, reservoir=1_000_000, features=3, branches=1),
    COUNTED: ProbePlan(Mode.SAMPLE, reservoir=1000, features=3, own=True),
}
WORKING = (WORKS_BARE, WORKS, WORKS_COUNTED, WORKS_LINES)
NAMES = (BARE, UNPROBED, *KINDS, *WORKING)


@dataclass(frozen=True, slots=True)
class Bench:
    """A PHP with its extensions, and a folder with the program."""

    php: interpreters.PhpInterpreter
    module: Path
    counting: Path
    reader: InterpretedPlaces
    folder: Path

    def run(self, name: str) -> float:
        """Return the ns of a call in one run of a kind."""
        command = [self.php.executable, self.folder / "main.php", "works" if name in WORKING else "called"]
        ended = subprocess.run(command, env=os.environ | self._steering(name), capture_output=True, check=True)
        for left in (*self.folder.glob("*.pdrec"), *self.folder.glob("*.remarks"), *self.folder.glob("*.lines")):
            left.unlink()
        return float(ended.stdout)

    def _steering(self, name: str) -> dict[str, str]:
        """Return the variables of a run of a kind."""
        if name in (BARE, WORKS_BARE):
            return {}
        if name == WORKS_LINES:
            return self.reader.environment(self.folder)
        probe, features = ("9 10 other", ()) if name in (UNPROBED, *WORKING) else ("6 8 called", FEATURES)
        lines = ("perfdiff php 1", "file main.php", f"place {self.folder / 'main.php'}", f"probe 1 {probe}")
        lines = (*lines, *(f"read {each}" for each in features), *(("branch 0 1 7 7 0 1",) if name == WATCHED else ()))
        (self.folder / "sheet").write_text("".join(f"{line}\n" for line in lines))
        plan.write(self.folder / "plan", {1: KINDS.get(name, ProbePlan(Mode.COUNT))})
        steering = {"PERFDIFF_OUT": str(self.folder), "PERFDIFF_PLAN": str(self.folder / "plan")}
        if name in (COUNTED, WORKS_COUNTED):
            return steering | start.counting(self.folder / "sheet", self.reader.sheet, self.counting, os.environ)
        return steering | start.environment(self.folder / "sheet", self.module, os.environ)


def main() -> None:
    title = "What a probed call of a PHP function costs"
    with tempfile.TemporaryDirectory() as temporary, figures.printed(title, "PHP", "calls", "ns beyond the call") as table:
        for named in (*sys.argv[1:],) or (None,):
            measure(table, bench(interpreters.find(named, Path.cwd(), os.environ), Path(temporary)))
        table.remarks.append(
            f"Budget of a call with time and three features: {BUDGET_NS:.0f} ns; of functions that are not probed: "
            f"{UNPROBED_PART:.0%} of their time. CPU time, least of {RUNS} runs."
        )


def bench(php: interpreters.PhpInterpreter, folder: Path) -> Bench:
    """Build the extensions of a PHP, and write the program."""
    runtime = runtime_library.build_timed("gcc", folder)
    (folder / "main.php").write_text(PROGRAM)
    counter = extension.build_lines(php, "gcc", folder)
    reader = places.places(folder, ["main.php"], places.PhpLineCounter(php.executable, counter, os.environ), folder / "counted-lines")
    probing, counting = (build(php, runtime, "gcc", folder) for build in (extension.build, extension.build_counting))
    return Bench(php, probing, counting, reader, folder)


def measure(table: figures.Table, made: Bench) -> None:
    """Add the rows of one PHP."""
    least = dict.fromkeys(NAMES, float("inf"))
    for _ in range(RUNS):
        for name in NAMES:
            least[name] = min(least[name], made.run(name))
    table.add(made.php.release, "the call itself", f"{least[BARE]:.1f}")
    for name in (UNPROBED, *KINDS):
        table.add(made.php.release, name, f"{least[name] - least[BARE]:+.1f}")
    table.add(made.php.release, WORKS_BARE, f"{least[WORKS_BARE]:.1f}")
    for name in WORKING[1:]:
        beyond = least[name] - least[WORKS_BARE]
        table.add(made.php.release, name, f"{beyond:+.1f} ({beyond / least[WORKS_BARE]:+.1%})")
