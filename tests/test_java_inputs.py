"""The features of Java methods: which are planned, how they are named, and how they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from java_sources import by_name, features, program
from perfdiff.languages.planning import MAX_FEATURES
from perfdiff.languages.protocol import Load, Program
from perfdiff.records.schema import Origin

TEXT = """
    package p;

    import java.io.*;
    import java.nio.file.*;
    import java.util.*;
    import java.util.function.*;

    class Shelf<T> {
        enum Mode { FAST, SLOW }
        interface Shape { int area(); }
        static class Square implements Shape { public int area() { return 1; } }
        static class Node {
            int value; Node next; List<String> names; int[] cells;
            int size() { return cells.length; }
            Node after() { return next; }
            int grown() { return value + 1; }
        }

        private int count;
        private final List<T> items = new ArrayList<>();
        private Node first;
        private Mode mode;
        String title;
        int unread;
        static int opened;
        static final int MOST = 5;
        static final Map<String, Integer> CACHE = new HashMap<>();
        static final String NAME = String.valueOf(1);

        void numbers(int a, long b, double c, boolean d, char e, Integer f, Double g, Number h) { }
        void sizes(String text, StringBuilder built, int[] values, List<T> list, Map<String, T> map, ArrayDeque<T> queue, Iterable<T> any) {
        }
        void unknown(Object one, T other, Thread thread) { }
        void chosen(Mode mode) { }
        int dynamic(Shape shape, Square square, List<T> list, CharSequence text) {
            return shape.area() + square.area() + list.hashCode() + text.length();
        }
        void nested(int[][] grid, String[] words, List<List<T>> rows, Map<String, byte[]> blobs, List<Integer> flat, int[] plain) { }
        void files(File a, Path b, String path, String fileName, String text, String opened) throws IOException { new FileReader(opened); }
        int asked(Node from) { return from.size() + total() + from.after().cells.length + from.grown(); }
        int total() { return count; }
        int fields() { return count + items.size() + (mode == Mode.FAST ? 1 : 0) + title.length(); }
        int chained(Node from) { return first.next.value + from.names.size() + from.next.next.cells[0]; }
        int changed() { int sum = 0; for (Node at = first; at != null; at = at.next) { sum += at.value; } return sum; }
        int globals() { return opened + MOST + CACHE.size() + NAME.length() + System.getProperties().size(); }
        Shelf(int size) { opened += count + size; }
        static <K extends Comparable<K>> void generic(K key, List<? extends CharSequence> texts) { }
        IntUnaryOperator lambda(int factor, List<T> other) { int twice = 2 * factor; return n -> n * twice + other.size() + count; }
        Supplier<Integer> anonymous(String[] given) {
            return new Supplier<>() { int calls; public Integer get() { calls++; return given.length + items.size(); } };
        }
        void many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, int m, int n, int o, int p,
            int q, int r, int s, int t, int u, int v, int w, int x, int y, int z, int aa, int bb, int cc, int dd, int ee, int ff) { }
        class Inner {
            Inner(int width) { }
            int get() { return count; }
        }
    }
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A class with inputs of all kinds."""
    return program(tmp_path_factory.mktemp("shelf"), {"p/Shelf.java": TEXT})


def planned(found: Program, method: str) -> dict[str, str]:
    """Return the features of the one method of a name."""
    [name] = [name for name in by_name(found) if name.startswith(f"p.Shelf.{method}(") and name.endswith(")")]
    return features(found, name)


ITEMS = "this.p/Shelf#items#Ljava/util/List;"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("numbers", {name: f"number arg{index}" for index, name in enumerate("abcdefgh")}),
        (
            "sizes",
            {
                "text.length()": "length arg0",
                "built.length()": "length arg1",
                "values.length": "length arg2",
                "list.size()": "length arg3",
                "map.size()": "length arg4",
                "queue.size()": "length arg5",
                "any.size()": "length arg6",
            },
        ),
        ("unknown", {"one": "number arg0", "size(one)": "length arg0", "other": "number arg1", "size(other)": "length arg1"}),
        ("chosen", {"mode": "ordinal arg0"}),
        (
            "dynamic",
            {
                "list.size()": "length arg2",
                "text.length()": "length arg3",
                "shape.getClass()": "type arg0",
                "list.getClass()": "type arg2",
                "text.getClass()": "type arg3",
            },
        ),
        (
            "nested",
            {
                "grid.length": "length arg0",
                "words.length": "length arg1",
                "rows.size()": "length arg2",
                "blobs.size()": "length arg3",
                "flat.size()": "length arg4",
                "plain.length": "length arg5",
                "total size(grid)": "nested arg0",
                "total size(words)": "nested arg1",
                "total size(rows)": "nested arg2",
                "total size(blobs)": "nested arg3",
            },
        ),
        (
            "files",
            {
                "path.length()": "length arg2",
                "fileName.length()": "length arg3",
                "text.length()": "length arg4",
                "opened.length()": "length arg5",
                "file size(a)": "file arg0",
                "path depth(a)": "depth arg0",
                "file size(b)": "file arg1",
                "path depth(b)": "depth arg1",
                "file size(path)": "file arg2",
                "path depth(path)": "depth arg2",
                "file size(fileName)": "file arg3",
                "path depth(fileName)": "depth arg3",
                "file size(opened)": "file arg5",
                "path depth(opened)": "depth arg5",
            },
        ),
        (
            "fields",
            {
                "this.count": "number this.p/Shelf#count#I",
                "this.items.size()": f"length {ITEMS}",
                "this.mode": "ordinal this.p/Shelf#mode#Lp/Shelf$Mode;",
                "this.title.length()": "length this.p/Shelf#title#Ljava/lang/String;",
            },
        ),
        (
            "chained",
            {
                "from.names.size()": "length arg0.p/Shelf$Node#names#Ljava/util/List;",
                "total size(from.names)": "nested arg0.p/Shelf$Node#names#Ljava/util/List;",
            },
        ),
        (
            "asked",
            {
                "from.cells.length": "length arg0.p/Shelf$Node#~cells#[I",
                "from.next.cells.length": "length arg0.p/Shelf$Node#~next#Lp/Shelf$Node;.p/Shelf$Node#cells#[I",
                "this.count": "number this.p/Shelf#count#I",
            },
        ),
        ("changed", {"this.first.value": "number this.p/Shelf#first#Lp/Shelf$Node;.p/Shelf$Node#value#I"}),
        (
            "globals",
            {
                "Shelf.opened": "number static.p/Shelf#opened#I",
                "Shelf.CACHE.size()": "length static.p/Shelf#CACHE#Ljava/util/Map;",
            },
        ),
        ("<init>", {"size": "number arg0", "Shelf.opened": "number static.p/Shelf#opened#I"}),
        ("generic", {"key": "number arg0", "size(key)": "length arg0", "texts.size()": "length arg1", "total size(texts)": "nested arg1"}),
        ("Inner.<init>", {"width": "number arg1"}),
        ("Inner.get", {"Shelf.this.count": "number this.p/Shelf$Inner#this$0#Lp/Shelf;.p/Shelf#count#I"}),
    ],
)
def test_inputs_are_planned_by_their_types_and_named_as_programmers_write_them(
    found: Program, method: str, expected: dict[str, str]
) -> None:
    assert planned(found, method) == expected


def test_paths_are_as_long_as_is_asked_for(tmp_path: Path) -> None:
    deep = program(tmp_path / "deep", {"p/Shelf.java": TEXT}, depth=3)
    assert planned(deep, "chained")["from.next.next.cells.length"].count("#") == 6
    assert planned(deep, "chained")["this.first.next.value"] == (
        "number this.p/Shelf#first#Lp/Shelf$Node;.p/Shelf$Node#next#Lp/Shelf$Node;.p/Shelf$Node#value#I"
    )
    flat = program(tmp_path / "flat", {"p/Shelf.java": TEXT}, depth=0)
    assert planned(flat, "fields") == {}
    assert planned(flat, "Inner.get") == {}


def test_values_that_a_lambda_or_an_anonymous_class_captures_are_its_inputs(found: Program) -> None:
    assert features(found, "p.Shelf.lambda(int, List).lambda1") == {
        "twice": "number arg0",
        "other.size()": "length arg1",
        "other.getClass()": "type arg1",
        "n": "number arg2",
        "this.count": "number this.p/Shelf#count#I",
    }
    assert features(found, "p.Shelf.anonymous(String[]).new Supplier.get()") == {
        "given.length": "length this.p/Shelf$1#val$given#[Ljava/lang/String;",
        "total size(given)": "nested this.p/Shelf$1#val$given#[Ljava/lang/String;",
        "this.calls": "number this.p/Shelf$1#calls#I",
        "Shelf.this.items.size()": f"length this.p/Shelf$1#this$0#Lp/Shelf;.{ITEMS.removeprefix('this.')}",
    }


def test_values_are_understood_by_their_types(found: Program) -> None:
    [name] = [name for name in by_name(found) if name.startswith("p.Shelf.numbers(")]
    loads = {plan.name: plan.load for plan in by_name(found)[name].features}
    signed, unsigned, floating = Load.SIGNED, Load.UNSIGNED, Load.FLOATING
    assert loads == dict(zip("abcdefgh", (signed, signed, floating, unsigned, unsigned, signed, floating, floating), strict=True))


def test_constants_of_an_enum_are_categories_with_their_names(found: Program) -> None:
    [plan] = by_name(found)["p.Shelf.chosen(Shelf.Mode)"].features
    assert (plan.category, plan.labels, plan.load, plan.origin) == (True, {0: "FAST", 1: "SLOW"}, Load.SIGNED, Origin.ARGUMENT)


def test_origins_tell_how_plain_an_input_is(found: Program) -> None:
    def origins(method: str) -> dict[str, Origin]:
        [name] = [name for name in by_name(found) if name.startswith(f"p.Shelf.{method}(")]
        return {plan.name: plan.origin for plan in by_name(found)[name].features}

    assert set(origins("fields").values()) == {Origin.FIELD}
    assert set(origins("globals").values()) == {Origin.GLOBAL}
    assert origins("nested")["rows.size()"] is Origin.ARGUMENT
    assert origins("nested")["total size(rows)"] is Origin.DERIVED


def test_at_most_as_many_are_planned_as_can_be_sorted_out(found: Program) -> None:
    assert len(planned(found, "many")) == MAX_FEATURES
