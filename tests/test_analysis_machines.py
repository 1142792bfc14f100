"""Several machines: their speed makes no difference, their disagreement is told, and one machine is what it was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, ENVIRONMENT, HEAD, Host, Made, Noise, World, same
from findings import regressed
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, FunctionFinding, PointStanding, Ratio, Verdict
from perfdiff.analysis.looks import look
from perfdiff.analysis.sums.levelling import levelled
from perfdiff.analysis.verdicts.disagreement import Disagreement, settled
from perfdiff.analysis.verdicts.wholeruns import whole_runs
from perfdiff.config import CompareConfig
from perfdiff.records.kinds import differences, kinds
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import Change, Experiment, Machine, Phase, Point, Run, Side
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.statistics.machines import spread
from perfdiff.statistics.pairs import paired_difference
from perfdiff.statistics.sides import pairs_of

# Half to twice as fast, and each with a speed of its own for the changed function.
THREE = (Host("slow", 2.0, {"work": 0.8}, cpu="arm"), Host("usual"), Host("quick", 0.5, {"work": 1.4}, cpu="zen"))


def program(effect: float = 1.0, *, varied: bool = False) -> tuple[Made, ...]:
    """Return a program of which `work` changed; its inputs are `varied` or the same in each call."""

    def inputs(_: Side, n: float, count: int, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        return {"n": n * np.exp(rng.normal(0, 0.5, count)) if varied else np.full(count, n)}

    def cost(side: Side, given: Mapping[str, np.ndarray]) -> np.ndarray:
        return given["n"] * (10.0 * effect if side is HEAD else 10.0)

    work = Made("work", cost, Change.CHANGED, calls=lambda *_: {"main": 20}, inputs=inputs)
    return Made("main", same(2e4)), work, Made("other", same(lambda given: given["n"] * 5.0), calls=lambda *_: {"main": 10})


def compared(world: World, experiment: Experiment | None = None) -> Findings:
    return analyse(experiment or world.experiment(), world.samples, CompareConfig())


def work(found: Findings) -> FunctionFinding:
    return next(each for each in found.functions if each.info.name == "work")


def on(*changes: Mapping[str, float], hosts: tuple[Host, ...] = THREE) -> tuple[Host, ...]:
    """Return hosts whose head costs as many times as much as is said of each, in functions and in whole runs alike."""
    return tuple(replace(host, head={**change, "": change.get("work", 1.0)}) for host, change in zip(hosts, changes, strict=True))


@pytest.mark.parametrize(("effect", "verdict"), [(1.0, Verdict.UNCHANGED), (1.2, Verdict.REGRESSION)])
def test_speeds_of_machines_leave_the_answer_alone(effect: float, verdict: Verdict) -> None:
    one, three = (compared(World(program(effect), runs=15, hosts=hosts)) for hosts in ((), THREE))
    assert one.verdict is three.verdict is verdict
    ratios = [work(found).metrics["self_ns"].overall for found in (one, three)]
    assert ratios[0] is not None
    assert ratios[1] is not None
    assert ratios[0].low < ratios[1].value < ratios[0].high
    assert ratios[1].high / ratios[1].low < 1.3 * ratios[0].high / ratios[0].low
    assert not say(work(three).machines_say)


def test_one_machine_is_what_it_was_whatever_its_number_and_name() -> None:
    world = World(program(1.2), runs=6, plain=lambda _: 1e7)
    plain = world.experiment()
    named = replace(
        plain,
        machines=(Machine("unused", ENVIRONMENT), Machine("lab", ENVIRONMENT)),
        runs=tuple(replace(run, machine=1) for run in plain.runs),
    )
    assert repr(compared(world)) == repr(compared(world, named))  # texts, for NaN is not itself
    assert compared(world, named).machines == ()


def test_order_and_names_of_machines_change_nothing() -> None:
    world = World(program(1.2), runs=15, hosts=on({"work": 1.5}, {}, {}))
    plain = world.experiment()
    turned = replace(
        plain,
        machines=tuple(replace(plain.machines[place], name=name) for place, name in ((2, "x"), (0, "y"), (1, "z"))),
        runs=tuple(replace(run, machine=(run.machine + 1) % 3) for run in plain.runs),
    )
    first, second = work(compared(world)), work(compared(world, turned))
    assert first.verdict is second.verdict
    assert first.metrics["self_ns"].ratio == second.metrics["self_ns"].ratio
    says = say(first.machines_say)
    for name, new in (("slow", "y"), ("usual", "z"), ("quick", "x")):
        says = says.replace(f"{name} ", f"{new} ")
    assert says == say(second.machines_say)


def test_blocks_of_two_machines_with_one_number_are_no_pairs() -> None:
    world = World(program(1.2), runs=15, hosts=THREE)
    plain = world.experiment()
    same_numbers = replace(plain, runs=tuple(replace(run, block=run.block // 3) for run in plain.runs))
    assert repr(work(compared(world)).metrics["self_ns"]) == repr(work(compared(world, same_numbers)).metrics["self_ns"])


def test_levelled_times_stand_at_one_pace_and_keep_each_machine_s_ratios() -> None:
    world = World(program(1.3), runs=30, hosts=THREE, noise=Noise(call=0.02, run=0.005, function=0.005))
    plain = world.experiment()
    at_one_pace = levelled(plain, world.samples)
    machine_of = {run.id: run.machine for run in plain.runs}
    medians: dict[tuple[Side, int, int], float] = {}
    ratios = []
    for samples in (world.samples, at_one_pace.samples):
        by_machine = {}
        for machine in range(3):
            for side in Side:
                table = samples(2, side)
                assert table is not None
                rows = np.array([machine_of[run] == machine for run in table.run.tolist()]) & (table.point == 1)
                medians[side, machine, len(ratios)] = float(np.median(table.metrics["self_ns"][rows]))
            by_machine[machine] = medians[HEAD, machine, len(ratios)] / medians[BASE, machine, len(ratios)]
        ratios.append(by_machine)
    assert ratios[1] == pytest.approx(ratios[0], rel=1e-9)
    levels = [medians[BASE, machine, 1] for machine in range(3)]
    assert max(levels) < 1.02 * min(levels)
    assert at_one_pace.experiment.totals.calls.tolist() == plain.totals.calls.tolist()


def test_inputs_that_differ_from_machine_to_machine_are_not_taken_for_speed() -> None:
    larger = {"large": 4.0, "small": 1.0}
    hosts = (Host("large"), Host("small"))
    world = World((), sizes=(1000,), runs=0, hosts=hosts)

    def inputs(_: Side, n: float, count: int, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        return {"n": np.round(n * larger[world.host.name] * np.exp(rng.normal(0, 0.7, count)))}

    functions = (replace(program()[1], calls=lambda *_: {"": 200}, inputs=inputs),)
    world.functions, world.runs = functions, 12
    world.__post_init__()
    paced = levelled(world.experiment(), world.samples).samples(1, BASE)
    raw = world.samples(1, BASE)
    assert paced is not None
    assert raw is not None
    assert np.abs(np.log(paced.metrics["self_ns"] / raw.metrics["self_ns"])).max() < 0.05


def test_a_lost_run_on_a_slow_machine_makes_no_effect() -> None:
    hosts = (replace(THREE[0], loses={BASE: 2}), *THREE[1:])
    found = compared(World(program(), runs=24, hosts=hosts))
    ratio = work(found).metrics["self_ns"].ratio
    assert found.verdict is Verdict.UNCHANGED
    assert ratio is not None
    assert ratio.low < 1 < ratio.high
    assert (found.machines[-1].name, found.machines[-1].runs_base < found.machines[-1].runs_head) == ("slow", True)


def test_a_machine_that_only_counts_is_none_of_those_that_are_compared() -> None:
    world = World(program(1.2), runs=12, hosts=(Host("client", cpu="atom"), *THREE[1:]))
    plain = world.experiment()
    counting = tuple(replace(run, phase=Phase.COUNTED) if run.machine == 0 else run for run in plain.runs)
    found = compared(world, replace(plain, runs=counting, counts=plain.totals))
    assert sorted(part.name for part in found.machines) == ["quick", "usual"]
    assert work(found).verdict is Verdict.REGRESSION
    alone = tuple(replace(run, phase=Phase.COUNTED) if run.machine != 2 else run for run in plain.runs)
    one = compared(world, replace(plain, runs=alone))
    assert one.machines == ()
    assert one.environment.cpu == "zen"


def test_a_machine_with_one_side_alone_is_left_out_and_told() -> None:
    hosts = (replace(THREE[0], loses={BASE: 1}), *THREE[1:])
    found = compared(World(program(), runs=24, hosts=hosts))
    assert found.verdict is Verdict.UNCHANGED
    assert [part.name for part in found.machines] == ["quick", "usual"]
    assert [(note.slug, "slow" in note.text) for note in map(noted, found.notes)] == [("machines-one-sided", True)]


def test_base_and_head_on_different_machines_have_no_answer() -> None:
    hosts = (Host("a", loses={BASE: 1}), Host("b", loses={HEAD: 1}))
    found = compared(World(program(3.0), runs=12, hosts=hosts))
    assert found.verdict is not Verdict.REGRESSION
    assert [note.slug for note in map(noted, found.notes)] == ["machines-one-sided"]


def test_a_function_slower_on_one_machine_is_a_regression_there() -> None:
    found = compared(World(program(), runs=18, hosts=on({"work": 1.4}, {}, {}), plain=lambda _: 1e7))
    finding = work(found)
    assert found.verdict is finding.verdict is Verdict.REGRESSION
    assert say(finding.machines_say).startswith("slower on slow (×1.")
    assert "not on" in say(finding.machines_say)
    assert "processor (arm, " in say(finding.machines_say)
    assert "machines-disagree" in [note.slug for note in map(noted, found.notes)]
    metric = finding.metrics["self_ns"]
    assert metric.machines["slow"].low > 1.3
    assert metric.machines["usual"].high < 1.1
    assert metric.machines_q < 1e-6
    assert all(end.disagree for end in found.end_to_end)


def test_opposite_effects_are_inconclusive() -> None:
    world = World(program(), runs=18, hosts=on({"work": 1.4}, {}, {"work": 0.7}), plain=lambda _: 1e7)
    found = compared(world)
    assert found.verdict is work(found).verdict is Verdict.INCONCLUSIVE
    assert say(work(found).reason).startswith("machines disagree: slower on slow (×1.")
    assert "machines disagree" in say(found.sentence)
    assert all(end.standing is PointStanding.OPEN and not end.needed for end in found.end_to_end)


def test_guilty_functions_are_numbered_from_one_where_machines_leave_the_first_open() -> None:
    first, second = (replace(regressed(), info=replace(regressed().info, id=number), rank=number) for number in (1, 2))
    seen = {"slow": Ratio(1.4, 1.3, 1.5, 10, 10), "quick": Ratio(0.7, 0.6, 0.8, 10, 10)}
    opposite = Disagreement(replace(first.metrics["wall_ns"], machines=seen), ("slow",), ("quick",), ())
    assert opposite.is_opposite
    found = settled([first, second], {1: opposite}, {}, ())
    assert [(each.info.id, each.verdict, each.rank) for each in found] == [(2, Verdict.REGRESSION, 1), (1, Verdict.INCONCLUSIVE, None)]


def test_a_look_gives_the_verdicts_of_the_end() -> None:
    for hosts in (THREE, on({"work": 1.4}, {}, {}), on({"work": 1.4}, {}, {"work": 0.7})):
        world = World(program(), runs=18, hosts=hosts)
        looked = look(world.experiment(), world.samples, CompareConfig())
        assert work(looked).verdict is work(compared(world)).verdict


@pytest.mark.statistical
def test_speeds_of_machines_make_no_false_alarm() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for seed in range(15):
        hosts = tuple(Host(name, float(np.exp(rng.uniform(-0.7, 0.7))), {"work": float(np.exp(rng.normal(0, 0.3)))}) for name in "abc")
        found = compared(World(program(), sizes=(1000, 3000), runs=15, hosts=hosts, seed=seed, noise=Noise(run=0.05, function=0.05)))
        alarms += work(found).verdict is Verdict.REGRESSION or bool(work(found).machines_say)
    assert alarms == 0


# Many hosts ----------------------------------------------------------------------------------------------------------------------------


def fleet(count: int, *, one_kind: float = 1.0, loses: Mapping[int, Mapping[Side, int]] | None = None) -> tuple[Host, ...]:
    """Return so many hosts of each of three kinds; the first kind's head costs as many times as much."""
    rng = np.random.default_rng(2)
    speeds = np.exp(rng.normal(0, 0.5, 3))
    made = []
    for kind in range(3):
        for host in range(count):
            slow = float(speeds[kind] * np.exp(rng.normal(0, 0.1)))
            head = {"work": one_kind} if kind == 0 else {}
            made.append(Host(f"host-{kind}-{host}", slow, {}, head, f"processor {kind}", (loses or {}).get(host, {})))
    return tuple(made)


def of_fleet(hosts: tuple[Host, ...], effect: float = 1.0) -> Findings:
    world = World(program(effect, varied=True), sizes=(1000,), runs=2 * len(hosts), hosts=hosts, kept=40, noise=Noise(run=0.05))
    tables = [table for function in (1, 2, 3) for side in Side if (table := world.samples(function, side)) is not None]
    return analyse(world.experiment(), TablesInMemory(tables), CompareConfig())


def test_many_hosts_are_told_by_kind_and_count_as_one_draw_each() -> None:
    found = of_fleet(fleet(20), 1.15)
    ratio = work(found).metrics["self_ns"].ratio
    assert found.verdict is Verdict.REGRESSION
    assert ratio is not None
    assert (ratio.runs_base, ratio.runs_head) == (60, 60)
    assert sorted((part.name, part.hosts, part.runs_base) for part in found.machines) == [(f"processor {k}", 20, 40) for k in range(3)]


def test_a_kind_of_hosts_that_alone_is_slower_is_named() -> None:
    found = of_fleet(fleet(20, one_kind=1.3))
    assert found.verdict is Verdict.REGRESSION
    assert say(work(found).machines_say).startswith("slower on processor 0 (×1.")
    assert of_fleet(fleet(20)).verdict is Verdict.UNCHANGED


def test_hosts_with_one_side_are_compared_within_their_kind_where_few_have_both() -> None:
    halves = {host: {BASE if host % 2 else HEAD: 1} for host in range(30)}
    found = of_fleet(fleet(30, loses=halves), 1.6)
    ratio = work(found).metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.low < 1.6 < ratio.high
    assert (ratio.runs_base, ratio.runs_head) == (45, 45)
    assert not found.notes


# Statistics ----------------------------------------------------------------------------------------------------------------------------


def test_cochran_s_q_is_that_of_the_book() -> None:
    """Three effects 0.1, 0.3, 0.8 with variances 0.01, 0.02, 0.03: by hand, Q = Σw(d - d̄)² = 13.03 with d̄ = 0.27."""
    effects, variances = np.array([[0.1, 0.3, 0.8]]), np.array([[0.01, 0.02, 0.03]])
    weights = 1 / variances[0]
    mean = float(weights @ effects[0] / weights.sum())
    by_hand = float(weights @ (effects[0] - mean) ** 2)
    found = spread(effects, variances, np.array([1e9]))
    assert found.p[0] == pytest.approx(math.exp(-by_hand / 2), rel=1e-6)  # χ² with two degrees of freedom
    assert found.extra[0] == pytest.approx((by_hand / 2 - 1) / weights.sum())


def test_a_machine_without_an_effect_says_nothing() -> None:
    found = spread(np.array([[0.1, np.nan], [0.1, 0.1]]), np.array([[0.01, np.nan], [0.01, 0.01]]), np.array([10.0, 0.0]))
    assert found.p.tolist() == [1.0, 1.0]
    assert found.extra.tolist() == [0.0, 0.0]


def test_pairs_of_one_machine_are_what_they_were() -> None:
    rng = np.random.default_rng(3)
    base, head = rng.normal(0, 0.05, (2, 40))
    layouts = np.arange(40) % 6
    assert paired_difference(base, head, layouts) == paired_difference(base, head, layouts, np.full(40, 3))


def test_pairs_of_machines_with_other_speeds_tell_as_much() -> None:
    rng = np.random.default_rng(4)
    base, head, layouts, machines = *rng.normal(0, 0.05, (2, 60)), np.zeros(60, np.int64), np.arange(60) % 3
    speeds = np.array([-0.7, 0.0, 0.7])[machines]
    one, three = paired_difference(base, head, layouts), paired_difference(base + speeds, head + speeds, layouts, machines)
    assert one is not None
    assert three is not None
    assert three.effect == pytest.approx(one.effect, abs=0.01)
    assert three.error < 1.3 * one.error


def test_pairs_of_machines_that_differ_have_a_wider_interval() -> None:
    rng = np.random.default_rng(5)
    base, layouts, machines = rng.normal(0, 0.02, 60), np.zeros(60, np.int64), np.arange(60) % 3
    head = base + rng.normal(0, 0.02, 60)
    alike, apart = (paired_difference(base, head + by, layouts, machines) for by in (0.0, np.array([0.0, 0.1, 0.2])[machines]))
    assert alike is not None
    assert apart is not None
    assert alike.differ > 0.01
    assert apart.differ < 1e-6
    assert apart.upper(0.95) - apart.effect > 3 * (alike.upper(0.95) - alike.effect)


def test_whole_runs_pair_runs_of_one_machine_and_tell_each() -> None:
    rng = np.random.default_rng(6)
    point, runs = Point(0, "w", {}, ""), []
    for block in range(20):
        for machine, slow in enumerate((1e8, 4e8)):
            for side in Side:
                cost = slow * float(np.exp(rng.normal(0, 0.01))) * (1.2 if side is HEAD and machine == 1 else 1.0)
                runs.append(Run(len(runs), Phase.PLAIN, 0, side, block, cost, cost, 1e6, None, None, "", layout=block % 6, machine=machine))
    (end,) = whole_runs([point], runs, CompareConfig(), ("a", "b")).ends
    assert end.disagree
    assert end.standing is PointStanding.SLOWER
    assert end.machines["a"].high < 1.05
    assert end.machines["b"].low > 1.15
    assert end.ratio == end.machines["b"]


def draws(hosts: int) -> list[Run]:
    """Return ten pairs of runs on each host, which are as the analysis sees those of many: in one block a host."""
    rng = np.random.default_rng(3)
    cost = iter(1e7 * np.exp(0.1 * rng.normal(size=20 * hosts)))
    runs = []
    for host in range(hosts):
        for pair in range(10):
            for side in Side:
                ns = float(next(cost))
                runs.append(Run(len(runs), Phase.PLAIN, 0, side, host, ns, ns, 1e6, None, None, "", layout=pair))
    return runs


def test_runs_of_one_host_of_many_are_one_pair() -> None:
    runs = draws(12)
    base, head = pairs_of(*([run for run in runs if run.side is side] for side in Side))
    assert len(base) == len(head) == 12
    for pair, of_host in zip(head, np.split(np.array([run.cpu_ns for run in runs]), 12), strict=True):
        assert math.log(pair.cpu_ns) == pytest.approx(np.log(of_host[1::2]).mean())
    (end,) = whole_runs([Point(0, "w", {}, "")], runs, CompareConfig()).ends
    assert end.ratio is not None
    assert end.ratio.low < 1 < end.ratio.high
    assert end.ratio.runs_base == 12


# Kinds ---------------------------------------------------------------------------------------------------------------------------------


def test_kinds_are_by_what_makes_times_comparable() -> None:
    patched = replace(ENVIRONMENT, kernel="Linux 6.18.44-fc", created="2025-01-01T00:00:00Z")
    machines = [
        Machine("c", replace(patched, kernel="Linux 6.18.50")),
        Machine("a", patched),
        Machine("b", replace(patched, governor="performance")),
        Machine("d", replace(patched, cpu="zen", libraries=("libc.so.6",))),
    ]
    found = kinds(machines)
    assert [(kind.name, kind.members) for kind in found] == [("cpu, unknown", (0, 1)), ("b", (2,)), ("d", (3,))]
    assert found == tuple(replace(kind, members=tuple(sorted(3 - place for place in kind.members))) for kind in kinds(machines[::-1]))
    assert differences(machines[1].environment, machines[3].environment) == ("processor (cpu, zen)", "libraries")
