"""Which files runs open, list and ask after, and that comparisons end where none of those that differ is one of them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import runtimes
from java_sources import compile_all, jdk, write
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Rung, Verdict
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.collect.trees import accesses
from perfdiff.collect.trees.accesses import Accesses, Supervisor
from perfdiff.collect.trees.differences import Differences, elsewhere, is_at_work
from perfdiff.collect.trees.watched import Watched
from perfdiff.errors import WorkloadError
from perfdiff.languages.protocol import CompileCommand
from perfdiff.measuring.rounds import Rounds
from perfdiff.outcome import Outcome
from perfdiff.progress import Silent
from perfdiff.records.schema import Side
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.request import Request
from programs import committed, first_two

SAME = {"same.txt": "a\n", "sub/same.txt": "a\n", "run.sh": "exit 0\n"}


@dataclass(frozen=True, slots=True)
class Build:
    """A build by its folder: the tree, and what lies beside it."""

    beside: Path
    commands: tuple[CompileCommand, ...] = ()

    @property
    def tree(self) -> Path:
        return self.beside / "source"


def watched(command: str, folder: Path) -> Accesses | None:
    """Return what a command that runs in a folder meets, None where that is not known."""
    supervisor = Supervisor()
    supervisor.begin()
    subprocess.run(["sh", "-c", supervisor.command(command)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return supervisor.end()


def met(builds: Mapping[Side, Build], command: str, side: Side = Side.HEAD, alike: Mapping[str, float] | None = None) -> set[str]:
    """Return what of the differences between two builds a command meets that runs in the tree of one."""
    differences = Differences.between(builds, alike or {})
    seen = watched(command, builds[side].tree)
    assert seen is not None
    return set(differences.met(side, seen))


@pytest.fixture
def builds(tmp_path: Path) -> dict[Side, Build]:
    """Return two builds with a file that differs, one of the same size, and one that head alone has, in a folder that both have."""
    found = {side: Build(tmp_path / side) for side in Side}
    for side, build in found.items():
        write(build.tree, {**SAME, "differs.txt": f"{side}\n" * (2 if side is Side.HEAD else 1), "size.txt": f"{side}\n"})
    write(found[Side.HEAD].tree, {"sub/new/new.txt": "new\n"})
    return found


def test_byte_code_that_one_side_alone_leaves_is_no_difference_of_what_people_wrote(builds: Mapping[Side, Build]) -> None:
    write(builds[Side.BASE].tree, {"__pycache__/same.pyc": "", "sub/__pycache__/same.pyc": ""})
    differences = Differences.between(builds, {})
    seen = watched("ls . sub; cat __pycache__/same.pyc differs.txt", builds[Side.BASE].tree)
    assert seen is not None
    assert differences.met(Side.BASE, seen) == {"./", "sub/", "__pycache__/same.pyc", "differs.txt"}
    assert differences.written.met(Side.BASE, seen) == {"sub/", "./", "differs.txt"}
    (builds[Side.HEAD].tree / "sub/new/new.txt").unlink()
    (builds[Side.HEAD].tree / "sub/new").rmdir()
    assert Differences.between(builds, {}).written.met(Side.BASE, seen) == {"differs.txt"}


@pytest.mark.parametrize(
    "command",
    ["cat same.txt", "sh run.sh; cat sub/same.txt", "cat same.txt; ls .", "test -e size.txt; cat same.txt", "cd sub && cat same.txt"],
)
def test_runs_that_meet_what_is_the_same_do_the_same(builds: Mapping[Side, Build], command: str) -> None:
    assert met(builds, command) == set()


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("cat same.txt size.txt", {"size.txt"}),
        ("cat sub/../sub/../size.txt", {"size.txt"}),
        ("cat sub/new/new.txt", {"sub/new/new.txt"}),
        ("test -e differs.txt || true", {"differs.txt"}),
        ("(: >>size.txt); cat same.txt", {"size.txt"}),
        ("cp size.txt copy", {"size.txt"}),
        ("ln -s size.txt link && cat link", {"size.txt"}),
        ("ls sub", {"sub/"}),
        ("ls sub/new", {"sub/new", "sub/new/"}),
        ("test -d sub/new || true", {"sub/new"}),
    ],
)
def test_who_opens_lists_or_asks_after_what_differs_may_do_something_else(
    builds: Mapping[Side, Build], command: str, names: set[str]
) -> None:
    assert met(builds, command) == names


@pytest.mark.parametrize("command", ["test -e sub/new/new.txt || true", "cat sub/new/new.txt 2>/dev/null || true", "ls sub"])
def test_a_file_that_is_missing_is_met_by_who_asks_after_it(builds: Mapping[Side, Build], command: str) -> None:
    assert met(builds, command, Side.BASE) != set()


@pytest.mark.parametrize(
    "code",
    [
        "os.access('sub/new/new.txt', 4)",
        "os.path.exists('sub/new')",
        "os.listdir('sub')",
        "os.listdir(os.open('sub', os.O_RDONLY))",
    ],
)
def test_other_calls_of_the_kernel_are_seen_as_well(builds: Mapping[Side, Build], code: str) -> None:
    assert met(builds, f'{sys.executable} -I -S -c "import os; {code}"', Side.BASE) != set()


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("os.rename('run.sh', 'differs.txt')", "differs.txt"),
        ("os.rename('size.txt', 'other')", "size.txt"),
        ("os.link('size.txt', 'other')", "size.txt"),
        ("os.rename('sub', 'other')", "sub/new/new.txt"),
        ("os.access('other', 4); os.symlink('size.txt', 'other'); open('other').read()", "size.txt"),
    ],
)
def test_what_a_run_gives_another_name_is_met_by_both(builds: Mapping[Side, Build], code: str, name: str) -> None:
    assert name in met(builds, f'{sys.executable} -I -S -c "import os; {code}"')


@pytest.mark.parametrize(("command", "ranks"), [("cat same.txt", set()), ("nice -n 7 cat same.txt", {7}), ("chrt -i 0 cat same.txt", {5})])
def test_what_a_run_asks_of_the_scheduler_is_seen(builds: Mapping[Side, Build], command: str, ranks: set[int]) -> None:
    seen = watched(command, builds[Side.HEAD].tree)
    assert seen is not None
    assert seen.ranks == ranks


def test_who_starts_from_a_folder_that_it_opened_is_seen(builds: Mapping[Side, Build]) -> None:
    code = "import os; folder = os.open('sub', os.O_RDONLY); os.chdir('/'); os.access('new/new.txt', 4, dir_fd=folder)"
    assert met(builds, f'{sys.executable} -I -S -c "{code}"', Side.BASE) == {"sub/new/new.txt"}
    code = "import os; folder = os.open('sub', os.O_RDONLY); os.fchdir(folder); open('same.txt').read()"
    assert met(builds, f'{sys.executable} -I -S -c "{code}"') == set()


def test_a_program_that_differs_is_met_where_it_is_run_by_whatever_name(builds: Mapping[Side, Build]) -> None:
    for side, build in builds.items():
        for name in ("program", "interpreter"):
            (build.tree / name).write_bytes(Path("/bin/true").read_bytes() + side.encode())
            (build.tree / name).chmod(0o755)
    assert met(builds, "cat same.txt; ./program") == {"program"}
    script = builds[Side.HEAD].tree / "same.sh"
    script.write_text(f"#!{builds[Side.HEAD].tree}/interpreter\n")
    script.chmod(0o755)
    assert "interpreter" in met(builds, "./same.sh")


def test_links_that_lead_elsewhere_and_rights_that_differ_are_met(builds: Mapping[Side, Build]) -> None:
    for side, target in ((Side.BASE, "same.txt"), (Side.HEAD, "sub/same.txt")):
        (builds[side].tree / "link").symlink_to(target)
    (builds[Side.HEAD].tree / "run.sh").chmod(0o755)
    assert met(builds, "cat link") == {"link"}
    assert met(builds, "test -x run.sh || true") == {"run.sh"}
    assert met(builds, "cat same.txt") == set()


def test_an_empty_folder_that_one_side_lacks_is_met(builds: Mapping[Side, Build]) -> None:
    (builds[Side.HEAD].tree / "sub/empty").mkdir()
    assert met(builds, "test -d sub/empty || true", Side.BASE) == {"sub/empty"}


def test_what_is_alike_may_be_opened_as_often_as_its_engine_does(builds: Mapping[Side, Build]) -> None:
    assert met(builds, "cat size.txt", alike={"size.txt": math.inf}) == set()
    assert met(builds, "cat size.txt; cat size.txt", alike={"size.txt": 1}) == set(), "each of two programs opens it once"
    assert met(builds, "cat size.txt size.txt", alike={"size.txt": 1}) == {"size.txt"}
    assert met(builds, "test -e size.txt; cat same.txt", alike={"size.txt": 0}) == set()
    assert met(builds, "cat size.txt", alike={"size.txt": 0}) == {"size.txt"}


def test_what_lies_beside_a_tree_is_met_where_it_differs_by_more_than_the_path_of_its_build(builds: Mapping[Side, Build]) -> None:
    for side, build in builds.items():
        write(build.beside, {"venv/same.cfg": f"home = {build.beside}\n", "venv/other.cfg": f"{side}\n"})
    assert met(builds, "cat ../venv/same.cfg") == set()
    assert met(builds, "cat ../venv/other.cfg") == {"venv/other.cfg"}


def test_files_outside_of_a_build_are_told_as_both_sides_must_have_the_same(builds: Mapping[Side, Build], tmp_path: Path) -> None:
    place = write(tmp_path / "elsewhere", {"settings": "a\n"})
    seen = watched(f"cat {place}/settings same.txt", builds[Side.HEAD].tree)
    assert seen is not None
    assert str(place / "settings") in elsewhere(builds[Side.HEAD], seen)


def test_a_run_that_does_its_work_elsewhere_shows_nothing_of_its_build(builds: Mapping[Side, Build]) -> None:
    for command, is_one in (("cat /etc/hostname; ls .", False), ("cat same.txt", True)):
        seen = watched(command, builds[Side.HEAD].tree)
        assert seen is not None
        assert is_at_work(builds[Side.HEAD], seen) is is_one


def test_nothing_is_known_of_runs_whose_calls_are_not_reported(builds: Mapping[Side, Build], monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    class Counting(ProcessExecutor):
        def execute(self, command: Command) -> Execution:
            texts.append(command.text)
            return super().execute(command)

    def ran(watching: Watched) -> Accesses | None:
        watching.execute(Command("cat same.txt", builds[Side.HEAD].tree, os.environ, 10, (0,), "head"))
        return watching.accesses

    assert ran(Watched(Counting())) is not None
    monkeypatch.setattr(accesses, "machine", lambda: None)  # as of a processor whose calls have other numbers
    assert ran(Watched(Counting())) is None
    assert len(texts) == 2


def test_a_kernel_that_lets_no_reported_call_go_on_fails_the_run_at_once(
    builds: Mapping[Side, Build], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accesses, "_GOES_ON", 1 << 31)  # as Linux 5.4 refuses the flag
    watching, began = Watched(ProcessExecutor()), time.monotonic()
    with pytest.raises(WorkloadError):
        watching.execute(Command("cat same.txt", builds[Side.HEAD].tree, os.environ, 60, (0,), "head"))
    assert watching.accesses is None
    assert time.monotonic() - began < 30


def test_a_way_to_files_that_names_none_leaves_a_run_unknown(builds: Mapping[Side, Build]) -> None:
    io_uring_setup = "import ctypes; ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120))"
    assert watched(f'{sys.executable} -I -S -c "{io_uring_setup}"', builds[Side.HEAD].tree) is None


def test_a_command_that_fails_while_it_is_watched_fails_as_ever(builds: Mapping[Side, Build]) -> None:
    watching = Watched(ProcessExecutor())
    with pytest.raises(WorkloadError, match="exited 3"):
        watching.execute(Command("exit 3", builds[Side.HEAD].tree, os.environ, 10, (0,), "head"))


def test_a_jvm_opens_the_files_of_the_classes_that_it_loads(tmp_path: Path) -> None:
    java = jdk().home / "bin/java"
    trees = {}
    for side, number in ((Side.BASE, 1), (Side.HEAD, 2)):
        sources = {
            "A.java": "class A { public static void main(String[] a) { if (a.length > 0) System.out.println(B.f()); } }",
            "B.java": f"class B {{ static int f() {{ return {number}; }} }}",
        }
        trees[side] = Build(tmp_path / side)
        compile_all(write(trees[side].tree, sources))
    assert met(trees, f"{java} -Xshare:auto -cp classes A") == set()
    assert met(trees, f"{java} -Xshare:auto -cp classes A more") == {"classes/B.class"}


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
}
"""
HISTORY: tuple[Mapping[str, str], ...] = (
    {"src/Sum.java": SUM, "src/Other.java": "class Other { static int f() { return 1; } }", "pom.xml": "<project/>", "perfdiff.toml": TOML},
    {"pom.xml": "<project></project>", "test/SumTest.java": "class SumTest { void test() { } }"},
    {"src/Other.java": "class Other { static int f() { return 2; } }"},
    {"src/Sum.java": SUM.replace("}\n}", "}\n    static int unused() { return 1; }\n}")},
)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """Return what is found between one revision and the next: the project file and a test, a class that nobody loads, and a method."""
    room = tmp_path_factory.mktemp("openings")
    project, cache = room / "project", runtimes.lent_to(room / "cache")
    committed(project, HISTORY)
    config = configuration.load(project, environment={})
    briefly = replace(config, measure=replace(config.measure, budget_s=1.0))  # no time says anything of what no run calls
    return [
        pipeline.compare(Request(project, pair, how, cache, os.environ), Silent())
        for pair, how in ((("v0", "v1"), config), (("v1", "v2"), briefly), (("v2", "v3"), briefly))
    ]


@pytest.mark.integration
def test_a_project_file_and_a_test_that_no_run_opens_need_no_measuring_but_to_confirm_it(compared: list[Outcome]) -> None:
    findings = compared[0].findings
    assert (findings.verdict, findings.rung) == (Verdict.UNCHANGED, Rung.CODE)
    assert say(findings.sentence).startswith("No regression: nothing that runs differs between base and head, and ")
    assert " pairs of whole runs at sum n=" in say(findings.sentence)
    assert [note.text for note in map(noted, findings.notes) if note.slug == "changes-not-met"] == [
        "no run opens, lists or asks after what differs (pom.xml, test/SumTest.java)"
    ]
    assert "comparing whole runs" not in findings.stages


@pytest.mark.integration
@pytest.mark.parametrize(("pair", "name"), [(1, "Other.f()"), (2, "Sum.unused()")], ids=["a class that nobody loads", "a method"])
def test_of_what_no_run_calls_nothing_is_said(compared: list[Outcome], pair: int, name: str) -> None:
    findings = compared[pair].findings
    assert findings.verdict is Verdict.INCONCLUSIVE
    assert say(findings.sentence).startswith(f"Inconclusive: no workload calls `{name}`, which changed, so nothing is said of the change")


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


class MeasuredError(Exception):
    """Whole runs were to be compared."""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("pair", "is_proved"),
    [
        pytest.param(("v0", "v1"), True, id="tests"),
        pytest.param(("v1", "v2"), False, id="a function that no run calls, in a module that runs import"),
        pytest.param(("v2", "v3"), False, id="a function that runs call"),
    ],
)
def test_python_runs_that_meet_nothing_that_differs_need_no_measuring(
    pair: tuple[str, str], *, is_proved: bool, tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(_self: Rounds) -> None:
        raise MeasuredError

    monkeypatch.setattr(Rounds, "compare_whole_runs", reached)
    committed(tmp_path / "project", PYTHON_HISTORY)
    config = configuration.load(tmp_path / "project", environment={})
    request = Request(tmp_path / "project", pair, config, shared_cache, os.environ)
    if not is_proved:
        with pytest.raises(MeasuredError):
            pipeline.compare(request, Silent())
        return
    findings = pipeline.compare(request, Silent()).findings
    assert findings.rung is Rung.CODE
    assert say(findings.sentence).startswith("No regression: nothing that runs differs between base and head")
    assert [note.slug for note in map(noted, findings.notes) if note.slug.startswith("changes-")] == ["changes-not-met"]


C_TOML = """
build.command = "gcc -O1 -o prog prog.c"
measure.budget_s = 3
[[workload]]
name = "sum"
command = "COMMAND"
parameters.n = [1, 2]
"""
C_PROGRAM = "int main(int count, char **words) { return count == 0 && words[0][0]; }\n"


def asked(room: Path, command: str, head: Mapping[str, str]) -> Request:
    """Return what asks to compare a program in C with one that some files of `head` differ in."""
    history = ({"prog.c": C_PROGRAM, "README.md": "one\n", "perfdiff.toml": C_TOML.replace("COMMAND", command)}, head)
    return first_two(room, history)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("command", "head", "is_proved"),
    [
        ("./prog {n}", {"README.md": "two\n"}, True),
        ("./prog {n}; cat README.md", {"README.md": "two\n"}, False),
        ("./prog {n}; test -s README.md", {"README.md": "twofold\n"}, False),
        ("./prog {n}; test -e absent || true", {"absent": ""}, False),
        ("./prog {n}; name=ELSEWHERE/$(pwd | tr / _); echo >> $name; cat $name", {"README.md": "two\n"}, False),
    ],
    ids=["nobody reads it", "read", "its size is asked", "missing", "files elsewhere have other names on each side"],
)
def test_a_file_that_differs_is_no_matter_only_where_no_run_meets_it(
    command: str, head: Mapping[str, str], *, is_proved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(_self: Rounds) -> None:
        raise MeasuredError

    monkeypatch.setattr(Rounds, "compare_whole_runs", reached)
    (tmp_path / "elsewhere").mkdir()
    request = asked(tmp_path, command.replace("ELSEWHERE", str(tmp_path / "elsewhere")), head)
    if not is_proved:
        with pytest.raises(MeasuredError):
            pipeline.compare(request, Silent())
        return
    assert pipeline.compare(request, Silent()).findings.rung is Rung.CODE


@pytest.mark.integration
def test_a_workload_that_runs_nothing_of_what_was_built_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"workload sum never opened a file of base's build") as caught:
        pipeline.compare(asked(tmp_path, "true {n}", {"README.md": "two\n"}), Silent())
    assert caught.value.slug == "nothing-called"


@pytest.mark.integration
def test_slower_runs_that_call_no_function_and_meet_what_differs_are_the_project_s(tmp_path: Path) -> None:
    loop = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done\n"
    files = {"prog.c": C_PROGRAM, "perfdiff.toml": C_TOML.replace("COMMAND", "sh work.sh {n}"), "work.sh": loop.format(30_000)}
    found = pipeline.compare(first_two(tmp_path, (files, {"work.sh": loop.format(90_000)})), Silent()).findings
    assert (found.verdict, found.met) == (Verdict.REGRESSION, ("work.sh",))
    assert "calls-not-timed" in {note.slug for note in map(noted, found.notes)}
