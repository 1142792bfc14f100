"""The JDK of a project's programs: found by its folder, JAVA_HOME or PATH, and known by what its `release` file says."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages.answers import answer

SUPPORTED = (11, 25)  # the first and the last release whose class files the loom reads; long-term ones and what lies between

_VERSION = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Jdk:
    """A JDK in its folder. `release` is its version as it is written, `17.0.15`; `feature` the number of its generation, 17."""

    home: Path
    release: str
    feature: int

    @property
    def java(self) -> Path:
        """Return the launcher of programs."""
        return self.home / "bin/java"

    @property
    def javac(self) -> Path:
        """Return the compiler."""
        return self.home / "bin/javac"

    @property
    def compiling(self) -> tuple[str, ...]:
        """Return the command that compiles a program of ours, which is about to run for a second at most."""
        return (str(self.javac), "-J-XX:TieredStopAtLevel=1", "-encoding", "UTF-8", "-proc:none", "-nowarn", "-Xlint:-options")

    @property
    def identity(self) -> str:
        """Return what a build depends on because it was made with this JDK."""
        return f"{self.home} {self.release}"


def find(environment: Mapping[str, str], home: str | None = None) -> Jdk:
    """Return the JDK in the folder `home`; where none is named, that of JAVA_HOME, else that of the `javac` on PATH.

    Raises BuildError: `no-jdk` where there is none, or only a JRE; `java-unsupported` where its release cannot be measured.
    """
    if named := home or environment.get("JAVA_HOME"):
        says = "[java] home" if home else "JAVA_HOME"
        return _described(Path(named).expanduser().absolute(), says)
    program = shutil.which("javac", path=environment.get("PATH", ""))
    if program is None:
        only = (
            " (a `java` is, so that this is a JRE, which compiles nothing)"
            if shutil.which("java", path=environment.get("PATH", ""))
            else ""
        )
        raise BuildError(
            f"no `javac` is on PATH{only}, and JAVA_HOME is not set; install a JDK (Debian and Ubuntu: default-jdk-headless, Fedora:"
            " java-devel), or name the folder of one as `home` under [java]",
            slug="no-jdk",
        )
    return _described(_home_of(program, environment.get("PATH", "")), "the `javac` on PATH")


_INSTALLED = Path("/usr/lib/jvm")  # where distributions put JDKs


@functools.lru_cache
def beside(jdk: Jdk, newest: int) -> Jdk | None:
    """Return the newest JDK up to a release that is installed beside another one, or where distributions put them; None where none is."""
    installed = []
    for folder in dict.fromkeys((jdk.home.parent, _INSTALLED)):
        for home in sorted(path.parent.parent for path in folder.glob("*/bin/javac")):
            try:
                installed.append(_described(home, "the folder"))
            except BuildError:  # of a release that is not measured
                continue
    return max((candidate for candidate in installed if candidate.feature <= newest), key=lambda candidate: candidate.feature, default=None)


def _home_of(compiler: str, path: str) -> Path:
    """Return the folder of the JDK that a compiler belongs to; a version manager's stand-in for it is asked."""
    folder = Path(compiler).resolve().parent.parent
    if (folder / "release").is_file():
        return folder
    try:
        ended = answer([compiler, "-J-XshowSettings:properties", "-version"])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the compiler {compiler} on PATH ({path}) cannot be run: {error}", slug="no-jdk") from error
    match = _HOME.search(ended.stderr) or _HOME.search(ended.stdout)
    return Path(match[1].strip()) if match else folder


@functools.lru_cache
def _described(home: Path, says: str) -> Jdk:
    if not (home / "bin/javac").is_file():
        is_jre = (home / "bin/java").is_file()
        raise BuildError(
            f"{home}, which {says} names, is {'a JRE: it has no `bin/javac`' if is_jre else 'no JDK'}; install a JDK (Debian and Ubuntu:"
            " default-jdk-headless, Fedora: java-devel), or name the folder of one as `home` under [java]",
            slug="no-jdk",
        )
    release = _release(home)
    major, _, rest = release.partition(".")
    feature = int(re.match(r"\d*", rest if major == "1" else major)[0] or 0)  # type: ignore[index]  # 1.8.0_292 is release 8
    first, last = SUPPORTED
    if not first <= feature <= last:
        raise BuildError(
            f"{home} is a JDK {release}, whose programs cannot be measured: name one from {first} to {last} as `home` under [java]",
            slug="java-unsupported",
        )
    return Jdk(home, release, feature)


def _release(home: Path) -> str:
    """Return the version that a JDK tells in its `release` file, and where it has none, by its compiler."""
    try:
        if match := _VERSION.search((home / "release").read_text(errors="replace")):
            return match[1]
        ended = answer([home / "bin/javac", "-version"])
        ended.check_returncode()
    except OSError as error:
        raise BuildError(f"the JDK in {home} cannot be read: {error.strerror}", slug="no-jdk") from error
    except subprocess.SubprocessError as error:
        raise BuildError(f"the compiler of the JDK in {home} cannot be run: {error}", slug="no-jdk") from error
    return (ended.stdout or ended.stderr).split()[-1]
