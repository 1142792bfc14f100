"""Which conditions are watched, where their text lies, and what their counts say."""

from __future__ import annotations

from pathlib import Path

import pytest

import runtimes
from c_programs import function, program
from perfdiff.languages.protocol import BranchPlan
from probed_trees import probed


def branches(
    tree: Path, body: str, *, before: str = "", head: str = "int f(int a, int b, const char *s)", file: str = "a.c"
) -> list[BranchPlan]:
    """Return the planned conditions of `f`, after checking that each place holds the text it says."""
    source = f"{before}\n{head} {{ {body} }}\n"
    flags = ("-std=c++17",) if file.endswith(".cpp") else ()
    plans = list(function(program(tree, {file: source}, flags), "f").branches)
    data = source.encode()
    assert [" ".join(data[plan.start : plan.end].decode().split()) for plan in plans] == [plan.text for plan in plans]
    assert [data[: plan.start].count(b"\n") + 1 for plan in plans] == [plan.line for plan in plans]
    return plans


def texts(tree: Path, body: str, *, before: str = "", head: str = "int f(int a, int b, const char *s)", file: str = "a.c") -> list[str]:
    return [plan.text for plan in branches(tree, body, before=before, head=head, file=file)]


def test_every_kind_of_condition_is_found_in_the_order_of_the_text(tmp_path: Path) -> None:
    body = "if (a) b++; while (b > 3) b--; do a--; while (a > 1 /* ) */); for (int i = 0; i < a; i++) b++; return b == 2 ? 1 : 2;"
    assert texts(tmp_path, body) == ["a", "b > 3", "a > 1", "i < a", "b == 2"]


def test_what_a_compiler_decides_is_left_alone(tmp_path: Path) -> None:
    before = "#define DEBUG 0\nstatic const int limit = 3; enum { SIZE = 4 };"
    body = (
        "while (1) { if (a > 2) break; } for (;;) if (limit > 2) break; if (DEBUG && a) return 1; if (sizeof(a) == 4) return 2;"
        "if (SIZE > 3) return 3; if (__builtin_constant_p(a)) return 4; const int c = a + 1; return c ? 1 : limit ? 2 : 3;"
    )
    assert texts(tmp_path, body, before=before) == ["a > 2", "c"]


def test_conditions_with_macros_are_wrapped_as_they_are_written(tmp_path: Path) -> None:
    before = "#define NULL ((void *)0)\n#define MAX(x, y) ((x) > (y) ? (x) : (y))\n#define IS(x) ((x) == 1)"
    body = "if (s == NULL) return 1; if (IS(a) && b) return 2; while (MAX(a, b) > 3) a--; return a == IS(b) ? 1 : 2;"
    assert texts(tmp_path, body, before=before) == ["s == NULL", "IS(a) && b", "MAX(a, b) > 3", "a == IS(b)"]


def test_conditions_that_begin_inside_a_macro_are_left_alone(tmp_path: Path) -> None:
    before = (
        "#define EACH(i, n) for (i = 0; i < n; i++)\n#define WHEN(x) if (x)\n#define FLAG a ? 1 : 0\n#define CHECK(x) g(#x, x)\n"
        "#define SUM b = a\nint g(const char *, int);"
    )
    body = "int i; EACH(i, a) b++; WHEN(a) b++; b = FLAG; CHECK(a ? 1 : 0); SUM == 3 ? 1 : 2; return b;"
    assert texts(tmp_path, body, before=before) == []


def test_preprocessor_lines_in_a_condition_leave_it_alone(tmp_path: Path) -> None:
    assert texts(tmp_path, "if (a\n#ifdef X\n&& b\n#endif\n) return 1; if (b) return 2; return 0;") == ["b"]


def test_gnu_conditional_without_a_middle_is_left_alone(tmp_path: Path) -> None:
    assert texts(tmp_path, "return a ?: b;") == []


def test_conditions_in_comments_strings_and_statement_expressions(tmp_path: Path) -> None:
    body = "if (s[0] == ')' /* ( */ || g(\")(\")) return 1; if (({ int t = a; t > b; })) return 2; return 0;"
    assert texts(tmp_path, body, before="int g(const char *);") == ["s[0] == ')' /* ( */ || g(\")(\")", "({ int t = a; t > b; })"]


def test_cplusplus_declarations_and_constants_are_left_alone(tmp_path: Path) -> None:
    before = "template <bool B> struct Flag { static constexpr bool value = B; }; constexpr int sq(int n) { return n * n; }"
    body = (
        "if (int c = a) return c; if (int c = a; c > b) return c; if constexpr (sizeof(a) > 4) return 3; while (bool go = a > 0) a -= go;"
        "if (Flag<true>::value) return 4; constexpr int k = sq(2) > 3 ? 1 : 2; return k;"
    )
    assert texts(tmp_path, body, before=before, file="a.cpp") == ["c > b"]


def test_conditions_of_lambdas_and_local_classes_are_their_own(tmp_path: Path) -> None:
    body = (
        "auto inner = [&](int c) { return c > a ? 1 : 2; };"
        "struct Local { int x = 3; int y = x ? 1 : 2; int m(int d) { if (d) return 1; return x; } }; if (b) return inner(1); return 0;"
    )
    source = f"int f(int a, int b) {{ {body} }}\n"
    found = program(tmp_path, {"a.cpp": source})
    assert sorted([branch.text for branch in one.branches] for one in found.functions.values()) == [["b"], ["c > a"], ["d"]]


def test_conditions_of_a_lambda_that_captures_this_are_its_own(tmp_path: Path) -> None:
    source = (
        "template <typename T> struct S { T n; int f(int a) { auto inner = [this](int c) { return c > 2 ? n : 1; }; return inner(a); } };\n"
    )
    inner = function(program(tmp_path, {"a.cpp": source}), "S::f::<lambda 1>")
    assert [branch.text for branch in inner.branches] == ["c > 2"]


def test_handlers_of_a_function_try_block_are_left_alone(tmp_path: Path) -> None:
    source = "int f(int a) try { if (a) throw 1; return 0; } catch (int b) { if (b) return 1; return 2; }\n"
    assert [branch.text for branch in function(program(tmp_path, {"a.cpp": source}), "f").branches] == ["a"]


def test_members_and_this_are_no_constants(tmp_path: Path) -> None:
    source = "struct S { bool ready; int n; int f() const { if (ready) return 1; return this->n ? 2 : n > 3 ? 3 : 4; } };\n"
    found = function(program(tmp_path, {"a.cpp": source + "int g(S &s) { return s.f(); }\n"}), "S::f")
    assert [branch.text for branch in found.branches] == ["ready", "this->n", "n > 3"]


@pytest.mark.integration
def test_counts_are_of_executions_and_of_those_that_were_true(tmp_path: Path) -> None:
    main = tmp_path / "main.c"
    main.write_text(
        "static int f(int n) { int odd = 0; for (int i = 0; i < n; i++) if (i % 2) odd++; return odd > 2 ? odd : 0; }\n"
        "int main(void) { return f(5) + f(6) == 3 ? 0 : 1; }\n"
    )
    tree = probed(main)
    outcome = tree.run(tree.compile("gcc", runtimes.library(), "-O2"), tmp_path / "out")
    assert outcome.status == 0
    assert tree.outcomes(outcome, "f") == {"i < n": (13, 11), "i % 2": (11, 5), "odd > 2": (2, 1)}
