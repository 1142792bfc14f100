"""Java programs that make it hard for probes: they end, load classes and change them in all ways; and JDKs that are none."""

from __future__ import annotations

import os
import signal
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import java_programs
from java_programs import Program, program
from perfdiff.collect.recordings import remarks
from perfdiff.errors import BuildError
from perfdiff.languages.java import jdks, start
from perfdiff.languages.java.jdks import Jdk
from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import calls

pytestmark = pytest.mark.integration

JDKS = pytest.mark.parametrize("jdk", java_programs.of_each_library(), ids=lambda jdk: f"jdk{jdk.feature}")
WORK = "Main work (I)I"
SMALL = "class Main { static int work(int n) { return n; } public static void main(String[] a) { work(1); } }"


def make(folder: Path, text: str, *methods: str) -> Program:
    return program(folder, java_programs.jdk(), {"Main.java": text}, {method: [] for method in methods or (WORK,)})


ENDS = """
import java.util.*;
class Main {
    static int work(int n) { return n + 1; }
    static void end(String how) throws Exception {
        for (int i = 0; i < 1000; i++) work(i);
        switch (how) {
            case "exit": System.exit(3);
            case "halt": Runtime.getRuntime().halt(4);
            case "kill": new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor(); Thread.sleep(60000);
            case "memory": List<long[]> kept = new ArrayList<>(); while (true) kept.add(new long[1 << 16]);
            case "thrown": throw new Exception("over");
            case "daemon":
                Thread thread = new Thread(() -> { while (true) work(1); });
                thread.setDaemon(true);
                thread.start();
                Thread.sleep(20);
        }
    }
    public static void main(String[] arguments) throws Exception { end(arguments[0]); }
}
"""


ENDINGS = {"exit": 3, "halt": 4, "memory": 1, "thrown": 1, "daemon": 0, "kill": -signal.SIGKILL}


@pytest.mark.parametrize(("how", "status"), ENDINGS.items())
def test_what_was_recorded_is_kept_however_a_jvm_ends(tmp_path: Path, how: str, status: int) -> None:
    made = make(tmp_path, ENDS, WORK, "Main end (Ljava/lang/String;)V")
    outcome = made.run("-Xmx32m", "-cp", ".", "Main", how, status=status)
    record = outcome.only
    assert calls(record)[2] == 1
    assert calls(record)[1] == 1000 if how != "daemon" else calls(record)[1] >= 1000
    assert record.complete == (how != "kill")


CHILD = """
import java.nio.file.*;
class Main {
    static int work(int n) { return n + 1; }
    public static void main(String[] arguments) throws Exception {
        work(1);
        if (arguments.length == 0) {
            String java = Path.of(System.getProperty("java.home"), "bin/java").toString();
            System.exit(new ProcessBuilder(java, "-cp", ".", "Main", "child").inheritIO().start().waitFor());
        }
    }
}
"""


def test_a_jvm_that_another_one_starts_is_recorded_too(tmp_path: Path) -> None:
    outcome = make(tmp_path, CHILD).run()
    assert [calls(record) for record in outcome.recordings] == [{1: 1}, {1: 1}]


LOADERS = """
import java.net.*;
import java.nio.file.*;
class Main {
    static class Own extends ClassLoader {
        Own() { super(null); }
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            try { byte[] bytes = Files.readAllBytes(Path.of(name + ".class")); return defineClass(name, bytes, 0, bytes.length); }
            catch (java.io.IOException e) { throw new ClassNotFoundException(name); }
        }
    }
    static class Altering extends ClassLoader {
        Altering() { super(null); }
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            try {
                String text = new String(Files.readAllBytes(Path.of(name + ".class")), "ISO-8859-1").replace("kept", "dear");
                byte[] bytes = text.getBytes("ISO-8859-1");
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException e) { throw new ClassNotFoundException(name); }
        }
    }
    public static void main(String[] arguments) throws Exception {
        ClassLoader jar = new URLClassLoader(new URL[] {Path.of("lib.jar").toUri().toURL()}, null);
        for (ClassLoader loader : new ClassLoader[] {Main.class.getClassLoader(), new Own(), new Own(), jar, new Altering()})
            System.out.print(loader.loadClass("Worker").getMethod("work", int.class).invoke(null, 1));
    }
}
"""
WORKER = 'public class Worker { public static Object work(int n) { return n == 0 ? "kept" : n; } }'


def test_a_class_is_probed_in_each_loader_that_loads_it_as_it_is(tmp_path: Path) -> None:
    made = program(
        tmp_path,
        java_programs.jdk(),
        {"Main.java": LOADERS, "Worker.java": WORKER},
        {"Worker work (I)Ljava/lang/Object;": ["number arg0"]},
    )
    with zipfile.ZipFile(made.tree / "lib.jar", "w") as jar:
        jar.write(made.tree / "Worker.class", "Worker.class")
    outcome = made.run()
    assert outcome.output == "11111"
    assert calls(outcome.only) == {1: 4}
    assert outcome.notes == (("altered", "Worker"),)


def test_what_processes_note_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "1.remarks").write_text("altered\tWorker\nunwoven\tMain.work: it is too large\nvirtual\ta\npaused\ta\n")
    slugs = ["probes-altered", "probes-unwoven", "probes-virtual", "probes-paused"]
    assert [note.slug for note in remarks.read(tmp_path).notes] == slugs
    assert remarks.read(tmp_path).notes[0].text.startswith("Worker was loaded with other bytes")


def test_a_driver_of_ours_is_no_code_that_lies_elsewhere(tmp_path: Path) -> None:
    drivers = Path(remarks.__file__).parents[2] / "languages/php/suites/drivers"
    (tmp_path / "1.remarks").write_text(f"elsewhere\t{drivers}/phpunit.php\tphpunit.php\nelsewhere\t/lib/shop.php\tshop.php\n")
    said = remarks.read(tmp_path)
    assert [note.text.split(" is not")[0] for note in said.notes] == ["what is imported from /lib/shop.php"]
    assert said.misplaced == {"shop.php": "/lib/shop.php"}


def test_classes_of_modules_are_probed(tmp_path: Path) -> None:
    files = {
        "module-info.java": "module app { }",
        "app/Main.java": f"package app; public {SMALL}",
    }
    made = program(tmp_path, java_programs.jdk(), files, {"app/Main work (I)I": ["number arg0"]})
    assert calls(made.run("-p", ".", "-m", "app/app.Main").only) == {1: 1}


LARGE = """
class Main {{
    static int work(int n) {{ {huge} return n; }}
    static int compiled(int n) {{ {large} return n; }}
    static int small(int n) {{ return n; }}
    public static void main(String[] arguments) {{ System.out.print(work(1) + compiled(1) + small(1)); }}
}}
"""


@JDKS
def test_methods_that_probes_would_make_too_large_run_as_they_are_and_are_named(tmp_path: Path, jdk: Jdk) -> None:
    text = LARGE.format(huge="n += 1000;" * 10921, large="n += 1000;" * 1331)  # 6 bytes each: 65,526 and 7,986 of them
    methods = (WORK, "Main compiled (I)I", "Main small (I)I")
    outcome = program(tmp_path, jdk, {"Main.java": text}, {method: [] for method in methods}).run()
    assert outcome.output == str(1 + 10921000 + 1 + 1331000 + 1)
    assert calls(outcome.only) == {3: 1}
    assert dict(outcome.notes).keys() == {"unwoven"}
    assert sorted(text for _, text in outcome.notes) == [
        "Main.compiled: with a probe it is larger than methods that are compiled",
        "Main.work: with a probe it is larger than methods may be",
    ]


AGENT = """
import java.lang.instrument.*;
import java.security.ProtectionDomain;
class Agent {
    public static void premain(String how, Instrumentation instrumentation) throws Exception {
        if (how.equals("breaks")) throw new IllegalStateException("broken");
        instrumentation.addTransformer(new ClassFileTransformer() {
            public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] bytes) {
                if (!"Worker".equals(name)) return null;
                try { return new String(bytes, "ISO-8859-1").replace("kept", "dear").getBytes("ISO-8859-1"); }
                catch (java.io.UnsupportedEncodingException e) { return null; }
            }
        }, true);
    }
    public static void main(String[] arguments) { System.out.print(Worker.work(0)); }
}
"""


def test_an_agent_beside_ours_changes_classes_after_us(tmp_path: Path) -> None:
    made = program(
        tmp_path, java_programs.jdk(), {"Agent.java": AGENT, "Worker.java": WORKER}, {"Worker work (I)Ljava/lang/Object;": ["number arg0"]}
    )
    manifest = "Premain-Class: Agent\nCan-Retransform-Classes: true\n"
    with zipfile.ZipFile(made.tree / "agent.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", manifest)
    for where in ("options", "command"):
        own = ["-javaagent:agent.jar=changes"] if where == "command" else []
        outcome = made.run(*own, "-cp", ".", "Agent", options="" if own else "-javaagent:agent.jar=changes")
        assert (outcome.output, calls(outcome.only), outcome.notes) == ("dear", {1: 1}, ())
    breaking = ("-javaagent:agent.jar=breaks", "-cp", ".", "Agent")
    plain = subprocess.run([made.jdk.java, *breaking], cwd=made.tree, capture_output=True, check=False)
    broken = made.run(*breaking, status=plain.returncode)
    assert plain.returncode
    assert "java.lang.IllegalStateException: broken" in broken.said


THREADS = """
import java.util.*;
class Main {
    static final Object lock = new Object();
    static int sum;
    static int work(int n) throws Exception { synchronized (lock) { Thread.sleep(10); return sum += n; } }
    static synchronized int whole(int n) throws Exception { Thread.sleep(10); return n; }
    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) threads.add(new Thread(() -> {
            try { for (int i = 0; i < 5; i++) { work(i); whole(i); } } catch (Exception e) { throw new Error(e); }
        }));
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        System.out.print(sum);
    }
}
"""


@JDKS
def test_waits_for_monitors_are_seen_in_the_method_that_takes_them(tmp_path: Path, jdk: Jdk) -> None:
    outcome = program(tmp_path, jdk, {"Main.java": THREADS}, {WORK: [], "Main whole (I)I": []}).run()
    totals = outcome.only.totals
    assert outcome.output == "40"
    assert calls(outcome.only) == {1: 20, 2: 20}
    for row in range(2):
        assert totals.wall_ns[row] >= 20 * 10e6 + 0.9 * totals.lock_wait_ns[row]
    assert totals.lock_wait_ns.sum() > 100e6  # four threads, one lock at a time


LOCKS = """
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
class Main {
    static final ReentrantLock lock = new ReentrantLock();
    static int work(int n) throws Exception {
        lock.lock();
        try { Thread.sleep(10); return n; } finally { lock.unlock(); }
    }
    static int alone(int n) throws Exception { Thread.sleep(10); return n; }
    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 20; i++) pool.submit(() -> { work(1); return alone(1); });
        pool.shutdown();
        System.out.print(pool.awaitTermination(1, TimeUnit.MINUTES));
    }
}
"""


def test_waits_for_locks_of_java_util_concurrent_are_seen(tmp_path: Path) -> None:
    outcome = make(tmp_path, LOCKS, WORK, "Main alone (I)I").run()
    totals = outcome.only.totals
    assert outcome.output == "true"
    assert calls(outcome.only) == {1: 20, 2: 20}
    assert totals.lock_wait_ns[0] > 50e6  # four threads, one lock
    assert totals.wall_ns[0] >= 20 * 10e6 + 0.9 * totals.lock_wait_ns[0]
    assert totals.lock_wait_ns[1] == 0
    assert np.isnan(totals.lock_hold_ns).all()


COLLECTING = """
import java.util.*;
class Main {
    static List<Object> kept = new ArrayList<>();
    static int work(int n) { System.gc(); return n; }
    public static void main(String[] arguments) {
        for (int i = 0; i < 400000; i++) kept.add(new int[] {i});
        long begun = System.nanoTime();
        for (int i = 0; i < 5; i++) work(i);
        System.out.print(System.nanoTime() - begun);
    }
}
"""


def test_pauses_of_the_collector_are_no_calls_time(tmp_path: Path) -> None:
    outcome = make(tmp_path, COLLECTING).run("-XX:+UseSerialGC", "-cp", ".", "Main")
    whole = float(outcome.output)
    assert whole > 20e6
    assert outcome.only.totals.wall_ns[0] < 0.5 * whole
    assert [word for word, _ in outcome.notes] == ["paused"]


LOADING = """
class Main {
    static class Slow { static { spin(); } static void touch() { } }
    static int work(int n) { return n; }
    static void spin() { for (long end = System.nanoTime() + 2100000000L; System.nanoTime() < end;) work(1); }
    public static void main(String[] arguments) { if (arguments.length > 0) Slow.touch(); else spin(); }
}
"""


@pytest.mark.parametrize("arguments", [(), ("class",)], ids=["in a method", "while a class is initialised"])
def test_classes_that_take_a_part_of_a_long_run_are_told(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    outcome = make(tmp_path, LOADING).run("-cp", ".", "Main", *arguments)
    assert [word for word, _ in outcome.notes] == (["loading"] if arguments else [])


@JDKS
def test_a_class_that_does_not_verify_fails_as_it_does_without_probes(tmp_path: Path, jdk: Jdk) -> None:
    made = program(tmp_path, jdk, {"Main.java": SMALL}, {WORK: []})
    data = (made.tree / "Main.class").read_bytes()
    assert data.count(b"\x1a\xac") == 1  # iload_0, ireturn
    (made.tree / "Main.class").write_bytes(data.replace(b"\x1a\xac", b"\x2a\xac"))  # aload_0
    outcome = made.run(status=1)
    assert "VerifyError" in outcome.said
    assert outcome.notes == ()


BESIDE = """
class Main {
    static int work(Object x) { return x.hashCode(); }
    static int other(int n) { return n; }
    public static void main(String[] arguments) { work(1); other(2); }
}
"""


@JDKS
def test_a_probe_that_its_class_does_not_verify_with_is_dropped_and_named_and_others_stay(tmp_path: Path, jdk: Jdk) -> None:
    wrong = "length arg0.Main#x#Ljava/util;/List;"  # no class of that name can be
    made = program(tmp_path, jdk, {"Main.java": BESIDE}, {"Main work (Ljava/lang/Object;)I": [wrong], "Main other (I)I": []})
    outcome = made.run()
    assert calls(outcome.only) == {2: 1}
    ((word, text),) = outcome.notes
    assert (word, text.split(" (")[0]) in {
        ("unwoven", "Main.work: its class does not verify with a probe in it"),
        ("unwoven", "Main.work: it cannot be written with a probe"),
    }


@JDKS
def test_class_files_of_a_newer_java_are_named(tmp_path: Path, jdk: Jdk) -> None:
    made = program(tmp_path, jdk, {"Main.java": SMALL}, {WORK: []})
    data = (made.tree / "Main.class").read_bytes()
    (made.tree / "Main.class").write_bytes(data[:6] + b"\x00\x60" + data[8:])  # Java 52
    ((word, text),) = made.run(status=1).notes
    assert (word, text.split(" (")[0]) == ("unwoven", "a class file is for a newer Java than the JDK's")


def test_without_a_plan_the_agent_does_nothing(tmp_path: Path) -> None:
    made = make(tmp_path, SMALL)
    assert made.run(mode=ProbePlan(Mode.OFF)).notes == ()


def test_a_jdk_is_found_by_its_folder_or_not_at_all(tmp_path: Path) -> None:
    jdk = java_programs.jdk()
    assert jdks.find({"PATH": os.environ["PATH"]}) == jdks.find({"JAVA_HOME": str(jdk.home)}) == jdks.find({}, str(jdk.home)) == jdk
    (tmp_path / "jre/bin").mkdir(parents=True)
    (tmp_path / "jre/bin/java").touch(mode=0o755)
    for environment, home, says in (
        ({"PATH": str(tmp_path)}, None, "no `javac` is on PATH"),
        ({"PATH": str(tmp_path / "jre/bin")}, None, "so that this is a JRE"),
        ({"JAVA_HOME": str(tmp_path / "jre")}, None, "is a JRE: it has no `bin/javac`"),
        ({}, str(tmp_path), "is no JDK"),
    ):
        with pytest.raises(BuildError, match=says) as caught:
            jdks.find(environment, home)
        assert caught.value.slug == "no-jdk"


@pytest.mark.parametrize("version", ["1.8.0_292", "10.0.2", "99"])
def test_a_jdk_that_cannot_be_measured_is_refused(tmp_path: Path, version: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/javac").touch(mode=0o755)
    (tmp_path / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    with pytest.raises(BuildError, match=f"is a JDK {version}") as caught:
        jdks.find({}, str(tmp_path))
    assert caught.value.slug == "java-unsupported"


def test_options_that_jvms_are_given_anyway_stay(tmp_path: Path) -> None:
    made = start.environment(tmp_path / "sheet", tmp_path / "with blank/lib.so", "1 2 3 4", "-Xmx1g -Dname='a b'")
    assert made == {
        "PERFDIFF_JAVA": str(tmp_path / "sheet"),
        "PERFDIFF_JAVA_COSTS": "1 2 3 4",
        "JAVA_TOOL_OPTIONS": f"\"-agentpath:{tmp_path}/with blank/lib.so\" -Xmx1g -Dname='a b'",
    }
