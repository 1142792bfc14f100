"""The HTML report: one file that needs nothing else, readable in any browser, on paper and without script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findings as made
from browsing import in_browser, opened, saved
from perfdiff import units
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.models.annotation import Condition, Operator
from perfdiff.records.schema import Feature, Note, Origin, Point, SampleTable, Side, Source
from perfdiff.report import html
from perfdiff.report.chart import MAIN
from perfdiff.report.diff import source_diff
from perfdiff.report.document import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE_DATA = "</script><script>alert(3)</script><!--\0\u2028'\"\\"


def page_of(findings: Findings, *, drawn: bool = True) -> str:
    return html.render(build(findings, made.Samples(findings) if drawn else None))


def data_of(said: str) -> list[dict[str, Any]]:
    """Return the data of every plot of a page."""
    data = r'<figure class="plot".*?<script type="application/json">(.*?)</script>'
    return [json.loads(found) for found in re.findall(data, said, re.DOTALL)]


def test_points_curves_and_bands_of_both_sides_are_drawn() -> None:
    said = page_of(made.findings())
    article = said[said.index('id="function-1"') : said.index('id="function-2"')]
    main = article[article.index('<svg class="main"') : article.index('<svg class="below"')]
    drawn = re.findall(r'<g class="(base|head)"><path class="(points|line|band)[^"]*" d="M\d', main)
    assert sorted(drawn) == [(side, what) for side in ("base", "head") for what in ("band", "line", "points")]
    assert "where 95 % of calls should lie" in article
    assert "logarithmic" in article


def test_residuals_of_both_sides_stand_beside_the_scatter() -> None:
    said = page_of(made.findings())
    below = said[said.index('<svg class="below"') : said.index("</figure>")]
    assert re.findall(r'<g class="(base|head)"><path class="points s0" d="M\d', below) == ["base", "head"]
    assert "measured ÷ fitted" in below


@pytest.mark.parametrize(("code", "blamed"), [("return x + 1", ["    return x + 1"]), ("return x", [])])
def test_comments_are_not_to_blame(code: str, blamed: list[str]) -> None:
    base = Source("a.py", 3, 'def f(x):\n    """Old text."""\n    return x\n', ((4, 4),))
    head = replace(base, text=f'def f(x):\n    """New text."""\n    {code}\n')
    shown = source_diff(replace(made.regressed().info, base=base, head=head), guilty=True)
    assert shown is not None
    assert [line.text for line in shown.lines if line.guilty] == blamed


def test_changed_lines_stand_beside_the_plot_with_their_numbers() -> None:
    said = page_of(made.findings())
    assert re.search(r'<tbody class="removed">\s*<tr><td>46<td><td><td>-     if \(!list-&gt;tail\)', said)
    assert re.search(r'<tbody class="added">\s*<tr class="guilty"><td><td>49<td class="h9">4\.5e8<td>\+     while \(\*place\)', said)


def test_lines_of_head_have_how_often_they_ran_beside_them() -> None:
    said = page_of(made.findings())
    assert "times: how often head's lines ran at <code>lists n=30000</code>" in said.replace("&#39;", "'")
    assert re.search(r'<tr><td>44<td>46<td class="h1">30,000<td>      struct node \*node', said)
    assert '<th scope="col">times</th>' in said
    uncounted = page_of(made.findings(functions=(replace(made.regressed(), lines=(), line_counts={}),)))
    assert '<figure class="diff"' in uncounted
    assert '<th scope="col">times</th>' not in uncounted
    assert re.search(r'<tr class="guilty"><td><td>49<td>\+     while \(\*place\)', uncounted)


def test_lines_are_guilty_only_where_a_change_made_its_function_slower() -> None:
    assert page_of(made.findings()).count('<tr class="guilty">') == 4  # of the added lines, the empty one says nothing
    improved = replace(made.regressed(), verdict=Verdict.IMPROVEMENT, rank=None)
    assert '<tr class="guilty">' not in page_of(made.findings(Verdict.IMPROVEMENT, (improved,)))
    info = made.regressed().info
    dropped = replace(info, head=Source("src/list.c", 42, info.base.text.replace("    list->size++;\n", "")))  # type: ignore[union-attr]
    said = page_of(made.findings(functions=(replace(made.regressed(), info=dropped),)))
    assert re.findall(r'<tr class="guilty"><td>51<td><td><td>-     list-&gt;size\+\+;', said)


def test_the_cause_is_set_apart_from_the_answer() -> None:
    first = replace(made.regressed(), happened=made.worded("`insert` costs ×331 a call"), tells_cause=True)
    sentence = claim("regression", guilty=claim("guilty", first=first.headline, others=1), elsewhere=None)
    said = page_of(replace(made.findings(functions=(first, *made.others())), sentence=made.worded(sentence)))
    assert '<p class="headline">' not in said[said.index('id="function-1"') : said.index('id="function-2"')]
    assert "<h1>Regression: <code>insert</code> costs ×331 a call; 1 more function is slower</h1>" in said
    assert '<p class="cause"><span class="label">Cause</span> The new loop <code>while (*place)</code>' in said


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_note_that_the_answer_needs_stands_behind_it(verdict: Verdict) -> None:
    page = html.render(build(replace(made.findings(verdict), notes=(Note("workload-grown", "runs get larger inputs"),))))
    assert "Runs get larger inputs." in page[: page.index("<nav")]


def test_figures_say_which_calls_they_are_of() -> None:
    finding = made.regressed()
    wall = finding.metrics["wall_ns"]
    assert wall.head is not None
    mode = Condition("mode", Operator.IN, (1.0,), ("FAST",))
    scopes = tuple(replace(wall.head.scopes[0], conditions=(condition,), share=0.5) for condition in (mode, mode.negated()))
    wall = replace(wall, stratum="mode = FAST", head=replace(wall.head, scopes=scopes, features=("list->size", "mode")))
    said = page_of(made.findings(functions=(replace(finding, metrics={"wall_ns": wall}),)), drawn=False)
    tiles = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", said[: said.index("</header>")]))
    assert tiles == {
        "a call of <code>insert</code> [318, 346] (mode = FAST)": "×331",
        "a call at list-&gt;size = 28,500, over all scopes": "41 ns → 26 µs",
        "growth in <code>list-&gt;size</code>": "constant → linear",
        "in one run of each workload point, 97 % of all that got slower": "+410 ms",
    }
    typical = replace(wall, typical=1e3, typical_at="mode = FAST, list->size = 900")
    said = page_of(made.findings(functions=(replace(finding, metrics={"wall_ns": typical}),)), drawn=False)
    tiles = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", said[: said.index("</header>")]))
    assert tiles["a call at mode = FAST, list-&gt;size = 900"] == "1 µs → 331 µs"


def test_the_tree_tells_extra_cost_of_a_function_and_of_its_callees() -> None:
    said = page_of(made.findings())
    tree = re.sub(r"<[^>]+>", " ", said[said.index('<section id="calls">') : said.index('<section id="functions">')])
    words = " ".join(tree.split())
    assert "table_grow src/table.c:104 calls 3 itself +100 µs callees +409 ms together +410 ms" in words
    assert "#1 insert src/list.c:42 calls 30,000 itself +410 ms – together +410 ms" in words
    assert "together −600 µs" in words


def test_the_file_asks_for_nothing_and_runs_only_its_own_script() -> None:
    said = page_of(made.findings())
    assert re.findall(r"(?:src|href)=\"(?!#)", said) == []
    assert re.findall(r"url\(|@import|javascript:|\son\w+=|\sstyle=", said) == []
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', said)
    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy[1].replace("&#39;", "'").split("; "))
    assert rules.keys() == {"default-src", "style-src", "script-src", "base-uri", "form-action"}
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for element, rule in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", said, re.DOTALL)
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert set(re.findall(r"<script([^>]*)>", said)) == {"", ' type="application/json"'}


def test_hostile_names_stay_text() -> None:
    said = page_of(made.hostile())
    assert "<script>alert" not in said
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def hostile_page() -> str:
    """Return a page whose samples, too, have names that strangers chose: features, categories, workload points."""
    whole = made.findings()
    points = (Point(0, HOSTILE_DATA, {HOSTILE_DATA: HOSTILE_DATA}, HOSTILE_DATA), *whole.points[1:])
    whole = replace(whole, points=points, functions=whole.functions[:1])

    def samples(function: int, side: Side) -> SampleTable | None:
        table = made.Samples(whole)(function, side)
        assert table is not None
        codes = np.arange(len(table)) % 2
        named = (Feature(HOSTILE_DATA, Origin.ARGUMENT, True, {0: HOSTILE_DATA, 1: "'\"\\"}), Feature("size", Origin.ARGUMENT))
        return replace(
            table, features=(table.features[0], *named), values=np.column_stack([table.values[:, 0], codes, table.values[:, 1] + 1])
        )

    return html.render(build(whole, samples))


def test_hostile_names_in_the_data_of_plots_end_no_script() -> None:
    said = hostile_page()
    (data,) = data_of(said)
    dots = next(series for series in data["series"] if not series["line"])
    name = "</script><script>alert(3)</script><!--\\x00\\u2028'\"\\"
    assert name in dots["inputs"]
    assert set(dots["inputs"][name][0]) == {name, "'\"\\"}
    assert name in dots["point"][0][0]
    assert "alert(3)</script>" not in said


def test_code_that_a_sentence_quotes_is_set_as_code() -> None:
    assert "The new loop <code>while (*place)</code> (src/list.c:49) runs" in page_of(made.findings())


def test_fifty_functions_stay_under_two_megabytes() -> None:
    whole = made.many(50)
    load = made.Samples(whole)

    def with_inputs(function: int, side: Side) -> SampleTable | None:
        table = load(function, side)
        assert table is not None
        more = np.random.default_rng(function).uniform(1, 1e5, (len(table), 6))
        features = (*table.features, *(Feature(f"list->field_{number}", Origin.FIELD) for number in range(6)))
        return replace(table, features=features, values=np.column_stack([table.values, more]))

    assert len(html.render(build(whole, with_inputs)).encode()) < 2_000_000


def test_a_report_of_hundreds_of_functions_says_what_it_leaves_out() -> None:
    said = page_of(made.many(150), drawn=False)
    assert said.count("<article") == 100
    assert "50 more functions are in the table above only" in said


def test_the_same_findings_give_the_same_bytes() -> None:
    assert page_of(made.findings()) == page_of(made.findings())


def test_without_samples_everything_but_the_plots_is_there() -> None:
    said = page_of(made.findings(), drawn=False)
    assert '<figure class="plot">' not in said
    assert '<figure class="diff"' in said


def test_no_regression_says_what_was_measured_in_front() -> None:
    said = page_of(replace(made.findings(Verdict.UNCHANGED, made.others()[1:2]), sentence=made.worded("no function got slower")))
    assert "<h1>No regression: no function got slower</h1>" in said
    assert said.index("not measured") < said.index("<main")


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("made_page", [lambda: page_of(made.findings()), lambda: page_of(made.hostile()), hostile_page])
def test_a_browser_shows_it_without_errors_or_requests(browser: Browser, tmp_path: Path, made_page: Callable[[], str]) -> None:
    page, seen = opened(browser, saved(tmp_path, made_page()), width=1300)
    plot = page.locator("#function-1 svg.main")
    assert plot.bounding_box()["width"] > 400  # type: ignore[index]
    assert plot.locator(".head .line").count() == 1
    page.locator("#function-1 .canvas").focus()
    page.keyboard.press("End")
    assert page.locator("#function-1 .tip").is_visible()
    assert seen == []
    page.context.close()


@pytest.mark.browser
@in_browser
def test_no_script_but_its_own_would_run(browser: Browser, tmp_path: Path) -> None:
    page, seen = opened(browser, saved(tmp_path, page_of(made.findings())), width=1300)
    page.evaluate("{ const added = document.createElement('script'); added.textContent = 'window.ran = 1'; document.body.append(added); }")
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in seen)
    page.context.close()


def told(page: Page) -> dict[str, str]:
    """Return what the tip of the first plot says, by label; "" is the call."""
    tip = page.locator("#function-1 .tip")
    labels, values = tip.locator("dt").all_inner_texts(), tip.locator("dd").all_inner_texts()
    return {"": tip.locator("strong").inner_text()} | dict(zip(labels, values, strict=True))


@pytest.mark.browser
@in_browser
def test_the_pointer_shows_a_call_with_its_inputs(browser: Browser, tmp_path: Path) -> None:
    findings = made.findings()
    load = made.Samples(findings)

    def doubled(function: int, side: Side) -> SampleTable | None:
        table = load(function, side)
        return replace(table, values=table.values * (1.0, 2.0)) if table else None

    said = html.render(build(findings, doubled))
    page, _ = opened(browser, saved(tmp_path, said), width=1300)
    dots = next(series for series in data_of(said)[0]["series"] if not series["line"] and series["side"] == "head")
    call = int(np.argmax(dots["y"]))
    page.locator("#function-1 svg.main").scroll_into_view_if_needed()
    box = page.locator("#function-1 svg.main").bounding_box()
    assert box is not None
    axes = data_of(said)[0]
    across, up = (np.log(dots[name][call] / axes[name]["logarithmic"]["low"]) for name in "xy")
    width, height = (np.log(axes[name]["logarithmic"]["high"] / axes[name]["logarithmic"]["low"]) for name in "xy")
    scale = box["width"] / MAIN.width
    x = MAIN.left + (MAIN.right - MAIN.left) * across / width
    y = MAIN.bottom - (MAIN.bottom - MAIN.top) * up / height
    page.mouse.move(box["x"] + x * scale, box["y"] + y * scale)
    assert told(page) == {
        "": "head, sort n=1000",
        "time": units.duration(1.0001 * dots["y"][call]),
        "list->size": units.count(dots["x"][call]),
        "n": dots["inputs"]["n"][0][call],
        "measured ÷ fitted": units.ratio(1.0001 * dots["ratio"][call]),
    }
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] - 2)
    assert page.locator("#function-1 .tip").is_hidden()
    page.context.close()


@pytest.mark.browser
@in_browser
def test_arrow_keys_go_from_call_to_call_and_say_what_perfdiff_would(browser: Browser, tmp_path: Path) -> None:
    said = page_of(made.findings())
    page, _ = opened(browser, saved(tmp_path, said), width=1300)
    calls = [
        (x, y, series["side"])
        for series in data_of(said)[0]["series"]
        if not series["line"]
        for x, y in zip(series["x"], series["y"], strict=True)
    ]
    page.locator("#function-1 .canvas").focus()
    for x, y, side in sorted(calls)[:40]:
        page.keyboard.press("ArrowRight")
        said_of = told(page)
        assert said_of[""] == f"{side}, sort n=1000"
        assert said_of["list->size"] == units.count(x)
        assert said_of["time"] in (units.duration(0.9999 * y), units.duration(1.0001 * y))  # ties are rounded up there, to even here
    page.keyboard.press("Escape")
    assert page.locator("#function-1 .tip").is_hidden()
    page.context.close()


def places(path: str) -> np.ndarray:
    """Return the numbers of an SVG path."""
    return np.array([float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"h0", "", path))])


@pytest.mark.browser
@in_browser
def test_axes_change_their_scale_and_back(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, saved(tmp_path, page_of(made.findings())), width=1300)
    plot = page.locator("#function-1 figure.plot").first
    curve, name = plot.locator("svg.main .head .line"), plot.locator("svg.main .name.y")
    drawn = [plot.locator(f"svg.main .head .{what}") for what in ("line", "points", "band")]
    before = [path.get_attribute("d") or "" for path in drawn]
    assert name.text_content() == "time, callees included, a call (log)"
    for axis in "xy":
        plot.locator(f"[data-axis={axis}]").click()
    assert name.text_content() == "time, callees included, a call"
    line = places(curve.get_attribute("d") or "").reshape(-1, 2)
    slopes = np.diff(line[:, 1]) / np.diff(line[:, 0])
    assert np.ptp(slopes[np.diff(line[:, 0]) > 5]) < 0.05  # a line is straight where both axes are linear
    assert plot.locator("svg.main .ticks.y text").all_text_contents()[0] == "0 ns"
    for axis in "xy":
        plot.locator(f"[data-axis={axis}]").click()
    after = [path.get_attribute("d") or "" for path in drawn]
    for one, other in zip(before, after, strict=True):
        apart = np.abs(places(one).reshape(-1, 1, 2) - places(other).reshape(1, -1, 2)).max(axis=2)
        assert apart.min(axis=0).max() <= 1  # rounded to whole units
        assert apart.min(axis=1).max() <= 1
    page.context.close()


@pytest.mark.browser
@in_browser
def test_a_side_can_be_hidden(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, saved(tmp_path, page_of(made.findings())), width=1300)
    plot = page.locator("#function-1 figure.plot").first
    plot.locator("[data-side=base]").click()
    assert plot.locator("[data-side=base]").get_attribute("aria-pressed") == "false"
    for what in ("line", "points", "band"):
        assert plot.locator(f"svg.main .base .{what}").is_hidden()
        assert plot.locator(f"svg.main .head .{what}").is_visible()
    plot.locator(".canvas").focus()
    page.keyboard.press("Home")
    assert told(page)[""].startswith("head")
    page.context.close()


@pytest.mark.browser
@in_browser
def test_functions_are_filtered_and_folded_ones_open_by_their_link(browser: Browser, tmp_path: Path) -> None:
    several = made.findings(
        functions=(*made.many(8).functions[:4], *(replace(f, info=replace(f.info, id=f.info.id + 20)) for f in made.others()))
    )
    page, _ = opened(browser, saved(tmp_path, page_of(several, drawn=False)), width=1300)
    page.locator("#filter").fill("table_hash")
    assert page.locator(".overview tbody tr:visible").count() == page.locator("article:visible").count() == 1
    assert page.locator("output[for=filter]").inner_text() == "1 of 9"
    page.locator(".overview a:visible").click()
    assert page.locator("#function-23 .facts").is_visible()
    page.locator("#filter").fill("")
    assert page.locator(".overview tbody tr:visible").count() == 9
    page.context.close()


@pytest.mark.browser
@in_browser
def test_the_tree_opens_and_folds(browser: Browser, tmp_path: Path) -> None:
    whole = made.findings(Verdict.UNCHANGED, made.others())  # without the guilty one, nothing is open
    page, _ = opened(browser, saved(tmp_path, page_of(whole, drawn=False)), width=1300)
    calls, everything = page.locator(".tree li:visible"), page.locator("[data-open]")
    assert calls.count() == 1
    everything.click()
    assert calls.count() == 2
    everything.click()
    assert calls.count() == 1
    page.locator(".tree summary").press("Enter")
    assert calls.count() == 2
    page.context.close()


@pytest.mark.browser
@in_browser
def test_the_first_key_leads_past_the_head_of_the_page(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, saved(tmp_path, page_of(made.findings())), width=1300)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]
    page.context.close()


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("made_page", [lambda: page_of(made.findings()), hostile_page])
def test_an_accessibility_check_passes(browser: Browser, tmp_path: Path, dark: bool, made_page: Callable[[], str]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, _ = opened(browser, saved(tmp_path, made_page()), width=1300, dark=dark)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    for _ in range(30):  # what was never in view has not been laid out
        page.mouse.wheel(0, 800)
        page.wait_for_timeout(20)
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert len(results.response["passes"]) > 20
    page.context.close()


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_readable_without_script_on_a_narrow_screen(browser: Browser, tmp_path: Path, dark: bool) -> None:
    page, _ = opened(browser, saved(tmp_path, page_of(made.findings())), width=360, dark=dark, script=False)
    assert page.locator("h1").inner_text().startswith("Regression: insert")
    assert page.locator("#function-1 .diff").is_visible()
    assert page.locator("#function-1 .evidence .blocks").is_visible()
    assert page.locator("#function-1 svg.main .head .line").is_visible()
    assert page.locator("#calls .tree li:visible").count() == 3
    assert page.locator(".tools:visible, .tip:visible").count() == 0
    for selector in ("header", "main", "#function-1", "#function-1 svg.main", ".overview tr >> nth=1", ".tree li >> nth=1"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360, selector
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.context.close()


@pytest.mark.browser
@in_browser
def test_dark_and_light_follow_the_reader(browser: Browser, tmp_path: Path) -> None:
    file = saved(tmp_path, page_of(made.findings()))
    grounds = []
    for dark in (False, True):
        page, _ = opened(browser, file, width=1300, dark=dark)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert grounds == ["rgb(247, 247, 245)", "rgb(19, 22, 24)"]


@pytest.mark.browser
@in_browser
def test_paper_is_white_and_holds_everything_even_for_a_reader_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, saved(tmp_path, page_of(made.findings())), width=760, dark=True)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('article')).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 760
    assert page.locator(".tools:visible, nav:visible").count() == 0
    assert page.locator("#function-3 .facts").is_visible()  # folded on a screen
    page.context.close()
