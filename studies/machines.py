"""Print what several machines do to the answers: one machine against three, and a fleet of hosts of ten kinds. All is simulated and seeded.

`one` compares the same program on one machine and on three that are half to twice as fast, in as many runs: verdicts, and whether intervals
overlap. `fleet` compares on 1,000 hosts of ten kinds: false alarms and power. `--quick` makes a tenth of the comparisons.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from perfdiff.report.sentences.catalogue import say

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from experiments import HEAD, Host, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, FunctionFinding, Ratio, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import Change, Side
from studies.support import figures

RUNS = 15  # of a side at each of three points: five on each of three machines
KINDS, HOSTS = 10, 100
SHARE = 0.5  # of a whole run's time that the changed function takes
OTHERS = 2  # functions that nobody changed
CALLS = 60  # of a function that a run keeps
LOUD = Noise(call=0.1, run=0.05, function=0.05, outliers=0.01)


@dataclass(frozen=True)
class Case:
    """What is simulated: head's cost of the changed function over base's, on all machines and on the last one alone."""

    name: str
    effect: float = 1.0
    on_last: float = 1.0
    noise: Noise = field(default_factory=Noise)
    loses: Mapping[Side, int] = field(default_factory=dict)
    share: float = 1.0  # of the comparisons that are asked for

    def whole_run(self, side: Side) -> float:
        """Return what a run takes, ns."""
        return 2e7 * (1 + SHARE * (self.effect - 1) * (side is HEAD))


ONE_AND_THREE = (
    Case("no effect"),
    Case("no effect, loud", noise=LOUD),
    Case("+10 %", 1.10),
    Case("no effect, a third of one machine's runs of base lost", loses={Side.BASE: 3}, share=0.5),
    Case("+8 %", 1.08, share=0.5),
    Case("+15 %, loud", 1.15, noise=LOUD, share=0.5),
)
DISAGREEING = (Case("+30 % on one of three", on_last=1.3), Case("+30 % on one, -10 % on the others", 0.9, 1.3 / 0.9))
FLEET = (0.0, 0.03, 0.05, 0.10)


def _linear(slope: float, given: Mapping[str, np.ndarray]) -> np.ndarray:
    return given["n"] * slope


def program(effect: float, others: int, *, varied: bool) -> tuple[Made, ...]:
    """Return a program with one changed function, whose inputs are `varied` from call to call or the same."""

    def inputs(_side: Side, n: float, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"n": np.exp(rng.normal(np.log(n), 0.5, count)) if varied else np.full(count, n)}

    def cost(side: Side, given: Mapping[str, np.ndarray]) -> np.ndarray:
        return given["n"] * 10.0 * (effect if side is HEAD else 1.0)

    unchanged = (Made(f"other{k}", same(partial(_linear, 3.0 + k)), calls=lambda _, __: {"main": 10}) for k in range(others))
    return Made("main", same(2e4)), Made("work", cost, Change.CHANGED, calls=lambda _, __: {"main": 20}, inputs=inputs), *unchanged


def compared(world: World, config: CompareConfig) -> Findings:
    """Return the findings on a made-up experiment."""
    experiment = world.experiment()
    tables = [table for info in experiment.functions for side in Side if (table := world.samples(info.id, side)) is not None]
    return analyse(experiment, TablesInMemory(tables), config)


def work(found: Findings) -> FunctionFinding:
    """Return what is found of the changed function."""
    return next(each for each in found.functions if each.info.name == "work")


def ratio(found: Findings) -> Ratio | None:
    """Return by how much it differs over all calls."""
    metric = work(found).metrics.get("self_ns")
    return metric.overall if metric else None


def three(case: Case, seed: int) -> tuple[Host, ...]:
    """Return three machines, each with a speed of its own, which functions feel otherwise on each."""
    rng = np.random.default_rng(seed)
    slow = np.exp(rng.uniform(np.log(0.5), np.log(2.0), 3))
    own = np.exp(rng.normal(0.0, 0.3, 3))
    hosts = [Host(name, float(slow[k]), {"work": float(own[k])}, cpu=f"processor {k}") for k, name in enumerate("abc")]
    in_head = {"work": case.on_last, "": 1 + SHARE * (case.on_last - 1)}  # "" are whole runs
    last = Host("c", float(slow[2]), {"work": float(own[2])}, in_head, "processor 2", case.loses)
    return (*hosts[:2], last)


def worlds(case: Case, seed: int) -> Iterator[World]:
    """Yield what is measured on one machine and on three."""
    for hosts in ((), three(case, seed)):
        yield World(
            program(case.effect, OTHERS, varied=False),
            runs=RUNS,
            noise=case.noise,
            seed=seed,
            hosts=hosts,
            plain=case.whole_run,
            kept=CALLS,
        )


def verdicts(found: Sequence[Findings]) -> str:
    """Return how often each verdict was given."""
    counts = Counter(each.verdict for each in found)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])


def overlap(one: Ratio | None, other: Ratio | None) -> bool:
    """Return whether two intervals have a value in common."""
    return one is not None and other is not None and one.low <= other.high and other.low <= one.high


def covers(found: Sequence[Findings], effect: float) -> int:
    """Return in how many comparisons the interval over all calls holds the truth."""
    return sum(each is not None and each.low <= effect <= each.high for each in map(ratio, found))


def told(found: Findings) -> int:
    """Return how many functions are said to be slower that are not the changed one."""
    return sum(each.verdict is Verdict.REGRESSION and each.info.name != "work" for each in found.functions)


def one_and_three(seeds: int) -> None:
    """Print the answers of one machine and of three."""
    columns = (
        "simulated",
        "one machine",
        "three machines",
        "intervals overlap",
        "hold the truth, one",
        "three",
        "width of three over one",
        "said to disagree",
    )
    start = time.monotonic()
    with figures.printed("One machine and three, in as many runs", *columns) as table:
        for case in ONE_AND_THREE:
            count = round(case.share * seeds)
            pairs = [[compared(world, CompareConfig()) for world in worlds(case, seed)] for seed in range(1, count + 1)]
            ones, threes = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            ratios = [(ratio(one), ratio(three)) for one, three in pairs]
            widths = [np.log(b.high / b.low) / np.log(a.high / a.low) for a, b in ratios if a and b and a.high > a.low]
            agree = f"{sum(overlap(*each) for each in ratios)} of {count}"
            table.add(
                case.name,
                verdicts(ones),
                verdicts(threes),
                agree,
                covers(ones, case.effect),
                covers(threes, case.effect),
                f"{np.median(widths):.2f}",
                sum(bool(work(each).machines_say) for each in threes),
            )
            print(table.rows[-1], flush=True)
            others = sum(map(told, threes)), sum(map(told, ones))
            if any(others):
                table.remarks.append(f"{case.name}: {others[0]} other functions told slower on three machines, {others[1]} on one")
        table.remarks.append(f"{RUNS} runs a side at each of three points; {time.monotonic() - start:.0f} s")
    with figures.printed("Machines that disagree", "simulated", "three machines", "said to disagree", "the machine named first") as table:
        for case in DISAGREEING:
            found = []
            for seed in range(1, seeds // 2 + 1):
                _, world = worlds(case, seed)
                found.append(compared(world, CompareConfig()))
            says = [say(work(each).machines_say) for each in found]
            named = sum(each.startswith("slower on c") for each in says)
            table.add(case.name, verdicts(found), sum(map(bool, says)), named)
        table.remarks.append(f"{seeds // 2} comparisons a row")


def fleet(effect: float, on_one_kind: float, seed: int) -> World:
    """Return what 1,000 hosts recorded: kinds with a speed of their own and one for the changed function, hosts with theirs.

    Head's effect varies by 2 % from host to host. Each host has two runs of a side, with inputs of its own.
    """
    rng = np.random.default_rng(seed)
    hosts = []
    for kind in range(KINDS):
        slow, own = np.exp(rng.normal(0, 0.5)), float(np.exp(rng.normal(0, 0.2)))
        for host in range(HOSTS):
            head = float(np.exp(rng.normal(0, 0.02))) * (1 + on_one_kind * (kind == 0))
            hosts.append(
                Host(f"host-{kind}-{host}", slow * float(np.exp(rng.normal(0, 0.1))), {"work": own}, {"work": head}, f"processor {kind}")
            )
    made = program(1 + effect, OTHERS, varied=True)
    return World(made, sizes=(1000,), runs=2 * len(hosts), hosts=tuple(hosts), kept=CALLS, seed=seed, noise=LOUD)


def fleets(seeds: int) -> None:
    """Print the answers of a fleet."""
    start = time.monotonic()
    columns = ("effect", "smallest of interest", "verdicts", "interval holds the truth", "median width", "machines said to disagree")
    with figures.printed(f"{KINDS * HOSTS:,} hosts of {KINDS} kinds", *columns) as table:
        for effect, on_one, least in [
            *((each, 0.0, least) for least in (0.05, 0.01) for each in FLEET),
            (0.0, 0.2, 0.05),
            (0.0, 0.1, 0.05),
        ]:
            config = CompareConfig(min_effect=least)
            found = [compared(fleet(effect, on_one, seed), config) for seed in range(1, seeds + 1)]
            widths = [each.high / each.low - 1 for each in map(ratio, found) if each]
            name = f"+{100 * on_one:.0f} % on one kind" if on_one else f"+{100 * effect:.0f} %"
            truth = "" if on_one else f"{covers(found, 1 + effect)} of {seeds}"
            disagree = sum(bool(work(each).machines_say) for each in found)
            print(name, least, verdicts(found), [say(work(each).reason) for each in found[:1]], flush=True)
            table.add(name, f"{100 * least:.0f} %", verdicts(found), truth, f"{100 * float(np.median(widths)):.2f} %", disagree)
        table.remarks.append(f"{seeds} comparisons a row, two runs a side on each host; {time.monotonic() - start:.0f} s")


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=("one", "fleet"), default=["one", "fleet"])
    parser.add_argument("--quick", action="store_true", help="a tenth of the comparisons")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    if "one" in options.part:
        one_and_three(100 // share)
    if "fleet" in options.part:
        fleets(max(5 // share, 1))
