"""Which files of a tree runs open, and that comparisons end where none of those that differ is one of them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import runtimes
from java_sources import compile_all, jdk, write
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Rung
from perfdiff.collect import openings
from perfdiff.collect.executor import Command, Execution, ProcessExecutor
from perfdiff.collect.inotify import Inotify
from perfdiff.collect.openings import Decisive, Openings, Watching
from perfdiff.measuring.rounds import Rounds
from perfdiff.outcome import Outcome
from perfdiff.progress import Silent
from perfdiff.records.schema import Side
from perfdiff.request import Request
from programs import git

SAME = {"same.txt": "a\n", "sub/same.txt": "a\n", "run.sh": "exit 0\n"}


def opens_nothing(trees: Mapping[Side, Path], command: str, side: Side = Side.HEAD) -> bool:
    """Return whether a command that runs in a side's tree opens something of it, and nothing that differs."""
    watched = Openings(Decisive.of(trees, openings.differing(trees, None))[side])
    watched.begin()
    subprocess.run(["sh", "-c", command], cwd=trees[side], check=True, stdout=subprocess.DEVNULL)
    return watched.end() == frozenset()


@pytest.fixture
def trees(tmp_path: Path) -> dict[Side, Path]:
    """Return two trees with a file that differs, and one that head alone has, in a folder that both have."""
    found = {side: write(tmp_path / side, {**SAME, "differs.txt": f"{side}\n"}) for side in Side}
    write(found[Side.HEAD], {"sub/new/new.txt": "new\n"})
    return found


@pytest.mark.parametrize(
    "command", ["cat same.txt", "sh run.sh; cat sub/same.txt", "cat same.txt; ls .", "test -e differs.txt && cat same.txt"]
)
def test_runs_that_open_what_is_the_same_do_the_same(trees: Mapping[Side, Path], command: str) -> None:
    assert opens_nothing(trees, command)


@pytest.mark.parametrize(
    "command", ["cat same.txt differs.txt", "cat same.txt sub/new/new.txt", "(: >>differs.txt); cat same.txt", "cp differs.txt copy"]
)
def test_a_run_that_opens_a_file_that_differs_may_do_something_else(trees: Mapping[Side, Path], command: str) -> None:
    assert not opens_nothing(trees, command)


@pytest.mark.parametrize("folder", ["sub", "sub/new"])
def test_who_lists_a_folder_sees_the_file_that_one_side_lacks(trees: Mapping[Side, Path], folder: str) -> None:
    assert not opens_nothing(trees, f"cat same.txt; ls {folder}")


def test_a_run_that_opens_nothing_of_its_tree_tells_nothing(trees: Mapping[Side, Path]) -> None:
    assert not opens_nothing(trees, "cat /etc/hostname; ls .")


def test_who_only_goes_to_a_folder_sees_nothing_of_it(trees: Mapping[Side, Path]) -> None:
    code = "import os; folder = os.open('sub', os.O_RDONLY); os.fchdir(folder); open('same.txt').read()"
    assert opens_nothing(trees, f'{sys.executable} -c "{code}"')


def test_a_program_that_differs_is_opened_where_it_is_run(tmp_path: Path) -> None:
    trees = {side: write(tmp_path / side, SAME) for side in Side}
    for side, tree in trees.items():
        (tree / "program").write_bytes(Path("/bin/true").read_bytes() + side.encode())
        (tree / "program").chmod(0o755)
    assert not opens_nothing(trees, "cat same.txt; ./program")


def test_a_file_is_seen_behind_another_name_of_it(trees: Mapping[Side, Path]) -> None:
    (trees[Side.HEAD].parent / "elsewhere").hardlink_to(trees[Side.HEAD] / "differs.txt")
    assert not opens_nothing(trees, "cat same.txt ../elsewhere")


def test_nothing_is_known_of_links_that_differ(trees: Mapping[Side, Path]) -> None:
    for side, target in ((Side.BASE, "same.txt"), (Side.HEAD, "differs.txt")):
        (trees[side] / "link").symlink_to(target)
    assert openings.differing(trees, None) == {}


def test_nothing_is_known_where_the_kernel_gives_no_watches(trees: Mapping[Side, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_self: Inotify, path: Path, _mask: int) -> int:
        raise OSError(errno.ENOSPC, "no watches left", str(path))

    monkeypatch.setattr(Inotify, "add", exhausted)
    ran: list[str] = []

    class Ran(ProcessExecutor):
        def execute(self, command: Command) -> Execution:
            ran.append(command.text)
            return super().execute(command)

    watching = Watching(Ran(), Decisive.of(trees, openings.differing(trees, None))[Side.HEAD])
    watching.execute(Command("cat same.txt", trees[Side.HEAD], os.environ, 10, (0,), "head"))
    assert (ran, watching.opened) == (["cat same.txt"], None)


def test_a_jvm_opens_the_files_of_the_classes_that_it_loads(tmp_path: Path) -> None:
    java = jdk().home / "bin/java"
    trees = {}
    for side, number in ((Side.BASE, 1), (Side.HEAD, 2)):
        sources = {
            "A.java": "class A { public static void main(String[] a) { if (a.length > 0) System.out.println(B.f()); } }",
            "B.java": f"class B {{ static int f() {{ return {number}; }} }}",
        }
        compile_all(write(tmp_path / side, sources))
        trees[side] = tmp_path / side
    assert sorted(openings.differing(trees, None)) == ["B.java", "classes/B.class"]
    assert opens_nothing(trees, f"{java} -Xshare:auto -cp classes A")
    assert not opens_nothing(trees, f"{java} -Xshare:auto -cp classes A more")


TOML = """
build.command = "mkdir -p out && javac -g -d out src/*.java"
measure.budget_s = 5
[java]
[[workload]]
name = "sum"
command = "java -cp out Sum {n}"
parameters.n = [1000, 4000]
"""
SUM = """
public class Sum {
    public static void main(String[] a) {
        long sum = 0;
        System.gc();
        for (int i = 0; i < Integer.parseInt(a[0]); i++) { sum += i; }
        System.out.println(sum);
    }
    static int unused() { return 1; }
}
"""
HISTORY: tuple[Mapping[str, str], ...] = (
    {"src/Sum.java": SUM, "src/Other.java": "class Other { static int f() { return 1; } }", "pom.xml": "<project/>", "perfdiff.toml": TOML},
    {"pom.xml": "<project></project>", "test/SumTest.java": "class SumTest { void test() { } }"},
    {"src/Other.java": "class Other { static int f() { return 2; } }"},
    {"src/Sum.java": SUM.replace("return 1", "return 2")},
)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """Return what is found between one revision and the next: the project file and a test, a class that nobody loads, and a method."""
    room = tmp_path_factory.mktemp("openings")
    project, cache = room / "project", runtimes.lent_to(room / "cache")
    committed(project, HISTORY)
    config = configuration.load(project, environment={})
    return [
        pipeline.compare(Request(project, pair, config, cache, os.environ), Silent()) for pair in (("v0", "v1"), ("v1", "v2"), ("v2", "v3"))
    ]


@pytest.mark.integration
def test_a_project_file_and_a_test_that_no_run_opens_need_no_measuring(compared: list[Outcome]) -> None:
    findings = compared[0].findings
    assert (findings.rung, findings.sentence) == (Rung.CODE, "No regression: nothing that runs differs between base and head")
    assert [note.text for note in findings.notes if note.slug == "changes-not-opened"] == [
        "no run opens a file that differs (pom.xml, test/SumTest.java)"
    ]
    assert "comparing whole runs" not in findings.stages


@pytest.mark.integration
def test_a_class_that_no_run_loads_needs_no_measuring_and_nothing_is_said_of_it(compared: list[Outcome]) -> None:
    findings = compared[1].findings
    assert findings.rung is Rung.CODE
    assert [note.text for note in findings.notes if note.slug == "changes-not-run"] == [
        "no workload calls a function that changed (`Other.f()`), so nothing is said of the changes"
    ]


@pytest.mark.integration
def test_a_method_that_no_run_calls_needs_no_measuring_though_its_class_is_loaded(compared: list[Outcome]) -> None:
    findings = compared[2].findings
    assert (findings.rung, findings.sentence) == (Rung.CODE, "No regression: nothing that runs differs between base and head")
    assert [(note.slug, note.text) for note in findings.notes if note.slug.startswith("changes-")] == [
        ("changes-not-run", "no workload calls a function that changed (`Sum.unused()`), so nothing is said of the changes")
    ]


@pytest.mark.integration
def test_a_method_that_is_called_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class MeasuredError(Exception):
        pass

    def reached(_self: Rounds) -> None:
        raise MeasuredError

    monkeypatch.setattr(Rounds, "compare_whole_runs", reached)
    project, cache = tmp_path / "project", runtimes.lent_to(tmp_path / "cache")
    project.mkdir()
    git(project, "init", "-q")
    for tag, files in (("v0", HISTORY[0]), ("v1", {"src/Sum.java": SUM.replace("sum += i", "sum += i % 7")})):
        write(project, files)
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", tag)
        git(project, "tag", tag)
    config = configuration.load(project, environment={})
    with pytest.raises(MeasuredError):
        pipeline.compare(Request(project, ("v0", "v1"), config, cache, os.environ), Silent())


PYTHON_TOML = """
measure.budget_s = 5
[python]
[[workload]]
name = "sum"
command = "python driver.py {n}"
parameters.n = [1000, 4000]
"""
PLAIN = "def total(n):\n    return sum(range(n))\n\n\ndef mean(n):\n    return total(n) / n\n"
UNCALLED = PLAIN.replace("/ n", "/ max(n, 1)")
CALLED = UNCALLED.replace("range(n)", "list(range(n))")
PYTHON_HISTORY: tuple[Mapping[str, str], ...] = (
    {
        "perfdiff.toml": PYTHON_TOML,
        "driver.py": "import sys\nfrom sums import total\nprint(total(int(sys.argv[1])))\n",
        "sums/__init__.py": "from sums.plain import total\n",
        "sums/plain.py": PLAIN,
        "tests/test_sums.py": "def test_sum():\n    assert True\n",
    },
    {"tests/test_sums.py": "def test_sum():\n    assert 1 + 1 == 2\n", "tests/test_more.py": "def test_more():\n    assert True\n"},
    {"sums/plain.py": UNCALLED},
    {"sums/plain.py": CALLED},
    {"sums/plain.py": CALLED.replace("mean(n)", "mean(n, least=sum(range(9)))")},
)


def committed(project: Path, history: Sequence[Mapping[str, str]]) -> None:
    """Make a project a repository with a tag for each revision, `v0` and on."""
    project.mkdir()
    git(project, "init", "-q")
    for number, files in enumerate(history):
        write(project, files)
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", str(number))
        git(project, "tag", f"v{number}")


class MeasuredError(Exception):
    """Whole runs were to be compared."""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("pair", "slugs"),
    [
        pytest.param(("v0", "v1"), ["changes-not-opened", "changes-not-run"], id="tests"),
        pytest.param(("v1", "v2"), ["changes-not-run"], id="a function that no run calls, in a module that runs import"),
        pytest.param(("v2", "v3"), None, id="a function that runs call"),
        pytest.param(("v3", "v4"), None, id="a default that is worked out as the module is imported"),
    ],
)
def test_python_runs_that_import_nothing_that_differs_need_no_measuring(
    pair: tuple[str, str], slugs: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(_self: Rounds) -> None:
        raise MeasuredError

    monkeypatch.setattr(Rounds, "compare_whole_runs", reached)
    committed(tmp_path / "project", PYTHON_HISTORY)
    config = configuration.load(tmp_path / "project", environment={})
    request = Request(tmp_path / "project", pair, config, runtimes.lent_to(tmp_path / "cache"), os.environ)
    if slugs is None:
        with pytest.raises(MeasuredError):
            pipeline.compare(request, Silent())
        return
    findings = pipeline.compare(request, Silent()).findings
    assert (findings.rung, findings.sentence) == (Rung.CODE, "No regression: nothing that runs differs between base and head")
    assert [note.slug for note in findings.notes if note.slug.startswith("changes-")] == slugs
