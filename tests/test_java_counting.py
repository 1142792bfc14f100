"""What calls of Java methods do, counted without a clock: basic blocks, objects, and calls of what is not the project's, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import java_programs
import runtimes
from java_programs import Program
from perfdiff.errors import BuildError
from perfdiff.languages.java import agent, counting, jdks, start, weaving
from perfdiff.languages.java.jdks import Jdk
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording

pytestmark = pytest.mark.integration

OWN = ProbePlan(Mode.SAMPLE, reservoir=1000, own=True)
EXACT = ("bytecode_blocks", "objects", "object_bytes")


@dataclass(frozen=True, slots=True)
class Counted(Program):
    """A program all of whose classes count."""

    def attached(self, options: str, costs: str | None) -> dict[str, str]:
        woven = counting.weave(self.jdk, self.tree, [weaving.method_of(probe) for probe in self.probes], runtimes.KEPT)
        library = agent.build_counting(self.jdk, runtimes.library(), "gcc", runtimes.KEPT)
        return start.counting(woven.sheet, woven.outside, library, options)


Make = Callable[..., Counted]


def made(folder: Path, files: str | Mapping[str, str], *methods: str) -> Counted:
    """Compile a program whose `methods` are probed, and all of which counts."""
    named = {"Main.java": files} if isinstance(files, str) else files
    program = java_programs.program(folder, java_programs.jdk(), named, dict.fromkeys(methods, ()), "-g")
    return Counted(program.folder, program.jdk, program.probes)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return partial(made, tmp_path)


def own(record: Recording, number: int, counter: str) -> list[int]:
    """Return what each call of a method counted itself, in the order of the calls."""
    samples = record.samples[number]
    return [int(samples.counters[counter][row]) for row in np.argsort(samples.call)]


MAIN = """
import java.util.*;
class Main {
    static int inner(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) sum += i;
        return sum;
    }
    static int outer(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) sum += inner(i) + helper(i);
        return sum;
    }
    static int helper(int n) { return n > 2 ? 1 : 0; }
    public static void main(String[] arguments) {
        for (String each : arguments) outer(Integer.parseInt(each));
        System.out.println("done");
    }
}
"""


def test_each_call_has_its_own_blocks(make: Make) -> None:
    program = make(MAIN, "Main inner (I)I", "Main outer (I)I")
    outcome = program.run("-cp", ".", "Main", "10", "3", mode=OWN)
    assert (outcome.output, outcome.said, outcome.notes) == ("done\n", "", ())
    # Blocks: the start, the condition once more than the body, the body, and the return.
    assert own(outcome.only, 1, "bytecode_blocks") == [3 + 2 * n for n in (*range(10), *range(3))]
    # Each step adds its helper's, which has no probe: the condition, one of its two sides, and the return.
    assert own(outcome.only, 2, "bytecode_blocks") == [3 + 2 * n + 3 * n for n in (10, 3)]


DOES = """
import java.util.*;
import java.util.function.*;
class Main {
    interface Shape { double area(); }
    static class Base extends ArrayList<String> {
        final int n;
        Base(int n) { super(n); this.n = n; }
    }
    static class Derived extends Base implements Shape {
        Derived(int n) { super(n > 2 ? n : n + 1); }
        public double area() { return n; }
    }
    static int objects(int n) {
        int[] some = new int[n];
        long[][] table = new long[n][3];
        Object[] others = {new Object(), null};
        String[][][] open = new String[2][n][];
        return some.length + table.length + others.length + open.length;
    }
    static int chosen(boolean first, int n) { return new Derived(first ? n : new Derived(n > 3 ? 4 : 5).n).n; }
    static int leaving(int n) {
        List<Integer> list = new LinkedList<>();
        for (int i = 0; i < n; i++) list.add(i);
        int sum = 0;
        for (int i = 0; i < n; i++) sum += list.get(i);
        Derived derived = new Derived(n);
        derived.add("n" + n);
        Shape shape = derived;
        Supplier<Integer> later = () -> n;
        return sum + derived.size() + (int) shape.area() + later.get() + "abc".indexOf('b');
    }
    static int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
    static int thrown(int n) {
        for (int i = 0; ; i++) if (i == n) throw new IllegalStateException();
    }
    static int implicit(int[] of) { int sum = 0; for (int i = 0; ; i++) sum += of[i]; }
    static int caught(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try { sum += thrown(i); } catch (IllegalStateException error) { sum--; } finally { sum += 2; }
        }
        try { implicit(new int[n]); } catch (ArrayIndexOutOfBoundsException error) { return sum; }
        return -1;
    }
    static synchronized int locked(int n) { synchronized (Main.class) { while (n > 0) n--; } return n; }
    static int switched(int n) { switch (n) { case 1: return 1; case 2: n++; default: return n; } }
    static long late;
    static { for (int i = 0; i < 3; i++) late += i; }
    public static void main(String[] arguments) {
        objects(4);
        System.out.println(chosen(true, 1) + chosen(false, 7));
        System.out.println(leaving(10));
        System.out.println(recursive(5) + caught(3) + locked(2) + switched(1) + switched(2) + switched(3));
        System.exit(0);
    }
}
"""
METHODS = (
    "objects (I)I", "chosen (ZI)I", "leaving (I)I", "recursive (I)I", "thrown (I)I", "implicit ([I)I", "caught (I)I", "locked (I)I",
    "switched (I)I", "<clinit> ()V", "main ([Ljava/lang/String;)V",
)  # fmt: skip


@pytest.fixture(scope="module")
def does(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    program = made(tmp_path_factory.mktemp("does"), DOES, *(f"Main {method}" for method in METHODS))
    outcome = program.run(mode=OWN)
    assert (outcome.output, outcome.said, outcome.notes) == ("6\n67\n15\n", "", ())
    return outcome.only


def test_objects_and_arrays_are_counted_with_their_bytes(does: Recording) -> None:
    # An array of 4 int; of 4 arrays of 3 long; of 2 references, and an object; of 2 arrays of 4 arrays that are not made.
    assert own(does, 1, "objects") == [1 + (1 + 4) + 2 + (1 + 2)]
    array = {length: 16 + (4 * length + 7) // 8 * 8 for length in (2, 4)}
    assert own(does, 1, "object_bytes") == [array[4] + array[4] + 4 * (16 + 24) + array[2] + 16 + array[2] + 2 * array[4]]
    # A Derived has the three words of a list, that of all, and the number of its own: 12 + 4 + 4 + 4 + 4 bytes.
    assert (own(does, 2, "objects"), own(does, 2, "object_bytes")) == ([1, 2], [32, 64])
    assert own(does, 3, "objects") == [3]  # the lists, and what stands for the lambda; boxes are made by what is called


def test_calls_that_leave_the_project_are_counted_at_their_caller(does: Recording) -> None:
    library = does.library
    leaving = {name: calls for (function, name), calls in library.items() if function == 3}
    assert leaving == {
        "java.util.LinkedList.<init>": 1, "java.util.List.add": 10, "java.lang.Integer.valueOf": 11, "java.util.List.get": 10,
        "java.lang.Integer.intValue": 11, "java.util.ArrayList.<init>": 1, "java.util.ArrayList.add": 1, "java.util.ArrayList.size": 1,
        "java.lang.invoke.StringConcatFactory.makeConcat": 1, "java.util.function.Supplier.get": 1, "java.lang.String.indexOf": 1,
    }  # fmt: skip
    assert library[11, "java.lang.System.exit"] == 1
    assert library[5, "java.lang.IllegalStateException.<init>"] == 3


def test_whatever_way_leads_out_of_a_method_its_blocks_are_counted(does: Recording) -> None:
    assert own(does, 4, "bytecode_blocks") == [3] * 15  # the condition, one of two sides, and the return
    assert own(does, 5, "bytecode_blocks") == [1 + 2 * n + 2 for n in range(3)]  # the start, each step's two, and the last one's two
    assert own(does, 6, "bytecode_blocks") == [1 + 4]  # the body begins once more than there are elements
    assert own(does, 9, "bytecode_blocks") == [2, 3, 2]
    assert own(does, 10, "bytecode_blocks") == [1 + 4 + 3 + 1]
    assert does.totals.unfinished.sum() == 1  # main, by its own will


THREADS = """
import java.util.concurrent.*;
class Main {
    static final Object LOCK = new Object();
    static int shared;
    static int work(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) synchronized (LOCK) { shared++; sum += Math.max(i, 1); }
        return sum;
    }
    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 40; i++) pool.submit(() -> work(100));
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.MINUTES);
        for (int i = 0; i < 20; i++) { Thread one = new Thread(() -> work(50)); one.start(); one.join(); }
        System.out.println(shared);
    }
}
"""


def test_each_thread_counts_for_itself_and_runs_count_the_same(make: Make) -> None:
    program = make(THREADS, "Main work (I)I", "Main main ([Ljava/lang/String;)V")
    seen = []
    for _ in range(2):
        outcome = program.run(mode=OWN)
        assert (outcome.output, outcome.said) == ("5000\n", "")
        record = outcome.only
        rows = record.totals.probe == 1
        assert sorted(own(record, 1, "bytecode_blocks")) == [3 + 3 * 50] * 20 + [3 + 3 * 100] * 40
        sums = {name: int(values[rows].sum()) for name, values in record.totals.counters.items() if name in EXACT}
        seen.append((sums, record.library))
    assert seen[0] == seen[1]
    assert seen[0][1][1, "java.lang.Math.max"] == 5000
    assert (seen[0][0]["bytecode_blocks"], seen[0][0]["objects"]) == (20 * 153 + 40 * 303, 0)


JOINED = """
class Main {
    static String kept;
    static void join(int n) { kept = ""; for (int i = 0; i < n; i++) kept += "0123456789"; }
    static void none() {}
    public static void main(String[] arguments) { join(3); none(); for (int n = 1000; n <= 8000; n *= 2) join(n); }
}
"""


@pytest.mark.parametrize("collector", ["Serial", "G1"])
def test_the_jvm_tells_what_others_allocate_for_a_method(make: Make, collector: str) -> None:
    """A text of 10n characters is made n times, each one byte a character and 40 bytes more; the JVM may keep a part of its last buffer."""
    record = make(JOINED, "Main join (I)V", "Main none ()V").run(mode=OWN, options=f"-XX:+Use{collector}GC").only
    assert own(record, 1, "object_bytes") == [0] * 5
    assert own(record, 2, "heap_bytes") == [0]
    for n, heap in zip((1000, 2000, 4000, 8000), own(record, 1, "heap_bytes")[1:], strict=True):
        assert heap == pytest.approx(5 * n * n + 50 * n, rel=0.02)


GARBAGE = """
class Main {
    static Object kept;
    static void waste(int n) { for (int i = 0; i < n; i++) kept = new byte[1 << 20]; }
    static void none() {}
    public static void main(String[] arguments) { none(); waste(200); }
}
"""


def test_collections_of_garbage_are_counted_where_they_come(make: Make) -> None:
    outcome = make(GARBAGE, "Main waste (I)V", "Main none ()V").run(mode=OWN, options="-Xmx32m -XX:+UseSerialGC")
    record = outcome.only
    assert own(record, 1, "object_bytes") == [200 * ((1 << 20) + 16)]
    assert own(record, 1, "collections")[0] > 5
    assert own(record, 2, "collections") == [0]


USES = """
class Main {
    public static void main(String[] arguments) { use(3); }
    static int use(int n) { return new app.Kept().get(n) + lib.Other.get(n); }
}
"""


def test_a_class_that_has_no_probe_and_one_of_a_library_are_told_apart(make: Make) -> None:
    files = {
        "Main.java": USES,
        "app/Kept.java": "package app; public class Kept { public int get(int n) { return n > 1 ? n : 1; } }",
        "lib/Other.java": "package lib; public class Other { public static int get(int n) { while (n > 0) n--; return n; } }",
    }
    program = make(files, "Main use (I)I")
    (program.tree / "lib/Other.java").unlink()  # its class is a library's
    record = program.run(mode=OWN).only
    assert own(record, 1, "bytecode_blocks") == [1 + 1 + 3]
    assert {name: calls for (function, name), calls in record.library.items() if function == 1} == {"lib.Other.get": 1}


def test_methods_that_counts_make_too_large_run_without_them_and_are_told(make: Make) -> None:
    large = "static int large(int n) {" + "if (n == 7) n++; " * 5500 + "return n; }"
    main = "public static void main(String[] arguments) { System.out.println(large(3)); }"
    outcome = make(f"class Main {{ {large} {main} }}", "Main large (I)I").run(mode=OWN)
    assert outcome.output == "3\n"
    assert ("unwoven", "Main.large: with counts it is larger than methods may be") in outcome.notes


def test_counts_are_not_woven_where_no_jdk_has_a_library_for_it(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make(MAIN, "Main inner (I)I")
    monkeypatch.setattr(jdks, "_INSTALLED", tmp_path / "none")
    with pytest.raises(BuildError, match="no older JDK is installed beside it") as caught:
        counting.weave(Jdk(tmp_path / "jdks/24", "24", 24), program.tree, (), runtimes.KEPT)
    assert caught.value.slug == "java-not-counted"


@pytest.mark.parametrize("jdk", java_programs.of_each_library(), ids=lambda jdk: f"jdk{jdk.feature}")
def test_programs_of_a_jdk_whose_library_is_another_are_counted_by_an_older_one(tmp_path: Path, jdk: Jdk) -> None:
    text = JOINED.replace("String kept;", "String kept; record Pair(int a, int b) { }").replace("none();", "none(); new Pair(1, 2);")
    made = java_programs.program(tmp_path, jdk, {"Main.java": text}, {"Main join (I)V": ()}, "-g")
    record = Counted(made.folder, made.jdk, made.probes).run(mode=OWN).only
    assert own(record, 1, "bytecode_blocks") == [3 + 2 * n for n in (3, 1000, 2000, 4000, 8000)]
    assert own(record, 1, "heap_bytes")[-1] == pytest.approx(5 * 8000**2 + 50 * 8000, rel=0.02)
