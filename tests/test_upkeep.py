"""Whatever a run does to the tree that it ran in, the next one finds the tree as its build left it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, pipeline, seals
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.collect.execution.outputs import shape_of
from perfdiff.collect.runs import caveats, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.trees import pristine, snapshot
from perfdiff.collect.trees.pristine import PristineTree
from perfdiff.collect.trees.snapshot import Status
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.collect.trees.watch import Watch
from perfdiff.config import WorkloadConfig
from perfdiff.errors import WorkloadError
from perfdiff.pipeline import Request
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Run, Side
from perfdiff.report.sentences.catalogue import noted
from programs import git

PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


def state(root: Path) -> dict[str, tuple[object, ...]]:
    """Return all that commands can see of a tree: kinds, modes, times, contents, and which files are links to each other."""
    found: dict[str, tuple[object, ...]] = {}
    names: dict[int, str] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = path.read_bytes(), names.setdefault(status.st_ino, str(path))
        found[str(path)] = status.st_mode, status.st_mtime_ns, content
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with files, folders, links of both kinds, and modes of all sorts."""
    tree = tmp_path / "entry" / "source"
    for name, text in {
        "data/input.txt": "input\n",
        "data/deep/more.txt": "more\n",
        "other/input.txt": "other\n",
        "log.txt": "first\n",
        "closed/in.txt": "",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "tool").write_text("#!/bin/sh\n")
    (tree / "tool").chmod(0o755)
    (tree / "secret").write_text("s\n")
    (tree / "secret").chmod(0o400)
    (tree / "link").symlink_to("data/input.txt")
    (tree / "twin").hardlink_to(tree / "tool")
    for number, path in enumerate(sorted(tree.rglob("*"))):
        os.utime(path, ns=(10**18 + number, 10**18 + number), follow_symlinks=False)
    (tree / "closed").chmod(0o555)
    return tree


@dataclass
class Bench:
    """Runs a workload in a tree, as a comparison does on one side."""

    tree: Path
    room: Path
    upkeep: Upkeep
    executor: ProcessExecutor

    def run(self, workload: WorkloadConfig, points: tuple[int, ...] = (0,), phase: Phase = Phase.PLAIN) -> list[Run]:
        """Return the runs at these points, by their numbers, one after the other."""
        target = Target(self.tree, None, tree=self.tree)
        there = workloads.points([workload])
        environment = {"PATH": PATH, "ROOM": str(self.room)}
        collector = Collector({(phase, Side.BASE): target}, {workload.name: workload}, environment, self.executor, self.room, 1)
        collector.upkeep = self.upkeep
        slots = [Slot(phase, there[number], Side.BASE, block) for block, number in enumerate(points)]
        return [run for run, _ in collector.collect(slots, lambda text: None)]


@pytest.fixture
def bench(tree: Path, tmp_path: Path) -> Bench:
    room = tmp_path / "room"
    room.mkdir()
    return Bench(tree, room, Upkeep(), ProcessExecutor())


@pytest.fixture(params=["told by the kernel", "scanned"])
def knowing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have changes known in one way, then in the other, which is for where the kernel has no watches to give."""
    if request.param == "scanned":

        def refuse(*_: object) -> None:
            raise OSError(28, "no watches")

        monkeypatch.setattr(Watch, "__init__", refuse)
    return str(request.param)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the trees that are scanned from now on."""
    made: list[Path] = []

    def counted(root: Path) -> Mapping[str, Status]:
        made.append(root)
        return snapshot.scan(root)

    monkeypatch.setattr(pristine, "scan", counted)
    return made


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "echo more >> log.txt",
        "echo other > data/input.txt",
        "rm data/input.txt link",
        "rm -rf data",
        "chmod 700 log.txt; chmod 750 data",
        "touch -d @0 log.txt",
        "mkdir -p new/deeper && echo x > new/deeper/file && chmod 0 new",
        "mv data moved && mkdir data && echo x > data/input.txt",
        "mv data t && mv other data && mv t other",
        "mv log.txt renamed.txt && cp renamed.txt log.txt",
        "rm log.txt && mkdir log.txt && echo x > log.txt/in",
        "rm -r data && echo file > data",
        "ln -sfn other link",
        "echo x >> tool",
        "rm twin",
        "chmod 600 secret && echo x >> secret",
        "touch passing && rm passing",
        "mkfifo pipe",
        "if [ -e $ROOM/again ]; then echo x >> data/deep/more.txt; else touch $ROOM/again; rm -rf data; fi",
        'if [ -e $ROOM/again ]; then rm -rf $ROOM/gone; mv "$PWD" $ROOM/gone; mkdir "$PWD"; else touch $ROOM/again; fi',
        "ln data/input.txt hard",
        "ln data/input.txt hard && echo x >> hard  # untold",
        "python3 -c 'import os; os.truncate(\"log.txt\", 1)'  # untold",
        'python3 -c \'import mmap; f = open("log.txt", "r+b"); mmap.mmap(f.fileno(), 0)[:] = b"F" * 6\'',
    ],
)
def test_each_run_finds_the_tree_as_it_was(bench: Bench, tree: Path, text: str, knowing: str, scans: list[Path]) -> None:
    before = state(tree)
    runs = bench.run(WorkloadConfig("w", f"find . -printf '%p %M %T@ %l\\n' | sort; cat log.txt data/input.txt; {text}"), (0, 0, 0))
    assert state(tree) == before
    assert len({run.output for run in runs}) == 1
    is_told = knowing == "told by the kernel" and "# untold" not in text
    assert len(scans) == (2 if is_told else 4), "at first, after the first run, and after the other two where events do not tell"
    bench.upkeep.close()
    assert state(tree) == before
    assert sorted(path.name for path in tree.parent.iterdir()) == ["source", "source.pristine"]


def test_a_thousand_files_are_removed(bench: Bench, tree: Path) -> None:
    before = state(tree)
    bench.run(WorkloadConfig("w", "i=0; while [ $i -lt 1000 ]; do : > other/$i; i=$((i+1)); done"))
    assert state(tree) == before
    (note,) = caveats.trees_written(bench.upkeep.written, {"w"})
    assert "(other/0, other/1, other/10 and 997 more)" in note.text


@pytest.mark.usefixtures("knowing")
@pytest.mark.parametrize(
    "text",
    [
        "rm -rf data && ln -s $ROOM/outside data && cat data/input.txt",
        "ln -sfn $ROOM/outside/input.txt log.txt && cat log.txt",
        "ln -f $ROOM/outside/input.txt log.txt && cat log.txt",
        "mkdir new && ln -s $ROOM/outside new/away && ln -s $ROOM/outside away",
    ],
)
def test_nothing_outside_the_tree_is_touched_through_links_that_a_run_made(bench: Bench, tree: Path, text: str) -> None:
    outside = bench.room / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("input.txt", "deep/more.txt", "own.txt"):
        (outside / name).write_text("precious\n")
    (outside / "deep").chmod(0o700)
    before, there = state(tree), state(outside)
    bench.run(WorkloadConfig("w", text), (0, 0))
    bench.upkeep.close()
    assert state(tree) == before
    assert state(outside) == there


def test_after_a_change_that_the_kernel_did_not_tell_all_is_scanned(tree: Path) -> None:
    kept = PristineTree(tree)
    os.truncate(tree / "log.txt", 1)
    assert kept.changed() == ()
    assert kept.changed(everything=True) == ("log.txt",)
    kept.put_back(["log.txt"])
    os.truncate(tree / "log.txt", 1)
    assert kept.changed() == ("log.txt",)
    kept.close()


def test_events_that_are_lost_are_made_up_for_by_a_scan(tree: Path) -> None:
    kept = PristineTree(tree)
    before = state(tree)
    for number in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) + 1):
        os.utime(tree / ("tool", "secret")[number % 2])  # what is the same as the event before is told once
    (tree / "log.txt").write_text("last of all")
    changed = kept.changed()
    assert set(changed) >= {"log.txt", "tool", "secret"}
    kept.put_back(changed)
    assert state(tree) == before
    kept.close()


def test_what_a_workload_writes_to_is_told_once(bench: Bench) -> None:
    bench.run(WorkloadConfig("w", "echo more >> log.txt; touch out passing; rm passing; mkdir .git; touch .git/index"), (0, 0))
    bench.run(WorkloadConfig("still", "cat log.txt"), (0, 0))
    bench.run(WorkloadConfig("pytest python -m lists", "touch listing"), (0, 0))
    (note,) = caveats.trees_written(bench.upkeep.written, {"w", "still"})
    assert note.slug == "workload-writes-tree"
    assert note.text == "workload w writes into its tree (log.txt, out): what it changes there is undone before each run"


def test_a_workload_that_removes_its_folder_is_told_so_and_the_tree_is_put_back(bench: Bench, tree: Path) -> None:
    before = state(tree)
    with pytest.raises(WorkloadError, match="is gone, where") as caught:
        bench.run(WorkloadConfig("w", 'chmod 755 closed; rm -rf "$PWD"'))
    assert caught.value.slug == "workload-removed-tree"
    assert state(tree) == before


def test_the_tree_is_put_back_after_a_run_that_failed(bench: Bench, tree: Path) -> None:
    before = state(tree)
    with pytest.raises(WorkloadError, match="exited 3"):
        bench.run(WorkloadConfig("w", "rm log.txt; exit 3"))
    assert state(tree) == before


@pytest.mark.parametrize("contents", ["more\n", "FIRST\n"], ids=["of other size", "of the same size and time"])
def test_what_a_killed_perfdiff_left_is_made_good_by_the_next_one(tree: Path, contents: str) -> None:
    before = state(tree)
    PristineTree(tree)  # and never closed
    times = (tree / "log.txt").stat()
    (tree / "log.txt").write_text(contents)
    os.utime(tree / "log.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    (tree / "new").mkdir()
    (tree / "tool").unlink()
    PristineTree(tree).close()
    assert state(tree) == before


def test_a_copy_that_was_cut_short_is_made_anew(tree: Path) -> None:
    before = state(tree)
    unfinished = tree.with_name("source.pristine.unfinished")
    unfinished.mkdir()
    (unfinished / "log.txt").write_text("half")
    PristineTree(tree).close()
    PristineTree(tree).close()
    assert state(tree) == before


def test_what_a_setup_leaves_stays_for_the_runs_of_its_point_alone(bench: Bench, tree: Path) -> None:
    before = state(tree)
    setup = (
        "echo {n} >> $ROOM/setups; echo {n} > input; mkdir made{n}; echo {n} > made{n}/file; rm data/input.txt; echo {n} >> other/input.txt"
    )
    look = "cat input made*/file other/input.txt; ls data; stat -c %Y input; rm -r input made*"
    workload = WorkloadConfig("w", f"{look}; echo {{n}}", {"n": (1, 2, 3)}, setup=setup)
    runs = bench.run(workload, (0, 1, 0, 2, 2, 1, 0))
    outputs = [run.output for run in runs]
    assert outputs[0] == outputs[2] == outputs[6]
    assert outputs[1] == outputs[5]
    assert outputs[3] == outputs[4]
    assert len(set(outputs)) == 3
    assert (bench.room / "setups").read_text().split() == ["1", "2", "3"]
    bench.upkeep.close()
    assert state(tree) == before
    assert sorted(path.name for path in tree.parent.iterdir()) == ["source", "source.pristine"]


def test_points_of_one_number_have_setups_of_their_own_where_these_differ(bench: Bench) -> None:
    outputs = [bench.run(WorkloadConfig(name, "ls; cat input", setup=f"echo {name} > input"))[0].output for name in ("a", "b", "a")]
    assert outputs[0] == outputs[2] != outputs[1]


def test_runs_keep_what_files_their_setup_left_but_for_programs(bench: Bench) -> None:
    setup = "echo {n} > input; pwd > place; mkdir made; echo {n} > made/file; cp /bin/true program; rm log.txt"
    runs = bench.run(WorkloadConfig("w", "echo {n} >> input", {"n": (1, 2)}, setup=setup), (0, 1, 0))
    inputs = [run.behaviour.inputs or {} for run in runs if run.behaviour]
    assert [sorted(files) for files in inputs] == [["input", "made/file", "place"]] * 3
    assert inputs[0] == inputs[2]
    assert [files["input"].exact for files in inputs[:2]] == [shape_of(b"1\n").exact, shape_of(b"2\n").exact]
    assert inputs[0]["place"].exact == shape_of(b".../source\n").exact


def test_runs_without_a_setup_have_no_inputs_of_one(bench: Bench) -> None:
    [run] = bench.run(WorkloadConfig("w", "echo {n}", {"n": (1,)}))
    assert run.behaviour
    assert run.behaviour.inputs is None


def test_a_run_is_prepared_each_time_and_that_is_neither_timed_nor_told(bench: Bench, tree: Path) -> None:
    before = state(tree)
    workload = WorkloadConfig(
        "w", "cat input; echo run >> input", {"n": (7,)}, prepare="echo {n} >> $ROOM/made; sleep 0.3; echo {n} >> input"
    )
    runs = bench.run(replace(workload, command=f"{workload.command}; echo {{n}}"), (0, 0, 0))
    assert (bench.room / "made").read_text().split() == ["7", "7", "7"]
    assert len({run.output for run in runs}) == 1
    assert min(run.wall_ns for run in runs) < 0.3e9
    assert bench.upkeep.written == {}
    assert state(tree) == before


@pytest.mark.parametrize(("key", "slug"), [("setup", "setup-failed"), ("prepare", "prepare-failed")])
def test_a_setup_or_prepare_that_fails_ends_the_comparison_and_leaves_nothing(bench: Bench, tree: Path, key: str, slug: str) -> None:
    before = state(tree)
    workload = replace(WorkloadConfig("w", "true", exit_codes=(0, 4)), **{key: "touch left; echo no input >&2; exit 4"})
    with pytest.raises(WorkloadError, match=f"exited 4 \\({key} of base, w\\)") as caught:
        bench.run(workload)
    assert caught.value.slug == slug
    assert "no input" in caught.value.detail
    assert state(tree) == before


def test_a_prepare_that_hangs_is_ended_after_the_time_of_a_run(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match="prepare of base") as caught:
        bench.run(WorkloadConfig("w", "true", timeout_s=0.3, prepare="sleep 60"))
    assert caught.value.slug == "workload-timeout"


class Counting(ProcessExecutor):
    """Counts what is executed."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def execute(self, command: Command) -> Execution:
        self.commands.append(command)
        return super().execute(command)


@pytest.mark.parametrize(("phase", "made"), [(Phase.PLAIN, 8), (Phase.TIMED, 8), (Phase.SURVEY, 4), (Phase.COUNTED, 4)])
def test_warm_ups_are_made_once_for_each_point_and_thrown_away(bench: Bench, phase: Phase, made: int) -> None:
    bench.executor = Counting()
    runs = bench.run(WorkloadConfig("w", "echo {n} >> log.txt", {"n": (1, 2)}, warmup=2), (0, 1, 0, 1), phase)
    assert [run.point for run in runs] == [0, 1, 0, 1]
    assert [run.id for run in runs] == [0, 1, 2, 3]
    assert len(bench.executor.commands) == made
    assert len({(run.point, run.output) for run in runs}) == 2


def test_variables_that_a_setup_or_prepare_names_are_among_what_runs_depend_on() -> None:
    config = WorkloadConfig("w", "./w $A", setup="./s $B", prepare="./p ${C}")
    assert workloads.keyed([config], dict.fromkeys("ABCD", "1")) == {"A": "1", "B": "1", "C": "1"}


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static volatile long sum;
static void add(long n) { for (long i = 0; i < n; i++) sum += ROUNDS * i; }
int main(int argc, char **argv) {
    char line[64];
    long lines = 0;
    FILE *log = fopen("run.log", "a+");
    fprintf(log, "one more\\n");
    rewind(log);
    while (fgets(line, sizeof line, log)) { lines++; add(atol(argv[1])); }
    fclose(log);
    printf("%ld\\n", lines);
    fflush(stdout);
    return argc - 2;
}
"""
TOML = """
build.command = "gcc -O2 -o add add.c"
counters.software = false
measure.budget_s = 2
[[workload]]
name = "add"
command = 'if [ -n "$HOLD" ]; then ./add {n} && echo $$ > "$HOLD" && sleep 60; fi; ./add {n}'
parameters.n = [1000, 3000]
runs = 4
"""


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., Request]:
    """Return what asks to compare two revisions of a program that appends to a log and reads it."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(TOML)
    for rounds in (1, 2):
        (folder / "add.c").write_text(PROGRAM.replace("ROUNDS", str(rounds)))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"rounds {rounds}")
        git(folder, "tag", f"v{rounds}")
    config = configuration.load(folder, environment={})
    cache = runtimes.lent_to(tmp_path / "cache")
    return lambda **variables: Request(folder, ("v1", "v2"), config, cache, {"PATH": os.environ["PATH"]} | variables)


@pytest.mark.integration
def test_a_program_that_reads_what_it_wrote_does_the_same_in_every_run_also_after_perfdiff_was_killed(
    asked: Callable[..., Request], tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    arguments = ["-q", "--repo", str(tmp_path / "project"), "--cache", str(tmp_path / "cache"), "v1", "v2"]
    root = Path(__file__).parent.parent
    asked()
    with subprocess.Popen(
        [sys.executable, "-m", "perfdiff", *arguments],
        env=os.environ | {"HOLD": str(hold), "PYTHONPATH": str(root)},
        stderr=subprocess.PIPE,
    ) as killed:
        deadline = time.monotonic() + 120
        while not (hold.exists() and hold.read_text().strip()):
            assert time.monotonic() < deadline
            assert killed.poll() is None
            time.sleep(0.05)
        killed.kill()
    os.killpg(int(hold.read_text()), signal.SIGKILL)
    assert list((tmp_path / "cache" / "trees").glob("*/source/run.log"))

    outcome = pipeline.compare(asked(), Silent())
    assert not list((tmp_path / "cache" / "trees").glob("*/source/run.log"))
    assert outcome.experiment is not None
    for point in (0, 1):
        assert len({run.output for run in outcome.experiment.runs if run.point == point}) == 1
    (note,) = (note for note in map(noted, outcome.findings.notes) if note.slug == "workload-writes-tree")
    assert "workload add writes into its tree (run.log)" in note.text


def test_folders_that_deny_writing_are_put_back(bench: Bench, tree: Path) -> None:
    before = state(tree)
    bench.run(WorkloadConfig("w", "chmod 755 closed; rm closed/in.txt; touch closed/new; chmod 500 closed data"))
    assert state(tree) == before
    assert stat.S_IMODE((tree / "closed").stat().st_mode) == 0o555


def test_copy_whose_programs_were_changed_is_not_what_a_tree_is_put_back_to(tmp_path: Path) -> None:
    tree = tmp_path / "entry" / "source"
    tree.mkdir(parents=True)
    (tree / "prog").write_text("#!/bin/sh\necho as built\n")
    (tree / "prog").chmod(0o755)
    seals.close(tree.parent)
    PristineTree(tree).close()
    copied = tree.parent / "source.pristine" / "prog"
    copied.write_text("#!/bin/sh\necho altered!\n")
    PristineTree(tree).close()
    assert (tree / "prog").read_text() == copied.read_text() == "#!/bin/sh\necho as built\n"


def test_a_run_tells_what_it_wrote_in_its_tree_beside_what_prepare_left(bench: Bench) -> None:
    command = "echo result > out-1234.txt; mkdir made; echo x > made/part; rm data/input.txt"
    [run] = bench.run(WorkloadConfig("w", command, prepare="echo 1 > prepared"))
    assert run.behaviour is not None
    assert run.behaviour.files is not None
    assert run.behaviour.files["out-0.txt"] == shape_of(b"result\n")
    assert run.behaviour.files["made/part"] == shape_of(b"x\n")
    assert "data/input.txt" not in run.behaviour.files


def test_runs_that_follow_each_other_find_what_those_before_left_and_the_tree_is_put_back_at_the_end(bench: Bench, tree: Path) -> None:
    before = state(tree)
    command = 'echo $LINE >> log.txt; cp log.txt "$ROOM/log"'
    with bench.upkeep.left_as_runs_leave():
        bench.run(WorkloadConfig("w", command.replace("$LINE", "one")))
        bench.run(WorkloadConfig("v", command.replace("$LINE", "two"), prepare="echo prepared >> log.txt"))
    assert (bench.room / "log").read_text() == "first\none\nprepared\ntwo\n"
    assert state(tree) == before


def test_what_runs_that_follow_each_other_left_is_none_of_a_setup_among_them(bench: Bench) -> None:
    reads = WorkloadConfig("reads", 'cat log.txt ready > "$ROOM/read"', setup="echo ready > ready")
    with bench.upkeep.left_as_runs_leave():
        bench.run(WorkloadConfig("writes", "echo more >> log.txt"))
        bench.run(reads)
    bench.run(reads)
    assert (bench.room / "read").read_text() == "first\nready\n"


def test_a_check_gets_what_a_run_printed_and_sees_what_it_wrote(bench: Bench) -> None:
    check = 'grep -qx "sum {n}" && test -e out && echo checked >> $ROOM/checks'
    workload = WorkloadConfig("w", "echo sum {n}; touch out", {"n": (3, 5)}, check=check)
    assert len(bench.run(workload, (0, 1))) == 2
    assert (bench.room / "checks").read_text() == "checked\n" * 2
    assert sorted(path.name for path in bench.room.iterdir()) == ["checks"]


def test_a_run_that_its_check_refuses_has_failed(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match=r"'grep -q sum' exited 1 \(check of base, w\)") as raised:
        bench.run(WorkloadConfig("w", "echo error", check="grep -q sum"))
    assert raised.value.slug == "check-failed"


DIG = """
import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
"""


@pytest.mark.usefixtures("knowing")
def test_folders_that_lie_deeper_than_functions_call_themselves_are_removed(bench: Bench, tree: Path) -> None:
    before = state(tree)
    (bench.room / "dig.py").write_text(DIG)
    [run] = bench.run(WorkloadConfig("dig", f"{sys.executable} {bench.room}/dig.py"))
    assert run.behaviour is not None
    assert not (tree / "d").exists()
    assert state(tree) == before
