"""Known costs: what is accepted, how the file is written and read, and what verdicts say afterwards."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from findings import findings, others, plain, regressed
from perfdiff import accepted, cli, pipeline
from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Findings, FunctionFinding, PointStanding, Ratio, Rung, Verdict
from perfdiff.analysis.verdicts.acceptance import WHOLE, apply, claims
from perfdiff.analysis.witnessed import Amount, BehaviourDifference, BehaviourDifferenceKind, OutputAmounts, PointBehaviour, SideBehaviour
from perfdiff.config import CompareConfig
from perfdiff.errors import ConfigError
from perfdiff.outcome import Outcome
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.schema import Change
from perfdiff.report import document, json_report, terminal
from perfdiff.report.sentences.catalogue import noted, say
from programs import git

TODAY = date(2026, 3, 1)
SLOWER = PointStanding.SLOWER


def known(metric: str = "wall_ns", ratio: float = 331.4, low: float = 318.0, high: float = 346.2, until: date | None = None) -> Acceptance:
    return Acceptance("insert", "src/list.c", metric, ratio, low, high, "keys are checked now", until=until)


def slower(ratio: Ratio, number: int = 7, name: str = "table_put") -> FunctionFinding:
    return plain(number, name, Verdict.REGRESSION, Change.CHANGED, ratio=ratio, reason="slower")


def with_ratio(value: float, low: float, high: float) -> Findings:
    """Return findings in which `insert` costs so many times what it did."""
    guilty = regressed()
    wall = replace(guilty.metrics["wall_ns"], ratio=Ratio(value, low, high, 10, 10))
    return findings(functions=(replace(guilty, metrics={**guilty.metrics, "wall_ns": wall}), *others()))


def slugs(found: Findings) -> list[str]:
    return [note.slug for note in map(noted, found.notes) if note.slug.startswith("accepted")]


def test_an_accepted_regression_is_listed_and_does_not_make_the_verdict() -> None:
    found = apply(findings(functions=(regressed(), *others()[1:2])), [known(until=date(2026, 12, 31))], TODAY, CompareConfig())
    assert found.verdict is Verdict.UNCHANGED
    assert say(found.sentence) == "No regression beyond what is accepted: `insert` (×331)"
    assert found.functions[0].verdict is Verdict.REGRESSION
    assert found.functions[0].accepted == (known(until=date(2026, 12, 31)),)
    text = terminal.render(document.build(found))
    assert "regression, accepted" in text
    assert "`insert`, wall_ns ×331 is ×331, accepted until 2026-12-31: keys are checked now (accepted)" in " ".join(text.split())


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (100.0, 90.0, 110.0, Verdict.UNCHANGED),  # below
        (340.0, 325.0, 360.0, Verdict.UNCHANGED),  # intervals overlap
        (355.0, 346.0, 365.0, Verdict.UNCHANGED),
        (365.0, 347.0, 380.0, Verdict.REGRESSION),  # beyond
    ],
)
def test_beyond_the_accepted_ratio_it_is_a_regression_again(value: float, low: float, high: float, verdict: Verdict) -> None:
    whole = with_ratio(value, low, high)
    found = apply(replace(whole, functions=(whole.functions[0],)), [known()], TODAY, CompareConfig())
    assert found.verdict is verdict
    assert slugs(found) == (["accepted-exceeded"] if verdict is Verdict.REGRESSION else ["accepted"])


def test_other_regressions_keep_the_verdict_and_the_sentence_names_them() -> None:
    found = apply(findings(functions=(regressed(), slower(Ratio(2.0, 1.9, 2.1, 10, 10)))), [known()], TODAY, CompareConfig())
    assert found.verdict is Verdict.REGRESSION
    assert say(found.sentence) == "Regression: table_put: regression.; accepted: `insert` (×331)"
    answer = terminal.render(document.build(found)).split("\n\n")[2]
    assert "table_put" in answer
    assert "insert" not in answer


def test_what_is_left_may_be_inconclusive() -> None:
    found = apply(findings(functions=(regressed(), others()[2])), [known()], TODAY, CompareConfig())
    assert found.verdict is Verdict.INCONCLUSIVE
    assert say(found.sentence).endswith("; accepted: `insert` (×331)")


def test_an_expired_entry_does_not_count_and_says_so() -> None:
    yesterday = apply(findings(), [known(until=TODAY - timedelta(days=1))], TODAY, CompareConfig())
    assert (yesterday.verdict, slugs(yesterday)) == (Verdict.REGRESSION, ["accepted-expired"])
    assert "until 2026-02-28, which is over" in noted(yesterday.notes[-1]).text
    assert slugs(apply(findings(), [known(until=TODAY)], TODAY, CompareConfig())) == ["accepted"]


def test_an_entry_that_matches_nothing_is_noted() -> None:
    elsewhere = replace(known(), file="src/other.c")
    found = apply(findings(), [elsewhere, replace(known(), function="gone")], TODAY, CompareConfig())
    assert (found.verdict, slugs(found)) == (Verdict.REGRESSION, ["accepted-unmatched"] * 2)


def test_an_entry_of_a_function_that_was_not_measured_or_is_no_slower_says_nothing() -> None:
    idle = [
        Acceptance("table_hash", "", "wall_ns", 2.0, 2.0, 2.0, "why"),
        Acceptance("usage", "src/main.c", "wall_ns", 2.0, 2.0, 2.0, "why"),
    ]
    assert slugs(apply(findings(), idle, TODAY, CompareConfig())) == []


def test_more_allocation_is_not_covered_by_an_accepted_time() -> None:
    guilty = regressed()
    doubled = replace(guilty.metrics["alloc_bytes"], ratio=Ratio(2.0, 2.0, 2.0, 10, 10))
    whole = findings(functions=(replace(guilty, metrics={**guilty.metrics, "alloc_bytes": doubled}),))
    assert set(claims(whole.functions[0], whole)) == {"wall_ns", "alloc_bytes"}
    assert apply(whole, [known()], TODAY, CompareConfig()).verdict is Verdict.REGRESSION
    both = [known(), known("alloc_bytes", 2.0, 2.0, 2.0)]
    assert apply(whole, both, TODAY, CompareConfig()).functions[0].accepted == tuple(both)


def test_an_accepted_time_covers_another_time_of_the_same_call() -> None:
    guilty = regressed()
    own = replace(guilty.metrics["wall_ns"], metric="self_ns", ratio=Ratio(500.0, 490.0, 510.0, 10, 10))
    whole = findings(functions=(replace(guilty, metrics={**guilty.metrics, "self_ns": own}),))
    assert apply(whole, [known("self_ns", 505.0, 495.0, 515.0)], TODAY, CompareConfig()).verdict is Verdict.UNCHANGED


def test_a_function_without_a_ratio_is_accepted_by_its_part_of_whole_runs() -> None:
    added = replace(plain(8, "table_log", Verdict.REGRESSION, Change.ADDED, ratio=None, reason="new"), extra_ns=1.26e6)
    whole = findings(functions=(added,))
    found = claims(added, whole)
    assert list(found) == [WHOLE]
    assert found[WHOLE].value == pytest.approx(1.1)  # of runs of 2.1, 4.2 and 6.3 ms
    entry = Acceptance("table_log", "", WHOLE, found[WHOLE].value, found[WHOLE].low, found[WHOLE].high, "logs are wanted")
    assert apply(whole, [entry], TODAY, CompareConfig()).verdict is Verdict.UNCHANGED
    costlier = replace(added, extra_ns=2.6e6)
    assert apply(replace(whole, functions=(costlier,)), [entry], TODAY, CompareConfig()).verdict is Verdict.REGRESSION


def with_runs(low: float, extra_ns: float) -> Findings:
    """Return findings of runs of 10 ms that take at least so many times what they did, by `insert` as far as its part goes."""
    whole = findings(functions=(replace(regressed(), extra_ns=extra_ns, extra_ci_ns=(0.9 * extra_ns, 1.1 * extra_ns)), *others()[1:2]))
    slow = replace(
        whole.end_to_end[0], base_ns=1e7, head_ns=1e7 * low * 1.02, ratio=Ratio(low * 1.02, low, low * 1.04, 40, 40), standing=SLOWER
    )
    return replace(whole, end_to_end=(slow,))


@pytest.mark.parametrize("judge", ["function", "program"])
@pytest.mark.parametrize(
    ("low", "verdict"),
    [(1.2, Verdict.UNCHANGED), (1.26, Verdict.UNCHANGED), (1.6, Verdict.REGRESSION)],
    ids=["all of it", "up to the smallest effect", "a part of it"],
)
def test_whole_runs_are_accepted_as_far_as_accepted_functions_explain_them(judge: str, low: float, verdict: Verdict) -> None:
    """`insert` adds 2 ms to runs of 10 ms, which take 2, 2.6 or 6 ms more."""
    found = apply(with_runs(low, 2e6), [known()], TODAY, CompareConfig(judge=judge))
    assert found.verdict is verdict
    assert found.functions[0].accepted
    if verdict is Verdict.UNCHANGED:
        assert say(found.sentence) == "No regression beyond what is accepted: `insert` (×331)"
    else:
        assert say(found.sentence).startswith("Regression, not located: whole runs at")
        assert say(found.sentence).endswith("; accepted: `insert` (×331)")
        assert found.rung is Rung.RUNS


def test_runs_that_have_no_part_in_the_verdict_are_no_regression_beyond_what_is_accepted() -> None:
    """As where they wait longer for a database that is outside the revisions."""
    whole = with_runs(1.6, 2e6)
    elsewhere = replace(whole, end_to_end=tuple(replace(end, judges=False) for end in whole.end_to_end))
    assert apply(elsewhere, [known()], TODAY, CompareConfig()).verdict is Verdict.UNCHANGED


def test_a_program_that_alone_is_judged_is_not_slower_by_what_it_does_not_feel() -> None:
    whole = with_runs(1.2, 2e6)
    beside = replace(whole, functions=(*whole.functions, slower(Ratio(2.0, 1.9, 2.1, 10, 10))))
    verdicts = {judge: apply(beside, [known()], TODAY, CompareConfig(judge=judge)).verdict for judge in ("function", "program")}
    assert verdicts == {"function": Verdict.REGRESSION, "program": Verdict.UNCHANGED}


def test_what_is_left_when_costs_are_accepted_needs_the_same_work_and_tasks_that_met() -> None:
    nothing = OutputAmounts(0, Amount(0, 0), Amount(0, 0))
    whole = with_runs(1.2, 2e6)
    at = whole.end_to_end[0].point
    side = SideBehaviour(5, {0: 5}, nothing, nothing)
    apart = replace(side, concurrency=Concurrency(0.9, 1.9, 0.5))
    less = PointBehaviour(
        at,
        side,
        side,
        (BehaviourDifference(BehaviourDifferenceKind.LESS_OUTPUT, claim("prints-nothing", where=None, base=claim("nothing"))),),
    )
    for seen, says in ((less, "head may do less work: it prints nothing"), (PointBehaviour(at, apart, apart), "threads or processes of")):
        found = apply(replace(whole, behaviour=(seen,)), [known()], TODAY, CompareConfig())
        assert found.verdict is Verdict.INCONCLUSIVE
        assert say(found.sentence).startswith(f"Inconclusive: {says}")


def test_without_entries_nothing_changes() -> None:
    assert apply(findings(), [], TODAY, CompareConfig()) == findings()


def test_json_tells_reason_end_and_ratio_beside_the_verdict() -> None:
    found = apply(findings(), [known(until=date(2026, 12, 31))], TODAY, CompareConfig())
    first, *rest = json.loads(json_report.render(document.build(found)))["functions"]
    expected = {"reason": "keys are checked now", "until": "2026-12-31", "ratio": 331.4, "metrics": {"wall_ns": 331.4}}
    assert (first["verdict"], first["accepted"]) == ("regression", expected)
    assert [each["accepted"] for each in rest] == [None] * len(rest)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "perfdiff-accepted.toml"
    strange = replace(known(until=date(2027, 1, 1)), function='operator"" \x7f\U0001f600(int)', day=TODAY, base="v1", head="v2")
    accepted.write(file, [known(), strange])
    assert accepted.read(file) == (known(), strange)


def test_rounding_does_not_let_an_exact_ratio_exceed_itself(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    accepted.write(file, [known("alloc_bytes", 7 / 3, 7 / 3, 7 / 3)])
    (entry,) = accepted.read(file)
    assert entry.low <= 7 / 3 <= entry.high < 7 / 3 + 1e-3


def test_accepting_again_replaces_the_entry_and_leaves_the_rest_as_people_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    entry = '[[accepted]]\nfunction = "insert"\nfile = "src/list.c"\nmetric = "wall_ns"\nratio = 1.2\nreason = "a"\n'
    others = '# Agreed with all.\n\n# Of the parser.\n[[accepted]]\nfunction = "parse"  # all of them\nmetric = "wall_ns"\n'
    others += 'ratio = 1.5\nreason = "b"\n'
    file.write_text(f"# Ours.\n\n{entry}\n{others}")
    accepted.write(file, [known()])
    text = file.read_text()
    assert text.startswith(f"# Ours.\n\n\n{others}")
    assert [(entry.function, entry.ratio) for entry in accepted.read(file)] == [("parse", 1.5), ("insert", 331.4)]


def test_what_people_wrote_behind_the_last_entry_stays(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    accepted.write(file, [known()])
    file.write_text(f"{file.read_text()}\n# Nothing else, says the team.\n")
    accepted.write(file, [known(ratio=2.0, low=1.9, high=2.1)])
    assert "# Nothing else, says the team.\n" in file.read_text()
    assert [entry.ratio for entry in accepted.read(file)] == [2.0]


@pytest.mark.parametrize(
    ("text", "place", "slug"),
    [
        (
            '[[accepted]]\nfunction = "f"\nmetric = "wall_ns"\nreason = "r"',
            "line 1: this [[accepted]] has no 'ratio'",
            "accepted-incomplete",
        ),
        ('[[accepted]]\nfunction = "f"\nratoi = 1.2', "line 3: unknown key 'ratoi'", "config-key"),
        ("[[accepted]]\nfunction = 3", "line 2: 'function' is 3", "config-value"),
        ("[[accepted]]\nratio = 0.9", "line 2: 'ratio' is 0.9; it must be head over base, a number above 1", "config-value"),
        ('[[accepted]]\nuntil = "soon"', "line 2: 'until' is \"soon\"; it must be a date", "config-value"),
        (
            '[[accepted]]\nfunction = "f"\nmetric = "wall_ns"\nratio = 2\nreason = "r"\ninterval = [3.0, 4.0]',
            "line 6: 'interval' [3, 4] does not hold the ratio 2",
            "config-value",
        ),
        ("[accepted]\nratio = 2", "line 1: write [[accepted]]", "config-value"),
        ("[[known]]", "line 1: unknown key 'known'", "config-key"),
        ("ratio", "not valid TOML", "config-syntax"),
    ],
)
def test_mistakes_are_told_with_file_line_and_key(tmp_path: Path, text: str, place: str, slug: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        accepted.read(file)
    assert place in str(raised.value)
    assert str(file) in str(raised.value)
    assert raised.value.slug == slug


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a checkout in which a comparison found a regression just now."""
    git(tmp_path, "init", "-q")
    (tmp_path / "perfdiff.toml").write_text('[build]\ncommand = "make"\n[[workload]]\nname = "a"\ncommand = "./a"\n')
    monkeypatch.chdir(tmp_path)
    outcome = Outcome(findings(functions=(regressed(), *others())), lambda function, side: None)
    monkeypatch.setattr("perfdiff.outcome.last", lambda *_: outcome)
    monkeypatch.setattr(pipeline, "compare", lambda *_: outcome)
    return tmp_path


def code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([*arguments, "-q"])
    return int(left.value.code or 0)


def test_accept_writes_what_the_last_comparison_found_and_comparisons_pass(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code("v1.4", "HEAD") == 1
    until = date.today() + timedelta(days=30)
    assert code("accept", "insert", "--reason", "keys are\nchecked now", "--until", until.isoformat()) == 0
    assert "accepted ×331 of wall_ns of insert" in capsys.readouterr().out
    (entry,) = tomllib.loads((checkout / "perfdiff-accepted.toml").read_text())["accepted"]
    assert entry == {
        "function": "insert",
        "file": "src/list.c",
        "metric": "wall_ns",
        "ratio": 331.4,
        "interval": [318.0, 346.2],
        "base": "v1.4 (a1b2c3d4e5)",
        "head": "HEAD (b7e1c0ffee)",
        "reason": "keys are checked now",
        "date": date.today(),
        "until": until,
    }
    assert code("v1.4", "HEAD") == 0
    assert f"accepted until {until}: keys are checked now" in " ".join(capsys.readouterr().out.split())
    assert code("explain", "insert") == 0
    assert f"wall_ns ×331 until {until}: keys are checked now" in " ".join(capsys.readouterr().out.split())


def test_the_file_lies_where_the_configuration_says(checkout: Path) -> None:
    with (checkout / "perfdiff.toml").open("a") as config:
        config.write('[compare]\naccepted = "perf.toml"\n')
    (checkout / "src").mkdir()
    assert code("accept", "insert", "--reason", "r", "--repo", "src") == 0
    assert (checkout / "perf.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["insert", "--reason", " "], "accept-reason"),
        (["insert", "--reason", "r", "--until", "2020-01-01"], "accept-until"),
        (["insert", "--reason", "r", "--until", "soon"], "accept-until"),
        (["insert", "--reason", "r", "--metric", "alloc_bytes"], "nothing-to-accept"),
        (["table_hash", "--reason", "r"], "nothing-to-accept"),
        (["insret", "--reason", "r"], "unknown-function"),
    ],
)
def test_what_cannot_be_accepted_is_refused(checkout: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], slug: str) -> None:
    assert code("accept", *arguments) == 2
    assert f"[{slug}]" in capsys.readouterr().err
    assert not (checkout / "perfdiff-accepted.toml").exists()


def test_namesakes_must_be_told_apart(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    twin = replace(regressed(), info=replace(regressed().info, id=9, file="src/queue.c"))
    outcome = Outcome(findings(functions=(regressed(), twin)), lambda function, side: None)
    monkeypatch.setattr("perfdiff.outcome.last", lambda *_: outcome)
    assert code("accept", "insert", "--reason", "r") == 2
    assert "src/list.c:insert, src/queue.c:insert" in capsys.readouterr().err
    assert code("accept", "queue.c:insert", "--reason", "r") == 0
    assert [entry.file for entry in accepted.read(checkout / "perfdiff-accepted.toml")] == ["src/queue.c"]


def test_a_damaged_file_stops_the_comparison_with_its_place(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "perfdiff-accepted.toml").write_text("[[accepted]]\nfunction = 1\n")
    assert code("v1.4", "HEAD") == 2
    assert "perfdiff-accepted.toml, line 2: 'function' is 1" in capsys.readouterr().err
