"""Java projects that do not build or run say why, and what helps; what is built by Maven, ant and javac alone is built."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import runtimes
from perfdiff import cli
from perfdiff.build.builder import build
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.cli.exits import ExitCode
from perfdiff.config import BuildConfig
from perfdiff.errors import BuildError
from perfdiff.languages.java import homes
from perfdiff.languages.java.homes import JdkHomes
from perfdiff.languages.java.project import JavaProject, start
from perfdiff.languages.java.traits import JavaConfig
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions import pins
from perfdiff.revisions.repository import find_repository
from programs import environment, git
from test_revisions import commit

pytestmark = pytest.mark.integration

MAIN = """
package shop;

public final class Main {
    public static void main(String[] arguments) {
        int n = Integer.parseInt(arguments[0]);
        System.out.println(Till.sum(n));
    }
}
"""
TILL = """
package shop;

final class Till {
    static long sum(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i %s;
        }
        return sum;
    }
}
"""
FAST = {"src/shop/Main.java": MAIN, "src/shop/Till.java": TILL % "* 3"}
SLOW = {**FAST, "src/shop/Till.java": TILL % "% 7"}
HOARDING = {
    **FAST,
    "src/shop/Till.java": TILL.replace(
        "long sum = 0;", "long sum = 0;\n        java.util.List<long[]> all = new java.util.ArrayList<>();"
    ).replace("sum += i %s;", "all.add(new long[1000]);"),
}
KILLED = {**FAST, "src/shop/Till.java": TILL.replace("sum += i %s;", "Runtime.getRuntime().halt(3);")}
BROKEN = {**FAST, "src/shop/Till.java": TILL % "* ;"}
JAVAC = "mkdir -p out && javac -d out $(find src -name '*.java')"
RUN = "java -Xmx32m -cp out shop.Main {n}"


def project(folder: Path, base: Mapping[str, str], head: Mapping[str, str], build: str = JAVAC, run: str = RUN) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    config = f'[build]\ncommand = "{build}"\n\n[[workload]]\nname = "till"\ncommand = "{run}"\nparameters = {{ n = [100000] }}\nruns = 4\n'
    for side, files in (("base", base), ("head", head)):
        commit(folder, side, {**files, "perfdiff.toml": config})
        git(folder, "tag", side)
    return folder


Refused = Callable[[Path], str]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that all tests share, so that our own Java programs are compiled once."""
    return runtimes.lent_to(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def refused(cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Refused:
    """Return what compares base and head of a checkout, which must not be measured, and returns what it says on standard error."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def compare(checkout: Path) -> str:
        with pytest.raises(SystemExit) as left:
            cli.main(["base", "head", "-q", "--repo", str(checkout), "--cache", str(cache)])
        said = capfd.readouterr()
        assert (left.value.code, said.out) == (ExitCode.NOT_MEASURED, "")
        return said.err

    return compare


@pytest.mark.parametrize(
    ("head", "options", "slug", "words"),
    [
        (BROKEN, {}, "build-failed", "src/shop/Till.java:8: error: illegal start of expression"),
        (HOARDING, {}, "out-of-memory", "its JVM ran out of memory (Java heap space)"),
        (KILLED, {}, "workload-failed", "exited 3"),
        (SLOW, {"run": "java -cp out shop.Mian {n}"}, "no-main-class", "the class shop.Mian was not found"),
        (SLOW, {"build": "ant -q"}, "build-failed", "build.xml"),
        (SLOW, {"build": "javac --release 99 -d out src/shop/*.java"}, "build-failed", "the compiler knows no Java 99; name a newer JDK"),
    ],
    ids=["javac", "memory", "halted", "main", "ant", "release"],
)
def test_a_revision_that_cannot_be_measured_is_neither_slower_nor_fine(  # noqa: PLR0917 (a table's columns)
    tmp_path: Path, refused: Refused, head: Mapping[str, str], options: Mapping[str, str], slug: str, words: str
) -> None:
    said = refused(project(tmp_path / "project", FAST, head, **options))
    assert f"[{slug}]" in said, said
    assert words in said, said


def test_without_a_jdk_nothing_is_built_and_it_is_said_what_to_install(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFDIFF_JAVA_HOME", str(tmp_path / "no-jdk"))
    said = refused(project(tmp_path / "project", FAST, SLOW))
    assert "[no-jdk]" in said
    assert "default-jdk-headless" in said


def test_a_class_that_is_newer_than_the_jvm_is_told_with_both_versions(tmp_path: Path, refused: Refused) -> None:
    """The version is written into the class file, as no JDK at hand need be older than another one."""
    newer = r"&& printf '\\000\\000\\001\\000' | dd of=out/shop/Main.class bs=1 seek=4 conv=notrunc 2>/dev/null"
    said = refused(project(tmp_path / "project", FAST, SLOW, build=f"{JAVAC} {newer}"))
    assert "[class-version]" in said, said
    assert "the class shop.Main is made for Java 212" in said


def built(checkout: Path, command: str, cache: Path) -> Built:
    request = BuildRequest(
        pin=pins.resolve_one(find_repository(checkout), "HEAD", snapshots=checkout.parent).head,
        side=Side.HEAD,
        variant=Phase.PLAIN,
        config=BuildConfig(command),
        environment=environment(),
        workplace=JdkHomes(JavaConfig(), checkout, environment()),
    )
    return build(request, BuildCache(cache))


POM = "<project><modelVersion>4.0.0</modelVersion><groupId>e</groupId><artifactId>{name}</artifactId><version>1</version>{rest}</project>"
MODULES = "<packaging>pom</packaging><modules><module>core</module><module>app</module></modules>" + (
    "<properties><maven.compiler.release>11</maven.compiler.release></properties>"
)
CHILD = (
    "<project><modelVersion>4.0.0</modelVersion><parent><groupId>e</groupId><artifactId>top</artifactId><version>1</version></parent>"
    "<artifactId>{name}</artifactId>{rest}</project>"
)
ON_CORE = "<dependencies><dependency><groupId>e</groupId><artifactId>core</artifactId><version>1</version></dependency></dependencies>"
MAVEN = {
    "pom.xml": POM.format(name="top", rest=MODULES),
    "core/pom.xml": CHILD.format(name="core", rest=""),
    "core/src/main/java/shop/Till.java": (TILL % "* 3")
    .replace("final class", "public final class")
    .replace("static long", "public static long"),
    "app/pom.xml": CHILD.format(name="app", rest=ON_CORE),
    "app/src/main/java/shop/Main.java": MAIN,
}


def test_a_project_of_several_modules_is_built_by_maven_without_a_network(tmp_path: Path) -> None:
    """With the plugins that Debian's packages bring."""
    checkout = tmp_path / "project"
    checkout.mkdir()
    git(checkout, "init", "-q")
    commit(checkout, "head", MAVEN)
    system = JavaProject().build_system(checkout)
    assert system is not None
    command = system.command.replace("mvn", "mvn -Dmaven.repo.local=/usr/share/maven-repo")
    made = built(checkout, command, tmp_path / "cache")
    started = start(checkout, system)
    run = ["java", "-cp", ":".join(started.classes), str(started.main), "10"]
    assert subprocess.run(run, cwd=made.folder, capture_output=True, text=True, check=True).stdout == "135\n"
    assert homes.read(made.beside).versions == {}


def test_sources_with_other_letters_than_english_ones_are_built_and_mean_what_they_say(tmp_path: Path) -> None:
    checkout = tmp_path / "project"
    checkout.mkdir()
    git(checkout, "init", "-q")
    commit(checkout, "head", {"src/shop/Main.java": MAIN.replace("Till.sum(n)", '(int) "—ß".charAt(n)')})
    made = built(checkout, JAVAC, tmp_path / "cache")
    ended = subprocess.run(["java", "-cp", "out", "shop.Main", "1"], cwd=made.folder, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{ord('ß')}\n"


def test_maven_without_its_plugins_says_what_is_missing_and_how_it_comes(tmp_path: Path) -> None:
    checkout = tmp_path / "project"
    checkout.mkdir()
    git(checkout, "init", "-q")
    commit(checkout, "head", MAVEN)
    with pytest.raises(BuildError, match="not in the local repository") as raised:
        built(checkout, f"mvn -o -q -Dmaven.repo.local={tmp_path / 'empty'} package", tmp_path / "cache")
    assert raised.value.slug == "build-failed"
    assert "maven-resources-plugin" in str(raised.value)
    assert "builds fetch nothing" in str(raised.value)
