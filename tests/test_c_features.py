"""Which features are planned for a function, and that running programs read the right values."""

from __future__ import annotations

from pathlib import Path

import pytest

import runtimes
from c_programs import function
from c_programs import program as indexed
from perfdiff.languages.c.features import MAX_FEATURES
from perfdiff.languages.c.ranges import measured, ranges
from perfdiff.languages.identifiers import names_a_file, words
from perfdiff.languages.protocol import FeaturePlan, Load
from perfdiff.records.schema import Origin
from probed_trees import probed

STRUCTURES = """
struct name { char *text; int uses; };
struct list { struct list *next, *first, *last; long size; struct name *name; struct { short low, high; }; union { int i; float f; } number;
    unsigned flags : 3; volatile int beat; };
"""


def features(tree: Path, source: str, *, name: str = "f", file: str = "a.c") -> dict[str, FeaturePlan]:
    """Return the planned features of a function by name."""
    flags = ("-std=c++17",) if file.endswith(".cpp") else ()
    return {plan.name: plan for plan in function(indexed(tree, {file: source}, flags), name).features}


def test_numbers_are_read_by_their_kind(tmp_path: Path) -> None:
    source = "int f(int n, char c, unsigned char u, unsigned long l, float y, double x, long double w) { return n; }"
    plans = features(tmp_path, source)
    signed, unsigned, floating = [Load.SIGNED] * 2, [Load.UNSIGNED] * 2, [Load.FLOATING] * 3
    assert {name: plan.load for name, plan in plans.items()} == dict(zip("nculyxw", signed + unsigned + floating, strict=True))
    assert plans["n"].expression == "pd_signed(&pd_frame_, {cell}, (pd_signed_t)(n))"
    assert {plan.origin for plan in plans.values()} == {Origin.ARGUMENT}


def test_enumerations_and_booleans_are_categories_with_labels(tmp_path: Path) -> None:
    plans = features(tmp_path, "enum color { RED, GREEN = 5, ALIAS = 5 }; int f(enum color c, _Bool on) { return on ? (int)c : 0; }")
    assert plans["c"].category
    assert plans["c"].labels == {0: "RED", 5: "GREEN"}
    assert plans["on"].category
    assert plans["on"].labels == {0: "false", 1: "true"}


def test_strings_give_their_length_and_names_of_files_their_file(tmp_path: Path) -> None:
    plans = features(tmp_path, "int f(const char *text, char *file_name, const char *unprofiled, unsigned char *bytes) { return 0; }")
    assert {name: plan.load for name, plan in plans.items()} == {
        "strlen(text)": Load.TEXT,
        "strlen(file_name)": Load.TEXT,
        "file size(file_name)": Load.FILE,
        "path depth(file_name)": Load.DEPTH,
        "strlen(unprofiled)": Load.TEXT,
    }


def test_fields_behind_pointers_are_read_by_offset(tmp_path: Path) -> None:
    plans = features(tmp_path, STRUCTURES + "int f(struct list *l) { return 0; }")
    assert set(plans) == {"l->size", "l->low", "l->high", "strlen(l->name->text)", "l->name->uses"}
    assert plans["l->size"].expression == "pd_field(&pd_frame_, {cell}, (const void *)(l), PD_I64, 1, 24UL)"
    assert plans["l->name->uses"].expression == "pd_field(&pd_frame_, {cell}, (const void *)(l), PD_I32, 2, 32UL, 8UL)"
    assert plans["strlen(l->name->text)"].expression == "pd_field_text(&pd_frame_, {cell}, (const void *)(l), 2, 32UL, 0UL)"
    assert plans["l->size"].origin is Origin.FIELD


def test_pointers_are_followed_to_depth_three_and_to_pointers(tmp_path: Path) -> None:
    source = (
        "struct d { int deep; }; struct c { struct d *d; int c; }; struct b { struct c *c; int b; }; struct a { struct b *b; int a; };"
        "int f(struct a *a, struct d **p) { return 0; }"
    )
    plans = features(tmp_path, source)
    assert set(plans) == {"a->a", "a->b->b", "a->b->c->c", "(*p)->deep"}
    assert plans["(*p)->deep"].expression == "pd_field(&pd_frame_, {cell}, (const void *)(p), PD_I32, 2, 0UL, 0UL)"


def test_nearest_features_come_first_and_those_the_body_touches(tmp_path: Path) -> None:
    fields = "".join(f"int f{number}; " for number in range(40))
    source = f"struct wide {{ {fields} }}; static int global; int f(int n, struct wide *w) {{ return w->f38 + global + n; }}"
    plans = list(features(tmp_path, source))
    assert plans[:4] == ["n", "global", "w->f38", "w->f0"]
    assert len(plans) == MAX_FEATURES


def test_ranges_are_derived(tmp_path: Path) -> None:
    source = (
        "struct span { const char *begin, *end; }; struct node { struct node *next; };"
        "struct list { struct node *first, *last; long lo, hi; };"
        "int f(int lo, int hi, int *first, int *last, char *start, char *stop, struct span *s, struct list *l, struct node *begin,"
        " struct node *end, unsigned char *line_ptr, unsigned char *line_end, int out, int out_end) { return 0; }"
    )
    derived = {name for name, plan in features(tmp_path, source).items() if " - " in name}
    assert derived == {"hi - lo", "last - first", "stop - start", "s->end - s->begin", "l->hi - l->lo", "line_end - line_ptr"}


def test_texts_are_not_read_for_their_end_where_it_is_told(tmp_path: Path) -> None:
    source = (
        "struct buffer { char *mem; int allocated; unsigned size; }; struct entry { const char *name; long size; };"
        "struct reader { char *bufferPtr; const char *bufferEnd; const char *title; int titleShown; };"
        "int f(const char *s, const char *end, const char *key, const char *value, int key_len, struct buffer *b, struct entry *e,"
        " struct reader *r, const char *text, double text_size) { return 0; }"
    )
    plans = features(tmp_path, source)
    assert {name for name, plan in plans.items() if plan.load is Load.TEXT} == {
        "strlen(value)",
        "strlen(text)",
        "strlen(e->name)",
        "strlen(r->title)",
    }
    assert {"end - s", "key_len", "b->size", "r->bufferEnd - r->bufferPtr"} <= set(plans)


def test_globals_are_read_where_the_body_names_them_and_can(tmp_path: Path) -> None:
    source = (
        "int seen, unseen, shadowed; const int constant = 3; volatile int device; static double scale; static char *text;"
        "int f(int shadowed) { extern int local; static int own; int seen_too = seen; own++;"
        " return shadowed + constant + device + (int)scale + local + own + seen_too + (text != 0); } int local;"
    )
    plans = features(tmp_path, source)
    assert {name: plan.origin for name, plan in plans.items()} == {
        "shadowed": Origin.ARGUMENT,
        "seen": Origin.GLOBAL,
        "scale": Origin.GLOBAL,
    }


def test_what_cannot_be_read_safely_has_no_feature(tmp_path: Path) -> None:
    source = (
        "struct hidden; union u { int i; }; struct regs { int status; }; typedef __builtin_va_list va;"
        "int f(int, struct hidden *h, union u *u, volatile struct regs *r, void *any, int (*call)(int), va list, _Complex double z,"
        " __int128 huge, volatile int v, int *numbers) { return 0; }"
    )
    assert features(tmp_path, source) == {}


def test_methods_read_private_fields_and_bases_by_offset(tmp_path: Path) -> None:
    source = """
    struct Base { virtual ~Base() {} long id; };
    struct Mixed { int tag; };
    class C : public Mixed, public Base { int count_; int *data_; public: int f(); static int s(int n); explicit C(int n); };
    int C::f() { return count_; }
    int C::s(int n) { return n; }
    C::C(int n) { count_ = n; }
    struct Virtual : virtual Base { int own; int f() { return own; } };
    int g(Virtual &v) { return v.f(); }
    """
    plans = features(tmp_path, source, name="C::f", file="a.cpp")
    assert {name: plan.expression.partition("(this), ")[2] for name, plan in plans.items()} == {
        "typeid(*this)": "",
        "this->count_": "PD_I32, 1, 20UL)",
        "this->id": "PD_I64, 1, 8UL)",
        "this->tag": "PD_I32, 1, 16UL)",
    }
    assert list(features(tmp_path, source, name="C::s", file="a.cpp")) == ["n"]
    assert list(features(tmp_path, source, name="C::C", file="a.cpp")) == ["n"]
    assert set(features(tmp_path, source, name="Virtual::f", file="a.cpp")) == {"typeid(*this)", "this->own"}


def test_templates_give_what_is_plain_in_them(tmp_path: Path) -> None:
    source = """
    #include <vector>
    template <class T> struct Stack {
        std::vector<T> items; int limit; T top;
        int f(int n, T t, const std::vector<T> &v) { return n + limit; }
    };
    """
    plans = features(tmp_path, source, name="Stack::f", file="a.cpp")
    assert list(plans) == ["n", "v.size()", "this->limit", "this->items.size()"]


def test_lambdas_have_captures_for_features(tmp_path: Path) -> None:
    source = "int g(int n) { int kept = n, other = n; auto f = [&](int k) { int own = kept; return own + k; }; return f(other); }"
    found = indexed(tmp_path, {"a.cpp": source}).functions.values()
    (plans,) = [one.features for one in found if one.name != "g"]
    assert [plan.name for plan in plans] == ["k", "kept"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("m_fileName", ("m", "file", "name")), ("URLPath", ("url", "path")), ("dir2", ("dir", "2")), ("_end_", ("end",))],
)
def test_names_are_split_into_words(name: str, expected: tuple[str, ...]) -> None:
    assert words(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("PATH", True), ("FILE_NAME", True), ("m_dirName", True), ("profile", False), ("pathology", False)]
)
def test_names_of_files_are_told_by_whole_words(name: str, expected: bool) -> None:
    assert names_a_file(name) is expected


def test_pairs_bound_a_range_only_if_the_rest_of_their_names_agrees() -> None:
    names = ["out_begin", "out_end", "in_begin", "end", "left", "right"]
    assert list(ranges(names)) == [(0, 1, True, True), (4, 5, True, False)]


def test_a_place_bounds_a_range_of_pointers_with_the_next_end() -> None:
    names = ["text", "start", "ptr", "end", "data", "line_buf", "line_end"]
    assert set(ranges(names)) == {(1, 3, True, True), (2, 3, False, True), (5, 6, False, True)}


def test_a_length_belongs_to_the_text_of_its_name_or_the_nearest_place() -> None:
    names = ["key", "text", "data", "size", "key_len", "name", "len", "str"]
    assert measured(names, {0, 1, 2, 5, 7}, {3, 4, 6}) == {0, 2}
    assert measured(["len", "str", "text"], {1, 2}, {0}) == {1}


VALUES = """
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>
struct Plain { short tag; double weight; };
struct Base { virtual ~Base() = default; char mark = 'm'; };
struct Other { virtual int odd() { return 1; } long second = 22; };
class Holder : public Base, public Other {
    std::vector<double> values_{1, 2, 3};
    std::string name_ = "four";
    std::map<int, int> map_{{1, 1}, {2, 2}};
    std::set<int> set_{1, 2, 3};
    std::list<int> list_{1, 2, 3, 4};
    std::unordered_map<int, int> table_{{1, 1}};
    std::unique_ptr<Plain> owned_{new Plain{-7, 2.5}};
    const char *label_ = "seven..";
    bool ready_ = true;
    float ratio_ = 0.5f;
    struct { int x, y; } at_{3, -4};
    const char *begin_ = label_ + 1, *end_ = label_ + 6;
  public:
    int f() { return ready_; }
};
static int g(const Holder &holder, const std::vector<int> *numbers, std::unique_ptr<Plain> owned, Plain plain,
             const std::string &path, int *lo, Base *base) {
    return int(path.size() + numbers->size()) + plain.tag + owned->tag + (lo ? 1 : 0) + (base ? 1 : 0) + (&holder ? 1 : 0);
}
int main() {
    Holder holder;
    std::vector<int> numbers(12);
    std::unique_ptr<Plain> owned(new Plain{9, 1});
    auto *wild = reinterpret_cast<Base *>(8);
    return holder.f() + g(holder, &numbers, std::move(owned), Plain{5, 6}, "/etc/..", nullptr, wild) == 36 ? 0 : 1;
}
"""


@pytest.mark.integration
def test_running_programs_read_the_values_that_are_there(tmp_path: Path) -> None:
    main = tmp_path / "main.cpp"
    main.write_text(VALUES)
    tree = probed(main, ("-std=c++17", "-Wno-address"))
    outcome = tree.run(tree.compile("g++", runtimes.library(), "-O1"), tmp_path / "out")
    assert outcome.status == 0
    (inside,) = tree.values(outcome, "Holder::f")
    vtable = inside.pop("typeid(*this)")
    assert inside == {
        "this->ready_": 1,
        "this->mark": ord("m"),
        "this->second": 22,
        "this->values_.size()": 3,
        "this->name_.size()": 4,
        "this->map_.size()": 2,
        "this->set_.size()": 3,
        "this->list_.size()": 4,
        "this->table_.size()": 1,
        "strlen(this->label_)": 7,
        "this->ratio_": 0.5,
        "this->at_.x": 3,
        "this->at_.y": -4,
        "this->end_ - this->begin_": 5,
        "this->owned_->tag": -7,
        "this->owned_->weight": 2.5,
    }
    assert {record.types[int(vtable or 0)] for record in outcome.recordings} == {"Holder"}
    (outside,) = tree.values(outcome, "g")
    shown = ("numbers->size()", "owned->tag", "plain.tag", "plain.weight", "path.size()", "path depth(path)", "base->mark", "holder.second")
    assert {name: outside[name] for name in shown} == dict(zip(shown, (12, 9, 5, 6, 7, 2, None, 22), strict=True))


PARSER = """
struct text { long length; };
struct parser { int mode; long at; double scale; const char *name; struct text *text; long kept; };
int g(struct parser *);
"""
ALL_BUT_MODE = {"p->at", "p->kept", "p->scale", "strlen(p->name)", "p->text->length"}


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("p->mode = 1; p->at = p->kept; p->scale = 1.0; p->name = 0; p->text = 0;", {"p->kept"}),
        ("p->mode = p->at = 0; p->text = 0; p->name = 0; p->scale = n;", {"p->kept"}),
        ("p->at = p->at + 1; p->text = 0; p->name = 0; p->scale = 0; p->mode = 0;", {"p->at", "p->kept"}),
        ("p->at = p->mode; p->mode = 1; p->text = 0; p->name = 0; p->scale = 0;", {"p->mode", "p->kept"}),
        ("if (n) p->at = 0; p->mode = 1; p->text = 0; p->name = 0; p->scale = 0;", {"p->at", "p->kept"}),
        ("p->mode = 1; g(p); p->at = 0; p->scale = 0; p->name = 0; p->text = 0;", ALL_BUT_MODE),
        ("p->mode = 1; p->at = g(p); p->scale = 0; p->name = 0; p->text = 0;", ALL_BUT_MODE),
        ("p->text->length = 0; p->text = 0; p->mode = 1; p->at = 0; p->scale = 0; p->name = 0;", {"p->text->length", "p->kept"}),
        ("p->mode = 1; p = other; p->at = 0; p->scale = 0; p->name = 0; p->text = 0;", ALL_BUT_MODE),
        ("(void)p; other->mode = 1; other->at = 0; other->scale = 0; other->name = 0;", ALL_BUT_MODE | {"p->mode"}),
    ],
)
def test_a_field_that_is_set_before_it_is_read_is_no_input(tmp_path: Path, body: str, left: set[str]) -> None:
    plans = features(tmp_path, f"{PARSER}void f(struct parser *p, int n, struct parser *other) {{ {body} }}")
    assert {name for name in plans if "p->" in name} == left


def test_what_a_system_header_declares_reads_no_field_unless_it_is_handed_the_object(tmp_path: Path) -> None:
    source = (
        "#include <stdlib.h>\nstruct list { long size, room; };\nvoid f(struct list *l, const char *n) { %s l->size = 0; l->room = 1; }"
    )
    assert set(features(tmp_path, source % "int m = atoi(n); (void)m;")) == {"strlen(n)"}
    assert {"l->size", "l->room"} <= set(features(tmp_path, source % "free(l);"))


def test_fields_of_the_object_itself_that_are_set_first_are_no_inputs(tmp_path: Path) -> None:
    head = "struct reader { int mode; long at, kept; void f(int n); long g(); };\n"
    plain = head + "void reader::f(int n) { mode = 1; this->at = kept; if (n) g(); }"
    assert set(features(tmp_path, plain, name="reader::f", file="a.cpp")) == {"n", "this->kept"}
    called = head + "void reader::f(int n) { g(); mode = 1; this->at = kept; }"
    assert set(features(tmp_path, called, name="reader::f", file="b.cpp")) == {"n", "this->mode", "this->at", "this->kept"}
    template = (
        "template <typename T> struct box { int mode; long at, kept; void f(T n) { mode = 1; at = kept; } }; template struct box<int>;"
    )
    assert {name for name in features(tmp_path, template, name="box::f", file="c.cpp") if "this" in name} == {"this->kept"}
