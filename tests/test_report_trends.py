"""Reports of trends: what each form says of one revision and of two, whatever strangers call their functions."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given

import hostile_texts
import trends as made
from browsing import in_browser, opened, saved
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.findings import GrowthDifferenceKind, OtherPower, TrendFindings
from perfdiff.models.annotation import CostClass
from perfdiff.records.places import Place
from perfdiff.report.heat import SHADES, shade
from perfdiff.report.trends import matrix
from perfdiff.report.trends.document import APART, answer, markdown, text
from perfdiff.report.trends.json_document import json_document
from perfdiff.report.trends.page import page
from test_schemas import VALIDATORS, places

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCHEMA = VALIDATORS["trends-1"]


def unfolded(found: TrendFindings) -> TrendFindings:
    """Return findings of one revision whose clusters cannot be told by any feature."""
    trends = found.sides[made.BASE]
    untold = tuple(replace(each, fits=tuple(replace(fit, growth=CostClass.NONE) for fit in each.fits)) for each in trends.clusters)
    return replace(found, sides={made.BASE: replace(trends, clusters=untold)})


def test_one_revision_is_answered_by_its_steepest_costly_cluster() -> None:
    assert answer(made.one()) == (
        "1 cluster makes up 100 % of all counts; the steepest costly one, last_node (list.c:9) and 1 more place, grows as 1·n² "
        "(n from 100 to 10,000, R² 0.999): 7.7e9 at n = 88,000"
    )


def test_clusters_that_no_feature_tells_are_said_to_be_so() -> None:
    assert answer(unfolded(made.one())) == "1 cluster makes up 100 % of all counts; no feature tells how they grow"
    assert "last_node (list.c:9): no feature tells how it grows" in text(unfolded(made.one()))


def test_a_program_in_which_no_count_varies_does_not_grow() -> None:
    found = made.one()
    nothing = replace(found, sides={made.BASE: replace(found.sides[made.BASE], clusters=())})
    assert answer(nothing) == "Nothing grows: no count varies over 5 places at 9 points"
    assert text(nothing).startswith("v1.4 (a1b2c3d4e5): counts of 5 places at 9 points\n\nNothing grows")


def in_clusters(*members: tuple[int, ...], costs: tuple[float, ...]) -> TrendFindings:
    """Return one revision of clusters of these places, whose exponents are those of `costs`."""
    found = made.one()
    matrix = made.walking().counts
    clusters = tuple(
        replace(
            made.cluster(
                matrix, own, (made.fit("n", 1.0, b, made.SIZES, growth=CostClass.POWER, says=f"n^{b}"),), place=made.PLACES[own[0]]
            ),
            share=0.5,
        )
        for own, b in zip(members, costs, strict=True)
    )
    return replace(found, sides={made.BASE: replace(found.sides[made.BASE], clusters=clusters)})


def test_places_of_several_clusters_count_once_in_what_clusters_make_up() -> None:
    said = answer(in_clusters((0,), (0,), (0, 1), costs=(2.0, 2.0, 2.0)))  # the loop's two lines are half of all counts each
    assert said.startswith("3 clusters make up 100 % of all counts;")


def test_the_steepest_cluster_is_told_of_although_another_costs_more() -> None:
    assert "the steepest costly one, main (list.c:19), grows as n^2.5" in answer(in_clusters((0, 1), (2,), costs=(2.0, 2.5)))


def test_clusters_that_overtake_soonest_are_told_of_first() -> None:
    found = in_clusters((0,), (1,), (2,), (3,), (0, 1), (2, 3), costs=(1.0,) * 6)
    trends = found.sides[made.BASE]
    clusters = tuple(replace(each, overtakes=1e9 / (rank + 1)) for rank, each in enumerate(trends.clusters))
    said = text(replace(found, sides={made.BASE: replace(trends, clusters=clusters)}), width=200)
    assert re.findall(r"from n = (\S+) on", said) == ["1.7e8", "2.0e8", "2.5e8", "3.3e8", "5.0e8"]
    assert "1 more overtakes what is above it further on." in said


def test_lines_that_grow_by_another_power_are_told_in_all_forms() -> None:
    found = in_clusters((0, 1), (2, 3), costs=(2.0, 1.0))
    trends = found.sides[made.BASE]
    others = tuple(OtherPower(made.STEP, "n", -0.07, (-0.1, -0.04), 0.25 / rank) for rank in range(1, 7))
    clusters = (replace(trends.clusters[0], apart=others), *trends.clusters[1:])
    found = replace(found, sides={made.BASE: replace(trends, clusters=clusters)})
    line = "list.c:10 in last_node (25 % of a run): -0.07 [-0.10, -0.04] beside that of"
    assert f"{APART}\n  - {line}" in text(found, width=200)
    assert "- 1 more." in text(found, width=200)
    assert APART in markdown(found)
    assert line in unescape(page(found))
    apart = json_document(found)["clusters"][0]["apart"]
    assert len(apart) == len(others)
    assert apart[0] == {
        "place": {"function": "last_node", "file": "list.c", "line": 10, "text": "n = n->next;"},
        "feature": "n",
        "shift": -0.07,
        "ci": [-0.1, -0.04],
        "share": 0.25,
    }


CHANGED = "list.c:9, `while (n->next)` in last_node: "
AT = "at n = 100,000, 10 times what was measured"


@pytest.mark.parametrize(
    ("verdict", "kind", "said"),
    [
        ("regression", "exponent", f"Regression: {CHANGED}2.1·n → 0.5·n² (exponent +1.00 [0.98, 1.02]); {AT}, 5.0e9 instead of 210,000"),
        (
            "improvement",
            "exponent",
            f"Improvement: {CHANGED}0.5·n² → 2.1·n (exponent -1.00 [-1.02, -0.98]); {AT}, 210,000 instead of 5.0e9",
        ),
        ("regression", "new", f"Regression: {CHANGED}new, 0.5·n²; {AT}, 5.0e9 where base has none"),
        ("improvement", "gone", f"Improvement: {CHANGED}gone, was 0.5·n²; {AT}, 5.0e9 before"),
        ("inconclusive", "new", f"Inconclusive: {CHANGED}new, 0.5·n²; {AT}, 5.0e9 where base has none"),
        ("unchanged", "gone", f"No regression: what differs is not material; most does {CHANGED}gone, was 2.1·n; {AT}, 210,000 before"),
    ],
)
def test_two_revisions_are_answered_by_what_differs_most(verdict: str, kind: str, said: str) -> None:
    assert answer(made.two(Verdict(verdict), [made.difference(Verdict(verdict), GrowthDifferenceKind(kind))])) == said


def test_further_differences_are_counted_and_the_answer_is_of_one_with_the_verdict() -> None:
    better, worse = made.difference(Verdict.IMPROVEMENT), made.difference()
    said = answer(made.two(Verdict.REGRESSION, [better, worse, worse]))
    assert said.startswith("Regression: list.c:9, `while (n->next)` in last_node: 2.1·n → 0.5·n²")
    assert said.endswith("; 2 more trends differ")


def test_no_difference_says_what_was_compared() -> None:
    assert answer(made.two(Verdict.UNCHANGED, [])) == "No trend differs: 5 places in 2 clusters at 9 points"
    said = "Inconclusive: whether a trend differs cannot be told from 5 places in 2 clusters at 9 points"
    assert answer(made.two(Verdict.INCONCLUSIVE, [])) == said


ONE = """\
v1.4 (a1b2c3d4e5): counts of 5 places at 9 points

1 cluster makes up 100 % of all counts; the steepest costly one, last_node (list.c:9) and 1 more place, grows as 1·n² (n from 100 to
10,000, R² 0.999): 7.7e9 at n = 88,000

Costly clusters
     cluster                                largest cost  growth     exponent           at 2 times the inputs
  #  line                                   of a run      class      R²                 at 10 times the inputs
  1  last_node (list.c:9) and 1 more place  1.0e8         1·n²       2.00 [1.98, 2.02]  3.1e8 [3.0e8, 3.2e8] at n = 17,600
     while (n->next)                        100 %         quadratic  0.999              7.7e9 [7.4e9, 8.1e9] at n = 88,000

1 more cluster makes up less than 2 % of every run. 1 place never varies.

Beyond what was run
  - last_node (list.c:9) overtakes everything above it from n = 3.1e6 on.

Remarks on fits
  - last_node (list.c:9): 1 of 9 points not in the fit, as the count or n is 0; curved: a lower-order term or a logarithm; over n and
    bytes together 2.1·n·bytes (R² 0.999)

Notes
  - plugin.so was not counted. (uncounted)
"""


def test_the_text_of_one_revision() -> None:
    assert text(made.one(), width=135) == ONE


def test_text_fits_its_width_and_has_colours_only_where_asked_for() -> None:
    for width in (60, 80, 100, 200):
        assert max(map(len, text(made.two(), width=width).splitlines())) <= width
    assert "\x1b[" not in text(made.two())
    assert "\x1b[1;31mRegression" in text(made.two(), colour=True)


def test_differences_come_before_the_clusters_of_head() -> None:
    for said in (text(made.two(), width=200), markdown(made.two())):
        assert said.index("Regression") < said.index("What differs") < said.index("Costly clusters of HEAD")
        assert re.search(r"1\s*\|?\s*`?list.c:9`?[ |`]+last_node[ |`]+while \(n->next\)[ |`]+2.1·n → 0.5·n²[ |]+\+1.00", said)


def test_markdown_is_a_ticket_with_the_same_content() -> None:
    said = markdown(made.one())
    assert said.startswith(
        "## 1 cluster makes up 100 % of all counts; the steepest costly one, last\\_node (list.c:9) and 1 more place, grows"
    )
    row = "|1|`last_node (list.c:9) and 1 more place`|`while (n->next)`|1.0e8|100 %|1·n²|quadratic|2.00 \\[1.98, 2.02\\]|0.999|"
    assert row in said
    assert "- last\\_node (list.c:9) overtakes everything above it from n = 3.1e6 on." in said


def test_a_cluster_without_a_line_leaves_its_cell_empty() -> None:
    assert "|`places that follow n`||" in markdown(made.two(Verdict.IMPROVEMENT))


def test_markdown_of_any_size_says_what_it_leaves_out() -> None:
    found = made.two(differences=[made.difference()] * 2_000)
    said = markdown(found)
    assert len(said.encode()) < 60_000
    assert re.search(r"Left out .*: 1,\d\d\d rows of “What differs”", said)


def test_the_matrix_has_instances_below_the_place_that_they_share() -> None:
    rows = [row for row in read(made.instantiated()) if row["kind"] == "instance"]
    assert [(row["function"], row["line"], row["lists n=100"]) for row in rows] == [
        ("last_node<int>", "9", "5040"),
        ("last_node<long>", "9", "10"),
    ]


@hostile_texts.few
@given(hostile_texts.texts)
def test_text_and_markdown_hold_any_names(name: str) -> None:
    found = made.two(differences=[replace(made.difference(), place=Place(name, name, 1, name), feature=name)])
    said = text(found)
    assert "\x1b" not in said
    assert "\u202e" not in said
    ticket = markdown(found)
    assert not re.search(r"^(?:# |::|<[a-z])", ticket, re.MULTILINE)
    ticket.encode()


def read(found: TrendFindings) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(matrix.csv(found), newline="")))


def test_the_matrix_has_features_on_top_and_a_row_for_each_place() -> None:
    rows = read(made.one())
    assert [(row["kind"], row["function"], row["line"], row["text"]) for row in rows[:3]] == [
        ("feature", "", "", "n"),
        ("feature", "", "", "bytes"),
        ("place", "last_node", "9", "while (n->next)"),
    ]
    assert len(rows) == 2 + len(made.PLACES)
    assert rows[2]["lists n=100"] == "5050"
    assert rows[6]["text"] == 'printf("%ld\\n", list.size);'
    assert matrix.csv(made.one()).count("\r\n") == 1 + len(rows)


def test_the_matrix_of_two_revisions_tells_their_sides() -> None:
    rows = read(made.two())
    loops = {row["side"]: row["lists n=10000"] for row in rows if row["text"] == "while (n->next)"}
    assert loops == {"base": "21000", "head": "50005000"}


@hostile_texts.few
@given(hostile_texts.texts)
def test_any_names_stay_in_their_cells_and_are_no_formulas(name: str) -> None:
    found = made.one()
    counted = found.experiment.sides[made.BASE]
    place = Place(name, name, 1, name)
    changed = replace(counted, places=(place, *counted.places[1:]), features={name: counted.features["n"]})
    rows = read(replace(found, experiment=replace(found.experiment, sides={made.BASE: changed})))
    assert len(rows) == 1 + len(made.PLACES)
    for cell in (rows[0]["text"], rows[1]["function"], rows[1]["file"], rows[1]["text"]):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert rows[1]["lists n=100"] == "5050"


@pytest.mark.parametrize("line", ["++count;", "-x;", "=1+1", "@import", " =cmd|' /C calc'!A0"])
def test_lines_that_a_spreadsheet_would_compute_are_marked_as_text(line: str) -> None:
    found = made.one()
    counted = found.experiment.sides[made.BASE]
    changed = replace(counted, places=(replace(made.LOOP, text=line), *counted.places[1:]))
    rows = read(replace(found, experiment=replace(found.experiment, sides={made.BASE: changed})))
    assert rows[2]["text"] == f"'{line}"


def test_absent_features_are_empty_cells() -> None:
    found = made.one()
    counted = found.experiment.sides[made.BASE]
    features = {"n": np.where(counted.features["n"] < 150, math.nan, counted.features["n"]), "half": counted.features["n"] / 16}
    rows = read(replace(found, experiment=replace(found.experiment, sides={made.BASE: replace(counted, features=features)})))
    assert (rows[0]["lists n=100"], rows[0]["lists n=200"]) == ("", "200")
    assert rows[1]["lists n=100"] == "6.25"


def whole() -> TrendFindings:
    """Return findings of two revisions of which nothing that can be absent is."""
    found = made.two()
    told = replace(found.differences[0], base=made.walking_trends().clusters[0].fits[0])
    return replace(found, differences=(told,), experiment=replace(found.experiment, notes=(made.NOTE,)))


FOUND: tuple[Callable[[], TrendFindings], ...] = (made.one, made.two, made.hostile, whole)


@pytest.mark.parametrize("found", FOUND, ids=lambda found: str(found.__name__))
def test_json_is_as_its_schema_says(found: Callable[[], TrendFindings]) -> None:
    SCHEMA.validate(json.loads(json.dumps(json_document(found()), allow_nan=False)))


def test_json_names_representatives_places_and_fits() -> None:
    document = json_document(made.one())
    steep, flat = document["clusters"]
    assert steep["representative"] == {"function": "last_node", "file": "list.c", "line": 9, "text": "while (n->next)"}
    assert flat["representative"] == {"feature": "n"}
    assert steep["places"][1] == {"function": "last_node", "file": "list.c", "line": 10, "text": "n = n->next;"}
    fit = steep["fits"][0]
    assert (fit["feature"], fit["a"], fit["b"], fit["class"], fit["ignored"]) == ("n", 1.0, 2.0, "quadratic", 1)
    assert [prediction["at"] for prediction in fit["predictions"]] == pytest.approx([17_600, 88_000])
    assert document["verdict"] is document["head"] is None
    assert document["differences"] == []


def test_json_of_two_revisions_tells_each_difference() -> None:
    document = json_document(made.two())
    assert document["verdict"] == "regression"
    assert document["head"]["commit"].startswith("b7e1c0ffee")
    (difference,) = document["differences"]
    assert difference["place"]["line"] == 9
    assert (difference["base"]["b"], difference["head"]["b"]) == (1.0, 2.0)
    assert difference["ci"] == [pytest.approx(0.98), pytest.approx(1.02)]


@pytest.mark.parametrize(("kind", "absent"), [(GrowthDifferenceKind.NEW, "base"), (GrowthDifferenceKind.GONE, "head")])
def test_json_of_a_place_on_one_side_has_no_fit_of_the_other(kind: GrowthDifferenceKind, absent: str) -> None:
    document = json_document(made.two(differences=[made.difference(kind=kind)]))
    SCHEMA.validate(document)
    (difference,) = document["differences"]
    assert difference[absent] is difference["ci"] is None


def test_numbers_that_are_not_finite_are_null() -> None:
    found = made.one()
    cluster = found.sides[made.BASE].clusters[0]
    bad = replace(cluster.fits[0], a=math.inf, b=math.nan, ci_a=(math.nan, math.inf), r2=math.nan)
    changed = replace(cluster, fits=(bad,), share=math.nan)
    document = json_document(replace(found, sides={made.BASE: replace(found.sides[made.BASE], clusters=(changed,))}))
    SCHEMA.validate(document)
    assert document["clusters"][0]["fits"][0]["ci_a"] == [None, None]
    json.dumps(document, allow_nan=False)


def test_json_without_one_of_its_keys_breaks_the_schema() -> None:
    document = json_document(whole())
    document["clusters"] = document["clusters"][:1]
    document["points"] = document["points"][:1]
    for path in places(document):
        if {"parameters", "features"} & {str(key) for key in path[1:-1]}:  # whose keys are names of the program
            continue
        broken = copy.deepcopy(document)
        holder: Any = broken
        for key in path[:-1]:
            holder = holder[key]
        del holder[path[-1]]
        assert not SCHEMA.is_valid(broken), path


def article(said: str, name: str) -> str:
    return said[said.index(f'<article id="{name}"') :].partition("</article>")[0]


def test_a_cluster_has_points_its_law_and_residuals() -> None:
    section = article(page(made.one()), "cluster-1")
    main = section[section.index('<svg class="main"') : section.index('<svg class="below"')]
    assert re.findall(r'<g class="base"><path class="(points|line)[^"]*" d="M\d', main) == ["points", "line"]
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', section, re.DOTALL)
    dots, line = json.loads(data)["series"]
    assert dots["x"] == list(made.SIZES)
    assert dots["ratio"] == pytest.approx([1.0] * 9, abs=0.03)
    assert dots["point"][0][0] == "lists n=100"
    assert line["y"][-1] == pytest.approx(1e8, rel=1e-3)


def test_the_source_of_a_cluster_has_counts_as_heat() -> None:
    section = article(page(made.one()), "cluster-1")
    assert '<tr class="member"><td>9<td class="h9">5.0e7<td>        while (n-&gt;next)' in section
    assert '<tr class="gap"><td colspan="3">… 6 lines' in section
    assert '<td>11<td class="h0"><td>        return n;' in section


def test_instances_of_a_template_stand_below_their_line() -> None:
    section = article(page(made.instantiated()), "cluster-1")
    line, instances = (
        section.split('<tr class="member"><td>9<td class="h9">5.0e7<td>', 1)[1].split("<tr", 1)[0],
        re.findall(r'<tr class="instance"><td><td>([^<]*)<td>(.*)', section),
    )
    assert "while (n-&gt;next)" in line
    assert instances == [("5.0e7", "last_node&lt;int&gt;"), ("10", "last_node&lt;long&gt;")]


def test_instances_of_two_revisions_have_the_counts_of_both() -> None:
    section = article(page(made.instantiated(compared=True)), "difference-1")
    instances = re.findall(r'<tr class="instance"><td><td>([^<]*)<td>([^<]*)<td>(.*)', section)
    assert instances == [("20,990", "5.0e7", "last_node&lt;int&gt;"), ("–", "10", "last_node&lt;long&gt;")]


def test_json_names_the_instances_of_a_place() -> None:
    document = json_document(made.instantiated())
    (loop,) = [place for place in document["clusters"][0]["places"] if place["line"] == 9]
    assert loop["instances"] == [{"function": "last_node<int>", "largest": 50_004_990.0}, {"function": "last_node<long>", "largest": 10.0}]
    assert document["instances"] is False
    assert not any("instances" in place for place in document["constant"])


def test_the_source_of_two_revisions_has_the_counts_of_both() -> None:
    section = article(page(made.two()), "difference-1")
    assert '<tr class="member"><td>9<td>21,000<td class="h9">5.0e7<td>        while (n-&gt;next)' in section
    assert re.findall(r'<g class="(base|head)"><path class="line', section[: section.index('<svg class="below"')]) == ["base", "head"]


@pytest.mark.parametrize(("kind", "drawn"), [(GrowthDifferenceKind.NEW, "head"), (GrowthDifferenceKind.GONE, "base")])
def test_a_place_on_one_side_is_drawn_and_listed_there(kind: GrowthDifferenceKind, drawn: str) -> None:
    found = made.two(differences=[made.difference(kind=kind)])
    heads = found.experiment.heads.copy()
    heads[0] = -1
    section = article(page(replace(found, experiment=replace(found.experiment, heads=heads))), "difference-1")
    assert set(re.findall(r'<g class="(base|head)"><path class="points', section)) == {drawn}
    count = {"head": '<td>–<td class="h9">5.0e7', "base": '<td class="h9">21,000<td>–'}[drawn]
    assert f"<td>9{count}<td>        while (n-&gt;next)" in section


def test_what_a_function_executed_before_is_drawn_beside_a_line_that_is_new() -> None:
    found = made.two()
    heads = found.experiment.heads.copy()
    heads[0] = -1
    section = article(page(replace(found, experiment=replace(found.experiment, heads=heads))), "difference-1")
    drawn = re.findall(r'<g class="(base|head)"><path class="(points|line)', section[: section.index('<svg class="below"')])
    assert sorted(drawn) == [("base", "line"), ("base", "points"), ("head", "line"), ("head", "points")]


def test_shades_are_half_powers_of_ten() -> None:
    assert [shade(count, 1e6) for count in (0, 1, 1e4, 1e5, 3e5, 4e5, 1e6)] == [0, 1, SHADES - 4, SHADES - 2, SHADES - 1, SHADES, SHADES]


def test_hostile_names_are_texts_of_the_page() -> None:
    said = page(made.hostile())
    assert "<script>alert" not in said
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in said
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert re.findall(r"(?:src|href)=\"(?!#)|url\(|@import|\son\w+=|\sstyle=", said) == []


def test_thousands_of_places_stay_under_four_megabytes_and_what_is_left_out_is_said() -> None:
    said = page(made.many(150, 6_000, 400))
    assert len(said.encode()) < 4_000_000
    assert said.count("<article") == 100
    assert "50 more clusters are in the table above only" in said
    assert said.count("<tr data-section") == 150
    small = re.findall(r'<article id="cluster-(\d+)".*?</article>', said, re.DOTALL)[-1]
    assert '<figure class="heat">' not in article(said, f"cluster-{small}")


def test_the_same_findings_give_the_same_page() -> None:
    assert page(made.two()) == page(made.two())


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open pages that must log nothing and ask for nothing."""
    logged: list[list[str]] = []

    def show(found: TrendFindings, *, width: int = 1300, script: bool = True, dark: bool = False) -> Page:
        tab, seen = opened(browser, saved(tmp_path, page(found)), width=width, script=script, dark=dark)
        logged.append(seen)
        return tab

    yield show
    assert [text for seen in logged for text in seen] == []


def ranks(tab: Page) -> list[int]:
    return [int(rank) for rank in tab.locator(".ranking tbody tr:visible td:first-child").all_inner_texts()]


@pytest.mark.browser
@in_browser
def test_the_table_sorts_by_click_and_by_key(shown: Callable[..., Page]) -> None:
    tab = shown(made.many(12, 60, 20))
    exponents = [float(each.split()[0]) for each in tab.locator(".ranking tbody td:nth-child(7)").all_inner_texts()]
    header = tab.locator(".ranking th", has_text="exponent")
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert [float(each.split()[0]) for each in tab.locator(".ranking tbody td:nth-child(7)").all_inner_texts()] == sorted(exponents)[::-1]
    header.locator("button").focus()
    tab.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert [float(each.split()[0]) for each in tab.locator(".ranking tbody td:nth-child(7)").all_inner_texts()] == sorted(exponents)
    tab.locator(".ranking th button", has_text="cluster").click()
    functions = tab.locator(".ranking tbody td:nth-child(2)").all_inner_texts()
    assert functions == sorted(functions)
    assert tab.locator("th[aria-sort=ascending]").count() == 1
    tab.context.close()


@pytest.mark.browser
@in_browser
def test_the_table_filters_by_any_function_of_a_cluster_and_by_cost(shown: Callable[..., Page]) -> None:
    tab = shown(made.one())
    assert ranks(tab) == [1, 2]
    tab.fill("#find", "MAIN")  # a member of the cluster that follows n; its row names the feature
    assert ranks(tab) == [2]
    assert tab.locator("#cluster-1").is_hidden()
    assert tab.locator("output").inner_text() == "1 of 2"
    tab.fill("#find", "")
    tab.check("#costly")
    assert ranks(tab) == [1]
    tab.uncheck("#costly")
    assert ranks(tab) == [1, 2]
    assert tab.locator("output").inner_text() == ""
    tab.context.close()


@pytest.mark.browser
@in_browser
def test_a_row_leads_to_its_cluster_and_opens_it(shown: Callable[..., Page]) -> None:
    tab = shown(made.one())
    plot = tab.locator("#cluster-2 svg.main")
    assert not plot.is_visible()
    tab.locator(".ranking a", has_text="places that follow").click()
    plot.wait_for(state="visible")
    tab.locator("#cluster-2 .canvas").focus()
    tab.keyboard.press("End")
    assert tab.locator("#cluster-2 .tip strong").inner_text() == "lists n=10000"
    before = plot.locator("path.line").get_attribute("d")
    tab.locator("#cluster-2 [data-axis=x]").click()
    assert plot.locator("path.line").get_attribute("d") != before
    tab.context.close()


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("width", [1300, 400])
def test_hostile_names_do_nothing_and_break_no_layout(shown: Callable[..., Page], width: int) -> None:
    tab = shown(made.hostile(), width=width, dark=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("#difference-1 svg.main").is_visible()
    tab.context.close()


@pytest.mark.browser
@in_browser
def test_all_can_be_read_without_script(shown: Callable[..., Page]) -> None:
    tab = shown(made.two(), script=False)
    assert tab.locator(".tools:visible").count() == 0
    assert tab.locator("#difference-1 .heat").is_visible()
    tab.locator("#cluster-1 summary").click()
    assert tab.locator("#cluster-1 svg.main").is_visible()
    assert tab.locator("#cluster-1 .fits").inner_text().startswith("Fits over every feature")
    tab.context.close()


def test_places_in_json_lead_to_their_files_and_the_sentence_is_printable() -> None:
    whole = made.two()
    file = "src/a\x1b[31m.c"
    sides = {
        side: replace(
            counted,
            places=tuple(replace(place, file=file) for place in counted.places),
            sources={file: next(iter(counted.sources.values()))},
        )
        for side, counted in whole.experiment.sides.items()
    }
    said = json_document(replace(whole, experiment=replace(whole.experiment, sides=sides)))
    assert {place["file"] for cluster in said["clusters"] for place in cluster["places"]} == {file}
    assert "\x1b" not in said["sentence"]
