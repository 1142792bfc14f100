"""How Java methods differ between two revisions, and the reasons in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from differing import words
from java_sources import compared, program
from perfdiff.languages.java.matching import match
from perfdiff.languages.protocol import Counterpart
from perfdiff.records.schema import Change

Reasons = tuple[str, ...]

SWITCH = """
    enum E { P, Q, R }
    class A {
        %s
        int g(E e) { switch (e) { case P: return 1; case Q: return 2; default: return 0; } }
    }
"""
SLOW = """
    import java.lang.annotation.*;
    @Retention(RetentionPolicy.RUNTIME) @interface Slow { int value() default 1; }
    class A { %s int f() { return 1; } }
"""
ANONYMOUS = """
    class A {
        Object f(int a) {
            %s
            return new Runnable() {
                int n = 1;
                public void run() { System.out.println(a + n); }
            };
        }
    }
"""
LIMITS = (
    "class Limits { static final int MOST = %s; } class A { int f() { return Limits.MOST; } int g() { return 1; } int h() { return f(); } }"
)
REFERENCE = """
    class A {
        static int one(int a) { return a; }
        static int two(int a) { return a; }
        Object f() { return (java.util.function.IntUnaryOperator) A::%s; }
    }
"""
BODY = "int sum = 0; for (int i = 0; i < a; i++) { sum += i * 3; } return sum;"

# Source of base and of head, one file in a package of its own each, and what differs: change and reasons, {p} for the package.
CASES: Mapping[str, tuple[str, str, Mapping[str, tuple[Change, Reasons]]]] = {
    "comments, layout, names of locals and parameters, `final`, annotations for compilers": (
        """
        class A {
            int f(int a) { int b = a; Runnable r = () -> System.out.println(b); return b + 1; }
            @Override public String toString() { return "a"; }
        }
        """,
        """
        /** Says. */
        class A {
            // one
            @SuppressWarnings("unused") @Deprecated int f(final int other) {
                final int c = other; /* two */
                Runnable q = () ->
                    System.out.println(c);
                return (c + 1);
            }
            public String toString() { return "a"; }
        }
        """,
        {},
    ),
    "a body": (
        "class A { int f(int a) { return a + 1; } int g() { return f(1); } }",
        "class A { int f(int a) { return a - 1; } int g() { return f(1); } }",
        {"A.f(int)": (Change.CHANGED, ("body changed",)), "A.g()": (Change.CALLER, ("calls f, which changed",))},
    ),
    "a modifier": (
        "class A { int f() { return 1; } }",
        "class A { synchronized int f() { return 1; } }",
        {"A.f()": (Change.CHANGED, ("now synchronized",))},
    ),
    "the type of a parameter": (
        "class A { int f(int a) { return a == 0 ? 1 : 2; } int g() { return f(1); } }",
        "class A { int f(long a) { return a == 0 ? 1 : 2; } int g() { return f(1); } }",
        {"A.f(long)": (Change.CHANGED, ("signature changed",)), "A.g()": (Change.CALLER, ("calls f, which changed",))},
    ),
    "an overload that is called instead": (
        'class A { int f(Object a) { return 1; } int g() { return f(""); } }',
        'class A { int f(Object a) { return 1; } int f(String a) { return 2; } int g() { return f(""); } }',
        {"A.f(String)": (Change.ADDED, ("added",)), "A.g()": (Change.CALLER, ("calls f, which was added",))},
    ),
    "a lambda": (
        "class A { Runnable f(int a) { return () -> System.out.println(a); } }",
        "class A { Runnable f(int a) { return () -> System.out.println(-a); } }",
        {"A.f(int).lambda1": (Change.CHANGED, ("body changed",)), "A.f(int)": (Change.CALLER, ("calls lambda1, which changed",))},
    ),
    "a lambda before others": (
        "class A { void f(int a) { Runnable r = () -> System.out.println(a); r.run(); } }",
        "class A { void f(int a) { Runnable p = () -> System.gc(); p.run(); Runnable r = () -> System.out.println(a); r.run(); } }",
        {"A.f(int)": (Change.CHANGED, ("body changed",)), "A.f(int).lambda1": (Change.ADDED, ("added",))},
    ),
    "an anonymous class before others": (
        ANONYMOUS % "",
        ANONYMOUS % "new Runnable() { public void run() { System.gc(); } }.run();",
        {"A.f(int)": (Change.CHANGED, ("body changed",)), "A.f(int).new Runnable.run()": (Change.ADDED, ("added",))},
    ),
    "a local class before others": (
        "class A { int f() { class L { int g() { return 1; } } return new L().g(); } }",
        "class A { int e() { class L { int g() { return 2; } } return new L().g(); }"
        " int f() { class L { int g() { return 1; } } return new L().g(); } }",
        {"A.e()": (Change.ADDED, ("added",)), "A.e().L.g()": (Change.ADDED, ("added",))},
    ),
    "a constant that compilers write into methods": (
        LIMITS % 10,
        LIMITS % 11,
        {
            "A.f()": (Change.AFFECTED, ("uses constant {p}.Limits.MOST, whose definition changed from 10 to 11 ({p}/A.java:1)",)),
            "A.h()": (Change.CALLER, ("calls f, which depends on constant {p}.Limits.MOST",)),
        },
    ),
    "a constant that is written in another way": (LIMITS % "8 + 2", LIMITS % "10", {}),
    "the value of a field": (
        "class A { java.util.List<String> items = new java.util.ArrayList<>(); A(int a) { } int f() { return items.size(); } }",
        "class A { java.util.List<String> items = new java.util.LinkedList<>(); A(int a) { } int f() { return items.size(); } }",
        dict.fromkeys(
            ("A.<init>(int)", "A.f()"),
            (
                Change.AFFECTED,
                (
                    "uses field {p}.A.items, whose definition changed from new java.util.ArrayList<>() to new java.util.LinkedList<>()"
                    " ({p}/A.java:1)",
                ),
            ),
        ),
    ),
    "a field that is told its value anyway": (
        "class A { int n; int f() { return n; } }",
        "class A { int n = 0; int f() { return n; } }",
        {
            "A.<init>()": (Change.ADDED, ("added",)),
        },
    ),
    "the type of a field": (
        "class A { int n; long f() { return n; } }",
        "class A { long n; long f() { return n; } }",
        {"A.f()": (Change.AFFECTED, ("uses field {p}.A.n, whose definition changed from int to long ({p}/A.java:1)",))},
    ),
    "another field of what is created": (
        "class B { int n; } class A { Object f() { return new B(); } }",
        "class B { int n; int m; } class A { Object f() { return new B(); } }",
        {"A.f()": (Change.AFFECTED, ("uses fields of {p}.B, whose definition changed from 1 field to 2 fields ({p}/A.java:1)",))},
    ),
    "a parent": (
        "class P { } class Q { } class A extends P { static int f() { return 1; } }",
        "class P { } class Q { } class A extends Q { static int f() { return 1; } }",
        {
            "A.f()": (
                Change.AFFECTED,
                ("uses class {p}.A, whose definition changed from class extends P to class extends Q ({p}/A.java:1)",),
            )
        },
    ),
    "an interface of what is created": (
        "class B { } class A { Object f() { return new B(); } }",
        "class B implements java.util.RandomAccess { } class A { Object f() { return new B(); } }",
        {"A.f()": (Change.AFFECTED, ("uses interfaces of {p}.B, whose definition changed from none to RandomAccess ({p}/A.java:1)",))},
    ),
    "a method that overrides an inherited one": (
        "class B { int f() { return 1; } } class A extends B { int g(A a) { return a.f(); } }",
        "class B { int f() { return 1; } } class A extends B { int f() { return 2; } int g(A a) { return a.f(); } }",
        {"A.f()": (Change.ADDED, ("added", "overrides {p}.B.f()")), "A.g(A)": (Change.CALLER, ("calls f, which was added",))},
    ),
    "a method that overrides one no more": (
        "class B { int f() { return 1; } } class A extends B { int f() { return 2; } }",
        "class B { int f() { return 1; } } class A extends B { }",
        {"A.f()": (Change.REMOVED, ("removed", "calls now reach {p}.B.f()"))},
    ),
    "constants of an enum": (
        "enum E { P, Q } class A { int g(E e) { switch (e) { case P: return 1; default: return 0; } } E h() { return E.P; } }",
        "enum E { P, Z, Q } class A { int g(E e) { switch (e) { case P: return 1; default: return 0; } } E h() { return E.P; } }",
        {
            "E.<clinit>()": (Change.CHANGED, ("body changed",)),
            "A.g(E)": (Change.AFFECTED, ("uses constants of {p}.E, whose definition changed from P, Q to P, Z, Q ({p}/A.java:1)",)),
            "A.h()": (Change.CALLER, ("calls <clinit>, which changed",)),
        },
    ),
    "another switch over an enum, before": (
        SWITCH % "",
        SWITCH % "int b(E e) { switch (e) { case R: return 1; case P: return 2; default: return 0; } }",
        {"A.b(E)": (Change.ADDED, ("added",))},
    ),
    "components of a record": (
        "record P(int x) { int f() { return x; } } class A { int g(P p) { return p.x(); } }",
        "record P(int x, int y) { int f() { return x; } } class A { int g(P p) { return p.x(); } }",
        {"A.g(P)": (Change.AFFECTED, ("uses record {p}.P, whose definition changed from (int x) to (int x, int y) ({p}/A.java:1)",))},
    ),
    "an annotation that programs see": (SLOW % "@Slow(1)", SLOW % "@Slow(2)", {"A.f()": (Change.CHANGED, ("annotations changed",))}),
    "an annotation that they do not care for": (SLOW % "@Deprecated", SLOW % "", {}),
    "a string constant": (
        'class A { String f(int a) { return "a" + a; } String g(String s) { switch (s) { case "x": return "1"; default: return ""; } } }',
        'class A { String f(int a) { return "b" + a; } String g(String s) { switch (s) { case "y": return "1"; default: return ""; } } }',
        {"A.f(int)": (Change.CHANGED, ("body changed",)), "A.g(String)": (Change.CHANGED, ("body changed",))},
    ),
    "a reference to a method": (
        REFERENCE % "one",
        REFERENCE % "two",
        {"A.f()": (Change.CHANGED, ("body changed",))},
    ),
    "a renamed field": (
        "class A { int n = 3; int f(int a) { return a * n; } void put(int n) { this.n = n; } }",
        "class A { int factor = 3; int f(int a) { return a * factor; } void put(int factor) { this.factor = factor; } }",
        {},
    ),
    "a renamed field, of which another class has both names": (
        "class B { int n, m; } class A { int n; int f(B b) { return b.n + n; } }",
        "class B { int n, m; } class A { int m; int f(B b) { return b.m + m; } }",
        {"A.f(B)": (Change.CHANGED, ("body changed",))},
    ),
    "two renamed fields, of which none tells which is which": (
        "class A { int a, b; int f() { return a; } }",
        "class A { int c, d; int f() { return c; } }",
        {"A.f()": (Change.CHANGED, ("body changed",))},
    ),
    "a renamed field with another value": (
        "class A { int n = 3; int f(int a) { return a * n; } }",
        "class A { int factor = 4; int f(int a) { return a * factor; } }",
        {"A.<init>()": (Change.CHANGED, ("body changed",)), "A.f(int)": (Change.CHANGED, ("body changed",))},
    ),
    "a renamed method whose parameters and locals have other names, too": (
        "class A { int put(int a) { int sum = 1; for (int i = 2; i < a; i++) { sum += i * 7; } return sum; } }",
        "class A { int add(int many) { int all = 1; for (int one = 2; one < many; one++) { all += one * 7; } return all; } }",
        {"A.add(int)": (Change.RENAMED, ("renamed from {p}.A.put(int)",))},
    ),
    "a renamed method": (
        f"class A {{ int put(int a) {{ {BODY} }} int g() {{ return put(1); }} }}",
        f"class A {{ int add(int a) {{ {BODY} }} int g() {{ return add(1); }} }}",
        {"A.add(int)": (Change.RENAMED, ("renamed from {p}.A.put(int)",))},
    ),
    "code that moves to another method": (
        f"class A {{ int f(int a) {{ {BODY} }} }}",
        f"class A {{ int f(int a) {{ return g(a); }} int g(int a) {{ {BODY} }} }}",
        {
            "A.f(int)": (Change.CHANGED, ("body changed",)),
            "A.g(int)": (Change.ADDED, ("added",)),
        },
    ),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Counterpart]:
    """All cases in one program: a compiler and a reader of classes each are started once a side."""
    sides: tuple[dict[str, str], dict[str, str]] = {}, {}
    for number, (base, head, _) in enumerate(CASES.values()):
        for side, text in zip(sides, (base, head), strict=True):
            side[f"case{number}/A.java"] = f"package case{number}; {text.lstrip()}"
    return compared(tmp_path_factory.mktemp("cases"), *sides)


@pytest.mark.parametrize("case", CASES)
def test_methods_that_differ_are_told_with_reasons(pairs: list[Counterpart], case: str) -> None:
    package = f"case{list(CASES).index(case)}"
    found = {one.shown.name: (one.change, words(one.reasons)) for one in pairs if one.shown.name.startswith(f"{package}.")}
    assert found, "its methods are there"
    expected = CASES[case][2]
    assert {name: each for name, each in found.items() if each[0] is not Change.UNCHANGED} == {
        f"{package}.{name.replace('{p}', package)}": (change, tuple(reason.replace("{p}", package) for reason in reasons))
        for name, (change, reasons) in expected.items()
    }


def changes(
    folder: Path, base: Mapping[str, str], head: Mapping[str, str], options: Sequence[str] = ()
) -> dict[str, tuple[Change, Reasons]]:
    return {one.shown.name: (one.change, words(one.reasons)) for one in compared(folder, base, head, options)}


def test_a_class_in_another_package_or_with_another_name_is_the_same(tmp_path: Path) -> None:
    used = "package q; import {0}.{1}; class B {{ int h({1} a) {{ return a.f(2) + a.g(); }} }}"
    text = "package {0}; public class {1} {{ int n = 2; public int f(int a) {{ return a * n + {2}; }} public int g() {{ return f(2); }} }}"
    base = {"p/A.java": text.format("p", "A", 1), "q/B.java": used.format("p", "A")}
    moved = changes(tmp_path / "moved", base, {"r/A.java": text.format("r", "A", 1), "q/B.java": used.format("r", "A")})
    assert moved == {
        "q.B.h(A)": (Change.UNCHANGED, ()),
        "r.A.<init>()": (Change.RENAMED, ("renamed from p.A.<init>()", "moved from p/A.java")),
        "r.A.f(int)": (Change.RENAMED, ("renamed from p.A.f(int)", "moved from p/A.java")),
        "r.A.g()": (Change.RENAMED, ("renamed from p.A.g()", "moved from p/A.java")),
    }
    named = changes(tmp_path / "named", base, {"p/C.java": text.format("p", "C", 3), "q/B.java": used.format("p", "C")})
    assert named["p.C.f(int)"] == (Change.CHANGED, ("renamed from p.A.f(int)", "moved from p/A.java", "body changed"))
    assert named["p.C.g()"][0] is Change.RENAMED
    assert named["q.B.h(C)"] == (Change.CALLER, ("calls f, which changed",))


def test_ways_to_private_members_that_old_compilers_number_change_nothing(tmp_path: Path) -> None:
    text = "class A {{ {} private int n; class I {{ int f() {{ return n; }} }} }}"
    added = "private int m; class J { int f() { return m; } }"
    found = changes(tmp_path, {"A.java": text.format("")}, {"A.java": text.format(added)}, ("--release", "8", "-Xlint:-options"))
    assert found == {"A.I.f()": (Change.UNCHANGED, ()), "A.J.f()": (Change.ADDED, ("added",))}


def test_code_that_is_compiled_in_another_way_is_told(tmp_path: Path) -> None:
    """Nothing of the project explains it: another compiler, or a method of another project that is another one now."""
    files = {"A.java": 'class A { String f(int a) { return "a" + a; } int g() { return 1; } }'}
    base = program(tmp_path / "base", files, options=("--release", "8", "-Xlint:-options"))
    found = {one.shown.name: (one.change, words(one.reasons)) for one in match(base, program(tmp_path / "head", files))}
    says = "its instructions changed, and neither its text nor anything of the project that it uses"
    assert found == {"A.f(int)": (Change.CHANGED, (says,)), "A.g()": (Change.UNCHANGED, ())}


def test_definitions_of_counterparts_are_those_of_their_sides(tmp_path: Path) -> None:
    """Whatever numbers lambdas have: probes are put where a side's class has them."""
    text = "class A {{ void f(int a) {{ {} Runnable r = () -> System.out.println(a); r.run(); }} }}"
    first = "Runnable p = () -> System.gc(); p.run();"
    found = compared(tmp_path, {"A.java": text.format("")}, {"A.java": text.format(first)})
    [pair] = [one for one in found if one.base is not None and one.base.name == "A.f(int).lambda1"]
    assert pair.change is Change.UNCHANGED
    assert pair.head is not None
    assert (pair.head.name, pair.head.key) == ("A.f(int).lambda2", "java:A.f(int).lambda2")
    assert pair.head.linkage == ("A lambda$f$1 (I)V",)
