"""The report as one self-contained HTML file: no network, dark and light, for wide and narrow screens, paper, and without script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perfdiff import units
from perfdiff.analysis.claims import parts, replaced
from perfdiff.analysis.findings import FunctionFinding, MetricFinding, Verdict
from perfdiff.report import wording
from perfdiff.report.blocks import Diff, DiffLine, Fact, Facts, Items, Plot, Sentence, Table, TextListing
from perfdiff.report.chart import forest
from perfdiff.report.document import Document, headline
from perfdiff.report.flame import ROW, flame
from perfdiff.report.function import shows_elsewhere
from perfdiff.report.page import asset, environment, policy
from perfdiff.report.profiles.stacks import METHOD
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.tree import CallTree, ExtraCost

_KINDS = {Sentence: "sentence", Facts: "facts", Items: "items", Table: "table", TextListing: "listing", Diff: "diff", Plot: "plot"}
_DIFF_CLASSES = {"+": "added", "-": "removed", "@": "gap", " ": "same"}
_MOVED = (Verdict.REGRESSION, Verdict.IMPROVEMENT)
# A longer page is searched, not read; the JSON report holds all functions.
MOST_SECTIONS = 100
# Fewer functions are found by eye.
FILTERED_FROM = 8


def render(document: Document) -> str:
    """Return the report as HTML."""
    style, script = asset("report.css"), asset("report.js")
    sections = document.functions[:MOST_SECTIONS]
    title, cause = _said(document)
    within, is_good_news = tuple(parts(document.findings.sentence)), document.findings.verdict is Verdict.UNCHANGED
    return (
        environment(diff_class=lambda line: _DIFF_CLASSES[line.mark], kind=lambda block: _KINDS[type(block)], runs=runs, bar=bar)
        .get_template("report.html.j2")
        .render(
            document=document,
            findings=document.findings,
            verdict=wording.ANSWERS[document.findings.verdict],
            said=title,
            cause=cause,
            behind=[block for block in document.answer[1:] if is_good_news or isinstance(block, Sentence)],
            tiles=list(_tiles(document)),
            sections=sections,
            left_out=len(document.functions) - len(sections),
            told={
                section.id for finding, section in zip(document.findings.functions, sections, strict=False) if finding.headline in within
            },
            shown={section.id for section in sections},
            filtered=len(document.functions) >= FILTERED_FROM,
            forest=forest([section.span for section in document.functions]),
            flame=flame(document.findings, sections),
            row=ROW,
            method=METHOD,
            sides=[("base", document.findings.base), ("head", document.findings.head)],
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )


def runs(diff: Diff) -> list[tuple[str, list[DiffLine]]]:
    """Return a diff's lines in runs of one mark, so that a run is one element."""
    grouped: list[tuple[str, list[DiffLine]]] = []
    for line in diff.lines:
        if not grouped or grouped[-1][0] != line.mark:
            grouped.append((line.mark, []))
        grouped[-1][1].append(line)
    return grouped


def bar(extra: ExtraCost, tree: CallTree) -> tuple[float, float]:
    """Return where the bar of an extra cost starts and how long it is, on an axis from 0 to 100 that all bars share."""
    width = (tree.high - tree.low) or 1.0
    start = (min(extra.ns, 0.0) - tree.low) / width * 100
    return round(start, 1), round(abs(extra.ns) / width * 100, 1)


def _leader(document: Document) -> FunctionFinding | None:
    """Return the function that the answer is about."""
    findings = document.findings
    return next((finding for finding in findings.functions if finding.verdict is findings.verdict and not finding.accepted), None)


def _said(document: Document) -> tuple[str, str]:
    """Return the answer as a title and the cause that follows it, which is a paragraph of its own; "" where the answer gives none."""
    findings, leader = document.findings, _leader(document)
    cause = leader.causes[0].says if leader is not None and leader.causes and leader.headline in parts(findings.sentence) else None
    if leader is None or not cause:
        return headline(findings), ""
    alone = replaced(findings.sentence, leader.headline, replace(leader, tells_cause=False).headline)
    return headline(replace(findings, sentence=alone)), say(cause)


def _tiles(document: Document) -> Iterator[Fact]:
    """Yield the figures of the function that the answer is about, each with what it means."""
    leader = _leader(document)
    metric = wording.leading(leader) if leader else None
    if leader is None or metric is None or document.findings.verdict not in _MOVED:
        return
    if metric.ratio is not None and not metric.ratio.is_unknown and not shows_elsewhere(leader):
        reach = wording.interval(metric.ratio, metric.metric).partition(" ")[2]
        where = f" ({metric.stratum})" if metric.stratum else ""
        yield Fact(f"{wording.per_what(metric.metric, leader.info.name)} {reach}{where}", units.ratio(metric.ratio.value))
    if not shows_elsewhere(leader) and (costs := wording.costs(metric)) != wording.ABSENT:
        at = f" at {where}" if (where := wording.cost_at(metric)) else ""
        scopes_met = ", over all scopes" if _averages(metric) else ""
        yield Fact(f"{wording.per_what(metric.metric)}{at}{scopes_met}", costs)
    if metric.class_changed:
        yield Fact(f"growth in `{metric.feature}`" if metric.feature else "growth", wording.classes(metric))
    if leader.extra_ns > 0:
        share = f", {wording.percent(leader.share)} of all that got slower" if leader.share is not None else ""
        yield Fact(f"in one run of each workload point{share}", f"+{units.duration(leader.extra_ns)}")


def _averages(metric: MetricFinding) -> bool:
    """Return whether the cost that is told is predicted as a mean over scopes, as an input that tells them apart is not given."""
    prediction = wording.telling(metric)
    if metric.typical is not None or prediction is None:
        return False
    scopes_of = [scope for annotation in (metric.base, metric.head) if annotation for scope in annotation.scopes]
    return any(condition.feature not in prediction.inputs for scope in scopes_of for condition in scope.conditions)
