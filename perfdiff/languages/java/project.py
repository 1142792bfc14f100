"""Java projects, known by their files and by what their workloads run; how they are built, and what they start."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.configuration import buildsystem, shellwords
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.recognition import Draft, ProjectKind
from perfdiff.languages.java import ant, buildtools, levels

_PROGRAMS = re.compile(r"java|mvn[dw]?|mvnDebug|gradlew?|ant|jshell")
_MAVEN, _GRADLE, _ANT, _JAVAC = ("maven", "gradle", "ant", "javac")
_MAVEN_ARGUMENTS = "-o -q -DskipTests package"
_GRADLE_ARGUMENTS = "--offline --no-daemon -q assemble"
_TESTS = "src/test/java"
_JMH_PLUGIN = re.compile(r"champeau\.(?:gradle\.)?jmh")  # whose benchmarks are a jar that `assemble` does not make
_FILES = (
    (_MAVEN, "pom.xml"),
    (_GRADLE, "settings.gradle"),
    (_GRADLE, "settings.gradle.kts"),
    (_GRADLE, "build.gradle"),
    (_GRADLE, "build.gradle.kts"),
    (_ANT, ant.FILE),
)
_SOURCES = ("src/main/java", "src", ".")  # where the sources of a project without a build system lie
_CLASSES = {_MAVEN: "target/classes", _GRADLE: "build/classes/java/main"}
_PLAIN = "build/classes"
_DESTINATION = re.compile(r'\bdestdir="([^"$]+)"')  # of ant's compiler
_MOST_FILES = 2000  # that are read in search of a main method
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_MAIN = re.compile(r"\bstatic\s+(?:final\s+)?void\s+main\s*\(\s*(?:final\s+)?String\b")


@dataclass(frozen=True, slots=True)
class Start:
    """What a Java project's programs are started with: the folders of its `classes`, and a class with a main method, None where none is."""

    classes: tuple[str, ...]
    main: str | None


_COMMAND = "java -cp {classes} {main} {{n}}"
_SECTION = """\
[java]
# home = "/usr/lib/jvm/java-17-openjdk-amd64"   # the JDK of builds and workloads; else JAVA_HOME's, else that of `javac` on PATH

"""


class JavaProject:
    """How Java projects are recognised. Nothing is fetched: packages that a build needs were fetched before."""

    leads = False
    needs_build = True

    def recognise(self, folder: Path, commands: Sequence[str], *, is_led: bool) -> str | None:
        """Return what tells a Java project in `folder`: a file's name, or one of the `commands` of its workloads.

        Where the files of other languages are known too, a workload must start a JVM: many a library has a binding in Java, and many a
        program a tool in it.
        """
        command = next((command for command in commands if any(map(_PROGRAMS.fullmatch, shellwords.programs(command)))), None)
        if buildsystem.detect(folder) is not None or is_led:
            return command
        system = self.build_system(folder)
        return system.file if system else command

    def is_ready(self, folder: Path, sign: str | None, commands: Sequence[str], others: Sequence[ProjectKind]) -> bool:
        """Return False: classes are compiled before they run."""
        return False

    def build_system(self, folder: Path, *, named: bool = False) -> BuildSystem | None:
        """Return Maven, Gradle or ant, whose file stands at the top of a source tree; without it sources are compiled as they lie."""
        name_and_file = next(((name, file) for name, file in _FILES if (folder / file).is_file()), None)
        if name_and_file is not None:
            return BuildSystem(*name_and_file, _command(name_and_file[0], folder))
        return None if named else _compiler(folder)

    def draft(self, folder: Path, sign: str) -> Draft:
        """Return the section of a JDK, and a class with a main method as workload."""
        system = self.build_system(folder)
        assert system is not None, "the file of a build system told the project"
        started = start(folder, system)
        command = _COMMAND.format(classes=":".join(started.classes), main=started.main or "Main")
        return Draft(_SECTION, command, is_guessed=started.main is not None)


def _compiler(folder: Path) -> BuildSystem | None:
    root = next((root for root in _SOURCES if any(_java_files(folder / root, deep=root != "."))), None)
    if root is None:
        return None
    sources = "*.java" if root == "." else f"$(find {root} -name '*.java')"
    return BuildSystem(_JAVAC, sources if root == "." else root, f"mkdir -p {_PLAIN} && javac -d {_PLAIN} {sources}")


def _command(name: str, folder: Path) -> str:
    tool = {_MAVEN: buildtools.MAVEN, _GRADLE: buildtools.GRADLE}.get(name)
    program = tool.command(folder, Path.home()) if tool else "ant"
    more = _gradle_tasks(folder) if name == _GRADLE else ant.targets(folder) if name == _ANT else ()
    levelled = () if name == _GRADLE else levels.raised((folder / dict(_FILES)[name]).read_text(encoding="utf-8", errors="replace"))
    return " ".join([program, {_MAVEN: _MAVEN_ARGUMENTS, _GRADLE: _GRADLE_ARGUMENTS, _ANT: "-q"}[name], *levelled, *more])


def _gradle_tasks(folder: Path) -> Iterator[str]:
    """Yield the tasks that make tests and benchmarks, where the modules of a project have some."""
    if any(_in_modules(folder, _TESTS)):
        yield "testClasses"
    builds = (file for pattern in ("build.gradle", "build.gradle.kts") for file in _in_modules(folder, pattern) if file.is_file())
    if any(_JMH_PLUGIN.search(file.read_text(encoding="utf-8", errors="replace")) for file in builds):
        yield "jmhJar"


def _in_modules(folder: Path, name: str) -> Iterator[Path]:
    return (path for pattern in ("", "*/", "*/*/") for path in folder.glob(f"{pattern}{name}"))


def start(folder: Path, system: BuildSystem) -> Start:
    """Return what the programs of a project are started with, as its build system lays them out by default."""
    classes = _CLASSES.get(system.name)
    if classes is None:
        text = (folder / system.file).read_text(encoding="utf-8", errors="replace") if system.name == _ANT else ""
        destination = _DESTINATION.search(text)
        return Start((destination[1] if destination else _PLAIN,), _main([(folder / root, root != ".") for root in _SOURCES]))
    modules = sorted({path.parents[2].relative_to(folder) for path in _in_modules(folder, _SOURCES[0]) if path.is_dir()})
    return Start(
        tuple((module / classes).as_posix() for module in modules) or (classes,),
        _main([(folder / module / _SOURCES[0], True) for module in modules]),
    )


def _main(roots: Sequence[tuple[Path, bool]]) -> str | None:
    """Return the name of a class with a main method, `Main` if there are several; with each root, whether folders in it count."""
    mains = sorted(
        {name for root, deep in roots for name in _mains(root, deep=deep)}, key=lambda name: (name.rpartition(".")[2] != "Main", name)
    )
    return mains[0] if mains else None


def _mains(root: Path, *, deep: bool) -> Iterator[str]:
    for file in itertools.islice(_java_files(root, deep=deep), _MOST_FILES):
        text = file.read_text(encoding="utf-8", errors="replace")
        if _MAIN.search(text):
            package = _PACKAGE.search(text)
            yield f"{package[1]}.{file.stem}" if package else file.stem


def _java_files(root: Path, *, deep: bool) -> Iterator[Path]:
    return (path for path in root.glob("**/*.java" if deep else "*.java") if path.is_file())
