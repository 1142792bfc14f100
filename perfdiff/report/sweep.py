"""The outcome of `check --sweep`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.assertion import Assertion
from perfdiff.analysis.annotations.sweep import DelayStep, Sensitivity, Sweep
from perfdiff.analysis.series import CheckedAssertions, Standing
from perfdiff.report import check, wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.printable import printable
from perfdiff.report.sentences.catalogue import noted
from perfdiff.report.terminal import render_blocks

SCHEMA = "perfdiff.sweep/1"
_MOST_SENTENCES = 5


def text(sweep: Sweep, *, width: int = 100, colour: bool = False) -> str:
    """Return the answer in sentences, a table of the delays, and one of the functions."""
    return render_blocks(list(_blocks(sweep)), width=width, colour=colour)


def answer(sweep: Sweep) -> str:
    """Return the outcome of a sweep in one or two sentences."""
    first, last = sweep.steps[0], sweep.steps[-1]
    waits = len(sweep.sensitive)
    functions = wording.plural(len(sweep.sensitivities), "function")
    return (
        f"{_passing(first)} at {delay(first.delay_ms)} of {printable(sweep.service)}, {_passing(last)} at {delay(last.delay_ms)}; "
        f"{waits} of {functions} wait{'s' if waits == 1 else ''} for it."
    )


def delay(delay_ms: float) -> str:
    """Return a delay with its unit, such as `2 ms`."""
    return f"{delay_ms:g} ms"


def _passing(step: DelayStep) -> str:
    mean = _mean(step.checked)
    return "no assertion was judged" if mean is None else f"{wording.percent(mean)} of assertions pass"


def json_document(sweep: Sweep) -> dict[str, Any]:
    """Return what `check --sweep --format json` writes; what is absent is None."""
    return {
        "schema": SCHEMA,
        "service": sweep.service,
        "revision": {"rev": sweep.steps[0].checked.revision.rev, "commit": sweep.steps[0].checked.revision.commit},
        "steps": [_step(step) for step in sweep.steps],
        "sensitivities": [_sensitivity(sensitivity) for sensitivity in sweep.sensitivities],
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, sweep.notes)],
    }


def _step(step: DelayStep) -> dict[str, Any]:
    return {
        "delay_ms": step.delay_ms,
        "verdict": step.checked.verdict.value,
        "pass_rate": _mean(step.checked),
        "functions": [
            {"function": name, "pass_rate": rate}
            for name, rate in sorted(pass_rates(step.checked).items(), key=lambda item: (item[1], item[0]))
        ],
        "assertions": check.json_document(step.checked)["assertions"],
        "answers_a_run": dict(step.answers_a_run),
    }


def _mean(checked: CheckedAssertions[Assertion]) -> float | None:
    shares = [assertion.pass_rate for assertion in checked.judged if assertion.pass_rate is not None]
    return sum(shares) / len(shares) if shares else None


def pass_rates(checked: CheckedAssertions[Assertion]) -> Mapping[str, float]:
    """Return the share of runs that each function passes, the least of its assertions'."""
    least: dict[str, float] = {}
    for assertion in checked.judged:
        if assertion.pass_rate is not None:
            least[assertion.annotation.function] = min(assertion.pass_rate, least.get(assertion.annotation.function, 1.0))
    return least


def _sensitivity(sensitivity: Sensitivity) -> dict[str, Any]:
    return {
        "function": sensitivity.function,
        "sensitive": sensitivity.is_sensitive,
        "asks": sensitivity.asks,
        "answers_a_call": wording.finite(sensitivity.answers),
        "ci": [wording.finite(sensitivity.low), wording.finite(sensitivity.high)],
        "own_answers_a_call": wording.finite(sensitivity.own),
        "call_ns": wording.finite(sensitivity.call_ns),
        "points": [
            {"point": at.point, "answers_a_call": wording.finite(at.answers), "ci": [wording.finite(at.low), wording.finite(at.high)]}
            for at in sensitivity.points
        ],
    }


def _blocks(sweep: Sweep) -> Iterator[Block]:
    first = sweep.steps[0]
    tone = Tone.REGRESSION if first.delay_ms == 0 and first.checked.verdict is Standing.VIOLATED else Tone.STRONG
    yield Sentence(answer(sweep), tone)
    for sensitivity in sweep.sensitive[:_MOST_SENTENCES]:
        yield Sentence(_waits(sensitivity, sweep.service))
    yield _delays(sweep)
    yield _functions(sweep)
    if sweep.notes:
        yield Items("Notes", tuple(printable(f"{note.text} ({note.slug})") for note in map(noted, sweep.notes)))


def _waits(sensitivity: Sensitivity, service: str) -> str:
    itself = "" if sensitivity.asks else ", in other functions"
    ends = sorted(at.answers for at in sensitivity.points)
    spread = f", from {number(ends[0])} to {number(ends[-1])} by workload point" if len(ends) > 1 and ends[-1] - ends[0] >= 1 else ""
    return (
        f"`{printable(sensitivity.function)}` waits for {number(sensitivity.answers)} answers of {printable(service)} a call{itself} "
        f"({number(sensitivity.low)} to {number(sensitivity.high)}){spread}."
    )


def number(answers: float) -> str:
    """Return a number of answers with as many digits as say something."""
    return f"{max(answers, 0.0):.1f}" if answers < 100 else f"{answers:,.0f}"


def _delays(sweep: Sweep) -> Table:
    columns = (
        Column("delay", right=True),
        Column("assertions pass", right=True),
        Column("violated", right=True),
        Column("judged", right=True),
        Column("answers a run", right=True, minor=True),
    )
    return Table("", columns, tuple(_delay_row(step) for step in sweep.steps))


def _delay_row(step: DelayStep) -> tuple[Cell, ...]:
    mean = _mean(step.checked)
    answers = sorted(step.answers_a_run.values())
    ends = dict.fromkeys(f"{answer_count:,.0f}" for answer_count in (answers[:1] + answers[-1:]))
    return (
        Cell(delay(step.delay_ms)),
        Cell(wording.ABSENT if mean is None else wording.percent(mean)),
        Cell(str(len(step.checked.those(Standing.VIOLATED)))),
        Cell(str(len(step.checked.judged))),
        Cell(" to ".join(ends) or wording.ABSENT),
    )


def _functions(sweep: Sweep) -> Table:
    rates = [pass_rates(step.checked) for step in sweep.steps]
    columns = (
        Column("function"),
        *(Column(delay(step.delay_ms), right=True) for step in sweep.steps),
        Column("answers a call", right=True),
        Column("of these itself", right=True),
        Column("a call", right=True, minor=True),
    )
    by_function = {sensitivity.function: sensitivity for sensitivity in sweep.sensitivities}
    names = dict.fromkeys((*by_function, *(name for of_step in rates for name in of_step)))
    rows = [
        (
            Cell(printable(name), code=True),
            *(Cell(wording.percent(of_step[name]) if name in of_step else wording.ABSENT) for of_step in rates),
            *_answers(by_function.get(name)),
        )
        for name in names
    ]
    return Table("Runs that pass, by delay, and answers that calls wait for", columns, tuple(rows))


def _answers(sensitivity: Sensitivity | None) -> tuple[Cell, Cell, Cell]:
    if sensitivity is None:
        return Cell(wording.ABSENT), Cell(wording.ABSENT), Cell(wording.ABSENT)
    tone = Tone.STRONG if sensitivity.is_sensitive else Tone.PLAIN
    return (
        Cell(
            f"{number(sensitivity.answers)} ({number(sensitivity.low)} to {number(sensitivity.high)})"
            if sensitivity.is_sensitive
            else "none",
            tone,
        ),
        Cell(number(sensitivity.own) if sensitivity.asks else "none"),
        Cell(units.quantity(sensitivity.call_ns, "ns")),
    )
