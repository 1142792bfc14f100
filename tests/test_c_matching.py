"""What changed between two revisions of a C or C++ program, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from c_programs import program
from differing import words
from perfdiff.languages.c.matching import match
from perfdiff.languages.protocol import Counterpart
from perfdiff.records.differences import EntityKind
from perfdiff.records.schema import Change

Compare = Callable[..., dict[str, Counterpart]]

STEPS = """
  int total = 0;
  for (int i = 0; i < n; i++) {
    if (a[i] > limit) total += a[i] - limit;
    else total -= limit - a[i];
  }
  return total;
"""


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Index two trees and return the counterparts by the function's name, head's where there is one."""

    def run(
        base: dict[str, str], head: dict[str, str], flags: Sequence[str] = (), head_flags: Sequence[str] | None = None
    ) -> dict[str, Counterpart]:
        before = program(tmp_path / "base", base, flags)
        after = program(tmp_path / "head", head, flags if head_flags is None else head_flags)
        assert before.problems == after.problems == ()
        found = match(before, after)
        return {one.name: part for part in found if (one := part.head or part.base) is not None}

    return run


def changes(found: dict[str, Counterpart]) -> dict[str, Change]:
    return {name: part.change for name, part in found.items()}


def test_all_functions_are_returned_and_equal_ones_are_unchanged(compare: Compare) -> None:
    text = {"a.c": "int f(int a) { return a; }\nint g(void) { return f(1); }\n"}
    assert changes(compare(text, text)) == {"f": Change.UNCHANGED, "g": Change.UNCHANGED}


def test_reformatting_and_comments_are_no_change(compare: Compare) -> None:
    base = {"a.c": "#define N 1\nstruct s { int a; };\nstatic int t[] = {1, 2};\nint f(struct s *p) { return p->a + N + t[0]; }\n"}
    head = {
        "a.c": "/* moved down */\n\n#define  N  /* one */ 1\nstruct s {\n  int a; // first\n};\nstatic int t[] =\n  { 1, 2 };\n"
        "int\nf(struct s *p)\n{\n  // sum\n  return p->a\n    + N + t[0];\n}\n"
    }
    assert changes(compare(base, head)) == {"f": Change.UNCHANGED}


def test_a_changed_body_is_changed_and_its_caller_a_caller(compare: Compare) -> None:
    text = "int insert(int a) { return a %s 1; }\nint main(void) { return insert(1); }\nint other(void) { return 2; }\n"
    found = compare({"a.c": text % "+"}, {"a.c": text % "-"})
    assert changes(found) == {"insert": Change.CHANGED, "main": Change.CALLER, "other": Change.UNCHANGED}
    assert words(found["insert"].reasons) == ("body changed",)
    assert words(found["main"].reasons) == ("calls insert, which changed",)


def test_a_changed_signature_is_said(compare: Compare) -> None:
    found = compare({"a.c": "long f(int a) { return a; }\n"}, {"a.c": "long f(long a) { return a; }\n"})
    assert found["f"].change is Change.CHANGED
    assert words(found["f"].reasons) == ("signature changed",)


def test_a_changed_cplusplus_signature_is_not_an_addition(compare: Compare) -> None:
    base = {"a.cc": "struct S { int f(int a) const { return a; } };\nint f(int a) { return a; }\nint use(S s) { return s.f(1) + f(1); }\n"}
    head = {"a.cc": "struct S { int f(long a) const { return a; } };\nint f(int a) { return a; }\nint use(S s) { return s.f(1) + f(1); }\n"}
    found = compare(base, head)
    assert changes(found) == {"S::f": Change.CHANGED, "f": Change.UNCHANGED, "use": Change.CALLER}
    assert "signature changed" in words(found["S::f"].reasons)


def test_an_overload_left_alone_is_paired_with_the_changed_one(tmp_path: Path) -> None:
    base = program(tmp_path / "base", {"a.cc": "int f(int a) { return a; }\nint f(long a) { return (int)a; }\n"})
    head = program(tmp_path / "head", {"a.cc": "int f(int a) { return a; }\nint f(double a) { return (int)a; }\n"})
    assert sorted(part.change for part in match(base, head)) == [Change.CHANGED, Change.UNCHANGED]


def test_added_and_removed_functions_and_their_callers(compare: Compare) -> None:
    base = {"a.c": "int cached(int a) { return a; }\nint f(void) { return cached(1); }\n"}
    head = {"a.c": "int fresh(char *s, int n) { while (n--) *s++ = 1; return *s; }\nint f(void) { return fresh(0, 1); }\n"}
    found = compare(base, head)
    assert changes(found) == {"cached": Change.REMOVED, "fresh": Change.ADDED, "f": Change.CHANGED}
    assert found["cached"].head is None
    assert found["fresh"].base is None


def test_a_caller_through_a_table_of_a_removed_function_says_so(compare: Compare) -> None:
    text = "%sstatic int b(int x) { return x * 2; }\nstatic int (*t[])(int) = {%s b};\nint f(void) { return t[0](1); }\n"
    found = compare({"a.c": text % ("static int a(int x) { return x; }\n", "a,")}, {"a.c": text % ("", "")})
    assert found["f"].change is Change.AFFECTED
    assert words(found["f"].culprits) == ("global t",)


@pytest.mark.parametrize("compiled", ["a.c", "a.cc"])
def test_a_renamed_function_is_renamed_and_its_callers_are_unchanged(compare: Compare, compiled: str) -> None:
    text = f"int NAME(const int *a, int n, int limit) {{{STEPS}}}\nint use(int *a) {{ return NAME(a, 3, 1); }}\n"
    found = compare({compiled: text.replace("NAME", "score")}, {compiled: text.replace("NAME", "rating")})
    assert changes(found) == {"rating": Change.RENAMED, "use": Change.UNCHANGED}
    assert words(found["rating"].reasons) == ("renamed from score",)


def test_a_renamed_recursive_function_is_renamed(compare: Compare) -> None:
    text = "int NAME(int n) { return n < 2 ? n : NAME(n - 1) + NAME(n - 2); }\nint main(void) { return NAME(9); }\n"
    found = compare({"a.c": text.replace("NAME", "fib")}, {"a.c": text.replace("NAME", "fibonacci")})
    assert changes(found) == {"fibonacci": Change.RENAMED, "main": Change.UNCHANGED}


def test_a_renamed_class_renames_its_methods_and_leaves_its_users_unchanged(compare: Compare) -> None:
    text = (
        "struct NAME { int n; NAME(int a); int twice() const; };\n"
        "NAME::NAME(int a) : n(a) {}\nint NAME::twice() const { return n * 2; }\nint use(const NAME &it) { return it.twice(); }\n"
    )
    found = compare({"a.cc": text.replace("NAME", "Old")}, {"a.cc": text.replace("NAME", "Young")})
    assert changes(found) == {"Young::Young": Change.RENAMED, "Young::twice": Change.RENAMED, "use": Change.UNCHANGED}


def test_a_renamed_and_edited_function_is_paired_by_similarity(compare: Compare) -> None:
    base = {"a.c": f"int score(const int *a, int n, int limit) {{{STEPS}}}\n"}
    head = {"a.c": f"int rating(const int *a, int n, int limit) {{{STEPS.replace('return total', 'return total * 2')}}}\n"}
    found = compare(base, head)
    assert changes(found) == {"rating": Change.CHANGED}
    assert words(found["rating"].reasons) == ("renamed from score", "body changed")


def test_unrelated_functions_are_not_paired(compare: Compare) -> None:
    base = {"a.c": f"int score(const int *a, int n, int limit) {{{STEPS}}}\n"}
    head = {"a.c": "void clear(char *s, long n) { do { *s++ = 0; s[0] ^= 3; } while (--n); switch (*s) { case 1: *s = 2; default: ; } }\n"}
    assert changes(compare(base, head)) == {"score": Change.REMOVED, "clear": Change.ADDED}


def test_a_static_function_moved_to_another_file_is_moved(compare: Compare) -> None:
    helper = f"static int score(const int *a, int n, int limit) {{{STEPS}}}\n"
    user = "int use%d(int *a) { return score(a, 3, 1); }\n"
    base = {"a.c": helper + user % 1, "b.c": "int x;\n"}
    head = {"a.c": "int x;\n", "b.c": helper + user % 2}
    found = compare(base, head)
    assert found["score"].change is Change.RENAMED
    assert words(found["score"].reasons) == ("moved from a.c",)


def test_a_public_function_moved_with_an_edit_is_changed(compare: Compare) -> None:
    found = compare(
        {"a.c": "int f(int x) { return x; }\n", "b.c": "int y;\n"}, {"a.c": "int y;\n", "b.c": "int f(int x) { return x + 1; }\n"}
    )
    assert found["f"].change is Change.CHANGED
    assert words(found["f"].reasons) == ("moved from a.c", "body changed")


def test_the_same_static_name_in_two_files_is_matched_file_by_file(tmp_path: Path) -> None:
    text = "static int step(int x) { return x + %d; }\nint use%s(void) { return step(1); }\n"
    base = program(tmp_path / "base", {"a.c": text % (1, "a"), "b.c": text % (2, "b")})
    head = program(tmp_path / "head", {"a.c": text % (1, "a"), "b.c": text % (3, "b")})
    found = {(part.head.name, part.head.file): part.change for part in match(base, head) if part.head is not None}
    assert found["step", "a.c"] is Change.UNCHANGED
    assert found["step", "b.c"] is Change.CHANGED
    assert found["usea", "a.c"] is Change.UNCHANGED
    assert found["useb", "b.c"] is Change.CALLER


def test_a_struct_that_shrinks_affects_those_that_use_it(compare: Compare) -> None:
    header = "struct sums { long total; %s };\n"
    source = (
        '#include "sums.h"\nlong add(struct sums *s, int i) { return s[i].total++; }\n'
        "void pass(struct sums *s) { add(s, 1); }\nint other(void) { return 1; }\n"
    )
    found = compare({"sums.h": header % "char pad[120];", "a.c": source}, {"sums.h": header % "long a, b, c, d, e;", "a.c": source})
    assert changes(found) == {"add": Change.AFFECTED, "pass": Change.CALLER, "other": Change.UNCHANGED}
    assert words(found["add"].reasons) == ("uses struct sums, whose size changed from 128 to 48 bytes (sums.h:1)",)
    assert words(found["add"].culprits) == ("struct sums",)
    assert words(found["pass"].reasons) == ("calls add, which depends on struct sums",)


def test_fields_that_trade_places_change_a_layout(compare: Compare) -> None:
    text = "struct s { %s };\nint f(struct s *p) { return p->a; }\n"
    found = compare({"a.c": text % "int a; int b;"}, {"a.c": text % "int b; int a;"})
    assert words(found["f"].reasons) == ("uses struct s, whose layout changed (a.c:1)",)


def test_a_type_behind_a_typedef_and_a_type_inside_a_type_are_seen(compare: Compare) -> None:
    text = "struct in { %s };\ntypedef struct { struct in one; int last; } out_t;\nint f(out_t *p) { return p->last; }\n"
    found = compare({"a.c": text % "int a;"}, {"a.c": text % "int a[9];"})
    assert found["f"].change is Change.AFFECTED
    assert set(words(found["f"].culprits)) == {"struct in", "struct out_t"}


def test_a_typedef_of_a_plain_type_that_changes_is_seen(compare: Compare) -> None:
    text = "typedef %s word;\nint f(void) { word a = 1; return (int)(a << 3); }\n"
    found = compare({"a.c": text % "int"}, {"a.c": text % "long"})
    assert words(found["f"].reasons) == ("uses type word, whose definition changed from int to long (a.c:1)",)


def test_a_macro_inside_a_macro_affects_its_users(compare: Compare) -> None:
    text = "#define ROUNDS %d\n#define HASH(x) ((x) * ROUNDS)\nint f(int x) { return HASH(x); }\nint g(int x) { return x; }\n"
    found = compare({"a.c": text % 3}, {"a.c": text % 300})
    assert changes(found) == {"f": Change.AFFECTED, "g": Change.UNCHANGED}
    assert words(found["f"].reasons) == ("expands macro ROUNDS, whose definition changed from 3 to 300 (a.c:1)",)
    assert words(found["f"].culprits) == ("macro ROUNDS",)


@pytest.mark.parametrize(
    ("name", "base", "head", "kind"),
    [
        ("X_VERSION", '" r2935 545de2f"', '" r2936 71b1e3a"', EntityKind.VERSION),
        ("VERSION_MINOR", "4", "5", EntityKind.VERSION),
        ("BUILD", "(157)", "(158)", EntityKind.VERSION),
        ("REVISION", '"1.2"', '"debug"', EntityKind.MACRO),
        ("VERSION", "4", "sizeof(int)", EntityKind.MACRO),
        ("REVERSION", "4", "5", EntityKind.MACRO),
        ("BUILD_SIZE", "4", "5", EntityKind.MACRO),
        ("ROUNDS", "4", "5", EntityKind.MACRO),
    ],
)
def test_a_macro_is_a_version_by_its_name_and_by_its_values(compare: Compare, name: str, base: str, head: str, kind: EntityKind) -> None:
    text = f"long f(void) {{ return (long)({name}); }}\n"
    found = compare(*({"a.c": f"#define {name} {value}\n{text}"} for value in (base, head)))
    assert [(culprit.kind, str(culprit)) for culprit in found["f"].culprits] == [(kind, f"macro {name}")]


def test_a_macro_that_becomes_a_function_is_removed(compare: Compare) -> None:
    use = "int f(int x) { return HASH(x); }\n"
    found = compare({"a.c": "#define HASH(x) ((x) * 3)\n" + use}, {"a.c": "static int HASH(int x) { return x * 3; }\n" + use})
    assert changes(found) == {"f": Change.AFFECTED, "HASH": Change.ADDED}
    assert words(found["f"].reasons) == ("expands macro HASH, which was removed (a.c:1)",)


LINKED = """
struct token { int start;
#ifdef LINKS
int parent;
#endif
};
int f(struct token *t, int n) {
  int i = n;
#ifdef LINKS
  return t[i].parent;
#else
  for (; i > 0; i--) if (t[i].start < 0) break;
  return i;
#endif
}
int g(struct token *t) { return t[1].start; }
"""


def test_a_macro_that_a_text_asks_for_is_named_beside_the_struct_that_it_lays_out_anew(compare: Compare) -> None:
    found = compare({"a.c": "#define LINKS\n" + LINKED}, {"a.c": LINKED})
    assert changes(found) == {"f": Change.AFFECTED, "g": Change.AFFECTED}
    assert words(found["f"].culprits)[0] == "macro LINKS"
    assert words(found["f"].reasons)[0] == "expands macro LINKS, which was removed (a.c:1)"
    assert "struct token" in words(found["f"].reasons)[1]


def test_a_macro_that_a_text_newly_asks_for_is_named_beside_the_struct_that_it_lays_out_anew(compare: Compare) -> None:
    found = compare({"a.c": LINKED}, {"a.c": "#define LINKS\n" + LINKED})
    assert words(found["f"].reasons)[0] == "expands macro LINKS, which is new (a.c:1)"
    assert "struct token" in words(found["f"].reasons)[1]


def test_what_a_macro_uses_now_is_not_named_beside_it(compare: Compare) -> None:
    text = "#define ROUNDS 3\n#define STEPS 3\n#define HASH(x) ((x) * %s)\nint f(int x) { return HASH(x); }\n"
    found = compare({"a.c": text % "ROUNDS"}, {"a.c": text % "STEPS * STEPS"})
    assert words(found["f"].culprits) == ("macro HASH",)


def test_a_macro_that_moves_to_another_file_is_no_change(compare: Compare) -> None:
    source = '#include "h.h"\n%sint f(int x) { return x * N; }\n'
    found = compare({"h.h": "#define N 3\n", "a.c": source % ""}, {"h.h": "\n", "a.c": source % "#define N 3\n"})
    assert changes(found) == {"f": Change.UNCHANGED}


def test_a_renaming_macro_file_is_affected_by_its_macros(compare: Compare) -> None:
    impl = "int PREFIX(run)(const char *s) { return *s + WIDTH; }\n"
    tok = '#define WIDTH {0}\n#define PREFIX(x) a_##x\n#include "impl.h"\n#undef PREFIX\n#define PREFIX(x) b_##x\n#include "impl.h"\n'
    found = compare({"impl.h": impl, "tok.c": tok.format(1)}, {"impl.h": impl, "tok.c": tok.format(2)})
    assert [part.change for part in found.values()] == [Change.AFFECTED]
    assert words(next(iter(found.values())).culprits) == ("macro WIDTH",)


def test_globals_and_enumerators_affect_their_readers(compare: Compare) -> None:
    text = "enum { LIMIT = %d };\nint batch = %d;\nint f(void) { return batch; }\nint g(void) { return LIMIT; }\n"
    found = compare({"a.c": text % (8, 64)}, {"a.c": text % (9, 1)})
    assert changes(found) == {"f": Change.AFFECTED, "g": Change.AFFECTED}
    assert words(found["f"].reasons) == ("reads global batch, whose definition changed from 64 to 1 (a.c:2)",)


def test_a_new_enumerator_affects_only_those_whose_value_it_moves(compare: Compare) -> None:
    text = """
    enum flags {{ OPEN = 1, {} BLANK, CHECKED = 9 }};
    enum flags set(enum flags all) {{ return all | OPEN; }}
    int test(enum flags all) {{ return (all & CHECKED) != 0; }}
    int blank(enum flags all) {{ return all == BLANK; }}
    """
    found = compare({"a.c": text.format("")}, {"a.c": text.format("CLOSED,")})
    assert changes(found) == {"set": Change.UNCHANGED, "test": Change.UNCHANGED, "blank": Change.AFFECTED}
    assert words(found["blank"].reasons) == ("uses enumerator BLANK, whose definition changed from 2 to 3 (a.c:2)",)


def test_the_type_behind_an_enumeration_affects_those_that_have_values_of_it(compare: Compare) -> None:
    text = "enum mode : {} {{ SLOW }};\nint f(mode m) {{ return int(m); }}\nint g(mode *m) {{ return m != nullptr; }}\n"
    found = compare({"a.cc": text.format("char")}, {"a.cc": text.format("long")})
    assert changes(found) == {"f": Change.AFFECTED, "g": Change.UNCHANGED}
    assert words(found["f"].reasons) == ("uses enum mode, whose definition changed from char to long (a.cc:1)",)


def test_flags_affect_all_functions_of_their_unit(compare: Compare) -> None:
    text = {"a.c": "int f(int a) { return a; }\n"}
    found = compare(text, text, ["-O2", "-DX=1"], ["-O0", "-DX=1"])
    assert found["f"].change is Change.AFFECTED
    assert words(found["f"].reasons) == ("is compiled with other flags: -O2 became -O0 (a.c)",)
    assert words(found["f"].culprits) == ("compile flags of a.c",)


@pytest.mark.parametrize(
    ("head", "differ"),
    [
        (["-O2", "-O0"], "-O2 became -O0"),
        (["-O2", "-march=x86-64", "-march=native"], "now with -march=native"),
        (["-O2", "-fno-inline", "-funroll-loops", "-finline"], "now with -finline -funroll-loops"),
        (["-Os", "-DN=2", "-DN=3", "-O2"], "now with -DN=3"),
        ([], "-O2 became none"),
    ],
)
def test_of_flags_that_override_each_other_the_last_is_told(compare: Compare, head: list[str], differ: str) -> None:
    text = {"a.c": "int f(int a) { return a; }\n"}
    assert words(compare(text, text, ["-O2"], head)["f"].reasons) == (f"is compiled with other flags: {differ} (a.c)",)


@pytest.mark.parametrize("head", [["-O0", "-O2"], ["-fno-inline", "-finline", "-O2", "-fno-inline"]])
def test_flags_that_later_ones_override_affect_nothing(compare: Compare, head: list[str]) -> None:
    text = {"a.c": "int f(int a) { return a; }\n"}
    base = ["-O2", "-fno-inline"] if "-fno-inline" in head else ["-O2"]
    assert changes(compare(text, text, base, head)) == {"f": Change.UNCHANGED}


def test_warning_flags_affect_nothing(compare: Compare) -> None:
    text = {"a.c": "int f(int a) { return a; }\n"}
    assert changes(compare(text, text, ["-Wall", "-g"], ["-Wextra"])) == {"f": Change.UNCHANGED}


def test_an_inline_function_of_a_header_makes_its_users_callers(compare: Compare) -> None:
    header, source = "static inline int inc(int a) { return a + %d; }\n", '#include "h.h"\nint f(void) { return inc(1); }\n'
    found = compare({"h.h": header % 1, "a.c": source}, {"h.h": header % 2, "a.c": source})
    assert changes(found) == {"inc": Change.CHANGED, "f": Change.CALLER}


def test_a_function_that_cannot_be_probed_makes_its_users_affected(compare: Compare) -> None:
    header = "constexpr int inner(int a) { return a * %d; }\nconstexpr int outer(int a) { return inner(a); }\n"
    source = '#include "h.h"\nint f(int n) { return outer(n); }\nint g(int n) { return f(n); }\n'
    found = compare({"h.h": header % 1, "a.cc": source}, {"h.h": header % 2, "a.cc": source})
    assert changes(found) == {"inner": Change.CHANGED, "outer": Change.AFFECTED, "f": Change.AFFECTED, "g": Change.CALLER}
    assert words(found["outer"].reasons) == ("uses function inner, which changed (h.h:1)",)
    assert words(found["f"].culprits) == ("function outer",)
    assert words(found["f"].reasons) == ("uses function outer, which depends on function inner (h.h:2)",)


def test_a_function_whose_body_a_macro_holds_makes_its_users_affected(compare: Compare) -> None:
    text = "#define BODY { return x + %d; }\nstatic int inc(int x) BODY\nint f(int x) { return inc(x); }\n"
    found = compare({"a.c": text % 1}, {"a.c": text % 2})
    assert changes(found) == {"inc": Change.AFFECTED, "f": Change.AFFECTED}
    assert words(found["f"].culprits) == ("function inc",)


def test_a_macro_made_function_that_carries_a_probe_makes_its_users_callers(compare: Compare) -> None:
    text = "#define MAKE(n) static int n(int x) { return x + %d; }\nMAKE(inc)\nint f(int x) { return inc(x); }\n"
    assert changes(compare({"a.c": text % 1}, {"a.c": text % 2})) == {"inc": Change.AFFECTED, "f": Change.CALLER}


def test_a_changed_template_and_a_changed_method_of_a_template_make_callers(compare: Compare) -> None:
    header = (
        "template <class T> struct Vec { T *d; int n; void push(T x) { d[n++] = x%s; } };\n"
        "template <class T> T twice(T x) { return x%s; }\n"
    )
    source = '#include "v.h"\nvoid f(Vec<int> &v) { v.push(1); }\nint g() { return twice(2); }\n'
    found = compare({"v.h": header % ("", " + x"), "a.cc": source}, {"v.h": header % (" + 1", " * 2"), "a.cc": source})
    assert changes(found) == {"Vec::push": Change.CHANGED, "twice": Change.CHANGED, "f": Change.CALLER, "g": Change.CALLER}


def test_a_changed_lambda_is_changed_and_its_function_a_caller(compare: Compare) -> None:
    text = "int f(int n) { auto g = [n](int x) { return x + %s; }; return g(1); }\n"
    found = compare({"a.cc": text % "n"}, {"a.cc": text % "n * n"})
    assert changes(found) == {"f": Change.CALLER, "f::<lambda 1>": Change.CHANGED}


def test_an_old_style_definition_made_new_is_a_declaration_change_only(compare: Compare) -> None:
    found = compare({"a.c": "int f(a) int a; { return a; }\n"}, {"a.c": "int f(a) register int a; { return a; }\n"}, ["-std=gnu89"])
    assert words(found["f"].reasons) == ("declaration changed",)


def test_a_guilty_header_beside_an_innocent_edit_is_named_too(compare: Compare) -> None:
    header, source = "#define ROUNDS %d\n", '#include "h.h"\nint f(int n) { return n * ROUNDS%s; }\n'
    found = compare({"h.h": header % 1, "a.c": source % ""}, {"h.h": header % 99, "a.c": source % " + 0"})
    assert found["f"].change is Change.CHANGED
    assert words(found["f"].reasons) == ("body changed", "expands macro ROUNDS, whose definition changed from 1 to 99 (h.h:1)")
    assert words(found["f"].culprits) == ("macro ROUNDS",)


def test_a_second_main_in_head_leaves_the_first_one_matched(tmp_path: Path) -> None:
    base = program(tmp_path / "base", {"a.c": "int main(void) { return 0; }\n"})
    head = program(tmp_path / "head", {"a.c": "int main(void) { return 0; }\n", "b.c": "int main(void) { return 3; }\n"})
    found = {part.head.file: part.change for part in match(base, head) if part.head is not None}
    assert found == {"a.c": Change.UNCHANGED, "b.c": Change.ADDED}
