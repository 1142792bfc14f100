"""Probes of Java methods in real JVMs: what small programs record, and that they do what they would do without probes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import java_programs
import runtimes
from java_programs import Program
from perfdiff.languages.java import agent, calibrating
from perfdiff.languages.java.calibrating import JvmProbeCosts
from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import calls, edges

pytestmark = pytest.mark.integration

Make = Callable[..., Program]


@pytest.fixture(params=java_programs.of_each_library(), ids=lambda jdk: f"jdk{jdk.feature}")
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make programs, woven by each library in turn."""

    def made(files: str | Mapping[str, str], methods: Mapping[str, Sequence[str]], *options: str) -> Program:
        named = {"Main.java": files} if isinstance(files, str) else files
        return java_programs.program(tmp_path, request.param, named, methods, *options)

    return made


NESTED = """
class Main {
    static int leaf(int[] values, double n) throws Exception {
        Thread.sleep(2);
        return values.length + (int) n;
    }
    static void middle(int count) throws Exception {
        for (int i = 0; i < count; i++) leaf(new int[i], i / 2.0);
    }
    static void unprobed() throws Exception {
        middle(3);
        middle(2);
    }
    public static void main(String[] arguments) throws Exception {
        unprobed();
        System.out.println("done");
    }
}
"""
LEAF, MIDDLE = "Main leaf ([ID)I", "Main middle (I)V"


def test_calls_times_features_and_callers_are_recorded(make: Make) -> None:
    program = make(NESTED, {LEAF: ["length arg0", "number arg1"], MIDDLE: ["number arg0"]})
    outcome = program.run_undisturbed()
    assert (outcome.output, outcome.said, outcome.notes) == ("done\n", "", ())
    record = outcome.only
    assert record.complete
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert edges(record) == {(0, 2): 2.0, (2, 1): 5.0}
    assert sorted(program.values(record, "Main.leaf")) == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]
    assert program.values(record, "Main.middle") == [(3.0,), (2.0,)]
    assert record.totals.wall_ns[0] > 10e6  # of sleep
    assert record.totals.self_ns[1] < 5e6 < record.totals.wall_ns[1]


def test_calls_are_counted_where_only_counting_is_asked_for(make: Make) -> None:
    record = make(NESTED, {LEAF: [], MIDDLE: []}).run(mode=ProbePlan(Mode.COUNT)).only
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert not record.samples


LEFT = """
import java.util.function.*;
class Main {
    static int fall(int n) { if (n == 0) throw new IllegalStateException("over"); return n; }
    static int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
    static int caught(int n) {
        try { return fall(n); } catch (IllegalStateException e) { return -1; } finally { sink++; }
    }
    static synchronized int locked(int n) { if (n == 3) throw new RuntimeException(); return n; }
    synchronized long lockedHere(long n) { try { return n + 1; } catch (RuntimeException e) { return 0; } finally { sink++; } }
    static int sink;
    static double many(long a, double b, float c, byte d, String e) {
        switch ((int) a) { case 1: return b; case 2: return c; default: return d; }
    }
    static <T extends Comparable<T>> T larger(T a, T b) { return a.compareTo(b) > 0 ? a : b; }
    static Supplier<Integer> lambda(int n) { return () -> n + 1; }
    static int stackDeep(int n) { return stackDeep(n + 1) + 1; }
    static boolean looped(int n) { while (n > 0) { n--; if (n == 7) return true; } return false; }
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 5; i++) caught(i % 3);
        System.out.println(recursive(10));
        for (int i = 0; i < 5; i++) try { locked(i); } catch (RuntimeException e) { System.out.println(Thread.holdsLock(Main.class)); }
        Main main = new Main();
        System.out.println(main.lockedHere(41) + " " + Thread.holdsLock(main));
        System.out.println(many(1, 2.5, 3.5f, (byte) 4, "e") + many(2, 2.5, 3.5f, (byte) 4, null) + many(3, 2.5, 3.5f, (byte) 4, null));
        System.out.println(larger("a", "b") + larger(3, 2) + lambda(1).get());
        try { stackDeep(0); } catch (StackOverflowError error) { System.out.println("deep"); }
        System.out.println(looped(100) + " " + looped(5));
    }
}
"""


def test_methods_are_left_by_whatever_way_they_have(make: Make) -> None:
    methods = (
        "fall (I)I", "recursive (I)I", "caught (I)I", "locked (I)I", "lockedHere (J)J", "many (JDFBLjava/lang/String;)D",
        "larger (Ljava/lang/Comparable;Ljava/lang/Comparable;)Ljava/lang/Comparable;", "lambda$lambda$0 (I)Ljava/lang/Integer;",
        "stackDeep (I)I", "looped (I)Z",
    )  # fmt: skip
    program = make(LEFT, {f"Main {method}": [] for method in methods})
    outcome = program.run()
    assert outcome.output == "55\nfalse\n42 false\n10.0\nb32\ndeep\ntrue false\n"
    assert (outcome.said, outcome.notes) == ("", ())
    record = outcome.only
    counted = calls(record)
    assert [counted[number] for number in (1, 2, 3, 4, 5, 6, 7, 8, 10)] == [5, 177, 5, 5, 1, 3, 2, 1, 2]
    assert counted[9] > 1000
    assert edges(record)[3, 1] == 5
    assert edges(record)[2, 2] == 176
    assert all(caller == 0 for caller, callee in edges(record) if callee not in (1, 2, 9))  # nothing stays open
    unfinished = dict(zip(record.totals.probe.tolist(), record.totals.unfinished.tolist(), strict=True))
    assert sum(unfinished[number] for number in counted if number != 9) == 0


MADE = """
import java.util.*;
class Main {
    static class Base {
        final int n;
        Base(int n) { if (n == 2) throw new IllegalArgumentException(); this.n = n; }
    }
    static class Derived extends Base {
        final List<String> names = new ArrayList<>(List.of("a"));
        static final int SIZE;
        static { int size = 0; for (int i = 0; i < 3; i++) size += i; SIZE = size; }
        Derived(int n) {
            super(n > 0 ? new ArrayList<>(List.of(n)).get(0) : checked(n));
            names.add("b");
            if (n == 3) throw new IllegalStateException();
        }
        Derived() { this(new Derived(1).n + 3); }
        static int checked(int n) { if (n < 0) throw new UnsupportedOperationException(); return n; }
    }
    record Point(int x, int y) { Point { if (x > y) throw new IllegalArgumentException(); } int sum() { return x + y; } }
    enum Kind { ONE { int value() { return 1; } }, TWO { int value() { return 2; } }; abstract int value(); }
    sealed interface Shape permits Circle {
        default double area() { return Math.PI * radius(); }
        double radius();
        static Shape of(double r) { return new Circle(r); }
    }
    static final class Circle implements Shape { final double r; Circle(double r) { this.r = r; } public double radius() { return r; } }
    class Inner { int outer() { return field; } }
    int field = 7;
    public static void main(String[] arguments) {
        for (int n : new int[] {1, 2, 3, -1, 0})
            try { System.out.print(new Derived(n).names.size()); }
            catch (RuntimeException e) { System.out.print(e.getClass().getSimpleName().charAt(0)); }
        System.out.println(new Derived().n + Derived.SIZE);
        try { new Point(2, 1); } catch (IllegalArgumentException e) { System.out.print("no "); }
        System.out.print(new Point(1, 2).sum() + " ");
        for (Kind kind : Kind.values()) System.out.print(kind.value() + " ");
        System.out.print((int) Shape.of(1).area() + " ");
        System.out.print(new Main().new Inner().outer() + " ");
        System.out.println(new Object() { int answer() { return 42; } }.answer());
    }
}
"""


def test_constructors_initialisers_and_classes_of_all_kinds_are_recorded(make: Make) -> None:
    methods = (
        "Main$Base <init> (I)V", "Main$Derived <init> (I)V", "Main$Derived <init> ()V", "Main$Derived <clinit> ()V",
        "Main$Point <init> (II)V", "Main$Point sum ()I", "Main$Kind$2 value ()I", "Main$Shape area ()D", "Main$Shape of (D)LMain$Shape;",
        "Main$Inner outer ()I", "Main$1 answer ()I", "Main main ([Ljava/lang/String;)V",
    )  # fmt: skip
    program = make(MADE, {method: [] for method in methods})
    outcome = program.run()
    assert outcome.output == "2IIU27\nno 3 1 2 3 7 42\n"
    assert (outcome.said, outcome.notes) == ("", ())
    record = outcome.only
    assert calls(record) == {1: 6, 2: 7, 3: 1, 4: 1, 5: 2, 6: 1, 7: 1, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1}
    called = {(2, 1): 6, (3, 2): 2, (0, 12): 1, (12, 2): 5, (12, 3): 1, (12, 4): 1, (12, 5): 2} | {
        (12, number): 1 for number in range(6, 12)
    }
    assert edges(record) == called
    unfinished = dict(zip(record.totals.probe.tolist(), record.totals.unfinished.tolist(), strict=True))
    assert unfinished == {number: 1 if number == 2 else 0 for number in range(1, 13)}  # whose parent's constructor threw


def test_what_the_way_to_a_probe_costs_is_taken_off(make: Make) -> None:
    program = make(NESTED, {LEAF: [], MIDDLE: []})
    added = JvmProbeCosts(counted_ns=4e6, timed_ns=2e6, inside_ns=1e6, passed_ns=0.0)
    record = program.run(costs=added.text).only
    for cost, ns in (("counted_ns", 4e6), ("timed_ns", 2e6), ("timed_inner_ns", 1e6), ("sampled_ns", 2e6), ("sampled_inner_ns", 1e6)):
        assert getattr(record.costs, cost) == pytest.approx(ns, rel=0.02)
    assert 0.9e6 < record.samples[1].wall_ns.min() < 1.9e6  # each sleeps for 2 ms


def test_the_way_to_a_probe_is_measured_once(make: Make) -> None:
    program = make(NESTED, {LEAF: []})
    library = agent.build(program.jdk, runtimes.library(), "gcc", runtimes.KEPT)
    costs = calibrating.measure(program.jdk, library, runtimes.KEPT)
    assert costs == calibrating.measure(program.jdk, library, runtimes.KEPT)
    assert 0 <= costs.inside_ns <= costs.timed_ns < 500  # beyond what the runtime has measured: little of it is between the time stamps
    assert 1 < costs.passed_ns < 500  # as much as a counted one, or a little less: within what measuring them is sure of
    assert 1 < costs.counted_ns < 500


COMPILED = """
class Main {
    static long sum;
    static int fall(int n) { if (n == 7) throw new RuntimeException(); return n; }
    synchronized int locked(int n) {
        if (n % 3 == 0) { sum++; return n; }
        try { return fall(n); } catch (RuntimeException e) { return 0; } finally { sum += 2; }
    }
    static synchronized int looped(int n) {
        for (int i = 0; i < 3; i++) try { if (n == i) return fall(i); } catch (RuntimeException e) { return 5; }
        return n;
    }
    int inner(int n) { synchronized (this) { try { return fall(n); } catch (RuntimeException e) { return 1; } finally { sum += 2; } } }
    public static void main(String[] arguments) {
        Main main = new Main();
        for (int i = 0; i < 50000; i++) sum += main.locked(i & 15) + looped(i & 15) + main.inner(i & 15);
        System.out.println("sum " + sum);
    }
}
"""


def test_woven_methods_are_compiled_by_both_compilers_of_the_jvm(make: Make) -> None:
    methods = ("fall (I)I", "locked (I)I", "looped (I)I", "inner (I)I")
    program = make(COMPILED, {f"Main {method}": ["number arg0"] for method in methods})
    command = [program.jdk.java, "-cp", program.tree, "Main"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for compiler in ("-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation"):
        lines = program.run("-Xbatch", compiler, "-XX:+PrintCompilation", "-cp", ".", "Main").output.splitlines()
        assert [line for line in lines if line.startswith("sum ")] == plain
        said = [line for line in lines if "Main::" in line]
        assert not [line for line in said if "SKIPPED" in line]
        assert all(any(f"Main::{method.split()[0]} (" in line for line in said) for method in methods)


READING = """
class Main {
    private int[] values = {1, 2, 3};
    long sum(String text, Object kind) { return values.length + text.length(); }
    public static void main(String[] arguments) {
        Main main = new Main();
        long sum = 0;
        for (int i = 0; i < 20000; i++) sum += main.sum("text", main);
        System.out.println("sum " + sum);
    }
}
"""


def test_reading_inputs_is_no_part_of_what_is_compiled_of_a_method(make: Make) -> None:
    reads = ["length arg0", "type arg1", "length this.Main#~values#[I"]
    program = make(READING, {"Main sum (Ljava/lang/String;Ljava/lang/Object;)J": reads})
    told = ("-Xbatch", "-XX:-TieredCompilation", "-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintCompilation", "-XX:+PrintInlining")
    lines = program.run(*told, "-cp", ".", "Main", mode=ProbePlan(Mode.SAMPLE, reservoir=100_000)).output.splitlines()
    for reader in ("length", "type", "field"):
        sites = [line for line in lines if f"PerfdiffProbe::{reader} (" in line and "@" in line]
        assert sites, lines
        assert all("don't inline by annotation" in line for line in sites), sites
