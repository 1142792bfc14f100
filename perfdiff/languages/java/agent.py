"""The agents that put woven classes into JVMs: compiled against the JDK's headers and the runtime, and kept by content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.c import runtime_library
from perfdiff.languages.java.jdks import Jdk

SOURCES = Path(__file__).parent / "agent"
COUNTING = Path(__file__).parent / "counting"
LINES = Path(__file__).parent / "lines"
LIBRARY = "libperfdiff_java.so"

_PROBE = SOURCES / "PerfdiffProbe.java"
_COUNTS = COUNTING / "PerfdiffCounts.java"
_LINK_FLAGS = ("-Wl,-z,nodelete", "-Wl,-z,defs")
_OLDEST = 11  # the oldest JVM that loads what a newer JDK has compiled


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent's sources in C and the classes of its own, by the macro that says where each class file lies; and how it is compiled."""

    sources: tuple[Path, ...]
    classes: tuple[tuple[str, Path], ...]
    options: tuple[str, ...]


def build(jdk: Jdk, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the library of the agent that probes calls, compiling it at the first call.

    `runtime` is the folder of the runtime library, which the agent finds there when it is loaded. Raises BuildError where the JDK has no
    headers and where a compiler fails, StoreError where `cache` cannot be written.
    """
    return _kept(jdk, _Agent(_c_files(SOURCES), (("PERFDIFF_PROBE_CLASS", _PROBE),), runtime_library.over(runtime)), compiler, cache)


def build_counting(jdk: Jdk, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the library of the agent that probes calls and counts what they do, as `build` does."""
    classes = (("PERFDIFF_PROBE_CLASS", _PROBE), ("PERFDIFF_COUNTS_CLASS", _COUNTS))
    return _kept(jdk, _Agent(_c_files(SOURCES, COUNTING), classes, ("-DPD_PER_CALL", *runtime_library.over(runtime))), compiler, cache)


def build_lines(jdk: Jdk, compiler: str, cache: Path) -> Path:
    """Return the library of the agent that counts lines, as `build` does; it needs no runtime library."""
    shared = (COUNTING / "memory.c", SOURCES / "sheet.c", SOURCES / "threads.c", runtime_library.SOURCES / "notes.c")
    sources = (*_c_files(LINES), *shared)
    options = ("-isystem", str(runtime_library.SOURCES), "-lpthread")
    return _kept(jdk, _Agent(sources, (("PERFDIFF_COUNTS_CLASS", _COUNTS),), options), compiler, cache)


def _c_files(*folders: Path) -> tuple[Path, ...]:
    return tuple(path for folder in folders for path in sorted(folder.glob("*.c")))


def _kept(jdk: Jdk, agent: _Agent, compiler: str, cache: Path) -> Path:
    if not (jdk.home / "include/jvmti.h").is_file():
        raise BuildError(
            f"the headers of the JDK are not in {jdk.home / 'include'}; install a whole one (Debian and Ubuntu: default-jdk-headless,"
            " Fedora: java-devel), or name its folder as `home` under [java]",
            slug="no-jdk",
        )
    driver = compiled.c_driver(compiler)
    headers = {header for source in agent.sources for header in source.parent.glob("*.h")} | set(runtime_library.SOURCES.glob("*.h"))
    files = sorted({*agent.sources, *(path for _, path in agent.classes), *headers})
    name = compiled.fingerprint(driver, (jdk.identity, agent.options, compiled.MODULE_FLAGS, _LINK_FLAGS, _OLDEST), files)
    return compiled.kept(cache, f"java-agent-{name}", partial(_make, jdk, agent, driver)) / LIBRARY


def _make(jdk: Jdk, agent: _Agent, driver: str, folder: Path) -> None:
    versions = ("-source", str(_OLDEST), "-target", str(_OLDEST))
    for _, path in agent.classes:
        compiled.run([*jdk.compiling, *versions, "--patch-module", f"java.base={path.parent}", "-d", str(folder), str(path)])
    headers = jdk.home / "include"
    places = [f'-D{macro}="{folder / "java/lang" / path.with_suffix(".class").name}"' for macro, path in agent.classes]
    compiling = (driver, *compiled.MODULE_FLAGS, *places, "-isystem", str(headers), "-isystem", str(headers / "linux"))
    compiled.compile_module(compiling, agent.sources, (*_LINK_FLAGS, *agent.options), folder / LIBRARY)
