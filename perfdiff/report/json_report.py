"""The report for programs: schema `perfdiff.report/1`. Keys may be added within the version; none is renamed or removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.findings import (
    Anomaly,
    Cause,
    CountFinding,
    EndToEnd,
    FunctionFinding,
    MetricFinding,
    Ratio,
    RequestFinding,
)
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.witnessed import PointBehaviour, SideBehaviour
from perfdiff.models.annotation import Annotation
from perfdiff.models.language import readable
from perfdiff.records.kinds import MachinePart
from perfdiff.records.reach import Reach
from perfdiff.records.schema import Environment, Revision
from perfdiff.report import kernel_use, lasting_memory, peak_memory, slow_inputs, usage, wording
from perfdiff.report.consequences import budgets_json
from perfdiff.report.document import Document, conclusion
from perfdiff.report.json_text import json_text
from perfdiff.report.sentences.catalogue import noted, say

SCHEMA = "perfdiff.report/1"


def render(document: Document) -> str:
    """Return the findings as JSON. Absent and non-finite numbers are null; names of files are as they are, all other texts printable."""
    return json_text(json_document(document)) + "\n"


def json_document(document: Document) -> dict[str, Any]:
    """Return what `--format json` writes; numbers may be NaN or infinite."""
    findings = document.leading
    return {
        "schema": SCHEMA,
        "compared": findings.compared.value,
        "verdict": findings.verdict.value,
        "sentence": conclusion(findings),
        "rules": [rule.name for rule in findings.rules],
        "base": revision_of(findings.base),
        "head": revision_of(findings.head),
        "confidence": findings.confidence,
        "min_effect": findings.min_effect,
        "rung": findings.rung.value,
        "excluded": findings.excluded,
        "changed": _changed(findings.reach),
        "met": list(findings.met),
        "outside": list(findings.outside),
        "overhead": findings.overhead,
        "stages": dict(findings.stages),
        "environment": _environment(findings.environment),
        "machines": [_machine(part) for part in findings.machines],
        "workloads": [
            {
                "name": workload.name,
                "command": workload.command,
                "parameters": list(workload.parameters),
                "min_effect": next((point.min_effect for point in findings.points if point.workload == workload.name), None),
                "points": [
                    {"label": point.label, "parameters": dict(point.parameters), "command": point.command}
                    for point in findings.points
                    if point.workload == workload.name
                ],
            }
            for workload in findings.workloads
        ],
        "end_to_end": [_end_to_end(item) for item in findings.end_to_end],
        "memory": peak_memory.json_document(findings.memory) if findings.memory else None,
        "lasting_memory": lasting_memory.json_document(findings.lasting) if findings.lasting else None,
        "kernel": kernel_use.json_document(findings.kernel) if findings.kernel else None,
        "budgets": budgets_json(document.consequences) if document.consequences else [],
        "production": usage.json_document(document.consequences.in_use) if document.consequences and document.consequences.in_use else None,
        "search": slow_inputs.json_document(document.inputs) if document.inputs else None,
        "behaviour": [_behaviour(item) for item in findings.behaviour],
        "requests": [_request(item) for item in findings.requests],
        "functions": [_function(finding, {point.id: point.label for point in findings.points}) for finding in findings.functions],
        "skipped": [{"name": item.name, "file": item.file, "reason": item.reason} for item in findings.skipped],
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, findings.notes)],
    }


def revision_of(revision: Revision) -> dict[str, Any]:
    """Return a revision as JSON."""
    return {"rev": revision.rev, "commit": revision.commit, "summary": revision.summary}


def _changed(reach: Reach | None) -> dict[str, Any] | None:
    if reach is None:
        return None
    return {"functions": reach.changed, "ran": reach.ran, "unknown": reach.unknown, "idle": list(reach.idle)}


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        "cpu": environment.cpu,
        "cores": environment.cores,
        "kernel": environment.kernel,
        "governor": environment.governor,
        "compiler": environment.compiler,
        "flags": list(environment.flags),
        "libraries": list(environment.libraries),
        "pmu": environment.pmu,
        "clock": environment.clock,
        "perfdiff": environment.perfdiff,
        "created": environment.created,
    }


def _machine(part: MachinePart) -> dict[str, Any]:
    runs = {"base": part.runs_base, "head": part.runs_head}
    return {"name": part.name, "hosts": part.hosts, "runs": runs, "environment": _environment(part.environment)}


def _end_to_end(item: EndToEnd) -> dict[str, Any]:
    return {
        "point": item.point.label,
        "base_ns": item.base_ns,
        "head_ns": item.head_ns,
        **_ratio(item.ratio),
        "of": item.by,
        "standing": item.standing.value,
        "needed": item.needed or None,
        "overhead": item.overhead,
        "machines": {name: _ratio(ratio) for name, ratio in item.machines.items()},
        "disagree": item.disagree,
    }


def _behaviour(item: PointBehaviour) -> dict[str, Any]:
    return {
        "point": item.point.label,
        "checked": item.checked,
        "differences": [{"kind": difference.kind.value, "says": say(difference.says)} for difference in item.differences],
        "base": _side(item.base),
        "head": _side(item.head),
    }


def _side(side: SideBehaviour) -> dict[str, Any]:
    concurrency = side.concurrency
    return {
        "runs": side.runs,
        "exit_codes": {str(code): runs for code, runs in side.exit_codes.items()},
        "output": asdict(side.output),
        "errors": asdict(side.errors),
        "files": {name: asdict(written) for name, written in side.files.items()},
        "elsewhere_bytes": asdict(side.elsewhere_bytes) if side.elsewhere_bytes else None,
        "left": {"runs": side.leaving, "names": list(side.left), "cpu_ns": side.left_cpu_ns},
        "concurrency": asdict(concurrency) if concurrency else None,
    }


def _request(item: RequestFinding) -> dict[str, Any]:
    return {
        "point": item.point.label,
        "name": item.name,
        "made": item.made,
        "failed": item.failed,
        "base_ns": item.base_ns,
        "head_ns": item.head_ns,
        "base_tail_ns": item.base_tail_ns,
        "head_tail_ns": item.head_tail_ns,
        **_ratio(item.ratio),
    }


def _function(finding: FunctionFinding, labels: Mapping[int, str]) -> dict[str, Any]:
    info = finding.info
    return {
        "name": info.name,
        "file": info.file,
        "line": info.line,
        "language": info.language,
        "change": info.change.value,
        "change_reasons": list(map(str, info.reasons)),
        "culprits": list(map(str, info.culprits)),
        "verdict": finding.verdict.value,
        "accepted": _accepted(finding.accepted),
        "reason": say(finding.reason),
        "rules": [rule.name for rule in finding.rules],
        "headline": say(finding.headline),
        "rank": finding.rank,
        "calls": {"base": finding.calls_base, "head": finding.calls_head},
        "share": finding.share,
        "extra_ns": finding.extra_ns,
        "extra_ci": list(finding.extra_ci_ns) if finding.extra_ci_ns else None,
        "first": finding.first,
        "warm_up": {side.value: {"calls": warm_up.calls, "factor": warm_up.factor} for side, warm_up in finding.warm_up.items()},
        "metrics": {name: _metric(metric, labels) for name, metric in finding.metrics.items()},
        "counts": {name: _count(count) for name, count in finding.counts.items()},
        "anomaly": _anomaly(finding.anomaly),
        "causes": [_cause(cause) for cause in finding.causes],
        "lines": [_line(line) for line in finding.lines],
        "chain": [*map(say, finding.chain)],
        "machines_say": say(finding.machines_say),
    }


def _accepted(entries: Sequence[Acceptance]) -> dict[str, Any] | None:
    """Return the entry on the main metric, with the accepted ratio of each metric beside it."""
    if not entries:
        return None
    until = min((entry.until for entry in entries if entry.until), default=None)
    return {
        "reason": entries[0].reason,
        "until": until.isoformat() if until else None,
        "ratio": entries[0].ratio,
        "metrics": {entry.metric: entry.ratio for entry in entries},
    }


def _count(count: CountFinding) -> dict[str, Any]:
    return {
        "point": count.point.label,
        "base": count.base,
        "head": count.head,
        **_ratio(count.ratio),
        "exact": count.exact,
        "grew": count.grew,
        "shrank": count.shrank,
    }


def _anomaly(anomaly: Anomaly | None) -> dict[str, Any] | None:
    if anomaly is None:
        return None
    return {
        "detector": anomaly.detector.value,
        "threshold": anomaly.threshold,
        "anomalous_base": anomaly.anomalous_base,
        "anomalous_head": anomaly.anomalous_head,
        "anomalous": anomaly.is_anomalous,
        "open": say(anomaly.open),
        "p": anomaly.p,
        "votes": [{"counter": vote.counter, "share": vote.share, "base": vote.base, "head": vote.head} for vote in anomaly.votes],
        "calls": [asdict(call) for call in anomaly.calls],
    }


def _metric(metric: MetricFinding, labels: Mapping[int, str]) -> dict[str, Any]:
    return {
        "unit": wording.metric_unit(metric.metric),
        "base": _annotation(metric.base),
        "head": _annotation(metric.head),
        "feature": metric.feature,
        **_ratio(metric.ratio),
        "q": metric.q,
        "stratum": metric.stratum,
        "overall": _ratio_or_none(metric.overall),
        "points": {labels[point]: _ratio(ratio) for point, ratio in metric.points.items()},
        "machines": {name: _ratio(ratio) for name, ratio in metric.machines.items()},
        "machines_q": metric.machines_q,
        "mix": _ratio_or_none(metric.mix),
        "calls": _ratio_or_none(metric.calls),
        "total": _ratio_or_none(metric.total),
        "floor": metric.floor,
        "crosses": metric.crosses,
        "modes": [asdict(shift) for shift in metric.modes],
        "borders": [asdict(shift) for shift in metric.borders],
        "class_changed": metric.class_changed,
        "coefficients": [
            {"term": shift.term, "base": shift.base, "head": shift.head, "ci": [shift.low, shift.high], "q": shift.q}
            for shift in metric.coefficients
        ],
        "predictions": [
            {"inputs": dict(prediction.inputs), "base": prediction.base, "head": prediction.head, "beyond": prediction.beyond}
            for prediction in metric.predictions
        ],
    }


def _annotation(annotation: Annotation | None) -> dict[str, Any] | None:
    if annotation is None:
        return None
    return {
        "annotation": readable(annotation),
        "class": annotation.cost_class.value,
        "growth": annotation.growth.value,
        "by_counts": annotation.by_counts is not None,
        "r2": annotation.r2,
        "cv_r2": annotation.cv_r2,
        "n": annotation.n,
        "features": list(annotation.features),
        "ranges": {name: list(bounds) for name, bounds in annotation.ranges.items()},
        "twins": {name: list(others) for name, others in annotation.twins.items()},
        "further": annotation.further,
    }


def _ratio(ratio: Ratio | None) -> dict[str, Any]:
    if ratio is None:
        return {"ratio": None, "ci": None, "runs": None}
    # An interval with an open end is still an interval: its finite end stays, the other is null.
    return {"ratio": ratio.value, "ci": [ratio.low, ratio.high], "runs": {"base": ratio.runs_base, "head": ratio.runs_head}}


def _ratio_or_none(ratio: Ratio | None) -> Mapping[str, Any] | None:
    return None if ratio is None else _ratio(ratio)


def _line(line: LineGrowth) -> dict[str, Any]:
    return {
        "function": line.function,
        "file": line.file,
        "line": line.line,
        "text": line.text,
        "point": line.point,
        "base": line.base,
        "head": line.head,
        "feature": line.feature,
        "base_says": line.base_says,
        "head_says": line.head_says,
        "new": line.is_new,
        "steeper": line.is_steeper,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    evidence = [{"counter": item.counter, "base": item.base, "head": item.head} for item in cause.evidence]
    return {"name": cause.name, "says": say(cause.says), "evidence": evidence}
