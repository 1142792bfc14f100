"""Made recordings of a fleet: parts of a server with three functions on many hosts, of any speed and load."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Made, Noise, World
from perfdiff.records import parts, store
from perfdiff.records.parts import Part, PartFunction
from perfdiff.records.schema import Change, Edges, Environment, Feature, Origin, Phase, Revision, SampleTable, Side, Totals

MACHINE = Environment(
    "Testium 3000", 8, "Linux 6.1.0-9", "performance", "gcc 12.2.0", False, "tsc", "0.1.0", "2026-01-01T00:00:00", ("-O2",)
)
FUNCTIONS = ("serve", "parse", "store")
_CALLS = {"serve": 1.0, "parse": 1.0, "store": 2.0}  # of a request
_NS_PER_N = {"serve": 2.0, "parse": 10.0, "store": 5.0}
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Recorded:
    """What one command recorded: of which revision, where, and how it went; `slower` by function multiplies its cost."""

    revision: str
    host: str = "host"
    session: str = "a"
    speed: float = 1.0
    requests: int = 4000
    slower: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Environment = MACHINE
    build: str = "-O2"
    started_s: int = 1_767_225_600
    backwards: bool = False
    rows: int = 60
    n: int = 500  # the middle of the inputs


def digest(*words: object) -> str:
    return hashlib.blake2b(repr(words).encode(), digest_size=16).hexdigest()


def write(folder: Path, made: Recorded, number: int = 0) -> Path:
    """Write the part of this number of a recording below `folder`."""
    rng = np.random.default_rng(int(digest(made.revision, made.host, made.session, number)[:8], 16))
    ids = {name: place for place, name in enumerate(FUNCTIONS, 1)}
    drift = float(np.exp(0.03 * rng.standard_normal()))
    inputs, own, calls, own_ns = {}, {}, {}, {}
    for name in ids:
        n = rng.integers(made.n // 2, made.n * 3 // 2, made.rows).astype(float)
        cost = made.speed * drift * made.slower.get(name, 1.0) * _NS_PER_N[name]
        times = cost * n * np.exp(0.05 * rng.standard_normal(made.rows))
        calls[name] = made.requests * _CALLS[name]
        own_ns[name] = calls[name] * float(times.mean())
        inputs[name], own[name] = n, times
    below_ns = sum(own_ns[name] for name in ("parse", "store")) / calls["serve"]
    tables = [
        _table(id_, inputs[name], own[name], below_ns if name == "serve" else 0.0, calls[name] / made.rows) for name, id_ in ids.items()
    ]
    order = np.array([ids[name] for name in FUNCTIONS])
    total = np.array([own_ns[name] for name in FUNCTIONS])
    wall = np.array([total.sum(), total[1], total[2]])
    count = np.array([calls[name] for name in FUNCTIONS])
    started = (made.started_s + 60 * number) * _SECOND
    part = Part(
        id=digest("part", made.revision, made.host, made.session, number, sorted(made.labels.items()), made.build),
        session=digest("session", made.revision, made.host, made.session),
        number=number,
        host=made.host,
        environment=made.environment,
        revision=Revision(made.revision, digest("commit", made.revision)[:40], ""),
        tree=digest("tree", made.revision),
        build=made.build,
        labels=made.labels,
        started_unix_ns=started,
        ended_unix_ns=started + (-5 if made.backwards else 60) * _SECOND,
        elapsed_s=60.0,
        cpu_s=float(total.sum()) / 1e9,
        processes=1,
        functions=tuple(
            PartFunction(id_, name, "server.c", 10 * id_, "c", digest(name, made.slower.get(name)), frozenset(_callees(name, ids)))
            for name, id_ in ids.items()
        ),
    )
    run = np.zeros(len(FUNCTIONS), np.int64)
    totals = Totals(run, order, count, wall, total, {})
    edges = Edges(run, np.array([0, 1, 1]), order, count, wall)
    return parts.write(folder, part, totals, edges, tables)


def _callees(name: str, ids: Mapping[str, int]) -> set[int]:
    return {ids["parse"], ids["store"]} if name == "serve" else set()


def _table(function: int, n: np.ndarray, times: np.ndarray, below_ns: float, weight: float) -> SampleTable:
    rows = len(n)
    nothing = np.empty((rows, 0))
    return SampleTable(
        function=function,
        side=Side.BASE,
        metrics={"wall_ns": times + below_ns, "self_ns": times},
        features=(Feature("n", Origin.ARGUMENT),),
        values=n[:, None],
        branches=(),
        executed=nothing,
        taken=nothing,
        run=np.zeros(rows, np.int64),
        point=np.zeros(rows, np.int64),
        thread=np.ones(rows, np.int64),
        call=np.arange(1, rows + 1),
        weight=np.full(rows, weight),
    )


def stored(world: World, folder: Path) -> Path:
    """Run a world, with a run without probes beside each with them, and return the folder in which its experiment is saved."""
    experiment = world.experiment()
    plain = [replace(run, id=1000 + run.id, phase=Phase.PLAIN) for run in experiment.runs]
    tables = [world.samples(info.id, side) for info in experiment.functions for side in Side]
    store.save(folder, replace(experiment, runs=(*experiment.runs, *plain)), [calls for calls in tables if calls is not None])
    return folder


def served(folder: Path) -> Path:
    """Return the folder of an experiment in which head's `parse` takes a tenth more, and a square beside, and `store` a fifth less."""

    def parse(side: Side, inputs: Any) -> np.ndarray:
        n = inputs["n"]
        return np.asarray(10 * n if side is Side.BASE else 11 * n + 0.004 * n * n)

    functions = (
        Made("serve", lambda side, inputs: 2 * inputs["n"], calls=lambda side, n: {"": 50}),
        Made("parse", parse, Change.CHANGED, calls=lambda side, n: {"serve": 50}),
        Made(
            "store",
            lambda side, inputs: 5 * inputs["n"] * (0.8 if side is Side.HEAD else 1.0),
            Change.CHANGED,
            calls=lambda side, n: {"serve": 100},
        ),
    )
    return stored(World(functions, sizes=(100, 200, 400, 800), runs=8, noise=Noise()), folder)
