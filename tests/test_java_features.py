"""Inputs of Java methods, as probes read them: what is read of which values, and that no code of the program's runs for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import java_programs
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.protocol import Load

pytestmark = pytest.mark.integration

JDKS = pytest.mark.parametrize("jdk", java_programs.of_each_library(), ids=lambda jdk: f"jdk{jdk.feature}")

VALUES = """
import java.io.File;
import java.nio.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

class Main {
    static class Sized extends AbstractList<String> {
        public int size() { throw new Error("code of the program's ran"); }
        public String get(int i) { throw new Error("code of the program's ran"); }
    }
    static class Lying extends ArrayList<String> { public int size() { throw new Error("code of the program's ran"); } }
    static class Written extends File {
        Written() { super("file"); }
        public String getPath() { throw new Error("code of the program's ran"); }
    }
    enum Kind { ONE, TWO { public String toString() { throw new Error("code of the program's ran"); } } }
    static void read(Object x) { }
    public static void main(String[] arguments) throws Exception {
        Files.writeString(Path.of("file"), "12345");
        Map<String, Integer> linked = new LinkedHashMap<>(Map.of("a", 1));
        Object[] values = {
            7, 7L, (short) 2, (byte) 3, 2.5, 1.5f, true, 'a', new AtomicInteger(4), new java.math.BigInteger("5"), null, "häuser",
            new StringBuilder("abc"), new int[3], new String[] {"a", "bcd", null}, new int[][] {{1}, {2, 3}}, List.of("a", "bc"),
            new ArrayList<>(List.of(List.of("abc"), List.of())), linked, linked.keySet(), new TreeMap<>(linked), new TreeSet<>(Set.of(1)),
            new ConcurrentHashMap<>(linked), new ArrayDeque<>(List.of(1, 2)), Collections.unmodifiableList(new Sized()), new Sized(),
            new Lying(), List.of(new Sized()), Kind.ONE, Kind.TWO, "file", "a/b//c", new File("file"), Path.of("/a/b"), new Written(),
            ByteBuffer.allocate(9), Optional.of(1), new Vector<>(List.of(1)), new long[70][1],
            Arrays.asList("ab", "c"), new EnumMap<>(Map.of(Kind.ONE, 1)), EnumSet.of(Kind.ONE), Collections.unmodifiableList(List.of(1, 2)),
            Collections.unmodifiableMap(linked), new TreeSet<>(Set.of(1, 2, 3)).headSet(2),
            new TreeMap<>(linked).keySet(), new TreeMap<>(linked).values(), new TreeMap<>(linked).entrySet(), new Stack<>(),
            new Properties(), new Hashtable<>(linked), new ConcurrentHashMap<>(linked).keySet(), new ConcurrentHashMap<>(linked).values(),
        };
        for (Object value : values) read(value);
    }
}
"""
READ = (  # number, length, nested, type, ordinal
    (7.0, None, None, "java.lang.Integer", None),
    (7.0, None, None, "java.lang.Long", None),
    (2.0, None, None, "java.lang.Short", None),
    (3.0, None, None, "java.lang.Byte", None),
    (2.5, None, None, "java.lang.Double", None),
    (1.5, None, None, "java.lang.Float", None),
    (1.0, None, None, "java.lang.Boolean", None),
    (97.0, None, None, "java.lang.Character", None),
    (4.0, None, None, "java.util.concurrent.atomic.AtomicInteger", None),
    (None, None, None, "java.math.BigInteger", None),
    (None, None, None, None, None),
    (None, 6.0, None, "java.lang.String", None),
    (None, 3.0, None, "java.lang.StringBuilder", None),
    (None, 3.0, None, "[I", None),
    (None, 3.0, 4.0, "[Ljava.lang.String;", None),
    (None, 2.0, 3.0, "[[I", None),
    (None, 2.0, 3.0, "java.util.ImmutableCollections$List12", None),
    (None, 2.0, 3.0, "java.util.ArrayList", None),
    (None, 1.0, None, "java.util.LinkedHashMap", None),
    (None, 1.0, None, "java.util.LinkedHashMap$LinkedKeySet", None),
    (None, 1.0, None, "java.util.TreeMap", None),
    (None, 1.0, None, "java.util.TreeSet", None),
    (None, 1.0, None, "java.util.concurrent.ConcurrentHashMap", None),
    (None, 2.0, None, "java.util.ArrayDeque", None),
    (None, None, None, "java.util.Collections$UnmodifiableList", None),
    (None, None, None, "Main$Sized", None),
    (None, None, None, "Main$Lying", None),
    (None, 1.0, None, "java.util.ImmutableCollections$List12", None),
    (None, None, None, "Main$Kind", 0.0),
    (None, None, None, "Main$Kind$1", 1.0),
    (None, 4.0, None, "java.lang.String", None),
    (None, 6.0, None, "java.lang.String", None),
    (None, None, None, "java.io.File", None),
    (None, None, None, "sun.nio.fs.UnixPath", None),
    (None, None, None, "Main$Written", None),
    (None, 9.0, None, "java.nio.HeapByteBuffer", None),
    (None, None, None, "java.util.Optional", None),
    (None, 1.0, None, "java.util.Vector", None),
    (None, 70.0, None, "[[J", None),
    (None, 2.0, 3.0, "java.util.Arrays$ArrayList", None),
    (None, 1.0, None, "java.util.EnumMap", None),
    (None, 1.0, None, "java.util.RegularEnumSet", None),
    (None, 2.0, None, "java.util.Collections$UnmodifiableRandomAccessList", None),
    (None, 1.0, None, "java.util.Collections$UnmodifiableMap", None),
    (None, None, None, "java.util.TreeSet", None),
    (None, 1.0, None, "java.util.TreeMap$KeySet", None),
    (None, 1.0, None, "java.util.TreeMap$Values", None),
    (None, 1.0, None, "java.util.TreeMap$EntrySet", None),
    (None, 0.0, None, "java.util.Stack", None),
    (None, 0.0, None, "java.util.Properties", None),
    (None, 1.0, None, "java.util.Hashtable", None),
    (None, 1.0, None, "java.util.concurrent.ConcurrentHashMap$KeySetView", None),
    (None, 1.0, None, "java.util.concurrent.ConcurrentHashMap$ValuesView", None),
)


@JDKS
def test_numbers_lengths_types_and_files_are_read_of_values_of_the_jdk_alone(tmp_path: Path, jdk: Jdk) -> None:
    features = [f"{how} arg0" for how in ("number", "length", "nested", "type", "ordinal", "file", "depth")]
    program = java_programs.program(tmp_path, jdk, {"Main.java": VALUES}, {"Main read (Ljava/lang/Object;)V": features})
    outcome = program.run_undisturbed()
    assert (outcome.said, outcome.notes) == ("", ())
    values = program.values(outcome.only, "Main.read")
    assert tuple(value[:5] for value in values) == READ
    named = {READ[row][3]: value[5:] for row, value in enumerate(values) if row > 31}  # file, depth
    assert [value[5:] for value in values[30:32]] == [(5.0, 1.0), (None, 3.0)]
    assert named["java.io.File"] == (5.0, 1.0)
    assert named["sun.nio.fs.UnixPath"] == (None, 2.0)
    assert named["Main$Written"] == (None, None)


FIELDS = """
import java.util.*;
class Main {
    static class Node {
        Node next;
        private int value;
        final Object held;
        Node(int value, Object held) { this.value = value; this.held = held; }
    }
    static class Loud { static { System.out.println("initialised"); } static int count = 5; }
    static int count = 3;
    private final List<Integer> items = new ArrayList<>();
    private long total = 1L << 40;
    private float ratio = 0.5f;
    Node node;
    char[] text = {'a', 'b'};
    int add(Node first, Object second, boolean isLate, long[] longs, byte small) {
        if (isLate) return Loud.count;
        items.add(first == null ? 0 : first.value);
        if (second instanceof Node) return ((Node) second).value;
        return node == null || node.next == null ? text.length : (int) (total * ratio) + count;
    }
    public static void main(String[] arguments) {
        Main main = new Main();
        main.add(null, "x", false, null, (byte) -1);
        main.node = new Node(4, null);
        main.add(new Node(8, "abc"), new Node(9, null), false, new long[4], (byte) -2);
        main.node.next = new Node(5, null);
        main.text = null;
        main.add(new Node(8, new int[2]), null, false, new long[0], (byte) 3);
        System.out.println("end");
    }
}
"""


@JDKS
def test_fields_are_followed_as_far_as_they_lead(tmp_path: Path, jdk: Jdk) -> None:
    node = "Main$Node"
    features = [
        "length this.Main#items#Ljava/util/List;", "number this.Main#total#J", "number this.Main#ratio#F", "length this.Main#text#[C",
        f"number this.Main#node#LMain$Node;.{node}#next#LMain$Node;.{node}#value#I", f"number arg0.{node}#value#I",
        f"number arg1.{node}#value#I", f"length arg0.{node}#held#Ljava/lang/Object;", "number arg2", "length arg3", "number arg4",
        "number static.Main#count#I", "number static.Main$Loud#count#I", "number arg9", "length arg4", "type this",
    ]  # fmt: skip
    method = "Main add (LMain$Node;Ljava/lang/Object;Z[JB)I"
    program = java_programs.program(tmp_path, jdk, {"Main.java": FIELDS}, {method: features})
    outcome = program.run_undisturbed()
    assert (outcome.output, outcome.said, outcome.notes) == ("end\n", "", ())
    total, unread = float(1 << 40), (None, None, None, "Main")
    assert program.values(outcome.only, "Main.add") == [
        (0.0, total, 0.5, 2.0, None, None, None, None, 0.0, None, -1.0, 3.0, *unread),
        (1.0, total, 0.5, 2.0, None, 8.0, 9.0, 3.0, 0.0, 4.0, -2.0, 3.0, *unread),
        (2.0, total, 0.5, None, 5.0, 8.0, None, 2.0, 0.0, 0.0, 3.0, 3.0, *unread),
    ]


BOXED = """
class Main {
    static void read(Integer a, Long b, Boolean c, Character d, Double e, Object f) { }
    public static void main(String[] arguments) {
        read(-3, 1L << 60, true, 'b', 2.5, 4);
        read(null, null, null, null, null, 1.5f);
    }
}
"""


@JDKS
def test_boxed_numbers_are_kept_as_they_were_planned(tmp_path: Path, jdk: Jdk) -> None:
    features = [f"number arg{place}" for place in range(6)]
    method = "Main read (Ljava/lang/Integer;Ljava/lang/Long;Ljava/lang/Boolean;Ljava/lang/Character;Ljava/lang/Double;Ljava/lang/Object;)V"
    made = java_programs.program(tmp_path, jdk, {"Main.java": BOXED}, {method: features})
    loads = (Load.SIGNED, Load.SIGNED, Load.UNSIGNED, Load.UNSIGNED, Load.FLOATING, Load.FLOATING)
    (probe,) = made.probes
    plans = tuple(replace(one, load=load) for one, load in zip(probe.definition.features, loads, strict=True))
    made = replace(made, probes=(replace(probe, definition=replace(probe.definition, features=plans)),))
    samples = made.run_undisturbed().only.samples[1]
    order = np.argsort(samples.call)
    assert samples.cells[order][0][:4].view(np.int64).tolist() == [-3, 1 << 60, 1, 98]
    assert samples.cells[order][:, 4:].view(np.float64).tolist() == [[2.5, 4.0], [0.0, 1.5]]
    assert samples.read[order].tolist() == [[True] * 6, [False] * 5 + [True]]


HIDDEN = """
import java.util.*;
class Box {
    private final byte[] bytes; private final int number = 7; private final double ratio = 0.25; private boolean isOpen = true;
    private final List<Integer> list = List.of(1, 2); private Box inner;
    Box(int size, Box inner) { bytes = new byte[size]; this.inner = inner; }
    byte[] bytes() { throw new Error("code of the program's ran"); }
}
class Crate extends Box { Crate() { super(5, new Box(6, null)); } }
class Main {
    static void read(Object any) { }
    public static void main(String[] arguments) { read(new Box(3, null)); read("none"); read(new Crate()); read(null); }
}
"""


@JDKS
def test_fields_to_which_a_method_has_no_access_are_read_for_it_and_no_code_runs(tmp_path: Path, jdk: Jdk) -> None:
    features = [
        "length arg0.Box#~bytes#[B", "number arg0.Box#~number#I", "number arg0.Box#~ratio#D", "number arg0.Box#~isOpen#Z",
        "length arg0.Box#~list#Ljava/util/List;", "length arg0.Box#~inner#LBox;.Box#~bytes#[B", "number arg0.Box#~gone#I",
    ]  # fmt: skip
    program = java_programs.program(tmp_path, jdk, {"Main.java": HIDDEN}, {"Main read (Ljava/lang/Object;)V": features})
    outcome = program.run_undisturbed()
    assert (outcome.output, outcome.said, outcome.notes) == ("", "", ())
    assert program.values(outcome.only, "Main.read") == [
        (3.0, 7.0, 0.25, 1.0, 2.0, None, None),
        (None,) * 7,
        (5.0, 7.0, 0.25, 1.0, 2.0, 6.0, None),
        (None,) * 7,
    ]
