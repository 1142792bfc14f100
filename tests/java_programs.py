"""Java programs with probes in chosen methods, compiled and run by real JDKs, and what those record."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import probed_runs
import runtimes
from perfdiff.errors import BuildError
from perfdiff.languages.java import agent, calibrating, jdks, start, weaving
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.protocol import FeaturePlan, FunctionDefinition, Load, Probe
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Origin
from probed_runs import Outcome

LOADS = {"number": Load.FLOATING, "type": Load.TYPE, "file": Load.FILE, "depth": Load.DEPTH}
CLASSFILE = 24


@cache
def found() -> Mapping[int, Jdk]:
    """Return a JDK for each release that is at hand, that of PATH first."""
    kept: dict[int, Jdk] = {}
    for home in (None, *sorted(Path("/usr/lib/jvm").glob("*/bin/javac"))):
        try:
            jdk = jdks.find(os.environ, str(home.parent.parent) if home else None)
        except BuildError:
            continue
        kept.setdefault(jdk.feature, jdk)
    return kept


def jdk() -> Jdk:
    """Return the JDK of the tests."""
    return next(iter(found().values()))


def of_each_library() -> list[Jdk]:
    """Return a JDK for each library that classes are woven by: the JDK's own ASM, and `java.lang.classfile`."""
    oldest = min(found())
    return [found()[feature] for feature in dict.fromkeys((oldest, max(found()))) if feature == oldest or feature >= CLASSFILE]


def definition(linkage: str, features: Sequence[str]) -> FunctionDefinition:
    """Return the definition of a method by its class, name and descriptor."""
    owner, method, _ = linkage.split()
    plans = tuple(
        FeaturePlan(one, Origin.ARGUMENT, LOADS.get(one.split()[0], Load.UNSIGNED), one, category=one.startswith("type"))
        for one in features
    )
    empty: frozenset[str] = frozenset()
    name = f"{owner.replace('/', '.')}.{method}"
    return FunctionDefinition(
        key=f"java:{linkage}", name=name, names=(name,), file=f"{owner}.java", line=1, start=0, body=0, end=0, text="", signature="",
        tokens="", uses=empty, calls=empty, reads=empty, writes=empty, features=plans, branches=(), obstacle=None,
        linkage=(linkage,), language="java",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A tree with compiled classes, and the methods of them that are probed, by their number."""

    folder: Path
    jdk: Jdk
    probes: tuple[Probe, ...]

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def sheet(self) -> Path:
        return weaving.weave(self.jdk, self.tree, [weaving.method_of(probe) for probe in self.probes], runtimes.KEPT)

    def attached(self, options: str, costs: str | None) -> dict[str, str]:
        """Return the variables that bring the probes into the program's JVMs."""
        library = agent.build(self.jdk, runtimes.library(), "gcc", runtimes.KEPT)
        measured = calibrating.measure(self.jdk, library, runtimes.KEPT).text if costs is None else costs
        return start.environment(self.sheet, library, measured, options)

    def run_undisturbed(self, *arguments: str) -> Outcome:
        """Run until each call that ended was timed."""
        return probed_runs.undisturbed(lambda: self.run(*arguments))

    def run(
        self,
        *arguments: str,
        mode: ProbePlan | None = None,
        java: Path | None = None,
        options: str = "",
        costs: str | None = None,
        status: int = 0,
    ) -> Outcome:
        """Run the class Main, or the JVM with `arguments`, every call sampled if no other mode is given."""
        out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        out.mkdir()
        entry = mode or ProbePlan(Mode.SAMPLE, reservoir=1000)
        sized = {probe.id: entry.sized(features=len(probe.features), branches=len(probe.branches)) for probe in self.probes}
        plan.write(out / "plan", sized)
        steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(out / "plan"), "PERFDIFF_SEED": "1"}
        ended = subprocess.run(
            [java or self.jdk.java, *(arguments or ("-cp", ".", "Main"))],
            cwd=self.tree,
            env=os.environ | steering | self.attached(options, costs),
            capture_output=True,
            timeout=60,
            check=False,
        )
        outcome = probed_runs.outcome(out, ended.returncode, ended.stdout, ended.stderr)
        assert outcome.status == status, outcome.errors
        return outcome

    def values(self, record: Recording, name: str) -> list[tuple[float | str | None, ...]]:
        """Return what each call of a method read, in the order of the calls; None where nothing was."""
        return probed_runs.values(record, self.probes, name)


def compiled(folder: Path, jdk: Jdk, files: Mapping[str, str], *options: str) -> None:
    """Write sources to a folder and compile them there."""
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command: list[str | Path] = [
        jdk.javac,
        "-J-XX:TieredStopAtLevel=1",
        "-nowarn",
        *options,
        "-d",
        folder,
        *(folder / file for file in files),
    ]
    subprocess.run(command, check=True, capture_output=True)


def program(folder: Path, jdk: Jdk, files: Mapping[str, str], methods: Mapping[str, Sequence[str]], *options: str) -> Program:
    """Compile the tree and plan its probes: `methods` maps `class method descriptor` to features as `<how> <path>`."""
    compiled(folder / "tree", jdk, files, *options)
    definitions = [definition(linkage, features) for linkage, features in methods.items()]
    probes = tuple(Probe(number, one, tuple(range(len(one.features))), ()) for number, one in enumerate(definitions, 1))
    return Program(folder, jdk, probes)
