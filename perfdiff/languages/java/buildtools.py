"""The program that builds a Java project with Maven or Gradle: the project's wrapper, or the one on PATH.

A wrapper is a script that downloads the version of the tool that the project names, once for each user.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

_DISTRIBUTION = re.compile(r"^\s*distributionUrl\s*=.*/(.+?)(?:-(?:bin|all))?\.(?:zip|tar\.gz)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BuildTool:
    """A tool, the script of its wrapper, the file that names the wrapper's version, and where such versions lie in the user's home."""

    program: str
    wrapper: str
    properties: str
    distributions: str

    def command(self, project: Path, home: Path, path: str | None = None) -> str:
        """Return the wrapper, but the program on PATH, or on another `path`, where only that is on this machine."""
        if not (project / self.wrapper).is_file():
            return self.program
        is_lacking = not self._is_downloaded(project, home) and shutil.which(self.program, path=path) is not None
        return self.program if is_lacking else f"./{self.wrapper}"

    def _is_downloaded(self, project: Path, home: Path) -> bool:
        """Return whether the version that the wrapper wants is there; a wrapper that names none is taken at its word."""
        properties = project / self.properties
        text = properties.read_text(encoding="utf-8", errors="replace") if properties.is_file() else ""
        version = _DISTRIBUTION.search(text)
        return version is None or any((home / self.distributions).glob(f"{version[1]}*/*/*"))


MAVEN = BuildTool("mvn", "mvnw", ".mvn/wrapper/maven-wrapper.properties", ".m2/wrapper/dists")
GRADLE = BuildTool("gradle", "gradlew", "gradle/wrapper/gradle-wrapper.properties", ".gradle/wrapper/dists")
