"""Profiles, of one revision or over several, as text and as JSON, for `profile`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.profiles import METRIC, Growth, Profiles
from perfdiff.analysis.sums.profile import Line, Profile
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


def text(found: Profiles, known: Classes, *, width: int = 100, colour: bool = False) -> str:
    """Return the functions of one revision, or which of them grew over several; `known` are their classes in the last one."""
    clean: Profiles = printable_values(found)
    return render_blocks(list(_blocks(clean, known)), width=width, colour=colour)


def answer(found: Profiles) -> str:
    """Return in a sentence which function takes most time, or which ones grew."""
    clean: Profiles = printable_values(found)
    if len(clean.revisions) > 1:
        grown = [_says(each) for each in clean.growths if each.grew]
        first, last = _ends(clean)
        return f"grew from {first} to {last}: {units.listed(grown, _NAMED, ';')}" if grown else _nothing_grew(clean)
    profile = clean.profiles[0]
    if profile is None or not profile.lines:
        return "no function ran"
    line = profile.lines[0]
    return f"most own time: {line.info.name}, {wording.percent(profile.share(line))} of that of all functions"


def _blocks(found: Profiles, known: Classes) -> Iterator[Block]:
    if len(found.revisions) > 1:
        yield from _over(found)
    elif found.profiles[0] is not None:
        yield _lines(found.profiles[0], known)
    if (machines := recorders_table(found.machines, found.on, found.revisions)) is not None:
        yield machines
    yield from remarks(found)


def remarks(profiles: Profiles) -> Iterator[Items]:
    """Yield why revisions have no profile, and notes."""
    reasons = [
        f"{wording.revision(revision)}: {reason}" for revision, reason in zip(profiles.revisions, profiles.reasons, strict=True) if reason
    ]
    if reasons:
        yield Items("Without a profile", tuple(reasons))
    if profiles.notes:
        yield Items("Notes", tuple(f"{note.text} ({note.slug})" for note in map(noted, profiles.notes)))


def _lines(profile: Profile, known: Classes) -> Table:
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
            Cell(known[line.info.id].value if line.info.id in known else wording.ABSENT),
        )
        for line in profile.lines
    )
    return Table(f"{wording.revision(profile.revision)}, one run of each workload point", columns, tuple(rows))


def _over(found: Profiles) -> Iterator[Block]:
    first, last = _ends(found)
    grown = [each for each in found.growths if each.grew]
    if grown:
        yield Items(f"Grew from {first} to {last}", tuple(_says(each) for each in grown))
    else:
        yield Sentence(_nothing_grew(found))
    columns = (
        Column("function"),
        Column("where", minor=True),
        Column(f"own time, {first}", right=True),
        Column(last, right=True),
        Column("ratio", right=True),
        Column("calls", right=True),
        Column("change"),
    )
    yield Table("Own time in one run of each workload point", columns, tuple(_row(each) for each in found.growths))


def _ends(found: Profiles) -> tuple[str, str]:
    measured = [revision.rev for revision, each in zip(found.revisions, found.profiles, strict=True) if each is not None]
    return measured[0], measured[-1]


def _nothing_grew(found: Profiles) -> str:
    first, last = _ends(found)
    return f"No function clearly grew from {first} to {last}."


def _says(each: Growth) -> str:
    """Say by how much a function grew, and where."""
    before, now = (units.duration(ns or 0.0) for ns in each.ends_ns)
    return f"{each.name}: {before} → {now} a run; {_changes(each) or 'it is new'}"


def _changes(each: Growth) -> str:
    says = [f"a call {step_says(step, METRIC)} in {revision.rev}" for revision, step in each.steps]
    if each.calls_ratio is not None:
        says.append(f"called {units.ratio(each.calls_ratio)} as often")
    return ", ".join(says)


def _row(each: Growth) -> tuple[Cell, ...]:
    (first, last), calls = each.ends_ns, each.calls[each.ends[1]]
    return (
        Cell(each.name, code=True),
        Cell(each.file, Tone.MUTED, code=True),
        Cell(wording.amount(METRIC, first)),
        Cell(wording.amount(METRIC, last)),
        Cell(units.ratio(last / first) if first and last is not None else wording.ABSENT),
        Cell(wording.ABSENT if calls is None else units.count(calls)),
        Cell(_changes(each), Tone.REGRESSION if each.grew else Tone.PLAIN),
    )


def json_document(found: Profiles, known: Classes) -> dict[str, Any]:
    """Return what `profile --format json` writes; what is absent is None."""
    last = len(found.revisions) - 1
    return {
        "schema": SCHEMA,
        "revisions": [
            {
                "rev": revision.rev,
                "commit": revision.commit,
                "summary": revision.summary,
                "reason": reason or None,
                "machine": found.on[place] if found.on else None,
                "functions": [_line(line, profile, known if place == last else {}) for line in profile.lines] if profile else [],
            }
            for place, (revision, profile, reason) in enumerate(zip(found.revisions, found.profiles, found.reasons, strict=True))
        ],
        "growth": [_growth(each) for each in found.growths],
        "machines": [codec.encode(machine) for machine in found.machines],
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, found.notes)],
    }


def _line(line: Line, profile: Profile, known: Classes) -> dict[str, Any]:
    return {
        "name": line.info.name,
        "file": line.info.file,
        "line": line.info.line,
        "calls": line.calls,
        "self_ns": line.self_ns,
        "wall_ns": line.wall_ns,
        "share": profile.share(line),
        "class": known[line.info.id].value if line.info.id in known else None,
    }


def _growth(each: Growth) -> dict[str, Any]:
    return {
        "name": each.name,
        "file": each.file,
        "grew": each.grew,
        "self_ns": list(each.self_ns),
        "calls": list(each.calls),
        "changes": [
            {"rev": revision.rev, "ratio": step.ratio.value, "ci": [step.ratio.low, step.ratio.high], "since": step.since.rev}
            for revision, step in each.steps
        ],
    }


def largest(found: Profiles, most: int) -> Sequence[Growth]:
    """Return the functions with the largest own time in any revision, the largest first."""
    return sorted(found.growths, key=lambda each: -max(ns or 0.0 for ns in each.self_ns))[:most]
