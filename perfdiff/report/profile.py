"""Profiles, of one revision or over several, as text and as JSON, for `profile`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.profiles import METRIC, Growth, Profiles
from perfdiff.analysis.sums.profile import Profile, ProfileLine
from perfdiff.models.annotation import CostClass
from perfdiff.records import codec
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.history import step_says
from perfdiff.report.machines import recorders_table
from perfdiff.report.printable import printable_values
from perfdiff.report.sentences.catalogue import noted
from perfdiff.report.terminal import render_blocks

SCHEMA = "perfdiff.profile/1"

Classes = Mapping[int, CostClass]

_NAMED = 3  # functions that a sentence names


def text(profiles: Profiles, classes: Classes, *, width: int = 100, colour: bool = False) -> str:
    """Return the functions of one revision, or which of them grew over several; `classes` are their classes in the last one."""
    clean: Profiles = printable_values(profiles)
    return render_blocks(list(_blocks(clean, classes)), width=width, colour=colour)


def answer(profiles: Profiles) -> str:
    """Return in a sentence which function takes most time, or which ones grew."""
    clean: Profiles = printable_values(profiles)
    if len(clean.revisions) > 1:
        grown = [_says(growth) for growth in clean.growths if growth.grew]
        first, last = _ends(clean)
        return f"grew from {first} to {last}: {units.listed(grown, _NAMED, ';')}" if grown else _nothing_grew(clean)
    profile = clean.profiles[0]
    if profile is None or not profile.lines:
        return "no function ran"
    line = profile.lines[0]
    return f"most own time: {line.info.name}, {wording.percent(profile.share(line))} of that of all functions"


def _blocks(profiles: Profiles, classes: Classes) -> Iterator[Block]:
    if len(profiles.revisions) > 1:
        yield from _over(profiles)
    elif profiles.profiles[0] is not None:
        yield _lines(profiles.profiles[0], classes)
    if (machines := recorders_table(profiles.machines, profiles.on, profiles.revisions)) is not None:
        yield machines
    yield from remarks(profiles)


def remarks(profiles: Profiles) -> Iterator[Items]:
    """Yield why revisions have no profile, and notes."""
    reasons = [
        f"{wording.revision(revision)}: {reason}" for revision, reason in zip(profiles.revisions, profiles.reasons, strict=True) if reason
    ]
    if reasons:
        yield Items("Without a profile", tuple(reasons))
    if profiles.notes:
        yield Items("Notes", tuple(f"{note.text} ({note.slug})" for note in map(noted, profiles.notes)))


def _lines(profile: Profile, classes: Classes) -> Table:
    columns = (
        Column("function"),
        Column("where", minor=True),
        Column("own time", right=True),
        Column("share", right=True),
        Column("with callees", right=True),
        Column("calls", right=True),
        Column("growth"),
    )
    rows = (
        (
            Cell(line.info.name, code=True),
            Cell(wording.place(line.info), Tone.MUTED, code=True),
            Cell(units.duration(line.self_ns)),
            Cell(wording.percent(profile.share(line))),
            Cell(units.duration(line.wall_ns)),
            Cell(units.count(line.calls)),
            Cell(classes[line.info.id].value if line.info.id in classes else wording.ABSENT),
        )
        for line in profile.lines
    )
    return Table(f"{wording.revision(profile.revision)}, one run of each workload point", columns, tuple(rows))


def _over(profiles: Profiles) -> Iterator[Block]:
    first, last = _ends(profiles)
    grown = [growth for growth in profiles.growths if growth.grew]
    if grown:
        yield Items(f"Grew from {first} to {last}", tuple(_says(growth) for growth in grown))
    else:
        yield Sentence(_nothing_grew(profiles))
    columns = (
        Column("function"),
        Column("where", minor=True),
        Column(f"own time, {first}", right=True),
        Column(last, right=True),
        Column("ratio", right=True),
        Column("calls", right=True),
        Column("change"),
    )
    yield Table("Own time in one run of each workload point", columns, tuple(_row(growth) for growth in profiles.growths))


def _ends(profiles: Profiles) -> tuple[str, str]:
    measured = [revision.rev for revision, profile in zip(profiles.revisions, profiles.profiles, strict=True) if profile is not None]
    return measured[0], measured[-1]


def _nothing_grew(profiles: Profiles) -> str:
    first, last = _ends(profiles)
    return f"No function clearly grew from {first} to {last}."


def _says(growth: Growth) -> str:
    """Say by how much a function grew, and where."""
    before, now = (units.duration(ns or 0.0) for ns in growth.ends_ns)
    return f"{growth.name}: {before} → {now} a run; {_changes(growth) or 'it is new'}"


def _changes(growth: Growth) -> str:
    says = [f"a call {step_says(step, METRIC)} in {revision.rev}" for revision, step in growth.steps]
    if growth.calls_ratio is not None:
        says.append(f"called {units.ratio(growth.calls_ratio)} as often")
    return ", ".join(says)


def _row(growth: Growth) -> tuple[Cell, ...]:
    (first, last), calls = growth.ends_ns, growth.calls[growth.ends[1]]
    return (
        Cell(growth.name, code=True),
        Cell(growth.file, Tone.MUTED, code=True),
        Cell(wording.amount(METRIC, first)),
        Cell(wording.amount(METRIC, last)),
        Cell(units.ratio(last / first) if first and last is not None else wording.ABSENT),
        Cell(wording.ABSENT if calls is None else units.count(calls)),
        Cell(_changes(growth), Tone.REGRESSION if growth.grew else Tone.PLAIN),
    )


def json_document(profiles: Profiles, classes: Classes) -> dict[str, Any]:
    """Return what `profile --format json` writes; what is absent is None."""
    last = len(profiles.revisions) - 1
    return {
        "schema": SCHEMA,
        "revisions": [
            {
                "rev": revision.rev,
                "commit": revision.commit,
                "summary": revision.summary,
                "reason": reason or None,
                "machine": profiles.on[place] if profiles.on else None,
                "functions": [_line(line, profile, classes if place == last else {}) for line in profile.lines] if profile else [],
            }
            for place, (revision, profile, reason) in enumerate(zip(profiles.revisions, profiles.profiles, profiles.reasons, strict=True))
        ],
        "growth": [_growth(growth) for growth in profiles.growths],
        "machines": [codec.encode(machine) for machine in profiles.machines],
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, profiles.notes)],
    }


def _line(line: ProfileLine, profile: Profile, classes: Classes) -> dict[str, Any]:
    return {
        "name": line.info.name,
        "file": line.info.file,
        "line": line.info.line,
        "calls": line.calls,
        "self_ns": line.self_ns,
        "wall_ns": line.wall_ns,
        "share": profile.share(line),
        "class": classes[line.info.id].value if line.info.id in classes else None,
    }


def _growth(growth: Growth) -> dict[str, Any]:
    return {
        "name": growth.name,
        "file": growth.file,
        "grew": growth.grew,
        "self_ns": list(growth.self_ns),
        "calls": list(growth.calls),
        "changes": [
            {"rev": revision.rev, "ratio": step.ratio.value, "ci": [step.ratio.low, step.ratio.high], "since": step.since.rev}
            for revision, step in growth.steps
        ],
    }


def largest(profiles: Profiles, most: int) -> Sequence[Growth]:
    """Return the functions with the largest own time in any revision, the largest first."""
    return sorted(profiles.growths, key=lambda growth: -max(ns or 0.0 for ns in growth.self_ns))[:most]
