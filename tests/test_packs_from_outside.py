"""A language whose pack is a package beside perfdiff, found by its entry point: `perfdiff` serves it as it serves its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import runtimes
from perfdiff.languages import installed
from programs import git
from toys import installed_in

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
TOML = """
measure.budget_s = 5
[[workload]]
name = "toys"
command = "toy program.toy {n}"
parameters.n = [200, 400, 800, 1600]
"""


@dataclass(frozen=True)
class Ground:
    """A checkout with two revisions of a program of toys, and the environment of a machine that has the pack."""

    project: Path
    cache: Path
    environment: dict[str, str]

    def perfdiff(self, *arguments: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        command = [sys.executable, "-m", "perfdiff", *arguments]
        environment = {**self.environment, "PERFDIFF_CACHE": str(self.cache), **(variables or {})}
        return subprocess.run(command, cwd=self.project, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Return a checkout of which one function spends four times as much in head."""
    room = tmp_path_factory.mktemp("outside")
    project = room / "project"
    project.mkdir()
    git(project, "init", "-q")
    (project / "perfdiff.toml").write_text(TOML)
    for tag, rounds in (("v1", 2_000), ("v2", 8_000)):
        (project / "program.toy").write_text(SCRIPT.replace("ROUNDS", str(rounds)))
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", tag)
        git(project, "tag", tag)
    path = os.pathsep.join((installed_in(room / "site"), str(Path(__file__).parent.parent)))
    return Ground(project, runtimes.lent_to(room / "cache"), {**os.environ, "PYTHONPATH": path})


def test_a_comparison_builds_runs_and_names_the_function_that_changed(ground: Ground) -> None:
    done = ground.perfdiff("v1", "v2", "--format", "json")
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)
    first = findings["functions"][0]
    assert (findings["verdict"], first["name"], first["language"], first["file"]) == ("regression", "work", "toy", "program.toy")
    assert "a Toy project, as program.toy tells: each revision runs as it lies" in done.stderr


def test_its_section_of_the_configuration_is_read_and_checked(ground: Ground) -> None:
    done = ground.perfdiff("v1", "v2", variables={"PERFDIFF_TOY_SPEED": "9"})
    assert done.returncode > 1
    assert "unknown variable PERFDIFF_TOY_SPEED" in done.stderr


def test_the_doctor_asks_the_pack_what_the_machine_lacks(ground: Ground) -> None:
    assert "toy interpreter" in ground.perfdiff("doctor").stdout


def test_a_machine_without_the_pack_knows_no_such_language(ground: Ground) -> None:
    done = ground.perfdiff("v1", "v2", variables={"PYTHONPATH": str(Path(__file__).parent.parent)})
    assert "no build command is configured" in done.stderr


@pytest.mark.parametrize("value", ["missing_package:TRAITS", "json:TRAITS", "json:dumps"])
def test_a_package_that_brings_nothing_is_told_and_the_others_go_on(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "entry_points", lambda *, group: [EntryPoint("odd", value, group)])
    with pytest.warns(UserWarning, match="the language odd is left out: .*; update or uninstall the package that brings it"):
        names = [traits.name for traits in installed.installed.__wrapped__()]
    assert names == ["c", "python", "java", "php"]
