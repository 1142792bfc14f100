"""PHP programs with probes in chosen functions, run by a real PHP, and what those record."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

import probed_runs
import runtimes
from perfdiff.languages.php import extension, interpreters, sheet, sources, start
from perfdiff.languages.protocol import FeaturePlan, FunctionDefinition, Load, Probe
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Origin
from probed_runs import Outcome

LOADS = {"number": Load.FLOATING, "type": Load.TYPE, "enum": Load.TYPE, "file": Load.FILE, "depth": Load.DEPTH}


@cache
def interpreter() -> interpreters.PhpInterpreter:
    """Return the PHP of the PATH; skip the test where there is none."""
    if shutil.which("php") is None:
        pytest.skip("needs PHP (Debian: php8.2-cli)")
    return interpreters.find(None, Path.cwd(), os.environ)


@cache
def module() -> Path:
    """Return the extension for the PHP of the PATH; nobody may change it."""
    return extension.build(interpreter(), runtimes.library(), "gcc", runtimes.KEPT)


def lines(text: str, name: str) -> tuple[int, int]:
    """Return the first and the last line of a function of a text whose strings have no braces; `{closure}@4` is one that begins there."""
    if name == "{main}":
        return 1, 1
    if "@" in name:
        first = int(name.partition("@")[2])
        begin = text.index("function", sum(len(line) + 1 for line in text.split("\n")[: first - 1]))
    else:
        owner, _, own = name.rpartition("::")
        begin = re.search(rf"\b(class|trait|enum)\s+{re.escape(owner.rpartition(chr(92))[2])}\b", text).start() if owner else 0
        begin = re.compile(rf"function\s+&?{re.escape(own.rpartition(chr(92))[2])}\s*\(").search(text, begin).start()
    depth, end = 0, text.index("{", begin)
    while True:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if not depth:
            return text.count("\n", 0, begin) + 1, text.count("\n", 0, end) + 1
        end += 1


def definition(tree: Path, file: str, name: str, features: Sequence[str]) -> FunctionDefinition:
    """Return the definition of a function of a file by the engine's name."""
    first, last = lines((tree / file).read_text(), name)
    plans = tuple(
        FeaturePlan(one, Origin.ARGUMENT, LOADS.get(one.split()[0], Load.UNSIGNED), one, category=one.startswith(("type", "enum")))
        for one in features
    )
    empty: frozenset[str] = frozenset()
    return FunctionDefinition(
        key=f"php:{file}::{name}", name=name, names=(name,), file=file, line=first, start=0, body=0, end=0, text="", signature="",
        tokens="", uses=empty, calls=empty, reads=empty, writes=empty, features=plans, branches=(), obstacle=None,
        linkage=(f"{first} {last} {name.partition('@')[0]}",), language="php",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A tree with a `main.php`, and the functions of it that are probed, by their number."""

    folder: Path
    probes: tuple[Probe, ...]
    module: Path = field(default_factory=module)

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def prepare(self, mode: ProbePlan | None = None, places: Mapping[str, Sequence[Path]] | None = None) -> tuple[Path, dict[str, str]]:
        """Return a new folder for recordings, and the variables of a run, every call sampled if no other mode is given."""
        out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        out.mkdir()
        entry = mode or ProbePlan(Mode.SAMPLE, reservoir=1000)
        plan.write(
            out / "plan",
            {probe.id: entry.sized(features=len(probe.features), branches=len(probe.branches)) for probe in self.probes},
        )
        files = {probe.definition.file for probe in self.probes}
        places = places or {file: [self.tree / file] for file in files}
        sheet.write(out / "sheet", self.probes, places, sources.aliases_in(self.tree, files))
        steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(out / "plan"), "PERFDIFF_SEED": "1"}
        return out, os.environ | steering | start.environment(out / "sheet", self.module, os.environ)

    def run(
        self,
        *arguments: str,
        mode: ProbePlan | None = None,
        places: Mapping[str, Sequence[Path]] | None = None,
        more: Mapping[str, str] | None = None,
        **options: object,
    ) -> Outcome:
        """Run `main.php`, or PHP with `arguments`."""
        out, variables = self.prepare(mode, places)
        ended = subprocess.run(
            [interpreter().executable, *(arguments or ("main.php",))],
            cwd=self.tree,
            env=variables | dict(more or {}),
            capture_output=True,
            timeout=60,
            check=False,
            **options,
        )
        return probed_runs.outcome(out, ended.returncode, ended.stdout, ended.stderr)

    def run_undisturbed(self, *arguments: str) -> Outcome:
        """Run until each call that ended was timed."""
        return probed_runs.undisturbed(lambda: self.run(*arguments))

    def values(self, record: Recording, name: str) -> list[tuple[float | str | None, ...]]:
        """Return what each call of a function read, in the order of the calls; None where nothing was."""
        return probed_runs.values(record, self.probes, name)


def program(folder: Path, files: Mapping[str, str], functions: Mapping[str, Sequence[str]]) -> Program:
    """Write the tree and plan its probes: `functions` maps `file::name` to features as `<how> <path>`."""
    for file, text in files.items():
        path = folder / "tree" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    definitions = [definition(folder / "tree", *key.split("::", maxsplit=1), features) for key, features in functions.items()]
    probes = tuple(Probe(number, one, tuple(range(len(one.features))), ()) for number, one in enumerate(definitions, 1))
    return Program(folder, probes)
