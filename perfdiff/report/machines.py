"""Several machines in words: what each of them is, and where they disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfdiff import units
from perfdiff.analysis.findings import Findings, Ratio
from perfdiff.records.kinds import MachinePart
from perfdiff.records.schema import Machine, Revision
from perfdiff.report import wording
from perfdiff.report.blocks import Cell, Column, Table, Tone

_LIBRARIES = 4  # that a row names; more are counted
_REVISIONS = 4  # that a row names; more are counted
_MOST = 50  # machines of a function in a table


def machine_table(findings: Findings) -> Table | None:
    """Return the environment of each machine, a row each, None where there is one."""
    if not findings.machines:
        return None
    columns = (
        Column("machine"),
        Column("hosts", right=True),
        Column("processor"),
        Column("CPUs", right=True),
        Column("kernel"),
        Column("governor", minor=True),
        Column("compiler", minor=True),
        Column("libraries", minor=True),
        Column("runs", right=True),
    )
    pace = findings.machines[0].name
    return Table(f"Machines; all times are told at the pace of {pace}", columns, tuple(map(_row, findings.machines)))


def recorders_table(machines: Sequence[Machine], on: Sequence[str], revisions: Sequence[Revision]) -> Table | None:
    """Return the environment of each machine that recorded revisions, and which; None where there is no more than one."""
    if len(machines) < 2:
        return None
    columns = (
        Column("machine"),
        Column("processor"),
        Column("CPUs", right=True),
        Column("kernel"),
        Column("governor", minor=True),
        Column("compiler", minor=True),
        Column("recorded"),
    )
    rows = []
    for machine in machines:
        own = [revision.rev for revision, name in zip(revisions, on, strict=True) if name == machine.name]
        of = machine.environment
        rows.append(
            (
                Cell(machine.name, Tone.STRONG),
                Cell(of.cpu),
                Cell(f"{of.cores:,}"),
                Cell(of.kernel),
                Cell(of.governor or "unknown"),
                Cell(of.compiler),
                Cell(units.listed(own, _REVISIONS)),
            )
        )
    return Table(f"Machines; costs are told as {machines[0].name} would have them", columns, tuple(rows))


def _row(part: MachinePart) -> tuple[Cell, ...]:
    of = part.environment
    libraries = [*of.libraries[:_LIBRARIES], *([f"{len(of.libraries) - _LIBRARIES} more"] if len(of.libraries) > _LIBRARIES else [])]
    return (
        Cell(part.name, Tone.STRONG),
        Cell(f"{part.hosts:,}"),
        Cell(of.cpu),
        Cell(f"{of.cores:,}"),
        Cell(of.kernel),
        Cell(of.governor or "unknown"),
        Cell(of.compiler),
        Cell(", ".join(libraries) or wording.ABSENT),
        Cell(f"{part.runs_base:,} and {part.runs_head:,}"),
    )


def disagreement_table(findings: Findings) -> Table | None:
    """Return the ratios of single machines where these disagree beyond chance, None where they do not."""
    rows = tuple(_disagreements(findings))
    if not rows:
        return None
    return Table(
        "Machines that disagree", (Column("what"), Column("machine"), Column("ratio", right=True), Column("runs", right=True)), rows
    )


def _disagreements(findings: Findings) -> Iterator[tuple[Cell, ...]]:
    for finding in findings.functions:
        if finding.machines_say:
            of = (finding.metrics[name] for name in ("self_ns", "wall_ns") if name in finding.metrics)
            metric = min((candidate for candidate in of if candidate.machines), key=lambda candidate: candidate.machines_q, default=None)
            if metric is not None:
                yield from _ratios(Cell(finding.info.name, wording.TONES[finding.verdict], code=True), dict(metric.machines))
    for end in findings.end_to_end:
        if end.disagree:
            yield from _ratios(Cell(f"whole runs at {end.point.label}"), dict(end.machines))


def _ratios(what: Cell, machines: dict[str, Ratio]) -> Iterator[tuple[Cell, ...]]:
    ordered = sorted(machines.items(), key=lambda item: (-item[1].value, item[0]))
    for place, (name, ratio) in enumerate(ordered[:_MOST]):
        tone = Tone.REGRESSION if ratio.low > 1 else Tone.IMPROVEMENT if ratio.high < 1 else Tone.PLAIN
        yield what if not place else Cell(""), Cell(name), Cell(wording.interval(ratio), tone), Cell(f"{ratio.runs_base:,}")
