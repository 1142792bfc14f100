"""What JVMs complain of when a program fails, read off the end of its standard error, and what helps."""

from __future__ import annotations

import re

from perfdiff.languages.traits import Complaint

_FIRST_MAJOR = 44  # the version of class files is that of Java and this
_VERSION = re.compile(
    r"UnsupportedClassVersionError: (\S+) has been compiled by a more recent version of the Java Runtime "
    r"\(class file version (\d+)\.\d+\), this version .* up to (\d+)"
)
_MEMORY = re.compile(
    r"java\.lang\.OutOfMemoryError: (.+)|(insufficient memory for the Java Runtime Environment)|(Could not reserve enough space)"
)
_NOT_FOUND = re.compile(r"Could not find or load main class (\S+)|Unable to access jarfile (\S+)")


def read(tail: str) -> Complaint | None:
    """Return what the end of standard error complains of, None where nothing in it is known."""
    if version := _VERSION.search(tail):
        major, newest = (int(number) - _FIRST_MAJOR for number in version.group(2, 3))
        return Complaint(
            slug="class-version",
            says=f"the class {version[1].replace('/', '.')} is made for Java {major}, and the JVM that ran it knows Java {newest} at most",
            remedy="let the workload run the `java` of the JDK that builds it, as PATH and JAVA_HOME have it, or compile with `--release "
            f"{newest}`",
        )
    if memory := _MEMORY.search(tail):
        says = memory[1].strip() if memory[1] else "none was left when it started"
        return Complaint(slug="out-of-memory", says=f"its JVM ran out of memory ({says})", remedy="raise -Xmx, or take smaller parameters")
    if missing := _NOT_FOUND.search(tail):
        what = f"the class {missing[1]}" if missing[1] else f"the jar {missing[2]}"
        return Complaint(
            slug="no-main-class",
            says=f"{what} was not found",
            remedy="name in the class path what the build makes, relative to the project",
        )
    return None
