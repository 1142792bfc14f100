"""Our own Java programs: compiled by the project's JDK at first use, kept by content, and run by it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.java.jdks import Jdk

_HERE = Path(__file__).parent
_TIMEOUT_S = 300.0  # reading the classes of a large project takes seconds
_CLASSFILE = 24  # the first JDK with `java.lang.classfile` for good, which has no ASM of its own any more
_ASM = ("", ".tree", ".tree.analysis", ".util", ".commons")
_OPENED = tuple(f"--add-exports=java.base/jdk.internal.org.objectweb.asm{part}=ALL-UNNAMED" for part in _ASM)
_PREVIEW = b"\xff\xff"  # the minor version of class files that ask for previews: compilers write it where one is used, and theirs is hidden
_LOG = ("-Xlog:disable", "-Xlog:all=warning:stderr")  # JVMs warn on the standard output, which is the answer's
# They run for a second at most: neither the second compiler nor several collecting threads pay.
_LAUNCH = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Dfile.encoding=UTF-8")
# Nothing of the user's, such as JAVA_TOOL_OPTIONS, is for them. Names of files are bytes in UTF-8.
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}


def run(jdk: Jdk, cache: Path, main: str, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
    """Run one of perfdiff's Java programs, compiled at the first call, and return its output.

    `main` is its class, `perfdiff.NAME.CLASS`; its sources are the folder NAME beside this module, and in it the folder `asm` or
    `classfile`, by which of them the JDK has. Raises BuildError where it does not compile or fails, StoreError where `cache` cannot be
    written.
    """
    classes = build(jdk, cache, main.split(".")[-2])
    command = [str(jdk.java), *_LAUNCH, *_LOG, *_options(jdk), "-cp", str(classes), main, *arguments]
    try:
        ended = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=_TIMEOUT_S, env=_ENVIRONMENT)
    except OSError as error:
        raise BuildError(f"'{jdk.java}' cannot be run: {error.strerror}", slug="java-helper-failed") from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{main} did not end within {_TIMEOUT_S:.0f} s under Java {jdk.release}", slug="java-helper-failed") from error
    if ended.returncode != 0:
        raise BuildError(
            f"{main} exited {ended.returncode} under Java {jdk.release} ({jdk.home})",
            slug="java-helper-failed",
            detail=ended.stderr.decode(errors="replace"),
        )
    return ended.stdout


def build(jdk: Jdk, cache: Path, name: str) -> Path:
    """Return the folder with the classes of the program `name`, compiling them at the first call."""
    library = "classfile" if jdk.feature >= _CLASSFILE else "asm"
    sources = sorted([*(_HERE / name).glob("*.java"), *(_HERE / name / library).glob("*.java")])
    folder = f"java-{name}-{compiled.fingerprint(None, (jdk.identity, _options(jdk), _PREVIEW), sources)}"
    return compiled.kept(cache, folder, partial(_compile, jdk, sources))


def _options(jdk: Jdk) -> tuple[str, ...]:
    """Return what opens the JDK's own ASM, which reads the newest classes for those alone that ask for previews."""
    return () if jdk.feature >= _CLASSFILE else (*_OPENED, "--enable-preview")


def _compile(jdk: Jdk, sources: Sequence[Path], folder: Path) -> None:
    compiled.run([*jdk.compiling, "-source", str(jdk.feature), *_options(jdk), "-d", str(folder), *map(str, sources)])
    if jdk.feature < _CLASSFILE:
        for path in folder.rglob("*.class"):
            data = path.read_bytes()
            path.write_bytes(data[:4] + _PREVIEW + data[6:])
