"""Python programs with probes in chosen functions, run by real interpreters, and what those record."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import probed_runs
import runtimes
from perfdiff.languages.protocol import FeaturePlan, FunctionDefinition, Load, Probe
from perfdiff.languages.python import extension, sheet, start
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Origin
from probed_runs import Outcome

LOADS = {"number": Load.FLOATING, "type": Load.TYPE, "file": Load.FILE, "depth": Load.DEPTH}
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@cache
def interpreter(version: str | None = None) -> Path | None:
    """Return the interpreter of a version that lies on the PATH and can be probed; without one, that of the tests."""
    if version is None or sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable)
    found = shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:  # a shim without its version
        return None
    return Path(found)


@cache
def module(python: Path) -> Path:
    """Return the extension module for an interpreter; nobody may change it."""
    return extension.build(python, runtimes.library(), "gcc", runtimes.KEPT)


def environment(folder: Path, python: Path) -> Path:
    """Return the interpreter of a new virtual environment with the hook in its site-packages."""
    subprocess.run([python, "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / start.HOOK).write_text(start.hook())
    return folder / "bin/python"


def definition(tree: Path, file: str, name: str, features: Sequence[str]) -> FunctionDefinition:
    """Return the definition of a function of a file, by its name or the dotted way to it; `<module>` is the file's own level."""
    line, parsed = 1, ast.parse((tree / file).read_text())
    node: ast.AST = parsed
    for part in name.split(".") if name != "<module>" else ():
        node = next(each for each in ast.walk(node) if getattr(each, "name", None) == part)
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    code = name.rsplit(".", maxsplit=1)[-1]
    plans = tuple(
        FeaturePlan(one, Origin.ARGUMENT, LOADS.get(one.split()[0], Load.UNSIGNED), one, category=one.startswith("type"))
        for one in features
    )
    empty: frozenset[str] = frozenset()
    return FunctionDefinition(
        key=f"python:{file}::{name}", name=name, names=(name,), file=file, line=line, start=0, body=0, end=0, text="", signature="",
        tokens="", uses=empty, calls=empty, reads=empty, writes=empty, features=plans, branches=(), obstacle=None,
        linkage=(f"{line} {code}",), language="python",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A tree with a `main.py`, the functions of it that are probed, by their number, and the interpreter that runs it."""

    folder: Path
    python: Path
    module: Path
    probes: tuple[Probe, ...]

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def run_undisturbed(self) -> Outcome:
        """Run `main.py` until each call that ended was timed."""
        return probed_runs.undisturbed(self.run)

    def run(self, *arguments: str, mode: ProbePlan | None = None, places: Mapping[str, Sequence[Path]] | None = None) -> Outcome:
        """Run `main.py`, or the interpreter with `arguments`, every call sampled if no other mode is given."""
        out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        out.mkdir()
        entry = mode or ProbePlan(Mode.SAMPLE, reservoir=1000)
        plan.write(
            out / "plan",
            {probe.id: entry.sized(features=len(probe.features), branches=len(probe.branches)) for probe in self.probes},
        )
        files = {probe.definition.file for probe in self.probes}
        sheet.write(out / "sheet", self.probes, places or {file: [self.tree / file] for file in files})
        steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(out / "plan"), "PERFDIFF_SEED": "1"}
        variables = os.environ | steering | start.environment(out / "sheet", self.module)
        variables.pop("PYTHONPATH", None)
        ended = subprocess.run(
            [self.python, *(arguments or ("main.py",))],
            cwd=self.tree,
            env=variables,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return probed_runs.outcome(out, ended.returncode, ended.stdout, ended.stderr)

    def values(self, record: Recording, name: str) -> list[tuple[float | str | None, ...]]:
        """Return what each call of a function read, in the order of the calls; None where nothing was."""
        return probed_runs.values(record, self.probes, name)


def program(folder: Path, python: Path, files: Mapping[str, str], functions: Mapping[str, Sequence[str]]) -> Program:
    """Write the tree and plan its probes: `functions` maps `file::name` to features as `<how> <path>`."""
    for file, text in files.items():
        path = folder / "tree" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    definitions = []
    for key, features in functions.items():
        file, name = key.split("::")
        definitions.append(definition(folder / "tree", file, name, features))
    probes = tuple(Probe(number, one, tuple(range(len(one.features))), ()) for number, one in enumerate(definitions, 1))
    return Program(folder, python, module(python), probes)
