"""Benchmarks of JMH and tests of JUnit are listed in a built tree, and run by the commands that the listing names.

JUnit is that of Debian. JMH is in no registry that the tests reach: a stand-in prints what JMH 1.37, built from its source, was seen to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs.suites import Suites
from perfdiff.collect.runs.targets import Target
from perfdiff.config import Suite, WorkloadConfig
from perfdiff.errors import WorkloadError
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.java import counting
from perfdiff.languages.java.frameworks import Jmh, JUnit
from perfdiff.languages.java.jdks import Jdk, find
from perfdiff.languages.java.suites import gradle, jmh, junit, launchers, maven, modules, partners
from perfdiff.languages.java.suites.courses import Course
from perfdiff.languages.listing import LISTING_S, Benchmark, SuiteListing
from perfdiff.records.schema import Side
from programs import environment

JARS = Path("/usr/share/java")
DEBIAN = Path("/usr/share/maven-repo")
needs_junit = pytest.mark.skipif(not (JARS / "junit-jupiter-engine.jar").is_file(), reason="Debian's junit5 is not installed")
needs_maven = pytest.mark.skipif(
    not (DEBIAN / "org/apache/maven/plugins/maven-surefire-plugin").is_dir(), reason="Debian's plugins of Maven are not installed"
)
POM = "<project xmlns='http://maven.apache.org/POM/4.0.0'><modelVersion>4.0.0</modelVersion>"

STAND_IN = """
package org.openjdk.jmh;

import java.io.PrintStream;
import java.util.*;

public final class Main {
    static final Map<String, String[]> PARAMETERS = new LinkedHashMap<>();
    static {
        PARAMETERS.put("shop.Bench.comma", new String[] {"(kind = a, b)", "(kind = c)"});
        PARAMETERS.put("shop.Bench.exits", new String[] {""});
        PARAMETERS.put("shop.Bench.fails", new String[] {""});
        PARAMETERS.put("shop.Bench.forked", new String[] {""});
        PARAMETERS.put("shop.Bench.hangs", new String[] {""});
        PARAMETERS.put("shop.Bench.sum", new String[] {"(n = 100, ratio = 0.5)", "(n = 2000, ratio = 0.5)"});
        PARAMETERS.put("shop.Bench.once", new String[] {""});
    }

    public static void main(String[] arguments) throws Exception {
        List<String> given = Arrays.asList(arguments);
        if (System.getenv("LACKS") != null && given.contains(System.getenv("LACKS"))) {
            System.err.println("Error parsing command line:");
            System.err.println(" " + System.getenv("LACKS").substring(1) + " is not a recognized option");
            System.exit(1);
        }
        if (given.contains("-l")) {
            System.out.println("Benchmarks: ");
            PARAMETERS.keySet().forEach(System.out::println);
            return;
        }
        Map<String, String> options = new HashMap<>();
        List<String> wanted = new ArrayList<>();
        for (int at = 0; at < arguments.length; at++) {
            if (arguments[at].startsWith("-")) {
                options.merge(arguments[at], arguments[++at], (one, other) -> one + " " + other);
            } else {
                wanted.add(arguments[at]);
            }
        }
        PrintStream out = new PrintStream(options.get("-o"));
        for (String name : PARAMETERS.keySet()) {
            if (wanted.stream().anyMatch(one -> java.util.regex.Pattern.compile(one).matcher(name).find())) {
                for (String parameters : PARAMETERS.get(name)) {
                    run(name, parameters, options, out);
                }
            }
        }
        out.println("# Run complete. Total time: 00:00:00");
    }

    static void run(String name, String parameters, Map<String, String> options, PrintStream out) throws Exception {
        out.println("# Benchmark mode: Average time, time/op");
        out.println("# Benchmark: " + name);
        if (!parameters.isEmpty()) {
            out.println("# Parameters: " + parameters);
        }
        out.println();
        out.println("# Run progress: 0.00% complete, ETA 00:00:00");
        if (options.get("-bm").equals("ss") && !options.containsKey("-tu")) {
            System.out.println(name + " " + new TreeMap<>(options));
            return;
        }
        out.print("Iteration   1: ");
        if (name.endsWith("exits")) {
            System.exit(3);
        } else if (name.endsWith("hangs")) {
            Thread.sleep(1_000_000);
        } else if (name.endsWith("fails") || (name.endsWith("forked") && !options.get("-f").equals("1"))) {
            out.println("<failure>\\n\\njava.lang.IllegalStateException: closed\\n\\tat shop.Bench.fails(Bench.java:12)");
            out.println("Caused by: java.io.IOException: no such file\\n\\t... 15 more\\n");
        } else {
            out.println(options.get("-bm").equals("ss") ? "9000000.000 ns/op" : "3000.000 ns/op");
            out.println("Iteration   2: 2500.500 \\u00b1(99.9%) 12.000 ns/op");
        }
    }
}
"""
ENTRIES = "JMH S 10 shop.Bench S 38 shop.jmh_generated.Bench_sum_jmhTest S 3 sum S 11 AverageTime E A 1 1 1 E\n" + (
    "JMH S 10 shop.Bench S 39 shop.jmh_generated.Bench_once_jmhTest S 4 once S 14 SingleShotTime E A 1 1 1 E\n"
)


@pytest.fixture(scope="module")
def jdk() -> Jdk:
    return find(environment())


@pytest.fixture(scope="module")
def stand_in(jdk: Jdk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a jar of benchmarks."""
    folder = tmp_path_factory.mktemp("jmh")
    return packed(jdk, folder, ENTRIES)


def packed(jdk: Jdk, folder: Path, entries: str | None) -> Path:
    (folder / "Main.java").write_text(STAND_IN)
    subprocess.run([jdk.javac, "-d", folder / "classes", folder / "Main.java"], check=True)
    jar = folder / "benchmarks.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in (folder / "classes").rglob("*.class"):
            archive.write(path, path.relative_to(folder / "classes"))
        if entries is not None:
            archive.writestr("META-INF/BenchmarkList", entries)
    return jar


class Tree:
    """A built tree, in which suites are listed and run as in a comparison."""

    def __init__(self, folder: Path, jdk: Jdk, build: str = "") -> None:
        self.folder, self.jdk, self.build = folder, jdk, build
        self.variables = launchers.variables(folder, folder.parent / "cache", build)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def given(self) -> tuple[str, str, str]:
        return (*self.variables.values(), str(self.jdk.home))

    def run(self, benchmark: Benchmark, calls: int = 1, **values: object) -> subprocess.CompletedProcess[str]:
        command = benchmark.command.replace("{calls}", str(calls))
        for name, value in values.items():
            command = command.replace(f"{{{name}}}", str(value))
        return self.shell(command)

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, shell=True, cwd=self.folder, env={**os.environ, **self.variables}, capture_output=True, text=True, check=False
        )


@pytest.fixture
def tree(tmp_path: Path, jdk: Jdk, monkeypatch: pytest.MonkeyPatch) -> Tree:
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Tree(folder, jdk)


def workload(kind: str, what: str = "") -> WorkloadConfig:
    return WorkloadConfig(kind, suite=Suite(kind, what))


# JMH


@pytest.fixture(scope="module")
def built(jdk: Jdk, stand_in: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tree, SuiteListing]:
    """Return a tree with a jar of benchmarks, one of which hangs, and what is in it."""
    tree = Tree(tmp_path_factory.mktemp("built") / "tree", jdk)
    (tree.folder / "target").mkdir(parents=True)
    shutil.copy(stand_in, tree.folder / "target/app-1.2.0-jmh.jar")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tree.folder)
        patched.setenv(LISTING_S, "16")
        return tree, jmh.listed("", *tree.given())


def test_benchmarks_have_their_parameters_as_points_and_numbers_among_them_are_numbers(built: tuple[Tree, SuiteListing]) -> None:
    _, listed = built
    summed = listed.benchmarks["shop.Bench.sum"]
    assert summed.parameters == ("n", "ratio")
    assert summed.points == {(100, 0.5): (2.5005e-6, True), (2000, 0.5): (2.5005e-6, True)}


def test_what_fails_exits_or_hangs_is_told_and_what_comes_after_it_runs(built: tuple[Tree, SuiteListing]) -> None:
    _, listed = built
    assert set(listed.benchmarks) == {"shop.Bench.comma", "shop.Bench.forked", "shop.Bench.once", "shop.Bench.sum"}
    assert listed.failures["shop.Bench.fails"] == "java.io.IOException: no such file"
    assert listed.failures["shop.Bench.exits"] == "it ended the process, exit code 3"
    assert listed.failures["shop.Bench.hangs"].startswith("it takes longer than ")


def test_a_benchmark_is_called_as_often_as_asked_at_its_point_in_one_process_without_output_of_times(
    built: tuple[Tree, SuiteListing],
) -> None:
    tree, listed = built
    ran = tree.run(listed.benchmarks["shop.Bench.sum"], 700, n=100, ratio=0.5)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] == (
        "shop.Bench.sum {-bm=ss, -bs=700, -f=0, -foe=true, -i=1, -o=/dev/null, -p=n=100 ratio=0.5, -wi=0}"
    )


def test_single_shots_are_called_by_iterations_as_fixtures_belong_to_these(built: tuple[Tree, SuiteListing]) -> None:
    tree, listed = built
    once = listed.benchmarks["shop.Bench.once"]
    assert once.points == {(): (2.5005e-6, True)}
    assert "-i=5" in tree.run(once, 5).stdout
    assert "-bs" not in tree.run(once, 5).stdout


def test_what_fails_in_our_jvm_runs_in_a_fork_with_the_options_of_its_author(built: tuple[Tree, SuiteListing]) -> None:
    tree, listed = built
    assert "-f=1" in tree.run(listed.benchmarks["shop.Bench.forked"]).stdout


def test_values_with_a_comma_are_no_points_as_jmh_separates_values_by_it(built: tuple[Tree, SuiteListing]) -> None:
    _, listed = built
    assert list(listed.benchmarks["shop.Bench.comma"].points) == [("c",)]


def test_one_command_starts_jars_of_two_versions_each_revision_its_own(
    built: tuple[Tree, SuiteListing], tree: Tree, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, earlier = built
    (tree.folder / "target").mkdir()
    shutil.copy(stand_in, tree.folder / "target/app-1.3.0-jmh.jar")
    monkeypatch.setenv(LISTING_S, "4")
    later = jmh.listed("", *tree.given())
    assert later.benchmarks["shop.Bench.sum"].command == earlier.benchmarks["shop.Bench.sum"].command
    assert tree.run(earlier.benchmarks["shop.Bench.sum"]).returncode == 0


def test_a_jmh_that_lacks_an_option_says_so_of_all_benchmarks(tree: Tree, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(stand_in, tree.folder / "benchmarks.jar")
    monkeypatch.setenv("LACKS", "-opi")
    listing = jmh.listed("benchmarks.jar", *tree.given())
    assert not listing.benchmarks
    assert "opi is not a recognized option" in listing.failures["shop.Bench.sum"]


def test_a_jar_without_benchmarks_is_named_with_what_it_lacks(tree: Tree, jdk: Jdk) -> None:
    packed(jdk, tree.folder, None)
    assert jmh.listed("benchmarks.jar", *tree.given()).failures == {
        "benchmarks.jar": "benchmarks.jar is not in the built tree, or has no META-INF/BenchmarkList: has the build made it?"
    }


def test_a_jmh_that_does_not_start_says_why(tree: Tree, jdk: Jdk, stand_in: Path) -> None:
    main = 'package org.openjdk.jmh; public class Main { public static void main(String[] a) { throw new IllegalStateException("old"); } }'
    tree.write({"Main.java": main})
    subprocess.run([jdk.javac, "-d", "classes", "Main.java"], cwd=tree.folder, check=True)
    with zipfile.ZipFile(tree.folder / "benchmarks.jar", "w") as archive:
        archive.write("classes/org/openjdk/jmh/Main.class", "org/openjdk/jmh/Main.class")
        archive.writestr("META-INF/BenchmarkList", ENTRIES)
    assert jmh.listed("", *tree.given()).failures == {
        "benchmarks.jar": 'it lists no benchmark: Exception in thread "main" java.lang.IllegalStateException: old'
    }


@pytest.mark.parametrize(
    ("file", "text", "advice"),
    [
        (
            "pom.xml",
            f"{POM}<profiles><profile><id>perf</id><modules><module>bench</module></modules></profile></profiles></project>",
            "-Pperf",
        ),
        ("build.gradle", "plugins { id 'me.champeau.jmh' version '0.7.2' }", "`jmhJar`"),
        ("build.xml", "<project/>", "annotation processor"),
    ],
)
def test_a_build_that_makes_no_benchmarks_is_told_with_what_switches_them_on(tree: Tree, file: str, text: str, advice: str) -> None:
    tree.write({file: text})
    [reason] = jmh.listed("", *tree.given()).failures.values()
    assert advice in reason


def test_what_jmh_generates_around_benchmarks_is_not_counted(tmp_path: Path) -> None:
    made = "target/generated-sources/annotations/shop"
    for name in ("src/shop/Bench.java", f"{made}/jmh_generated/Bench_sum_jmhTest.java", f"{made}/generated/Bench_jmhType_B1.java"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"package {'.'.join(Path(name).parts[-2:-1])};\n")
    assert counting.source_names(tmp_path) == [b"shop/Bench.java"]


# JUnit


FOUR = """
package shop;

import static org.junit.Assert.*;
import org.junit.*;

public class Four%s {
    @Test public void passes() { assertEquals(6, 2 * 3); }
    @Test public void fails() { assertEquals(7, 2 * 3); }
    @Test public void exits() { System.exit(3); }
    @Test public void hangs() throws Exception { Thread.sleep(1_000_000); }
    @Test public void opens() { new java.awt.Frame(); }
    @Test public void isHeadless() { assertEquals("true", System.getProperty("java.awt.headless")); }
    @Test public void once() { assertNull(System.setProperty("once", "done")); }
    @Ignore @Test public void ignored() { }
}
"""
FIVE = """
package shop;

import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FiveTest {
    static int calls;
    @Test void passes() { System.out.println("call " + ++calls); System.err.println("call " + calls); }
    @Test @DisplayName("a name, with 'quotes'") void named() { }
    @Test void fails() { assertTrue(false, "it is closed"); }
    @Test @Disabled void disabled() { }
    @ParameterizedTest @ValueSource(strings = {"a", "b"}) void reads(String text) { System.err.println("read " + text); }
    @Nested class Inner { @Test void passes() { } }
    static class Broken {
        @BeforeAll static void open() { throw new IllegalStateException("no server"); }
        @Test void waits() { }
    }
}
"""
BROKEN = "package shop; class BrokenTest { @org.junit.jupiter.api.BeforeAll static void open() { throw new IllegalStateException("
BROKEN += '"no server"); } @org.junit.jupiter.api.Test void waits() { } }'
ONE = "package shop; public class {}Test {{ @org.junit.Test public void passes() {{ }} }}"
OF_FOUR = [f"{JARS}/junit4.jar"]
OF_FIVE = [f"{JARS}/{name}.jar" for name in ("junit-jupiter-api", "junit-jupiter-params", "apiguardian-api")]


def compiled(tree: Tree, sources: Mapping[str, str], jars: list[str]) -> Tree:
    """Compile classes as a build does that names single jars."""
    tree.write(sources)
    class_path = os.pathsep.join(jars)
    subprocess.run([tree.jdk.javac, "-cp", class_path, "-d", "build/tests", *sources], cwd=tree.folder, check=True)
    return Tree(tree.folder, tree.jdk, f"mkdir -p build/tests && javac -cp {class_path} -d build/tests {' '.join(sources)}")


@needs_junit
def test_tests_of_junit_4_are_listed_but_those_that_fail_exit_hang_or_need_a_display(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LISTING_S, "20")
    tree = compiled(tree, {"test/shop/FourTest.java": FOUR % "Test"}, OF_FOUR)
    listing = junit.listed("", *tree.given())
    assert set(listing.benchmarks) == {"shop.FourTest.isHeadless", "shop.FourTest.once", "shop.FourTest.passes"}
    assert listing.failures["shop.FourTest.fails"] == "java.lang.AssertionError: expected:<7> but was:<6>"
    assert listing.failures["shop.FourTest.exits"] == "it ended the process, exit code 3"
    assert listing.failures["shop.FourTest.hangs"].startswith("it takes longer than ")
    assert "HeadlessException" in listing.failures["shop.FourTest.opens"]
    assert "shop.FourTest.ignored" not in listing.failures


def elsewhere(tree: Tree, kind: str, room: Path) -> Tree:
    """Return the same tree on a machine that has listed nothing, but is told to have the suite ready."""
    other = Tree(tree.folder, tree.jdk, tree.build)
    other.variables = launchers.variables(tree.folder, room / "other-cache", tree.build)
    target = Target(tree.folder, None, tree=tree.folder, variables={**other.variables, "JAVA_HOME": str(tree.jdk.home)})
    (room / "work").mkdir()
    Suites({Side.BASE: target}, dict(os.environ), room / "work").provide([workload(kind)], ProcessExecutor())
    return other


@needs_junit
def test_tests_that_one_machine_has_listed_run_on_another_one(tree: Tree, tmp_path: Path) -> None:
    source = "package shop; import org.junit.*; public class OneTest { @Test public void one() { } }"
    tree = compiled(tree, {"test/shop/OneTest.java": source}, OF_FOUR)
    one = junit.listed("", *tree.given()).benchmarks["shop.OneTest.one"]
    ran = elsewhere(tree, "junit", tmp_path).run(one)
    assert ran.returncode == 0, ran.stderr


@needs_junit
def test_a_machine_that_lacks_what_tests_need_says_so(tree: Tree, tmp_path: Path) -> None:
    tree = compiled(tree, {"test/shop/OneTest.java": "package shop; public class OneTest { public void one() { } }"}, [])
    with pytest.raises(WorkloadError, match=r"junit cannot be run in base: .*no JUnit is on their class path"):
        elsewhere(tree, "junit", tmp_path)


def test_benchmarks_that_one_machine_has_listed_run_on_another_one(built: tuple[Tree, SuiteListing], tmp_path: Path) -> None:
    tree, listed = built
    ran = elsewhere(tree, "jmh", tmp_path).run(listed.benchmarks["shop.Bench.sum"], 700, n=100, ratio=0.5)
    assert ran.returncode == 0, ran.stderr


@needs_junit
@pytest.mark.parametrize(("limit_s", "whole"), [("3", False), ("60", True)])
def test_a_listing_says_whether_it_had_time_for_all_tests(tree: Tree, monkeypatch: pytest.MonkeyPatch, limit_s: str, whole: bool) -> None:
    monkeypatch.setenv(LISTING_S, limit_s)
    naps = " ".join(f"@org.junit.Test public void nap{number}() throws Exception {{ Thread.sleep(1200); }}" for number in range(3))
    tree = compiled(tree, {"test/shop/NapTest.java": f"package shop; public class NapTest {{ {naps} }}"}, OF_FOUR)
    assert junit.listed("", *tree.given()).whole is whole


@needs_junit
def test_only_folders_whose_classes_refer_to_junit_take_part_in_the_time_of_a_listing(tree: Tree) -> None:
    tree = compiled(tree, {"test/shop/OneTest.java": ONE.format("One")}, OF_FOUR)
    tree.write({"src/shop/Till.java": "package shop; public class Till { }"})
    subprocess.run([tree.jdk.javac, "-d", "build/core", "src/shop/Till.java"], cwd=tree.folder, check=True)
    module = modules.plain(tree.build)
    assert (module.tests, module.class_path[:2]) == (("build/tests",), ("build/core", "build/tests"))


@needs_junit
def test_a_test_that_passes_once_in_a_process_is_called_once(tree: Tree) -> None:
    source = "package shop; import org.junit.*; public class OnceTest { @Test public void once() {"
    source += ' Assert.assertNull(System.setProperty("once", "done")); } }'
    tree = compiled(tree, {"test/shop/OnceTest.java": source}, OF_FOUR)
    once = junit.listed("", *tree.given()).benchmarks["shop.OnceTest.once"]
    assert [again for _, again in once.points.values()] == [False]
    assert "{calls}" not in once.command
    assert tree.run(once).returncode == 0
    assert tree.run(Benchmark("twice", once.command.replace("run 1", "run 2"))).returncode == 1


@needs_junit
def test_tests_of_junit_5_are_listed_by_methods_and_libraries_that_only_run_them_are_found(tree: Tree) -> None:
    tree = compiled(tree, {"test/shop/FiveTest.java": FIVE, "test/shop/BrokenTest.java": BROKEN}, OF_FIVE)
    listing = junit.listed("", *tree.given())
    names = {"shop.FiveTest.passes", "shop.FiveTest.named", "shop.FiveTest.reads(String)", "shop.FiveTest.Inner.passes"}
    assert set(listing.benchmarks) == names
    assert "it is closed" in listing.failures["shop.FiveTest.fails"]
    assert listing.failures["shop.BrokenTest"] == "java.lang.IllegalStateException: no server"
    assert all(again and seconds < 1 for one in listing.benchmarks.values() for seconds, again in one.points.values())
    assert listing.start_s > 0


@needs_junit
def test_a_test_runs_as_often_as_asked_and_several_in_one_process_without_output_of_theirs(tree: Tree) -> None:
    tree = compiled(tree, {"test/shop/FiveTest.java": FIVE}, OF_FIVE)
    listing = junit.listed("Five*", *tree.given())
    ran = tree.run(listing.benchmarks["shop.FiveTest.passes"], 3)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert [line for line in ran.stderr.splitlines() if line.startswith("call")] == ["call 1", "call 2", "call 3"]
    batches = [listing.benchmarks[f"shop.FiveTest.{name}"].batch for name in ("passes", "reads(String)", "named")]
    assert len({batch.command for batch in batches if batch}) == 1
    together = batches[0].command.replace("{cases}", batches[0].joint.join(batch.case for batch in batches if batch)) if batches[0] else ""
    ran = tree.shell(together)
    assert ran.returncode == 0, ran.stderr
    assert sorted(line for line in ran.stderr.splitlines() if line.startswith(("call", "read"))) == ["call 1", "read a", "read b"]


@needs_junit
@pytest.mark.parametrize(("pattern", "names"), [("On?Test", {"One"}), ("shop.Two*, *ThreeTest", {"Two", "Three"}), ("Nothing", set())])
def test_classes_are_chosen_by_patterns_of_names(tree: Tree, pattern: str, names: set[str]) -> None:
    tree = compiled(tree, {f"test/shop/{name}Test.java": ONE.format(name) for name in ("One", "Two", "Three")}, OF_FOUR)
    listing = junit.listed(pattern, *tree.given())
    assert set(listing.benchmarks) == {f"shop.{name}Test.passes" for name in names}
    assert listing.failures == ({} if names else {"tests": "no test class has such a name"})


def test_what_ran_before_a_test_that_ends_the_process_does_not_run_again() -> None:
    course = Course()
    for line in ("begin engine JUnit false", "begin a shop.A.a true", "end a 2000 ", "begin b shop.A.b true"):
        course.hear(line)
    course.stop("it ended the process, exit code 3")
    assert list(course.tried) == ["a", "b"]
    assert not course.is_over
    course.hear("begin b shop.A.b true")
    course.stop("it ended the process, exit code 3")
    assert course.is_over, "it runs again although it is left out"


def test_a_tree_without_compiled_tests_says_so(tree: Tree) -> None:
    assert junit.listed("", *tree.given()).failures == {"tests": "the built tree has no compiled tests"}


def test_a_launcher_is_found_in_the_repositories_of_maven_and_gradle_in_the_version_of_its_library(tmp_path: Path) -> None:
    for name in (
        "m2/org/junit/platform/junit-platform-commons/1.11.4/junit-platform-commons-1.11.4.jar",
        "m2/org/junit/platform/junit-platform-launcher/1.11.3/junit-platform-launcher-1.11.3.jar",
        "m2/org/junit/platform/junit-platform-launcher/1.9.0/junit-platform-launcher-1.9.0.jar",
        "files-2.1/org.junit.platform/junit-platform-commons/1.9.0/0a/junit-platform-commons-1.9.0.jar",
        "files-2.1/org.junit.platform/junit-platform-launcher/1.9.0/1b/junit-platform-launcher-1.9.0.jar",
        "files-2.1/org.junit.platform/junit-platform-launcher/1.9.0/2c/junit-platform-launcher-1.9.0-sources.jar",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    of_maven = str(tmp_path / "m2/org/junit/platform/junit-platform-commons/1.11.4/junit-platform-commons-1.11.4.jar")
    of_gradle = str(next(tmp_path.rglob("junit-platform-commons-1.9.0.jar")))
    assert [Path(jar).name for jar in partners.completed(".", [of_maven])[1:]] == ["junit-platform-launcher-1.11.3.jar"]
    assert [Path(jar).name for jar in partners.completed(".", [of_gradle])[1:]] == ["junit-platform-launcher-1.9.0.jar"]
    assert partners.missing([of_maven]) == "junit-platform-engine"


# Build tools


MODULE = POM + (
    "<parent><groupId>shop</groupId><artifactId>all</artifactId><version>1</version></parent><artifactId>{name}</artifactId>"
    "<dependencies>{own}<dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope>"
    "</dependency></dependencies></project>"
)
PARENT = POM + (
    "<groupId>shop</groupId><artifactId>all</artifactId><version>1</version><packaging>pom</packaging><modules><module>core</module>"
    "<module>app</module></modules><properties><maven.compiler.release>11</maven.compiler.release><project.build.sourceEncoding>UTF-8"
    "</project.build.sourceEncoding></properties><build><pluginManagement><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><version>2.22.3</version>"
    "<configuration><argLine>-javaagent:cover.jar -Xmx99m</argLine><systemPropertyVariables><shelf>a b</shelf></systemPropertyVariables>"
    "</configuration></plugin></plugins></pluginManagement></build></project>"
)
CORE = "<dependency><groupId>shop</groupId><artifactId>core</artifactId><version>1</version></dependency>"
SHELF = "package shop; public class Shelf { public static int books() { return 3; } }"
IN_MODULE = """
package shop;

import static org.junit.Assert.*;

public class ShelfTest {
    @org.junit.Test public void holds() {
        assertEquals(3, Shelf.books());
        assertEquals("a b", System.getProperty("shelf"));
        assertTrue(new java.io.File("src/test/java/shop/ShelfTest.java").isFile());
    }
}
"""


@pytest.mark.integration
@needs_maven
def test_maven_tells_the_class_paths_of_modules_and_what_their_jvms_are_given_and_compiles_nothing(tree: Tree) -> None:
    build = f"mvn -o -q -Dmaven.repo.local={DEBIAN} -DskipTests package"
    tree.write({
        "pom.xml": PARENT, "core/pom.xml": MODULE.format(name="core", own=""), "app/pom.xml": MODULE.format(name="app", own=CORE),
        "core/src/main/java/shop/Shelf.java": SHELF, "app/src/test/java/shop/ShelfTest.java": IN_MODULE,
    })  # fmt: skip
    subprocess.run(build, shell=True, cwd=tree.folder, check=True)
    tree = Tree(tree.folder, tree.jdk, build)
    for source in tree.folder.rglob("*.java"):
        source.touch()  # newer than its class, as checkouts may be
    before = {path: path.stat().st_mtime_ns for path in tree.folder.rglob("*.class")}
    listing = junit.listed("", *tree.given())
    assert not listing.failures
    assert set(listing.benchmarks) == {"shop.ShelfTest.holds"}
    assert listing.benchmarks["shop.ShelfTest.holds"].command.startswith("cd app && java ")
    assert tree.run(listing.benchmarks["shop.ShelfTest.holds"], 2).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in tree.folder.rglob("*.class")} == before
    [app] = (module for module in maven.modules(tree.folder, build).modules if module.folder == "app")
    assert app.options == ("-Xmx99m", "-Dshelf=a b")


def test_a_maven_that_fails_is_told_with_its_error(tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree.write({"pom.xml": POM, "../bin/mvn": "#!/bin/sh\necho '[ERROR] the artifact a:b:1 has not been downloaded'\nexit 1\n"})
    (tmp_path / "bin/mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert junit.listed("", *tree.given()).failures == {
        "tests": "Maven does not tell its class path: the artifact a:b:1 has not been downloaded"
    }


@needs_junit
def test_without_mavens_answer_the_jars_that_the_build_names_are_the_class_path(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree = compiled(tree, {"test/shop/OneTest.java": ONE.format("One")}, OF_FOUR)
    tree.write({"pom.xml": POM, "../bin/mvn": "#!/bin/sh\nexit 1\n"})
    (tmp_path / "bin/mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert set(junit.listed("", *tree.given()).benchmarks) == {"shop.OneTest.passes"}


@needs_junit
def test_revisions_with_the_same_jars_share_what_is_compiled_to_list_them(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    head = Tree(tree.folder.parent / "head", tree.jdk)
    head.folder.mkdir()
    for side in (tree, head):
        monkeypatch.chdir(side.folder)
        revision = compiled(side, {"test/shop/OneTest.java": ONE.format("One")}, OF_FOUR)
        assert set(junit.listed("", *revision.given()).benchmarks) == {"shop.OneTest.passes"}
    assert len(list((tree.folder.parent / "cache").glob("java-junit-*"))) == 1


@needs_junit
def test_a_slow_maven_leaves_tests_half_of_the_time_and_what_it_told_holds(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(LISTING_S, "30")
    compiled(tree, {"test/shop/OneTest.java": ONE.format("One")}, OF_FOUR)
    told = [
        "Configuring mojo 'org.apache.maven.plugins:maven-compiler-plugin:3.11.0:testCompile' with basic configurator -->",
        f"  (f) basedir = {tree.folder}",
        f"  (f) testPath = [{tree.folder}/build/tests, {OF_FOUR[0]}, {JARS}/hamcrest-core.jar]",
    ]
    lines = "\n".join(f'echo "[DEBUG] {line}"' for line in told)
    tree.write({"pom.xml": POM, "../bin/mvn": f"#!/bin/sh\n{lines}\nexec sleep 60\n"})
    (tmp_path / "bin/mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert set(junit.listed("", *tree.given()).benchmarks) == {"shop.OneTest.passes"}


GRADLE = f"""
apply plugin: 'java'
dependencies {{ testCompile files('{JARS}/junit4.jar', '{JARS}/hamcrest-core.jar') }}
test {{ jvmArgs '-Xmx99m'; systemProperty 'shelf', 'a b' }}
"""


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("gradle") is None, reason="Gradle is not installed")
def test_gradle_tells_the_class_paths_of_modules_and_what_their_jvms_are_given(tree: Tree) -> None:
    tree.write({
        "settings.gradle": "include 'app'", "app/build.gradle": GRADLE, "app/src/main/java/shop/Shelf.java": SHELF,
        "app/src/test/java/shop/ShelfTest.java": IN_MODULE,
    })  # fmt: skip
    subprocess.run(["gradle", "--offline", "--no-daemon", "-q", "assemble", "testClasses"], cwd=tree.folder, check=True)
    listing = junit.listed("", *tree.given())
    assert set(listing.benchmarks) == {"shop.ShelfTest.holds"}, listing.failures
    assert tree.run(listing.benchmarks["shop.ShelfTest.holds"], 2).returncode == 0


def test_a_gradle_that_fails_is_told_with_its_error(tree: Tree) -> None:
    tree.write({"build.gradle": "", "gradlew": "#!/bin/sh\nprintf '* What went wrong:\\n> No cached version of a:b:1\\n' >&2\nexit 1\n"})
    (tree.folder / "gradlew").chmod(0o755)
    assert gradle.modules(tree.folder).problem == "Gradle does not tell its class path: No cached version of a:b:1"


# What a checkout seems to have


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({"pom.xml": "<artifactId>jmh-core</artifactId> <artifactId>junit-jupiter</artifactId>"}, {"jmh", "junit"}),
        ({"pom.xml": "<modules/>", "bench/pom.xml": "<groupId>org.openjdk.jmh</groupId>"}, {"jmh"}),
        ({"settings.gradle.kts": "", "gradle/libs.versions.toml": 'junit = "5.11"', "app/build.gradle.kts": ""}, {"junit"}),
        ({"build.gradle": "plugins { id 'me.champeau.jmh' }"}, {"jmh"}),
        ({"build.xml": "", "lib/junit-4.13.jar": ""}, {"junit"}),
        ({"pom.xml": "<artifactId>testng</artifactId>"}, set()),
        ({"setup.py": "", "java/pom.xml": "<artifactId>junit</artifactId>"}, set()),
    ],
)
def test_frameworks_are_found_in_what_a_build_names(tree: Tree, files: Mapping[str, str], kinds: set[str]) -> None:
    tree.write(files)
    assert {framework.name for framework in (Jmh(), JUnit()) for _ in framework.find(tree.folder)} == kinds


def test_a_listing_learns_from_the_shell_in_which_revision_it_runs(tree: Tree) -> None:
    suite = Suite("junit", "Parser*Test")
    command = frameworks()["junit"].framework.command(tree.folder, suite, workload("junit", suite.what))
    last = f"printf '%s|' {command.partition('listed ')[2]}"
    ran = subprocess.run(last, shell=True, env={**tree.variables, "JAVA_HOME": "/a b"}, capture_output=True, text=True, check=True)
    assert ran.stdout.split("|") == ["Parser*Test", *tree.variables.values(), "/a b", ""]


@pytest.mark.parametrize(("value", "taken"), [("Parser*Test, a.B", True), ("", True), ("(a", False), (3, False)])
def test_patterns_of_junit_are_names(value: object, taken: bool) -> None:
    assert (JUnit().read(value) is not None) == taken
