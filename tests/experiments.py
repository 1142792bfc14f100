"""Experiments made up for the tests of the analysis: programs with known costs, calls and noise, without compiler or git."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from differing import entities, reasons_of
from perfdiff.records.metrics import METRICS
from perfdiff.records.schema import (
    Change,
    Edges,
    Environment,
    Experiment,
    Feature,
    FunctionInfo,
    Machine,
    Origin,
    Phase,
    Point,
    Revision,
    Run,
    SampleTable,
    Side,
    Source,
    Totals,
    Workload,
)

BASE, HEAD = Side.BASE, Side.HEAD
ENVIRONMENT = Environment("cpu", 2, "linux", None, "cc", False, "tsc", "0.1", "2024-01-01T00:00:00Z")
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Made:
    """A made-up function.

    `cost(side, inputs)` is the self time of each call; `calls(side, n)` how often each caller calls it in a run ("" starts a
    thread); `inputs(side, n, count, rng)` the features of `count` calls. `alloc` bytes a call by side, which may depend on n. The `first`
    calls of a run, so many of a side, cost so many times as much. `takes(side, n)` is what a call by a caller takes with all that it
    calls, in ns, where that is not what calls take on average.
    """

    name: str
    cost: Callable[[Side, Columns], np.ndarray | float]
    change: Change = Change.UNCHANGED
    calls: Callable[[Side, float], Mapping[str, float]] = lambda side, n: {"": 1}
    inputs: Callable[[Side, float, int, np.random.Generator], Columns] = lambda side, n, count, rng: {"n": np.full(count, n)}
    alloc: Mapping[Side, float | Callable[[float], float]] = field(default_factory=lambda: {BASE: 0.0, HEAD: 0.0})
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    culprits: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    text: Mapping[Side, str] = field(default_factory=dict)
    origin: Origin = Origin.ARGUMENT
    categories: tuple[str, ...] = ()
    loads: bool = False
    first: Mapping[Side, tuple[int, float]] = field(default_factory=dict)
    takes: Callable[[Side, float], Mapping[str, float]] = lambda side, n: {}

    def allocated(self, side: Side, n: float) -> float:
        """Return the bytes that a call allocates at a point."""
        alloc = self.alloc[side]
        return alloc(n) if callable(alloc) else alloc

    def at_edge(self, caller: str, side: Side, n: float, average: float) -> float:
        """Return what the calls by a caller take in a run, in ns, where all calls take so much on average."""
        return self.calls(side, n)[caller] * self.takes(side, n).get(caller, average)


@dataclass(frozen=True)
class Noise:
    """Multiplicative noise: of calls, of whole runs (all functions together), of each function in a run, outliers, drift over blocks.

    `step_ns` is that of the clock whose readings times are differences of.
    """

    call: float = 0.05
    run: float = 0.02
    function: float = 0.02
    outliers: float = 0.0
    drift: float = 0.0
    step_ns: float = 0.0


@dataclass(frozen=True)
class Host:
    """A machine on which all takes `slow` times as long, functions in `own` as many times as that more, and in head those in `head`.

    It makes the blocks of base, and of head, whose numbers are no multiple of `loses`, if that is given.
    """

    name: str
    slow: float = 1.0
    own: Mapping[str, float] = field(default_factory=dict)
    head: Mapping[str, float] = field(default_factory=dict)
    cpu: str = "cpu"
    loses: Mapping[Side, int] = field(default_factory=dict)
    noise: float = 1.0

    def times(self, function: str, side: Side) -> float:
        """Return how many times as long a function's own code takes here."""
        return self.slow * self.own.get(function, 1.0) * (self.head.get(function, 1.0) if side is HEAD else 1.0)


PLAIN_HOST = Host("")


def same(value: float | Callable[[Columns], np.ndarray]) -> Callable[[Side, Columns], np.ndarray | float]:
    """Return a cost that is the same on both sides."""
    return lambda side, inputs: value(inputs) if callable(value) else value


@dataclass
class World:
    """Runs made-up functions at points n on both sides."""

    functions: tuple[Made, ...]
    sizes: tuple[float, ...] = (1000, 3000, 10000)
    runs: int = 6
    noise: Noise = Noise()
    seed: int = 1
    kept: int = 200
    rest_ns: float = 1e5  # what a run costs outside all probed functions …
    rest_head: float = 1.0  # … and this times as much in head
    plain: Callable[[Side], float] | None = None
    hosts: tuple[Host, ...] = ()  # that take turns with blocks
    long: tuple[float, ...] = ()  # sizes at which each side runs once

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.ids = {made.name: place + 1 for place, made in enumerate(self.functions)}
        self.tables: dict[tuple[int, Side], list[dict[str, np.ndarray]]] = {}
        self.made_runs: list[Run] = []
        self.totals: list[tuple[float, ...]] = []
        self.edges: list[tuple[float, ...]] = []
        for block in range(self.runs):
            self.host = self.hosts[block % len(self.hosts)] if self.hosts else PLAIN_HOST
            for point, n in enumerate(self.sizes):
                if block and n in self.long:
                    continue
                for side in Side:
                    if side in self.host.loses and block // len(self.hosts) % self.host.loses[side] == 0:
                        continue
                    self._run(block, point, n, side)
                    if self.plain is not None:
                        wall = self.plain(side) * self.host.times("", side) * float(np.exp(self.rng.normal(0, self.noise.run)))
                        self._record(Phase.PLAIN, point, side, block, wall)

    def _record(self, phase: Phase, point: int, side: Side, block: int, wall: float) -> int:
        number = len(self.made_runs) + 1
        machine = self.hosts.index(self.host) if self.hosts else 0
        self.made_runs.append(Run(number, phase, point, side, block, wall, wall, 1e6, 0.0, 0.0, "same", machine=machine))
        return number

    def _run(self, block: int, point: int, n: float, side: Side) -> None:
        number = len(self.made_runs) + 1
        common = np.exp(self.rng.normal(0, self.noise.run) + self.noise.drift * block / self.runs)
        totals: dict[str, dict[str, float]] = {}
        for made in self.functions:
            callers = {caller: count for caller, count in made.calls(side, n).items() if count > 0}
            if not callers:
                continue
            calls = round(sum(callers.values()))
            kept = min(calls, self.kept)
            inputs = made.inputs(side, n, kept, self.rng)
            number_of = np.arange(1, kept + 1)
            first, factor = made.first.get(side, (0, 1.0))
            cost = np.broadcast_to(np.asarray(made.cost(side, inputs), float), kept) * np.where(number_of <= first, factor, 1.0)
            cost = self._noisy(cost, common) * self.host.times(made.name, side)
            own = float(cost.mean()) * calls
            totals[made.name] = {"calls": calls, "self": own, "kept": kept}
            rows = {
                "cost": cost,
                "call": number_of,
                "run": np.full(kept, number),
                "point": np.full(kept, point),
                "weight": np.full(kept, calls / kept),
            }
            self.tables.setdefault((self.ids[made.name], side), []).append({**rows, **inputs})
        walls = self._walls(side, n, totals)
        for name, sums in totals.items():
            alloc = self.functions[self.ids[name] - 1].allocated(side, n) * sums["calls"]
            self.totals.append((number, self.ids[name], sums["calls"], walls[name], sums["self"], alloc, alloc / 64))
            made = self.functions[self.ids[name] - 1]
            for caller, count in made.calls(side, n).items():
                if count > 0:
                    wall = 0.0 if caller == name else made.at_edge(caller, side, n, walls[name] / sums["calls"])
                    self.edges.append((number, self.ids.get(caller, 0), self.ids[name], count, wall))
            below = (walls[name] - sums["self"]) / sums["calls"]
            self.tables[self.ids[name], side][-1]["below"] = np.full(int(sums["kept"]), below)
        rest = self.rest_ns * (self.rest_head if side is HEAD else 1.0)
        self._record(Phase.TIMED, point, side, block, sum(sums["self"] for sums in totals.values()) + rest * common * self.host.slow)

    def _noisy(self, cost: np.ndarray, common: float) -> np.ndarray:
        noise = np.exp(self.rng.normal(0, self.noise.call, len(cost))) * np.exp(self.rng.normal(0, self.noise.function)) * common
        struck = self.rng.random(len(cost)) < self.noise.outliers
        noisy = cost * noise * np.where(struck, self.rng.uniform(2, 10, len(cost)), 1.0)
        step = self.noise.step_ns
        return np.asarray(np.floor(noisy / step + self.rng.random(len(cost))) * step if step else noisy)

    def _walls(self, side: Side, n: float, totals: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Return inclusive times; a caller has its callees' time by its share of their calls."""
        walls = {name: sums["self"] for name, sums in totals.items()}
        for _ in self.functions:  # as many rounds as the call tree can be deep
            for name in walls:
                walls[name] = totals[name]["self"] + sum(
                    each.at_edge(name, side, n, walls[each.name] / totals[each.name]["calls"])
                    for each in self.functions
                    if each.name in walls and each.name != name and each.calls(side, n).get(name, 0) > 0
                )
        return walls

    def experiment(self) -> Experiment:
        """Return the experiment; `samples` serves its tables."""
        totals, edges = np.array(self.totals), np.array(self.edges)
        numbers = edges[:, :3].astype(np.int64)
        callees: dict[int, set[int]] = {}
        for _, caller, callee, *_ in self.edges:
            callees.setdefault(int(caller), set()).add(int(callee))
        return Experiment(
            base=Revision("base", "a" * 40, "base"),
            head=Revision("head", "b" * 40, "head"),
            environment=ENVIRONMENT,
            workloads=(Workload("w", "run {n}", ("n",)),),
            points=tuple(Point(i, "w", {"n": n}, f"run {n}") for i, n in enumerate(self.sizes)),
            functions=tuple(self._info(made, callees) for made in self.functions),
            skipped=(),
            runs=tuple(self.made_runs),
            totals=Totals(
                run=totals[:, 0].astype(np.int64),
                function=totals[:, 1].astype(np.int64),
                calls=totals[:, 2],
                wall_ns=totals[:, 3],
                self_ns=totals[:, 4],
                other={"alloc_bytes": totals[:, 5], "alloc_count": totals[:, 6]},
            ),
            machines=tuple(Machine(host.name, replace(ENVIRONMENT, cpu=host.cpu)) for host in self.hosts),
            edges=Edges(numbers[:, 0], numbers[:, 1], numbers[:, 2], edges[:, 3], edges[:, 4]),
        )

    def _info(self, made: Made, callees: Mapping[int, set[int]]) -> FunctionInfo:
        number = self.ids[made.name]
        sources = {side: Source("prog.c", 10 * number, made.text.get(side, f"{made.name}() {{ {side} }}")) for side in Side}
        return FunctionInfo(
            id=number,
            name=made.name,
            file="prog.c",
            line=10 * number,
            language="c",
            change=made.change,
            culprits=entities(made.culprits),
            reasons=reasons_of(made.reasons),
            base=None if made.change is Change.ADDED else sources[BASE],
            head=None if made.change is Change.REMOVED else sources[HEAD if made.change is Change.CHANGED else BASE],
            calls=frozenset(callees.get(number, set())),
            reads=made.reads,
            writes=made.writes,
            loads=made.loads,
        )

    def samples(self, function: int, side: Side) -> SampleTable | None:
        """Return a function's sample table."""
        parts = self.tables.get((function, side))
        if not parts:
            return None
        made = self.functions[function - 1]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        names = [name for name in joined if name not in ("cost", "call", "run", "point", "weight", "below")]
        count = len(joined["run"])
        absent = {name: np.full(count, np.nan) for name in METRICS}
        alloc = np.array([made.allocated(side, self.sizes[int(point)]) for point in joined["point"]])
        times = {"self_ns": joined["cost"], "wall_ns": joined["cost"] + joined["below"], "alloc_bytes": alloc, "alloc_count": alloc / 64}
        return SampleTable(
            function=function,
            side=side,
            metrics=absent | times,
            features=tuple(Feature(name, made.origin, name in made.categories) for name in names),
            values=np.column_stack([joined[name] for name in names]).astype(float) if names else np.empty((count, 0)),
            branches=(),
            executed=np.empty((count, 0)),
            taken=np.empty((count, 0)),
            run=joined["run"].astype(np.int64),
            point=joined["point"].astype(np.int64),
            thread=np.zeros(count, np.int64),
            call=joined["call"],
            weight=joined["weight"],
        )
