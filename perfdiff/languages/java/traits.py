"""What is known of Java without its pack loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfdiff.languages.java import complaints
from perfdiff.languages.traits import BuildCause, Building, ErrorLine, Files, Key, KeyKind, Price, Queries, Running, Traits, Wording, parsed


@dataclass(frozen=True, slots=True)
class JavaConfig:
    """`[java]`: the JDK of a project's programs. `home` is its folder; None: JAVA_HOME's, else that of the `javac` on PATH."""

    home: str | None = None


_OPTIONS = ("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
# HotSpot's compilers and its collectors (Serial and Parallel, G1, Shenandoah, ZGC), and OpenJ9's.
_OWN_THREADS = (
    *("C1 Compiler", "C2 Compiler", "VM Thread", "VM Periodic", "Sweeper thread"),
    *("GC Thread#", "G1 ", "Shenandoah", "ZDirector", "ZDriver", "ZWorker", "ZStat", "ZUncommitter", "RuntimeWorker"),
    *("JIT Compilation", "GC Slave", "GC Worker"),
)
_FETCH = "builds fetch nothing: build the project once by hand without `-o` or `--offline`, so that it lies in the local repository"
_NEWER_JDK, _OLDER_JDK = (f"name {age} JDK as `home` under [java]" for age in ("a newer", "an older"))
_CAUSES = (
    BuildCause(r"offline mode and the artifact (\S+) has not been downloaded", "{} is not in the local repository", _FETCH),
    BuildCause(r"in offline mode: Could not find artifact (\S+)", "{} is not in the local repository", _FETCH),
    BuildCause(r"No cached version of (\S+) available for offline mode", "{} is not in Gradle's cache", _FETCH),
    BuildCause(r"error: release version (\d+) not supported", "the compiler knows no Java {}", _NEWER_JDK),
    BuildCause(r"error: invalid (?:target|source) release: (\S+)", "the compiler knows no Java {}", _NEWER_JDK),
    BuildCause(r"error: (?:Source|Target) option (\d+) is no longer supported", "the compiler makes no Java {} any more", _OLDER_JDK),
    BuildCause(r"Unsupported class file major version (\d+)", "the build tool reads no class files of version {}", _OLDER_JDK),
    BuildCause(r"(JAVA_HOME is not (?:set|defined correctly))", "{}", "name the folder of a JDK as `home` under [java]"),
)

TRAITS = Traits(
    name="java",
    title="Java",
    pack="perfdiff.languages.java.pack:made",
    frameworks="perfdiff.languages.java.frameworks:FRAMEWORKS",
    host="perfdiff.languages.java.host:examine",
    project="perfdiff.languages.java.project:JavaProject",
    settings=JavaConfig,
    keys={"home": Key(KeyKind.TEXT, 'the folder of a JDK, such as "/usr/lib/jvm/java-17-openjdk-amd64"')},
    wording=Wording(itself=frozenset(("this",)), statuses=frozenset(("true", "false")), between=frozenset(("new",))),
    queries=Queries(
        owners=("Connection", "Session", "Statement", "Transaction", "EntityManager", "JdbcTemplate"),
        methods=("execute", "executeQuery", "executeUpdate", "executeLargeUpdate", "executeBatch"),
    ),
    # A basic block of bytecode is one of machine code once it is compiled; one that is interpreted takes ten times as long. Compilers
    # unroll loops, and do several steps with one instruction.
    prices={"bytecode_blocks": Price(usual_ns=1.0, dearest_ns=50.0, work_ns=0.1), "heap_bytes": Price(dearest_ns=1.0)},
    files=Files(
        packaging=frozenset(("pom.xml", "build.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")),
        outside=re.compile(r"/hsperfdata_[^/]*/"),  # what each JVM tells others of itself
    ),
    building=Building(
        tools=("mvn", "gradle", "ant"),
        variables=(*_OPTIONS, "MAVEN_OPTS", "GRADLE_OPTS", "ANT_OPTS"),
        errors=(ErrorLine(rb"^\[ERROR\] .+\.java:\[\d+,\d+\] .+$", b"[ERROR] "),),  # Maven's
        causes=_CAUSES,
        holdings={"classes": parsed("parsed sources and classes of Java")},
    ),
    running=Running(
        variables=_OPTIONS,
        own_threads=_OWN_THREADS,
        complaint=complaints.read,
        options=r"(?<![\w-])-X[\w:+-][^\s\"',\]]*|-javaagent:\S+",
    ),
)
