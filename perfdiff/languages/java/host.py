"""What Java programs need of this machine: a JDK with its headers, a JVM that loads what is compiled against them, and a parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.errors import PerfdiffError
from perfdiff.languages.c import runtime_library
from perfdiff.languages.check import Check, compiler, loads, loads_ours, refused
from perfdiff.languages.java import agent, jvms
from perfdiff.languages.java.homes import JdkHomes
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.java.traits import JavaConfig

_HEADERS = ("jni.h", "jvmti.h", "linux/jni_md.h")
_OTHER_JDK = "name the folder of another JDK as home under [java]"


def examine(config: JavaConfig | None, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield what there is for the programs of a project's folder; nothing of it is needed where that is no Java project."""
    is_needed = config is not None
    homes = JdkHomes(config or JavaConfig(), project, variables)
    try:
        jdk = homes.jdk
    except PerfdiffError as error:
        yield refused("JDK", error, _OTHER_JDK, is_needed=is_needed)
        return
    named = "[java] home" if homes.config.home else "JAVA_HOME" if variables.get("JAVA_HOME") else "'javac' on PATH"
    which = "which this project's programs run under" if is_needed else "for Java programs, of which there are none here"
    machine = jvms.ask(jdk.home, variables)
    takes = ", ".join(filter(None, (machine.collector, machine.heap and f"heap up to {machine.heap}", f"{machine.processors} CPUs")))
    yield Check("JDK", needed=is_needed, found=True, says=f"{machine.name} {jdk.release} at {jdk.home} ({takes}), {named}, {which}")
    headers = _headers(jdk, is_needed=is_needed)
    yield headers
    yield loads("Java parser", "tree-sitter-java", is_needed=is_needed)
    if is_needed and headers.found and cache.is_dir():  # compiling takes a second or two
        yield loads_ours("Java agent", "the JVM", lambda: _start(jdk, cache, variables), _OTHER_JDK)


def _headers(jdk: Jdk, *, is_needed: bool) -> Check:
    folder = jdk.home / "include"
    missing = [name for name in _HEADERS if not (folder / name).is_file()]
    says = f"{folder} lacks {' and '.join(missing)}" if missing else str(folder)
    remedy = "install a whole JDK (Debian: default-jdk-headless), or name its folder as home under [java]"
    return Check("JDK headers", needed=is_needed, found=not missing, says=says, remedy=remedy)


def _start(jdk: Jdk, cache: Path, variables: Mapping[str, str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """Compile the agent, which is kept in `cache` as a comparison would keep it; return what starts a JVM with it."""
    driver, runtime_cache = compiler(variables), cache / "runtime"
    library = agent.build(jdk, runtime_library.build_timed(driver, runtime_cache), driver, runtime_cache)
    return (str(jdk.java), f"-agentpath:{library}", "-version"), variables
