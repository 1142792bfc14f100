"""What tells a Java project, how it is built, what it uses of others, and what its programs run on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfdiff import configuration
from perfdiff.build import variants
from perfdiff.build.failures import read_failure
from perfdiff.cli.init import project_in, template
from perfdiff.collect.runs import workloads
from perfdiff.configuration import Overrides, shellwords
from perfdiff.errors import BuildError
from perfdiff.languages.dependencies import changes as dependency_changes
from perfdiff.languages.java import ant, buildtools, complaints, dependencies, homes, jvms
from perfdiff.languages.java.homes import JdkHomes
from perfdiff.languages.java.jdks import Jdk, find
from perfdiff.languages.java.project import JavaProject, start
from perfdiff.languages.java.traits import JavaConfig
from programs import FIXTURES, environment

MAIN = "package shop;\npublic class Till {\n  public static void main(String[] arguments) {}\n}\n"
OTHER = "package shop;\nclass Helper {}\n"
POM = "<project><modelVersion>4.0.0</modelVersion></project>"


def write_file(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def jdk() -> Jdk:
    return find(environment())


@pytest.mark.parametrize(
    ("command", "started"),
    [
        ("java -jar a.jar {n}", ["java"]),
        ("sh -c 'cd x && exec java -cp a b.C'", ["cd", "java"]),
        ('X="1 2" time taskset -c 0,1 $JAVA_HOME/bin/java Main', ["java"]),
        ("timeout 10s nice -n 5 ./gradlew -q run", ["gradlew"]),
        ("bash -ec \"sh -c 'mvn -o test'\"", ["mvn"]),
        ("printf x | java Main > out && diff out right", ["printf", "java", "out", "diff"]),
        ("echo 'java", []),
    ],
)
def test_the_programs_of_a_command_are_known_whatever_stands_around_them(command: str, started: list[str]) -> None:
    assert list(shellwords.programs(command)) == started


@pytest.mark.parametrize(
    ("files", "command", "sign", "build"),
    [
        (["pom.xml"], "./bench.sh", "pom.xml", "mvn -o -q -DskipTests package"),
        (["pom.xml", "mvnw"], "java -jar a.jar", "pom.xml", "./mvnw -o -q -DskipTests package"),
        (["settings.gradle.kts"], "./bench.sh", "settings.gradle.kts", "gradle --offline --no-daemon -q assemble"),
        (["build.gradle", "gradlew"], "./bench.sh", "build.gradle", "./gradlew --offline --no-daemon -q assemble"),
        (
            ["settings.gradle", "app/src/test/java/TillTest.java"],
            "./bench.sh",
            "settings.gradle",
            "gradle --offline --no-daemon -q assemble testClasses",
        ),
        (["build.xml"], "./bench.sh", "build.xml", "ant -q"),
        (
            ["src/shop/Till.java"],
            "java -cp build/classes shop.Till",
            "src",
            "mkdir -p build/classes && javac -d build/classes $(find src -name '*.java')",
        ),
        (["Till.java"], "java -cp build/classes Till", "*.java", "mkdir -p build/classes && javac -d build/classes *.java"),
        # Makefiles build what lies beside them, whatever that is; Maven is what somebody takes who has both.
        (["Makefile", "src/Till.java"], "java -cp out Till", "Makefile", "make -j$(nproc)"),
        (["CMakeLists.txt", "pom.xml"], "java -jar a.jar", "pom.xml", "mvn -o -q -DskipTests package"),
    ],
)
def test_a_java_project_is_known_and_its_build_is_guessed(tmp_path: Path, files: list[str], command: str, sign: str, build: str) -> None:
    for name in files:
        write_file(tmp_path, name)
    config = configuration.load(tmp_path, overrides=Overrides(command=command), environment={})
    assert config.languages["java"] == JavaConfig()
    assert (config.build.command, config.build_guessed_from) == (build, sign)


@pytest.mark.parametrize(
    ("wanted", "downloaded", "path", "program"),
    [
        ("apache-maven-3.9.9-bin.zip", None, "bin", "mvn"),
        ("apache-maven-3.9.9-bin.zip", None, "other", "./mvnw"),
        ("apache-maven-3.9.9-bin.zip", "apache-maven-3.8.8-bin", "bin", "mvn"),
        ("apache-maven-3.9.9-bin.zip", "apache-maven-3.9.9-bin", "bin", "./mvnw"),
        ("apache-maven-3.9.9-bin.zip", "apache-maven-3.9.9", "bin", "./mvnw"),
        ("", None, "bin", "./mvnw"),
    ],
)
def test_a_wrapper_whose_version_was_never_downloaded_gives_way_to_the_program_on_path(
    tmp_path: Path, wanted: str, downloaded: str | None, path: str, program: str
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    properties = f"distributionUrl=https\\://repo.example/{wanted}\n" if wanted else ""
    write_file(project, "mvnw")
    write_file(project, ".mvn/wrapper/maven-wrapper.properties", properties)
    if downloaded:
        write_file(home, f".m2/wrapper/dists/{downloaded}/4f2c/bin/mvn")
    write_file(tmp_path, "bin/mvn")
    (tmp_path / "bin/mvn").chmod(0o755)
    assert buildtools.MAVEN.command(project, home, str(tmp_path / path)) == program


ANT_COMPILE = '<target name="compile"><javac srcdir="src" destdir="out"/></target>'
ANT_TESTS = '<target name="tests" depends="compile"><javac srcdir="test" destdir="out-test"/></target>'
ANT_CHECK = '<target name="check" depends="tests"><junit/></target>'


@pytest.mark.parametrize(
    ("default", "targets", "named"),
    [
        ("compile", ANT_COMPILE, ()),
        ("tests", ANT_COMPILE + ANT_TESTS, ()),
        ("compile", ANT_COMPILE + ANT_TESTS + ANT_CHECK, ("compile", "tests")),
        ("check", ANT_COMPILE + ANT_TESTS + ANT_CHECK, ("tests",)),
        ("all", ANT_COMPILE + '<target name="all"><antcall target="doc"/></target><target name="doc"><javadoc/></target>', ("compile",)),
        ("help", ANT_COMPILE + '<target name="help"><echo/></target>', ("compile",)),
        ("check", '<target name="-hidden"><javac srcdir="test"/></target><target name="check" depends="-hidden"><junit/></target>', ()),
        ("check", ANT_TESTS + ANT_CHECK + '<import file="common.xml"/>', ("tests",)),
        ("compile", "<target", ()),
    ],
)
def test_ant_compiles_tests_and_neither_runs_them_nor_writes_documentation(
    tmp_path: Path, default: str, targets: str, named: tuple[str, ...]
) -> None:
    write_file(tmp_path, "build.xml", f'<project default="{default}">{targets}</project>')
    write_file(tmp_path, "common.xml", f"<project>{ANT_COMPILE}</project>")
    assert ant.targets(tmp_path) == named
    system = JavaProject().build_system(tmp_path)
    assert system is not None
    assert system.command == " ".join(["ant", "-q", *named])


ANT_LEVEL = '<property name="{0}" value="{1}"/><target name="c"><javac {2}/></target>'
MAVEN_LEVEL = "<project><properties><{0}>{1}</{0}></properties><build><source>{2}</source></build></project>"


@pytest.mark.parametrize(
    ("file", "text", "given"),
    [
        ("build.xml", ANT_LEVEL.format("level", "1.5", 'source="${level}" target="${level}"'), "-Dlevel=8"),
        ("build.xml", ANT_LEVEL.format("level", "1.8", 'source="${level}"'), ""),
        ("build.xml", ANT_LEVEL.format("version", "1.5", 'srcdir="src"'), ""),
        ("build.xml", ANT_LEVEL.format("level", "1.5", 'source="1.5"'), ""),
        ("pom.xml", MAVEN_LEVEL.format("java.version", "7", "${java.version}"), "-Djava.version=8"),
        ("pom.xml", MAVEN_LEVEL.format("maven.compiler.target", "1.6", ""), "-Dmaven.compiler.target=8"),
        ("pom.xml", MAVEN_LEVEL.format("java.version", "17", "${java.version}"), ""),
        ("pom.xml", MAVEN_LEVEL.format("version", "1.5", ""), ""),
    ],
)
def test_a_level_of_java_that_no_jdk_compiles_for_gives_way_where_it_is_a_property(
    tmp_path: Path, file: str, text: str, given: str
) -> None:
    write_file(tmp_path, file, text)
    system = JavaProject().build_system(tmp_path)
    assert system is not None
    assert [word for word in system.command.split() if word.startswith("-D") and word != "-DskipTests"] == given.split()


def test_a_build_by_gradle_makes_the_jar_of_the_benchmarks_that_its_plugin_for_jmh_has(tmp_path: Path) -> None:
    write_file(tmp_path, "settings.gradle.kts")
    write_file(tmp_path, "bench/build.gradle.kts", 'plugins { id("me.champeau.jmh") version "0.7.2" }')
    system = JavaProject().build_system(tmp_path)
    assert system is not None
    assert system.command == "gradle --offline --no-daemon -q assemble jmhJar"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["Makefile", "bindings/java/Till.java"], "./bench"),
        (["CMakeLists.txt", "pom.xml"], "./bench"),  # a binding beside a library
        (["Makefile"], "python3 java.py"),
        (["setup.py", "pom.xml"], "python3 bench.py"),
    ],
)
def test_a_project_of_another_language_is_none_of_java(tmp_path: Path, files: list[str], command: str) -> None:
    for name in files:
        write_file(tmp_path, name, "setup()" if name == "setup.py" else "")
    assert configuration.load(tmp_path, overrides=Overrides(command=command), environment={}).languages.keys().isdisjoint({"java"})


def test_a_workload_that_starts_a_jvm_makes_a_java_project_of_one_with_another_build(tmp_path: Path) -> None:
    write_file(tmp_path, "Makefile")
    write_file(tmp_path, "perfdiff.toml", '[[workload]]\nname = "x"\ncommand = "sh -c \'java -jar a.jar\'"\n')
    assert configuration.load(tmp_path, environment={}).languages["java"] == JavaConfig()


def test_a_driver_in_python_leaves_the_build_to_java(tmp_path: Path) -> None:
    write_file(tmp_path, "pom.xml", POM)
    config = configuration.load(tmp_path, overrides=Overrides(command="python3 drive.py"), environment={"PERFDIFF_JAVA_HOME": "/opt/jdk"})
    assert config.languages["java"] == JavaConfig("/opt/jdk")
    assert "python" in config.languages
    assert config.build.command == "mvn -o -q -DskipTests package"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pom.xml": POM, "src/main/java/shop/Till.java": MAIN}, "java -cp target/classes shop.Till {n}"),
        (
            {"pom.xml": POM, "core/src/main/java/shop/Helper.java": OTHER, "app/src/main/java/shop/Till.java": MAIN},
            "java -cp app/target/classes:core/target/classes shop.Till {n}",
        ),
        ({"build.gradle": "", "src/main/java/shop/Till.java": MAIN}, "java -cp build/classes/java/main shop.Till {n}"),
        ({"build.xml": '<javac srcdir="src" destdir="bin"/>', "src/shop/Till.java": MAIN}, "java -cp bin shop.Till {n}"),
        ({"src/shop/Helper.java": OTHER, "src/shop/Till.java": MAIN}, "java -cp build/classes shop.Till {n}"),
        ({"src/shop/Helper.java": OTHER}, "java -cp build/classes Main {n}"),
    ],
)
def test_init_writes_what_starts_the_program(tmp_path: Path, files: dict[str, str], command: str) -> None:
    for name, text in files.items():
        write_file(tmp_path, name, text)
    system = JavaProject().build_system(tmp_path)
    assert system is not None
    text = template(project_in(tmp_path))
    write_file(tmp_path, "perfdiff.toml", text)
    config = configuration.load(tmp_path, overrides=Overrides(command=command, parameters={"n": (1,)}), environment={})
    assert config.build.command == system.command
    assert f'# command = "{command}"' in text
    assert config.languages["java"] == JavaConfig()


def test_libraries_are_named_with_the_versions_that_build_files_ask_for(tmp_path: Path) -> None:
    write_file(
        tmp_path,
        "pom.xml",
        """<project xmlns="http://maven.apache.org/POM/4.0.0"><artifactId>top</artifactId><version>3</version>
        <properties><json.version>2.${minor}</json.version><minor>7</minor></properties>
        <dependencyManagement><dependencies>
          <dependency><groupId>org.managed</groupId><artifactId>managed</artifactId><version>1.0</version></dependency>
        </dependencies></dependencyManagement></project>""",
    )
    write_file(
        tmp_path,
        "app/pom.xml",
        """<project><parent><artifactId>top</artifactId><version>3</version></parent><artifactId>app</artifactId><dependencies>
          <dependency><groupId>org.json</groupId><artifactId>json</artifactId><version>${json.version}</version></dependency>
          <dependency><groupId>org.managed</groupId><artifactId>managed</artifactId></dependency>
          <dependency><groupId>x</groupId><artifactId>top</artifactId><version>${project.version}</version></dependency>
        </dependencies></project>""",
    )
    write_file(tmp_path, "tools/build.gradle", "def guava = '33.0'\ndependencies { implementation \"com.google:guava:$guava\" }\n")
    write_file(tmp_path, "gradle/libs.versions.toml", '[versions]\nx = "1.5"\n[libraries]\na = { module = "g:a", version.ref = "x" }\n')
    write_file(tmp_path, "lib/slf4j-api-2.0.9.jar", "one")
    write_file(tmp_path, "lib/own.jar", "two")
    write_file(tmp_path, "app/target/app-3.jar", "made")
    write_file(tmp_path, "app/target/dependency/json-2.7.jar", "copied")
    found = dependencies.versions(tmp_path)
    assert found.pop("own.jar")
    assert found == {
        "com.google:guava": "33.0",
        "g:a": "1.5",
        "json": "2.7",
        "org.json:json": "2.7",
        "org.managed:managed": "1.0",
        "slf4j-api": "2.0.9",
    }


def test_changes_of_libraries_are_told_in_words() -> None:
    changes = dependency_changes({"g:a": "1", "g:b": "1", "g:c": "1"}, {"g:a": "2", "g:b": "1", "g:d": "3"})
    assert [change.says for change in changes] == [
        "now uses g:a 2, was 1",
        "does without g:c, was 1",
        "now uses g:d 3, which it did not before",
    ]


@pytest.mark.parametrize("text", ["<project", '<!DOCTYPE x [<!ENTITY a "b">]><project/>', "\x00"])
def test_a_build_file_that_cannot_be_read_names_no_libraries(tmp_path: Path, text: str) -> None:
    write_file(tmp_path, "pom.xml", text)
    write_file(tmp_path, "gradle/libs.versions.toml", "[versions")
    assert dependencies.versions(tmp_path) == {}


def test_builds_and_workloads_find_the_same_jdk(tmp_path: Path, jdk: Jdk) -> None:
    beside = tmp_path / "build"
    tree = beside / "source"
    tree.mkdir(parents=True)
    made = JdkHomes(JavaConfig(str(jdk.home)), tmp_path, environment())
    prepared = made.prepare(beside, tree, tree, {"PATH": "/usr/bin:/bin"})
    assert made.finish(beside, tree, tree, {}) == ()
    assert homes.read(beside).home == jdk.home
    assert made.broken(beside) is None
    asked = ["sh", "-c", 'javac -J-XshowSettings:properties -version 2>&1 | grep "java.home"; echo $JAVA_HOME']
    told = subprocess.run(asked, env=dict(prepared.variables), capture_output=True, text=True, check=True).stdout.split()
    assert told[-1] == str(jdk.home)
    assert Path(told[2]).resolve() == jdk.home.resolve()


def test_a_jdk_is_named_relative_to_the_project_or_to_home(tmp_path: Path, jdk: Jdk) -> None:
    (tmp_path / "jdk").symlink_to(jdk.home)
    assert JdkHomes(JavaConfig("jdk"), tmp_path, {}).jdk.release == jdk.release


def test_a_kept_build_whose_jdk_is_gone_is_made_again(tmp_path: Path, jdk: Jdk) -> None:
    (tmp_path / "jdk").symlink_to(jdk.home)
    made = JdkHomes(JavaConfig("jdk"), tmp_path, {})
    made.finish(tmp_path, tmp_path, tmp_path, {})
    (tmp_path / "jdk").unlink()
    assert made.broken(tmp_path) == f"the JDK {tmp_path / 'jdk'} is gone"


def test_only_a_jre_is_an_error_that_says_what_to_install(tmp_path: Path, jdk: Jdk) -> None:
    (tmp_path / "jre/bin").mkdir(parents=True)
    (tmp_path / "jre/bin/java").symlink_to(jdk.java)
    for config, variables in ((JavaConfig("jre"), {}), (JavaConfig(), {"PATH": str(tmp_path / "jre/bin")})):
        with pytest.raises(BuildError, match="default-jdk-headless") as raised:
            _ = JdkHomes(config, tmp_path, variables).identity
        assert raised.value.slug == "no-jdk"
        assert "JRE" in str(raised.value)


def test_a_jvm_tells_what_it_takes_from_the_machine(jdk: Jdk) -> None:
    told = jvms.ask(jdk.home, {jvms.OPTIONS: "-XX:+UseSerialGC -Xmx64m -XX:ActiveProcessorCount=3"})
    assert (told.name, told.collector, told.processors) == ("OpenJDK", "Serial", 3)
    assert told.heap is not None
    assert told.heap.endswith("M")


def test_a_jvm_on_one_cpu_takes_what_it_takes_for_the_user(jdk: Jdk) -> None:
    variables = {**environment(), **jvms.variables(jdk.home, environment())}
    command = ["taskset", "-c", "0", jdk.java, "-Xlog:gc:stdout", "-version"]
    alone, free = (
        subprocess.run(each, env=variables, capture_output=True, text=True, check=True).stdout.split("Using ")[1].split()[0]
        for each in (command, command[3:])
    )
    assert alone == free


def test_the_users_own_options_of_jvms_prevail(jdk: Jdk) -> None:
    assert jvms.variables(jdk.home, {jvms.OPTIONS: "-Xmx64m"})[jvms.OPTIONS].endswith(" -Xmx64m")
    own = {jvms.OPTIONS: "-XX:ActiveProcessorCount=7"}
    assert jvms.variables(jdk.home, own) == own


@pytest.mark.parametrize(
    ("tail", "slug", "says"),
    [
        (
            'Exception in thread "main" java.lang.UnsupportedClassVersionError: a/Main has been compiled by a more recent version of the '
            "Java Runtime (class file version 69.0), this version of the Java Runtime only recognizes class file versions up to 61.0",
            "class-version",
            "a.Main is made for Java 25, and the JVM that ran it knows Java 17 at most",
        ),
        ("java.lang.OutOfMemoryError: Java heap space\n\tat a.Main.main(Main.java:3)", "out-of-memory", "out of memory (Java heap space)"),
        ("Error: Could not find or load main class a.Main\nCaused by: …", "no-main-class", "the class a.Main was not found"),
        ("Error: Unable to access jarfile target/x.jar", "no-main-class", "the jar target/x.jar was not found"),
    ],
)
def test_what_a_jvm_complains_of_is_understood(tail: str, slug: str, says: str) -> None:
    found = complaints.read(f"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n{tail}\n")
    assert found is not None
    assert found.slug == slug
    assert says in found.says


def test_another_failure_is_no_complaint_of_a_jvm() -> None:
    assert complaints.read('Exception in thread "main" java.lang.IllegalStateException: no') is None


@pytest.mark.parametrize(
    ("log", "cause", "remedy"),
    [
        (
            "[\x1b[1;31mERROR\x1b[m] Plugin org.apache:maven-jar-plugin:2.4 could not be resolved: Cannot access central (https://x) in "
            "offline mode and the artifact org.apache:maven-jar-plugin:jar:2.4 has not been downloaded from it before.\x1b[m",
            "org.apache:maven-jar-plugin:jar:2.4 is not in the local repository",
            "without `-o`",
        ),
        ("> No cached version of g:a:1.0 available for offline mode.", "g:a:1.0 is not in Gradle's cache", "without `-o`"),
        ("error: release version 27 not supported", "the compiler knows no Java 27", "newer JDK"),
        ("[ERROR] src/main/java/A.java:[3,5] cannot find symbol", "[ERROR] src/main/java/A.java:[3,5] cannot find symbol", ""),
        ("src/A.java:3: error: ';' expected", "src/A.java:3: error: ';' expected", ""),
    ],
)
def test_why_a_build_of_java_failed_is_read_off_its_log(tmp_path: Path, log: str, cause: str, remedy: str) -> None:
    (tmp_path / "log").write_text(f"first\n{log}\nlast\n")
    found = read_failure(tmp_path / "log", tmp_path)
    assert found.cause == cause
    assert remedy in found.remedy
    assert "\x1b" not in found.excerpt


def test_every_fixture_names_its_classes_as_init_would() -> None:
    """The guess of a main class is right for each of our own programs."""
    for folder in sorted((FIXTURES / "java").iterdir()):
        system = JavaProject().build_system(folder / "base")
        assert system is not None
        started = start(folder / "base", system)
        assert started.main is not None, folder
        assert list((folder / "base").rglob(f"{started.main.replace('.', '/')}.java")), folder


def test_what_jvms_read_of_the_environment_makes_another_build_and_another_experiment() -> None:
    given = {"JAVA_TOOL_OPTIONS": "-Xmx1g", "CLASSPATH": "lib", "HOME": "/root"}
    assert variants.keyed(given) == workloads.keyed([], given) == {"JAVA_TOOL_OPTIONS": "-Xmx1g", "CLASSPATH": "lib"}
