"""The index of C and C++ programs: which functions there are, and what each depends on."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from c_programs import callees, command, function, program, uses
from perfdiff.languages.c import cursors, front, lexer
from perfdiff.languages.c.index import index
from perfdiff.languages.protocol import CompileCommand, MacroBody, Program
from perfdiff.records.schema import Source


def cut(tree: Path, name: str, text: str) -> str:
    """Return what the index of a one-file program says is the body of a function, from the file's bytes."""
    one = function(program(tree, {"a.cc": text}), name)
    return (tree / one.file).read_bytes()[one.body : one.end].decode()


def test_extent_body_and_line_of_a_function_are_those_of_its_text(tmp_path: Path) -> None:
    text = "/* ä */\nstatic int\nadd(int a,\n    int b)\n{ return a + b; }\nint use(void) { return add(1, 2); }\n"
    one = function(program(tmp_path, {"a.c": text}), "add")
    source = text.encode()
    assert source[one.start : one.end].decode() == one.text
    assert one.text.startswith("static int\nadd")
    assert source[one.start : one.body].endswith(b"\n{")
    assert one.line == 2
    assert one.signature == "int (int, int)"


def test_lines_with_comments_alone_are_no_code(tmp_path: Path) -> None:
    text = (
        "int f(int x) // what it is\n{\n    // a line\n    x += 1; /* begins\n    goes on */\n\n    /* in\n       front */ x += 2;\n"
        '    const char *s = "// a text"; // \'\n    // two \\\n lines\n    return x + *s;\n}\n'
    )
    one = function(program(tmp_path, {"a.c": "/* ahead */\n" + text}), "f")
    source = Source(one.file, one.first_line, one.text, one.no_code)
    assert sorted({*range(2, 15)} - source.code.keys()) == [4, 6, 8, 11, 12]
    assert source.code[9] == "front */ x += 2;"


def test_static_functions_of_the_same_name_in_different_files_are_different_functions(tmp_path: Path) -> None:
    indexed = program(
        tmp_path,
        {
            "a/util.c": "static int step(int x) { return x + 1; }\nint a(void) { return step(1); }\n",
            "b/util.c": "static int step(int x) { return x + 2; }\nint b(void) { return step(1); }\n",
        },
    )
    first, second = function(indexed, "step", "a/util.c"), function(indexed, "step", "b/util.c")
    assert first.key != second.key
    assert function(indexed, "a").calls == {first.key}
    assert function(indexed, "b").calls == {second.key}


def test_two_programs_in_one_tree_keep_both_mains(tmp_path: Path) -> None:
    indexed = program(tmp_path, {"a.c": "int main(void) { return 0; }\n", "b.c": "int main(void) { return 1; }\n"})
    assert {one.file for one in indexed.functions.values() if one.name == "main"} == {"a.c", "b.c"}


def test_keys_do_not_depend_on_where_the_tree_lies(tmp_path: Path) -> None:
    sources = {
        "a.cc": '#include "t.h"\nnamespace { int hidden() { return 1; } }\nstruct { int q; } state;\n'
        "int use() { auto f = [](int x) { return x + state.q; }; return f(hidden()) + big(2); }\n",
        "t.h": "template <class T> T big(T a) { return a; }\n",
    }
    first, second = program(tmp_path / "one", sources), program(tmp_path / "two", sources)
    assert first == second


def test_methods_constructors_and_destructors_have_qualified_names(tmp_path: Path) -> None:
    text = """
    namespace db {
    class Table {
     public:
      Table();
      explicit Table(int n) : size_(n) {}
      ~Table() { size_ = 0; }
      int size() const { return size_; }
      void grow(int by);
      operator bool() const { return size_ > 0; }
      Table &operator+=(int by) { grow(by); return *this; }
      Table(const Table &) = delete;
     private:
      int size_ = 0;
    };
    void Table::grow(int by) { size_ += by; }
    }  // namespace db
    """
    names = sorted(one.name for one in program(tmp_path, {"a.cc": text}).functions.values())
    assert names == [
        "db::Table::Table",
        "db::Table::grow",
        "db::Table::operator bool",
        "db::Table::operator+=",
        "db::Table::size",
        "db::Table::~Table",
    ]


def test_defaulted_functions_have_no_body_even_where_they_are_used(tmp_path: Path) -> None:
    text = (
        "struct A { int n = 0; A() = default; A(const A &) = default; A &operator=(const A &) = default; ~A(); };\nA::~A() = default;\n"
        "int use() { A a, b(a); b = a; return b.n; }\n"
    )
    assert [one.name for one in program(tmp_path, {"a.cc": text}).functions.values()] == ["use"]


def test_overloads_are_different_functions(tmp_path: Path) -> None:
    indexed = program(tmp_path, {"a.cc": "int f(int a) { return a; }\nint f(long a) { return (int)a; }\nint g() { return f(1L); }\n"})
    by_signature = {one.signature: one.key for one in indexed.functions.values() if one.name == "f"}
    assert set(by_signature) == {"int (int)", "int (long)"}
    assert function(indexed, "g").calls == {by_signature["int (long)"]}


def test_templates_are_indexed_once_and_called_by_their_users(tmp_path: Path) -> None:
    header = """
    template <class T> struct Vec {
      T *data; int n;
      void push(T x) { data[n++] = x; }
      T last() const;
    };
    template <class T> T Vec<T>::last() const { return data[n - 1]; }
    template <class T> T twice(T x) { return x + x; }
    """
    indexed = program(
        tmp_path,
        {
            "vec.h": header,
            "a.cc": '#include "vec.h"\nint a() { Vec<int> v{}; v.push(twice(1)); return v.last(); }\n',
            "b.cc": '#include "vec.h"\nlong b() { Vec<long> v{}; v.push(twice(1L)); return v.last(); }\n',
        },
    )
    assert callees(indexed, "a") == {"Vec::push", "Vec::last", "twice"}
    assert callees(indexed, "a") == callees(indexed, "b")
    assert len(indexed.functions) == 5
    assert "struct Vec" in uses(indexed, "a")
    assert function(indexed, "Vec::push").writes == {"struct Vec.data", "struct Vec.n"}


def test_a_lambda_is_a_function_of_its_own_and_no_part_of_the_one_around_it(tmp_path: Path) -> None:
    text = "int outer(int n) {\n  auto step = [n](int x) { return x + %s; };\n  return step(n);\n}\n"
    first = program(tmp_path / "one", {"a.cc": text % "n"})
    second = program(tmp_path / "two", {"a.cc": text % "n * n"})
    assert callees(first, "outer") == {"outer::<lambda 1>"}
    assert function(first, "outer").tokens == function(second, "outer").tokens
    assert function(first, "outer::<lambda 1>").tokens != function(second, "outer::<lambda 1>").tokens
    inner = function(first, "outer::<lambda 1>")
    assert inner.key == function(first, "outer").key + "/lambda#1"
    assert (tmp_path / "one/a.cc").read_bytes()[inner.body : inner.end] == b" return x + n; }"


def test_lambdas_of_initialisers_and_methods_of_local_classes_are_found(tmp_path: Path) -> None:
    text = """
    static const auto order = [](int a, int b) { return a < b; };
    int use(int n) {
      struct Local { int v; int twice() { return v * 2; } };
      Local one{n};
      return one.twice() + order(1, n);
    }
    """
    indexed = program(tmp_path, {"a.cc": text})
    assert {one.name for one in indexed.functions.values()} == {"use", "use::Local::twice", "order::<lambda 1>"}
    assert "use::Local::twice" in callees(indexed, "use")


def test_old_style_definitions_are_found(tmp_path: Path) -> None:
    text = "int\nadd(a, b)\n  int a;\n  int b;\n{\n  return a + b;\n}\n"
    one = function(program(tmp_path, {"a.c": text}, ["-std=gnu89"]), "add")
    assert one.text == text.rstrip("\n")
    assert text[one.body :].startswith("\n  return")


def test_functions_of_headers_appear_once_with_all_their_units(tmp_path: Path) -> None:
    indexed = program(
        tmp_path,
        {
            "h.h": "static inline int inc(int a) { return a + 1; }\n",
            "a.c": '#include "h.h"\nint a(void) { return inc(1); }\n',
            "b.c": '#include "h.h"\nint b(void) { return inc(2); }\n',
        },
    )
    one = function(indexed, "inc")
    assert one.file == "h.h"
    assert {key for key in one.uses if key.startswith("flags:")} == {"flags:a.c", "flags:b.c"}
    assert callees(indexed, "a") == callees(indexed, "b") == {"inc"}


def test_functions_that_one_macro_makes_are_told_apart(tmp_path: Path) -> None:
    make = "#define MAKE(p) static int p##_one(int x) { return x + 1; } static int p##_two(int x) { return p##_one(x) * 2; }\n"
    indexed = program(tmp_path, {"a.c": make + "MAKE(left) MAKE(right)\nint use(void) { return left_two(1) + right_one(2); }\n"})
    made = [function(indexed, name) for name in ("left_one", "left_two", "right_one", "right_two")]
    assert {one.obstacle for one in made} == {None}
    one, two = (len(text) + 1 for text in (make.partition("{")[0], make.rpartition("{")[0]))
    assert [each.made for each in made] == [MacroBody("a.c", one), MacroBody("a.c", two)] * 2
    assert made[1].calls == {made[0].key}
    assert function(indexed, "use").calls == {made[1].key, made[2].key}


def test_a_file_included_under_renaming_macros_has_one_definition_a_place(tmp_path: Path) -> None:
    indexed = program(
        tmp_path,
        {
            "impl.c": "static int PREFIX(scan)(const char *s) { return *s + WIDTH; }\n"
            "int PREFIX(run)(const char *s) { return PREFIX(scan)(s); }\n",
            "tok.c": '#define WIDTH 1\n#define PREFIX(x) narrow_##x\n#include "impl.c"\n#undef PREFIX\n#undef WIDTH\n'
            '#define WIDTH 2\n#define PREFIX(x) wide_##x\n#include "impl.c"\n#undef PREFIX\n'
            'int use(void) { return narrow_run("") + wide_run(""); }\n',
        },
        compiled=["tok.c"],
    )
    scan, run = function(indexed, "wide_scan"), function(indexed, "narrow_run")
    assert set(scan.names) == {"narrow_scan", "wide_scan"}
    assert scan.file == "impl.c"
    assert scan.obstacle is None
    assert run.calls == {scan.key}
    assert function(indexed, "use").calls == {run.key}
    assert "macro WIDTH" in uses(indexed, "wide_scan")


def test_variants_of_a_function_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    text = "#ifdef FAST\nint f(void) { return 1; }\n#else\nint f(void) { return 2; }\n#endif\n"
    (tmp_path / "a.c").write_text(text)
    indexed = index(tmp_path, [command(tmp_path / "a.c"), command(tmp_path / "a.c", ["-DFAST"])], depth=3, workers=1)
    assert sorted(one.line for one in indexed.functions.values()) == [2, 4]


def test_comments_and_white_space_do_not_change_tokens_and_string_literals_do(tmp_path: Path) -> None:
    plain = program(tmp_path / "1", {"a.c": 'const char *f(int a) { return a ? "x  y" : "//z"; }\n'})
    spaced = program(tmp_path / "2", {"a.c": '/* f */ const char *f(int a)\n{\n  // says\n  return a ? "x  y"\n : "//z";\n}\n'})
    other = program(tmp_path / "3", {"a.c": 'const char *f(int a) { return a ? "x y" : "//z"; }\n'})
    assert function(plain, "f").tokens == function(spaced, "f").tokens
    assert function(plain, "f").tokens != function(other, "f").tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a+ +b", ["a", "+", "+", "b"]),
        (b"a++b", ["a", "++", "b"]),
        (b"1'000'000u+'a'", ["1'000'000u", "+", "'a'"]),
        (b'R"x(a)" // b)x" c', ['R"x(a)" // b)x"', "c"]),
        (b"x /* // */ y // z\\\nmore\nw", ["x", "y", "w"]),
        (b'"a\\"b" L"c"', ['"a\\"b"', 'L"c"']),
    ],
)
def test_tokens(text: bytes, expected: list[str]) -> None:
    assert lexer.tokens(text) == expected


def test_uses_reach_types_behind_typedefs_and_inside_types(tmp_path: Path) -> None:
    text = """
    struct point { int x, y; };
    typedef struct { struct point corner[2]; } box_t;
    typedef long word_t;
    struct other { int z; };
    int f(box_t *b, word_t w, struct other *o, int (*keep)(struct other *)) { return b->corner[0].x + (int)w + keep(o); }
    int g(struct point *p) { return sizeof(*p); }
    int h(struct point *p) { return (p + 1) != 0; }
    """
    indexed = program(tmp_path, {"a.c": text})
    assert uses(indexed, "f") == {"struct point", "struct box_t", "type box_t", "type word_t"}
    assert uses(indexed, "h") == {"struct point"}


def test_a_pointer_that_is_only_passed_on_does_not_make_its_type_used(tmp_path: Path) -> None:
    text = "struct list { int n; };\nint size(struct list *l) { return l->n; }\nint f(struct list *l) { return size(l); }\n"
    indexed = program(tmp_path, {"a.c": text})
    assert uses(indexed, "size") == {"struct list"}
    assert uses(indexed, "f") == set()


def test_uses_reach_nested_macros_globals_and_enumerations(tmp_path: Path) -> None:
    text = """
    #define MASK 15
    #define HASH(x) ((x) & MASK)
    #define UNUSED 1
    enum mode { SLOW, FAST };
    static const int table[] = { MASK, 2, 3 };
    extern int shared;
    int shared = 3;
    int f(int x) { return table[HASH(x)] + shared + FAST; }
    int g(void) {
    #ifdef UNUSED
      return 1;
    #endif
    }
    """
    indexed = program(tmp_path, {"a.c": text})
    assert uses(indexed, "f") == {"macro MASK", "macro HASH", "enumerator FAST", "global table", "global shared"}
    assert uses(indexed, "g") == {"macro UNUSED"}


def test_system_headers_are_not_part_of_the_program(tmp_path: Path) -> None:
    text = '#include <stdio.h>\n#include <string.h>\nint f(const char *s) { printf("%s", s); return (int)strlen(s) + EOF; }\n'
    indexed = program(tmp_path, {"a.c": text})
    assert [one.name for one in indexed.functions.values()] == ["f"]
    assert function(indexed, "f").calls == frozenset()
    assert uses(indexed, "f") == set()
    assert indexed.problems == ()


def test_reads_and_writes_name_fields_and_globals(tmp_path: Path) -> None:
    text = """
    struct item { struct item *next; int value; };
    struct list { struct item *head, *tail; int size; struct { int hits; } stats; char *buffer; };
    int total; int limit; int count; int scratch;
    void fill(int *where);
    int f(struct list *l, struct item *i) {
      l->tail->next = i;
      l->tail = i;
      l->size += 1;
      l->stats.hits++;
      l->buffer[limit] = 0;
      total = limit;
      fill(&scratch);
      return count;
    }
    void copy(struct item *to, const struct item *from) { *to = *from; }
    """
    one = function(program(tmp_path, {"a.c": text}), "f")
    assert one.writes == {
        "struct item.next",
        "struct list.tail",
        "struct list.size",
        "struct list.stats",
        "struct list.hits",
        "struct list.buffer",
        "total",
        "scratch",
    }
    assert one.reads >= {"struct list.tail", "struct list.size", "limit", "count"}
    assert "total" not in one.reads
    assert "struct list.head" not in one.reads
    copy = function(program(tmp_path, {"a.c": text}), "copy")
    assert copy.writes == {"struct item"}


def test_constants_and_values_without_parts_are_not_written(tmp_path: Path) -> None:
    text = """
    enum mode { SLOW, FAST };
    struct node { enum mode mode; };
    static const struct node nothing = {SLOW};
    static const int sizes[2][2] = {{1, 2}, {3, 4}};
    static const char *name = "a";
    static struct node first;
    const struct node *f(struct node *n, enum mode m, const int **s, const char ***where) {
      n->mode = m;
      *s = &sizes[1][0];
      *where = &name;
      return m == FAST ? &nothing : &first;
    }
    """
    one = function(program(tmp_path, {"a.c": text}), "f")
    assert one.writes == {"struct node.mode", "name", "first"}
    assert one.reads >= {"nothing", "sizes"}


def test_methods_that_change_an_object_write_to_the_member_that_holds_it(tmp_path: Path) -> None:
    text = """
    struct Bag { int n = 0; void add(int x) { n += x; } int size() const { return n; } int &operator[](int) { return n; } };
    class Owner {
      Bag bag_, other_, third_;
      int cached_;
     public:
      Owner() : cached_(0) {}
      int run() { bag_.add(1); third_[2] = 1; return other_.size(); }
    };
    """
    indexed = program(tmp_path, {"a.cc": text})
    run = function(indexed, "Owner::run")
    assert run.writes == {"class Owner.bag_", "class Owner.third_"}
    assert "class Owner.other_" in run.reads
    assert function(indexed, "Owner::Owner").writes == {"class Owner.cached_"}


def test_calls_follow_tables_of_functions_and_virtual_methods(tmp_path: Path) -> None:
    text = """
    static int slow(int x) { return x; }
    static int fast(int x) { return x; }
    static int (*const table[])(int) = { slow, fast };
    struct Base { virtual int cost(int x) { return x; } };
    struct Derived : Base { int cost(int x) override { return x * x; } };
    int f(int x) { return table[x](x); }
    int g(Base &b) { return b.cost(1); }
    """
    indexed = program(tmp_path, {"a.cc": text})
    assert callees(indexed, "f") == {"slow", "fast"}
    assert callees(indexed, "g") == {"Base::cost", "Derived::cost"}


@pytest.mark.parametrize(
    ("text", "name", "obstacle"),
    [
        ("constexpr int f(int x) { return x; }", "f", "constexpr"),
        ("#define CONST constexpr\nCONST int f(int x) { return x; }", "f", "constexpr"),
        ("#define BODY { return x; }\nint f(int x) BODY", "f", "macro"),
        ("#define BEGIN {\nint f(int x) BEGIN return x; }", "f", "macro"),
        ("__attribute__((naked)) void f(void) { }", "f", "naked"),
        ("__attribute__((no_instrument_function)) void f(void) { }", "f", "not instrumented"),
        (
            'extern "C" { int real(int); static int (*pick(void))(int) { return real; } }\nint f(int) __attribute__((ifunc("pick")));',
            "pick",
            "ifunc",
        ),
        (
            "static inline __attribute__((always_inline)) int f(int x) { return __builtin_ia32_pause(), x; }",
            "f",
            "always inlined",
        ),
    ],
)
def test_what_cannot_carry_a_probe_says_why(tmp_path: Path, text: str, name: str, obstacle: str) -> None:
    found = function(program(tmp_path, {"a.cc": text + "\n"}), name).obstacle
    assert found is not None
    assert obstacle in found


TASK = """
#include <coroutine>
struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};
"""


def test_a_coroutine_is_an_obstacle(tmp_path: Path) -> None:
    indexed = program(tmp_path, {"a.cc": TASK + "task f() { co_return; }\n"}, ["-std=c++20"])
    assert "coroutine" in (function(indexed, "f").obstacle or "")
    assert function(indexed, "task::promise_type::return_void").obstacle is None


def test_what_macros_of_a_body_say_makes_a_coroutine_of_its_function_alone(tmp_path: Path) -> None:
    text = (
        "#define WAIT co_await\n#define SLEEP() WAIT std::suspend_never{}\n"
        "task f() { SLEEP(); }\n"
        "int g(int n) { auto inner = []() -> task { SLEEP(); }; inner(); return n; }\n"
    )
    indexed = program(tmp_path, {"a.cc": TASK + text}, ["-std=c++20"])
    assert {one.name for one in indexed.functions.values() if one.obstacle is not None} == {"f", "g::<lambda 1>"}


def test_functions_that_give_constants_their_values_are_obstacles_and_those_that_constants_hold_are_not(tmp_path: Path) -> None:
    text = """
    #define FIXED constinit
    enum class mode { FAST, SLOW };
    const int size = [](int n) { return n + 1; }(3);
    int room[size];
    const mode chosen = []() { return []() { return mode::SLOW; }(); }();
    FIXED int start = [] { return 4; }();
    auto compare = [](const char *a, const char *b) { if constexpr (sizeof(int) == 4) return a < b; return b < a; };
    const auto twice = [](int n) { return 2 * n; };
    const double half = [] { return 0.5; }();
    """
    indexed = program(tmp_path, {"a.cc": text}, ["-std=c++20"])
    obstructed = {one.name for one in indexed.functions.values() if one.obstacle is not None}
    assert obstructed == {"size::<lambda 1>", "chosen::<lambda 1>", "chosen::<lambda 1>::<lambda 1>", "start::<lambda 1>"}
    assert "constant's value" in (function(indexed, "size::<lambda 1>").obstacle or "")


def test_what_has_to_stand_first_in_a_body_is_an_obstacle_of_that_function_alone(tmp_path: Path) -> None:
    text = """
    int local(int n) { /* a * b */ __label__ out; if (n) goto out; n++; out: return n; }
    #define LOCAL(name) int name(int n) { \\
        __label__ out; if (n) goto out; n++; out: return n; }
    LOCAL(made)
    double exact(double x) {
    #ifdef __clang__
    #pragma STDC FP_CONTRACT OFF
    #endif
        return x * x + 1; }
    double fast(double x) {
    #pragma clang fp contract(fast)
        return x * x + 1; }
    int inner(int n) { // __label__ out;
        if (n) { __label__ in; goto in; in: n++; } return n; }
    int unrolled(int n) {
    #pragma GCC unroll 4
        for (int i = 0; i < 4; i++) n += n; return n; }
    """
    indexed = program(tmp_path, {"a.c": text})
    obstructed = {one.name: one.obstacle for one in indexed.functions.values() if one.obstacle is not None}
    assert obstructed == dict.fromkeys(("local", "made", "exact", "fast"), "it begins with what has to stand first in a body")


def test_an_ordinary_function_has_no_obstacle(tmp_path: Path) -> None:
    text = (
        "struct S { int a; S() try : a(1) { a = 2; } catch (...) { } };\n"
        "#define API(t) t\nAPI(int) f(int x) noexcept { if constexpr (true) return x; }\n"
    )
    indexed = program(tmp_path, {"a.cc": text})
    assert {one.obstacle for one in indexed.functions.values()} == {None}
    assert cut(tmp_path, "S::S", text).startswith(" a = 2; }")


def test_files_outside_the_tree_are_not_indexed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "gen.h").write_text("static inline int gen(void) { return 1; }\n")
    (outside / "gen.c").write_text("int made(void) { return 1; }\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.c").write_text('#include "gen.h"\nint a(void) { return gen(); }\n')
    indexed = index(tree, [command(tree / "a.c", [f"-I{outside}"]), command(outside / "gen.c")], depth=3, workers=1)
    assert [one.name for one in indexed.functions.values()] == ["a"]


def test_a_broken_file_is_a_problem_and_the_rest_is_indexed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    sources = {
        "a.c": '#include "missing.h"\nint a(void) { return 1; }\n',
        "b.c": "int b(void) { return undeclared; }\n",
        "c.c": "int c(void) { return 0; }\n",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    commands = [command(tmp_path / name) for name in (*sources, "gone/away.c")]
    indexed = index(tmp_path, commands, depth=3, workers=1)
    problems = {one.file: one.reason for one in indexed.problems}
    assert set(problems) == {"a.c", "b.c", "gone/away.c"}
    assert "'missing.h' file not found" in problems["a.c"]
    assert "undeclared" in problems["b.c"]
    assert {one.name for one in indexed.functions.values()} >= {"a", "c"}


def test_flags_unknown_to_libclang_do_no_harm(tmp_path: Path) -> None:
    flags = ["-O2", "-march=not-a-machine", "-fno-such-pass", "-flto=auto", "-Wno-odd", "-MMD", "-MF", "x.d", "-DN=3"]
    indexed = program(tmp_path, {"a.c": "int f(void) { return N; }\n"}, flags)
    assert indexed.problems == ()
    assert function(indexed, "f").obstacle is None


def test_values_of_options_are_no_options(tmp_path: Path) -> None:
    flags = ["-MJ", "a.json", "-e", "-Dmain=f", "-mllvm", "-inline-threshold=5", "-DN=3", "-aux-info", "-DN=4"]
    indexed = program(tmp_path, {"a.c": "int f(void) { return N; }\nint main(void) { return f(); }\n"}, flags)
    assert indexed.problems == ()
    assert {one.name for one in indexed.functions.values()} == {"f", "main"}
    assert "-DN=3" in front.code_flags(command(tmp_path / "a.c", flags), tmp_path)


def test_only_flags_that_matter_to_code_are_fingerprinted(tmp_path: Path) -> None:
    one = front.code_flags(
        command(tmp_path / "a.c", ["-O2", "-Wextra", "-g3", f'-DDIR="{tmp_path}"', "-fPIC", "-DPIC", "-std=c99"]), tmp_path
    )
    assert one == ('-DDIR="."', "-O2", "-std=c99")


def test_code_under_macros_named_like_a_time_is_indexed(tmp_path: Path) -> None:
    text = """
    #ifdef TIMERS
    int timed(int n) { return n + 1; }
    #endif
    #ifdef DATE
    const char *dated(void) { return DATE; }
    #endif
    int wait_for(int n) { return n > TIMEOUT_MS; }
    """
    flags = ["-DTIMERS=1", "-DTIMEOUT_MS=5", '-DDATE="2026-07-01"']
    indexed = program(tmp_path, {"a.c": text}, flags)
    assert {one.name for one in indexed.functions.values()} == {"timed", "dated", "wait_for"}
    assert indexed.problems == ()


def test_the_moment_of_a_build_is_no_flag_of_its_code_and_other_times_are(tmp_path: Path) -> None:
    moments = ['-D__DATE__="Jul 1 2026"', "-D__TIME__=", '-DTIME=\\"12:00:00\\"', "-DDATE=20260701", "-DTIMESTAMP=1782864000"]
    others = ["-DBUILD_DATE=20260701", "-DDATE_FMT=2", "-DTIME", "-DTIMEOUT_MS=5", "-DTIMERS=1"]
    assert front.code_flags(command(tmp_path / "a.c", [*moments, *others]), tmp_path) == tuple(others)


@pytest.mark.parametrize(
    "flags",
    [
        ["-Wp,-DFAST,-DLEVEL=1", "--std=gnu99", "-include", "h.h"],
        ["--define-macro=FAST", "--define-macro", "LEVEL=1", "--std", "gnu99", "--include=h.h"],
        ["-Xpreprocessor", "-DFAST", "-DLEVEL=2", "-Xpreprocessor", "-DLEVEL=1", "-std=gnu99", "-Xpreprocessor", "-include", "-Wp,h.h"],
    ],
)
def test_options_are_understood_however_they_are_spelled(tmp_path: Path, flags: list[str]) -> None:
    text = "#ifdef FAST\nint fast(int n) { return n + LEVEL + sizeof(struct s); }\n#endif\n"
    indexed = program(tmp_path, {"sub/h.h": "struct s { int a; };\n", "a.c": text}, ["--include-directory=sub", "--optimize=2", *flags])
    assert indexed.problems == ()
    assert function(indexed, "fast").obstacle is None
    assert front.code_flags(command(tmp_path / "a.c", ["--optimize=2", *flags]), tmp_path) == ("-DFAST", "-DLEVEL=1", "-O2", "-std=gnu99")


def test_the_standard_library_that_a_build_chooses_is_that_of_the_parse(tmp_path: Path) -> None:
    (tmp_path / "libc++").mkdir()
    (tmp_path / "libc++" / "text.h").write_text("struct text { int length; };\n")
    compiler = tmp_path / "clang++"
    compiler.write_text(
        '#!/bin/sh\nfor word; do [ "$word" = -stdlib=libc++ ] && folder=libc++; done\n'
        f'echo "#include <...> search starts here:\n {tmp_path}/$folder\nEnd of search list." >&2\n'
    )
    compiler.chmod(0o755)
    (tmp_path / "a.cc").write_text("#include <text.h>\nint f(text t) { return t.length; }\n")
    asked = CompileCommand(tmp_path / "a.cc", tmp_path, str(compiler), ("-stdlib=libc++", "-c", "a.cc"), True)
    assert front.unit(asked).arguments[-2:] == ("-isystem", f"{tmp_path}/libc++")
    assert index(tmp_path, [asked], depth=3, workers=1).problems == ()
    assert front.code_flags(asked, tmp_path) == ("-stdlib=libc++",)


def test_enumerators_are_named_as_code_names_them(tmp_path: Path) -> None:
    text = """
    namespace n {
    enum class speed : char { SLOW = 1 };
    enum { LIMIT = 7 };
    struct s { enum { WIDTH = 3 }; };
    int f() { return int(speed::SLOW) + LIMIT + s::WIDTH; }
    }
    """
    declarations = program(tmp_path, {"a.cc": text}).declarations.values()
    values = {str(one.entity): one.summary for one in declarations if one.entity.word == "enumerator"}
    assert values == {"enumerator n::speed::SLOW": "1", "enumerator n::LIMIT": "7", "enumerator n::s::WIDTH": "3"}


def test_parallel_and_sequential_indexing_agree(tmp_path: Path) -> None:
    sources = {f"f{i}.c": f'#include "h.h"\nint f{i}(struct s *p) {{ return inc(p->a) + {i}; }}\n' for i in range(6)}
    sources["h.h"] = "struct s { int a; };\nstatic inline int inc(int a) { return a + 1; }\n"
    alone = program(tmp_path, sources)
    commands = [command(tmp_path / name) for name in sources if name.endswith(".c")]
    assert index(tmp_path, commands, depth=3, workers=2) == alone


def test_a_unit_is_parsed_again_only_when_one_of_its_files_changed(tmp_path: Path) -> None:
    sources = {
        "types.h": "enum { LIMIT = 3 };\n",
        "h.h": '#include "types.h"\nstruct s { int a; };\nstatic inline int inc(struct s *p) { return p->a + LIMIT; }\n',
        "a.c": '#include "h.h"\nint a(struct s *p) { return inc(p); }\n',
        "b.c": "int b(int n) { while (n > 1) n /= 2; return n; }\n",
    }
    cache = tmp_path / "units"

    def indexed(tree: Path) -> Program:
        return index(tree, [command(tree / "a.c"), command(tree / "b.c")], depth=3, workers=1, cache=cache)

    plain = program(tmp_path / "base", sources)
    assert indexed(tmp_path / "base") == plain
    entries = set(unit_entries(cache))
    assert len(entries) == 2
    assert indexed(tmp_path / "base") == plain
    changed = program(tmp_path / "head", sources | {"types.h": "enum { LIMIT = 4 };\n"})
    assert indexed(tmp_path / "head") == changed
    assert len(set(unit_entries(cache)) - entries) == 1


def test_what_units_say_of_their_headers_is_kept_once(tmp_path: Path) -> None:
    header = "struct s { int width; };\nstatic inline int inc(struct s *p) { return p->width + 1; }\n"
    units = {f"u{number}.c": f'#include "h.h"\nint u{number}(struct s *p) {{ return inc(p); }}\n' for number in range(4)}
    tree, cache = tmp_path / "tree", tmp_path / "units"
    plain = program(tree, {"h.h": header, **units})
    commands = [command(tree / name) for name in units]
    index(tree, commands, depth=3, workers=1, cache=cache)
    (pack,) = set(cache.rglob("*.json")) - set(unit_entries(cache))
    assert pack.read_text().count('"name":"inc"') == 1
    assert index(tree, commands, depth=3, workers=1, cache=cache) == plain


@pytest.mark.parametrize("damage", [Path.unlink, lambda pack: pack.write_text('{"functions":[],"dependencies":[]}')])
def test_units_whose_pack_is_gone_or_damaged_are_parsed_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    tree, cache = tmp_path / "tree", tmp_path / "units"
    plain = program(tree, {"a.c": f"int a(int n) {{ return n; }} /* {tmp_path} */\n"})
    index(tree, [command(tree / "a.c")], depth=3, cache=cache)
    (pack,) = set(cache.rglob("*.json")) - set(unit_entries(cache))
    damage(pack)
    assert index(tree, [command(tree / "a.c")], depth=3, cache=cache) == plain


def test_a_header_that_gets_a_namesake_invalidates_its_units(tmp_path: Path) -> None:
    sources = {"sub/h.h": "#define N 1\n", "a.c": '#include "h.h"\nint a(void) { return N; }\n'}
    cache, commands = tmp_path / "units", [command(tmp_path / "tree/a.c", ["-Isub"])]
    program(tmp_path / "tree", sources, ["-Isub"])
    first = index(tmp_path / "tree", commands, depth=3, cache=cache)
    (tmp_path / "tree/h.h").write_text("#define N 2\n")
    second = index(tmp_path / "tree", commands, depth=3, cache=cache)
    assert [one.file for one in first.declarations.values() if str(one.entity) == "macro N"] == ["sub/h.h"]
    assert [one.file for one in second.declarations.values() if str(one.entity) == "macro N"] == ["h.h"]


def test_a_unit_that_is_read_in_part_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, cache = tmp_path / "tree", tmp_path / "units"
    plain = program(tree, {"a.c": "int a(int n) { return n + missing; }\n"})
    assert index(tree, [command(tree / "a.c")], depth=3, cache=cache) == plain
    assert plain.problems
    monkeypatch.setattr(front, "parse", None)
    assert index(tree, [command(tree / "a.c")], depth=3, cache=cache) == plain


def test_of_units_that_tell_a_function_differently_the_first_counts_whichever_is_kept(tmp_path: Path) -> None:
    tree, cache = tmp_path / "tree", tmp_path / "units"
    units = {f"u{number}.c": f'#define NUMBER {kind}\n#include "h.h"\n' for number, kind in enumerate(("int", "char"))}
    plain = program(tree, {"h.h": "static inline long wide(NUMBER x) { return x; }\n", **units})
    commands = [command(tree / name) for name in units]
    index(tree, commands[1:], depth=3, workers=1, cache=cache)
    both = index(tree, commands, depth=3, workers=1, cache=cache)
    assert function(both, "wide").signature == function(plain, "wide").signature == "long (int)"


@pytest.mark.parametrize("place", ["tree/a", "tree/lib", "elsewhere"])
def test_a_unit_whose_missing_header_is_there_now_is_parsed_again(tmp_path: Path, place: str) -> None:
    tree, cache, flags = tmp_path / "tree", tmp_path / "units", ["-Ilib", "-isystem", str(tmp_path / "elsewhere")]
    program(tree, {"a/a.c": '#include "sub/size.h"\nint a(void) { return SIZE; }\n'})
    commands = [replace(command(tree / "a/a.c", flags), directory=tree)]
    assert "'sub/size.h' file not found" in index(tree, commands, depth=3, cache=cache).problems[0].reason
    (tmp_path / place / "sub").mkdir(parents=True)
    (tmp_path / place / "sub/size.h").write_text("#define SIZE 3\n")
    assert index(tree, commands, depth=3, cache=cache).problems == ()


def test_files_that_read_each_other_and_are_outside_of_the_tree_are_told_apart(tmp_path: Path) -> None:
    # As with headers that stand in for the system's: outside, inside, outside again, the same file outside once more.
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "wide.h").write_text("#ifndef INNER\n#define OUTER 1\n#define INNER 1\n#include <own.h>\n#define LAST 1\n#endif\n")
    sources = {
        "own.h": "#define BEFORE 2\n#include <wide.h>\n#define AFTER 3\nstatic inline int own(int n) { return n + BEFORE; }\n",
        "a.c": "#include <wide.h>\n#define MINE 4\nint a(int n) { return own(n) + AFTER + MINE + LAST + OUTER; }\n",
    }
    indexed = program(tmp_path / "tree", sources, ["-isystem", str(outside)])
    assert uses(indexed, "a") == {"macro AFTER", "macro MINE"}
    assert uses(indexed, "own") == {"macro BEFORE"}
    places = {str(one.entity): (one.file, one.line) for one in indexed.declarations.values()}
    assert (places["macro BEFORE"], places["macro AFTER"], places["macro MINE"]) == (("own.h", 1), ("own.h", 3), ("a.c", 2))


def test_a_damaged_entry_and_an_unwritable_cache_are_survived(tmp_path: Path) -> None:
    sources = {"a.c": "int a(int n) { return n; }\n"}
    plain = program(tmp_path / "tree", sources)
    commands = [command(tmp_path / "tree/a.c")]
    index(tmp_path / "tree", commands, depth=3, cache=tmp_path / "units")
    for entry in (tmp_path / "units").rglob("*.json"):
        entry.write_text(entry.read_text()[:-40])
    assert index(tmp_path / "tree", commands, depth=3, cache=tmp_path / "units") == plain
    (tmp_path / "file").write_text("")
    assert index(tmp_path / "tree", commands, depth=3, cache=tmp_path / "file") == plain


def unit_entries(cache: Path) -> list[Path]:
    """Return the entries of units in a cache, each in a folder of its unit; packs lie in folders by two digits."""
    return [path for path in cache.rglob("*.json") if len(path.parent.name) > 2]


class SignalError(Exception):
    """What a signal raises."""


def test_signal_within_a_callback_of_libclang_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = cursors._VISITOR

    def signalled(visit: Callable[..., int]) -> object:
        return visitor(lambda *given: [signal.raise_signal(signal.SIGTERM), visit(*given)][1])

    def interrupt(*_: object) -> None:
        raise SignalError

    monkeypatch.setattr(cursors, "_VISITOR", signalled)
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with pytest.raises(SignalError):
            program(tmp_path, {"a.c": "int a(int n) { return n; }\n"})
    finally:
        signal.signal(signal.SIGTERM, before)


def test_atomic_operations_of_c_are_read_whole_and_calls_within_them_are_seen(tmp_path: Path) -> None:
    text = """
        #include <stdatomic.h>
        static _Atomic int count;
        static atomic_bool open = 1;
        static atomic_flag lock = ATOMIC_FLAG_INIT;
        static int amount(void) { return 3; }
        int work(void) {
            int expected = atomic_load(&count);
            atomic_init(&count, 0);
            while (atomic_flag_test_and_set(&lock)) ;
            atomic_store_explicit(&open, 0, memory_order_release);
            while (!atomic_compare_exchange_weak(&count, &expected, expected + 1)) ;
            atomic_compare_exchange_strong_explicit(&count, &expected, 2, memory_order_acq_rel, memory_order_relaxed);
            atomic_thread_fence(memory_order_seq_cst);
            atomic_flag_clear(&lock);
            return atomic_fetch_add(&count, amount()) + atomic_exchange(&count, 1)
                + atomic_fetch_xor_explicit(&count, 1, memory_order_relaxed);
        }
    """
    indexed = program(tmp_path, {"a.c": text})
    assert indexed.problems == ()
    assert callees(indexed, "work") == {"amount"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86's intrinsics")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", ["a.c", "a.cpp"])
def test_intrinsics_of_gcc_are_read_whole_and_calls_within_them_are_seen(name: str, level: str, tmp_path: Path) -> None:
    text = """
        #include <immintrin.h>
        static int first(const void *bytes) { return *(const unsigned char *)bytes; }
        int work(const void *bytes) {
            __m128i lanes = _mm_set1_epi32(first(bytes));
            _mm_prefetch((const char *)bytes, _MM_HINT_T0);
            return _mm_cvtsi128_si32(_mm_shuffle_epi32(_mm_slli_si128(lanes, 4), 0x1b));
        }
        #ifdef __OPTIMIZE__
        int optimised(void) { return 1; }
        #endif
    """
    indexed = program(tmp_path, {name: text}, [level])
    assert indexed.problems == ()
    assert callees(indexed, "work") == {"first"}
    assert ("optimised" in {function.name for function in indexed.functions.values()}) is (level == "-O2")


def test_a_text_whose_beginning_and_name_are_macros_is_one_function(tmp_path: Path) -> None:
    """Where `API` is nothing, the definition begins behind it."""
    header = "API int NAME(int n) { return n > 3 ? n : 3; }\nAPI int other(int n) { return n; }\n"
    unit = '#define API {api}\n#define NAME {name}\n#include "make.h"\nint use_{name}(void) {{ return NAME(1) + other(2); }}\n'
    units = {f"{name}.c": unit.format(api=api, name=name) for name, api in (("one", "static"), ("two", ""), ("three", "static inline"))}
    indexed = program(tmp_path, {"make.h": header, **units})
    inside = [one for one in indexed.functions.values() if one.file == "make.h"]
    assert [set(one.names) for one in inside] == [{"one", "two", "three"}, {"other"}]
    assert [one.text for one in inside] == header.splitlines()
    assert callees(indexed, "use_one") == callees(indexed, "use_two") == {one.name for one in inside}
