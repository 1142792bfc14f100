"""The text form of annotations prints and reads back the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiff.errors import AnnotationSyntaxError, PerfdiffError
from perfdiff.models.annotation import ANNOTATED, Annotation, Condition, CostClass, Levels, Operator, Scope, Term, Trend
from perfdiff.models.distribution import Binomial, Exponential, Normal
from perfdiff.models.language import parse, parse_all, print_all, print_annotation, readable
from perfdiff.models.oneline import parse_line, print_line
from perfdiff.records.schema import Origin

LABELS = st.one_of(
    st.sampled_from(["FAST", "Color::RED", "true", "false", "std::vector<int>", "a b", "10", "", "Norm"]), st.text(max_size=8)
)
FEATURES = st.one_of(
    st.sampled_from(
        [
            "n",
            "list->size",
            "strlen(path)",
            "typeid(*shape)",
            "file size(path)",
            "end - begin",
            "v.size()",
            "taken(a && b @12)",
            "log2",
            "taken(c == ';')",
            "arg.n",
            "workload.n",
            "log2(n)",
            "absent",
            's == "x"',
            "a // b",
            " n ",
            "système",
            "line\nbreak",
            "Norm",
        ]
    ),
    st.text(min_size=1, max_size=8),
)
FUNCTIONS = st.one_of(
    st.sampled_from(
        ["f", "std::list<int>::sort", "a::b<int, 3>::operator()(x const&)::{lambda#1}", "com.acme.Bar.baz", "f.", "~T", "", "a//b"]
    ),
    st.text(max_size=8),
)
finite = st.one_of(st.just(0.0), *(st.floats(1e-15, 1e20).map(sign) for sign in (float, lambda value: -value)))
positive = st.floats(1e-15, 1e20)
shares = st.floats(0, 1)
chances = st.floats(0.001, 1)
FUNCTIONS_OF_X = ["x", "log", "xlogx", "x2", "x3", "inv"]


@st.composite
def conditions(draw: st.DrawFn, name: str, labels: dict[str, float], bound: float) -> Condition:
    operator = draw(st.sampled_from(Operator))
    if operator in (Operator.ABSENT, Operator.PRESENT):
        return Condition(name, operator)
    if operator in (Operator.AT_MOST, Operator.ABOVE):
        return Condition(name, operator, (bound,), ("true",)) if draw(st.booleans()) else Condition(name, operator, (draw(finite),))
    if labels and draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(sorted(labels)), min_size=1, max_size=3, unique=True))
        return Condition(name, operator, tuple(labels[label] for label in chosen), tuple(chosen))
    return Condition(name, operator, tuple(draw(st.lists(finite, min_size=1, max_size=3))))


@st.composite
def terms(draw: st.DrawFn, features: list[str]) -> tuple[Term, ...]:
    factor = st.tuples(st.sampled_from(features), st.sampled_from(FUNCTIONS_OF_X)) if features else st.nothing()
    products = (
        draw(st.lists(st.lists(factor, min_size=1, max_size=2, unique_by=lambda each: each[0]).map(tuple), max_size=3)) if features else []
    )
    return (Term(draw(finite)), *(Term(draw(finite), product) for product in products))


@st.composite
def scopes(draw: st.DrawFn, features: list[str], where: tuple[Condition, ...], chance: float) -> Scope:
    found, sigma = draw(terms(features)), draw(positive)
    law = draw(
        st.one_of(
            st.none(),
            st.builds(Normal, st.one_of(st.just(0.0), positive), chances),
            st.builds(Exponential, positive),
            st.builds(Binomial, chances),
            st.builds(Binomial, chances, st.integers(0, 1000), finite, positive),
        )
    )
    if isinstance(law, Exponential) and draw(st.booleans()):
        sigma = law.mean
    if isinstance(law, Binomial) and law.trials is not None:
        found = (Term(law.expected),)
    kind, trend = draw(st.sampled_from(ANNOTATED)), draw(st.sampled_from(Trend))
    return Scope(kind, found, sigma, draw(shares), draw(st.integers(0, 10**12)), where, chance, draw(shares), law, trend)


whole = st.integers(1, 10**6)


@st.composite
def annotations(draw: st.DrawFn) -> Annotation:
    features = draw(st.lists(FEATURES, max_size=4, unique=True))
    labels = {name: {label: float(code) for code, label in enumerate(draw(st.lists(LABELS, max_size=4, unique=True)))} for name in features}
    bounds = {name: draw(finite) for name in features}
    found = []
    for _ in range(draw(st.integers(1, 3))):
        chosen = draw(st.lists(st.sampled_from(features), max_size=2)) if features else []
        where = tuple(draw(conditions(name, labels[name], bounds[name])) for name in chosen)
        chances_of = draw(st.lists(shares, min_size=1, max_size=3))
        found += [draw(scopes(features, where, chance)) for chance in (chances_of if len(chances_of) > 1 else [1.0])]
    some = st.sets(st.sampled_from(features)) if features else st.just(set())
    return Annotation(
        function=draw(FUNCTIONS),
        metric=draw(st.sampled_from(["wall_ns", "perf::PAGE-FAULTS", "time", ""])),
        cost_class=draw(st.sampled_from(ANNOTATED)),
        scopes=tuple(found),
        features=tuple(features),
        twins={name: tuple(draw(st.lists(FEATURES, min_size=1, max_size=3))) for name in draw(some)},
        ranges={name: (draw(finite), draw(finite)) for name in draw(some)},
        r2=draw(st.floats(-10, 1)),
        cv_r2=draw(st.floats(-10, 1)),
        n=draw(st.integers(0, 10**12)),
        origins={name: draw(st.sampled_from(Origin)).value for name in draw(some)},
        typical={name: draw(finite) for name in draw(some)},
        levels=draw(st.none() | st.builds(Levels, whole, whole, finite, positive, positive)),
        further=draw(st.none() | FEATURES),
    )


@given(annotations())
def test_an_annotation_reads_back_the_same(annotation: Annotation) -> None:
    assert parse(print_annotation(annotation)) == annotation


@given(st.lists(annotations(), max_size=3))
def test_a_file_of_annotations_reads_back_the_same(several: list[Annotation]) -> None:
    assert parse_all(print_all(several)) == several


@given(annotations())
def test_printing_is_the_same_after_reading_back(annotation: Annotation) -> None:
    text = print_annotation(annotation)
    assert print_annotation(parse(text)) == text
    text.encode()


def refusal(text: str, read: Callable[[str], object] = parse_all) -> AnnotationSyntaxError | None:
    """Return why a text cannot be read."""
    try:
        read(text)
    except AnnotationSyntaxError as error:
        return error
    return None


PIECES = [
    *'{}[]();,.+-*/^%=!<>&|"\\\n \t0159eE',
    "//",
    "Norm(",
    "Exp(1/",
    "Binom(",
    "absent(",
    "log2(",
    "80/n",
    "int n = arg.n;",
    "n",
    "1e999",
    "f.wall_ns(n) {",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
def test_garbage_is_a_syntax_error_and_nothing_else(text: str) -> None:
    error = refusal(text)
    if error is not None:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@given(annotations(), st.data())
def test_a_damaged_text_is_a_syntax_error_or_another_file(annotation: Annotation, data: st.DataObject) -> None:
    text = print_annotation(annotation)
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(at + 10, len(text))))
    damaged = text[:at] + data.draw(st.one_of(st.just(""), st.sampled_from(PIECES), st.text(max_size=5))) + text[until:]
    if refusal(damaged) is None:
        assert refusal(print_all(parse_all(damaged))) is None


def test_what_is_shared_out_is_divided() -> None:
    annotation = parse(
        "f.wall_ns(n, t) {\n  int n = arg.n;\n  int t = arg.t;\n  [t > 1] Norm(500 + 80000/t + 2.5*n/t, 10);\n  [t <= 1] Norm(1/t*n, 3);\n}"
    )
    shared, alone = annotation.scopes
    assert shared.terms[1:] == (Term(80000.0, (("t", "inv"),)), Term(2.5, (("n", "x"), ("t", "inv"))))
    assert alone.terms == (Term(1.0, (("t", "inv"), ("n", "x"))),)
    assert shared.expected({"n": np.array([100.0, 100.0]), "t": np.array([4.0, 0.0])}, 2).tolist() == [20562.5, 500.0]
    assert parse_line("@Time~Norm(80us/threads, 1us)").scopes[0].cost_class is CostClass.INVERSE
    assert "Norm(500 + 80000/t + 2.5*n/t, 10)" in print_annotation(annotation)


FIGURE_2 = """
std::list<int>::sort.time(this) {
  uint s = *(this->_M_impl._M_node._M_storage._M_storage);

  [s > 49584 && s < 1450341]
  Norm(53350.31 - 2.10*s + 0.12*s*log(s), 12463.88);

  [s > 1589482 && s < 2085480]
  Norm(-90901042.29 + 63.11*s, 899547.29);

  [s > 2098759 && s < 3415880]
  Norm(56712024.50 + 35.38*s, 3379580.27); }
"""
FIGURE_7 = """
key_or.time(key2) {
  uint e = key2->elements;
  Norm(-0.276 + 0.073*e + 0.062*e*log(e), 2.24); }
"""
FIGURE_8 = """
fseg_create_general.mem(page_id) {
  [page_id > 0] Norm(1496, 0); }
"""
FIGURE_9 = """
ff_h2645_extract_rbsp.time(length, cpu_clock) {
  uint l = length;
  uint clock = cpu_clock;
  Norm(43.32 + 0.055*l - 1.46e-05*clock - 1.75e-08*l*clock, 4.56);}
"""
FIGURE_11 = """
slice_write.time(h) {
  bool sliced = h->param.b_sliced_threads;
  uint threads = h->param.i_threads;
  uint height = h->param.i_height;
  [sliced] Norm(-1.34e+05 - 3.65e+04*threads + 269.17*height +
    69.76*threads*height, 2.51e+04);
  [!sliced] Norm(-4.94e+04 + 155.76*height - 6.17*height*threads,
    4.87e+03); }
"""


def test_the_papers_figures_can_be_read() -> None:
    sort, disjunction, create, extract, write = parse_all(FIGURE_2 + FIGURE_7 + FIGURE_8 + FIGURE_9 + FIGURE_11)
    size = "*(this->_M_impl._M_node._M_storage._M_storage)"
    assert (sort.function, sort.metric, sort.features) == ("std::list<int>::sort", "time", (size,))
    assert sort.scopes[0].terms == (
        Term(53350.31),
        Term(-2.1, ((size, "x"),)),
        Term(0.12, ((size, "xlogx"),)),
    )
    below = math.nextafter(1450341, 0)
    assert sort.scopes[0].conditions == (Condition(size, Operator.ABOVE, (49584,)), Condition(size, Operator.AT_MOST, (below,)))
    assert [scope.sigma for scope in sort.scopes] == [12463.88, 899547.29, 3379580.27]
    assert disjunction.scopes[0].terms[2] == Term(0.062, (("key2->elements", "xlogx"),))
    assert create.scopes[0].conditions == (Condition("page_id", Operator.ABOVE, (0.0,)),)
    assert create.scopes[0].terms == (Term(1496.0),)
    assert extract.scopes[0].terms[3] == Term(-1.75e-08, (("length", "x"), ("cpu_clock", "x")))
    sliced = Condition("h->param.b_sliced_threads", Operator.IN, (1.0,), ("true",))
    assert [scope.conditions for scope in write.scopes] == [(sliced,), (sliced.negated(),)]


def test_log_is_to_base_2_as_in_freuds_source() -> None:
    """With natural logarithms Figure 2 predicts less than no time where its first scope ends; Figure 1 shows half a second there."""
    (sort,) = parse_all(FIGURE_2)
    (cost,) = sort.predict({sort.features[0]: np.array([1_450_340.0])}).tolist()
    assert cost == pytest.approx(569_896, abs=1)


@pytest.mark.parametrize(("function", "base"), [("log", 2.0), ("log2", 2.0), ("ln", math.e), ("log10", 10.0)])
def test_each_logarithm_has_its_base(function: str, base: float) -> None:
    found = parse(f"f.time() {{ int n = arg.n; Norm(5 + 3*{function}(n) + 7*n*{function}(n), 1); }}")
    n = np.array([2.0, 1000.0])
    np.testing.assert_allclose(found.predict({"n": n}), 5 + (3 + 7 * n) * np.log(n) / math.log(base), rtol=1e-12)


@pytest.mark.parametrize("name", ["ln", "log10"])
def test_a_feature_may_have_the_name_of_a_logarithm(name: str) -> None:
    found = parse(f"f.time() {{ int {name} = arg.{name}; Norm(5 + 3*{name}, 1); }}")
    assert parse(print_annotation(found)) == found
    line = parse_line(f'@Time~Norm(2ms*"{name}(x)", 1ms)')
    assert line.features == (f"{name}(x)",)
    assert parse_line(print_line(line)) == line


def test_a_parameter_is_a_feature_unless_a_declaration_has_it() -> None:
    found = parse("f.time(length, clock, other) { uint l = length; [clock <= 5] Norm(1 + 2*length + 3*l, 1); [clock > 5] Norm(1, 1); }")
    assert found.features == ("length", "clock")
    assert [term.factors for term in found.scopes[0].terms] == [(), (("length", "x"),), (("length", "x"),)]
    assert parse(print_annotation(found)).scopes == found.scopes


def test_mixtures_read_inside_and_outside_of_a_scope() -> None:
    inside = parse("f.time() { int n = arg.n; [n > 5] { {0.2} Norm(1, 2); {0.8} Norm(3*n, 4) } [n <= 5] Norm(7, 0); }")
    assert [(scope.probability, len(scope.conditions)) for scope in inside.scopes] == [(0.2, 1), (0.8, 1), (1.0, 1)]
    outside = parse("f.time() { {0.2} Norm(1, 2); {0.8} Norm(3, 4); }")
    assert [scope.probability for scope in outside.scopes] == [0.2, 0.8]


def test_distributions_are_told_from_their_text() -> None:
    found = parse(
        "f.time() { int n = arg.n; {0.1} Norm(400 + 12*n, 3 + 5%); {0.2} 500 + 20*n + Exp(1/3000);"
        "{0.3} 64 + 4032*Binom(1, 0.25); {0.4} Binom((3*n)/0.5, 0.5); }"
    )
    assert [scope.distribution for scope in found.scopes] == [
        Normal(3, 0.05),
        Exponential(3000),
        Binomial(0.25, 1, 64, 4032),
        Binomial(0.5),
    ]
    assert [scope.terms[0].coefficient for scope in found.scopes] == [400, 3500, 1072, 3]


def test_the_readable_form_is_short_and_can_be_read() -> None:
    terms = (Term(53.3123456789), Term(-2.1, (("n", "x"),)))
    scope = Scope(CostClass.LINEAR, terms, 12.4, 1.0, 10, trend=Trend.LOWER_BOUND)
    annotation = Annotation("f", "wall_ns", CostClass.LINEAR, (scope,), ("n",), {}, {"n": (1.0, 9.0)}, 1.0, 1.0, 10, {"n": "argument"})
    assert readable(annotation) == "f.wall_ns(n) {\n  int n = arg.n;\n  Norm(53.3123 - 2.1*n, 12.4);  // lower bound\n}"
    assert parse(readable(annotation)).scopes[0].terms[0] == Term(53.3123)


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("", 1, 1, "an annotation"),
        ("f.time() {\n  Norm(1*m, 2);\n}", 2, 10, "declared above"),
        ("f.time() {\n  Norm(1, 2)\n  Norm(1, 2);\n}", 3, 3, "';'"),
        ("f.time() {\n}", 2, 1, "a scope"),
        ("f.time() { enum m = arg.m; [m == FAST] Norm(1, 2); }", 1, 34, "codes"),
        ("f.time() { Norm(1e999, 2); }", 1, 17, "finite"),
        ("f.time() { Norm(" + "1e300*" * 4000 + "1, 2); }", 1, 28, "finite"),
        ("f.time() { 1e308 + Exp(1/1e308); }", 1, 12, "finite"),
        ("f.time() { 20 + Exp(0); }", 1, 21, "a rate above 0"),
        ("f.time() { 20 + Exp(1e-400); }", 1, 21, "a rate above 0"),
        ("f.time() { {1.5} Norm(1, 2); }", 1, 13, "probability"),
        ("f.time() { Norm(1, 2);  // class = huge\n}", 1, 36, "a class"),
        ("f.time() { Norm(1, 2);  // class = power law\n}", 1, 36, "a class"),
        ("f.time() { Norm(1, 2); } g", 1, 26, "the end"),
    ],
)
def test_errors_name_place_and_expectation(text: str, line: int, column: int, expected: str) -> None:
    with pytest.raises(AnnotationSyntaxError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert expected in str(caught.value)
    assert isinstance(caught.value, PerfdiffError)


@st.composite
def lines(draw: st.DrawFn) -> Annotation:
    features = draw(st.lists(FEATURES, max_size=3, unique=True))
    scope = draw(scopes(features, (), 1.0))
    metric = draw(st.sampled_from(["wall_ns", "alloc_bytes", "callee_calls", "perf::PAGE-FAULTS", "time"]))
    return Annotation("f", metric, scope.cost_class, (scope,), tuple(features), {}, {}, 1.0, 1.0, 10)


@given(lines())
def test_the_cost_of_one_line_reads_back_the_same(annotation: Annotation) -> None:
    line = print_line(annotation)
    found = parse_line(line, function="f")
    assert (found.function, found.metric) == ("f", annotation.metric)
    assert found.scopes[0].distribution == annotation.scopes[0].distribution
    assert [term for term in found.scopes[0].terms if term.coefficient] == [term for term in annotation.scopes[0].terms if term.coefficient]
    assert print_line(found) == line


def test_the_line_of_the_paper_can_be_read_and_written() -> None:
    line = "@Time~Norm(2ms*path_length(path), 1ms)"
    found = parse_line("@Time~Norm(2ms * path_length(path), 1ms)", function="delete")
    assert (found.function, found.metric, found.features) == ("delete", "wall_ns", ("path_length(path)",))
    assert found.scopes[0].terms == (Term(2e6, (("path_length(path)", "x"),)),)
    assert (found.scopes[0].sigma, found.cost_class) == (1e6, CostClass.LINEAR)
    assert print_line(found) == line


@pytest.mark.parametrize(
    ("annotation", "line"),
    [
        ("f.alloc_bytes() { 64 + 4032*Binom(1, 0.05); }", "@Memory~64B + 4.032kB*Binom(1, 0.05)"),
        ("f.wall_ns() { int n = arg.n; 1500 + 20*n*log2(n) + Exp(1/3000000); }", "@Time~1.5us + 20ns*n*log2(n) + Exp(1/3ms)"),
        ("f.callee_calls() { int n = list->n; Norm(3*n^2, 4%); }", "@Calls~Norm(3*list->n^2, 4%)"),
    ],
)
def test_amounts_of_a_line_have_units(annotation: str, line: str) -> None:
    assert print_line(parse(annotation)) == line


def test_a_line_holds_one_scope_only() -> None:
    with pytest.raises(ValueError, match="several scopes"):
        print_line(parse("f.time() { {0.5} Norm(1, 2); {0.5} Norm(3, 4); }"))


@given(st.one_of(st.text(), st.lists(st.sampled_from(["@Time~", *PIECES]), max_size=20).map("".join)))
def test_a_garbled_line_is_a_syntax_error_and_nothing_else(line: str) -> None:
    error = refusal(line, parse_line)
    assert error is None or error.column >= 1
