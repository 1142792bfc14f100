"""A language pack of a made-up language, as `docs/architecture/adding-a-language.md` describes one; `toy/interpreter.c` runs it.

`installed_in` makes it one that perfdiff finds by itself, as a package beside it is found.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.config import Config
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.recognition import Draft, ProjectKind
from perfdiff.languages.c import runtime_library
from perfdiff.languages.check import Check
from perfdiff.languages.protocol import (
    CodeComparison,
    Counterpart,
    FeaturePlan,
    FunctionDefinition,
    Language,
    Load,
    PlainBuild,
    Prepared,
    Probe,
    ProbeCosts,
    Program,
    Surroundings,
    Workplace,
)
from perfdiff.languages.traits import Key, KeyKind, Traits
from perfdiff.records.differences import ChangeReason, text_reason
from perfdiff.records.schema import Change, Note, Origin, Phase

INTERPRETER = Path(__file__).parent / "toy" / "interpreter.c"
_DEFINITION = re.compile(r"^def (\w+)\n((?:(?!def ).*\n)*)", re.MULTILINE)
_CALL = re.compile(r"(?:call|each) (\w+)")


@dataclass(frozen=True, slots=True)
class ToyConfig:
    """`[toy]`: the `compiler` of the interpreter."""

    compiler: str = "gcc"


class ToyProject:
    """How projects of toys are recognised: by a script at their top. They run as they lie."""

    leads = False
    needs_build = False

    def recognise(self, folder: Path, commands: Sequence[str], *, is_led: bool) -> str | None:
        """Return the name of a script."""
        return next((path.name for path in sorted(folder.glob("*.toy"))), None)

    def is_ready(self, folder: Path, sign: str | None, commands: Sequence[str], others: Sequence[ProjectKind]) -> bool:
        """Return that nothing needs a build."""
        return True

    def build_system(self, folder: Path, *, named: bool = False) -> BuildSystem | None:
        """Return None: scripts run as they lie."""
        return None

    def draft(self, folder: Path, sign: str) -> Draft:
        """Return a workload that runs the script."""
        return Draft("[toy]\n\n", f"toy {sign} {{n}}", (f"{sign} was found.", "# nothing builds toys"))


def made(config: Config, surroundings: Surroundings) -> Toys:
    """Return the pack for a project."""
    settings = config.languages["toy"]
    assert isinstance(settings, ToyConfig)
    return Toys(surroundings.cache, settings.compiler)


def examine(settings: object, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield that toys need nothing but a compiler."""
    yield Check("toy interpreter", needed=False, found=True, says="is compiled for each build")


TRAITS = Traits(
    name="toy",
    title="Toy",
    pack="toys:made",
    host="toys:examine",
    project="toys:ToyProject",
    settings=ToyConfig,
    keys={"compiler": Key(KeyKind.TEXT, 'a name, such as "gcc"')},
    unbuilt="each revision runs as it lies",
)


def installed_in(folder: Path) -> str:
    """Write the metadata of a package that brings the pack; return the folders that Python must look for packages in."""
    metadata = folder / "toy_language-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-language\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[perfdiff.languages]\ntoy = toys:TRAITS\n")
    return f"{folder}{os.pathsep}{Path(__file__).parent}"


@dataclass(frozen=True)
class Interpreter:
    """The workplace of toys: their interpreter, compiled beside the tree over perfdiff's runtime."""

    cache: Path
    compiler: str = "gcc"
    identity: str = "toy 1"

    def prepare(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> Prepared:
        """Compile the interpreter."""
        runtime = runtime_library.build(self.compiler, self.cache / "runtime")
        link = [f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lperfdiff"]
        subprocess.run([self.compiler, "-O2", f"-I{runtime}", str(INTERPRETER), "-o", str(beside / "toy"), *link], check=True)
        return Prepared({"TOY": str(beside / "toy")}, 'test -x "$TOY" && echo built > built')

    def broken(self, beside: Path) -> str | None:
        """Return whether the interpreter is gone."""
        return None if (beside / "toy").exists() else "its interpreter is gone"

    def finish(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> tuple[Note, ...]:
        """Tell what the build command found."""
        return (Note("toy", (tree / "built").read_text()),)


class SameText(CodeComparison):
    """Code that is the same where its text is."""

    def is_same(self, pair: Counterpart) -> bool:
        """Return whether a function has the same text on both sides."""
        return pair.change is Change.UNCHANGED

    def is_unlike(self, pair: Counterpart) -> bool:
        """Return whether it has not."""
        return not self.is_same(pair)


class Toys(Language):
    """The pack."""

    name = "toy"
    counts = False
    slowdown = 1.0
    draws = ("TOY_DRAW",)

    def __init__(self, cache: Path, compiler: str = "gcc") -> None:
        self.workplace: Workplace | None = Interpreter(cache, compiler)

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Return the functions of all scripts."""
        return Program({each.key: each for path in sorted(built.tree.glob("*.toy")) for each in _functions(path)}, {}, ())

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair functions by name."""
        return tuple(
            Counterpart(one, head.functions[key], *_difference(one, head.functions[key]), culprits=())
            for key, one in base.functions.items()
        )

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what is not known, and assumed as of compiled code."""
        return ProbeCosts(30.0, 10.0, 1.5)

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the interpreter."""
        return ("toy 1",)

    def same_code(
        self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]
    ) -> SameText:
        """Compare texts."""
        return SameText()

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the way to the interpreter."""
        return {"PATH": f"{built.beside}{os.pathsep}{environment['PATH']}"}

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Write which function has which number, and whether its feature is read."""
        text = "".join(f"{probe.definition.name} {probe.id} {len(probe.features)}\n" for probe in probes)
        sheet = folder / f"toys-{hashlib.sha256(text.encode()).hexdigest()}"
        sheet.write_text(text)
        return {"TOY_SHEET": str(sheet)}


def _functions(path: Path) -> Iterator[FunctionDefinition]:
    text = path.read_text()
    for found in _DEFINITION.finditer(text):
        name = found[1]
        yield FunctionDefinition(
            key=f"toy:{name}",
            name=name,
            names=(name,),
            file=path.name,
            line=1 + text[: found.start()].count("\n"),
            start=found.start(),
            body=found.start(2),
            end=found.end(),
            text=found[0],
            signature=name,
            tokens=" ".join(found[0].split()),
            uses=frozenset(),
            calls=frozenset(f"toy:{callee}" for callee in _CALL.findall(found[2])),
            reads=frozenset(),
            writes=frozenset(),
            features=(FeaturePlan("n", Origin.ARGUMENT, Load.SIGNED, "n"),),
            branches=(),
            obstacle=None,
            language="toy",
        )


def _difference(base: FunctionDefinition, head: FunctionDefinition) -> tuple[Change, tuple[ChangeReason, ...]]:
    return (Change.UNCHANGED, ()) if base.tokens == head.tokens else (Change.CHANGED, (text_reason("body changed"),))
