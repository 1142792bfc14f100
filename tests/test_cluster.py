"""Measuring on a Dask cluster: real schedulers and workers, each fault provoked."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dask_lab
import runtimes
from dask_lab import Lab
from experiments import Made, World, same
from perfdiff import __version__, clustered, configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.cluster import workers
from perfdiff.configuration import Overrides
from perfdiff.engines.cluster import WORTH_SENDING
from perfdiff.errors import MeasurementError, UsageError
from perfdiff.progress import Silent
from perfdiff.records import recorded, store
from perfdiff.records.schema import Experiment, Phase, Side
from perfdiff.report.sentences.catalogue import noted
from perfdiff.request import Request
from perfdiff.revisions import trees
from perfdiff.revisions.bundles import Sent, SentFile, bundled, put, unbundled
from perfdiff.revisions.pins import pin_working_tree, resolve
from perfdiff.revisions.repository import find_repository
from programs import git

pytestmark = pytest.mark.integration

PROGRAM = """
#include <stdlib.h>
static volatile long sum;
static char *volatile room;
__attribute__((noinline)) static void add(long n)
{
    room = malloc(ROUNDS * 64);
    for (long i = 0; i < ROUNDS * n; i++) sum += i;
    free(room);
}
int main(int argc, char **argv) { for (int i = 0; i < 10; i++) add(atol(argv[1])); return argc - 2; }
"""
TOML = """
build.command = "test \\"$LAB\\" != broken && gcc -O1 -o add add.c"
counters.software = false
[measure]
budget_s = 3
layouts = 2
[[workload]]
name = "add"
command = "./add {n}"
parameters.n = [200000, 800000]
runs = 4
"""


LONGEST_S = 200.0  # a command that takes longer will not end, and is told to say what each of its threads does


def committed(folder: Path, toml: str, sources: Mapping[str, str]) -> Path:
    """Make a folder a repository with a commit for each source, tagged by its name."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(toml)
    for tag, source in sources.items():
        (folder / "add.c").write_text(source)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", tag)
        git(folder, "tag", tag)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = {f"v{rounds}": PROGRAM.replace("ROUNDS", str(rounds)) for rounds in (1, 2)}
    return committed(tmp_path_factory.mktemp("cluster") / "project", TOML, sources)


class Comparison:
    """A comparison, or another command, as a program, whose standard error is read while it runs."""

    def __init__(
        self,
        project: Path,
        cache: Path,
        *arguments: str,
        command: str = "",
        variables: dict[str, str] | None = None,
        program: tuple[str, ...] = ("-m", "perfdiff"),
    ) -> None:
        if not cache.exists():
            runtimes.lent_to(cache)
        words = [sys.executable, *program, *command.split(), "--verbose", *arguments]
        own = dask_lab.environment() | {"PERFDIFF_CACHE": str(cache), "PYTHONFAULTHANDLER": "1"} | (variables or {})
        self.process = subprocess.Popen(words, cwd=project, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.cache, self.told = cache, ""
        self._limit = threading.Timer(LONGEST_S, self.process.send_signal, [signal.SIGABRT])
        self._limit.daemon = True
        self._limit.start()

    def until(self, pattern: str) -> str:
        """Return the next line of standard error that matches."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told += line
            if re.search(pattern, line):
                return line
        raise AssertionError(f"{pattern} was not told:\n{self.told}")

    def end(self) -> int:
        """Return its exit code."""
        output, errors = self.process.communicate(timeout=LONGEST_S + 20)
        self._limit.cancel()
        self.output = output
        self.told += errors
        assert self.process.returncode != -signal.SIGABRT, self.told
        return self.process.returncode

    @property
    def experiment(self) -> Experiment:
        (folder,) = (self.cache / "experiments").glob("[!.]*")
        return recorded.load(folder).experiment


def without_compiler(folder: Path) -> str:
    """Return a PATH with all programs that a worker needs but compilers."""
    folder.mkdir(parents=True)
    for name in ("sh", "git", "ip", "test", "hostname", "unshare", "python3"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


def other_version(folder: Path) -> str:
    """Return a path with a perfdiff of another version."""
    package = folder / "perfdiff"
    (package / "cluster").mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.0.1"\n')
    (package / "cluster" / "__init__.py").write_text("PROTOCOL = 0\n")
    return str(folder)


@pytest.fixture
def made_hosts() -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The address of this host, and three others."""
    if dask_lab.obstacle():
        yield "127.0.0.1", [(), (), ()]
        return
    with dask_lab.hosts(3) as found:
        yield found


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own with no space left, or one that is not there where no disk can be mounted."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode != 0:
        folder.rmdir()
        folder.write_text("no folder")
    yield folder
    if mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_worker_is_killed_and_others_cannot_measure_but_the_answer_is_that_of_one_machine(
    project: Path, tmp_path: Path, made_hosts: tuple[str, list[tuple[str, ...]]], full_disk: Path
) -> None:
    """Three workers measure, of which one is killed midway; four are left out by name, each for its own reason."""
    host, prefixes = made_hosts
    with dask_lab.lab(tmp_path / "lab", host) as lab:
        for number, prefix in enumerate(prefixes, 1):
            lab.add(f"w{number}", prefix=prefix)
        lab.add("old", variables={"PYTHONPATH": other_version(tmp_path / "old")})
        lab.add("bare", variables={"PATH": without_compiler(tmp_path / "bin")})
        lab.add("broken", variables={"LAB": "broken"})
        lab.add("full", variables={"PERFDIFF_CACHE": str(full_disk / "cache")})
        lab.add("others", resources="")
        lab.wait()
        asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--format", "json", "--cluster", lab.address)
        lost = "lab2" if prefixes[1] else r"\(w2\)"
        asked.until("comparing whole runs")
        asked.until(rf"add n=\d+ on (base|head), .*{lost}" if prefixes[1] else r"add n=\d+ on")
        lab.kill("w2")
        assert asked.end() == 1, asked.told
    found = asked.experiment
    alone = Comparison(project, tmp_path / "cache", "v1", "v2", "--format", "json")
    assert alone.end() == 1
    by_cluster, by_one = json.loads(asked.output), json.loads(alone.output)
    assert by_cluster["verdict"] == by_one["verdict"] == "regression"
    answers = [[(each["name"], each["verdict"], each["change"]) for each in report["functions"]] for report in (by_cluster, by_one)]
    assert answers[0] == answers[1]
    assert answers[0][0] == ("add", "regression", "changed")
    assert by_cluster["functions"][0]["metrics"]["wall_ns"]["ratio"] == pytest.approx(2.0, abs=0.3)
    assert set(by_cluster) - {"machines"} == set(by_one) - {"machines"}
    notes = {note.text.split(" at ")[0]: note for note in map(noted, found.notes) if note.slug in ("worker-left-out", "worker-lost")}
    assert {name: note.slug for name, note in notes.items()} == {
        "worker w2": "worker-lost",
        **dict.fromkeys(("worker old", "worker bare", "worker broken", "worker full"), "worker-left-out"),
    }
    assert f"perfdiff there is 0.0.1, not {__version__} as here" in notes["worker old"].text
    assert "compiler" in notes["worker bare"].text
    assert "exited 1" in notes["worker broken"].text
    assert "full" in notes["worker full"].text
    require_pairs(found)
    of_machines = Counter(run.machine for run in found.runs if run.phase is Phase.TIMED)
    assert sum(count >= 2 * 5 for count in of_machines.values()) >= 2
    assert len({machine.name for machine in found.machines}) == len(found.machines) == 4
    if prefixes[1]:
        assert {machine.name for machine in found.machines[1:]} == {"lab1", "lab2", "lab3"}


def require_pairs(found: Experiment) -> None:
    """Hold that each pair was made once, on one machine, and that no two runs have one number."""
    pairs: dict[tuple[str, int, int], list[tuple[str, int]]] = {}
    for run in found.runs:
        if run.phase in (Phase.PLAIN, Phase.TIMED):
            assert run.machine > 0
            pairs.setdefault((run.phase, run.point, run.block), []).append((run.side, run.machine))
    for made in pairs.values():
        assert sorted(side for side, _ in made) == ["base", "head"]
        assert len({machine for _, machine in made}) == 1
    for phase, point in {(phase, point) for phase, point, _ in pairs}:
        blocks = sorted(block for known, at, block in pairs if (known, at) == (phase, point))
        assert blocks == list(range(len(blocks)))
    assert len({run.id for run in found.runs}) == len(found.runs)


@pytest.fixture
def one_worker(tmp_path: Path) -> Iterator[Lab]:
    with dask_lab.lab(tmp_path / "lab") as lab:
        lab.add("w1")
        lab.wait()
        yield lab


@pytest.fixture(scope="module")
def steady_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A worker that can be measured on, and one that cannot, for tests that leave them as they are."""
    folder = tmp_path_factory.mktemp("lab")
    with dask_lab.lab(folder / "lab") as lab:
        lab.add("w1")
        lab.add("old", variables={"PYTHONPATH": other_version(folder / "old")})
        lab.wait()
        yield lab


LONG = str(20_000_000_000 + os.getpid())  # minutes a run, and no other test's
SLOW = "--param", f"n={LONG}"
# Runs that last for minutes are known to be long after half a second, where nobody else's time hangs on it.
HASTY = "from perfdiff import cli; from perfdiff.measuring import later; later.LONG_S = 0.5; cli.main()"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_runs_on_when_the_client_is_interrupted(project: Path, tmp_path: Path, steady_lab: Lab, number: signal.Signals) -> None:
    words = "v1", "v2", *SLOW, "--thorough", "--cluster", steady_lab.address, "--", "./add {n}"
    asked = Comparison(project, tmp_path / "cache", *words, program=("-c", HASTY))
    asked.until("comparing whole runs")
    wait_until(lambda: len(dask_lab.processes(LONG)) > 1, "the workload runs beside its client")
    asked.process.send_signal(number)
    assert asked.end() == (130 if number == signal.SIGINT else -number)
    wait_until(lambda: not dask_lab.processes(LONG), "the workload is ended")
    wait_until(lambda: not steady_lab.busy(), "the station is ended")


def test_a_limited_time_holds_on_a_cluster_and_nothing_runs_on_after_it(project: Path, tmp_path: Path, steady_lab: Lab) -> None:
    time_s, start_s = 8.0, 5.0  # of an interpreter, on a machine that is not alone
    started = time.monotonic()
    asked = Comparison(
        project, tmp_path / "cache", "v1", "v2", *SLOW, "--thorough", "--time", "8s", "--cluster", steady_lab.address, "--", "./add {n}"
    )
    assert asked.end() == 4
    assert 0.5 * time_s < time.monotonic() - started < 1.1 * time_s + start_s
    assert re.search(r"its time of 8 s was over in the stage", asked.told), asked.told
    wait_until(lambda: not steady_lab.busy(), "the station is ended")


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


IMPATIENT = "from perfdiff import cli; from perfdiff.cluster import crew; crew.RETURN_S = 0; cli.main()"  # asks once whether it is back


def test_a_lost_scheduler_is_told(project: Path, tmp_path: Path, one_worker: Lab) -> None:
    asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--cluster", one_worker.address, program=("-c", IMPATIENT))
    asked.until("comparing whole runs")
    asked.until(r"add n=\d+ on")
    one_worker.kill("scheduler")
    assert asked.end() == 3
    assert "[scheduler-lost]" in asked.told


def test_a_comparison_goes_on_where_the_scheduler_comes_back_with_its_workers(project: Path, tmp_path: Path, one_worker: Lab) -> None:
    """What was made before counts, on the same machine, and nothing twice; the builds are the worker's own still."""
    asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--cluster", one_worker.address)
    asked.until("comparing whole runs")
    asked.until(r"its pair 3\)")
    one_worker.kill("scheduler")
    asked.until("waiting for the scheduler to come back")
    one_worker.workers["w1"].wait(60)  # a worker ends with its scheduler
    wait_until(lambda: not one_worker.busy(), "the station has ended with its worker")
    one_worker.start()
    one_worker.add("w1")
    assert asked.end() == 1, asked.told
    found = asked.experiment
    require_pairs(found)
    assert {run.machine for run in found.runs if run.phase is Phase.PLAIN} == {1}
    assert len(found.machines) == 2
    assert [note.slug for note in map(noted, found.notes) if note.slug.startswith("scheduler")] == ["scheduler-returned"]


def test_the_last_worker_that_is_lost_ends_the_comparison(project: Path, tmp_path: Path, one_worker: Lab) -> None:
    asked = Comparison(project, tmp_path / "cache", "v1", "v2", variables={"PERFDIFF_CLUSTER": one_worker.address})
    asked.until("comparing whole runs")
    asked.until(r"add n=\d+ on")
    assert one_worker.busy()
    one_worker.kill("w1")
    assert asked.end() == 3
    assert "[worker-lost]" in asked.told
    wait_until(lambda: not one_worker.busy(), "the station has ended with its worker")


def test_a_workload_that_fails_everywhere_is_the_error_of_one_machine(project: Path, tmp_path: Path, steady_lab: Lab) -> None:
    asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--cluster", steady_lab.address, "--", "./add 1 2")
    assert asked.end() == 3
    assert "'./add 1 2' exited 1" in asked.told
    assert "[workload-failed]" in asked.told


def test_the_doctor_says_what_each_worker_can_measure(tmp_path: Path, steady_lab: Lab) -> None:
    command = [sys.executable, "-m", "perfdiff", "doctor", "--cluster", steady_lab.address, "--format", "json"]
    asked = subprocess.run(command, env=dask_lab.environment(), capture_output=True, check=True, cwd=tmp_path, timeout=LONGEST_S)
    told = json.loads(asked.stdout)
    assert told["can_compare"]
    able, old = told["workers"]
    assert (able["name"], able["can_compare"], old["name"], old["can_compare"]) == ("w1", True, "old", False)
    checks = {check["name"]: check for check in able["checks"]}
    assert checks["cache"]["says"] == str(steady_lab.folder / "w1" / "cache")
    assert checks["C compiler"]["found"]
    assert "0.0.1" in old["obstacle"]


def test_workers_without_the_resource_are_not_used(tmp_path: Path) -> None:
    with dask_lab.lab(tmp_path / "lab") as lab:
        lab.add("w1", resources="")
        lab.wait()
        with pytest.raises(MeasurementError, match="--resources perfdiff=1") as raised:
            workers.examined(lab.address)
    assert raised.value.slug == "no-workers"


def test_a_scheduler_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CONNECT_S", 0.3)
    with pytest.raises(MeasurementError, match=r"no scheduler of Dask answers at tcp://127\.0\.0\.1:9") as raised:
        workers.examined("tcp://127.0.0.1:9")
    assert raised.value.slug == "no-scheduler"


def test_without_dask_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'perfdiff[cluster]'")):
        workers.examined("tcp://127.0.0.1:9")


# All work takes as many times longer as the worker's SLOWNESS says, as on a slow processor.
SLOWED = PROGRAM.replace("static char", "static long slowness = 1;\nstatic char").replace("ROUNDS * n;", "ROUNDS * n * slowness;")
SLOWED = SLOWED.replace("{ for (int i = 0; i < 10", '{ if (getenv("SLOWNESS")) slowness = atol(getenv("SLOWNESS")); for (int i = 0; i < 10')


def test_a_slow_worker_behind_tls_makes_whole_pairs_and_nobody_waits_for_more_than_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster is reached with the configuration of Dask; what the slow worker has not begun, the other one makes."""
    sources = {f"v{rounds}": SLOWED.replace("ROUNDS", str(rounds)) for rounds in (1, 2)}
    points = TOML.replace("[200000, 800000]", "[100000, 200000, 300000, 400000, 600000, 800000]")  # a block has a pair of each
    project = committed(tmp_path / "project", points, sources)
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=lab"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    options = ("--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key))
    with dask_lab.lab(tmp_path / "lab", options=options, scheme="tls") as lab:
        lab.add("w1")
        lab.add("w2", variables={"SLOWNESS": "30"})
        lab.wait()
        tls = "DASK_DISTRIBUTED__COMM__TLS__"
        variables = {
            f"{tls}CA_FILE": str(certificate),
            f"{tls}CLIENT__CERT": str(certificate),
            f"{tls}CLIENT__KEY": str(key),
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
        }
        command = [sys.executable, "-m", "perfdiff", "doctor", "--cluster", lab.address]
        there = dask_lab.environment() | variables
        able = subprocess.run(command, env=there, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=LONGEST_S)
        assert (able.returncode, able.stdout.splitlines()[-1]) == (0, "perfdiff can measure on 2 of 2 workers.")
        monkeypatch.setattr(workers, "CONNECT_S", 0.3)
        with pytest.raises(MeasurementError) as refused:
            workers.examined(lab.address)
        assert refused.value.slug == "no-scheduler"
        asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--cluster", lab.address, variables=variables)
        assert asked.end() == 1, asked.told
    assert f"2 of 2 workers of {lab.address} can measure; watch them at http://127.0.0.1:" in asked.told
    require_pairs(asked.experiment)
    for told in asked.told.split("surveying ("):  # whole runs, then runs with probes
        makers = re.findall(r"on head, .*\((w[12])\) \(its pair", told)
        assert makers.count("w1") > makers.count("w2") > 0
        assert "w1" in makers[-2:], makers


def test_revisions_travel_with_their_history_tags_and_uncommitted_changes(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project, copy, symlinks=True)
    (copy / "add.c").write_text("int main(void) { return 0; }\n")
    (copy / "input.txt").write_text("a\n")
    repository = find_repository(copy)
    pin, _ = pin_working_tree(repository, snapshots=tmp_path / "snapshots")
    pins = (resolve(repository, ("v1", "v2"), snapshots=tmp_path / "snapshots").base, pin)
    bundle = bundled(pins)
    shutil.move(copy, tmp_path / "away")
    for _ in range(2):  # the second time all is there
        there = unbundled(bundle, tmp_path / "there", tmp_path / "top", Path())
    put([SentFile.read(tmp_path / "away", Path("input.txt"))], tmp_path / "top")
    assert (tmp_path / "top" / "input.txt").read_text() == "a\n"
    for sent, text in zip(map(Sent.of, pins), (PROGRAM.replace("ROUNDS", "1"), "int main(void) { return 0; }\n"), strict=True):
        tree = tmp_path / sent.tree
        trees.lay_out(sent.pinned(there), tree)
        assert (tree / "add.c").read_text() == text
        assert git(tree, "describe", "--tags") == ("v1" if sent.commit == pins[0].commit else "v2")
        assert git(tree, "rev-list", "--count", "HEAD") == ("1" if sent.commit == pins[0].commit else "2")


def test_of_the_history_files_do_not_travel_which_no_revision_has(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project, copy, symlinks=True)
    (copy / "large").write_bytes(os.urandom(1_000_000))
    for subject in ("with", "without"):
        git(copy, "add", "-A")
        git(copy, "commit", "-q", "-m", subject)
        (copy / "large").unlink(missing_ok=True)
    pins = resolve(find_repository(copy), ("v1", "HEAD"), snapshots=tmp_path / "snapshots")
    bundle = bundled([pins.base, pins.head])
    assert sum(map(len, bundle.packs)) < 100_000
    there = unbundled(bundle, tmp_path / "there", tmp_path / "top", Path())
    shutil.rmtree(copy)
    for sent in (Sent.of(pins.base), Sent.of(pins.head)):
        trees.lay_out(sent.pinned(there), tmp_path / sent.tree)
    tree = tmp_path / pins.head.tree
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "log", "--format=%s", "--", "large").splitlines() == ["without", "with"]
    assert git(tree, "describe", "--tags").startswith("v2-2-g")


def test_submodules_travel_with_what_names_them(project: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(project), "inner/adder")
    git(outer, "commit", "-q", "-m", "with a submodule")
    pins = resolve(find_repository(outer), ("HEAD", "HEAD"), snapshots=tmp_path / "snapshots")
    bundle = bundled([pins.base, pins.head])
    shutil.move(outer, tmp_path / "away")
    there = unbundled(bundle, tmp_path / "there", tmp_path / "top", Path())
    trees.lay_out(Sent.of(pins.head).pinned(there), tmp_path / "tree")
    assert (tmp_path / "tree" / "inner" / "adder" / "add.c").read_text() == (project / "add.c").read_text()


def test_recorded_calls_are_analysed_on_workers_to_the_last_digit(tmp_path: Path, steady_lab: Lab) -> None:
    """By a scheduler that has no perfdiff, and not on the worker whose perfdiff is another version."""

    def executed(dask_worker: Any) -> int:
        return dask_worker.state.executed_count

    made = Made("f0", cost=same(lambda inputs: 50.0 + 3.0 * inputs["n"]), calls=lambda side, n: {"": 30})
    world = World(tuple(replace(made, name=f"f{number}") for number in range(WORTH_SENDING)), sizes=(1000, 3000), kept=30)
    found = [table for number in world.ids.values() for side in Side if (table := world.samples(number, side)) is not None]
    store.save(tmp_path / "saved", world.experiment(), found)
    answers, counts = [], []
    for options in ([], ["--cluster", steady_lab.address]):
        asked = Comparison(tmp_path, tmp_path / "cache", "saved", "saved", "--format", "json", *options, command="compare")
        assert asked.end() == 0, asked.told
        assert ("worker old" in asked.told) == bool(options)
        answers.append({name: value for name, value in json.loads(asked.output).items() if name != "stages"})
        with workers.connected(steady_lab.address) as client:
            counts.append(sorted(client.run(executed).values()))
    assert answers[0] == answers[1]
    assert len(answers[0]["functions"]) == WORTH_SENDING
    (old, able), (old_then, able_then) = counts
    assert (old_then, able_then > able) == (old, True)


SURELY_SLOWER = 3.0  # of eight times as slow: workers that share a CPU may take as long for something else meanwhile
STEPS = {"v1": 1, "v2": 1, "v4": None, "v5": 8, "v6": 8}  # rounds by revision; one does not build
FOLLOWED = """
build.command = "test \\"$LAB\\" != broken && gcc -O1 -o add add.c"
[[workload]]
name = "add"
command = "./add {n}"
parameters.n = [200000, 800000]
runs = 8
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {tag: "not finished" if rounds is None else PROGRAM.replace("ROUNDS", str(rounds)) for tag, rounds in STEPS.items()}
    sources = {tag: f"{text}/* {tag} */\n" for tag, text in texts.items()}
    return committed(tmp_path_factory.mktemp("history") / "project", FOLLOWED, sources)


def changes(told: dict[str, Any]) -> list[tuple[str, bool, bool]]:
    """Return of each revision whether what a call allocates changed, and whether it has a cost.

    Times say so of one machine; these workers share the CPUs of one, so that a time says as well what the others do meanwhile.
    """
    costs = [(each["rev"], each["metrics"].get("alloc_bytes")) for each in told["revisions"]]
    return [(name, bool(cost and cost["change"]), cost is not None) for name, cost in costs]


def test_several_revisions_are_recorded_at_the_same_time_and_one_worker_is_killed(
    history: Path, tmp_path: Path, made_hosts: tuple[str, list[tuple[str, ...]]]
) -> None:
    """So is a profile, for which nothing is recorded again; who cannot build is left out."""
    host, prefixes = made_hosts
    with dask_lab.lab(tmp_path / "lab", host) as lab:
        for number, prefix in enumerate(prefixes, 1):
            lab.add(f"w{number}", prefix=prefix)
        lab.add("broken", variables={"LAB": "broken"})
        lab.wait()
        options = "--tags", "--format", "json", "--cluster", lab.address
        asked = Comparison(history, tmp_path / "cache", *options, command="log add")
        asked.until("recording revisions on workers")
        wait_until(lambda: dask_lab.processes(str(lab.folder / "w2" / "cache") + "/trees"), "w2 builds or runs")
        lab.kill("w2")
        assert asked.end() == 0, asked.told
        profile = Comparison(history, tmp_path / "cache", *options, command="profile")
        assert profile.end() == 0, profile.told
    by_cluster = json.loads(asked.output)
    assert changes(by_cluster) == [(tag, tag == "v5", tag != "v4") for tag in STEPS]
    assert by_cluster["revisions"][3]["metrics"]["wall_ns"]["change"]["ratio"] > SURELY_SLOWER
    machines = [each["machine"] for each in by_cluster["revisions"]]
    assert len(set(machines)) == len(by_cluster["machines"]) >= 2
    notes = {note["text"].split(" at ")[0]: note["slug"] for note in by_cluster["notes"]}
    assert notes["worker w2"] == "worker-lost"
    assert notes["worker broken"] == "worker-left-out"
    assert "exited 1" in by_cluster["revisions"][2]["reason"] or "build" in by_cluster["revisions"][2]["reason"]
    (grown,) = [each for each in json.loads(profile.output)["growth"] if each["grew"]]
    assert grown["name"] == "add"
    assert "v5" in [each["rev"] for each in grown["changes"]]
    assert grown["self_ns"][-1] / grown["self_ns"][0] > SURELY_SLOWER


def test_a_revision_that_fails_on_every_worker_is_the_error_of_one_machine(history: Path, tmp_path: Path, steady_lab: Lab) -> None:
    asked = Comparison(history, tmp_path / "cache", "v1", "--cluster", steady_lab.address, "--", "./add 1 2", command="profile")
    assert asked.end() == 3
    assert "'./add 1 2' exited 1" in asked.told
    assert "[workload-failed]" in asked.told


def test_nothing_runs_on_when_a_history_is_interrupted(history: Path, tmp_path: Path, steady_lab: Lab) -> None:
    asked = Comparison(history, tmp_path / "cache", "v1", *SLOW, "--cluster", steady_lab.address, "--", "./add {n}", command="profile")
    asked.until("recording revisions on workers")
    wait_until(lambda: len(dask_lab.processes(LONG)) > 1, "the workload runs beside its client")
    asked.process.send_signal(signal.SIGINT)
    assert asked.end() == 130
    wait_until(lambda: not dask_lab.processes(LONG), "the workload is ended")
    wait_until(lambda: not steady_lab.busy(), "the station is ended")


def test_what_was_recorded_of_a_history_is_not_recorded_again_after_the_scheduler_was_lost(
    history: Path, tmp_path: Path, one_worker: Lab
) -> None:
    words = "add", "v1", "v2", "v5", "--cluster", one_worker.address
    asked = Comparison(history, tmp_path / "cache", *words, command="log")
    asked.until(r"v2 on")
    one_worker.kill("scheduler")
    assert asked.end() == 3
    assert "[scheduler-lost]" in asked.told
    one_worker.workers["w1"].wait(60)
    wait_until(lambda: not one_worker.busy(), "the station has ended with its worker")
    experiments = one_worker.folder / "w1" / "cache" / "experiments"
    before = {folder.name: folder.stat().st_ino for folder in experiments.glob("[!.]*")}
    one_worker.start()
    one_worker.add("w1")
    one_worker.wait()
    again = Comparison(history, tmp_path / "cache", *words, command="log")
    assert again.end() == 0, again.told
    after = {folder.name: folder.stat().st_ino for folder in experiments.glob("[!.]*")}
    assert len(before) == 2
    assert len(after) == 3
    assert before.items() <= after.items()


def test_the_one_worker_that_is_lost_ends_a_history(history: Path, tmp_path: Path, one_worker: Lab) -> None:
    asked = Comparison(history, tmp_path / "cache", "add", "v1", "v2", command="log", variables={"PERFDIFF_CLUSTER": one_worker.address})
    asked.until("recording revisions on workers")
    one_worker.kill("w1")
    assert asked.end() == 3
    assert "[worker-lost]" in asked.told


class Heard(Silent):
    """Keeps what was noted, and the steps."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def advance(self, text: str = "") -> None:
        self.told.append(text)

    def note(self, text: str) -> None:
        self.told.append(text)


def test_comparisons_that_a_bisect_will_ask_for_are_made_before_but_for_those_that_fail(
    history: Path, tmp_path: Path, steady_lab: Lab
) -> None:
    config = configuration.load(history, overrides=Overrides(cluster=steady_lab.address), environment=os.environ)
    config = replace(config, counters=replace(config.counters, software=False))
    cache = runtimes.lent_to(tmp_path / "cache")
    requests = [Request(history, ("v1", other), config, cache, dask_lab.environment()) for other in ("v2", "v4", "v5")]
    heard = Heard()
    clustered.compare_ahead(steady_lab.address, lambda workers: requests * workers, heard)
    commits = {tag: git(history, "rev-parse", tag)[:10] for tag in STEPS}
    assert [told.split(" on ")[0] for told in heard.told if " on " in told] == [commits["v2"], commits["v5"]]
    for request, verdict in ((requests[0], Verdict.UNCHANGED), (requests[2], Verdict.REGRESSION)):
        kept = Heard()
        assert pipeline.compare(request, kept).findings.verdict is verdict
        assert any(text.startswith("measured already") for text in kept.told)
    assert len([*(cache / "experiments").glob("[!.]*")]) == 2
