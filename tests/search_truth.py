"""What the programs of `fixtures/search` truly take: both sides, built and run by hand on samples and on the inputs of recipes."""

from __future__ import annotations

import argparse
import math
import os
import random
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs import SEARCH, Case, cases, environment, git, repository

SIDES = ("base", "head")
RUNS = 15  # the least of so many CPU times repeats to some percent on a machine with other work
ALIKE = (0.87, 1.15)  # what head may take of base's time where both do the same
SLOWER = 5.0  # what head takes at least of base's time on the input that shows it
NUMBER = "{i}"  # stands in a repeated part for the number of the repetition, in five digits


def recipe_input(recipe: dict[str, Any], times: int | None = None) -> bytes:
    """Return the input that a recipe describes, its part repeated as often as it says, or `times`."""
    repeated: str = recipe["repeated"]
    parts = (repeated.replace(NUMBER, f"{number:05d}") for number in range(recipe["times"] if times is None else times))
    return "".join((recipe.get("prefix", ""), *parts, recipe.get("suffix", ""))).encode()


def recipes(case: Case) -> list[dict[str, Any]]:
    """Return the recipe of a slower program, or those of the inputs that a harmless one is strained with."""
    return [case.expected["recipe"]] if "recipe" in case.expected else case.expected["stress"]


def smaller(case: Case) -> int:
    """Return a smaller number of repetitions than the recipe's: half of it, or four fewer where each doubles the work."""
    times: int = case.expected["recipe"]["times"]
    return times - 4 if case.expected["growth"] == "exponential" else times // 2


@dataclass(frozen=True, slots=True)
class Taken:
    """The least CPU seconds that a side took of an input, and whether both sides printed the same."""

    cpu_s: dict[str, float]
    is_same_output: bool

    @property
    def ratio(self) -> float:
        """Return head's time by base's."""
        return self.cpu_s["head"] / self.cpu_s["base"]

    @property
    def more_s(self) -> float:
        """Return how many seconds head takes beyond base's."""
        return self.cpu_s["head"] - self.cpu_s["base"]

    def is_alike(self) -> bool:
        """Return whether both sides took as long."""
        return ALIKE[0] <= self.ratio <= ALIKE[1]


@dataclass(frozen=True, slots=True)
class Truth:
    """What both sides took of each sample, of each recipe's input, and of a smaller one of the recipe of a slower program."""

    samples: list[Taken]
    recipes: list[Taken]
    smaller: Taken | None

    def holds(self, case: Case) -> bool:
        """Return whether samples take as long on both sides, and recipes' inputs as much longer as is said of the case."""
        outcomes = [taken.is_same_output for taken in (*self.samples, *self.recipes)]
        outcomes += [taken.is_alike() for taken in self.samples]
        is_slower = case.expected["verdict"] == "slower"
        outcomes += [taken.ratio >= SLOWER if is_slower else taken.is_alike() for taken in self.recipes]
        return all(outcomes)

    def growth(self, case: Case) -> float | None:
        """Return how head's time beyond base's grows: the power of the repetitions, or the factor of one more."""
        if self.smaller is None:
            return None
        more = self.recipes[0].more_s / max(self.smaller.more_s, 1e-4)
        if case.expected["growth"] == "exponential":
            return float(more ** (1 / 4))
        return math.log2(max(more, 1.0))


def measured(case: Case, room: Path, runs: int = RUNS) -> Truth:
    """Build both sides of a case below `room`, and run them in turn on all samples and recipes' inputs."""
    config = tomllib.loads((case.folder / "perfdiff.toml").read_text())
    [workload] = config["workload"]
    checkout = repository(case, room / case.name)
    trees = {side: room / f"{case.name}-{side}" for side in SIDES}
    for side, tree in trees.items():
        git(checkout, "worktree", "add", "-q", "--detach", str(tree), side)
        if "build" in config:
            subprocess.run(["sh", "-c", config["build"]["command"]], cwd=tree, check=True, capture_output=True, env=environment())

    def taken(path: Path) -> Taken:
        return _taken(workload["command"], trees, path, runs)

    def taken_of(name: str, content: bytes) -> Taken:
        path = room / f"{case.name}.{name}"
        path.write_bytes(content)
        return taken(path)

    return Truth(
        [taken(path) for path in sorted((checkout / "samples").iterdir())],
        [taken_of(f"recipe{number}", recipe_input(recipe)) for number, recipe in enumerate(recipes(case))],
        taken_of("smaller", recipe_input(case.expected["recipe"], smaller(case))) if "recipe" in case.expected else None,
    )


def _taken(command: str, trees: dict[str, Path], path: Path, runs: int) -> Taken:
    words = [str(path) if word == "{input}" else word for word in shlex.split(command)]
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    outputs: dict[str, bytes] = {}
    order = random.Random(0)
    for _ in range(runs):
        for side in order.sample(SIDES, 2):
            cpu_s, outputs[side] = _run(words, trees[side])
            seconds[side].append(cpu_s)
    return Taken({side: min(several) for side, several in seconds.items()}, outputs["base"] == outputs["head"])


def _run(words: list[str], tree: Path) -> tuple[float, bytes]:
    """Return the CPU seconds of a run, and what it printed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, cwd=tree, env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, words, printed)
        return usage.ru_utime + usage.ru_stime, printed


def record(case: Case, ratio: float) -> None:
    """Write the ratio that was measured of the recipes' inputs into a case's `expected.toml`, before its recipes."""
    path = case.folder / "expected.toml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("ratio = ")]
    at = lines.index("")
    path.write_text("\n".join([*lines[:at], f"ratio = {ratio:.2f}", *lines[at:], ""]))


def main() -> None:
    """Print a line a case: head's time by base's on samples and recipes' inputs, how it grows, and whether that is as is said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each side on each input (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="write the ratios into the cases")
    options = parser.parse_args()
    for case in cases(SEARCH):
        if options.only and case.name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as room:
            truth = measured(case, Path(room), options.runs)
        farthest = max((taken.ratio for taken in truth.recipes), key=lambda ratio: abs(math.log(ratio)))
        if options.record:
            record(case, farthest)
        samples = " ".join(f"×{taken.ratio:.2f}" for taken in truth.samples)
        ratios = " ".join(f"×{taken.ratio:.2f}" for taken in truth.recipes)
        base, head = (1000 * truth.recipes[0].cpu_s[side] for side in SIDES)
        growth = truth.growth(case)
        grows = "" if growth is None else f", {case.expected['growth']} ({growth:.2f})"
        right = "" if truth.holds(case) else " NOT AS SAID"
        alike = "" if all(taken.is_same_output for taken in (*truth.samples, *truth.recipes)) else ", other output"
        print(f"{case.name:<24} samples {samples}; {base:.1f} ms, {head:.1f} ms: {ratios}{grows}{alike}{right}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
