"""Any language behind the seam: a made-up one goes through the whole pipeline, beside the pack of C."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.build.built import Built
from perfdiff.config import BuildConfig
from perfdiff.languages.c.pack import C
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import CodeComparison, CompileCommand, Counterpart, FunctionDefinition, PlainBuild, Program
from perfdiff.outcome import Outcome
from perfdiff.progress import Silent
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Change, Phase, Side
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.request import Request
from programs import git
from toys import Toys

pytestmark = pytest.mark.integration

SCRIPT = """\
def main
each work
call rest
def work
spend ROUNDS
def rest
spend 20000
"""
# What a run finds in its environment shows whether both runs of a pair have drawn the same.
TOML = """
build.command = "true"
measure.budget_s = 5
[[workload]]
name = "toys"
command = "toy program.toy {n} && echo drawn ${TOY_DRAW:?}"
parameters.n = [200, 400, 800, 1600]
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return what is found between two revisions of which one function spends four times as much."""
    room = tmp_path_factory.mktemp("toys")
    project, cache = room / "project", runtimes.lent_to(room / "cache")
    project.mkdir()
    git(project, "init", "-q")
    (project / "perfdiff.toml").write_text(TOML)
    for tag, rounds in (("v1", 2_000), ("v2", 8_000)):
        (project / "program.toy").write_text(SCRIPT.replace("ROUNDS", str(rounds)))
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", tag)
        git(project, "tag", tag)
    config = configuration.load(project, environment={})
    asked = Request(project, ("v1", "v2"), replace(config, build=BuildConfig("")), cache, os.environ)
    return pipeline.compare(asked, Silent(), packs=Packs(C(cache / "units"), (Toys(cache),)))


def test_the_guilty_function_is_named_as_its_language_names_it(found: Outcome) -> None:
    assert found.findings.verdict is Verdict.REGRESSION
    first = found.findings.functions[0]
    assert (first.info.name, first.info.language, first.info.file, first.rank) == ("work", "toy", "program.toy", 1)
    assert say(found.findings.sentence).startswith("Regression: `work`")


def test_what_calls_are_given_is_read(found: Outcome) -> None:
    calls = found.samples(found.findings.functions[0].info.id, Side.HEAD)
    assert calls is not None
    assert [feature.name for feature in calls.features] == ["arg.n", "n"]  # the second one is the workload's parameter
    assert (calls.values[:, 0] == calls.values[:, 1]).all()


def test_what_a_workplace_tells_reaches_the_report(found: Outcome) -> None:
    assert "built" in [note.text.strip() for note in map(noted, found.findings.notes) if note.slug == "toy"]


def test_a_program_that_nothing_is_linked_for_is_not_said_to_be_linked(found: Outcome) -> None:
    assert "comparing whole runs" in found.findings.stages
    assert "linking in other layouts" not in found.findings.stages


def test_runs_of_a_pair_draw_the_same_and_other_pairs_something_else(found: Outcome) -> None:
    assert found.experiment is not None
    drawn: dict[tuple[int, int], dict[Side, str]] = {}
    for run in found.experiment.runs:
        if run.phase is Phase.TIMED:
            drawn.setdefault((run.point, run.block), {})[run.side] = run.output
    assert drawn
    assert all(pair[Side.BASE] == pair[Side.HEAD] for pair in drawn.values())
    assert len({pair[Side.BASE] for pair in drawn.values()}) > 1


@dataclass(frozen=True)
class Said(CodeComparison):
    """What is said of the code of a pack's programs, whatever its functions are."""

    has_same_code: bool = False

    def is_same(self, pair: Counterpart) -> bool:
        """Return it."""
        return self.has_same_code


@dataclass(frozen=True)
class Telling:
    """A pack of which only the name matters, and what it says of two builds; `handed` are the files that it was told to differ."""

    name: str
    said: CodeComparison
    handed: list[str] = field(default_factory=list)

    def same_code(self, _base: PlainBuild, _head: PlainBuild, _pairs: object, differing: Mapping[str, object]) -> CodeComparison:
        """Say so."""
        self.handed.extend(differing)
        return self.said


def compiled_build(tree: Path) -> Built:
    """Return a build in which something was compiled."""
    return Built(Phase.PLAIN, tree, tree, (CompileCommand(tree / "a.c", tree, "cc", (), cplusplus=False),), (), (), 0.0)


def definition(name: str, language: str) -> FunctionDefinition:
    """Return a function of which only name and language matter."""
    none: frozenset[str] = frozenset()
    text = f"{name}() {{}}"
    return FunctionDefinition(
        name, name, (name,), "file", 1, 0, len(text) - 1, len(text), text, "()", "", none, none, none, none, (), (), None, language=language
    )


@pytest.mark.parametrize(
    ("is_same", "change", "measured"),
    [
        pytest.param(True, Change.UNCHANGED, ["work"], id="the same library"),
        pytest.param(False, Change.UNCHANGED, ["work", "scan"], id="another library"),
        pytest.param(True, Change.AFFECTED, ["work", "scan"], id="a library that meets other data"),
    ],
)
def test_a_compiled_library_that_is_the_same_is_part_of_what_calls_it(
    is_same: bool, change: Change, measured: list[str], tmp_path: Path
) -> None:
    toy, compiled = definition("work", "toy"), definition("scan", "c")
    pairs = [Counterpart(toy, toy, Change.CHANGED, (), ()), Counterpart(compiled, compiled, change, (), ())]
    built, c, other = compiled_build(tmp_path), Telling("c", Said(has_same_code=is_same)), Telling("toy", Said())
    mixed, alone = Packs(c, (other,)), Packs(c)
    assert [pair.shown.name for pair in mixed.compared(pairs, mixed.same_code(built, built, pairs))] == measured
    assert alone.compared(pairs[1:], alone.same_code(built, built, pairs[1:])) == tuple(pairs[1:])


def test_what_is_the_same_code_is_asked_of_the_pack_of_each_function(tmp_path: Path) -> None:
    toy, compiled = definition("work", "toy"), definition("scan", "c")
    pairs = [Counterpart(toy, toy, Change.UNCHANGED, (), ()), Counterpart(compiled, compiled, Change.CHANGED, (), ())]
    built, none = compiled_build(tmp_path), CodeComparison()
    code = Packs(Telling("c", none), (Telling("toy", none),)).same_code(built, built, pairs)
    assert [(code.is_same(pair), code.is_unlike(pair)) for pair in pairs] == [(True, False), (False, True)]


def test_what_is_proved_of_files_is_joined_and_what_lies_elsewhere_counts_for_all(tmp_path: Path) -> None:
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.so").write_text(side)
    builds = [compiled_build(tmp_path / side) for side in ("base", "head")]
    compiled = Telling("c", CodeComparison(alike=frozenset({"a.so"}), in_tree=True))
    scripts = CodeComparison(frozenset({"a.pyc"}), frozenset({"b.pyc"}), frozenset({"a.py"}), in_tree=True)
    code = Packs(compiled, (Telling("toy", scripts),)).same_code(*builds, ())
    assert (code.alike, code.by_function, code.compiled) == ({"a.so", "a.pyc"}, {"b.pyc"}, {"a.py"})
    assert (code.in_tree, compiled.handed) == (True, ["a.so"])
    elsewhere = Packs(compiled, (Telling("toy", CodeComparison()),)).same_code(*builds, ())
    assert not elsewhere.in_tree


class Unread(Toys):
    """The pack where no script can be read."""

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        return Program({}, {}, tuple(SkippedFunction(path.name, path.name, "no toy") for path in sorted(built.tree.glob("*.toy"))))


@dataclass(frozen=True)
class Tree:
    """As much of a build as an index reads."""

    tree: Path
    commands: tuple[CompileCommand, ...] = ()


def test_what_cannot_be_read_is_a_problem_where_the_sides_have_it_in_different_words(tmp_path: Path) -> None:
    builds = [Tree(tmp_path / side) for side in ("base", "head")]
    for build, text in zip(builds, ("one", "another"), strict=True):
        build.tree.mkdir()
        (build.tree / "same.toy").write_text("garbage")
        (build.tree / "differs.toy").write_text(text)
    (builds[0].tree / "gone.toy").write_text("garbage")
    packs = Packs(C(tmp_path / "units"), (Unread(tmp_path),))
    told = [[each.file for each in packs.index(build, depth=2, others=builds).problems] for build in builds]  # type: ignore[arg-type]
    assert told == [["differs.toy", "gone.toy"], ["differs.toy"]]
    assert len(packs.index(builds[0], depth=2).problems) == 3  # type: ignore[arg-type]
