"""The outcome of a check against annotations or saved trends, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.assertion import Assertion, Outside
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.series import BETTER, CheckedAssertions, Standing
from perfdiff.analysis.trends.assertions import GrowthAssertion, SavedExponent
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.printable import printable, shortened
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.report.terminal import render_blocks
from perfdiff.report.trends import wording as growing
from perfdiff.report.wording import ABSENT, plural

SCHEMA = "perfdiff.check/1"
SCHEMA_OF_TRENDS = "perfdiff.check-trends/1"

AnyAssertion = Assertion | GrowthAssertion
AnyChecked = CheckedAssertions[Assertion] | CheckedAssertions[GrowthAssertion]

_ORDER = list(Standing)
_TONES = {Standing.VIOLATED: Tone.REGRESSION, Standing.OPEN: Tone.INCONCLUSIVE, **dict.fromkeys(BETTER, Tone.IMPROVEMENT)}
_MOST_NAMES = 3
_LONGEST = 80  # characters of a line that a sentence quotes
_OWN = "self_ns"


def text(checked: AnyChecked, *, width: int = 100, colour: bool = False) -> str:
    """Return the answer in sentences, then a line for each assertion, then what could not be judged."""
    return render_blocks(list(_blocks(checked)), width=width, colour=colour)


def answer(checked: AnyChecked) -> str:
    """Return the outcome of a check of annotations or trends, in one or two sentences."""
    judged, total, revision = len(checked.judged), len(checked.assertions), printable(wording.revision(checked.revision))
    missing = total - judged
    left = f" {plural(missing, 'assertion')} could not be judged." if missing and judged else ""
    about, on = (" on growth", f" on growth, on {revision}") if checked.saved else ("", f" on {revision}")
    if not judged:
        return f"Not judged: none of {plural(total, 'assertion')}{about} could be held against {revision}."
    if violated := checked.those(Standing.VIOLATED):
        first = f"; {_growth_violation(violated[0])}" if isinstance(violated[0], GrowthAssertion) else ""
        return f"Violated: {len(violated)} of {plural(judged, 'assertion')}{on}{first}.{left}"
    if still := len(checked.those(Standing.OPEN)):
        return f"Inconclusive: {still} of {plural(judged, 'assertion')}{on}, none violated for certain.{left}"
    if checked.saved:
        saved = wording.revision(checked.saved)
        return f"Nothing that was judged grows by a higher power on {revision} than on {saved}: {judged} of {total}.{left}"
    return f"Every assertion that was judged holds on {revision}: {judged} of {total}.{left}"


def json_document(checked: AnyChecked) -> dict[str, Any]:
    """Return what `check --format json` writes; what is absent is None."""
    saved = checked.saved
    limits = {"min_effect": checked.config.min_effect, "fdr": checked.config.fdr}
    return {
        "schema": SCHEMA_OF_TRENDS if saved else SCHEMA,
        "verdict": checked.verdict.value,
        "revision": {"rev": checked.revision.rev, "commit": checked.revision.commit},
        **({"saved": {"rev": saved.rev, "commit": saved.commit}} if saved else limits),
        "assertions": [
            _assertion(assertion) if isinstance(assertion, Assertion) else _growth(assertion) for assertion in _ordered(checked)
        ],
        **({} if saved else {"unannotated": list(checked.unannotated)}),
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, checked.notes)],
    }


def _ordered(checked: AnyChecked) -> list[AnyAssertion]:
    """Return the assertions in the order of interest: those violated by a function's own cost come before those of its callers."""
    inherited = _inherited(checked)

    def place(assertion: AnyAssertion) -> tuple[int, bool, float]:
        worst = assertion.worst if isinstance(assertion, Assertion) else None
        return _ORDER.index(assertion.standing), id(assertion) in inherited, -(worst.low if worst else 0.0)

    return sorted(checked.assertions, key=place)


def _inherited(checked: AnyChecked) -> set[int]:
    """Return the (ids of) violated assertions of times whose function keeps the one of its own time: a callee's cost shows there."""
    timed = [assertion for assertion in checked.assertions if isinstance(assertion, Assertion)]
    own = {assertion.annotation.function: assertion.standing for assertion in timed if assertion.annotation.metric == _OWN}
    keeps = (Standing.HOLDS, Standing.FASTER, Standing.NEGLIGIBLE)
    return {
        id(assertion)
        for assertion in timed
        if assertion.standing is Standing.VIOLATED
        and assertion.annotation.metric == "wall_ns"
        and own.get(assertion.annotation.function) in keeps
    }


def _blocks(checked: AnyChecked) -> Iterator[Block]:
    yield Sentence(answer(checked), _TONES.get(checked.verdict, Tone.STRONG))
    ordered, inherited = _ordered(checked), _inherited(checked)
    for place, assertion in enumerate(ordered[:_MOST_NAMES]):
        if assertion.standing is Standing.VIOLATED:
            if isinstance(assertion, Assertion):
                yield Sentence(_violation(assertion, inherited=id(assertion) in inherited))
            elif place:  # the answer tells of the first
                yield Sentence(f"{_growth_violation(assertion)}.")
    if better := checked.those(*BETTER):
        yield Sentence(_gain(better))
    judged = [assertion for assertion in ordered if assertion.standing is not Standing.NOT_JUDGED]
    if judged:
        yield Table("", _COLUMNS_OF_TRENDS if checked.saved else _COLUMNS, tuple(map(_row, judged)))
    listed = (
        ("No answer", [f"{_name(assertion)}: {say(assertion.reason)}" for assertion in ordered if assertion.reason]),
        (
            "Beyond the annotated inputs",
            [_outside(timed, timed.outside) for timed in judged if isinstance(timed, Assertion) and timed.outside],
        ),
        ("Lines found again", [_again(counted) for counted in judged if isinstance(counted, GrowthAssertion) and counted.is_in_part]),
        ("Without annotation", [f"`{name}`" for name in checked.unannotated]),
        ("Notes", [f"{note.text} ({note.slug})" for note in map(noted, checked.notes)]),
    )
    yield from (Items(title, tuple(map(printable, lines))) for title, lines in listed if lines)


def _name(assertion: AnyAssertion) -> str:
    if isinstance(assertion, GrowthAssertion):
        return assertion.name
    return f"`{printable(assertion.annotation.function)}` ({assertion.annotation.metric})"


def _gain(better: Sequence[AnyAssertion]) -> str:
    counted = [f"{assertion.name} ({_now(assertion)})" for assertion in better if isinstance(assertion, GrowthAssertion)]
    timed = [
        f"`{printable(assertion.annotation.function)}` ({assertion.annotation.metric}, {_ratio(assertion.overall, assertion)})"
        for assertion in better
        if isinstance(assertion, Assertion)
    ]
    if counted:
        return f"Grows by a lower power than saved: {', '.join(counted)}. Save the trends anew, so that the gain is kept."
    return f"Cheaper than annotated: {', '.join(timed)}. Annotate anew, so that the gain is kept."


def _violation(assertion: Assertion, *, inherited: bool) -> str:
    metric, where = assertion.annotation.metric, f" at {printable(assertion.stratum)}" if assertion.stratum else ""
    annotated, seen = (wording.call_cost(metric, cost) for cost in (assertion.annotated, measured(assertion)))
    why = "; its own time holds, so a callee costs more" if inherited else ""
    return (
        f"`{printable(assertion.annotation.function)}` costs {_ratio(assertion.worst, assertion)}{where} in {wording.metric_says(metric)}: "
        f"{annotated} a call by its annotation, {seen} measured; {_passed(assertion)} runs pass{why}."
    )


def _growth_violation(assertion: GrowthAssertion) -> str:
    line = f"`{shortened(assertion.place.text, _LONGEST)}`" if assertion.place else ABSENT
    grows = f"grows as {assertion.fit.says if assertion.fit else ABSENT}: exponent {_now(assertion)}"
    if assertion.saved is None:
        return f"{assertion.name}, {line}, {grows}, a higher power than any that was saved"
    at = f", most often {line} at {growing.where(assertion.place)}" if assertion.place else ""
    return f"{assertion.name} {grows}, saved {_saved(assertion.saved)}{at}"


def measured(assertion: Assertion) -> float | None:
    """Return the cost of a call as measured, at the inputs that `annotated` holds for."""
    return None if assertion.annotated is None or assertion.worst is None else assertion.annotated * assertion.worst.value


def _ratio(ratio: Ratio | None, assertion: Assertion) -> str:
    return wording.interval(ratio, assertion.annotation.metric)


def _passed(assertion: Assertion) -> str:
    return f"{sum(passes for _, passes in assertion.passed)} of {len(assertion.passed)}"


def _now(assertion: GrowthAssertion) -> str:
    return growing.exponent(assertion.fit) if assertion.fit else ABSENT


def _saved(saved: SavedExponent) -> str:
    return f"{saved.b:.2f} [{saved.ci[0]:.2f}, {saved.ci[1]:.2f}]"


def _again(assertion: GrowthAssertion) -> str:
    return f"{assertion.name}: {assertion.found:,} of {assertion.places:,}"


_COLUMNS = (
    Column("function"),
    Column("metric"),
    Column("verdict"),
    Column("measured / annotated", right=True),
    Column("where"),
    Column("runs pass", right=True),
    Column("calls", right=True, minor=True),
    Column("visible from", right=True, minor=True),
)
_COLUMNS_OF_TRENDS = (
    Column("cluster"),
    Column("verdict"),
    Column("exponent"),
    Column("saved"),
    Column("over"),
    Column("growth"),
    Column("largest cost", right=True, minor=True),
    Column("lines", right=True, minor=True),
)


def _row(assertion: AnyAssertion) -> tuple[Cell, ...]:
    tone = _TONES.get(assertion.standing, Tone.PLAIN)
    verdict = Cell(assertion.standing.value, tone)
    if isinstance(assertion, GrowthAssertion):
        return (
            Cell(assertion.name, code=True),
            verdict,
            Cell(_now(assertion), tone),
            Cell(_saved(assertion.saved) if assertion.saved else "new"),
            Cell(assertion.fit.feature if assertion.fit else ABSENT),
            Cell(assertion.fit.says if assertion.fit else ABSENT),
            Cell(ABSENT if assertion.largest is None else growing.amount(assertion.largest)),
            Cell(f"{assertion.found or assertion.places:,}"),
        )
    return (
        Cell(printable(assertion.annotation.function), code=True),
        Cell(assertion.annotation.metric),
        verdict,
        Cell(_ratio(assertion.worst, assertion), tone),
        Cell(printable(assertion.stratum) or "all calls"),
        Cell(_passed(assertion)),
        Cell(f"{assertion.calls:,}"),
        Cell(f"×{assertion.visible:.2f}" if assertion.visible is not None else ABSENT),
    )


def _outside(assertion: Assertion, outside: Outside) -> str:
    annotated, seen = (" to ".join(units.count(end) for end in ends) for ends in (outside.annotated, outside.seen))
    return (
        f"{_name(assertion)}: {wording.percent(outside.share)} of calls not judged; "
        f"`{printable(outside.feature)}` is annotated from {annotated}, and was {seen}"
    )


def _assertion(assertion: Assertion) -> dict[str, Any]:
    outside, levels = assertion.outside, assertion.annotation.levels
    return {
        "function": assertion.annotation.function,
        "metric": assertion.annotation.metric,
        "verdict": assertion.standing.value,
        "reason": say(assertion.reason),
        "where": assertion.stratum,
        "annotated": wording.finite(assertion.annotated),
        "measured": wording.finite(measured(assertion)),
        "ratio": assertion.worst.value if assertion.worst else None,
        "ci": _interval(assertion.worst),
        "overall": {"ratio": assertion.overall.value, "ci": _interval(assertion.overall)} if assertion.overall else None,
        "p": assertion.p if assertion.q is not None else None,
        "q": assertion.q,
        "visible": wording.finite(assertion.visible),
        "runs": len(assertion.passed),
        "runs_annotated": levels.runs if levels else None,
        "calls": assertion.calls,
        "pass_rate": assertion.pass_rate,
        "distance": assertion.distance,
        "outliers": assertion.outliers,
        "trimmed": assertion.trimmed,
        "outside": outside
        and {"share": outside.share, "feature": outside.feature, "annotated": list(outside.annotated), "seen": list(outside.seen)},
    }


def _interval(ratio: Ratio | None) -> list[float] | None:
    return None if ratio is None else [ratio.low, ratio.high]


def _growth(assertion: GrowthAssertion) -> dict[str, Any]:
    place, fit, saved = assertion.place, assertion.fit, assertion.saved
    return {
        "cluster": assertion.name,
        "new": saved is None and assertion.standing is Standing.VIOLATED,
        "verdict": assertion.standing.value,
        "reason": say(assertion.reason),
        "feature": fit.feature if fit else saved.feature if saved else None,
        "saved": {"b": saved.b, "ci_b": list(saved.ci)} if saved else None,
        "measured": {"b": fit.b, "ci_b": list(fit.ci_b), "says": fit.says, "largest": assertion.largest} if fit else None,
        "limit": assertion.limit,
        "place": place and {"function": place.function, "file": place.file, "line": place.line, "text": place.text},
        "places": assertion.places,
        "found": assertion.found,
    }
