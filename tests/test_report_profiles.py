"""Profiles for other viewers: stacks put together from calls, and the formats that they are written in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import findings as made
import pprof_reader
from perfdiff.analysis.callgraph import CallCost, CallEdge, CallGraph, OwnCounts
from perfdiff.analysis.findings import Findings
from perfdiff.cli import destinations, options
from perfdiff.errors import UsageError
from perfdiff.report.document import build
from perfdiff.report.profiles.stacks import EXPORTED, METHOD, NO_CALLER, OUTSIDE, TOO_SMALL, UNREPORTED, Detail, Stacks, call_stacks
from perfdiff.report.renderers import RENDERERS
from test_report_tree import function

ALL = Detail(least=0.0, most=100_000, deepest=10_000)
Costs = Mapping[int, tuple[float, float]]


def compared(own: Costs, *calls: tuple[int | None, int, float, float], **more: Any) -> Findings:
    """Return findings on `f1`, `f2`, … with own times of (base, head) and calls `(caller, callee, number, ns)` that both sides make."""
    graph = CallGraph(
        {number: CallCost(base, head, base, head) for number, (base, head) in own.items()},
        tuple(CallEdge(caller, callee, count, count, ns, ns) for caller, callee, count, ns in calls),
        **more,
    )
    return replace(made.findings(functions=tuple(function(number) for number in own)), calls=graph, end_to_end=())


def spent(stacks: Stacks, quantity: str = "time") -> dict[str, tuple[float, float]]:
    """Return base's and head's own cost of each stack that has any, by its names."""
    row = [each.name for each in stacks.quantities].index(quantity)
    names = [";".join(stacks.frames[place].name for place in stacks.chain(stack)) for stack in range(len(stacks.frame))]
    assert len(set(names)) == len(names)
    costs = {name: (float(base), float(head)) for name, (base, head) in zip(names, stacks.own[:, row], strict=True)}
    return {name: cost for name, cost in costs.items() if any(cost)}


def by_function(stacks: Mapping[str, Iterable[float]]) -> dict[str, list[float]]:
    """Return the sums of folded stacks by their innermost frame."""
    sums: dict[str, list[float]] = defaultdict(list)
    for name, costs in stacks.items():
        leaf = name.rsplit(";", 1)[-1]
        sums[leaf] = [before + cost for before, cost in zip(sums[leaf] or [0.0] * 2, costs, strict=False)]
    return sums


def test_own_cost_is_divided_among_callers_in_proportion_to_what_their_calls_take_and_counts_to_their_number() -> None:
    counts = {"blocks": OwnCounts({3: (40.0, 400.0)}, exact=True)}
    found = call_stacks(
        compared(
            {1: (5.0, 5.0), 2: (7.0, 7.0), 3: (40.0, 80.0)},
            (None, 1, 1, 50.0),
            (1, 2, 1, 20.0),
            (1, 3, 9, 30.0),
            (2, 3, 1, 10.0),
            counts=counts,
        ),
        ALL,
    )
    assert spent(found) == {"f1": (5, 5), "f1;f2": (7, 7), "f1;f3": (30, 60), "f1;f2;f3": (10, 20)}
    assert spent(found, "calls") == {"f1": (1, 1), "f1;f2": (1, 1), "f1;f3": (9, 9), "f1;f2;f3": (1, 1)}
    assert spent(found, "blocks") == {"f1;f3": (36, 360), "f1;f2;f3": (4, 40)}
    assert [quantity.says for quantity in found.quantities] == ["time", "calls", "basic blocks executed"]


def test_calls_too_short_for_the_clock_are_weighed_by_their_number() -> None:
    calls = ((None, 1, 1, 9.0), (None, 2, 1, 9.0), (1, 3, 3, 0.0), (2, 3, 1, 0.0))
    found = call_stacks(compared({1: (9.0, 9.0), 2: (9.0, 9.0), 3: (4.0, 8.0)}, *calls), ALL)
    assert spent(found) == {"f1": (9, 9), "f2": (9, 9), "f1;f3": (3, 6), "f2;f3": (1, 2)}


def test_counts_that_vary_between_runs_are_said_to_be_medians() -> None:
    findings = compared({1: (5.0, 5.0)}, (None, 1, 1, 5.0), counts={"blocks": OwnCounts({1: (4.0, 4.0)}, exact=False)})
    assert [quantity.says for quantity in call_stacks(findings, ALL).quantities] == ["time", "calls", "basic blocks executed, medians"]


@pytest.mark.parametrize("seed", range(20))
def test_sums_over_stacks_are_what_was_measured_whoever_calls_whom(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 9
    own = {number: (float(base), float(head)) for number, (base, head) in enumerate(rng.uniform(0, 100, (count, 2)), start=1)}
    pairs = {(int(caller), int(callee)) for caller, callee in rng.integers(0, count + 1, (2 * count, 2)) if callee}
    calls = [(caller or None, callee, float(rng.integers(0, 5)), float(rng.integers(0, 100))) for caller, callee in sorted(pairs)]
    found = call_stacks(compared(own, *calls), ALL)
    assert {name: tuple(cost) for name, cost in by_function(spent(found)).items()} == {
        f"f{number}": pytest.approx(cost) for number, cost in own.items()
    }
    made_calls: dict[str, float] = defaultdict(float)
    for _, callee, number, _ns in calls:
        made_calls[f"f{callee}"] += number
    assert by_function(spent(found, "calls")) == {name: pytest.approx([number] * 2) for name, number in made_calls.items() if number}
    for stack in range(len(found.frame)):
        assert len(set(found.chain(stack))) == len(found.chain(stack)), "a function stands twice in one stack"


def test_calls_within_a_recursion_are_cut_off() -> None:
    found = call_stacks(compared({1: (1.0, 2.0), 2: (3.0, 4.0)}, (None, 1, 1, 9.0), (1, 2, 1, 5.0), (2, 1, 6, 4.0), (2, 2, 7, 1.0)), ALL)
    assert spent(found) == {"f1": (1, 2), "f1;f2": (3, 4)}
    assert spent(found, "calls") == {"f1": (7, 7), "f1;f2": (8, 8)}


def test_what_no_call_leads_to_stands_below_callers_that_are_not_known() -> None:
    found = call_stacks(compared({1: (1.0, 2.0), 2: (3.0, 4.0)}, (None, 1, 1, 9.0)), ALL)
    assert spent(found) == {"f1": (1, 2), f"{NO_CALLER};f2": (3, 4)}


def test_what_only_one_side_calls_stands_where_that_side_calls_it() -> None:
    graph = CallGraph({1: CallCost(10, 10, 10, 10), 2: CallCost(0, 5, 0, 5)}, (CallEdge(None, 1, 1, 1, 10, 15), CallEdge(1, 2, 0, 1, 0, 5)))
    findings = replace(made.findings(functions=(function(1), function(2))), calls=graph)
    assert spent(call_stacks(findings, ALL)) == {"f1": (10, 10), "f1;f2": (0, 5)}


def test_time_outside_of_probed_functions_is_told_where_runs_took_longer() -> None:
    findings = compared({1: (10.0, 30.0)}, (None, 1, 1, 10.0), runs_ns=(25.0, 29.0))
    assert spent(call_stacks(findings, ALL)) == {"f1": (10, 30), OUTSIDE: (15, 0)}
    assert OUTSIDE not in spent(call_stacks(compared({1: (10.0, 30.0)}, (None, 1, 1, 10.0)), ALL)), "nobody knows what runs took"


def test_without_probes_whole_runs_are_outside_of_probed_functions() -> None:
    found = call_stacks(replace(made.findings(functions=()), calls=None), ALL)
    assert list(spent(found)) == [OUTSIDE]
    assert spent(found)[OUTSIDE] == pytest.approx((12.6e6, 50.4e6))


def test_functions_that_are_not_reported_have_their_cost_and_no_name() -> None:
    findings = replace(compared({1: (1.0, 1.0), 2: (3.0, 3.0)}, (None, 1, 1, 4.0), (1, 2, 1, 3.0)), functions=(function(1),))
    assert spent(call_stacks(findings, ALL)) == {"f1": (1, 1), f"f1;{UNREPORTED.format(2)}": (3, 3)}


def test_small_and_deep_stacks_are_put_together_in_one() -> None:
    own = dict.fromkeys(range(1, 6), (100.0, 100.0)) | {6: (0.4, 0.4), 7: (0.3, 0.3)}
    chain = [(number - 1 or None, number, 1.0, 1.0) for number in range(1, 6)]
    found = compared(own, *chain, (1, 6, 0.001, 1.0), (1, 7, 0.001, 1.0))
    told = call_stacks(found, Detail(least=0.01, most=100, deepest=3))
    assert spent(told) == {
        "f1": (100, 100),
        f"f1;{TOO_SMALL}": pytest.approx((0.7, 0.7)),
        "f1;f2": (100, 100),
        "f1;f2;f3": (100, 100),
        f"f1;f2;f3;{TOO_SMALL}": (200, 200),
    }
    assert len(call_stacks(found, Detail(least=0.0, most=2, deepest=9)).frame) <= 4


def test_thousands_of_ways_to_a_function_end() -> None:
    layers = 16  # of two functions that both call both of the next: 2¹⁶ ways
    calls: list[tuple[int | None, int, float, float]] = [(None, 1, 1.0, 1.0), (None, 2, 1.0, 1.0)]
    for layer in range(1, layers):
        calls += [(2 * layer - 1 + caller, 2 * layer + 1 + callee, 1.0, 1.0) for caller in (0, 1) for callee in (0, 1)]
    own = dict.fromkeys(range(1, 2 * layers + 1), (10.0, 20.0))
    found = call_stacks(compared(own, *calls), EXPORTED)
    assert len(found.frame) <= 2 * EXPORTED.most
    assert found.own[:, 0].sum(axis=0).tolist() == pytest.approx([320.0, 640.0])


def test_the_sums_of_stacks_hold_what_stands_below_them() -> None:
    found = call_stacks(compared({1: (5.0, 6.0), 2: (7.0, 9.0)}, (None, 1, 1, 50.0), (1, 2, 1, 20.0)), ALL)
    assert found.added_up(found.own)[:, 0].tolist() == [[12.0, 15.0], [7.0, 9.0]]


# The formats, each read by a reader that refuses what its format does not allow.

EXPECTED = {"table_grow": (2.0e6, 2.1e6), "table_grow;insert": (1.2e6, 411.2e6), "table_grow;table_find": (6.1e6, 5.5e6)}
FORMS = {
    "folded": "folded",
    "folded-base": "base.folded",
    "folded-head": "head.folded",
    "speedscope": "speedscope.json",
    "pprof": "pb.gz",
    "firefox": "firefox.json",
}


def written(form: str, findings: Findings | None = None) -> str:
    text = RENDERERS[form](build(findings or made.findings()))
    assert isinstance(text, str)
    return text


def of_folded(text: str) -> dict[str, tuple[int, ...]]:
    """Return folded stacks by their names."""
    lines = [re.fullmatch(r"(\S.*?)((?: \d+)+)", line) for line in text.splitlines()]
    assert all(lines)
    stacks = {line[1]: tuple(map(int, line[2].split())) for line in lines if line}
    assert len(stacks) == len(lines)
    return stacks


def of_speedscope(text: str) -> dict[str, dict[str, float]]:
    """Return the stacks of each profile by its name."""
    value = json.loads(text)
    assert value["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = value["shared"]["frames"]
    assert all(frame["name"] and frame.keys() <= {"name", "file", "line", "col"} for frame in frames)
    profiles = {}
    for profile in value["profiles"]:
        assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in {"none", "nanoseconds"}
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        names = [";".join(frames[place]["name"] for place in sample) for sample in profile["samples"]]
        assert all(0 <= place < len(frames) for sample in profile["samples"] for place in sample)
        profiles[profile["name"]] = dict(zip(names, profile["weights"], strict=True))
    return profiles


def of_firefox(text: str) -> dict[str, dict[str, float]]:
    """Return the stacks of each thread by its name, with their weights."""
    value = json.loads(text)
    assert value["meta"].keys() >= {"interval", "startTime", "processType", "product", "stackwalk", "version", "markerSchema", "categories"}
    assert value["meta"]["preprocessedProfileVersion"] == 61
    shared = value["shared"]
    texts = shared["stringArray"]
    tables = [shared[name] for name in ("sources", "funcTable", "frameTable", "stackTable", "resourceTable", "nativeSymbols")]
    for table in (*tables, *(thread[name] for thread in value["threads"] for name in ("samples", "markers"))):
        assert all(len(column) == table["length"] for column in table.values() if isinstance(column, list))
    functions, frames, stacks = (shared[name] for name in ("funcTable", "frameTable", "stackTable"))
    assert all(prefix is None or prefix < place for place, prefix in enumerate(stacks["prefix"]))
    assert all(source is None or texts[shared["sources"]["filename"][source]] for source in functions["source"])
    assert all(value["meta"]["categories"][place] for place in frames["category"])
    names: list[str] = []
    for place, prefix in zip(stacks["frame"], stacks["prefix"], strict=True):
        name = texts[functions["name"][frames["func"][place]]]
        names.append(name if prefix is None else f"{names[prefix]};{name}")
    threads = {}
    for thread in value["threads"]:
        samples = thread["samples"]
        assert samples["time"] == sorted(samples["time"])
        assert all(0 <= at < thread["unregisterTime"] for at in samples["time"])
        threads[thread["name"]] = {names[stack]: weight for stack, weight in zip(samples["stack"], samples["weight"], strict=True)}
    return threads


def test_folded_stacks_have_both_sides_or_one() -> None:
    assert of_folded(written("folded")) == EXPECTED
    assert of_folded(written("folded-base")) == {name: (base,) for name, (base, _) in EXPECTED.items()}
    assert of_folded(written("folded-head")) == {name: (head,) for name, (_, head) in EXPECTED.items()}


def test_a_semicolon_in_a_name_ends_no_frame() -> None:
    findings = made.findings()
    first = replace(findings.functions[0], info=replace(findings.functions[0].info, name="put(Ljava/lang/String;)V"))
    assert "table_grow;put(Ljava/lang/String:)V" in of_folded(
        written("folded", replace(findings, functions=(first, *findings.functions[1:])))
    )


def test_speedscope_has_times_and_counts_of_both_sides() -> None:
    profiles = of_speedscope(written("speedscope"))
    assert list(profiles) == [
        f"{side}: {what} in one run of each workload point" for what in ("time", "calls") for side in ("base", "head")
    ]
    base, head, *calls = profiles.values()
    assert {name: (base[name], head[name]) for name in base} == EXPECTED
    assert [each["table_grow;insert"] for each in calls] == [30_000, 30_000]


def test_pprof_has_both_sides_and_what_differs() -> None:
    content = RENDERERS["pprof"](build(made.findings()))
    assert isinstance(content, bytes)
    profile = pprof_reader.read(content)
    assert profile.types == tuple(
        (f"{name}_{side}", unit) for name, unit in (("time", "nanoseconds"), ("calls", "count")) for side in ("base", "head", "difference")
    )
    assert profile.default == "time_head"
    stacks = {";".join(name for name, *_ in stack): values for stack, values in profile.samples.items()}
    assert {name: values[:2] for name, values in stacks.items()} == EXPECTED
    assert stacks["table_grow;table_find"] == (6_100_000, 5_500_000, -600_000, 12, 12, 0)
    assert (("table_grow", "src/table.c", 104), ("insert", "src/list.c", 42)) in profile.samples


def test_firefox_has_a_thread_for_each_side() -> None:
    threads = of_firefox(written("firefox"))
    base, head, *calls = threads.values()
    assert {name: (base[name] * 1e6, head[name] * 1e6) for name in base} == {name: pytest.approx(costs) for name, costs in EXPECTED.items()}
    assert [each["table_grow;insert"] for each in calls] == [30_000, 30_000]


@pytest.mark.parametrize("form", ["speedscope", "pprof", "firefox"])
def test_formats_with_room_for_words_say_the_answer_and_how_stacks_are_made(form: str) -> None:
    rendered = RENDERERS[form](build(made.findings()))
    words = rendered if isinstance(rendered, str) else "\n".join(pprof_reader.read(rendered).comments)
    assert METHOD in words
    assert "Regression: insert (src/list.c:42) costs" in words


@pytest.mark.parametrize("findings", [made.hostile(), replace(made.findings(functions=()), end_to_end=(), calls=None)])
def test_every_profile_is_sound_whatever_it_holds(findings: Findings) -> None:
    of_folded(written("folded", findings))
    of_speedscope(written("speedscope", findings))
    of_firefox(written("firefox", findings))
    content = RENDERERS["pprof"](build(findings))
    assert isinstance(content, bytes)
    pprof_reader.read(content)


@pytest.mark.parametrize(("form", "suffix"), FORMS.items())
def test_the_longest_suffix_of_a_file_chooses_its_profile(form: str, suffix: str) -> None:
    assert options.report_format(None, Path(f"perf.{suffix}"), options.SUFFIXES) == form


def test_a_profile_of_bytes_is_not_written_to_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"name a file with -o"):
        destinations.chosen(options.Format.PPROF, None)
    assert destinations.chosen(None, [tmp_path / "perf.pb.gz"])[0].form is options.Format.PPROF


# The tools that the profiles are for, where they are installed; `scripts/bench profiles` fetches those of npm.


def file_of(form: str, folder: Path) -> Path:
    content = RENDERERS[form](build(made.findings()))
    file = folder / f"perf.{FORMS[form]}"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_pprof_reads_it(tmp_path: Path) -> None:
    command = ["go", "tool", "pprof", "-top", "-sample_index=time_difference", str(file_of("pprof", tmp_path))]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.search(r"410ms .* insert$", said, re.MULTILINE)
    assert METHOD in said


@pytest.mark.skipif(shutil.which("flamegraph.pl") is None, reason="flamegraph.pl is not installed")
def test_flamegraph_draws_what_differs(tmp_path: Path) -> None:
    command = ["flamegraph.pl", str(file_of("folded", tmp_path))]
    drawn = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "insert (411,200,000 samples, 98.19%; +" in drawn.stdout
    assert not drawn.stderr
