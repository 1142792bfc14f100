"""Workloads over files of the checkout: each is a point, both revisions read the same, and an edited one is measured anew."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import runtimes
from perfdiff import configuration, outlook, pipeline, reproduction, trending
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs import inputs, runfeatures, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.inputs import InputFiles
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Target
from perfdiff.config import BuildConfig, Config, WorkloadConfig
from perfdiff.configuration import Overrides
from perfdiff.errors import InputChangedError
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Revision, Run, Side
from perfdiff.reproduction import ComparisonOrder
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from perfdiff.searches.state import reason_of
from programs import git

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
COUNT = """
#include <stdio.h>
static int vowels(const char *path)
{
	FILE *file = fopen(path, "r");
	int c, found = 0;

	if (!file)
		return -1;
	while ((c = getc(file)) != EOF)
		found += c == 'a' || c == 'e' || c == EXTRA;
	fclose(file);
	return found;
}
int main(int argc, char **argv)
{
	int found = vowels(argv[1]);

	printf("%d\\n", found);
	return found < 0;
}
"""
TOML = """
build.command = "gcc -O2 -o count count.c"
counters.software = false
measure = { budget_s = 0.5, layouts = 1 }
[[workload]]
name = "count"
command = "./count {input}"
inputs = ["corpus/**/*.txt"]
runs = 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository whose two revisions hold other inputs than its checkout; one of those belongs to no commit."""
    folder = tmp_path / "project"
    (folder / "corpus" / "large").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(TOML)
    for revision, text in (("v1", "a"), ("v2", "ae")):
        (folder / "corpus" / "small.txt").write_text(text)
        (folder / "count.c").write_text(COUNT.replace("EXTRA", f"'{revision[1]}'"))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", revision)
        git(folder, "tag", revision)
    (folder / "corpus" / "small.txt").write_text("aaa\n")
    (folder / "corpus" / "large" / "a b.txt").write_text("banane\n" * 10_000)
    return folder


LABELS = ("count input=corpus/large/a b.txt", "count input=corpus/small.txt")


def load(project: Path, **overrides: object) -> Config:
    return configuration.load(project, overrides=Overrides(**overrides), environment={})  # type: ignore[arg-type]


def request(project: Path, *revisions: str) -> Request:
    return Request(project, revisions, load(project), runtimes.lent_to(project.parent / "cache"), PATH)


def printed(text: str) -> str:
    """Return the digest of a run that prints this line."""
    return hashlib.blake2b(f"{text}\n".encode(), digest_size=16).hexdigest()


@pytest.mark.integration
def test_both_revisions_run_with_the_inputs_of_the_checkout(project: Path) -> None:
    asked = request(project, "v1", "v2")
    found = pipeline.compare(asked, Silent()).experiment
    assert found is not None
    assert tuple(point.label for point in found.points) == LABELS
    assert [point.command for point in found.points] == ["./count 'corpus/large/a b.txt'", "./count corpus/small.txt"]
    for point, vowels in zip(found.points, (30_000, 3), strict=True):
        outputs = {(run.side, run.output) for run in found.runs if run.point == point.id}
        assert outputs == {(side, printed(f"{vowels}")) for side in Side}, "neither revision's own `small.txt` is read"
    assert outlook.outlook(asked, Silent()).measured
    (project / "corpus" / "small.txt").write_text("aea\n")
    edited = outlook.outlook(asked, Silent())
    assert (edited.measured, len(edited.points)) == (False, 2)
    assert set(edited.built.values()) == {True}, "inputs are no part of what is built"


def test_what_is_measured_depends_on_names_and_contents_of_inputs_alone(project: Path) -> None:
    pins = resolve(find_repository(project), ("v1", "v2"), snapshots=project.parent)
    small = project / "corpus" / "small.txt"

    def key() -> str:
        return experiment_key(Request(project, ("v1", "v2"), load(project), project.parent, PATH), pins)

    first = key()
    os.utime(small, ns=(1, 1))
    (project / "corpus" / "unmatched.md").touch()
    assert key() == first
    small.write_text("baa\n")  # as long as it was
    edited = key()
    small.write_text("aaa\n")
    assert key() == first != edited
    small.rename(small.with_name("tiny.txt"))
    assert key() not in (first, edited)


def test_inputs_and_parameters_make_all_combinations() -> None:
    config = WorkloadConfig("w", "./p {mode} {input}", {"mode": ("fast", "a b")}, inputs=("x.c", "y.c"))
    points = workloads.points([config, WorkloadConfig("v", "./q")])
    assert [point.command for point in points] == ["./p fast x.c", "./p fast y.c", "./p 'a b' x.c", "./p 'a b' y.c", "./q"]
    assert [point.id for point in points] == list(range(5))
    assert workloads.workloads([config])[0].parameters == ("mode", "input")


@dataclass(frozen=True, slots=True)
class Place:
    """A tree that workloads run in, and the checkout that holds their inputs, which are `a b.txt` and `c.txt`."""

    tree: Path
    checkout: Path

    def run(self, config: WorkloadConfig, numbers: tuple[int, ...] = (0,)) -> list[Run]:
        """Return the runs at points of these numbers."""
        room = self.tree.parent / "room"
        room.mkdir(exist_ok=True)
        targets = {(Phase.PLAIN, Side.BASE): Target(self.tree, None, tree=self.tree)}
        files = InputFiles.seen(self.checkout, [config])
        collector = Collector(targets, {config.name: config}, PATH, ProcessExecutor(), room, 1, inputs=files)
        there = workloads.points([config])
        slots = [Slot(Phase.PLAIN, there[number], Side.BASE, block) for block, number in enumerate(numbers)]
        try:
            return [run for run, _ in collector.collect(slots, lambda text: None)]
        finally:
            collector.upkeep.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("tree", "checkout"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkout" / "a b.txt").write_text("of a")
    (tmp_path / "checkout" / "c.txt").write_text("of c")
    (tmp_path / "tree" / "c.txt").write_text("of the revision")
    return Place(tmp_path / "tree", tmp_path / "checkout")


FILES = ("a b.txt", "c.txt")


def test_all_commands_of_a_workload_find_its_input_in_the_checkout(place: Place) -> None:
    config = WorkloadConfig("w", "cat copy more; echo", setup="cat {input} > copy", prepare="cat < {input} > more", inputs=FILES)
    assert [run.output for run in place.run(config, (0, 1))] == [printed("of aof a"), printed("of cof c")]
    assert [run.output for run in place.run(replace(config, command="echo {input}"))] == [printed(".../checkout/a b.txt")]


def test_a_parameter_named_input_is_no_file_of_the_checkout_where_no_inputs_are_configured(place: Place) -> None:
    (run,) = place.run(WorkloadConfig("w", "cat {input}; echo", {"input": ("c.txt",)}))
    assert run.output == printed("of the revision")


@pytest.mark.parametrize("command", ["echo more >> {input}", "rm {input}", "cp {input} x; echo oo f > {input}; mv x {input}"])
def test_a_run_that_changes_its_input_ends_the_measurement(place: Place, command: str) -> None:
    with pytest.raises(InputChangedError, match=r'of w input=c\.txt was changed or removed .* setup = "cp {input} copy"') as raised:
        place.run(WorkloadConfig("w", command, inputs=FILES), (1, 0))
    assert raised.value.slug == "input-changed"
    with pytest.raises(InputChangedError):
        reason_of(raised.value)  # no commit is to blame
    assert (place.checkout / "a b.txt").read_text() == "of a"


def test_an_input_that_somebody_changes_between_runs_ends_the_measurement(place: Place) -> None:
    config = WorkloadConfig("w", "true", inputs=FILES)
    files = InputFiles.seen(place.checkout, [config])
    first, second = workloads.points([config])
    (place.checkout / "c.txt").write_text("another")
    files.require_unchanged(first)
    with pytest.raises(InputChangedError):
        files.require_unchanged(second)
    (place.checkout / "c.txt").unlink()
    with pytest.raises(InputChangedError, match=r"input file c\.txt cannot be read: it is gone"):
        inputs.digest(place.checkout, [config])


def asked(config: Config) -> ComparisonOrder:
    return ComparisonOrder(Revision("v1", "a" * 40, ""), Revision("v2", "b" * 40, ""), ".", config, {})


def test_what_reproduces_a_comparison_names_its_inputs_and_no_folder_of_this_machine(project: Path) -> None:
    config = load(project)
    script = reproduction.script(asked(config))
    assert "must lie there: corpus/large/a b.txt, corpus/small.txt\n" in script
    assert 'inputs = ["corpus/large/a b.txt", "corpus/small.txt"]' in script
    assert str(project) not in script
    (project / reproduction.FILE).write_text(reproduction.configuration_text(config))
    read = load(project, file=project / reproduction.FILE)
    assert read.workloads == config.workloads
    first, second = workloads.points(config.workloads)
    command = reproduction.at_point(asked(config), first)
    assert command is not None
    assert command.endswith("--workload count --param 'input=corpus/large/a b.txt'")
    chosen = load(project, file=project / reproduction.FILE, parameters={"input": (second.parameters["input"],)})
    assert workloads.points(chosen.workloads) == (replace(second, id=0),)


def test_a_pattern_in_the_name_of_an_input_means_that_file_when_it_is_read_again(project: Path) -> None:
    for name in ("[b].txt", "b.txt"):
        (project / "corpus" / name).touch()
    config = load(project, parameters={"input": ("corpus/[[]b].txt",)})
    assert config.workloads[0].inputs == ("corpus/[b].txt",)
    (project / reproduction.FILE).write_text(reproduction.configuration_text(config))
    assert load(project, file=project / reproduction.FILE).workloads == config.workloads


def test_features_of_a_run_are_its_parameters_its_input_and_files_that_its_command_names(tmp_path: Path) -> None:
    tree, checkout = tmp_path / "tree", tmp_path / "checkout"
    for folder in (tree, checkout):
        folder.mkdir()
    for name, size in (("p", 99), ("data-7.txt", 12), ("list", 5), ("7.bin", 6), ("out", 3), ("key 7", 8)):
        (tree / name).write_bytes(b"x" * size)
    (checkout / "in.c").write_text("one\ntwo\nthree")
    (checkout / "in.c.idx").write_bytes(b"1234")
    command = "MODE={mode} ./p --from=data-{n}.txt -k 'key {n}' {input} {input}.idx absent-{n} < list 2> 7.bin | ./p {n}.bin > out"
    config = WorkloadConfig("w", command, {"n": (7,), "mode": ("1000",), "share": (0.5,)}, inputs=("in.c",))
    (point,) = workloads.points([config])
    files = InputFiles.seen(checkout, [config])
    assert runfeatures.known(config, point, tree, files) == {
        "n": 7.0,
        "share": 0.5,
        "bytes": 13.0,
        "lines": 3.0,
        "file size(data-{n}.txt)": 12.0,
        "file size(key {n})": 8.0,
        "file size({input}.idx)": 4.0,
        "file size(list)": 5.0,
        "file size({n}.bin)": 6.0,
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", {"bytes": 0.0, "lines": 0.0}),
        (b"a\n\n", {"bytes": 3.0, "lines": 2.0}),
        (b"a\0\n", {"bytes": 3.0}),
        (b"a" * 8000 + b"\0\n", {"bytes": 8002.0, "lines": 1.0}),
        (b"a\n" * 1_500_000, {"bytes": 3e6, "lines": 1.5e6}),
    ],
)
def test_lines_are_counted_of_text_as_git_tells_it(place: Place, content: bytes, told: dict[str, float]) -> None:
    (place.checkout / "c.txt").write_bytes(content)
    config = WorkloadConfig("w", "./p {input}", inputs=("c.txt",))
    (point,) = workloads.points([config])
    assert runfeatures.known(config, point, place.tree, InputFiles.seen(place.checkout, [config])) == told


def test_a_command_that_only_the_shell_can_read_names_the_files_before_what_is_unclear(place: Place) -> None:
    config = WorkloadConfig("w", "./p c.txt # don't")
    (point,) = workloads.points([config])
    assert runfeatures.known(config, point, place.tree, inputs.NO_INPUTS) == {"file size(c.txt)": 15.0}


def test_what_is_the_same_at_all_points_is_no_feature() -> None:
    found = runfeatures.columns([{"n": 1.0, "same": 5.0, "seldom": 2.0}, {"n": 2.0, "same": 5.0}, {"n": 2.0, "same": 5.0, "seldom": 3.0}])
    assert found.keys() == {"n", "seldom"}
    np.testing.assert_array_equal(found["n"], [1.0, 2.0, 2.0])
    np.testing.assert_array_equal(found["seldom"], [2.0, np.nan, 3.0])
    assert runfeatures.columns([]) == {}


@pytest.mark.integration
def test_files_that_a_run_is_prepared_with_are_features_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "count.c").write_text(COUNT.replace("EXTRA", "'1'"))
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    parameters: dict[str, tuple[float | str, ...]] = {"n": (10, 30, 90)}
    workload = WorkloadConfig("count", "./count made-{n}.txt", parameters, prepare='head -c {n} /dev/zero | tr "\\0" a > made-{n}.txt')
    config = Config(BuildConfig("cc -O1 -o count count.c"), (workload,))
    found = trending.count(Request(folder, ("HEAD",), config, runtimes.lent_to(tmp_path / "cache"), PATH), Silent()).sides[Side.BASE]
    assert found.features["file size(made-{n}.txt)"].tolist() == [10.0, 30.0, 90.0]
