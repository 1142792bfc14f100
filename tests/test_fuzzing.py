"""The search for inputs: families, what seeds suggest, what is kept, and how it ends, over programs that are simulated."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import findings
from perfdiff.analysis.findings import EndToEnd, PointStanding, Verdict
from perfdiff.cli import consequences
from perfdiff.config import WorkloadConfig
from perfdiff.fuzzing import growth, kept, proposals, reduction
from perfdiff.fuzzing.families import InputFamily, Segment, plain
from perfdiff.fuzzing.findings import SearchFindings, SlowInput
from perfdiff.fuzzing.mutations import Mutator
from perfdiff.fuzzing.search import InputSearch, SearchLimits
from perfdiff.fuzzing.trials import CorpusEntry, MishapKind, PairedRun, PlaceComparison
from perfdiff.measuring import seeds
from perfdiff.models.annotation import CostClass
from perfdiff.outcome import Outcome
from perfdiff.records.places import Place
from perfdiff.records.schema import Point, Side

PLACES = (Place("read", "a.c", 1, "for (;;)"), Place("close", "a.c", 9, "while (up)"))
SEEDS = [plain("w", b"Some [link](url) here.\n- one\n- two\n", {}), plain("w", b"plain words, only\n", {})]

Program = Callable[[bytes, Mapping[str, float | str]], tuple[int, int]]


@dataclass
class Simulated:
    """Programs whose lines run as often as a function of the input says, on each side, at a CPU time by line."""

    base: Program
    head: Program
    ns_a_line: float = 1.0
    extra_ns: Callable[[bytes], float] = lambda _: 0.0
    hangs_from: float = float("inf")
    crashes: Callable[[bytes], bool] = lambda _: False
    inputs: list[bytes] = field(default_factory=list)
    comparison: PlaceComparison = field(
        default_factory=lambda: PlaceComparison(PLACES, np.array([0, -1]), {side: np.ones(2, dtype=bool) for side in Side})
    )

    def trial(self, family: InputFamily, times: int, _limit_s: float) -> PairedRun:
        """Return what both say of an input."""
        content = family.content(times)
        self.inputs.append(content)
        ran = {Side.BASE: self.base(content, family.parameters(times)), Side.HEAD: self.head(content, family.parameters(times))}
        failures = {side: MishapKind.HANG for side, counts in ran.items() if sum(counts) > self.hangs_from}
        if self.crashes(content):
            failures[Side.HEAD] = MishapKind.CRASH
        cpu_ns = {side: 1e6 + self.ns_a_line * sum(counts) for side, counts in ran.items()}
        cpu_ns[Side.HEAD] += self.extra_ns(content)
        counted = {side: np.array(counts, dtype=np.int64) for side, counts in ran.items()}
        return PairedRun(counted, cpu_ns, dict.fromkeys(Side, 0), failures)


def once(content: bytes, _: Mapping[str, float | str]) -> tuple[int, int]:
    return len(content) + 10, 0


def by_depth(content: bytes, _: Mapping[str, float | str]) -> tuple[int, int]:
    """Walk up to the outermost bracket for each that closes."""
    steps = depth = 0
    for letter in content:
        depth += letter == ord("[")
        if letter == ord("]") and depth:
            steps += depth
            depth -= 1
    return len(content) + 10, steps


def worst(oracle: Simulated, *, inputs: int = 400, size: int = 4096, words: tuple[bytes, ...] = ()) -> list[CorpusEntry]:
    return searched(oracle, inputs=inputs, size=size, words=words)[0]


def searched(
    oracle: Simulated,
    *,
    inputs: int = 400,
    size: int = 4096,
    words: tuple[bytes, ...] = (),
    attacks: tuple[tuple[Segment, ...], ...] = (),
    seed: int = 1,
) -> tuple[list[CorpusEntry], InputSearch]:
    search = InputSearch(oracle, SearchLimits(size, 1e9, inputs, seed), words, attacks, lambda _: None, 1.05)
    return search.worst_inputs(SEEDS), search


def test_a_family_is_the_same_input_in_any_size() -> None:
    family = InputFamily("w", (Segment(b"<"), Segment(b"a=\n", repeats=True, number_at=2), Segment(b">")))
    assert family.content(3) == b"<a=10\na=11\na=12\n>"
    assert len(family.content(family.times_within(1000))) <= 1000
    falling = InputFamily("w", (Segment(b",", repeats=True, number_at=0, falling=True),))
    assert falling.content(3) == b"12,11,10,"
    lines = InputFamily("w", (Segment(b"\n", repeats=True, number_at=0),)).content(1234).split()
    assert (sorted(lines), len(set(map(len, lines)))) == (lines, 1), "texts are in the order of their numbers"
    dial = InputFamily("w", dial="n", most=40)
    assert (dial.times_within(7), dial.parameters(9), dial.size(9)) == (40, {"n": 9}, 9)


def test_a_seed_suggests_what_makes_programs_slow() -> None:
    contents = {family.content(3) for family in proposals.proposals(SEEDS[0], (b"strict",))}
    assert b"[[[]]]" in {content.replace(SEEDS[0].content(1), b"") for content in contents}  # nested
    assert b"- one\n- one\n- one\n" in contents  # a line again and again
    assert any(b"Some10 [link](url) here.\nSome11" in content for content in contents)  # no two alike
    assert b"- one\n- two\n- one\n- two\n- one\n- two\n" in contents  # in turns
    assert any(b"(url)(url)(url)" in content for content in contents)  # a stretch of tokens
    assert any(b"strict here.\n" not in content and b"strict" in content for content in contents)


def test_marks_are_what_patterns_are_made_of() -> None:
    assert set(proposals.marks_of(["_RE = '<a(b)=;'", "x = 1 + 2"])) == {b"<", b"(", b")", b"=", b";", b")=", b"=;"}


def test_letters_beyond_ascii_are_suggested() -> None:
    contents = [family.content(2).decode() for family in proposals.proposals(SEEDS[0], ())]
    assert any("Sómé [línk](úrl)" in content for content in contents)
    assert any("óné" in content and "two" in content for content in contents)


def test_words_are_what_stands_in_quotes_in_the_program() -> None:
    assert proposals.words_of(["if (!strcmp(s, \"strict\\n\")) c = '[';", 'puts("strict\\n")', '""']) == (b"strict\n", b"[")


def test_brackets_that_are_walked_up_are_found_small_and_named() -> None:
    (entry, *others), search = searched(Simulated(once, by_depth))
    assert not others
    assert entry.ratio > 50
    assert {segment.text for segment in entry.family.segments if segment.text} == {b"[", b"]"}
    assert search.corpus.reached == 1.0


def test_the_same_seed_tries_the_same_inputs() -> None:
    first, again, other = Simulated(once, once), Simulated(once, once), Simulated(once, once)
    for oracle, seed in ((first, 1), (again, 1), (other, 2)):
        searched(oracle, inputs=1500, seed=seed)
    assert first.inputs == again.inputs
    assert first.inputs != other.inputs


def test_nothing_is_found_where_both_sides_do_the_same() -> None:
    assert worst(Simulated(once, once)) == []


def test_what_one_word_switches_on_is_reached_by_steps() -> None:
    """Head walks all lines again for each, in inputs that begin a line with a word of the program's sources."""

    def strict(content: bytes, _: Mapping[str, float | str]) -> tuple[int, int]:
        lines = content.count(b"\n")
        return len(content) + 10, lines * lines if b"- strict" in content else 0

    assert worst(Simulated(once, strict), words=(b"strict",), inputs=1000)[0].ratio > 20
    assert worst(Simulated(once, strict), inputs=1000) == []


def test_what_earlier_searches_kept_is_tried_first_in_the_largest_size(tmp_path: Path) -> None:
    family = InputFamily(
        "w", (Segment(b"\xff["), Segment(b"[x", repeats=True, number_at=1), Segment(b"]", repeats=True)), {"a": 1, "b": "c"}
    )
    dial = InputFamily("w", dial="n", most=40)
    for found in ([family], [dial, family]):
        kept.add(tmp_path / "new", found)
    assert kept.families(tmp_path / "new") == (family, dial)
    assert kept.families(tmp_path) == ()
    oracle = Simulated(once, by_depth)
    search = InputSearch(oracle, SearchLimits(4096, 1e9, 5, 1), (), (), lambda _: None, 1.05)
    assert search.worst_inputs(SEEDS, [family])[0].factor > 30
    assert family.content(family.times_within(4096)) in oracle.inputs[:5]


@pytest.mark.parametrize("text", ["[]", '{"a": 1}', '{"a": {"workload": "w"}}', "{", "\xff"])
def test_a_damaged_list_of_kept_inputs_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / kept.INDEX).write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"Expecting|no list of inputs|codec"):
        kept.families(tmp_path)


def test_work_that_no_line_shows_is_found_by_time_in_larger_inputs() -> None:
    oracle = Simulated(once, once, extra_ns=lambda content: 20.0 * content.count(b"- ") ** 2)
    (entry,) = worst(oracle, size=65536)
    assert entry.ratio == pytest.approx(1.0)
    assert entry.slowdown > 2


def test_a_single_slow_run_is_no_finding() -> None:
    hiccups = iter([1e9, *[0.0] * 100_000])
    assert worst(Simulated(once, once, extra_ns=lambda _: next(hiccups))) == []


def test_an_input_that_is_slow_by_time_is_made_smaller_by_several_runs() -> None:
    """Each other run takes long by chance, and only what has both words does so always."""
    calls = itertools.count()

    def extra_ns(content: bytes) -> float:
        is_slow = b"link" in content and content.count(b"- one") > 50
        return 1e9 if is_slow or (content.count(b"- ") > 50 and next(calls) % 2) else 0.0

    oracle = Simulated(once, once, extra_ns=extra_ns)
    search = InputSearch(oracle, SearchLimits(4096, 1e9, 400), (), (), lambda _: None, 1.05)
    family = InputFamily("w", (Segment(b"a [link] b"), Segment(b"- one c\n", repeats=True)))
    (entry,) = search.worst_inputs(SEEDS, [family])
    content = entry.family.content(entry.times)
    assert (b"link" in content, content.count(b"- one") > 50) == (True, True)


@pytest.mark.parametrize(
    ("ratio", "slowdown", "is_by_lines"), [(75.0, 90.0, True), (1.1, 4.0, False), (1.02, 1.0, False), (1.3, 1.0, True)]
)
def test_time_tells_of_an_input_where_lines_show_little_of_it(ratio: float, slowdown: float, *, is_by_lines: bool) -> None:
    trial = Simulated(once, by_depth).trial(SEEDS[0], 1, 1.0)
    assert CorpusEntry(SEEDS[0], 1, trial, ratio, slowdown).is_told_by_lines(1.05) is is_by_lines


def test_an_input_that_hangs_is_tried_smaller() -> None:
    (entry,) = worst(Simulated(once, by_depth, hangs_from=100_000))
    assert 20_000 < entry.trial.counts[Side.HEAD].sum() <= 100_000


def test_what_crashes_or_hangs_in_any_size_is_told_and_no_finding() -> None:
    crashing, search = searched(Simulated(once, once, crashes=lambda content: b"[[" in content))
    assert crashing == []
    assert [dict(mishap.failures) for mishap in search.mishaps] == [{Side.HEAD: MishapKind.CRASH}]
    hanging, search = searched(Simulated(once, once, hangs_from=50))
    assert hanging == []
    assert [dict(mishap.failures) for mishap in search.mishaps] == [dict.fromkeys(Side, MishapKind.HANG)]


def test_a_dial_is_turned_up() -> None:
    def squared(_: bytes, values: Mapping[str, float | str]) -> tuple[int, int]:
        return int(values["n"]), int(values["n"]) ** 2

    def linear(_: bytes, values: Mapping[str, float | str]) -> tuple[int, int]:
        return int(values["n"]), 0

    oracle = Simulated(linear, squared)
    search = InputSearch(oracle, SearchLimits(4096, 1e9, 50), (), (), lambda _: None, 1.05)
    (entry,) = search.worst_inputs([InputFamily("w", dial="n", most=400)])
    assert (entry.times, entry.ratio > 100) == (400, True)


def test_a_reduced_input_has_nothing_to_spare() -> None:
    family = InputFamily("w", (Segment(b"some [words] here "), Segment(b"a, b; ", repeats=True), Segment(b"end")))
    small = reduction.reduced(family, lambda smaller: b"[" in smaller.content(5) and smaller.content(5).count(b";") == 5, 100)
    assert small.content(2) == b"[;;"


def test_what_repeats_is_one_letter_where_that_shows_as_much() -> None:
    def by_letters(content: bytes, _: Mapping[str, float | str]) -> tuple[int, int]:
        longest = max((len(run) for run in content.split() if set(run) <= set(b"abcdefghijklmnopqrstuvwxyz")), default=0)
        return len(content) + 10, longest * longest

    (entry,) = worst(Simulated(once, by_letters))
    (repeated,) = (segment.text for segment in entry.family.segments if segment.repeats)
    assert (len(repeated), entry.times > 1000) == (1, True)


@pytest.mark.parametrize(
    ("times", "extra", "factor"),
    [
        (range(20, 26), lambda n: 3.0 * 2.0**n, 2.0),
        (range(20, 26), lambda n: n**3.0, None),
        (range(4, 10), lambda n: n**4.0, None),
        (range(20, 26), lambda n: 2.0**n if n > 23 else 0.0, None),  # two sizes
        (range(20, 26), lambda n: 2.0**n if n < 25 else 2.0**24, None),  # it stops to grow
    ],
)
def test_exponential_growth_is_told_from_powers(times: range, extra: Callable[[float], float], factor: float | None) -> None:
    x = np.array(times, dtype=np.float64)
    assert growth.factor(x, np.array([extra(n) for n in x]), 0.0) == (factor and pytest.approx(factor))


def test_the_law_of_time_is_that_of_what_head_takes_more_where_clocks_tell_it() -> None:
    x = np.geomspace(1000, 8000, 8)
    noise = np.random.default_rng(1).normal(1.0, 0.05, 8)
    law = growth.of_time("repetitions", x, 5.0 * x**2 * noise, 1e7, seed=1)
    assert law is not None
    assert (law.growth, law.n) == (CostClass.QUADRATIC, 6)
    assert growth.of_time("repetitions", x, np.full(8, 1e6), 1e7, seed=1) is None


def test_a_file_that_a_setup_takes_has_its_place_there(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    config = WorkloadConfig("w", "./read copy", {"file": ("a.md",)}, setup="cp ../samples/{file} copy", prepare="touch {file}")
    starts = seeds.seeds([config], tmp_path, tmp_path)
    workload = starts.workloads["w"]
    assert (workload.setup, workload.prepare, workload.parameters) == ("cp {input} copy", "touch {input}", {})
    assert [family.content(1) for family in starts.families] == [b"text"]


def test_of_two_files_each_has_its_turn_and_then_both_are_the_same(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(name)
    config = WorkloadConfig("w", "./compare ./{old} --to={new}", {"old": ("a.md",), "new": ("a.md", "b.md")})
    starts = seeds.seeds([config], tmp_path, tmp_path)
    assert {name: workload.command for name, workload in starts.workloads.items()} == {
        "w": "./compare {input} --to={new}",
        "w (new)": "./compare ./{old} --to={input}",
        "w (old, new)": "./compare {input} --to={input}",
    }
    told = [(family.workload, family.content(1), dict(family.values)) for family in starts.families]
    assert told[:2] == [("w", b"a.md", {"new": "a.md"}), ("w", b"a.md", {"new": "b.md"})]
    assert ("w (new)", b"b.md", {"old": "a.md"}) in told
    assert all(workload.name == name for name, workload in starts.workloads.items())


def test_reduction_asks_no_more_than_it_may() -> None:
    asked = []
    reduction.reduced(SEEDS[0], lambda smaller: bool(asked.append(smaller)), 7)
    assert len(asked) == 7


def test_changes_by_chance_are_of_all_kinds_and_bounded() -> None:
    mutator = Mutator((b"strict",), random.Random(1))
    made = [mutator.mutated(SEEDS[0], SEEDS) for _ in range(500)]
    assert any(segment.number_at is not None for family in made for segment in family.segments)
    assert any(b"strict" in family.content(1) for family in made)
    assert any(b"plain" in family.content(1) for family in made)  # of the other seed
    assert max(len(family.segments) for family in made) <= 12
    assert all(len(family.content(family.times_within(2000))) <= 2100 for family in made)


def test_a_parameter_is_tried_beside_round_numbers() -> None:
    def clashing(_: bytes, values: Mapping[str, float | str]) -> tuple[int, int]:
        return int(values["n"]), 100_000 if values["n"] == 257 else 0

    oracle = Simulated(lambda _, values: (int(values["n"]), 0), clashing)
    search = InputSearch(oracle, SearchLimits(4096, 1e9, 100), (), (), lambda _: None, 1.05)
    (entry,) = search.worst_inputs([InputFamily("w", dial="n", most=400)])
    assert entry.times == 257


@pytest.mark.parametrize(
    ("standing", "verdict"),
    [
        (PointStanding.SLOWER, Verdict.REGRESSION),
        (PointStanding.NOT_SLOWER, Verdict.UNCHANGED),
        (PointStanding.FASTER, Verdict.UNCHANGED),
        (PointStanding.OPEN, Verdict.INCONCLUSIVE),
        (PointStanding.CLOCKED, Verdict.INCONCLUSIVE),  # no run tells
        (None, Verdict.INCONCLUSIVE),
    ],
)
def test_only_whole_runs_that_exclude_it_say_that_an_input_takes_no_longer(standing: PointStanding | None, verdict: Verdict) -> None:
    assert slow_input(standing).verdict is verdict


@pytest.mark.parametrize(("verdict", "code"), [("regression", 1), ("inconclusive", 4), ("unchanged", 0)])
def test_what_a_search_finds_is_part_of_the_exit_code(verdict: str, code: int) -> None:
    searched = SearchFindings({}, (), Verdict(verdict), 10, 1.0, 2, 1.0, 3, 4096, 1.0)
    outcome = Outcome(findings.findings(Verdict.UNCHANGED, ()), lambda *_: None, inputs=searched)
    assert consequences.exit_code(outcome, strict=True) == code


def slow_input(standing: PointStanding | None) -> SlowInput:
    trial = Simulated(once, by_depth).trial(SEEDS[0], 1, 1.0)
    run = None if standing is None else EndToEnd(Point(0, "w", {}, "true"), 1.0, 1.0, None, None, standing)
    return SlowInput(CorpusEntry(SEEDS[0], 1, trial, 2.0), WorkloadConfig("w"), {}, None, run=run)
