"""Functions without a probe, named by the callers that are slower through them: each of them once, whatever calls it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import findings as made
from perfdiff.analysis.causes.citation import DEPENDENCY
from perfdiff.analysis.causes.folded import named
from perfdiff.analysis.counts.memory import MemoryEvidence
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.findings import Cause, CountFinding, FunctionFinding, Ratio, Verdict
from perfdiff.records.schema import Change, FoldedFunction, HotSpot, Point, Side, Source
from perfdiff.report.sentences.catalogue import say


def caller(number: int, name: str, extra_ns: float) -> FunctionFinding:
    found = made.plain(number, name, Verdict.REGRESSION, Change.AFFECTED, ratio=None, reason="it holds hash")
    return replace(found, rank=number, extra_ns=extra_ns, extra_ci_ns=(0.9 * extra_ns, 1.1 * extra_ns), share=extra_ns / 400.0)


def test_a_folded_function_stands_once_before_all_callers_that_are_slower_through_it() -> None:
    scan, fill = caller(1, "scan", 300.0), caller(2, "fill", 100.0)
    hash_ = made.plain(9, "hash", Verdict.UNCHANGED, Change.CHANGED, ratio=None, reason="").info
    folded = FoldedFunction(hash_, hosts=(scan.info.id, fill.info.id), base_calls={0: 5.0}, head_calls={0: 5.0}, call_ns=2.0, overhead=0.5)
    found = named([scan, fill], (folded,), ())
    assert [(each.info.name, each.rank) for each in found] == [("hash", 1), ("scan", 2), ("fill", 3)]
    first = found[0]
    assert first.extra_ns == pytest.approx(400.0)
    assert first.extra_ci_ns == pytest.approx((360.0, 440.0))
    assert first.share == pytest.approx(1.0)
    assert "its caller `scan` is slower through it" in say(first.reason)
    assert [each.extra_ns for each in found[1:]] == [0.0, 0.0]


def test_who_makes_more_calls_is_guilty_before_the_function_that_is_called_more() -> None:
    parse = caller(1, "parse", 300.0)
    consume = made.plain(8, "consume", Verdict.UNCHANGED, Change.CHANGED, ratio=None, reason="").info
    decode = made.plain(9, "decode", Verdict.UNCHANGED, Change.CHANGED, ratio=None, reason="").info
    inner = FoldedFunction(decode, hosts=(1,), base_calls={0: 4000.0}, head_calls={0: 117_000.0}, call_ns=2.0, overhead=0.5)

    def first(*, base: float, head: float, of_consume: frozenset[int], of_host: frozenset[int]) -> str:
        outer = FoldedFunction(replace(consume, calls=of_consume), (1,), {0: base}, {0: head}, 2.0, 0.5)
        host = replace(parse, info=replace(parse.info, calls=of_host))
        return named([host], (outer, inner), ())[0].info.name

    assert first(base=16_000.0, head=116_000.0, of_consume=frozenset({9}), of_host=frozenset({8, 9})) == "consume"
    assert first(base=16_000.0, head=16_000.0, of_consume=frozenset({9}), of_host=frozenset({8})) == "consume"
    assert first(base=16_000.0, head=16_000.0, of_consume=frozenset({9}), of_host=frozenset({8, 9})) == "decode"
    assert first(base=16_000.0, head=116_000.0, of_consume=frozenset(), of_host=frozenset({8, 9})) == "decode"


def test_a_folded_function_is_told_with_its_own_lines_and_not_with_what_its_caller_depends_on() -> None:
    fill = made.plain(9, "fill", Verdict.UNCHANGED, Change.CHANGED, ratio=None, reason="").info
    source = Source("a.c", 3, "void fill(void)\n{\n\tone();\n}\n")
    changed = replace(fill, base=source, head=replace(source, text="void fill(void)\n{\n\tother();\n}\n"))
    causes = (
        Cause(DEPENDENCY, made.worded("its text is the same, but it calls fill, which changed")),
        Cause("more-work", made.worded("it executes more")),
    )
    host = replace(caller(1, "scan", 300.0), causes=causes, happened=made.worded("`scan` got slower"), tells_cause=True)
    told = named([host], (FoldedFunction(changed, (1,), {0: 5.0}, {0: 5.0}, 2.0, 0.5),), ())[0]
    assert say(told.headline) == (
        "`fill`, whose calls are too short to be timed alone, makes its caller slower: "
        "`scan` got slower; cause: it executes more (a.c, line 5: `other();`)"
    )
    assert [each.name for each in told.causes] == ["more-work"]


def test_a_caller_that_allocates_more_is_told_of_no_function_that_only_executes_more() -> None:
    """A folded function whose text is the same, and of which blocks alone are counted, is not why its caller allocates more."""
    scan = caller(1, "scan", 0.0)
    kind = made.plain(9, "kind", Verdict.UNCHANGED, Change.AFFECTED, ratio=None, reason="").info
    folded = FoldedFunction(kind, (1,), {0: 5.0}, {0: 6.0}, 2.0, 0.5)
    work = ExtraWork(9, "kind", (0,), np.array([10.0]), np.array([20.0]), {"blocks": (100.0, 140.0)}, repeats=True)
    assert [each.info.name for each in named([scan], (folded,), (work,))] == ["kind", "scan"]
    heavier = replace(scan, rests_on="alloc_bytes")
    assert [each.info.name for each in named([heavier], (folded,), (work,))] == ["scan"]
    rewritten = replace(folded, info=replace(kind, change=Change.CHANGED))
    assert [each.info.name for each in named([heavier], (rewritten,), ())] == ["kind", "scan"]


def waiting(number: int, name: str, lines: float) -> tuple[FoldedFunction, MemoryEvidence]:
    """Return a folded function affected by a type, with counts of lines that it fetches from other threads."""
    info = made.plain(number, name, Verdict.UNCHANGED, Change.AFFECTED, ratio=None, reason="").info
    point = Point(0, "prog", {"threads": 2.0}, "./prog 2")
    ratio = Ratio(lines, lines / 2, 2 * lines, 6, 6)
    counts = {
        counter: CountFinding(counter, point, 0.0, lines, ratio, False, True, False, 1000.0 * lines, math.nan)
        for counter in ("hitm", "hitm_false", "l2_misses")
    }
    spot = HotSpot(Side.HEAD, 0, 900, 900, 0, 2, ("`slots`",))
    return FoldedFunction(info, (1,), {0: 5.0}, {0: 5.0}, 2.0, 0.5), MemoryEvidence(info, counts, (spot,))


def test_who_fetches_lines_of_other_threads_is_told_with_these_before_all_else() -> None:
    """Misses of other threads' lines are counted as work of a folded function too; its caller depends on the same type."""
    (count, of_count), (read, of_read), (print_, _) = waiting(7, "count", 9.0), waiting(8, "read", 1.0), waiting(9, "print", 0.0)
    rewritten = replace(print_, info=replace(print_.info, change=Change.CHANGED))
    sharing = Cause("true-sharing", made.worded("it fetches lines"))
    host = replace(caller(1, "work", 300.0), causes=(sharing, Cause(DEPENDENCY, made.worded("it uses struct slot"))))
    work = ExtraWork(7, "count", (0,), np.array([10.0]), np.array([20.0]), {"l2_misses": (0.0, 9000.0)}, repeats=False)
    told = named([host], (count, read, rewritten), (work,), {7: of_count, 8: of_read})
    assert [each.info.name for each in told] == ["count", "work"]
    assert [cause.name for cause in told[0].causes] == ["false-sharing", "more-work", DEPENDENCY]
    assert say(told[0].causes[0].says).startswith("it fetches 9 lines a call, no lines before, at prog threads=2")
    assert "the hottest line holds `slots`" in say(told[0].causes[0].says)
    elsewhere = replace(host, causes=(Cause("more-work", made.worded("it executes more")),))
    assert named([elsewhere], (count, read, rewritten), (work,), {7: of_count, 8: of_read})[0].info.name == "print"
    of_others = named([host], (count,), (work,))[0]
    assert [cause.name for cause in of_others.causes] == ["true-sharing", "more-work", DEPENDENCY]


@pytest.mark.parametrize(("misses", "causes"), [(77.0, ["locality"]), (500_000.0, ["more-work", "locality"])])
def test_what_a_folded_function_counts_more_is_a_cause_only_if_it_may_be_a_material_part_of_the_cost(
    misses: float, causes: list[str]
) -> None:
    place = made.plain(9, "slot", Verdict.UNCHANGED, Change.CHANGED, ratio=None, reason="").info
    host = replace(caller(1, "total", 10e6), causes=(Cause("locality", made.worded("it misses more")),))
    work = ExtraWork(9, "slot", (0,), np.array([5.0 * misses]), np.array([60.0 * misses]), {"l2_misses": (0.0, misses)}, repeats=True)
    first = named([host], (FoldedFunction(place, (1,), {0: 5.0}, {0: 5.0}, 2.0, 0.5),), (work,))[0]
    assert (first.info.name, [each.name for each in first.causes]) == ("slot", causes)
