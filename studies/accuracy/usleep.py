"""Freud §5 (EuroSys 2020): sixteen functions of known behaviour, driven by usleep, probed and run by perfdiff itself.

What depends on an input is judged by R² of predictions. What does not has no R² in that sense, as the best prediction is the mean; there,
the distribution is judged: R² of the annotation's quantiles against those of the calls. Both are held out: five folds by run, all calls
counted, outliers included. What usleep itself scatters sets a floor: the same program, without perfdiff, tells what each call asked for
and what it got. A model that knows what was asked for, and adds the median delay, reaches what the machine allows; of random times it
knows those of the other folds, so that it is limited by chance as much as any model.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from perfdiff import pipeline
from perfdiff.analysis.annotations.annotating import MOST_ROWS
from perfdiff.analysis.stats.rows import thinned
from perfdiff.config import WorkloadConfig
from perfdiff.languages.c.pack import C
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import Probe
from perfdiff.models import forecast
from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.models.observations import columns_of
from perfdiff.progress import Silent
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable, Side
from studies.support import figures
from studies.support.sizes import ACCURACY, Size, anew, listed, repository, request, say, texts

METRIC = "wall_ns"
BAR, TWICE_BAR = 0.9866, 0.9838  # the least R² of Freud §5: of sixteen functions, and with everything logged twice
FOLDS = 5
LEVELS = 99  # quantiles at which distributions are compared
SEED = 1


@dataclass(frozen=True, slots=True)
class Amount:
    """So many rounds over all functions a run, so many seeds of their arguments, and so many runs of each."""

    rounds: int
    seeds: int
    runs: int


AMOUNTS = {Size.QUICK: Amount(5, 2, 5), Size.SHORT: Amount(10, 4, 10), Size.LONG: Amount(20, 4, 20), Size.FULL: Amount(20, 8, 20)}


class Twice(C):
    """Puts two probes of the same number into each function, one inside the other: every call is recorded twice."""

    def insert(self, tree: Path, probes: Sequence[Probe], made: Path | None = None) -> Path:
        """Write the probes into the sources of `tree`, then double their definitions."""
        header = super().insert(tree, probes, made)
        header.write_text(doubled(header.read_text()))
        return header


def doubled(header: str) -> str:
    """Return the generated header with the declarations of every probe repeated under other names, ahead of its own."""

    def again(match: re.Match[str]) -> str:
        name, number, own = match.groups()
        outer = own.replace(f"PD_ENTER({number})", "pd_enter(&pd_frame_)").replace("pd_frame_", "pd_outer_")
        outer = outer.replace("pd_probe_", "pd_outer_probe_")
        frame = f"struct pd_frame pd_outer_ __attribute__((cleanup(pd_leave))) = {{{number}, 0, 0, 0}};"
        return f"{name} {frame} {outer} PD_FRAME({number}); {own}"

    return re.sub(r"(#define PD_\d+) +PD_FRAME\((\d+)\);\s*(int pd_probe_ .*? : 0;)", again, header.replace("\\\n", " "))


def expected_class(name: str) -> str:
    """Return the right class of a function by its name."""
    kind = name.partition("_")[0]
    return kind if kind != "random" else "mixture" if name == "random_modes" else "constant"


def recorded(size: Size, room: Path, language: type[C]) -> dict[str, SampleTable]:
    """Build, probe and run the program; return the calls of each of the sixteen functions."""
    amount = AMOUNTS[size]
    checkout = repository(room / "usleep", {"base": texts(ACCURACY / "usleep")})
    seeds = tuple(float(seed) for seed in range(1, amount.seeds + 1))
    workload = WorkloadConfig("calls", f"./calls {amount.rounds} {{seed}}", {"seed": seeds}, runs=amount.runs)
    cache = room / f"usleep {language.__name__} {size}"
    found = pipeline.record(request(checkout, ("base",), workload, cache, seed=SEED), Silent(), packs=Packs(language(cache / "units")))
    tables = {info.name: found.samples(info.id, Side.BASE) for info in found.experiment.functions}
    wanted = re.findall(r'\{"(\w+)",', (ACCURACY / "usleep" / "calls.c").read_text())
    return {name: thinned(table, MOST_ROWS) for name in wanted if (table := tables.get(name)) is not None}


def floor(size: Size, room: Path) -> dict[str, tuple[Floats, Floats]]:
    """Run the program without perfdiff; return what the calls of each function asked for and what they took, in ns."""
    amount = AMOUNTS[size]
    program = anew(room / "usleep direct") / "calls"
    subprocess.run(["gcc", "-O2", ACCURACY / "usleep" / "calls.c", "-o", program, "-lm"], check=True)
    calls: dict[str, list[tuple[float, float]]] = {}
    for _ in range(amount.runs):
        for seed in range(1, amount.seeds + 1):
            command: list[str | Path] = [program, str(amount.rounds), str(seed), "direct"]
            for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
                name, asked, took = line.split()
                calls.setdefault(name, []).append((float(asked) * 1e3, float(took)))
    return {name: (np.array(pairs)[:, 0], np.array(pairs)[:, 1]) for name, pairs in calls.items()}


def r2(cost: Floats, predicted: Floats) -> float:
    """Return the share of variance explained."""
    return 1 - float(np.sum((cost - predicted) ** 2) / np.sum((cost - cost.mean()) ** 2))


def quantiles_r2(quantile: Callable[[float], float], cost: Floats) -> float:
    """Return R² of the quantiles of calls against those of a distribution."""
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    return r2(np.quantile(cost, levels), np.array([quantile(level) for level in levels]))


def _quantile(known: Floats, level: float) -> float:
    return float(np.quantile(known, level))


def quantile_of(annotation: Annotation) -> Callable[[float], float]:
    """Return the quantile function of a typical call."""

    def quantile(level: float) -> float:
        below, above = forecast.interval(annotation, {}, abs(2 * level - 1))
        return float((below if level < 0.5 else above)[0])

    return quantile


def agreement(annotation: Annotation, table: SampleTable, *, at_random: bool) -> float:
    """Return R² of what an annotation says of calls that it was not learnt from."""
    cost = table.metrics[METRIC]
    if at_random:
        return quantiles_r2(quantile_of(annotation), cost)
    return r2(cost, annotation.predict(columns_of(table)))


def held_out(table: SampleTable, *, at_random: bool) -> float:
    """Return the mean R² over the folds, each a fifth of the runs."""
    place = np.unique(table.run, return_inverse=True)[1] % FOLDS
    scores = []
    for fold in range(FOLDS):
        inside = place == fold
        known, new = table.rows(np.flatnonzero(~inside)), table.rows(np.flatnonzero(inside))
        scores.append(agreement(learnt(known), new, at_random=at_random))
    return float(np.mean(scores))


def allowed(asked: Floats, took: Floats, *, at_random: bool) -> float:
    """Return the mean R² over the folds of a model that knows what calls ask for."""
    place = np.arange(len(asked)) * FOLDS // len(asked)
    scores = []
    for fold in range(FOLDS):
        inside = place == fold
        ideal = asked + np.median((took - asked)[~inside])
        scores.append(quantiles_r2(partial(_quantile, ideal[~inside]), took[inside]) if at_random else r2(took[inside], ideal[inside]))
    return float(np.mean(scores))


def learnt(table: SampleTable) -> Annotation:
    """Return the annotation of the calls."""
    return fit(table, METRIC, seed=SEED)


def usable(table: SampleTable) -> SampleTable:
    """Return the calls that have a time."""
    return table.rows(np.flatnonzero(np.isfinite(table.metrics[METRIC])))


def run(size: Size, room: Path) -> None:
    """Print the table."""
    columns = ("function", "calls", "class", "R²", "bar", "doubled on normal", "normal on doubled", "bar", "allowed")
    misses: list[str] = []
    with figures.printed("(a) Freud §5: sixteen functions driven by usleep", *columns) as table:
        say("usleep: probed")
        once = {name: usable(calls) for name, calls in recorded(size, room, C).items()}
        say("usleep: probed twice")
        twice = {name: usable(calls) for name, calls in recorded(size, room, Twice).items()}
        say("usleep: without perfdiff")
        direct = floor(size, room)
        right = 0
        for name, calls in once.items():
            at_random = name.startswith("random")
            annotation, again = learnt(calls), learnt(twice[name])
            found = annotation.cost_class.value
            reached = held_out(calls, at_random=at_random)
            both = agreement(again, calls, at_random=at_random), agreement(annotation, twice[name], at_random=at_random)
            most = allowed(*direct[name], at_random=at_random)
            right += found == expected_class(name)
            verdicts = figures.against(BAR, reached), figures.against(TWICE_BAR, min(both))
            cells = (found, f"{reached:.4f}", verdicts[0], *(f"{each:.4f}" for each in both), verdicts[1], f"{most:.4f}")
            table.add(name, f"{len(calls):,}", *cells)
            if found != expected_class(name):
                misses.append(f"`{name}` is {found} instead of {expected_class(name)}")
            if again.cost_class is not annotation.cost_class:
                misses.append(f"`{name}` probed twice is {again.cost_class.value}")
            misses += [f"`{name}` reaches {reached:.4f} where the machine allows {most:.4f}"] * (reached < BAR)
            misses += [f"`{name}` doubled reaches {min(both):.4f} where the machine allows {most:.4f}"] * (min(both) < TWICE_BAR)
        late_us = np.concatenate([took - asked for asked, took in direct.values()]) / 1e3
        late, tenth, hundredth = np.quantile(late_us, (0.5, 0.9, 0.99))
        amount = AMOUNTS[size]
        table.remarks += [
            f"Right class: {right} of {len(once)}. {amount.seeds} seeds of {amount.rounds} rounds, {amount.runs} runs of each; R² held out "
            f"by run over {FOLDS} folds, all calls; bars {BAR} and {TWICE_BAR}.",
            f"The floor: without perfdiff usleep returns {late:.0f} µs late in the median, {tenth:.0f} µs in one call of ten, "
            f"{hundredth:.0f} µs in one of a hundred; {late_us.max():.0f} µs at worst.",
            f"Recorded twice: {sum(map(len, twice.values())):,} records against {sum(map(len, once.values())):,}.",
            listed("Missed", misses),
        ]
