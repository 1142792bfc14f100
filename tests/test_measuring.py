"""The whole measurement of a small program: what progress tells of it, what is kept of it, and when it is made anew."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import PointStanding, Rung, Verdict
from perfdiff.cli import samples
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.errors import DiskFilledError, RunFailedError, WorkloadError
from perfdiff.measuring import calls, making, patience, surveytime
from perfdiff.measuring import rounds as rounds_of_runs
from perfdiff.measuring.wholepairs import MOST_CONFIRMING
from perfdiff.progress import Silent
from perfdiff.records import recorded, store
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Phase, Side
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.request import Request
from perfdiff.revisions.pins import PinnedPair, resolve
from perfdiff.revisions.repository import find_repository
from perfdiff.statistics.pairs import FEWEST_PAIRS, FIRST_LOOK
from programs import git

pytestmark = pytest.mark.integration

PROGRAM = """
#include <stdlib.h>
static volatile long sum;
static void add(long n) { for (long i = 0; i < n; i++) sum += ROUNDS * i; }
int main(int argc, char **argv) { add(atol(argv[1])); return argc - 2; }
"""
TOML = """
build.command = "gcc -O2 -o add add.c"
measure.thorough = true
[[workload]]
name = "add"
command = "./add {n} $UNUSED"
parameters.n = [1000, 3000]
runs = 6
"""


BRIEF_S = 1.0


@dataclass
class Steps:
    """A `Progress` that counts: the steps of each stage, and how many were announced."""

    announced: dict[str, int | None] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    def stage(self, name: str, total: int | None) -> None:
        self.order.append(name)
        self.announced[name], self.made[name] = total, 0
        self.current = name

    def advance(self, text: str = "") -> None:
        self.made[self.current] += 1

    def note(self, text: str) -> None:
        self.notes.append(text)

    def know(self, text: str) -> None:
        self.known.append(text)


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., Request]:
    """Return what asks to compare two revisions of the program, with these variables beside a path."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(TOML)
    for rounds in (1, 2):
        (folder / "add.c").write_text(PROGRAM.replace("ROUNDS", str(rounds)))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"rounds {rounds}")
        git(folder, "tag", f"v{rounds}")
    config = configuration.load(folder, environment={})
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    cache = runtimes.lent_to(tmp_path / "cache")
    return lambda **variables: Request(folder, ("v1", "v2"), config, cache, environment | variables)


def briefly(request: Request) -> Request:
    """Return the same with few runs, for what is said of no time."""
    return replace(request, config=replace(request.config, measure=replace(request.config.measure, budget_s=BRIEF_S)))


def test_what_was_measured_is_measured_anew_only_where_something_that_it_depends_on_differs(
    request_of: Callable[..., Request], tmp_path: Path
) -> None:
    progress, asked = Steps(), briefly(request_of())
    found = pipeline.compare(asked, progress)
    assert all(progress.made[name] <= total for name, total in progress.announced.items() if total is not None)
    assert progress.made["measuring"] > 0 < progress.made["counting"]
    assert "counting all functions" not in progress.made  # who asks for all evidence is not answered by counts
    assert not progress.notes

    again = Steps()
    pipeline.compare(briefly(request_of(TERM="dumb")), again)
    assert [note.partition(",")[0] for note in again.notes] == ["measured already"]
    assert "measuring" not in again.made
    assert len(list((tmp_path / "cache" / "experiments").iterdir())) == 1
    for variable in ("OMP_NUM_THREADS", "LD_LIBRARY_PATH", "UNUSED"):
        key = pipeline.experiment_key(request_of(**{variable: "1"}), _pins(request_of()))
        assert key != pipeline.experiment_key(request_of(), _pins(request_of())), variable
    tolerant = tuple(replace(workload, min_effect=0.1) for workload in asked.config.workloads)
    judged_otherwise = replace(asked, config=replace(asked.config, workloads=tolerant))
    assert pipeline.experiment_key(judged_otherwise, _pins(asked)) == pipeline.experiment_key(asked, _pins(asked))
    of_memory = replace(asked, config=replace(asked.config, compare=replace(asked.config.compare, memory=0.1)))
    assert pipeline.experiment_key(of_memory, _pins(asked)) != pipeline.experiment_key(asked, _pins(asked))

    assert found.experiment is not None
    samples.save(tmp_path / "saved", RecordedExperiment(found.experiment, found.samples, found.counts))
    saved = recorded.load(tmp_path / "saved")
    numbers = {info.name: info.id for info in saved.experiment.functions}
    calls, counts = saved.samples(numbers["add"], Side.HEAD), saved.counts(numbers["add"], Side.HEAD)
    assert calls is not None
    assert counts is not None
    assert ("blocks" in calls.metrics, "blocks" in counts.metrics) == (False, True)


SUMS = """
#include <stdlib.h>
static volatile long sum;
static long steps(long n) { long found = 0; for (long i = 0; i < LENGTH; i++) found += FACTOR * i ^ found; return found; }
static int spare(int n) { return n + FACTOR; }
int main(int argc, char **argv)
{
    if (argc > 2)
        return spare(argc);
    for (int i = 0; i < 20; i++)
        sum += steps(atol(argv[1]));
    return 0;
}
"""
VERSIONS = {"base": ("n", "3"), "head": ("n", "5"), "longer": ("n + n / 10", "5")}  # what LENGTH and FACTOR are


class Steady(ProcessExecutor):
    """Runs as usual, and says that runs without probes all take the same to a per mille; keeps what else it ran."""

    def __init__(self) -> None:
        self.probed: list[str] = []
        self._plain = 0

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        if " with " in command.where:
            self.probed.append(command.where)
            return found
        self._plain += 1
        took_ns = 1e6 * (1 + self._plain % 3 / 1000)
        return replace(found, wall_ns=took_ns, cpu_ns=took_ns)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        return [self.execute(command) for command in commands]


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Request:
    """Return what asks to compare two versions of a function that execute as much as each other; `longer` executes more."""
    folder = tmp_path_factory.mktemp("sums")
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(TOML.replace("measure.thorough = true\n", "").replace(" $UNUSED", ""))
    for name, (length, factor) in VERSIONS.items():
        (folder / "add.c").write_text(SUMS.replace("LENGTH", length).replace("FACTOR", factor))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", name)
        git(folder, "tag", name)
    config = configuration.load(folder, environment={})
    return Request(folder, ("base", "head"), config, tmp_path_factory.mktemp("cache"), {"PATH": "/usr/local/bin:/usr/bin:/bin"})


def test_where_whole_runs_exclude_a_slow_down_and_no_function_counts_more_nothing_is_surveyed(sums: Request) -> None:
    progress, executor = Steps(), Steady()
    outcome = pipeline.compare(sums, progress, executor=executor)
    assert (outcome.findings.verdict, outcome.findings.rung) == (Verdict.UNCHANGED, Rung.RUNS)
    assert {name for name in progress.made if name.startswith("building")} == {"building (plain)", "building (counted)"}
    assert not {"surveying", "counting", "measuring"} & progress.made.keys()
    # One run a side that counts calls; then 2 points, sides and rounds.
    assert progress.made["counting all functions"] == progress.announced["counting all functions"] == 2 + 8

    experiment = outcome.experiment
    assert experiment is not None
    assert {run.phase for run in experiment.runs} == {Phase.PLAIN, Phase.COUNTED}
    assert sorted(info.name for info in experiment.functions) == ["main", "steps"]
    assert [(each.name, each.reason) for each in experiment.skipped] == [("spare", "never called by any workload")]
    assert experiment.counts is not None
    assert experiment.counts.other["blocks"].min() > 20
    assert [(each.info.name, each.calls_base, each.calls_head) for each in outcome.findings.functions] == [
        ("steps", 40, 40),
        ("main", 2, 2),
    ]


def test_a_count_that_moves_ends_the_counting_of_all_functions_at_the_shortest_point_and_a_survey_follows(sums: Request) -> None:
    progress, executor = Steps(), Steady()
    outcome = pipeline.compare(replace(sums, revisions=("base", "longer")), progress, executor=executor)
    assert progress.made["counting all functions"] == 2 + 4  # calls on both sides; 1 point, 2 sides and rounds
    assert progress.made["surveying"] > 0 < progress.made["measuring"]
    first = executor.probed[:7]
    assert [" with counters" in where for where in first] == [True] * 6 + [False]
    assert len({where.partition(", ")[2] for where in first[:6]}) == 1
    experiment = outcome.experiment
    assert experiment is not None
    assert sum(run.phase is Phase.COUNTED for run in experiment.runs) == progress.made["counting"] == 8
    assert [info.name for info in experiment.functions if info.change.is_suspect] == ["steps"]


class Longer(Steady):
    """Runs of head without probes all take half as long again."""

    times = 1.5

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        if " with " in command.where or "head" not in command.where:
            return found
        return replace(found, wall_ns=self.times * found.wall_ns, cpu_ns=self.times * found.cpu_ns)


def test_a_proof_is_confirmed_by_a_few_pairs_at_one_point(sums: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_of_runs, "CONFIRMED_S", 600.0)  # however busy the machine is
    progress = Steps()
    outcome = pipeline.compare(replace(sums, revisions=("head", "head")), progress, executor=Steady())
    assert (outcome.findings.verdict, outcome.findings.rung) == (Verdict.UNCHANGED, Rung.CODE)
    assert "confirming by whole runs" in progress.made
    assert not {"comparing whole runs", "linking in other layouts", "surveying"} & progress.made.keys()
    assert max(end.ratio.runs_base for end in outcome.findings.end_to_end if end.ratio) == MOST_CONFIRMING


def test_one_pair_that_is_clearly_longer_is_enough_to_doubt_a_proof(sums: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_of_runs, "CONFIRMED_S", 1e-9)  # as where runs take long
    steady, longer = (
        pipeline.compare(replace(sums, revisions=(name, name)), Steps(), executor=executor).findings
        for name, executor in (("longer", Steady()), ("base", Longer()))
    )
    assert (steady.verdict, steady.rung) == (Verdict.UNCHANGED, Rung.CODE)
    assert ", and the few whole runs that there was time for agree (" in say(steady.sentence)
    assert longer.verdict is Verdict.REGRESSION
    assert "proof-contradicted" in {note.slug for note in map(noted, longer.notes)}


def test_whole_runs_that_contradict_a_proof_are_a_regression(sums: Request) -> None:
    progress = Steps()
    cache = sums.cache.with_name("contradicted")
    findings = pipeline.compare(replace(sums, revisions=("head", "head"), cache=cache), progress, executor=Longer()).findings
    assert (findings.verdict, findings.rung) == (Verdict.REGRESSION, Rung.RUNS)
    assert say(findings.sentence).startswith("Regression, not located: whole runs at add n=")
    assert [note.slug for note in map(noted, findings.notes) if note.slug == "proof-contradicted"] == ["proof-contradicted"]
    assert "comparing whole runs" in progress.made


def test_each_workload_must_call_something_by_itself(sums: Request) -> None:
    (workload,) = sums.config.workloads
    idle = replace(workload, name="idle", command="true {n}")
    with pytest.raises(WorkloadError, match="workload idle never called any of the") as caught:
        pipeline.compare(replace(sums, config=replace(sums.config, workloads=(workload, idle))), Steps(), executor=Steady())
    assert caught.value.slug == "nothing-called"


def test_functions_that_are_counted_first_and_never_called_are_an_error(sums: Request) -> None:
    progress = Steps()
    workload = replace(sums.config.workloads[0], command="true {n}")
    with pytest.raises(WorkloadError) as caught:
        pipeline.compare(replace(sums, config=replace(sums.config, workloads=(workload,))), progress, executor=Steady())
    assert caught.value.slug == "nothing-called"
    assert "counting all functions" in progress.made


def test_where_counting_all_points_would_exceed_its_budget_the_survey_comes_first(sums: Request) -> None:
    progress = Steps()
    # A run takes 1 ms, counted 20 times as long: 2 rounds of 2 points on 2 sides are 160 ms.
    counters = replace(sums.config.counters, budget_s=0.1)
    outcome = pipeline.compare(replace(sums, config=replace(sums.config, counters=counters)), progress, executor=Steady())
    assert "counting all functions" not in progress.made
    assert progress.made["surveying"] > 0 < progress.made["measuring"]
    assert "partly-counted" in {note.slug for note in map(noted, outcome.findings.notes)}


class Slow(Steady):
    """Runs steadily, and takes long to count."""

    def execute(self, command: Command) -> Execution:
        if "with counters" in command.where:
            time.sleep(0.05)
        return super().execute(command)


def test_counting_that_turns_out_slower_than_its_budget_ends_after_the_shortest_point(sums: Request) -> None:
    progress = Steps()
    # By what plain runs take, 160 ms would do; six counted ones of the first of two points, half of all, take 300 ms and more.
    counters = replace(sums.config.counters, budget_s=0.2)
    pipeline.compare(replace(sums, config=replace(sums.config, counters=counters)), progress, executor=Slow())
    assert progress.made["counting all functions"] == 2 + 4
    assert progress.made["surveying"] > 0


LARGEST = "n=3000"


class Slower(Steady):
    """Plain runs of head take twice as long; those at the largest point take so long by this machine's clock that they get few turns."""

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        if " with " in command.where:
            return found
        if LARGEST in command.where:
            time.sleep(0.1)
        factor = 2 if "head" in command.where else 1
        return replace(found, wall_ns=factor * found.wall_ns, cpu_ns=factor * found.cpu_ns)


def test_where_a_point_is_slower_the_others_are_run_until_something_can_be_said_of_them(sums: Request) -> None:
    asked = replace(sums, config=replace(sums.config, counters=replace(sums.config.counters, software=False)))
    found = pipeline.compare(asked, Silent(), executor=Slower()).findings
    assert found.verdict is Verdict.REGRESSION
    pairs = {end.point.label: end.ratio.runs_base if end.ratio else 0 for end in found.end_to_end}
    assert {end.standing for end in found.end_to_end} == {PointStanding.SLOWER}
    assert set(pairs.values()) == {FEWEST_PAIRS}, "as many show that head is slower by far"


def test_who_asks_for_a_fast_answer_has_it_from_whole_runs_alone(sums: Request) -> None:
    asked = replace(sums, config=replace(sums.config, measure=replace(sums.config.measure, fast=True)))
    outcome = pipeline.compare(asked, Silent(), executor=Slower())
    assert outcome.findings.verdict is Verdict.REGRESSION
    assert outcome.experiment is not None
    assert {run.phase for run in outcome.experiment.runs} == {Phase.PLAIN}
    assert "whole-runs-alone" in {note.slug for note in map(noted, outcome.findings.notes)}
    assert {each.verdict for each in outcome.findings.functions} == {Verdict.INCONCLUSIVE}


class OfSeconds(Slower):
    """Plain runs at the two largest of five points are said to take some seconds, twice as many of head."""

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        if " with " in command.where or not any(size in command.where for size in ("n=3000", "n=4000")):
            return found
        took_ns = 2e9 * (2 if "head" in command.where else 1)
        return replace(found, wall_ns=took_ns, cpu_ns=took_ns)


def test_where_head_is_slower_by_far_calls_work_and_lines_are_asked_of_points_that_take_seconds_no_more_than_needed(sums: Request) -> None:
    (workload,) = sums.config.workloads
    workload = replace(workload, parameters={"n": (500.0, 1000.0, 2000.0, 3000.0, 4000.0)})
    counters = replace(sums.config.counters, budget_s=1000.0)
    asked = replace(sums, revisions=("base", "longer"), config=replace(sums.config, workloads=(workload,), counters=counters))
    outcome = pipeline.compare(asked, Silent(), executor=OfSeconds())
    assert outcome.findings.verdict is Verdict.REGRESSION
    assert outcome.experiment is not None
    runs, points = outcome.experiment.runs, outcome.experiment.points
    runs_at = {point.label: Counter(run.phase for run in runs if run.point == point.id) for point in points}
    counted, timed = ([runs_at[point.label][phase] for point in points] for phase in (Phase.COUNTED, Phase.TIMED))
    assert counted == [4, 4, 4, 0, 0]
    assert timed[3:] == [2, 2] < timed[:2]
    assert "long-runs" in {note.slug for note in map(noted, outcome.findings.notes)}


class Lasting(Slower):
    """Head's plain runs at the largest point are said to take ten minutes."""

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        is_long = " with " not in command.where and LARGEST in command.where and "head" in command.where
        return replace(found, wall_ns=6e11, cpu_ns=6e11) if is_long else found


@pytest.mark.parametrize("thorough", [False, True])
def test_where_shorter_runs_show_that_head_is_slower_calls_are_timed_once_in_long_ones(sums: Request, thorough: bool) -> None:
    config = replace(sums.config, counters=replace(sums.config.counters, software=False), compare=replace(sums.config.compare, seed=3))
    asked = replace(sums, config=replace(config, measure=replace(config.measure, thorough=thorough)))
    progress = Steps()
    outcome = pipeline.compare(asked, progress, executor=Lasting())
    assert outcome.findings.verdict is Verdict.REGRESSION
    assert outcome.experiment is not None
    (largest,) = (point.id for point in outcome.experiment.points if LARGEST in point.label)
    timed = Counter((run.point == largest, run.side) for run in outcome.experiment.runs if run.phase is Phase.TIMED)
    assert {timed[True, side] == timed[False, side] for side in Side} == {thorough}
    notes = [note.text for note in map(noted, outcome.findings.notes) if note.slug == "long-runs"]
    if thorough:
        assert not notes
    else:
        assert [timed[True, side] for side in Side] == [1, 1]
        assert progress.announced["surveying"] == 2 + 2 * 2  # a count, and two rounds at most, of the other point
        assert notes[0].startswith(f"runs at add {LARGEST} take up to 600 s, and shorter ones show that head is slower")


VARYING = 20  # plain runs: five pairs of two points
TRIED = 4  # runs before these, one of each point and side, which show whether they write in their tree


class Restless(Steady):
    """Its first plain runs vary by some per cent, so that more of them are needed than their time allows."""

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        number = self._plain - TRIED
        if " with " in command.where or not 0 < number <= VARYING:
            return found
        took_ns = 1e6 * (1 + 0.08 * math.sin(1000 * number))
        return replace(found, wall_ns=took_ns, cpu_ns=took_ns)


class Ticks:
    """A clock that is a second later each time it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


def test_where_calls_leave_the_answer_to_whole_runs_these_go_on(sums: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (calls, patience, making):
        monkeypatch.setattr(module, "time", Ticks())
    # Two seconds a pair: five pairs of both points take more than these, and so would all that are needed.
    measure, counters = replace(sums.config.measure, budget_s=14.0), replace(sums.config.counters, software=False)
    progress = Steps()
    asked = replace(sums, config=replace(sums.config, measure=measure, counters=counters))
    found = pipeline.compare(asked, progress, executor=Restless()).findings
    assert progress.made["measuring"] > 0
    assert (found.verdict, found.rung) == (Verdict.UNCHANGED, Rung.RUNS)
    assert min(end.ratio.runs_base for end in found.end_to_end if end.ratio) > 5
    assert progress.order[-4:] == ["comparing whole runs", "looking what runs read elsewhere", "making runs as by hand", "analysing"]


class Fickle(Steady):
    """In each second pair of plain runs of a point base takes half as long again, in the others head, so that nothing is sure in time."""

    def __init__(self) -> None:
        super().__init__()
        self._made: Counter[str] = Counter()

    def execute(self, command: Command) -> Execution:
        found = super().execute(command)
        if " with " in command.where:
            return found
        self._made[command.where] += 1
        is_longer = (self._made[command.where] % 2 == 0) == ("head" in command.where)
        took_ns = 1.5e6 if is_longer else 1e6
        return replace(found, wall_ns=took_ns, cpu_ns=took_ns)


@pytest.mark.parametrize(("budget_s", "pairs"), [(None, FIRST_LOOK), (4.0, FEWEST_PAIRS)])
def test_long_runs_go_on_to_a_look_at_all_points_unless_their_time_is_set(
    sums: Request, monkeypatch: pytest.MonkeyPatch, budget_s: float | None, pairs: int
) -> None:
    for module in (calls, patience, making):
        monkeypatch.setattr(module, "time", Ticks())
    monkeypatch.setattr("perfdiff.config.LEAST_BUDGET_S", 4.0)
    monkeypatch.setattr("perfdiff.config.FIRST_LOOK_S", 1000.0)  # by a clock that is looked at several times a pair
    config = replace(
        sums.config, measure=replace(sums.config.measure, budget_s=budget_s), counters=replace(sums.config.counters, software=False)
    )
    asked = replace(sums, config=replace(config, compare=replace(config.compare, seed=2)))  # of no other test
    experiment = pipeline.compare(asked, Silent(), executor=Fickle()).experiment
    assert experiment is not None
    plain = Counter((run.point, run.side) for run in experiment.runs if run.phase is Phase.PLAIN)
    assert set(plain.values()) == {pairs}


def _pins(request: Request) -> PinnedPair:
    return resolve(find_repository(request.repository), request.revisions, snapshots=request.cache / "snapshots")


class Filling(ProcessExecutor):
    """Runs as usual, until a counted run finds the disk full."""

    def execute(self, command: Command) -> Execution:
        if "with counters" in command.where:
            raise DiskFilledError("the disk is full", slug="disk-filled")
        return super().execute(command)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        return [self.execute(command) for command in commands]


def test_counted_runs_that_fill_the_disk_end_the_comparison_and_nothing_is_kept(request_of: Callable[..., Request], tmp_path: Path) -> None:
    asked = briefly(request_of())
    with pytest.raises(DiskFilledError):
        pipeline.compare(asked, Silent(), executor=Filling())
    assert not [each for each in (tmp_path / "cache").glob("experiments/*") if store.exists(each)]
    pipeline.compare(replace(asked, config=replace(asked.config, counters=replace(asked.config.counters, software=False))), Silent())


class Crashing(ProcessExecutor):
    """Runs as usual, but for runs with timed probes, which crash from the third block on."""

    def __init__(self, progress: Steps) -> None:
        self._progress = progress

    def execute(self, command: Command) -> Execution:
        if self._progress.made.get("measuring", 0) >= 8 and " with probes" in command.where:
            raise RunFailedError(f"'{command.text}' was killed by SIGSEGV ({command.where})", slug="workload-crashed")
        return super().execute(command)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        return [self.execute(command) for command in commands]


def test_probed_runs_that_crash_leave_the_answer_to_whole_runs(request_of: Callable[..., Request]) -> None:
    progress, asked = Steps(), request_of()
    config = replace(asked.config, counters=replace(asked.config.counters, software=False))
    outcome = pipeline.compare(replace(asked, config=config), progress, executor=Crashing(progress))
    experiment = outcome.experiment
    assert experiment is not None
    assert Phase.TIMED not in {run.phase for run in experiment.runs}
    assert "calls-not-timed" in {note.slug for note in experiment.notes}
    (found,) = (each for each in outcome.findings.functions if each.info.name == "add")
    assert (found.info.change.is_suspect, found.verdict) == (True, Verdict.INCONCLUSIVE)


WORDS = """
#include <stdlib.h>
#include <string.h>
static volatile long sum;
static const char *word(const char *at) { while (*at && *at != ' ') sum += ROUNDS * *at++; return *at ? at + 1 : at; }
static void words(const char *text) { while (*text) text = word(text); }
int main(int argc, char **argv) {
    long n = atol(argv[1]);
    char *text = malloc(n + 1);
    for (long i = 0; i < n; i++) text[i] = i % 64 == 63 ? ' ' : 'a';
    text[n] = 0;
    words(text);
    return argc - 2;
}
"""


def test_texts_are_features_only_where_reading_them_takes_a_small_part_of_the_run(request_of: Callable[..., Request]) -> None:
    asked = request_of()
    for rounds in (1, 2):
        (asked.repository / "add.c").write_text(WORDS.replace("ROUNDS", str(rounds)))
        git(asked.repository, "add", "-A")
        git(asked.repository, "commit", "-q", "-m", f"words, {rounds} rounds")
        git(asked.repository, "tag", f"words{rounds}")
    workload = replace(asked.config.workloads[0], parameters={"n": (2_000_000, 4_000_000)}, runs=2)
    config = replace(asked.config, workloads=(workload,), counters=replace(asked.config.counters, software=False))
    outcome = pipeline.compare(replace(asked, revisions=("words1", "words2"), config=config), Silent())
    numbers = {each.info.name: each.info.id for each in outcome.findings.functions}
    read = {
        name: {feature.name for feature in table.features}
        for name, number in numbers.items()
        if (table := outcome.samples(number, Side.HEAD)) is not None
    }
    assert "strlen(text)" in read["words"]
    assert "strlen(at)" not in read["word"]
    (note,) = (note for note in map(noted, outcome.findings.notes) if note.slug == "texts-not-read")
    assert note.text.startswith("texts and files of `word` are not read")


@pytest.mark.parametrize("thorough", [False, True])
def test_a_survey_leaves_out_long_points_that_shorter_ones_stand_for_and_the_answer_stays(
    sums: Request, monkeypatch: pytest.MonkeyPatch, thorough: bool
) -> None:
    """No time at all is left for it: the shortest point that tells is asked, and calls are timed at all points as ever."""
    monkeypatch.setattr(surveytime, "LEAST_S", 0.0)
    monkeypatch.setattr(surveytime, "MOST_PLAIN_RUNS", 0.0)
    measure, counters = replace(sums.config.measure, thorough=thorough), replace(sums.config.counters, software=False)
    asked = replace(sums, revisions=("base", "longer"), config=replace(sums.config, measure=measure, counters=counters))
    outcome = pipeline.compare(asked, Silent(), executor=Slower())
    assert outcome.findings.verdict is Verdict.REGRESSION
    assert outcome.experiment is not None
    timed = Counter(run.point for run in outcome.experiment.runs if run.phase is Phase.TIMED)
    assert len(set(timed.values())) == 1
    assert len(timed) == len(outcome.experiment.points)
    left_out = [note.text for note in map(noted, outcome.findings.notes) if note.slug == "survey-bounded"]
    assert [LARGEST in text for text in left_out] == ([] if thorough else [True])
