"""The byte code that runs find is what earlier runs of the program left, whatever was compiled for its tree."""

from __future__ import annotations

import compileall
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs import caveats, workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.collect.trees.watch import Watch
from perfdiff.config import WorkloadConfig
from perfdiff.records.schema import Phase, Side

LEAVES, LEAVES_NONE = "env -u PYTHONDONTWRITEBYTECODE", "PYTHONDONTWRITEBYTECODE=1"
LOOK = "echo $(ls a/__pycache__ 2>/dev/null | grep -c pyc) >> $ROOM/seen"


@dataclass
class Program:
    """A tree of modules that was compiled, and what runs commands there."""

    tree: Path
    room: Path
    byte_code: tuple[str, ...]
    upkeep: Upkeep = field(default_factory=Upkeep)

    def run(self, command: str, count: int = 1, **chores: str) -> None:
        """Make some runs, one after the other."""
        target = Target(self.tree, None, tree=self.tree, byte_code=self.byte_code)
        workload = WorkloadConfig("w", command, **chores)
        environment = {"PATH": os.environ["PATH"], "ROOM": str(self.room)}
        collector = Collector({(Phase.PLAIN, Side.BASE): target}, {"w": workload}, environment, ProcessExecutor(), self.room / "runs", 1)
        collector.upkeep = self.upkeep
        [point] = workloads.points([workload])
        list(collector.collect([Slot(Phase.PLAIN, point, Side.BASE, block) for block in range(count)], lambda _: None))

    @property
    def seen(self) -> list[int]:
        """Return how many files of byte code each run found."""
        return [int(count) for count in (self.room / "seen").read_text().split()]

    @property
    def contents(self) -> Mapping[Path, bytes]:
        """Return the contents of all files."""
        return {path: path.read_bytes() for path in sorted(self.tree.rglob("*")) if path.is_file()}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    tree, room = tmp_path / "entry" / "source", tmp_path / "room"
    (tree / "a").mkdir(parents=True)
    (room / "runs").mkdir(parents=True)
    for name in ("used", "late", "idle"):
        (tree / "a" / f"{name}.py").write_text("x = 1\n")
    compileall.compile_dir(tree, quiet=2)
    return Program(tree, room, tuple(path.relative_to(tree).as_posix() for path in tree.rglob("*.pyc")))


def importing(how: str, module: str = "used") -> str:
    return f"{LOOK}; {how} {sys.executable} -c 'import a.{module}'"


@pytest.mark.parametrize("watches", [True, False], ids=["watched", "scanned"])
@pytest.mark.parametrize(("how", "seen"), [(LEAVES, [0, 1, 1, 1]), (LEAVES_NONE, [0, 0, 0])], ids=["leaves", "leaves none"])
def test_runs_find_the_byte_code_that_one_before_them_left(
    program: Program, how: str, seen: list[int], watches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "no watches")

    if not watches:
        monkeypatch.setattr(Watch, "__init__", refuse)
    as_built = program.contents
    program.run(f"{importing(how)}; mkdir -p a/__pycache__; echo > a/__pycache__/stray; echo > a/stray", count=3)
    assert program.seen == seen
    assert program.upkeep.left_in(program.tree) == {"a/used.py"} if seen[-1] else not program.upkeep.left
    assert not [*program.tree.rglob("stray")]
    assert "a/stray" in program.upkeep.written["w"]
    assert not [path for path in program.upkeep.written["w"] if path.endswith(".pyc")]
    program.upkeep.close()
    assert program.contents == as_built


def test_what_another_command_imports_is_left_by_its_own_first_run_and_stays_beside_what_a_setup_makes(program: Program) -> None:
    program.run(importing(LEAVES), count=2)
    program.run(importing(LEAVES, "late"), count=2, setup="echo > made")
    program.run(importing(LEAVES), count=2)
    assert program.seen == [0, 1, 1, 1, 2, 2, 2, 2]
    assert program.upkeep.left_in(program.tree) == {"a/used.py", "a/late.py"}


def test_a_build_that_compiled_nothing_for_runs_keeps_all_that_it_left(program: Program) -> None:
    program.byte_code = ()
    program.run(importing(LEAVES), count=2)
    assert program.seen == [3, 3]
    assert program.upkeep.left_in(program.tree) is None


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        ({"a.py"}, set(), "runs of head leave no byte code of modules that they import, as those of base do (a.py)"),
        (set(), {"a.py"}, "runs of base leave no byte code"),
        ({"a.py"}, {"b.py"}, ""),
        (set(), set(), ""),
        ({"a.py"}, None, ""),
    ],
)
def test_a_side_whose_runs_leave_no_byte_code_is_told(base: set[str] | None, head: set[str] | None, told: str) -> None:
    notes = caveats.byte_code_left({Side.BASE: base, Side.HEAD: head})
    assert [note.slug for note in notes] == ["byte-code-not-left"] * bool(told)
    assert all(note.text.startswith(told) for note in notes)


def test_nothing_is_told_of_a_side_that_is_not_compared() -> None:
    assert caveats.byte_code_left({Side.BASE: {"a.py"}}) == ()
