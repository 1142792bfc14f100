"""The same work before the same time: what head does otherwise, and which good news that leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from findings import plain, worded
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import CountFinding, FunctionFinding, Ratio, Rung, Verdict
from perfdiff.analysis.verdicts.behaviour import behaviour_notes, behaviours, weighed
from perfdiff.analysis.verdicts.frequency import of_what_is_done_as_often
from perfdiff.analysis.verdicts.parts import parts_difference
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.witnessed import BehaviourDifferenceKind, PointBehaviour
from perfdiff.collect.execution.echoes import Echoes
from perfdiff.collect.execution.outputs import Stream, shape_of
from perfdiff.collect.execution.sketching import CLOSE_BYTES
from perfdiff.config import CompareConfig
from perfdiff.records.behaviour import Behaviour, Shape
from perfdiff.records.schema import Change, Phase, Point, Run, Side, Workload
from perfdiff.report.sentences.catalogue import noted, say

POINT = Point(0, "w", {}, "./w")
SUM, ERROR = b"sum 7\n", b"error: no input\n"
CONFIG = CompareConfig()


def did(
    output: bytes = SUM,
    errors: bytes = b"",
    *,
    code: int = 0,
    files: Mapping[str, bytes] | None = None,
    left: tuple[str, ...] = (),
    elsewhere: int = 0,
) -> Behaviour:
    written = sum(map(len, (output, errors, *(files or {}).values()))) + elsewhere
    shapes = {name: shape_of(text) for name, text in (files or {}).items()}
    return Behaviour(code, shape_of(output), shape_of(errors), shapes, written, left, 5e6 * len(left))


def witnessed(
    base: Sequence[Behaviour], head: Sequence[Behaviour], work: WorkDifference | None = None, *, checked: bool = False
) -> tuple[PointBehaviour, ...]:
    runs = [
        Run(0, Phase.PLAIN, 0, side, block, 1e6, 1e6, 1e6, None, None, "", behaviour=behaviour)
        for side, seen in zip(Side, (base, head), strict=True)
        for block, behaviour in enumerate(seen)
    ]
    experiment = SimpleNamespace(workloads=(Workload("w", "./w", checked=checked),), points=(POINT,), runs=runs)
    return behaviours(experiment, work, CONFIG)  # type: ignore[arg-type]


def kinds(base: Sequence[Behaviour], head: Sequence[Behaviour], work: WorkDifference | None = None) -> list[str]:
    [point] = witnessed(base, head, work)
    return [found.kind.value for found in point.differences]


def numbered(text: bytes, runs: int = 5) -> list[Behaviour]:
    """Return runs that print a number of their own each before a text."""
    return [did(b"pid %d\n" % (1000 + 7 * run) + text) for run in range(runs)]


@pytest.mark.parametrize(
    ("base", "head", "kinds_told"),
    [
        ([did()] * 5, [did()] * 5, []),
        ([did()] * 5, [did(code=1)] * 5, ["exit-code"]),
        ([did()] * 5, [did(errors=ERROR)] * 5, ["errors"]),
        ([did(errors=ERROR)] * 5, [did()] * 5, ["fewer-errors"]),
        ([did(errors=b"tool 1.2: 5 threads\n")] * 5, [did(errors=b"tool 1.3: 5 threads\n")] * 5, ["other-numbers"]),
        ([did()] * 5, [did(ERROR)] * 5, ["other-output"]),
        ([did()] * 5, [did(b"")] * 5, ["less-output"]),
        ([did(SUM * 100)] * 5, [did(SUM * 90)] * 5, ["less-output"]),
        ([did(SUM * 100)] * 5, [did(SUM * 99)] * 5, ["other-output"]),
        ([did(SUM)] * 5, [did(SUM * 3)] * 5, ["other-output"]),
        ([did(SUM)] * 5, [did(b"sum 8\n")] * 5, ["other-numbers"]),
        ([did(b"a 1\nb 2\n")] * 5, [did(b"b 2\na 1\n")] * 5, ["other-order"]),
        ([did(b"a 1\nb 2\n"), did(b"b 2\na 1\n")] * 3, [did(b"b 2\na 1\n")] * 5, []),  # whose order varies
        ([did(b"{\n  a\n}\n")] * 5, [did(b"{\na\n}\n")] * 5, ["other-order"]),
        ([did(elsewhere=1_000_000)] * 5, [did(elsewhere=900_000)] * 5, ["less-elsewhere"]),
        ([did(b"sum 7\nelapsed: 3\n")] * 5, [did(b"sum 7\nelapsed: 1\n")] * 5, []),
        (numbered(SUM), numbered(SUM), []),
        (numbered(SUM), numbered(ERROR), ["other-output"]),
        (numbered(SUM), numbered(b""), ["less-output"]),
        ([did()] * 5, [did(left=("worker",))] * 5, ["processes-left"]),
        ([did(left=("worker",))] * 5, [did(left=("worker",))] * 5, []),
        ([did(files={"out": SUM})] * 5, [did()] * 5, ["less-files"]),
        ([did(files={"out": SUM * 10})] * 5, [did(files={"out": SUM})] * 5, ["less-files"]),
        ([did(files={"out": SUM})] * 5, [did(files={"out": ERROR})] * 5, ["other-files"]),
        ([did()] * 5, [did(files={"out": SUM})] * 5, []),
        ([did(elsewhere=100_000)] * 5, [did()] * 5, ["less-elsewhere"]),
        ([did(elsewhere=1000)] * 5, [did()] * 5, []),
        ([did()], [did(b"sum 8\n")], []),  # one run a side says nothing of what varies
        ([did()], [did(ERROR)], ["other-output"]),
    ],
)
def test_what_head_does_otherwise_is_seen_beyond_what_varies(
    base: Sequence[Behaviour], head: Sequence[Behaviour], kinds_told: list[str]
) -> None:
    assert kinds(base, head) == kinds_told


@pytest.mark.parametrize(("code", "says"), [(255, "255"), (139, "139 (SIGSEGV)"), (-9, "-9 (SIGKILL)"), (193, "193"), (3, "3")])
def test_a_signal_is_named_where_an_exit_code_stands_for_one(code: int, says: str) -> None:
    [point] = witnessed([did()] * 5, [did(code=code)] * 5)
    assert say(point.differences[0].says) == f"exits {says} where base exits 0"


@pytest.mark.parametrize(("fails", "kinds_told"), [(1, []), (10, ["exit-code", "errors", "other-output"])])
def test_what_a_run_does_now_and_then_is_chance_and_what_most_do_is_not(fails: int, kinds_told: list[str]) -> None:
    base = numbered(SUM, 12)
    assert kinds(base, [did(b"", ERROR, code=1)] * fails + base[fails:]) == kinds_told


def test_lines_that_vary_are_compared_by_their_ranges() -> None:
    base, as_many, fewer = (
        [
            did(b"".join(b"%s\n" % (b"abcdefgh"[step % 8 : step % 8 + 1] * (1 + run + step)) for step in range(first + run)))
            for run in range(5)
        ]
        for first in (40, 42, 15)
    )
    assert kinds(base, as_many) == []
    assert kinds(base, fewer) == ["less-output"]


def test_long_outputs_are_compared_as_a_whole() -> None:
    long = SUM * CLOSE_BYTES
    assert kinds([did(long)] * 3, [did(long)] * 3) == []
    assert kinds([did(long)] * 3, [did(long[:-2] + b"8\n")] * 3) == ["other-output"]
    assert kinds([did(long)] * 3, [did(long[: len(long) // 2])] * 3) == ["less-output"]


@pytest.mark.parametrize(("part", "kinds_told"), [(1.0, []), (0.97, []), (0.9, ["other-output"]), (0.4, ["less-output"])])
def test_long_lines_that_vary_are_other_ones_where_they_have_fewer_bytes(part: float, kinds_told: list[str]) -> None:
    def texts(letters: str, length: int) -> list[Behaviour]:
        return [did(letter.encode() * length + b"\n") for letter in letters]

    assert kinds(texts("abc", 2 * CLOSE_BYTES), texts("def", int(part * 2 * CLOSE_BYTES))) == kinds_told


@pytest.mark.parametrize(
    ("texts", "part", "kinds_told"),
    [
        ((b"",), 0.4, ["less-work"]),
        ((b"",), 0.55, ["less-work"]),
        ((b"",), 0.8, []),
        ((SUM,), 0.02, []),
        ((SUM, b"sum 9\n"), 0.02, []),
        ((b"done\n", b"done\n"), 0.4, ["less-work"]),
        ((b"done\n", b"done\ndone\n"), 0.4, []),
        ((b"a\nb\n" * 6,) * 2, 0.4, []),
    ],
    ids=[
        "silent",
        "half and a start",
        "most of it",
        "one point",
        "hangs on the input",
        "always the same",
        "more lines",
        "more than a message",
    ],
)
@pytest.mark.parametrize("how", ["counts", "time"])
def test_a_part_of_the_work_is_suspicious_where_nothing_that_hangs_on_the_inputs_shows_that_it_was_done(
    texts: Sequence[bytes], part: float, kinds_told: list[str], how: str
) -> None:
    points = tuple(Point(number, "w", {"n": number}, "./w") for number in range(len(texts)))
    runs = [
        replace(run, point=point.id, cpu_ns=1e8 * (part if how == "time" and run.side is Side.HEAD else 1.0))
        for point, text in zip(points, texts, strict=True)
        for run in runs_of([did(b"pid %d\n" % (1000 + 7 * each) + text if text else b"") for each in range(5)])
    ]
    work = WorkDifference(0.0, 1 - part, 0.0, 0.0, repeats=True, is_bounded=True, parts=dict.fromkeys(range(len(texts)), part))
    experiment = SimpleNamespace(workloads=(), points=points, runs=runs)
    seen = behaviours(experiment, work if how == "counts" else None, CONFIG)  # type: ignore[arg-type]
    assert [[found.kind.value for found in point.differences] for point in seen] == [kinds_told] * len(texts)


@pytest.mark.parametrize(
    ("text", "sizes", "kinds_told"),
    [
        ("indexed {n} rows", (1000, 200_000), ["less-work"]),
        ("indexed {n:,} rows ({n:x} in hex, {n}.0)", (1000, 200_000), ["less-work"]),
        ("indexed {n} rows in 0.{n} s", (1000, 200_000), ["less-work"]),
        ("indexed {n} rows, took 0.00{n}", (1000, 200_000), ["less-work"]),
        ("indexed {n} rows, sum {sum}", (1000, 200_000), []),
        ("indexed {n} rows, sum {sum}, time 0.1234567", (1000, 200_000), []),
        ("indexed {n} rows", (200_000,), ["less-work"]),
        ("indexed {n} rows, sum {sum}", (200_000,), []),
        ("indexed all rows", (200_000,), []),
    ],
)
@pytest.mark.parametrize("place", ["output", "errors", "file"])
def test_what_repeats_a_parameter_shows_no_work(text: str, sizes: Sequence[int], kinds_told: list[str], place: str) -> None:
    points = tuple(Point(number, "w", {"n": n}, f"./w {n}") for number, n in enumerate(sizes))
    runs = []
    for point, n in zip(points, sizes, strict=True):
        stream = Stream(None, Echoes.of(point.parameters.values(), point.command))
        stream.read(text.format(n=n, sum=n * 7 + 3).replace(f"({n:x}", f"(0x{n:x}").encode())
        shape, empty = stream.shape(), shape_of(b"")
        places = {name: shape if name == place else empty for name in ("output", "errors")}
        shown = Behaviour(0, places["output"], places["errors"], {"out": shape} if place == "file" else {}, 0)
        runs += [replace(run, point=point.id) for run in runs_of([shown] * 5)]
    work = WorkDifference(0.0, 0.9, 0.0, 0.0, repeats=True, is_bounded=True, parts=dict.fromkeys(range(len(sizes)), 0.1))
    experiment = SimpleNamespace(workloads=(), points=points, runs=runs)
    seen = behaviours(experiment, work, CONFIG)  # type: ignore[arg-type]
    assert [[found.kind.value for found in point.differences] for point in seen] == [kinds_told] * len(sizes)


def test_a_number_that_a_side_always_prints_is_seen_beside_those_that_vary() -> None:
    assert kinds(numbered(SUM), numbered(b"sum 8\n")) == ["other-numbers"]
    assert kinds(numbered(b"tries 2\n"), [*numbered(b"tries 2\n", 4), did(b"pid 7\ntries 3\n")]) == []


def timed(results: Sequence[int], line: str = "item {item} result {result} time {time:.6f}", runs: int = 5) -> list[Behaviour]:
    """Return runs that print many results, each with a time of its own on its line."""
    return [
        did(
            "".join(
                f"{line}\n".format(item=item, result=result, time=1e-4 * (run + 1) * (item + 1)) for item, result in enumerate(results)
            ).encode()
        )
        for run in range(runs)
    ]


@pytest.mark.parametrize(
    "line", ["item {item} result {result} time {time:.6f}", "{item} {result} {time:.6f}", "{time:.6f}: {item} {result} took {time:f}"]
)
@pytest.mark.parametrize("count", [60, 20_000])
def test_results_are_compared_on_lines_that_hold_a_time(line: str, count: int) -> None:
    results = [*range(10_000, 10_000 + count)]
    assert kinds(timed(results, line), timed(results, line)) == []
    assert kinds(timed(results, line), timed([*results[:22], *[99_999] * (count - 22)], line)) == ["other-numbers"]


def test_one_result_of_many_is_seen_beside_times() -> None:
    assert kinds(timed([7] * 200), timed([7] * 150 + [8] + [7] * 49)) == ["other-numbers"]


def stamped(words: Sequence[str], runs: int = 5) -> list[Behaviour]:
    return [did(f"begun at {chr(97 + run)}\n{''.join(f'{word}{chr(10)}' for word in words)}".encode()) for run in range(runs)]


@pytest.mark.parametrize("count", [60, 50_000])
def test_other_texts_are_seen_beside_a_line_that_varies(count: int) -> None:
    digests = [hashlib.blake2b(b"%d" % number, digest_size=8).hexdigest() for number in range(2 * count)]
    words = ["".join(letter for letter in digest if letter.isalpha()) for digest in digests]
    assert kinds(stamped(words[:count]), stamped(words[:count])) == []
    assert kinds(stamped(words[:count]), stamped(words[count:])) == ["other-output"]
    assert kinds(stamped(digests[:count]), stamped([*digests[: count // 2], *digests[count + count // 2 :]])) == ["other-numbers"]


def test_lines_that_change_places_beside_one_that_varies_are_in_another_order() -> None:
    assert kinds(stamped(["b", "c", "d"]), stamped(["d", "c", "b"])) == ["other-order"]


@pytest.mark.parametrize(("varying", "kind"), [(12, None), (4, BehaviourDifferenceKind.OTHER_NUMBERS)])
def test_where_most_numbers_of_a_column_vary_the_others_may_be_rough_times(varying: int, kind: BehaviourDifferenceKind | None) -> None:
    def rough(time: int) -> list[Shape]:
        times = [[time + (run % 2 if test < varying else 0) for test in range(20)] for run in range(5)]
        return [shape_of("".join(f"test {test} {took}\n" for test, took in enumerate(of_run)).encode()) for of_run in times]

    assert parts_difference(rough(3), rough(5), ("numbers",)) is kind


def test_what_differs_by_chance_is_beside_more_that_does_not_differ() -> None:
    def tossed(run: int) -> bytes:
        return b"".join(b"%s\n" % (b"heads" if run >> toss & 1 else b"tails") for toss in range(4))

    assert kinds([did(tossed(0)), did(tossed(1))], [did(tossed(6)), did(tossed(7))]) == []  # two of three differ, of two runs a side
    assert kinds([did(tossed(run % 2)) for run in range(6)], [did(tossed(6 + run % 2)) for run in range(6)]) == ["other-output"]


def test_recordings_without_sketches_are_compared_as_before() -> None:
    base, head = (
        [replace(run, output=replace(run.output, sketch=None)) for run in side] for side in (timed([1] * 60), timed([1] * 22 + [0] * 38))
    )
    assert kinds(base, head) == []


def runs_of(behaviours_of_both: Sequence[Behaviour]) -> list[Run]:
    """Return runs of both sides that do the same."""
    return [
        Run(0, Phase.PLAIN, 0, side, block, 1e8, 1e8, 1e6, None, None, "", behaviour=behaviour)
        for side in Side
        for block, behaviour in enumerate(behaviours_of_both)
    ]


def given(*texts: bytes | None) -> list[Behaviour]:
    """Return runs for which a setup had left these texts, nothing for None."""
    return [replace(did(), inputs={} if text is None else {"in.txt": shape_of(text)}) for text in texts]


@pytest.mark.parametrize(
    ("base", "head", "kinds_told"),
    [
        ([b"3 1 2\n"] * 5, [b"3 1 2\n"] * 5, []),
        ([b"3 1 2\n"] * 5, [b"1 2 3\n"] * 5, ["other-inputs"]),
        ([b"3 1 2\n"] * 5, [None] * 5, ["other-inputs"]),
        ([b"7\n" * CLOSE_BYTES] * 2, [b"8\n" * CLOSE_BYTES] * 2, ["other-inputs"]),
        ([b"made at 12:30:59\n"] * 5, [b"made at 13:01:00\n"] * 5, []),
        ([b"3 1 2\n", b"3 2 1\n"], [b"1 2 3\n"] * 2, []),  # which two builds of base made
    ],
)
def test_inputs_that_setups_make_are_compared(base: list[bytes | None], head: list[bytes | None], kinds_told: list[str]) -> None:
    assert kinds(given(*base), given(*head)) == kinds_told


def test_inputs_at_which_nobody_looked_are_not_compared() -> None:
    assert kinds(given(b"3 1 2\n") * 5, [did()] * 5) == []


def test_good_news_needs_the_same_inputs_unless_others_are_meant() -> None:
    seen = witnessed(given(b"3 1 2\n") * 5, given(b"1 2 3\n") * 5)
    says = "works on other inputs, which its setup makes (`in.txt`)"
    for good in (IMPROVEMENT, UNCHANGED):
        assert say(weighed(good, seen, CONFIG).sentence).startswith(f"Inconclusive: head may do less work: it {says}")
        meant = weighed(good, seen, replace(CONFIG, outputs="differ"))
        assert (meant.verdict, say(meant.sentence)) == (good.verdict, f"{say(good.sentence)}; head {says}")
    slower = weighed(REGRESSION, seen, CONFIG)
    assert (slower.verdict, say(slower.sentence)) == (Verdict.REGRESSION, f"{say(REGRESSION.sentence)}; head {says}")


def test_inputs_of_other_sizes_show_no_work() -> None:
    points = tuple(Point(number, "w", {"n": number}, "./w") for number in range(2))
    runs = [replace(run, point=point.id) for point in points for run in runs_of(given(b"7\n" * (1 + point.id)) * 5)]
    runs = [replace(run, behaviour=replace(run.behaviour, output=shape_of(b"done\n"))) for run in runs if run.behaviour]
    work = WorkDifference(0.0, 0.9, 0.0, 0.0, repeats=True, is_bounded=True, parts={0: 0.1, 1: 0.1})
    seen = behaviours(SimpleNamespace(workloads=(), points=points, runs=runs), work, CONFIG)  # type: ignore[arg-type]
    assert [[found.kind.value for found in point.differences] for point in seen] == [["less-work"]] * 2


IMPROVEMENT = Conclusion(Verdict.IMPROVEMENT, worded("Improvement: `run` takes half"), Rung.RUNS, 0.9)
UNCHANGED = Conclusion(Verdict.UNCHANGED, worded("No regression: slow-downs are excluded"), Rung.RUNS, 1.04)
REGRESSION = Conclusion(Verdict.REGRESSION, worded("Regression: `run` takes twice"), Rung.RUNS)


@pytest.mark.parametrize(
    ("head", "conclusion", "verdict"),
    [
        (did(), IMPROVEMENT, Verdict.IMPROVEMENT),
        (did(code=1), IMPROVEMENT, Verdict.INCONCLUSIVE),
        (did(code=1), UNCHANGED, Verdict.INCONCLUSIVE),
        (did(code=1), REGRESSION, Verdict.REGRESSION),
        (did(errors=ERROR), UNCHANGED, Verdict.INCONCLUSIVE),
        (did(b""), UNCHANGED, Verdict.INCONCLUSIVE),
        (did(left=("worker",)), UNCHANGED, Verdict.INCONCLUSIVE),
        (did(ERROR), IMPROVEMENT, Verdict.INCONCLUSIVE),
        (did(ERROR), UNCHANGED, Verdict.UNCHANGED),
        (did(b"sum 8\n"), IMPROVEMENT, Verdict.INCONCLUSIVE),
        (did(b"sum 8\n"), UNCHANGED, Verdict.UNCHANGED),
    ],
)
def test_good_news_needs_the_same_work_and_every_difference_is_in_the_first_sentence(
    head: Behaviour, conclusion: Conclusion, verdict: Verdict
) -> None:
    seen = witnessed([did()] * 5, [head] * 5)
    found = weighed(conclusion, seen, CONFIG)
    assert found.verdict is verdict
    says = [say(difference.says) for difference in seen[0].differences]
    assert all(text in say(found.sentence) for text in says)
    if verdict is Verdict.INCONCLUSIVE:
        assert say(found.sentence).startswith("Inconclusive: head may do less work: it ")
        assert found.excluded is None


def called(base: float, head: float, dearer: float, change: Change = Change.CHANGED) -> FunctionFinding:
    """Return a finding on a function that is called so often, and each of whose calls executes so many times as many blocks."""
    ratio = Ratio(dearer, dearer, dearer, 2, 2)
    count = CountFinding("blocks", POINT, 1e3, 1e3 * dearer, ratio, exact=True, grew=dearer > 1, shrank=dearer < 1, extra=0.0, rate=1.0)
    function = plain(1, "item", Verdict.UNCHANGED, change, ratio=None, reason="")
    return replace(function, calls_base=base, calls_head=head, counts={"blocks": count})


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (called(60, 25, 1.8), Verdict.INCONCLUSIVE),
        (called(60, 60, 1.8), Verdict.IMPROVEMENT),
        (called(60, 25, 1.02), Verdict.IMPROVEMENT),
        (called(60, 25, 0.5), Verdict.IMPROVEMENT),
        (called(60, 50, 1.8), Verdict.IMPROVEMENT),
        (called(60, 25, 1.8, Change.UNCHANGED), Verdict.IMPROVEMENT),
    ],
    ids=["fewer and dearer", "as many", "hardly dearer", "fewer and cheaper", "more in all", "not changed"],
)
def test_fewer_calls_that_each_execute_more_are_no_improvement_unless_that_is_meant(function: FunctionFinding, verdict: Verdict) -> None:
    seen = witnessed([did()] * 5, [did()] * 5)
    found = of_what_is_done_as_often(IMPROVEMENT, (function,), seen, CONFIG)
    assert found.verdict is verdict
    if verdict is Verdict.INCONCLUSIVE:
        assert "it calls `item`, which changed, 25 times, 60 before, each at ×1.8 the cost" in say(found.sentence)
    for config, checked in ((replace(CONFIG, outputs="differ"), False), (CONFIG, True)):
        meant = [replace(point, checked=checked) for point in seen]
        assert of_what_is_done_as_often(IMPROVEMENT, (function,), meant, config).verdict is Verdict.IMPROVEMENT


def of_test(change: Change) -> FunctionFinding:
    function = called(3, 3, 1.0, change)
    return replace(function, info=replace(function.info, name="test_item", file="tests/test_item.py"))


@pytest.mark.parametrize(
    ("changed", "takes", "verdict"),
    [
        (Change.CHANGED, 1.0, Verdict.INCONCLUSIVE),
        (Change.CHANGED, 0.5, Verdict.IMPROVEMENT),
        (Change.UNCHANGED, 1.0, Verdict.IMPROVEMENT),
    ],
    ids=["a test that asks for less", "less at equal inputs", "the same test"],
)
def test_tests_that_differ_show_no_improvement_of_what_takes_as_long(changed: Change, takes: float, verdict: Verdict) -> None:
    seen = witnessed([did()] * 5, [did()] * 5)
    item = plain(2, "item", Verdict.UNCHANGED, Change.CHANGED, ratio=Ratio(takes, takes - 0.1, takes + 0.1, 9, 9), reason="")
    item = replace(item, calls_base=60, calls_head=60)
    found = of_what_is_done_as_often(IMPROVEMENT, (item, of_test(changed)), seen, CONFIG)
    assert found.verdict is verdict
    if verdict is Verdict.INCONCLUSIVE:
        assert "head may be asked for less: `test_item`, which runs call, differs" in say(found.sentence)
    assert of_what_is_done_as_often(IMPROVEMENT, (of_test(changed),), seen, CONFIG).verdict is Verdict.IMPROVEMENT


def test_lines_in_another_order_are_the_same_for_who_says_so() -> None:
    seen = witnessed([did(b"a 1\nb 2\n", files={"out": b"c\nd\n"})] * 5, [did(b"b 2\na 1\n", files={"out": b"d\nc\n"})] * 5)
    assert weighed(IMPROVEMENT, seen, CONFIG).verdict is Verdict.INCONCLUSIVE
    assert weighed(IMPROVEMENT, seen, replace(CONFIG, outputs="unordered")).verdict is Verdict.IMPROVEMENT
    other = witnessed([did(b"a 1\nb 2\n")] * 5, [did(b"b 2\na 3\n")] * 5)
    assert weighed(IMPROVEMENT, other, replace(CONFIG, outputs="unordered")).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("meant", ["outputs", "check"])
def test_who_says_that_it_is_meant_is_believed_but_for_work_that_outlives_the_run(meant: str) -> None:
    config = replace(CONFIG, outputs="differ" if meant == "outputs" else "same")
    seen = witnessed([did()] * 5, [did(ERROR, code=1)] * 5, checked=meant == "check")
    found = weighed(IMPROVEMENT, seen, config)
    assert found.verdict is Verdict.IMPROVEMENT
    assert say(found.sentence).startswith("Improvement: `run` takes half; head exits 1 where base exits 0")
    left = witnessed([did()] * 5, [did(left=("worker",))] * 5, checked=meant == "check")
    assert weighed(IMPROVEMENT, left, config).verdict is Verdict.INCONCLUSIVE


def test_signals_are_named_and_processes_that_runs_left_are_told() -> None:
    seen = witnessed([did()] * 5, [did(code=139, left=("worker",))] * 5)
    notes = [*map(noted, behaviour_notes(seen))]
    assert [note.slug for note in notes] == ["outputs-differ", "processes-left"]
    assert "at w head exits 139 (SIGSEGV) where base exits 0, and leaves processes (`worker`)" in notes[0].text
    assert "runs of w on head left processes (worker) that were ended; their CPU time until then, 5 ms at most, counts" in notes[1].text


def test_the_gravest_kind_of_difference_comes_first() -> None:
    assert [kind.suggests_less_work for kind in BehaviourDifferenceKind] == sorted(
        (kind.suggests_less_work for kind in BehaviourDifferenceKind), reverse=True
    )
