"""The report for terminals: the answer at a glance, tables that fit, nothing that steers the terminal."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import findings as made
from differing import reasons_of
from perfdiff.analysis.findings import Anomaly, CostPrediction, Findings, FiredRule, MetricFinding, Ratio, Verdict
from perfdiff.analysis.oddcalls import OddCall
from perfdiff.cli.explain import explanation
from perfdiff.errors import UsageError
from perfdiff.models.annotation import Condition, CostClass, Operator, Scope, Term
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.outcome import Outcome
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Change, Note, Point, Revision, SampleTable, Side
from perfdiff.report import counts, html, markdown, terminal, wording
from perfdiff.report.blocks import Items
from perfdiff.report.document import build
from perfdiff.report.explain import explain
from perfdiff.report.function import answer_facts, change
from perfdiff.report.unmeasured import by_folder


def text(findings: Findings, width: int = 120) -> str:
    return terminal.render(build(findings), width=width)


def test_first_lines_answer_which_function_inputs_figures_and_why() -> None:
    assert text(made.findings()).splitlines()[:19] == [
        "v1.4 (a1b2c3d4e5) → HEAD (b7e1c0ffee)",
        "",
        "Regression: insert (src/list.c:42) costs ×331 a call at list->size = 28,500; its cost grew from constant to linear.",
        "",
        "  function  insert, src/list.c:42",
        "  cost      41 ns → 26 µs a call at list->size = 28,500 (time, callees included)",
        "  ratio     ×331 [318, 346], 95 % interval over 10 base and 10 head runs (over all inputs)",
        "  growth    constant → linear in list->size, measured from 0 to 30,000",
        "  doubled   from list->size = 48 on, head costs twice what base costs",
        "  share     97 % of the extra cost of one run of each point (410 ms)",
        "  calls     30,000 in one run of each point",
        "  cause     The new loop `while (*place)` (src/list.c:49) runs 15,000 times a call at list->size = 15,000; base has no",
        "            loop.",
        "  line      src/list.c:49, `while (*place)`, new: 0.5·n²; 450,015,000 times at lists n=30000",
        "  line      src/node.c:7, `check(pool);`, in `node_new`: n → 2·n; 60,000 times at lists n=30000, 30,000 before",
        "  code      changed: body changed",
        "",
        "From the change to the cost",
        "  1. insert (src/list.c:44) changed: its loop walks the list",
    ]


def test_points_with_too_few_pairs_of_whole_runs_are_not_called_open() -> None:
    found = made.findings()
    short = tuple(replace(end, ratio=None) for end in found.end_to_end)
    rows = [line for line in text(replace(found, end_to_end=short)).splitlines() if line.rstrip().endswith("0.8 %")]
    assert len(rows) == len(short)
    assert all("–  too few pairs" in row and "open" not in row for row in rows)


def test_a_guilty_function_that_is_not_slower_itself_points_to_where_its_change_shows() -> None:
    guilty = made.plain(1, "create", Verdict.REGRESSION, Change.CHANGED, ratio=Ratio(0.14, 0.12, 0.16, 10, 10), reason="")
    steps = ("`create` (changed) writes `index.buckets`", "`search` (unchanged) reads it: 79 µs → 3.7 ms a call")
    findings = made.findings(functions=(replace(guilty, rank=1, chain=tuple(map(made.worded, steps)), extra_ns=6.9e6, share=1.0),))
    told = text(findings)
    assert "itself    ×0.14 [0.12, 0.16]: not slower" in told
    assert "  cost  " not in told
    page = unescape(html.render(build(findings)))
    tiles = page[page.index('<dl class="tiles">') : page.index("</dl>")]
    assert "×0.14" not in tiles
    assert "+6.9 ms" in tiles


def test_a_function_whose_change_saves_time_in_others_is_not_called_faster_itself() -> None:
    alike = made.plain(1, "box", Verdict.IMPROVEMENT, Change.AFFECTED, ratio=Ratio(1.01, 0.9, 1.13, 10, 10), reason="")
    faster = made.plain(2, "add", Verdict.IMPROVEMENT, Change.AFFECTED, ratio=Ratio(0.79, 0.76, 0.83, 10, 10), reason="")
    said = text(made.findings(Verdict.IMPROVEMENT, (faster, alike)), 140)
    assert "also      improvement in box (through others)" in said
    assert [line.split()[3] for line in said.splitlines() if line.lstrip().startswith(("add ", "box "))] == ["affected", "through"]
    assert "itself    ×1.01 [0.90, 1.13]: not faster; its change saves time in others" in text(made.findings(Verdict.IMPROVEMENT, (alike,)))


@pytest.mark.parametrize(
    ("change", "ratio", "said"),
    [
        (Change.CHANGED, Ratio(2.1, 1.8, 2.4, 10, 10), "negligible"),
        (Change.CHANGED, Ratio(0.5, 0.4, 0.6, 10, 10), "negligible"),
        (Change.CHANGED, Ratio(2.1, 0.9, 4.8, 10, 10), "unchanged"),
        (Change.UNCHANGED, Ratio(2.1, 1.8, 2.4, 10, 10), "unexplained"),
        (Change.UNCHANGED, Ratio(1.1, 1.07, 1.13, 10, 10), "unchanged"),
        (Change.REMOVED, None, "unchanged"),
    ],
)
def test_a_function_is_not_called_unchanged_beside_a_ratio_that_clearly_is_another(change: Change, ratio: Ratio | None, said: str) -> None:
    function = made.plain(1, "table_fill", Verdict.UNCHANGED, change, ratio=ratio, reason="too little of a run to matter")
    rows = text(made.findings(Verdict.UNCHANGED, (function,)), 140).splitlines()
    row = next(line for line in rows if line.lstrip().startswith("table_fill"))
    assert said in row.split()
    assert f"{said}: too little of a run to matter" in explain(function, made.findings(Verdict.UNCHANGED, (function,)))


def test_a_commit_is_named_by_its_first_digits_however_it_was_asked_for() -> None:
    commit = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
    named = [wording.revision(Revision(rev, commit, "")) for rev in ("v1.4", "a1b2c3d", commit)]
    assert named == ["v1.4 (a1b2c3d4e5)", "a1b2c3d", "a1b2c3d4e5"]


def test_table_of_functions_is_aligned_and_in_the_order_of_guilt() -> None:
    lines = text(made.findings(), 140).splitlines()
    start = lines.index("Functions")
    header, *rows = lines[start + 1 : start + 8]
    assert [row.split()[0] for row in rows] == ["1", "table_find", "table_hash", "table_grow", "table_check", "table_cache"]
    assert rows[0].split("  ")[-1] == "constant → linear"
    column = header.index("verdict")
    assert [row[column:].split()[0] for row in rows] == ["regression", "improvement", "unchanged", "inconclusive", "unchanged", "unchanged"]
    assert "×0.61 [0.59, 0.64]" in rows[1]
    assert "– → 12" in rows[4]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_keep_the_width_of_the_page(width: int) -> None:
    assert max(map(len, text(made.findings(), width).splitlines())) <= width


def test_narrow_pages_stack_the_table_and_lose_no_figure() -> None:
    lines = text(made.findings(), 70).splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("  1  insert"))
    assert lines[row].split() == ["1", "insert", "regression", "×331", "[318,", "346]"]
    assert lines[row + 1].split() == ["src/list.c:42", "41", "ns", "→", "26", "µs", "constant", "→", "linear"]


def test_effects_that_more_than_double_a_cost_are_told_as_multiples() -> None:
    functions = []
    for number, (name, floor) in enumerate({"narrow": 0.13, "wide": 300.0}.items(), 1):
        each = made.plain(number, name, Verdict.UNCHANGED, Change.CHANGED, ratio=Ratio(1.0, 0.9, 1.1, 10, 10), reason="as before")
        functions.append(replace(each, metrics={metric: replace(found, floor=floor) for metric, found in each.metrics.items()}))
    lines = text(made.findings(Verdict.UNCHANGED, (*functions,))).splitlines()
    assert "  visible       effects from 13 % of a function's cost on, for wide only from ×301 on" in lines


@pytest.mark.parametrize("width", [70, 80])
def test_long_names_are_broken_where_their_parts_meet(width: int) -> None:
    name = "ankerl::unordered_dense::v4_8_1::detail::table::allocate_buckets_from_shift"
    function = made.plain(1, name, Verdict.UNCHANGED, Change.CHANGED, ratio=Ratio(1.0, 0.9, 1.1, 10, 10), reason="as before")
    lines = text(made.findings(Verdict.UNCHANGED, (function,)), width).splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("ankerl::"))
    last = next(number for number, line in enumerate(lines) if line.lstrip().startswith("src/table.c"))
    parts = [line.split()[0] for line in lines[first:last]]
    assert "".join(parts) == name
    assert all(part.endswith("::") for part in parts[:-1])


def test_no_regression_says_what_was_measured_what_would_be_seen_and_what_was_not() -> None:
    quiet = replace(made.findings(Verdict.UNCHANGED, made.others()[1:2]), sentence=made.worded("no function got slower"))
    lines = text(quiet).splitlines()
    assert lines[2] == "No regression: no function got slower"
    assert lines[4:9] == [
        "  measured      1 function by 1 workload at 3 points",
        "  visible       effects from 2.4 % of a function's cost on",
        "  threshold     shifts under 5 % are not reported as a regression",
        "  not measured  3 functions: no workload calls it (2); constexpr functions cannot carry a probe (1)",
        "  probes        added 0.9 % CPU time",
    ]


def test_inconclusive_says_why_and_how_many_runs_would_help() -> None:
    said = text(made.findings(Verdict.INCONCLUSIVE, made.others()[2:3]), 200)
    assert "Inconclusive: " in said
    assert "unclear   the runs disagree: 4 of 6 are slower, 2 faster" in said
    assert "effects from 20 % on are visible with 6 runs a side; four times as many halve that" in said


def test_whole_runs_say_of_which_cost_their_times_and_ratios_are() -> None:
    found = made.findings()
    first, *others = found.end_to_end
    assert "ratio of CPU time  pairs" in text(found)
    by_clock = tuple(replace(end, by="wall_ns") for end in found.end_to_end)
    assert "ratio of time  pairs" in text(replace(found, end_to_end=by_clock))
    mixed = text(replace(found, end_to_end=(replace(first, by="wall_ns"), *others)))
    assert "ratio of" not in mixed
    assert mixed.count("  CPU time  ") == len(others) > 0


def test_whole_runs_have_no_column_for_what_probes_cost_where_nothing_was_probed() -> None:
    found = made.findings()
    plain = tuple(replace(end, overhead=None) for end in found.end_to_end)
    assert "probes' cost" in text(found)
    assert "Whole runs, without probes" in text(replace(found, end_to_end=plain))
    assert "probes' cost" not in text(replace(found, end_to_end=plain))


def test_an_open_question_is_not_said_to_be_visible_below_its_interval() -> None:
    wide = made.plain(1, "table_grow", Verdict.INCONCLUSIVE, Change.CHANGED, ratio=Ratio(1.0, 0.7, 1.45, 10, 10), reason="")
    said = text(made.findings(Verdict.INCONCLUSIVE, (wide,)), 200)
    assert "effects from 45 % on are visible with 10 runs a side" in said


def test_further_regressions_are_named_in_the_answer() -> None:
    second = replace(made.regressed(), rank=2, info=replace(made.regressed().info, id=9, name="list_splice"))
    assert "also      regression in list_splice (×331)" in text(made.findings(functions=(made.regressed(), second)))


def test_a_comparison_without_functions_is_still_a_report() -> None:
    empty = replace(
        made.findings(Verdict.UNCHANGED, ()),
        sentence=made.worded("No regression: no function changed."),
        skipped=(),
        notes=(),
        end_to_end=(),
    )
    said = text(empty)
    assert "No regression: no function changed." in said
    assert "whole runs of 1 workload" in said
    assert "Functions" not in said


def test_functions_that_their_file_leaves_out_have_one_line_a_reason() -> None:
    tests = [SkippedFunction(f"test_{n}", f"tests/test_{n % 4}.py", "excluded by tests/*", whole=True) for n in range(9)]
    docs = [SkippedFunction("build", "docs/conf.py", "no workload runs anything of its file", whole=True)]
    alone = SkippedFunction("parse", "src/parse.py", "never called by any workload")
    table = build(replace(made.findings(), skipped=(*tests, alone, *docs))).skipped
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["parse", "src/parse.py", "never called by any workload"],
        ["9 functions", "tests/test_0.py, tests/test_1.py, tests/test_2.py and 1 more", "excluded by tests/*"],
        ["1 function", "docs/conf.py", "no workload runs anything of its file"],
    ]


def test_a_verdict_is_not_said_twice() -> None:
    assert "Regression: Regression" not in text(replace(made.findings(), sentence=made.worded("Regression in insert.")))


def test_colour_is_written_only_when_asked_for() -> None:
    document = build(made.findings())
    plain, coloured = terminal.render(document), terminal.render(document, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r" +$", "", re.sub(r"\x1b\[[0-9;]*m", "", coloured), flags=re.MULTILINE) == plain


def test_surroundings_do_not_change_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    document = build(made.findings())
    before = terminal.render(document)
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "20", "TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    assert terminal.render(document) == before
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" in terminal.render(document, colour=True)


def test_hostile_names_cannot_steer_the_terminal() -> None:
    said = text(made.hostile()) + explain(made.hostile().functions[0], made.hostile())
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said) == []
    assert "\\x1b[31m" in said.replace("\n", "")


def test_long_tables_say_how_much_is_left_out() -> None:
    said = terminal.render(build(made.many(50)), lines=200)
    assert "… 20 more; --full, and the html and json reports, hold all" in said
    assert "more; --full" not in text(made.many(50))


@pytest.mark.parametrize("width", [80, 120])
def test_a_page_of_a_terminal_holds_the_answer_whatever_there_is_to_say(width: int) -> None:
    findings = made.many(50)
    notes = tuple(Note(f"note-{number}", f"something that takes {number} lines to say, " * number) for number in range(12))
    findings = replace(findings, notes=notes, skipped=tuple(SkippedFunction(f"f{each}", f"src/{each}.c", "no calls") for each in range(90)))
    said = terminal.render(build(findings), width=width, lines=terminal.PAGE)
    assert said.count("\n") <= terminal.PAGE
    assert text(findings, width).startswith(said[: said.index("Functions")])


def test_explain_tells_calls_by_input_annotations_and_the_diff() -> None:
    findings = made.findings()
    said = explain(findings.functions[0], findings, made.Samples(findings))
    strata = said[said.index("Measured calls, by input") :].splitlines()[2:10]
    assert strata[0].split()[-1].startswith("×")
    assert float(strata[7].split("×")[1]) > float(strata[0].split("×")[1]) > 2
    assert "base  41 ns ± 6 ns" in said
    assert "head  38 ns + 0.912 ns·list->size ± 85 ns" in said
    assert "Norm(38 + 0.912*size, 85);" in said
    assert "    46        -     if (!list->tail)" in said
    assert "           49 +     while (*place)" in said


def test_explain_gives_few_different_inputs_a_row_each() -> None:
    findings = made.findings()

    def stepped(function: int, side: Side) -> SampleTable | None:
        table = made.Samples(findings)(function, side)
        return replace(table, values=np.floor(table.values / 10_000) * 10_000) if table else None

    said = explain(findings.functions[0], findings, stepped)
    strata = said[said.index("Measured calls, by input") :].splitlines()[2:6]
    assert [row.split()[0] for row in strata[:3]] == ["0", "10,000", "20,000"]
    assert strata[3] == ""


def test_a_callers_own_time_stands_for_it_where_it_is_not_to_blame() -> None:
    finding = made.findings().functions[2]
    slower = replace(finding.metrics["wall_ns"], ratio=Ratio(137.0, 130.0, 144.0, 10, 10))
    own = replace(finding.metrics["wall_ns"], metric="self_ns")
    said = text(made.findings(functions=(replace(finding, metrics={"wall_ns": slower, "self_ns": own}),)), 140)
    assert "224 µs → 225 µs (own)  ×1.00 [0.98, 1.02]" in said


def test_a_cost_without_predictions_is_told_at_typical_inputs() -> None:
    finding = made.findings().functions[2]
    wall = finding.metrics["wall_ns"]
    assert wall.base is not None
    assert wall.head is not None
    quiet = replace(wall, predictions=(), base=replace(wall.base, typical={"n": 1_000.0}))
    assert wording.costs(quiet) == "8.25 µs → 8.28 µs"
    assert wording.costs(replace(quiet, base=None)) == "– → 125 µs"
    assert wording.costs(replace(quiet, base=replace(wall.base, typical={}), head=None)) == "–"


def test_a_ratio_of_which_the_interval_says_nothing_is_no_figure() -> None:
    finding = made.findings().functions[1]
    vague, wide = Ratio(7.7, 0.0035, 17_064.0, 2, 2), Ratio(8.2, 3.2, 20.9, 2, 2)
    told = {}
    for ratio in (vague, wide):
        wall = replace(finding.metrics["wall_ns"], ratio=ratio, typical=196.0)
        again = replace(finding, metrics={"wall_ns": wall}, verdict=Verdict.REGRESSION, rank=2)
        told[ratio] = text(made.findings(functions=(made.regressed(), again)), 200)
        told[ratio] += "".join(_facts(wall))
    for figure in ("7.7", "17,064.0", "912"):
        assert figure not in told[vague]
    assert "196 ns → not known" in told[vague]
    assert "regression in table_find\n" in told[vague]
    assert "not known: 2 base and 2 head runs do not tell (95 % interval 0.0035 to 17,064)" in told[vague]
    assert wording.certainty(Ratio(1.0, 1e-29, 4e40, 2, 2), "wall_ns", 0.95).endswith("(95 % interval from almost nothing to any size)")
    assert "regression in table_find (×8.2)" in told[wide]
    assert "×8.2 [3.2, 20.9]" in told[wide]


def test_a_cost_that_only_conditions_tell_apart_is_told_over_all_calls_and_that_of_some_calls_where_the_ratio_is_theirs() -> None:
    wall = made.findings().functions[2].metrics["wall_ns"]
    is_text = Condition("type(x)", Operator.IN, (1.0,), ("str",))
    scopes = {factor: (_scope(100.0 * factor, 0.25, is_text), _scope(500.0, 0.75, is_text.negated())) for factor in (1, 9)}
    base, head = (replace(wall.base, scopes=found, features=("type(x)",)) for found in scopes.values())  # type: ignore[type-var]
    apart = replace(wall, base=base, head=head, predictions=(), feature=None)
    assert wording.costs(apart) == "400 ns → 600 ns"
    of_texts = replace(apart, stratum="type(x) = str", typical=100.0, typical_at="type(x) = str", ratio=Ratio(9.0, 8.0, 10.0, 10, 10))
    assert wording.costs(of_texts) == "100 ns → 900 ns"
    (first, second) = _facts(of_texts)[:2]
    assert first == "100 ns → 900 ns a call at type(x) = str (time, callees included)"
    assert second.endswith("(type(x) = str)")


def test_beside_the_mean_of_all_calls_stands_what_a_typical_one_costs() -> None:
    wall = made.findings().functions[2].metrics["wall_ns"]
    few = Ratio(5.0, 2.5, 10.2, 10, 10)
    of_mean, of_some = (_facts(replace(wall, stratum=stratum, overall=few)) for stratum in ("mean of all calls", "n = 3"))
    assert [text for text in of_mean if text.startswith("×5.0")] == ["×5.0 [2.5, 10.2] of a typical call"]
    assert [text for text in of_some if text.startswith("×5.0")] == ["×5.0 [2.5, 10.2] over all calls"]


def _scope(cost: float, share: float, condition: Condition) -> Scope:
    return Scope(CostClass.CONSTANT, (Term(cost),), 1.0, share, 100, (condition,))


def _facts(metric: MetricFinding) -> list[str]:
    """Return the texts of the facts that are told of a function with this metric alone."""
    finding = replace(made.findings().functions[2], metrics={metric.metric: metric})
    return [fact.text for fact in answer_facts(finding, 0.95).facts]


def test_a_table_of_calls_says_where_a_cost_is_that_of_a_run_or_without_callees() -> None:
    wall = made.findings().functions[2].metrics["wall_ns"]
    said = {name: wording.costs_of(replace(wall, metric=name)) for name in ("wall_ns", "self_ns", "run_ns")}
    assert said == {
        name: f"{wording.costs(wall)}{whose}" for name, whose in (("wall_ns", ""), ("self_ns", " (own)"), ("run_ns", " (a run)"))
    }
    assert wording.costs_of(replace(wall, predictions=(), base=None, head=None, metric="run_ns")) == "–"


def test_explain_tells_the_rules_that_held_for_a_function_and_for_the_whole() -> None:
    function = replace(made.regressed(), rules=(FiredRule("adds-time", "does it add time?"), FiredRule("works-the-same", "does it wait?")))
    whole = replace(made.findings(functions=(function,)), rules=(FiredRule("function-slower", "is a function slower?"),))
    said = explain(function, whole)
    of_function, _, of_whole = said[said.index("Rules that held") :].partition("Rules that held for the whole")
    assert of_function.index("adds-time: does it add time?") < of_function.index("works-the-same: does it wait?")
    assert "function-slower: is a function slower?" in of_whole


def test_explain_without_samples_leaves_the_strata_out() -> None:
    assert "by input" not in explain(made.regressed(), made.findings())


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (Ratio(5.71, 5.42, 6.13, 10, 10), "×5.7 [5.4, 6.1]"),
        (Ratio(1.004, 0.982, 1.021, 10, 10), "×1.00 [0.98, 1.02]"),
        (Ratio(1.0012, 1.0011, 1.0013, 10, 10), "×1.0012 [1.0011, 1.0013]"),
        (Ratio(1234.5, 1201.0, 1266.0, 10, 10), "×1,234 [1,201, 1,266]"),
        (Ratio(3.0, 3.0, 3.0, 10, 10), "×3, no spread seen"),
        (Ratio(6.2e-7, 5.9e-7, 6.6e-7, 10, 10), "×6.2e-07 [5.9e-07, 6.6e-07]"),
        (Ratio(0.0012, 0.0011, 0.0013, 10, 10), "×0.0012 [0.0011, 0.0013]"),
        (Ratio(float("nan"), 1.0, 2.0, 10, 10), "–"),
        (None, "–"),
    ],
)
def test_intervals_are_written_as_exactly_as_they_are_narrow(ratio: Ratio | None, says: str) -> None:
    assert wording.interval(ratio) == says


@pytest.mark.parametrize("ratio", [Ratio(3.0, 3.0, 3.0, 10, 10), Ratio(3.0, 3.0 - 1e-12, 3.0 + 1e-12, 10, 10)])
def test_counts_that_repeat_are_exact(ratio: Ratio) -> None:
    assert wording.interval(ratio, "alloc_bytes") == "×3, exact"
    assert wording.interval(ratio, "calls") == "×3, exact"


def test_times_below_what_a_probe_can_tell_are_given_as_a_bound() -> None:
    assert wording.call_cost("self_ns", 3.55e-10) == "< 2 ns"
    assert wording.call_cost("self_ns", 1.5) == "< 2 ns"
    assert wording.call_cost("self_ns", 2.5) == "2.5 ns"
    assert wording.call_cost("alloc_bytes", 0.5) == "0.5 B"
    assert wording.call_cost("self_ns", None) == "–"


def test_slower_code_that_did_not_change_is_told_apart_by_its_own_time() -> None:
    first, second, third = made.many(3).functions
    wall = second.metrics["wall_ns"]
    own = replace(wall, metric="self_ns", ratio=Ratio(1.3, 1.2, 1.4, 10, 10))
    victim = replace(second, info=replace(second.info, change=Change.UNCHANGED), metrics={"wall_ns": wall, "self_ns": own})
    lines = text(made.findings(functions=(first, third, victim))).splitlines()
    assert f"  also         regression in {third.info.name} (×331)" in lines
    assert f"  also slower  {victim.info.name} (×1.3), with unchanged code, callees not counted" in lines


def test_probes_that_cost_more_than_the_effects_looked_for_are_doubted() -> None:
    quiet = made.findings(Verdict.UNCHANGED, made.others()[1:2])
    assert "added 5 % CPU time\n" in text(replace(quiet, overhead=0.05, min_effect=0.05))
    assert "added less CPU time than runs vary by\n" in text(replace(quiet, overhead=-0.12))
    assert "added 48 % CPU time, more than the smallest effect looked for" in text(replace(quiet, overhead=0.48, min_effect=0.05))


def test_probes_that_cost_one_side_much_more_than_all_runs_together_are_told_for_both() -> None:
    quiet = made.findings(Verdict.UNCHANGED, made.others()[1:2])
    dear = replace(quiet.end_to_end[0], overhead=0.54)
    told = text(replace(quiet, overhead=0.012, min_effect=0.05, end_to_end=(dear,)))
    assert "added 1.2 % CPU time to all runs together, 54 % to one side's of a point" in " ".join(told.split())
    near = text(replace(quiet, overhead=0.2, min_effect=0.3, end_to_end=(replace(dear, overhead=0.5),)))
    assert "added 20 % CPU time\n" in near


def test_a_long_list_of_reasons_for_a_change_is_cut() -> None:
    info = made.regressed().info
    assert change(replace(info, change=Change.REMOVED, reasons=reasons_of(("removed",)))) == "removed"
    assert change(replace(info, reasons=reasons_of(("a", "b", "c")))) == "changed: a; b; c"
    assert change(replace(info, reasons=reasons_of(("a", "b", "c", "d", "e")))) == "changed: a; b; c; and 2 more"


def test_the_leading_metric_is_the_one_that_the_verdict_rests_on() -> None:
    finding = made.regressed()
    wall = replace(finding.metrics["wall_ns"], ratio=Ratio(1.01, 0.97, 1.05, 10, 10))
    allocated = replace(finding.metrics["alloc_bytes"], ratio=Ratio(2.0, 2.0, 2.0, 10, 10))
    leading = wording.leading(replace(finding, metrics={"wall_ns": wall, "alloc_bytes": allocated}))
    assert leading is not None
    assert leading.metric == "alloc_bytes"
    by_count = replace(finding, metrics={"wall_ns": wall, "alloc_bytes": allocated}, rests_on="wall_ns")
    assert wording.leading(by_count) is wall


def test_inputs_of_an_odd_call_that_are_parameters_read_as_they_were_given() -> None:
    call = OddCall(1, 0, 0, 7, {"n": 3.0, "note": float(zlib.crc32(b"two words"))}, 2.0, "blocks")
    anomaly = Anomaly(next(iter(DetectorKind)), 1.0, 0.1, 0.5, 0.01, 0.9, 6, 6, 0.001, True, None, (), (call,), ())
    point = Point(0, "sort", {"note": "two words"}, "./sort 'two words'")
    (items,) = (block for block in counts.anomaly_blocks(anomaly, {call.point: point}) if isinstance(block, Items))
    assert ", n = 3, note = two words: " in items.texts[0]


def test_the_cost_that_stands_beside_a_ratio_is_that_of_the_calls_it_is_of() -> None:
    whole = made.findings().functions[0].metrics["wall_ns"]
    ratio = Ratio(59.0, 44.0, 79.0, 10, 10)
    seen = CostPrediction({"n": 20_000.0}, base=871e3, head=21.5e6, beyond=False)
    steady = replace(whole, ratio=ratio, typical=429e3, typical_at="n = 20,000", stratum="spool n=20000", predictions=(seen,))
    assert (wording.costs(steady), wording.cost_at(steady)) == ("429 µs → 25.3 ms", "n = 20,000")
    of_sums = replace(steady, typical=None, typical_at="", stratum="")
    assert (wording.costs(of_sums), wording.cost_at(of_sums)) == ("871 µs → 21.5 ms", "n = 20,000")


def test_a_function_that_was_not_looked_at_is_refused_with_which_ones_are() -> None:
    outcome = Outcome(made.findings(), samples=lambda _function, _side: None)
    with pytest.raises(UsageError, match="changed functions and callers of these are"):
        explanation(outcome, "nothing_like_it")
    with pytest.raises(UsageError, match="did you mean"):
        explanation(outcome, f"{made.regressed().info.name}x")


def many_unmeasured() -> tuple[SkippedFunction, ...]:
    """Return a hundred functions that were not measured: of one folder, of thirty within another, of tests, and beside all folders."""
    plugins = [SkippedFunction(f"load_{n}", f"src/plugins/p{n}/load.c", f"{'two' if n % 3 else 'one'} of its kind") for n in range(30)]
    parser = [SkippedFunction(f"parse_{n}", f"src/parser/{n % 4}.c", "never called by any workload") for n in range(40)]
    tests = [
        SkippedFunction(f"test_{n}", "src/parser/parser_test.c", "no workload runs anything of its file", whole=True) for n in range(29)
    ]
    return (*tests, *plugins, *parser, SkippedFunction("main", "main.c", "never called by any workload"))


def test_many_functions_that_were_not_measured_stand_by_folder_those_of_tests_last() -> None:
    document = build(replace(made.findings(), skipped=many_unmeasured()))
    assert document.skipped is not None
    assert [[cell.text for cell in row] for row in document.skipped.rows] == [
        ["40", "src/parser/", "never called by any workload"],
        ["30", "src/plugins/", "two of its kind (20); one of its kind (10)"],
        ["1", "./", "never called by any workload"],
        ["29", "src/parser/", "no workload runs anything of its file"],
    ]
    for said in (terminal.render(document, lines=60), markdown.render(document), html.render(document)):
        assert "src/plugins/" in said
        assert "Not measured, by folder" in said
    assert "load_0" not in terminal.render(document, lines=60) + markdown.render(document)


def test_each_function_that_was_not_measured_is_in_the_full_text_and_in_html() -> None:
    document = build(replace(made.findings(), skipped=many_unmeasured()))
    for said in (terminal.render(document), html.render(document)):
        assert all(re.search(rf"\b{each.name}\b", said) for each in many_unmeasured() if not each.whole)


def test_few_functions_that_were_not_measured_are_named() -> None:
    document = build(replace(made.findings(), skipped=many_unmeasured()[-12:]))
    assert document.skipped is document.unmeasured
    assert "parse_29" in terminal.render(document, lines=60)
    assert "Function by function" not in html.render(document)


def test_folders_are_taken_apart_only_as_far_as_their_rows_are_few() -> None:
    skipped = [SkippedFunction(f"f{n}", f"lib/a/{n}/x.c", "no") for n in range(50)] + [
        SkippedFunction(f"g{n}", f"lib/b/{n % 9}/y.c", "no") for n in range(20)
    ]
    folders = [row[1].text for row in by_folder(skipped).rows]
    assert folders[0] == "lib/a/"
    assert sorted(folders[1:]) == [f"lib/b/{n}/" for n in range(9)]
