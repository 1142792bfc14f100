"""The functions of Java programs: which there are, what they are called, where they stand, and what they lead to."""

from __future__ import annotations

import textwrap
import zipfile
from pathlib import Path

import pytest

from java_sources import by_name, callees, compile_all, helpers, jdk, program, read, used, write
from perfdiff.languages.java.classes import Class, ClassReader
from perfdiff.languages.java.functions import NAMESAKE, NATIVE_METHOD
from perfdiff.languages.protocol import Program

SHOP = """
    package shop;

    import java.util.*;
    import java.util.function.*;

    public class Box<T extends Comparable<T>> implements Iterable<T> {
        /** Items. */
        private final List<T> items = new ArrayList<>();
        static final int MOST = 10;
        static Comparator<String> ORDER = (a, b) -> a.compareTo(b);

        enum Mode {
            FAST,
            SLOW {
                @Override int cost() { return 2; }
            };
            int cost() { return 1; }
        }

        record Point(int x, int y) {
            Point {
                if (x < 0) throw new IllegalArgumentException();
            }
            Point(int x) { this(x, 0); }
            int sum() { return x + y; }
        }

        interface Shape {
            double area();
            default double twice() { return 2 * area(); }
            static Shape none() { return () -> 0; }
            private int secret() { return 1; }
        }

        class Row {
            final int width;
            Row(int width) { this.width = width; }
        }

        static {
            System.setProperty("shop", "open");
        }

        Box() { }

        /**
         * Puts.
         */
        @Deprecated
        @SuppressWarnings("unchecked")
        public synchronized <K> boolean put(T item, int n, Map.Entry<String, K>[] entries, T... more) {
            // comment
            Runnable all = () -> {
                items.forEach(each -> System.out.println(each));
            };
            all.run();
            class Local {
                int size() { return items.size(); }
            }
            return new Local().size() > n;
        }

        @Override
        public Iterator<T> iterator() {
            return new Iterator<>() {
                int at = 0;
                @Override
                public boolean hasNext() {
                    return at < items.size();
                }
                @Override public T next() { return items.get(at++); }
            };
        }

        native void sys(int q);
    }
"""
PUT = "shop.Box.put(Comparable, int, Map.Entry[], Comparable[])"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A class with one of everything."""
    return program(tmp_path_factory.mktemp("shop"), {"src/shop/Box.java": SHOP})


def test_functions_go_by_the_names_that_their_users_write(shop: Program) -> None:
    assert set(by_name(shop)) == {
        "shop.Box.<init>()",
        "shop.Box.<clinit>()",
        "shop.Box.ORDER.lambda1",
        "shop.Box.Mode.<clinit>()",
        "shop.Box.Mode.cost()",
        "shop.Box.Mode.SLOW.cost()",
        "shop.Box.Point.<init>(int, int)",
        "shop.Box.Point.<init>(int)",
        "shop.Box.Point.sum()",
        "shop.Box.Shape.twice()",
        "shop.Box.Shape.none()",
        "shop.Box.Shape.none().lambda1",
        "shop.Box.Shape.secret()",
        "shop.Box.Row.<init>(int)",
        PUT,
        f"{PUT}.lambda1",
        f"{PUT}.lambda1.lambda1",
        f"{PUT}.Local.size()",
        "shop.Box.iterator()",
        "shop.Box.iterator().new Iterator.<init>()",
        "shop.Box.iterator().new Iterator.hasNext()",
        "shop.Box.iterator().new Iterator.next()",
        "shop.Box.sys(int)",
    }
    assert {one.language for one in shop.functions.values()} == {"java"}
    assert not shop.problems


def test_packages_of_parameters_are_named_where_nothing_else_tells_methods_apart(tmp_path: Path) -> None:
    text = "class A { void f(java.util.Date d) { } void f(java.sql.Date d) { } void f(String s) { } void f(int n) { } }"
    found = program(tmp_path, {"A.java": text})
    assert {name for name in by_name(found) if ".f(" in name} == {"A.f(java.util.Date)", "A.f(java.sql.Date)", "A.f(String)", "A.f(int)"}
    assert by_name(found)["A.f(String)"].names == ("A.f(String)", "A.f(java.lang.String)")


@pytest.mark.parametrize(
    ("name", "key", "linkage"),
    [
        (
            PUT,
            "java:shop.Box.put(java.lang.Comparable,int,java.util.Map$Entry[],java.lang.Comparable[])",
            "shop/Box put (Ljava/lang/Comparable;I[Ljava/util/Map$Entry;[Ljava/lang/Comparable;)Z",
        ),
        ("shop.Box.Row.<init>(int)", "java:shop.Box$Row.<init>(shop.Box,int)", "shop/Box$Row <init> (Lshop/Box;I)V"),
        ("shop.Box.Mode.SLOW.cost()", "java:shop.Box$Mode.SLOW.cost()", "shop/Box$Mode$1 cost ()I"),
        (
            "shop.Box.iterator().new Iterator.next()",
            "java:shop.Box.iterator().new Iterator.next()",
            "shop/Box$1 next ()Ljava/lang/Comparable;",
        ),
        ("shop.Box.<clinit>()", "java:shop.Box.<clinit>()", "shop/Box <clinit> ()V"),
    ],
)
def test_keys_stay_when_something_is_added_and_linkage_is_what_class_files_have(shop: Program, name: str, key: str, linkage: str) -> None:
    one = by_name(shop)[name]
    assert (one.key, one.linkage) == (key, (linkage,))


def test_functions_in_anonymous_classes_are_known_by_the_names_of_stack_traces_too(shop: Program) -> None:
    assert by_name(shop)["shop.Box.iterator().new Iterator.hasNext()"].names[1:] == ("shop.Box$1.hasNext()",)


def test_texts_begin_with_annotations_and_end_with_the_body(shop: Program) -> None:
    put = by_name(shop)[PUT]
    text = textwrap.dedent(SHOP)
    assert put.text == text[put.start : put.end]
    assert put.text.startswith("@Deprecated")
    assert put.text.endswith("> n;\n    }")
    assert text[put.body :].startswith("\n        // comment")
    lines = text.splitlines()
    assert "boolean put" in lines[put.line - 1]
    assert put.above == 2
    assert put.signature == "(T item, int n, Map.Entry<String,K>[] entries, T... more)"


def lines_of(found: Program, name: str) -> list[str]:
    """Return the lines of a function that are code of its own."""
    one = by_name(found)[name]
    others = {line for first, last in one.no_code for line in range(first, last + 1)}
    return [text.strip() for line, text in enumerate(one.text.splitlines(), start=one.first_line) if line not in others]


def test_comments_and_functions_inside_are_no_code_of_a_function(shop: Program) -> None:
    assert lines_of(shop, PUT)[2:] == [
        "public synchronized <K> boolean put(T item, int n, Map.Entry<String, K>[] entries, T... more) {",
        "Runnable all = () -> {",
        "};",
        "all.run();",
        "class Local {",
        "}",
        "return new Local().size() > n;",
        "}",
    ]
    assert lines_of(shop, "shop.Box.iterator()") == [
        "@Override",
        "public Iterator<T> iterator() {",
        "return new Iterator<>() {",
        "int at = 0;",
        "};",
        "}",
    ]


def test_an_initialiser_is_all_that_sets_what_a_class_begins_with(shop: Program) -> None:
    static = by_name(shop)["shop.Box.<clinit>()"]
    assert static.loads
    assert lines_of(shop, "shop.Box.<clinit>()") == [
        "static Comparator<String> ORDER = (a, b) -> a.compareTo(b);",
        "static {",
        'System.setProperty("shop", "open");',
        "}",
    ]
    assert not by_name(shop)["shop.Box.iterator().new Iterator.<init>()"].loads
    assert by_name(shop)["shop.Box.iterator().new Iterator.<init>()"].text == "int at = 0;"


def test_native_methods_can_carry_no_probe_and_abstract_ones_are_no_functions(shop: Program) -> None:
    assert {name: one.obstacle for name, one in by_name(shop).items() if one.obstacle} == {"shop.Box.sys(int)": NATIVE_METHOD}


def test_calls_reach_overriding_methods_lambdas_references_and_what_stands_behind_bridges(tmp_path: Path) -> None:
    text = """
        import java.util.*;
        import java.util.function.*;
        interface Shape { int area(); default int twice() { return 2 * area(); } }
        class Square implements Shape { public int area() { return 1; } }
        class Circle implements Shape { public int area() { return 2; } public int twice() { return 5; } }
        class ByLength implements Comparator<String> { public int compare(String a, String b) { return a.length() - b.length(); } }
        class Base { int n = 1; static int zero() { return 0; } }
        class Derived extends Base { }
        class Loads { static List<String> all = new ArrayList<>(); int one; }
        class Main {
            int twice(Shape one) { return one.twice(); }
            IntSupplier lambda(int a) { return () -> twice(null) + a; }
            IntSupplier reference() { return Base::zero; }
            int bridge(Comparator<String> by) { return by.compare("", ""); }
            Object inherited() { return new Derived(); }
            int loads() { return Loads.all.size(); }
            int waits(Loads it) { return it.one; }
        }
    """
    found = program(tmp_path, {"Main.java": text})
    assert callees(found, "Main.twice(Shape)") == {"Shape.twice()", "Circle.twice()"}
    assert callees(found, "Shape.twice()") == {"Square.area()", "Circle.area()"}
    assert callees(found, "Main.lambda(int)") == {"Main.lambda(int).lambda1"}
    assert callees(found, "Main.lambda(int).lambda1") == {"Main.twice(Shape)"}
    assert callees(found, "Main.reference()") == {"Base.zero()"}
    assert callees(found, "Main.bridge(Comparator)") == {"ByLength.compare(String, String)"}
    assert callees(found, "Main.inherited()") == {"Base.<init>()"}
    assert callees(found, "Main.loads()") == {"Loads.<clinit>()"}
    assert callees(found, "Main.waits(Loads)") == set()


def test_fields_are_read_and_written_by_the_class_that_declares_them(tmp_path: Path) -> None:
    text = """
        class Base { int n; int[] values = new int[3]; }
        class Derived extends Base {
            void set(Derived other) { other.values[0] = n; }
            void put() { n = 1; System.out.println(""); }
        }
    """
    found = by_name(program(tmp_path, {"A.java": text}))
    assert (found["Derived.set(Derived)"].reads, found["Derived.set(Derived)"].writes) == ({"Base.n", "Base.values"}, {"Base.values"})
    assert (found["Derived.put()"].reads, found["Derived.put()"].writes) == (frozenset(), {"Base.n"})


def test_methods_depend_on_constants_that_they_name_and_no_instruction_does(tmp_path: Path) -> None:
    files = {
        "a/Limits.java": """
            package a;
            public class Limits {
                public static final int MOST = 1, LEAST = 2;
                public static class In { public static final int X = 3; }
            }
        """,
        "b/Own.java": 'package b; interface Own { String NAME = "n"; int[] TABLE = { a.Limits.MOST }; }',
        "b/Main.java": """
            package b;
            import static a.Limits.LEAST;
            import a.Limits;
            class Main implements Own {
                static final long OWN = 4;
                int qualified() { return Limits.MOST; }
                int full() { return a.Limits.MOST; }
                int imported() { return LEAST; }
                int nested() { return Limits.In.X; }
                String inherited() { return NAME; }
                class Inner { long around() { return OWN; } }
                int other(int MOST) { return MOST; }
                int table() { return TABLE[0]; }
            }
        """,
    }
    found = program(tmp_path, files)
    named = {name: {one for one in used(found, name) if one.startswith("constant ")} for name in by_name(found)}
    assert named["b.Main.qualified()"] == {"constant a.Limits.MOST"}
    assert named["b.Main.full()"] == {"constant a.Limits.MOST"}
    assert named["b.Main.imported()"] == {"constant a.Limits.LEAST"}
    assert named["b.Main.nested()"] == {"constant a.Limits.In.X"}
    assert named["b.Main.inherited()"] == {"constant b.Own.NAME"}
    assert named["b.Main.Inner.around()"] == {"constant b.Main.OWN"}
    assert named["b.Main.other(int)"] == set()
    assert named["b.Main.table()"] == {"constant a.Limits.MOST"}, "the value of what it reads names it"


def test_class_files_without_lines_have_their_texts_by_order(tmp_path: Path) -> None:
    text = """
        class A {
            int f(int a) { return a; }
            int f(String a) { return 1; }
            Runnable g() { return () -> f(1); }
            Object h() { return new Object() { int i() { return 2; } }; }
        }
    """
    found = by_name(program(tmp_path, {"A.java": text}, options=("-g:none",)))
    assert {name: one.text for name, one in found.items()} == {
        "A.f(int)": "int f(int a) { return a; }",
        "A.f(String)": "int f(String a) { return 1; }",
        "A.g()": "Runnable g() { return () -> f(1); }",
        "A.g().lambda1": "() -> f(1)",
        "A.h()": "Object h() { return new Object() { int i() { return 2; } }; }",
        "A.h().new Object.i()": "int i() { return 2; }",
    }


def test_sources_in_other_encodings_keep_their_places(tmp_path: Path) -> None:
    text = 'class A { /* \xe9\xe8 */ String f() { return "\xfc"; } }'
    found = by_name(program(tmp_path, {"A.java": text.encode("latin-1")}, options=("-encoding", "latin1")))
    assert found["A.f()"].text == 'String f() { return "\xfc"; }'


def test_classes_of_other_projects_and_languages_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {"src/A.java": "class A { int f() { return 1; } }", "other/K.java": "class K { int f() { return 1; } }"})
    compile_all(tmp_path, under="src")
    compile_all(tmp_path, under="other", into="lib")
    (tmp_path / "other/K.java").rename(tmp_path / "other/K.kt")
    (tmp_path / "src/Script.groovy").write_text("def f() { 1 }")
    assert set(by_name(read(tmp_path))) == {"A.f()"}


def test_a_class_that_lies_in_several_places_is_one(tmp_path: Path) -> None:
    write(tmp_path, {"src/p/A.java": "package p; class A { int f() { return 1; } }"})
    compile_all(tmp_path, under="src")
    with zipfile.ZipFile(tmp_path / "app.jar", "w") as archive:
        archive.write(tmp_path / "classes/p/A.class", "p/A.class")
    assert set(by_name(read(tmp_path))) == {"p.A.f()"}
    (tmp_path / "classes/p/A.class").unlink()
    assert set(by_name(read(tmp_path))) == {"p.A.f()"}, "that of the archive"


def test_modules_may_have_classes_of_one_name(tmp_path: Path) -> None:
    for module in ("one", "two"):
        write(tmp_path, {f"{module}/src/Main.java": f"class Main {{ int {module}() {{ return 1; }} int f() {{ return 2; }} }}"})
        compile_all(tmp_path, under=f"{module}/src", into=f"{module}/classes")
    found = read(tmp_path)
    by_place = {(one.name, one.file): one.obstacle for one in found.functions.values()}
    assert by_place == {
        ("Main.one()", "one/src/Main.java"): None,
        ("Main.f()", "one/src/Main.java"): None,
        ("Main.two()", "two/src/Main.java"): NAMESAKE,
        ("Main.f()", "two/src/Main.java"): NAMESAKE,
    }


def test_what_cannot_be_read_is_a_problem_and_no_error(tmp_path: Path) -> None:
    files = {"A.java": "class A { int f() { return 1; } }", "B.java": "class B { int g() { return 1; } }", "C.java": "class C {}"}
    compile_all(write(tmp_path, files))
    path = tmp_path / "classes/B.class"
    path.write_bytes(path.read_bytes()[:40])
    (tmp_path / "classes/C.class").write_bytes(b"nothing")
    (tmp_path / "broken.jar").write_bytes(b"nothing")
    write(tmp_path, {"templates/T.java": "class ${name} { int f( }"})
    found = read(tmp_path)
    assert set(by_name(found)) == {"A.f()"}
    assert {(one.file, one.reason) for one in found.problems} == {
        ("classes/B.class", "it is damaged (EOFException)"),
        ("classes/C.class", "it is no class file"),
        ("templates/T.java", "it cannot be parsed (line 1)"),
    }


def test_a_tree_that_is_not_compiled_says_so(tmp_path: Path) -> None:
    found = read(write(tmp_path, {"A.java": "class A { int f() { return 1; } }"}))
    assert not found.functions
    assert [one.reason for one in found.problems] == ["no class file of it is in the tree: has the build compiled it?"]


def test_what_files_told_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_all(write(tmp_path, {"A.java": "class A { int f() { return 1; } }", "B.java": "class B { int g() { return 1; } }"}))
    cache = tmp_path / "cache"
    first = read(tmp_path, cache=cache)
    asked: list[int] = []
    run = "perfdiff.languages.java.classes.tools.run"
    monkeypatch.setattr(run, lambda *arguments: asked.append(len(arguments)))
    assert read(tmp_path, cache=cache) == first
    assert not asked
    monkeypatch.undo()
    for path in cache.rglob("*.json"):
        path.write_text("{")
    assert read(tmp_path, cache=cache) == first, "damaged entries are made again"
    assert all(len(path.read_text()) > 1 for path in cache.rglob("*.json"))


def test_generated_sources_are_of_the_project(tmp_path: Path) -> None:
    write(tmp_path, {"src/A.java": "class A { int f() { return new G().g(); } }"})
    write(tmp_path, {"target/generated-sources/annotations/G.java": "class G { int g() { return 1; } }"})
    compile_all(tmp_path)
    found = read(tmp_path)
    assert callees(found, "A.f()") == {"G.g()"}
    assert by_name(found)["G.g()"].obstacle is None


@pytest.mark.parametrize("package", ["jmh_generated", "generated"])  # the second one up to JMH 1.21
def test_what_jmh_makes_around_a_benchmark_is_none_of_the_project(tmp_path: Path, package: str) -> None:
    write(tmp_path, {"src/text/B.java": "package text; class B { int f() { return 1; } }"})
    stub = f"package text.{package}; class B_f_jmhTest {{ int f_stub() {{ return 1; }} }}"
    write(tmp_path, {f"target/generated-sources/annotations/text/{package}/B_f_jmhTest.java": stub})
    compile_all(tmp_path)
    assert set(by_name(read(tmp_path))) == {"text.B.f()"}


def test_lambdas_on_one_line_are_told_apart_by_what_they_capture(tmp_path: Path) -> None:
    text = """
        import java.util.*;
        import java.util.function.*;
        class A {
            void f(List<Runnable> all) { for (int i = 0; i < 3; all.add(() -> f(null)), i++) { int k = i; all.add(() -> all.remove(k)); } }
            void g(String... given) { Arrays.stream(given).map(String::trim).count(); Function<Integer, int[]> made = int[]::new; }
            int h() { Supplier<String> says = super::toString; return says.get().length(); }
        }
    """
    found = by_name(program(tmp_path, {"A.java": text}))
    assert {name: one.text for name, one in found.items() if "lambda" in name} == {
        "A.f(List).lambda1": "() -> f(null)",
        "A.f(List).lambda2": "() -> all.remove(k)",
        "A.g(String[]).lambda1": "int[]::new",
        "A.h().lambda1": "super::toString",
    }
    assert found["A.f(List).lambda2"].linkage[0].endswith(" (Ljava/util/List;I)V")


def test_damaged_class_files_never_end_the_reading(tmp_path: Path) -> None:
    """Each byte that is changed in turn gives facts or a problem, and the other files theirs."""
    compile_all(write(tmp_path, {"A.java": "class A { int f(int a) { switch (a) { case 1: return 2; default: return 3; } } }"}))
    path = tmp_path / "classes/A.class"
    data = path.read_bytes()
    reader = ClassReader(jdk(), None, helpers())
    changed = [data[:place] + bytes([value]) + data[place + 1 :] for place in range(len(data)) for value in (0, 0xFF, 0x41)]
    told = reader.read([data, *changed, data])
    assert told[0] == told[-1]
    assert len(told) == len(changed) + 2
    assert all(isinstance(one, str | Class) for one in told)
    assert any(isinstance(one, str) for one in told)
