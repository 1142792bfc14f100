"""What a search for inputs found, in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.findings import EndToEnd, Verdict
from perfdiff.analysis.trends.findings import GrowthDifference
from perfdiff.fuzzing.families import InputFamily, Segment
from perfdiff.fuzzing.findings import SearchFindings, SlowInput
from perfdiff.fuzzing.trials import Mishap, MishapKind
from perfdiff.models.trend import Law
from perfdiff.records.schema import Side
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Fact, Facts, Items, Sentence, TextListing, Tone
from perfdiff.report.printable import printable, shortened
from perfdiff.report.trends import wording as growth

SCHEMA = "perfdiff.search/1"
_LONGEST = 40  # characters of a part that a sentence quotes
_HAPPENED = {MishapKind.HANG: "does not end in time", MishapKind.CRASH: "crashes"}


def answer(findings: SearchFindings) -> str:
    """Return the worst input that was found in a sentence, or that none was, with what was tried."""
    if not findings.inputs:
        return f"{_none(findings)}: {_tried(findings)}."
    worst = next((shown for shown in findings.inputs if shown.verdict is findings.verdict), findings.inputs[0])
    return f"{_lead(findings)}: {_shows(worst)}."


def json_document(findings: SearchFindings) -> dict[str, Any]:
    """Return what `search --format json` writes; what is absent is None."""
    return {
        "schema": SCHEMA,
        "verdict": findings.verdict.value,
        "answer": answer(findings),
        "revisions": {side.value: {"rev": revision.rev, "commit": revision.commit} for side, revision in findings.revisions.items()},
        "tried": findings.tried,
        "seconds": findings.seconds,
        "seeds": findings.seeds,
        "size": findings.size,
        "reached": findings.reached,
        "lines": findings.matters,
        "largest_ratio": findings.most,
        "inputs": [_input(shown) for shown in findings.inputs],
        "mishaps": [
            {
                "input": described(mishap.family, mishap.times),
                "file": str(mishap.file) if mishap.file else None,
                "failures": {side.value: failure.value for side, failure in mishap.failures.items()},
            }
            for mishap in findings.mishaps
        ],
        "notes": [{"slug": note.slug, "text": note.text} for note in findings.notes],
    }


def described(family: InputFamily, times: int) -> str:
    """Return the composition of an input in words: `8,191 × "[" and 8,191 × "]"`."""
    if family.dial:
        return f"{family.dial} = {times:,}"
    parts = [segment for segment in family.segments if segment.text]
    return " + ".join(_part(segment, times) for segment in parts)


def _part(segment: Segment, times: int) -> str:
    content = segment.text
    if segment.repeats and segment.number_at is not None:
        content = content[: segment.number_at] + b"\x00" + content[segment.number_at :]
    quoted = json.dumps(content.decode(errors="backslashreplace"), ensure_ascii=False).replace("\\u0000", "⟨number⟩")
    said = printable(shortened(quoted, _LONGEST))
    return f"{times:,} × {said}" if segment.repeats else said


def blocks(findings: SearchFindings) -> tuple[Sentence, *tuple[Block, ...]]:
    """Return the answer, each input with what it shows, and how far the search went."""
    return Sentence(answer(findings), wording.TONES[findings.verdict] if findings.inputs else Tone.STRONG), *_behind(findings)


def _behind(findings: SearchFindings) -> Iterator[Block]:
    for number, shown in enumerate(findings.inputs, 1):
        yield Sentence(f"Input {number}", Tone.STRONG)
        yield Facts(tuple(_facts(shown)))
        yield TextListing("to keep it as a workload", tuple(_configuration(shown)))
    if findings.inputs:
        yield Sentence(f"{_tried(findings)[0].upper()}{_tried(findings)[1:]}.", Tone.MUTED)
    if findings.mishaps:
        yield Items("Crashes and hangs, which are no slow-downs", tuple(_mishap(mishap) for mishap in findings.mishaps))
    if findings.notes:
        yield Items("Notes of the search", tuple(f"{printable(note.text)} ({note.slug})" for note in findings.notes))


def title(findings: SearchFindings) -> str:
    """Return the title of a search: its revisions."""
    return "search, " + " → ".join(wording.revision(revision) for _, revision in sorted(findings.revisions.items()))


def _facts(shown: SlowInput) -> Iterator[Fact]:
    yield Fact("input", described(shown.entry.family, shown.entry.times))
    if shown.files:
        yield Fact("kept as", ", ".join(printable(str(path)) for path in shown.files.values()))
    yield Fact("lines executed", _lines(shown))
    if (culprit := _culprit(shown)) is not None:
        yield Fact("where", culprit)
    if shown.run is not None and shown.run.ratio is not None:
        yield Fact("whole runs", f"{printable(shown.run.point.label)}: {_whole(shown.run)}")


def _lines(shown: SlowInput) -> str:
    trial = shown.entry.trial
    base, head = (float(trial.counts[side].sum()) for side in (Side.BASE, Side.HEAD))
    return f"{units.times(base)} → {units.times(head)} ({units.ratio(shown.entry.ratio)}) at {_size(shown.entry.family, shown.entry.size)}"


def _size(family: InputFamily, size: int) -> str:
    return f"{family.dial} = {size:,}" if family.dial else units.size(size)


def _culprit(shown: SlowInput) -> str | None:
    """Say which function grows, at which line, and how; of a lone revision its steepest cluster."""
    if shown.trends is None:
        return _by_time(shown)
    if shown.trends.differences:
        return "; ".join(filter(None, (_difference(shown.trends.differences[0]), _exponential(shown))))
    if Side.HEAD in shown.trends.sides:
        return None
    steepest = growth.steepest(shown.trends.sides[Side.BASE])
    if steepest is None:
        return None
    cluster, law = steepest
    return f"`{printable(growth.called(cluster))}`: {_law(law)}"


def _by_time(shown: SlowInput) -> str | None:
    """Say how the CPU time of runs grows, and which changed line ran most, where what lines do shows nothing."""
    law = shown.by_time
    said = [f"head takes {law.says} ns of CPU time more, exponent {growth.exponent(law)}"] if law and not shown.factor else []
    said += filter(None, [_exponential(shown)])
    if shown.changed is not None:
        where = printable(growth.where(shown.changed))
        said.append(f"no line runs more often; of changed ones that of `{printable(shown.changed.function)}` ({where}) ran most")
    return "; ".join(said) or None


def _exponential(shown: SlowInput) -> str | None:
    return f"each repetition multiplies what head does more by {shown.factor:.2g}: exponential" if shown.factor else None


def _difference(difference: GrowthDifference) -> str:
    place = difference.place
    before = difference.base.says if difference.base else "nothing that grows"
    after = _law(difference.head) if difference.head else "nothing that grows"
    return f"`{printable(place.function)}` ({printable(growth.where(place))}): {before} in base, {after} in head"


def _law(law: Law) -> str:
    return f"{law.says}, exponent {growth.exponent(law)}"


def _whole(row: EndToEnd) -> str:
    assert row.ratio is not None
    low, high = units.significant(row.ratio.low), units.significant(row.ratio.high)
    return (
        f"{units.duration(row.base_ns)} → {units.duration(row.head_ns)}, {units.ratio(row.ratio.value)} [{low}, {high}] "
        f"the {row.cost}, {row.ratio.runs_base} pairs"
    )


def _shows(shown: SlowInput) -> str:
    """Say what an input shows: its text, head's work over base's, the whole runs that say most, and where."""
    entry = shown.entry
    said = [f"{described(entry.family, entry.times)} ({_size(entry.family, entry.size)})"]
    if shown.run is not None and shown.run.ratio is not None:
        said.append(f"whole runs at {printable(shown.run.point.label)} take {_whole(shown.run)}")
    said.append(f"{units.ratio(entry.ratio)} the lines" if shown.trends is None or len(shown.trends.sides) > 1 else _grown(shown))
    if (culprit := _culprit(shown)) is not None:
        said.append(culprit)
    return "; ".join(said)


def _grown(shown: SlowInput) -> str:
    return f"{units.ratio(shown.entry.ratio)} what linear growth from a quarter of it would be"


def _none(findings: SearchFindings) -> str:
    if Side.HEAD in findings.revisions:
        return "No input found on which head does more"
    return "No input found with which work grows more than linearly"


def _tried(findings: SearchFindings) -> str:
    seeds, lines = wording.plural(findings.seeds, "seed"), wording.plural(findings.matters, "line")
    of_changed = f"{wording.percent(findings.reached)} of the {lines} of functions that changed or did more were reached"
    reached = of_changed if findings.matters else ""
    size = units.size(findings.size)
    said = f"{findings.tried:,} inputs of up to {size} from {seeds} in {units.duration(findings.seconds * 1e9)}"
    return ", ".join(filter(None, (said, reached, f"at most {units.ratio(findings.most)} the work")))


def _mishap(mishap: Mishap) -> str:
    happened = " and ".join(f"{side} {_HAPPENED[failure]}" for side, failure in mishap.failures.items())
    where = f", kept as {printable(str(mishap.file))}" if mishap.file else ""
    return f"{happened} with {described(mishap.family, mishap.times)}{where}"


def _configuration(shown: SlowInput) -> Iterator[str]:
    """Yield the lines of perfdiff.toml that make a workload of an input."""
    workload = shown.workload
    yield "[[workload]]"
    yield f"name = {json.dumps(workload.name)}"
    yield f"command = {json.dumps(workload.command)}"
    texts = {"setup": workload.setup, "prepare": workload.prepare, "check": workload.check}
    yield from (f"{key} = {json.dumps(text)}" for key, text in texts.items() if text)
    if workload.inputs:
        yield f"inputs = {json.dumps(list(workload.inputs))}"
    if any(workload.exit_codes):
        yield f"exit_codes = {json.dumps(list(workload.exit_codes))}"
    if workload.parameters:
        yield "[workload.parameters]"
        yield from (f"{name} = {json.dumps(list(values))}" for name, values in workload.parameters.items())


def _input(shown: SlowInput) -> dict[str, Any]:
    entry = shown.entry
    difference = shown.trends.differences[0] if shown.trends and shown.trends.differences else None
    return {
        "verdict": shown.verdict.value,
        "input": described(entry.family, entry.times),
        "bytes": None if entry.family.dial else entry.size,
        "times": entry.times,
        "ratio": entry.ratio,
        "slowdown": entry.slowdown,
        "files": [{"times": times, "file": str(path)} for times, path in shown.files.items()],
        "function": difference.place.function if difference else None,
        "file": difference.place.file if difference else None,
        "line": difference.place.line if difference else None,
        "growth": {side.value: _growth(law) for side, law in ((Side.BASE, difference.base), (Side.HEAD, difference.head))}
        if difference
        else None,
        "growth_of_time": _growth(shown.by_time),
        "factor": shown.factor,
        "run": _run(shown.run) if shown.run else None,
        "workload": {"name": shown.workload.name, "command": shown.workload.command, "inputs": list(shown.workload.inputs)},
    }


def _run(row: EndToEnd) -> dict[str, Any]:
    return {
        "point": row.point.label,
        "base_ns": row.base_ns,
        "head_ns": row.head_ns,
        "ratio": dict(zip(("value", "low", "high"), row.ratio.figures, strict=True)) if row.ratio else None,
        "standing": row.standing.value,
    }


def _growth(law: Law | None) -> dict[str, Any] | None:
    if law is None:
        return None
    return {"says": law.says, "class": law.growth.value, "exponent": law.b, "ci": list(law.ci_b)}


def _lead(findings: SearchFindings) -> str:
    if Side.HEAD not in findings.revisions:
        return "Work grows more than linearly on an input that was found"
    return _LEADS[findings.verdict]


_LEADS = {
    Verdict.REGRESSION: "Regression on an input that was found",
    Verdict.INCONCLUSIVE: "Inconclusive: head does more on an input that was found, which whole runs do not show beyond doubt",
    Verdict.UNCHANGED: "No regression: head executes more lines on an input that was found, and takes no longer",
}
