"""The agent that puts woven classes into JVMs: compiled against the JDK's headers and the runtime, and kept by content."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.java.jdks import Jdk

SOURCES = Path(__file__).parent / "agent"
LIBRARY = "libperfdiff_java.so"

_PROBE = SOURCES / "PerfdiffProbe.java"
_FLAGS = ("-std=gnu11", *compiled.FLAGS, "-Wno-missing-field-initializers")
_LINK_FLAGS = ("-Wl,-z,nodelete", "-Wl,-z,defs")
_OLDEST = 11  # the oldest JVM that loads what a newer JDK has compiled


def build(jdk: Jdk, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the agent's library, compiling it at the first call.

    `runtime` is the folder of the runtime library, which the agent finds there when it is loaded. Raises BuildError where the JDK has no
    headers and where a compiler fails, StoreError where `cache` cannot be written.
    """
    if not (jdk.home / "include/jvmti.h").is_file():
        raise BuildError(
            f"the headers of the JDK are not in {jdk.home / 'include'}; install a whole one (Debian and Ubuntu: default-jdk-headless,"
            " Fedora: java-devel), or name its folder as `home` under [java]",
            slug="no-jdk",
        )
    driver = compiled.c_driver(compiler)
    return compiled.kept(cache, f"java-agent-{_fingerprint(jdk, runtime, driver)}", partial(_make, jdk, runtime, driver)) / LIBRARY


def _fingerprint(jdk: Jdk, runtime: Path, driver: str) -> str:
    digest = hashlib.sha256(compiled.run([driver, "--version"]))
    digest.update(repr((jdk.identity, str(runtime), driver, _FLAGS, _LINK_FLAGS, _OLDEST)).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:24]


def _make(jdk: Jdk, runtime: Path, driver: str, made: Path) -> None:
    release = str(_OLDEST)
    compiled.run(
        [
            *(str(jdk.javac), "-J-XX:TieredStopAtLevel=1", "-encoding", "UTF-8", "-proc:none", "-nowarn", "-Xlint:-options"),
            *("-source", release, "-target", release, "--patch-module", f"java.base={SOURCES}", "-d", str(made), str(_PROBE)),
        ]
    )
    headers = jdk.home / "include"
    probe_class = made / "java/lang/PerfdiffProbe.class"
    compiled.run(
        [
            *(driver, "-shared", *_FLAGS, f'-DPERFDIFF_PROBE_CLASS="{probe_class}"'),
            *("-isystem", str(headers), "-isystem", str(headers / "linux"), "-isystem", str(runtime)),
            *(str(source) for source in sorted(SOURCES.glob("*.c"))),
            *("-o", str(made / LIBRARY), *_LINK_FLAGS, f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lperfdiff"),
        ]
    )
