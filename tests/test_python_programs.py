"""Every fixture program in Python, from git to verdict: the right answer, the guilty function first, the class on both sides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import MeasureConfig
from perfdiff.languages.python.index import index
from perfdiff.languages.python.matching import match
from perfdiff.progress import Silent
from perfdiff.records.schema import Change
from perfdiff.report.sentences.catalogue import noted
from programs import PYTHON, Case, cases, environment, repository
from test_programs import judge, longer, named, summary

pytestmark = pytest.mark.integration
BUDGET_S = 12.0  # for whole runs, each of which starts an interpreter
CASES = cases(PYTHON)
# Growth, a cause by counts, and a package of somebody else's. All programs are compared by `scripts/bench python`.
HERE = frozenset({"deepcopy", "list-membership", "dependency-upgraded"})


def requested(case: Case, folder: Path, cache: Path) -> pipeline.Request:
    checkout = repository(case, folder)
    config = configuration.load(checkout, environment={})
    config = replace(config, counters=replace(config.counters, software=case.is_counted), measure=MeasureConfig(budget_s=BUDGET_S))
    return pipeline.Request(checkout, ("base", "head"), config, cache, environment())


def problems(case: Case, findings: Findings) -> Iterator[str]:
    """Yield what the expectations that only Python programs have say of a finding that does not meet them."""
    expected = case.expected
    if "dependency" in expected and not any(expected["dependency"] in note.text for note in map(noted, findings.notes)):
        yield f"no note names the dependency {expected['dependency']!r}"
    if "shows" in expected and named(findings, expected["shows"]).verdict is Verdict.IMPROVEMENT:
        yield f"{expected['shows']} is said to be faster"
    if "mix" in expected and named(findings, expected["mix"]).verdict is Verdict.REGRESSION:
        yield f"{expected['mix']} is said to be slower at equal inputs"


@pytest.mark.parametrize("case", [case for case in CASES if case.name in HERE], ids=lambda case: case.name)
def test_a_known_change_is_judged_right(case: Case, shared_cache: Path, tmp_path: Path) -> None:
    """With the runs that are configured, or where the machine was disturbed meanwhile, with four times as many; but never a false alarm."""
    request = requested(case, tmp_path / "program", shared_cache)
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is not Verdict.REGRESSION or case.expected["verdict"] == findings.verdict, summary(findings)
    try:
        judge(case, findings)
    except AssertionError:
        findings = pipeline.compare(longer(request), Silent()).findings
        judge(case, findings)
    assert not list(problems(case, findings)), summary(findings)


def test_every_program_is_there_with_one_known_change() -> None:
    assert len(CASES) == 24
    assert sum(case.expected["verdict"] == "unchanged" for case in CASES) == 4  # without an effect


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if "." in case.expected.get("guilty", "") and "dependency" not in case.expected and not case.name.startswith("cython")
    ],
    ids=lambda case: case.name,
)
def test_the_guilty_function_is_one_whose_source_differs(case: Case) -> None:
    base, head = (index(case.folder / side, depth=2) for side in ("base", "head"))
    changed = {pair.head.name for pair in match(base, head) if pair.head and pair.change is Change.CHANGED}
    assert case.expected["guilty"] in changed


SYSTEM = """\
[build-system]
requires = ["scikit-build-core", "Cython"]
build-backend = "scikit_build_core.build"
[project]
name = "words"
version = "1.0"
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(words LANGUAGES C)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
add_custom_command(OUTPUT counting.c DEPENDS src/words/counting.pyx
  COMMAND Python::Interpreter -m cython ${CMAKE_CURRENT_SOURCE_DIR}/src/words/counting.pyx --output-file counting.c)
python_add_library(counting MODULE counting.c WITH_SOABI)
install(TARGETS counting DESTINATION words)
"""


ONCE = """\
[[workload]]
name = "report"
command = "python bench.py 1000"
runs = 2
"""


@pytest.mark.parametrize("files", [{}, {"pyproject.toml": SYSTEM, "CMakeLists.txt": CMAKE}], ids=["meson-python", "scikit-build-core"])
def test_functions_of_cython_carry_probes_wherever_a_back_end_has_their_c_made(
    files: dict[str, str], shared_cache: Path, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.name == "cython-search")
    checkout = repository(case, tmp_path / "program")
    for name, text in (files | {"perfdiff.toml": ONCE}).items():
        (checkout / name).write_text(text)
    found = tmp_path / "annotations.json"
    asked = ["annotate", "--function", "words.counting.Counter.place", "--metric", "wall_ns", "--format", "json", "-o", str(found)]
    command = [sys.executable, "-m", "perfdiff", *asked, "--cache", str(shared_cache)]
    subprocess.run(command, cwd=checkout, env=environment(), check=True, capture_output=True)
    (one,) = json.loads(found.read_text())["annotations"]
    assert one["function"] == "words.counting.Counter.place"
    assert one["n"] > 1000
