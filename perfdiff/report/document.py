"""The neutral document: findings put into sentences and tables once, for every format to render."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perfdiff import units
from perfdiff.analysis.annotations.consequences import BudgetStanding, Consequences
from perfdiff.analysis.claims import parts
from perfdiff.analysis.findings import EndToEnd, Findings, FunctionFinding, MetricFinding, Verdict
from perfdiff.analysis.peaks import MemoryStanding
from perfdiff.fuzzing.findings import SearchFindings
from perfdiff.records.recorded import BY_OTHER_TOOLS
from perfdiff.records.schema import ComparedUnit, SampleTable, Side
from perfdiff.report import consequences as said
from perfdiff.report import kernel_use, lasting_memory, peak_memory, slow_inputs, wording
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, FunctionSection, Items, Sentence, Table, Tone
from perfdiff.report.counts import work
from perfdiff.report.diff import lines_each
from perfdiff.report.function import answer_facts, chain, function_section, shows_elsewhere
from perfdiff.report.machines import disagreement_table, machine_table
from perfdiff.report.plots import function_plot, points_each
from perfdiff.report.printable import printable, printable_but_files, printable_values
from perfdiff.report.requests import request_table
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.report.tree import CallTree, call_tree
from perfdiff.report.unmeasured import MOST_ROWS, by_folder, by_function, reasons

SampleLoader = Callable[[int, Side], SampleTable | None]

# Notes that stand right behind the answer, which does not say so itself: runs take longer for another reason, or in one layout or
# one way to make them, or what changed did not run.
_CUT_SHORT = "cut-short"
_BESIDE = ("changes-not-run", _CUT_SHORT, "layout-decides", "slower-beside", "waiting-grown", "ways-apart", "workload-grown")
# More names than this in one sentence are no longer read.
_NAMED = 3
# Findings come guilty first; the plots of these fit a file of 2 MB.
_MOST_DRAWN = 50
_STANDS_OUT = 5  # times as much as overall: from there on, the table of whole runs would seem to contradict it


@dataclass(frozen=True, slots=True)
class Document:
    """A comparison put into words.

    `answer` gives verdict, function, figures and cause at a glance; `overview` one row a function; `functions` the sections behind
    it in the same order; `tree` which calls cost more; `work` what was counted of changed functions; `coverage` what was measured and what
    an effect must have to be seen; `unmeasured` what was not measured, and `skipped` the same, by folder where that is a list that nobody
    reads; `search` how the two revisions were found, where somebody searched;
    `means` what it means for who uses the program, its `consequences`, and which `inputs` a search found.
    `machines` are those of the runs where they are several, `disagreements` what they show where they disagree. `findings` are those it was
    written from, with printable texts; `leading` the same, but with the names of files as they are, which lead programs there.
    """

    findings: Findings
    leading: Findings
    title: str
    answer: tuple[Block, ...]
    overview: Table
    functions: tuple[FunctionSection, ...]
    work: Items | None
    coverage: Facts
    end_to_end: Table | None
    requests: Table | None
    skipped: Table | None
    unmeasured: Table | None
    notes: Items | None
    environment: Facts
    tree: CallTree | None = None
    machines: Table | None = None
    disagreements: Table | None = None
    search: tuple[Block, ...] = ()
    consequences: Consequences | None = None
    means: tuple[Block, ...] = ()
    inputs: SearchFindings | None = None


def build(
    findings: Findings,
    samples: SampleLoader | None = None,
    consequences: Consequences | None = None,
    inputs: SearchFindings | None = None,
) -> Document:
    """Put findings, what they mean for who uses the program, and the inputs that a search found into words.

    Pass `samples` for formats that draw (`renderers.DRAWING`): they are read once per function and side.
    """
    clean: Findings = printable_values(findings)
    labels = {point.id: point.label for point in findings.points}
    lines = lines_each(sum(finding.info.base != finding.info.head for finding in findings.functions))
    most = points_each(min(len(findings.functions), _MOST_DRAWN))
    plots = [
        function_plot(finding, samples, labels, most) if samples and index < _MOST_DRAWN else None
        for index, finding in enumerate(findings.functions)
    ]
    unmeasured = by_function(clean.skipped)
    return Document(
        findings=clean,
        leading=printable_but_files(findings),
        title=f"{wording.revision(clean.base)} → {wording.revision(clean.head)}",
        answer=tuple(_answer(clean)),
        overview=_overview(clean),
        functions=tuple(function_section(finding, clean, plot, lines) for finding, plot in zip(clean.functions, plots, strict=True)),
        work=work(clean),
        coverage=_coverage(clean),
        end_to_end=_end_to_end(clean),
        requests=request_table(clean.requests),
        skipped=by_folder(clean.skipped) if unmeasured and len(unmeasured.rows) > MOST_ROWS else unmeasured,
        unmeasured=unmeasured,
        notes=_notes(clean),
        environment=_environment(clean),
        tree=call_tree(clean),
        machines=machine_table(clean),
        disagreements=disagreement_table(clean),
        consequences=consequences,
        means=(
            *(peak_memory.blocks(clean.memory) if clean.memory else ()),
            *lasting_memory.blocks(clean.lasting, clean.memory),
            *kernel_use.blocks(clean.kernel),
            *(said.blocks(consequences) if consequences else ()),
            *(slow_inputs.blocks(inputs) if inputs else ()),
        ),
        inputs=inputs,
    )


def headline(findings: Findings, consequences: Consequences | None = None, inputs: SearchFindings | None = None) -> str:
    """Return the answer in one sentence, which begins with the verdict, behind `So far` where measuring was cut short.

    More peak memory has a sentence behind it, as has more that stays allocated or is asked of the kernel, each budget that is exceeded, or
    not known to be kept, and what a search for inputs found.
    """
    verdict, sentence = wording.ANSWERS[findings.verdict], printable(say(findings.sentence))
    answer = sentence if sentence.lower().startswith(verdict.lower()) else f"{verdict}: {sentence}"
    answer = f"So far: {answer[0].lower()}{answer[1:]}" if is_cut_short(findings) else answer
    open_budgets = consequences.some(BudgetStanding.EXCEEDED, BudgetStanding.OPEN, BudgetStanding.UNKNOWN) if consequences else ()
    peaks = peak_memory.answer(findings.memory) if findings.memory else None
    lasting = lasting_memory.answer(findings.lasting) if findings.lasting and findings.lasting.standing is MemoryStanding.MORE else None
    further = [
        *filter(None, (peaks, lasting, kernel_use.answer(findings.kernel, findings.memory) if findings.kernel else None)),
        *map(said.said, open_budgets),
        *filter(None, [slow_inputs.answer(inputs) if inputs else None]),
    ]
    return " ".join([f"{answer.rstrip('.')}.", *further]) if further else answer


def conclusion(findings: Findings) -> str:
    """Return the sentence of the answer without its verdict, for formats that give both; behind `So far` as the headline is."""
    return f"{'So far: ' if is_cut_short(findings) else ''}{say(findings.sentence)}"


def is_cut_short(findings: Findings) -> bool:
    """Return whether measuring ended before its time, so that this is the answer so far."""
    return any(note.slug == _CUT_SHORT for note in map(noted, findings.notes))


def _answer(findings: Findings) -> Iterator[Block]:
    yield Sentence(headline(findings), wording.TONES[findings.verdict])
    for note in map(noted, findings.notes):
        if note.slug in _BESIDE:
            yield Sentence(f"{note.text[0].upper()}{note.text[1:]}.")
    alike = [finding for finding in findings.functions if finding.verdict is findings.verdict and not finding.accepted]
    if findings.verdict is Verdict.UNCHANGED or not alike:
        yield _coverage(findings)
        return
    first = alike[0]
    named = Fact(*_subject(findings, first), Tone.STRONG)
    requests, claims = sum(request.made for request in findings.requests), tuple(parts(findings.sentence))
    facts = answer_facts(first, findings.confidence, len(findings.points), requests, claims).facts
    yield Facts((named, *facts, *_others(findings.verdict, alike[1:])))
    way = chain(first)
    if way is not None:
        yield way


def _subject(findings: Findings, first: FunctionFinding) -> tuple[str, str]:
    """Return what the answer is about, with where it is as far as that is known."""
    if findings.compared in BY_OTHER_TOOLS:
        return "benchmark" if findings.compared is ComparedUnit.RESULTS else "function", first.info.name
    return "function", f"{first.info.name}, {wording.place(first.info)}"


def _others(verdict: Verdict, findings: list[FunctionFinding]) -> Iterator[Fact]:
    """Name the other functions of the verdict: first those whose code changed, then those that only suffer from it."""
    suspects = [finding for finding in findings if finding.info.change.is_suspect]
    victims = [finding for finding in findings if not finding.info.change.is_suspect]
    if suspects:
        yield Fact("also", f"{verdict.value} in {_named(suspects)}")
    if victims:
        yield Fact("also slower", f"{_named(victims)}, with unchanged code, callees not counted")


def _named(findings: list[FunctionFinding]) -> str:
    names = []
    for finding in findings:
        metric = wording.leading(finding)
        names.append(f"{finding.info.name}{' (through others)' if shows_elsewhere(finding) else _figure(metric)}")
    return units.listed(names, _NAMED)


def _figure(metric: MetricFinding | None) -> str:
    """Return the ratio of a call, and that of all calls where it is another, "" where none is known."""
    if metric is None or metric.ratio is None or metric.ratio.is_unknown:
        return ""
    in_all = f" a call, {units.ratio(metric.total.value)} in all" if metric.overstates and metric.total else ""
    return f" ({units.ratio(metric.ratio.value)}{in_all})"


def _overview(findings: Findings) -> Table:
    columns = (
        Column("#", right=True),
        Column("benchmark" if findings.compared is ComparedUnit.RESULTS else "function"),
        Column("where"),
        Column("verdict"),
        Column("code", minor=True),
        Column("calls", right=True, minor=True),
        Column("cost a call", right=True),
        Column("ratio", right=True),
        Column("growth"),
    )
    return Table("Functions", columns, tuple(_row(finding, findings.min_effect) for finding in findings.functions))


def _row(finding: FunctionFinding, min_effect: float) -> tuple[Cell, ...]:
    metric = wording.leading(finding)
    tone = Tone.MUTED if finding.accepted else wording.TONES[finding.verdict]
    beside = ", accepted" if finding.accepted else ", through others" if shows_elsewhere(finding) else ""
    return (
        Cell(str(finding.rank) if finding.rank is not None else ""),
        Cell(finding.info.name, tone, code=True, target=f"function-{finding.info.id}"),
        Cell(wording.place(finding.info), Tone.MUTED, code=True),
        Cell(f"{wording.standing(finding, min_effect)}{beside}", tone),
        Cell(finding.info.change.value, Tone.MUTED),
        Cell(wording.calls(finding)),
        Cell(wording.costs_of(metric) if metric else wording.ABSENT),
        Cell(wording.interval(metric.ratio, metric.metric) if metric else wording.ABSENT, tone),
        Cell(wording.classes(metric) if metric else wording.ABSENT),
    )


def _coverage(findings: Findings) -> Facts:
    facts = [Fact("measured", _measured(findings))]
    floors = [
        (metric.floor, finding.info.name)
        for finding in findings.functions
        if (metric := wording.leading(finding)) is not None and metric.ratio is not None
    ]
    if floors:
        worst, name = max(floors)
        median = statistics.median_low(floor for floor, _ in floors)  # of two, that of the one that is known better
        at_worst = f", for {name} only from {_effect(worst)} on" if len(floors) > 1 else ""
        facts.append(Fact("visible", f"effects from {_effect(median)} of a function's cost on{at_worst}"))
    facts.append(Fact("threshold", wording.threshold(findings.min_effect, findings.points)))
    if findings.skipped:
        functions = wording.plural(len(findings.skipped), "function")
        facts.append(Fact("not measured", f"{functions}: {reasons(findings.skipped, counted=True)}"))
    if findings.overhead is not None:
        most = max((row.overhead for row in findings.end_to_end if row.overhead is not None), default=findings.overhead)
        facts.append(Fact("probes", _probes(findings.overhead, most, findings.min_effect)))
    return Facts(tuple(facts))


def _effect(floor: float) -> str:
    """Return an effect as a share of a cost, as a multiple where it more than doubles that."""
    return wording.percent(floor) if floor <= 1 else units.ratio(1 + floor)


def _probes(overhead: float, most: float, min_effect: float) -> str:
    """Say what probes cost over all runs, and the `most` that they cost one side of a point, where that is much more."""
    if overhead <= 0:
        return "added less CPU time than runs vary by"
    added = f"added {wording.percent(overhead)} CPU time"
    if most > max(_STANDS_OUT * overhead, min_effect):
        added += f" to all runs together, {wording.percent(most)} to one side's of a point"
    if overhead <= min_effect:
        return added
    return f"{added}, more than the smallest effect looked for: where calls are short, trust whole runs first, which have no probes"


def _measured(findings: Findings) -> str:
    workloads = wording.plural(len(findings.workloads), "workload")
    points = wording.plural(len(findings.points), "point")
    if not findings.functions:
        return f"whole runs of {workloads} at {points}"
    if findings.compared is ComparedUnit.RESULTS:
        return f"{wording.plural(len(findings.functions), 'benchmark')} at {points}, by another tool"
    if findings.compared is ComparedUnit.PROFILES:
        return f"{wording.plural(len(findings.functions), 'function')}, by profiles"
    return f"{wording.plural(len(findings.functions), 'function')} by {workloads} at {points}"


def _end_to_end(findings: Findings) -> Table | None:
    rows, is_of_builds = findings.end_to_end, findings.compared is not ComparedUnit.COMMANDS
    if not rows:
        return None
    costs, has_probes = {row.cost for row in rows}, any(row.overhead is not None for row in rows)
    columns = (
        Column("whole run"),
        Column("base", right=True),
        Column("head", right=True),
        Column(f"ratio of {next(iter(costs))}" if len(costs) == 1 else "ratio", right=True),
        *([Column("of")] if len(costs) > 1 else []),
        Column("pairs", right=True),
        Column("is"),
        *([Column("probes' cost", right=True)] if has_probes else []),
    )
    return Table(
        "Whole runs, without probes" if is_of_builds else "Whole runs",
        columns,
        tuple(
            (
                Cell(row.point.label, code=True),
                Cell(units.duration(row.base_ns)),
                Cell(units.duration(row.head_ns)),
                Cell(wording.interval(row.ratio)),
                *([Cell(row.cost)] if len(costs) > 1 else []),
                Cell(wording.ABSENT if row.ratio is None else f"{row.ratio.runs_base:,}"),
                Cell(row.standing.value if row.ratio is not None else "too few pairs"),
                *([_probes_cost(row)] if has_probes else []),
            )
            for row in rows
        ),
    )


def _probes_cost(row: EndToEnd) -> Cell:
    return Cell(wording.ABSENT if row.overhead is None else wording.percent(row.overhead) if row.overhead > 0 else "not seen")


def _counters(findings: Findings) -> str:
    software = "software PMU" if any(finding.counts for finding in findings.functions) else ""
    hardware = "hardware counters" if findings.environment.pmu else "no hardware counters on this machine"
    return ", ".join(filter(None, (software, hardware)))


def _notes(findings: Findings) -> Items | None:
    texts = tuple(f"{note.text} ({note.slug})" for note in map(noted, findings.notes) if note.slug not in _BESIDE)
    return Items("Notes", texts) if texts else None


def _environment(findings: Findings) -> Facts:
    environment = findings.environment
    facts = [
        ("base", f"{wording.revision(findings.base)} {findings.base.summary}".strip()),
        ("head", f"{wording.revision(findings.head)} {findings.head.summary}".strip()),
        ("workloads", "; ".join(f"{workload.name}: {workload.command}" for workload in findings.workloads)),
        ("machine", f"{environment.cpu}, {wording.plural(environment.cores, 'CPU')}, {environment.kernel}"),
        ("governor", environment.governor or "unknown"),
        ("compiler", environment.compiler),
        ("flags", "; ".join(environment.flags)),
        ("libraries", ", ".join(environment.libraries)),
        ("counters", _counters(findings)),
        ("clock", environment.clock),
        ("perfdiff", f"{environment.perfdiff}, {environment.created}"),
    ]
    return Facts(tuple(Fact(label, text) for label, text in facts if text))
