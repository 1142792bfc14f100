"""Parts of many hosts: which are compared, what they come to, and that no garbage among them breaks a comparison."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fleets
from fleets import MACHINE, Recorded
from perfdiff import cli
from perfdiff.errors import RecordingError, UsageError
from perfdiff.records import fleet, parts, pooling, usual_inputs
from perfdiff.records.fleet import FleetSelection
from perfdiff.records.reservoir import ROWS
from perfdiff.records.schema import Change, Environment, Experiment, Feature, Origin, Revision, SampleTable, Side

V1_V2 = FleetSelection("v1", "v2")
HOSTS = [f"host{number}" for number in range(8)]


def recorded(folder: Path, *sessions: Recorded, parts_of_each: int = 1) -> Path:
    """Write the parts of sessions, a folder a host."""
    for session in sessions:
        for number in range(parts_of_each):
            fleets.write(folder / session.host, session, number)
    return folder


def both(host: str, **differs: object) -> list[Recorded]:
    """Return a recording of each revision by one host; `slower` holds of v2 alone."""
    slower = differs.pop("slower", {})
    base = Recorded("v1", host=host, **differs)
    return [base, replace(base, revision="v2", slower=slower)]


def pooled(folder: Path, asked: FleetSelection = V1_V2) -> tuple[Experiment, list[SampleTable]]:
    experiment, tables = pooling.pooled(fleet.choose(fleet.find([folder]), asked), seed=1)
    return experiment, list(tables)


def compared(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, object]]:
    """Return the exit code of `perfdiff compare` and its report."""
    arguments = ["compare", "--base", "v1", "--head", "v2", "--format", "json", "-q", *options, str(folder)]
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    printed = capsys.readouterr()
    return int(left.value.code or 0), json.loads(printed.out) if printed.out else {"error": printed.err}


def notes(experiment: Experiment) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for note in experiment.notes:
        found.setdefault(note.slug, []).append(note.text)
    return found


def test_a_function_that_became_slower_on_all_hosts_is_the_guilty_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    speeds = np.linspace(0.6, 1.7, len(HOSTS))
    for host, speed in zip(HOSTS, speeds, strict=True):
        recorded(tmp_path, *both(host, speed=float(speed), slower={"parse": 1.3}))
    code, report = compared(tmp_path, capsys)
    verdicts = {each["name"]: each["verdict"] for each in report["functions"]}
    assert code == 1
    assert report["functions"][0]["name"] == "parse"
    assert verdicts == {"parse": "regression", "serve": "unchanged", "store": "unchanged"}


def test_more_load_and_larger_inputs_are_no_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Head serves four times as many requests, of twice the size."""
    for host in HOSTS:
        base, head = both(host)
        recorded(tmp_path, base, replace(head, requests=16_000, n=1000))
    code, report = compared(tmp_path, capsys)
    assert code == 0
    assert {each["verdict"] for each in report["functions"]} <= {"unchanged", "inconclusive"}


def test_two_hosts_are_too_few_to_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host in HOSTS[:2]:
        recorded(tmp_path, *both(host, slower={"parse": 1.3}))
    code, report = compared(tmp_path, capsys, "--strict")
    assert code == 4
    assert report["verdict"] == "inconclusive"


def test_hosts_that_recorded_one_revision_each_are_told(tmp_path: Path) -> None:
    for number, host in enumerate(HOSTS):
        recorded(tmp_path, both(host)[number % 2])
    experiment, _ = pooled(tmp_path)
    assert notes(experiment)["fleet-hosts-apart"][0].startswith("no host recorded both revisions: 4 recorded base, 4 others head")


def test_runs_are_sessions_and_machines_are_hosts(tmp_path: Path) -> None:
    recorded(tmp_path, *both("one"), *both("two"), *both("one", session="b"), parts_of_each=3)
    experiment, tables = pooled(tmp_path)
    assert sorted((run.side.value, experiment.machines[run.machine].name) for run in experiment.runs) == [
        ("base", "one"),
        ("base", "one"),
        ("base", "two"),
        ("head", "one"),
        ("head", "one"),
        ("head", "two"),
    ]
    assert {len(np.unique(table.run)) for table in tables} == {3}
    calls = experiment.totals.calls[experiment.totals.function == 1]
    assert np.allclose(calls, 3 * 4000)


def test_what_runs_did_is_told_per_unit_of_work(tmp_path: Path) -> None:
    base, head = both("one")
    recorded(tmp_path, base, replace(head, requests=40_000))
    experiment, _ = pooled(tmp_path)
    by_run = {run: experiment.totals.calls[experiment.totals.run == run] for run in (0, 1)}
    assert np.allclose(by_run[0], by_run[1])


def test_a_function_that_calls_more_than_others_do_is_not_taken_for_load() -> None:
    base = np.log([[100.0, 100, 100, 100, 100]] * 4)
    head = base + np.log([3.0, 3, 3, 3, 30])
    found = pooling.depths(np.concatenate([base, head]))
    assert np.allclose(found[4:] / found[:4], 3.0)


def test_the_order_of_folders_changes_nothing(tmp_path: Path) -> None:
    for host in HOSTS[:3]:
        recorded(tmp_path, *both(host), parts_of_each=2)
    first, tables = pooled(tmp_path)
    moved = tmp_path.parent / "moved"
    for number, part in enumerate(reversed(list(parts.below(tmp_path)))):
        shutil.copytree(part, moved / f"{number}")
    second, others = pooled(moved)
    assert first.runs == second.runs
    assert first.functions == second.functions
    for one, other in zip(tables, others, strict=True):
        assert np.array_equal(one.values, other.values)
        assert np.array_equal(one.weight, other.weight)


def test_a_part_that_was_copied_counts_once(tmp_path: Path) -> None:
    recorded(tmp_path, *both("one"))
    alone, _ = pooled(tmp_path)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    twice, _ = pooled(tmp_path)
    assert np.array_equal(alone.totals.calls, twice.totals.calls)
    assert notes(twice)["fleet-doubles"] == ["2 parts were there twice, as copies; each counts once"]


def truncated(part: Path) -> None:
    content = (part / "samples.parquet").read_bytes()
    (part / "samples.parquet").write_bytes(content[: len(content) // 2])


def of_another_format(part: Path) -> None:
    (part / parts.FILE).write_text((part / parts.FILE).read_text().replace(parts.SCHEMA, "perfdiff.part/99"))


def no_json(part: Path) -> None:
    (part / parts.FILE).write_text('{"schema": "perfdiff.part/1", "part": {')


def emptied(part: Path) -> None:
    (part / "digests.json").unlink()


def of_a_folder(part: Path) -> None:
    (part / parts.FILE).unlink()
    (part / parts.FILE).mkdir()


def of_a_pipe(part: Path) -> None:
    (part / parts.FILE).unlink()
    os.mkfifo(part / parts.FILE)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (of_a_folder, "1 part left out, unreadable"),
        (of_a_pipe, "1 part left out, unreadable"),
        (truncated, "1 part left out, damaged"),
        (of_another_format, "1 part left out, of another format"),
        (no_json, "1 part left out, unreadable"),
        (emptied, "1 part left out, unreadable"),
    ],
)
def test_a_damaged_part_is_told_and_the_others_are_compared(tmp_path: Path, damage: Callable[[Path], None], says: str) -> None:
    recorded(tmp_path, *both("one"), *both("two"))
    damage(next(parts.below(tmp_path / "one")))
    experiment, tables = pooled(tmp_path)
    assert len(experiment.runs) == 3
    assert len(tables) == 6
    assert [text for text in notes(experiment)["fleet-left-out"] if text.startswith(says)]


@pytest.mark.parametrize("sides", [(Side.HEAD,), tuple(Side)])
def test_a_side_of_unreadable_parts_alone_is_an_error_that_tells_of_them(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    recorded(tmp_path, *both("one"), *both("two"))
    words = {Side.BASE: "v1", Side.HEAD: "v2"}
    for place in [place for place in parts.below(tmp_path) if parts.load(place).revision.rev in {words[side] for side in sides}]:
        of_a_pipe(place)
    with pytest.raises(RecordingError, match=r"unreadable|cannot be read") as raised:
        pooled(tmp_path)
    assert raised.value.slug == "fleet-damaged"


@pytest.mark.parametrize("sides", [(Side.HEAD,), tuple(Side)])
def test_a_side_of_damaged_parts_alone_is_an_error_and_no_answer(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    recorded(tmp_path, *both("one"), *both("two"))
    words = {Side.BASE: "v1", Side.HEAD: "v2"}
    for place in parts.below(tmp_path):
        if parts.load(place).revision.rev in {words[side] for side in sides}:
            truncated(place)
    with pytest.raises(RecordingError, match=r"each of the 2 parts of 'v[12]' is damaged, ") as raised:
        pooled(tmp_path)
    assert raised.value.slug == "fleet-damaged"


def test_folders_without_parts_are_told(tmp_path: Path) -> None:
    recorded(tmp_path / "parts", *both("one"))
    garbage = tmp_path / "garbage"
    garbage.mkdir()
    (garbage / "core").write_bytes(b"\0" * 100)
    found = fleet.find([tmp_path / "parts", garbage])
    assert [note.text for note in found.left_out.notes()] == ["1 folder left out, holding no part: garbage"]


def test_clocks_that_are_wrong_are_told_and_change_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, *both("one"), *both("two", backwards=True), *both("three", started_s=int(time.time()) + 10**7))
    experiment, _ = pooled(tmp_path)
    assert len(experiment.runs) == 6
    assert notes(experiment)["fleet-clocks"][0].startswith("clocks of three, two were set while they recorded")


def test_other_flags_on_one_side_are_not_mixed_in(tmp_path: Path) -> None:
    base, head = both("one")
    recorded(tmp_path, base, head, replace(head, session="debug", build="-O0", slower={"parse": 9.0}))
    experiment, _ = pooled(tmp_path)
    assert len(experiment.runs) == 2
    assert notes(experiment)["fleet-left-out"][0].startswith("1 part left out, of head, built by another compiler or with other flags")


def test_nothing_is_compared_where_all_was_built_otherwise(tmp_path: Path) -> None:
    base, head = both("one")
    recorded(tmp_path, base, replace(head, build="-O0"))
    with pytest.raises(UsageError, match="nothing of base and head can be compared") as raised:
        pooled(tmp_path)
    assert raised.value.slug == "fleet-apart"
    assert "1 part left out, of base, built by another compiler" in raised.value.detail


def test_labels_that_one_side_lacks_are_left_out_unless_they_are_pooled(tmp_path: Path) -> None:
    base, head = both("one", labels={"use": "api"})
    recorded(tmp_path, base, head, replace(head, session="night", labels={"use": "batch"}))
    apart, _ = pooled(tmp_path)
    assert [(point.parameters["use"]) for point in apart.points] == ["api"]
    assert notes(apart)["fleet-left-out"] == [
        f"1 part left out, of head, bearing labels that no part of the other revision bears: {next(_folders(tmp_path, 'batch')).name}"
    ]
    together, _ = pooled(tmp_path, FleetSelection("v1", "v2", pooled=("use",)))
    assert len(together.runs) == 3
    with pytest.raises(UsageError, match="there is no part to compare"):
        pooled(tmp_path, FleetSelection("v1", "v2", labels={"use": "nothing"}))


def _folders(folder: Path, label: str) -> Sequence[Path]:
    return (part for part in parts.below(folder) if label in parts.load(part).labels.values())


@pytest.mark.parametrize("word", ["v1", fleets.digest("commit", "v1")[:7], fleets.digest("tree", "v1")[:12]])
def test_a_revision_goes_by_its_name_its_commit_or_its_content(tmp_path: Path, word: str) -> None:
    recorded(tmp_path, *both("one"))
    experiment, _ = pooled(tmp_path, FleetSelection(word, None))
    assert (experiment.base.rev, experiment.head.rev) == ("v1", "v2")


def test_which_is_base_must_be_said_where_nothing_tells(tmp_path: Path) -> None:
    recorded(tmp_path, *both("one"))
    with pytest.raises(UsageError, match=r"parts of v1 \(1 part\), v2 \(1 part\) are there: say which are compared"):
        pooled(tmp_path, FleetSelection())
    with pytest.raises(UsageError, match="no part is of 'v3'"):
        pooled(tmp_path, FleetSelection("v1", "v3"))


def test_two_folders_of_one_revision_each_are_base_and_head(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for host in HOSTS:
        base, head = both(host, slower={"store": 1.4})
        recorded(tmp_path / "old", base)
        recorded(tmp_path / "new", head)
    with pytest.raises(SystemExit) as left:
        cli.main(["compare", "-q", "--format", "json", "old", "new"])
    report = json.loads(capsys.readouterr().out)
    assert left.value.code == 1
    assert (report["base"]["rev"], report["head"]["rev"], report["functions"][0]["name"]) == ("v1", "v2", "store")


def test_functions_of_one_side_count_as_added_where_they_would_have_been_seen(tmp_path: Path) -> None:
    recorded(tmp_path, *both("one", slower={"parse": 1.3}))
    for part in parts.below(tmp_path):
        found = parts.load(part)
        if found.revision.rev == "v1":
            _without(part, "store")
    experiment, _ = pooled(tmp_path)
    changes = {info.name: info.change for info in experiment.functions}
    assert changes == {"serve": Change.AFFECTED, "parse": Change.CHANGED, "store": Change.ADDED, "rare": Change.REMOVED}


def _without(part: Path, function: str) -> None:
    """Give a function another name, and seal the part anew."""
    text = (part / parts.FILE).read_text().replace(f'"name": "{function}"', '"name": "rare"')
    (part / parts.FILE).write_text(text)
    import hashlib

    digests = json.loads((part / "digests.json").read_text())
    digests[parts.FILE] = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    (part / "digests.json").write_text(json.dumps(digests))


def test_a_thousand_parts_are_read_in_bounded_memory(tmp_path: Path) -> None:
    """250 hosts, two revisions, two parts each: no more calls are held than a function and side may have."""
    for number in range(250):
        speed = 0.8 + 0.4 * number / 250
        recorded(tmp_path, *both(f"host{number}", speed=speed, slower={"parse": 1.2}, rows=80), parts_of_each=2)
    started = time.perf_counter()
    experiment, tables = pooled(tmp_path)
    assert len(experiment.runs) == 500
    assert len(experiment.machines) == 250
    assert all(len(table) <= ROWS for table in tables)
    assert time.perf_counter() - started < 60
    parse = next(info.id for info in experiment.functions if info.name == "parse")
    means = {table.side: float(np.average(table.metrics["self_ns"] / table.values[:, 0])) for table in tables if table.function == parse}
    assert means[Side.HEAD] / means[Side.BASE] == pytest.approx(1.2, abs=0.02)


def test_parts_beyond_the_bound_go_so_that_the_time_stays_covered(tmp_path: Path) -> None:
    made = Recorded("v1")
    places = [fleets.write(tmp_path, made, number) for number in range(16)]
    newer = [fleets.write(tmp_path, replace(made, revision="v2"), number) for number in range(4)]
    size = sum(file.stat().st_size for file in places[0].iterdir())
    removed = parts.bounded(tmp_path, 10 * size)
    left = [number for number, place in enumerate(places) if place.exists()]
    assert removed == 20 - len(left) - len(newer)
    assert all(place.exists() for place in newer)
    assert {0, 15} <= set(left)
    assert max(np.diff(left)) <= 4


def test_only_parts_are_ever_removed(tmp_path: Path) -> None:
    fleets.write(tmp_path, Recorded("v1"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x" * 10_000)
    assert parts.bounded(tmp_path, 0) == 1
    assert (tmp_path / "mine" / "notes.txt").exists()


def test_a_part_without_its_numbers_is_refused(tmp_path: Path) -> None:
    place = fleets.write(tmp_path, Recorded("v1"))
    (place / "totals.parquet").unlink()
    with pytest.raises(RecordingError) as raised:
        parts.numbers(place, parts.load(place))
    assert raised.value.slug == "damaged-recording"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Revision("v1.2", "c0ffee", "Fix the login of Bob"), "v1.2"),
        (Revision(":/Fix the login", "c0ffee0123456789", "x"), "c0ffee012345"),
        (Revision("HEAD~3", "c0ffee", "x"), "HEAD~3"),
        (Revision("/home/bob/x", "c0ffee0123456789", "x"), "c0ffee012345"),
    ],
)
def test_a_revision_leaves_its_host_without_texts(given: Revision, kept: str) -> None:
    assert parts.revision(given) == Revision(kept, given.commit, "")


def test_flags_leave_their_host_without_paths_and_values() -> None:
    said = Environment(
        **{name: getattr(MACHINE, name) for name in Environment.__slots__ if name not in ("flags", "compiler", "libraries")},
        flags=("-O2 -DKEY=hunter2 -I/home/bob/include -fno-inline -march=x86-64-v3 -std=c11 (3 files)",),
        compiler="/home/bob/bin/gcc",
        libraries=("libc.so.6 (glibc 2.36)", "libx.so (/home/bob/libx.so)"),
    )
    told = parts.without_texts(said)
    assert told.flags == ("-O2 -fno-inline -march=x86-64-v3 -std=c11",)
    assert told.compiler == "gcc"
    assert told.libraries == ("libc.so.6 (glibc 2.36)",)


def test_inputs_that_differ_from_host_to_host_do_not_show_in_what_runs_took(tmp_path: Path) -> None:
    """Of hosts with inputs of very different sizes, each run's time is told at the inputs that are usual."""
    for number, host in enumerate(HOSTS):
        base, head = both(host, slower={"parse": 1.3})
        recorded(tmp_path, replace(base, n=200 + 150 * number), replace(head, n=1400 - 150 * number))
    experiment, _ = pooled(tmp_path)
    parse = next(info.id for info in experiment.functions if info.name == "parse")
    own = {run: ns for run, function, ns in zip(*_columns(experiment), strict=True) if function == parse}
    base, head = ([own[run.id] for run in experiment.runs if run.side is side] for side in Side)
    assert np.std(np.log(base)) < 0.08
    assert np.mean(head) / np.mean(base) == pytest.approx(1.3, abs=0.06)


def _columns(experiment: Experiment) -> tuple[Sequence[int], Sequence[int], Sequence[float]]:
    totals = experiment.totals
    return totals.run.tolist(), totals.function.tolist(), totals.self_ns.tolist()


def test_inputs_that_tell_nothing_of_the_cost_leave_sums_as_they_are() -> None:
    rng = np.random.default_rng(1)
    rows, nothing = 400, np.empty((400, 0))
    made = {"branches": (), "executed": nothing, "taken": nothing, "point": np.zeros(rows, np.int64), "thread": np.ones(rows, np.int64)}
    table = SampleTable(
        function=1,
        side=Side.BASE,
        metrics={"self_ns": np.exp(0.2 * rng.standard_normal(rows)) * 100},
        features=(Feature("n", Origin.ARGUMENT),),
        values=rng.integers(1, 1000, rows).astype(float)[:, None],
        run=np.repeat([0, 1, 2, 3], 100),
        call=np.arange(rows),
        weight=np.ones(rows),
        **made,
    )
    assert usual_inputs.costs([table], "self_ns") == {}
