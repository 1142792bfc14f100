"""The JDK of a revision: builds and workloads find the same one, and it is kept beside the tree which one that was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import store_errors
from perfdiff.languages.dependencies import keep, kept
from perfdiff.languages.java import dependencies, jdks
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.java.traits import JavaConfig
from perfdiff.languages.protocol import Prepared
from perfdiff.records.schema import Note

_RECORD = "java.json"
_LOCALE = "C.UTF-8"
_NO_DAEMON = "-Dorg.gradle.daemon=false"


@dataclass(frozen=True, slots=True)
class JavaHome:
    """What a built revision was built with, and runs on: the folder of the JDK, its release, and `versions` of libraries of others."""

    home: Path
    release: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JdkHomes:
    """Gives the revisions of a project their JDK. `project` is its folder in the user's checkout, `environment` the user's."""

    config: JavaConfig
    project: Path
    environment: Mapping[str, str]

    @property
    def jdk(self) -> Jdk:
        """Return the JDK of all revisions; raise BuildError (`no-jdk`, `java-unsupported`)."""
        home = self.config.home
        return jdks.find(self.environment, str(self.project / Path(home).expanduser()) if home else None)

    @property
    def identity(self) -> str:
        """Return what a build depends on because of its JDK."""
        return self.jdk.identity

    def prepare(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> Prepared:
        """Return the variables by which the build finds the JDK, and reads sources as UTF-8; raise BuildError.

        Up to JDK 17 compilers read sources in the locale's encoding, and other builds than Java's run in the locale `C`.
        """
        return Prepared({**variables(self.jdk.home, environment), "LC_ALL": _LOCALE})

    def broken(self, beside: Path) -> str | None:
        """Return why a kept build cannot run: its JDK is gone, or another one lies in its place."""
        home = read(beside).home
        return None if (home / "bin/java").is_file() else f"the JDK {home} is gone"

    def finish(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> tuple[Note, ...]:
        """Store the JDK of a build, and the libraries that the revision names."""
        jdk = self.jdk
        with store_errors(beside):
            keep(beside / _RECORD, JavaHome(jdk.home, jdk.release, dependencies.versions(tree)))
        return ()


def read(beside: Path) -> JavaHome:
    """Return what the build in a folder was built with; raise StoreError (`damaged-build`) where that cannot be read."""
    return kept(JavaHome, beside / _RECORD, "what is kept of the JDK in")


def variables(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what makes a JDK the one that commands find in `environment`.

    Gradle leaves no process behind, in which the next build or run would find what an earlier one compiled.
    """
    options = environment.get("GRADLE_OPTS", "")
    return {
        "JAVA_HOME": str(home),
        "PATH": os.pathsep.join([str(home / "bin"), *filter(None, [environment.get("PATH", "")])]),
        "GRADLE_OPTS": options if _NO_DAEMON in options else f"{options} {_NO_DAEMON}".strip(),
    }
