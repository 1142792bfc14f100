"""Print what probes cost a request of the servers in fixtures, under php-fpm, in Python and in C: CPU time of the revision's services.

A comparison is begun as always, up to the choice of probes within their budget. Then runs of base at the middle size take turns: the
plain build; with the runtime loaded, and told nothing; with all probes off; with the chosen ones. Each kind sends few requests, and many:
the difference is what requests cost once the server is warm, the rest what a run costs beside them. The least of all rounds is taken.
With `--instructions` valgrind counts those of the server's processes in place of time, once: the same on a busy machine, but pages and
the kernel cost none.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import programs
from perfdiff import configuration, storage
from perfdiff.build.cache import BuildCache
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Target
from perfdiff.config import ServiceConfig
from perfdiff.measuring import variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.changes import site_of
from perfdiff.measuring.site import Site
from perfdiff.measuring.surveying import SurveyPoints, surveyed
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records import plan
from perfdiff.records.schema import Phase, Point, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from studies.support import figures, inputs

ROUNDS = 11
COUNTS = (40, 240)  # requests of a run
BAR = 0.05  # of a request's CPU time
WEBDAV = "webdav"
PLAIN, LOADED, OFF, ON = "plain", "runtime loaded", "probes off", "chosen probes"
CALLGRIND = "exec valgrind --tool=callgrind --callgrind-out-file={folder}/%p "
PATIENCE = 60  # times as long as valgrind may make things take
STEERING = ("PERFDIFF_OUT", "PERFDIFF_PLAN", "PERFDIFF_PHP", "PERFDIFF_PYTHON")


@dataclass(slots=True)
class Server:
    """A server whose probes are chosen, and what its runs took: CPU ns, or instructions counted in a folder, by kind and requests."""

    bench: Bench
    point: Point
    targets: Mapping[str, Target]
    counts: Path | None = None
    took: dict[tuple[str, int], list[float]] = field(default_factory=dict)

    def measure(self, rounds: int) -> None:
        """Run all kinds in turns."""
        rng = random.Random(1)
        collectors = {count: self._collector(count) for count in COUNTS}
        for _ in range(rounds):
            for kind, count in rng.sample([(kind, count) for kind in self.targets for count in COUNTS], len(self.targets) * len(COUNTS)):
                collectors[count].targets = {(Phase.TIMED, Side.BASE): self.targets[kind]}
                if self.counts:
                    shutil.rmtree(self.counts, ignore_errors=True)
                    self.counts.mkdir()
                [(run, _)] = collectors[count].collect([Slot(Phase.TIMED, self.point, Side.BASE, 0)], lambda _: None)
                self.took.setdefault((kind, count), []).append(counted(self.counts) if self.counts else run.cpu_ns)

    def _collector(self, count: int) -> Collector:
        made = self.bench.collector({})
        workload = made.workloads[self.point.workload]
        assert workload.requests is not None
        mix = replace(workload.requests, count=str(count))
        room = self.bench.room / f"requests-{count}"
        room.mkdir()
        return replace(
            made, workloads={workload.name: replace(workload, requests=mix, warmup=0, timeout_s=PATIENCE * workload.timeout_s)}, room=room
        )

    def a_request(self, kind: str) -> float:
        """Return the CPU ns of a request of a warm server."""
        few, many = COUNTS
        return (min(self.took[kind, many]) - min(self.took[kind, few])) / (many - few)

    def beside(self, kind: str) -> float:
        """Return the CPU ns of a run beside its warm requests."""
        return min(self.took[kind, COUNTS[0]]) - COUNTS[0] * self.a_request(kind)


def counted(folder: Path) -> float:
    """Return how many instructions all processes have executed that left their counts in a folder."""
    found = (re.findall(rb"^(?:totals|summary): (\d+)", path.read_bytes(), re.MULTILINE) for path in folder.iterdir())
    return float(sum(int(numbers[-1]) for numbers in found if numbers))


def under_valgrind(service: ServiceConfig, folder: Path) -> ServiceConfig:
    """Return a service whose instructions are counted where it belongs to the revision."""
    if service.outside:
        return service
    command = service.command.replace("exec ", CALLGRIND.format(folder=folder), 1)
    return replace(service, command=command, timeout_s=PATIENCE * service.timeout_s)


def request(name: str, room: Path) -> Request:
    """Return a comparison of a server's two revisions."""
    if name != WEBDAV:
        return inputs.request(name, room, "base", "head", language="server")
    case, checkout = programs.Case(programs.FIXTURES / WEBDAV, {}), room / WEBDAV
    programs.repository(case, checkout)
    config = configuration.load(checkout, environment={})
    return Request(checkout, ("base", "head"), replace(config, workloads=config.workloads[:1]), room / "cache", dict(os.environ))


def targets(bench: Bench, site: Site) -> dict[str, Target]:
    """Return base's targets by kind."""
    timed, plain = (
        variants.followed(bench, variants.recipe(bench, site), site).targets[Phase.TIMED, Side.BASE],
        site.targets[Phase.PLAIN, Side.BASE],
    )
    assert timed.plan is not None
    off = bench.room / "off.plan"
    entries = timed.plan.read_bytes()
    plan.write(off, {number: plan.ProbePlan(plan.Mode.OFF) for number in range(1, int.from_bytes(entries[8:12], "little"))})
    untold = replace(timed, plan=None, variables={**timed.variables, **{k: v for k, v in timed.steering.items() if k not in STEERING}})
    return {PLAIN: plain, LOADED: untold, OFF: replace(timed, plan=off), ON: timed}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of runs of each kind (default: {ROUNDS})")
    names = [WEBDAV, "python-query-per-element", "c-query-per-element"]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="servers (default: all)")
    parser.add_argument("--instructions", action="store_true", help="count instructions by valgrind, in place of time")
    options = parser.parse_args()
    title = f"What probes cost a request, {'instructions' if options.instructions else 'CPU time'} of the server"
    units = ("10^3", "10^6") if options.instructions else ("µs", "ms")
    warm, beside = (f"{what}, {unit}" for what, unit in zip(("a warm request", "a run beside them"), units, strict=True))
    columns = ("server", "kind", warm, "beyond plain", beside, f"a run of {COUNTS[0]}", f"of {COUNTS[1]}", "bar")
    with tempfile.TemporaryDirectory() as room, figures.printed(title, *columns) as table:
        for name in options.only:
            add(table, name, request(name, Path(room)), 1 if options.instructions else options.rounds, options.instructions)
        table.remarks.append(
            f"Least of {1 if options.instructions else options.rounds} interleaved rounds; the bar is {BAR:.0%} of a warm request."
        )


def add(table: figures.Table, name: str, asked: Request, rounds: int, instructions: bool) -> None:
    """Measure a server, and add its rows."""
    repository = find_repository(asked.repository)
    progress = Silent()
    with (
        storage.in_use(asked.cache, progress),
        storage.at_work(asked.cache, progress, wait_s=asked.config.measure.wait_s) as room,
        BuildCache(asked.cache) as builds,
    ):
        pins = resolve(repository, asked.revisions, snapshots=asked.cache / "snapshots", apart=asked.config.own_files(asked.repository))
        bench = Bench(asked, pins, builds, room, asked.packs, ProcessExecutor(), Stopwatch(Silent()))
        with closing(bench.upkeep), closing(bench.services):
            site, _ = surveyed(bench, site_of(bench, bench.workshop.plain()), SurveyPoints(bench.points))
            server = Server(bench, bench.points[len(bench.points) // 2], targets(bench, site))
            if instructions:
                server.counts = room / "counts"
                bench.services.configs = [under_valgrind(each, server.counts) for each in bench.services.configs]
            server.measure(rounds)
    bare = server.a_request(PLAIN)
    for kind in server.targets:
        beyond = server.a_request(kind) / bare - 1
        whole = [np.median(server.took[kind, count]) / np.median(server.took[PLAIN, count]) - 1 for count in COUNTS]
        judged = figures.against(beyond, BAR) if kind == ON else ""
        cells = (f"{server.a_request(kind) / 1e3:.0f}", f"{beyond:+.1%}", f"{server.beside(kind) / 1e6:.1f}")
        table.add(name, kind, *cells, *(f"{each:+.1%}" for each in whole), judged)
