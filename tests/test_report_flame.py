"""The flame graph of the HTML report: frames as wide as what both sides spend, zoomed, searched and walked through by keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findings as made
from browsing import in_browser, opened, saved
from perfdiff.analysis.callgraph import CallGraph, OwnCounts
from perfdiff.analysis.findings import CountFinding, Findings, Ratio, Verdict
from perfdiff.records.schema import Point
from perfdiff.report import html
from perfdiff.report.document import build
from perfdiff.report.flame import DRAWN, ROW, STRONGEST, Flame, FlameFrame, flame
from test_report_profiles import compared
from test_report_tree import MORE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OUTSIDE = "(outside of probed functions)"


def graph(findings: Findings) -> Flame:
    drawn = flame(findings, build(findings).functions)
    assert drawn is not None
    return drawn


def all_frames(frames: tuple[FlameFrame, ...]) -> Iterator[FlameFrame]:
    for frame in frames:
        yield frame
        yield from all_frames(frame.frames)


def moved(number: int, findings: Findings) -> Findings:
    """Return findings in which a function's own time differs by more than runs vary by."""

    def changed(finding: Any) -> Any:
        if finding.info.id != number:
            return finding
        return replace(finding, metrics=finding.metrics | {"self_ns": replace(finding.metrics["wall_ns"], metric="self_ns", total=MORE)})

    return replace(findings, functions=tuple(map(changed, findings.functions)))


def whole() -> Findings:
    """Return findings of `insert`, which clearly takes longer, with blocks that were counted, and runs that take longer than functions."""
    findings = moved(1, made.findings())
    assert findings.calls is not None
    counts = {"blocks": OwnCounts({1: (100.0, 900.0), 4: (100.0, 100.0)}, exact=True)}
    return replace(findings, calls=replace(findings.calls, runs_ns=(10.3e6, 418.8e6), counts=counts))


def test_frames_are_as_wide_as_the_side_that_spends_more() -> None:
    drawn = graph(compared({1: (10.0, 40.0), 2: (30.0, 20.0), 3: (0.0, 30.0)}, (None, 1, 1, 90.0), (1, 2, 1, 50.0), (1, 3, 1, 30.0)))
    (first,) = drawn.frames
    assert (first.x, first.width, first.base, first.head) == (0, 100, 40, 90)
    assert {frame.name: (frame.x, frame.width, frame.base, frame.head) for frame in first.frames} == {
        "f2": (0, 30, 100, pytest.approx(66.667)),
        "f3": (30, 30, 0, 100),
    }
    assert drawn.height == 2 * ROW


def test_only_what_differs_by_more_than_runs_vary_by_is_coloured_and_shaded_by_how_much_it_is() -> None:
    findings = compared({1: (10.0, 10.0), 2: (20.0, 90.0), 3: (20.0, 0.0)}, (None, 1, 1, 90.0), (1, 2, 1, 50.0), (1, 3, 1, 30.0))
    assert {frame.kind for frame in all_frames(graph(findings).frames)} == {"alike"}
    kinds = {frame.name: (frame.kind, frame.shade) for frame in all_frames(graph(moved(2, moved(3, findings))).frames)}
    shades = (round(STRONGEST * (part / 100) ** 0.5, 2) for part in (70, 20))
    assert kinds == {"f1": ("alike", 0), "f2": ("more", next(shades)), "f3": ("less", next(shades))}


@pytest.mark.parametrize(
    ("exact", "grew", "clear"), [(True, False, 1), (False, True, 1), (False, False, 0)], ids=["exact", "vary, and grew", "vary"]
)
def test_counts_that_vary_between_runs_are_coloured_only_where_they_clearly_differ(exact: bool, grew: bool, clear: int) -> None:
    findings = compared({1: (10.0, 10.0)}, (None, 1, 1, 90.0), counts={"blocks": OwnCounts({1: (3.0, 4.0)}, exact)})
    count = CountFinding("blocks", Point(0, "w", {}, "w"), 3, 4, Ratio(1.3, 1.1, 1.5, 5, 5), exact, grew, False, 1, 1)
    findings = replace(findings, functions=(replace(findings.functions[0], counts={"blocks": count}),))
    assert graph(findings).data["clear"] == [[0, 1, clear]]


def test_what_no_probed_function_tells_is_drawn_as_such() -> None:
    drawn = graph(compared({1: (10.0, 40.0)}, (None, 1, 1, 40.0), runs_ns=(50.0, 100.0)))
    assert [(frame.name, frame.kind, frame.width) for frame in drawn.frames] == [("f1", "alike", 40), (OUTSIDE, "unknown", 60)]
    said = html.render(build(replace(whole(), calls=CallGraph({}, ()))))
    assert 'id="flame"' not in said, "there is nothing to draw but whole runs"


def test_without_times_counts_are_drawn() -> None:
    drawn = graph(compared({1: (0.0, 0.0)}, (None, 1, 1, 0.0), counts={"blocks": OwnCounts({1: (3.0, 4.0)}, exact=True)}))
    assert drawn.data["quantities"][drawn.data["shown"]]["says"] == "calls"


def test_a_program_of_hundreds_of_functions_takes_less_than_two_hundred_kilobytes() -> None:
    rng = np.random.default_rng(3)
    own = {number: (float(base), float(head)) for number, (base, head) in enumerate(rng.lognormal(12, 2, (800, 2)), start=1)}
    calls = {(int(rng.integers(1, number)), number): (1.0, float(rng.lognormal(14, 2))) for number in range(2, 801) for _ in range(2)}
    findings = compared(own, (None, 1, 1.0, 1e9), *((*pair, *cost) for pair, cost in calls.items()))
    assert len(list(all_frames(graph(findings).frames))) <= 2 * DRAWN.most
    said = html.render(build(findings))
    assert said.index('<section id="functions">') - said.index('<section id="flame">') < 200_000


def test_frames_lead_to_sections_and_lines_that_are_there() -> None:
    findings = whole()
    said = html.render(build(findings))
    data = graph(findings).data
    assert dict(zip(data["names"], data["targets"], strict=True))["insert"] == "function-1"
    for target, lines in zip(data["targets"], data["lines"], strict=True):
        assert not target or f'<article id="{target}"' in said
        assert (f'id="{target}-lines"' in said) == bool(lines)
    assert sum(data["lines"]) >= 1
    unlinked = flame(findings, ())
    assert unlinked is not None
    assert set(unlinked.data["targets"]) == {""}


def test_strangers_names_end_no_script_and_no_frame() -> None:
    said = html.render(build(made.hostile()))
    section = said[said.index('<section id="flame">') : said.index('<section id="functions">')]
    assert "<script>alert" not in section
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in section
    found = re.search(r'<script type="application/json">(.*?)</script>', section, re.DOTALL)
    assert found
    assert any(name.startswith("<script>alert(1)</script>") for name in json.loads(found[1])["names"])


# In a browser.


def places(page: Page) -> dict[str, tuple[float, float]]:
    """Return where frames that are shown start and how wide they are, in percent of the frame above, by name."""
    data = json.loads(page.locator("#flame script").text_content() or "")
    drawn = page.locator("#flame svg.frame").evaluate_all(
        """(all) => all.map((each) => ["display", "x", "width"].map((name) => each.getAttribute(name)))"""
    )
    frames = zip((data["names"][place] for place in data["frame"]), drawn, strict=True)
    return {name: (numbers([x])[0], numbers([width])[0]) for name, (display, x, width) in frames if display != "none"}


def numbers(values: list[str | None]) -> list[float]:
    return [float((value or "0").removesuffix("%")) for value in values]


def chosen(page: Page) -> str:
    return " ".join(page.locator("#flame .chosen").inner_text().split())


@pytest.fixture(name="page")
def shown(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    page, seen = opened(browser, saved(tmp_path, html.render(build(whole()))), width=1300)
    yield page
    assert seen == []
    page.context.close()


def roughly(**frames: tuple[float, float]) -> dict[str, Any]:
    return {name: pytest.approx(place, abs=0.01) for name, place in frames.items()}


# Own times of base and head in ms: table_grow 2.0, 2.1; insert 1.2, 411.2; table_find 6.1, 5.5; outside 1.0, 0.
BOTH = 2.1 + 411.2 + 6.1
INSERT = (0.0, 100 * 411.2 / BOTH)
FIND = (INSERT[1], 100 * 6.1 / BOTH)


@pytest.mark.browser
@in_browser
def test_the_script_draws_what_the_page_shows_without_it(browser: Browser, tmp_path: Path) -> None:
    file = saved(tmp_path, html.render(build(whole())))
    attributes = """(all) => all.map((each) => ["class", "x", "y", "width", "height"].map((name) => each.getAttribute(name)))"""
    drawn = []
    for script in (False, True):
        page, _ = opened(browser, file, width=1300, script=script)
        assert page.locator("#flame svg.frame").first.is_visible()
        drawn.append(page.locator("#flame svg.frame, #flame svg.frame > rect").evaluate_all(attributes))
        page.context.close()
    assert len(drawn[0]) == 4 * 4
    for before, after in zip(*drawn, strict=True):
        assert after[0] == before[0]
        assert numbers(after[1:]) == pytest.approx(numbers(before[1:]), abs=0.01)


@pytest.mark.browser
@in_browser
def test_a_click_widens_a_frame_and_the_next_one_takes_it_back(page: Page) -> None:
    before = places(page)
    outside = {OUTSIDE: (100 * BOTH / (BOTH + 1), 100 / (BOTH + 1))}
    assert before == roughly(table_grow=(0, 100 * BOTH / (BOTH + 1)), insert=INSERT, table_find=FIND, **outside)
    insert = page.locator("#flame svg.frame", has=page.locator(":scope > text", has_text="insert")).last
    insert.click(position={"x": 60, "y": 8})
    assert places(page) == roughly(table_grow=(0, 100), insert=(0, 100))
    insert.click(position={"x": 60, "y": 8})
    assert places(page) == before


@pytest.mark.browser
@in_browser
def test_the_pointer_shows_both_sides_of_a_frame(page: Page) -> None:
    page.locator("#flame svg.frame", has=page.locator(":scope > text", has_text="insert")).last.hover(position={"x": 60, "y": 8})
    tip = page.locator("#flame .tip")
    assert "with callees 1.2 ms → 411 ms (+410 ms)" in " ".join(tip.inner_text().split())
    page.mouse.move(2, 2)
    assert tip.is_hidden()


@pytest.mark.browser
@in_browser
def test_keys_walk_from_frame_to_frame_and_its_figures_and_links_are_told(page: Page) -> None:
    page.locator("#flame .flames").focus()
    page.keyboard.press("ArrowDown")
    assert chosen(page).startswith("table_grow src/table.c:104 with callees 9.3 ms → 419 ms (+410 ms)")
    page.keyboard.press("ArrowDown")
    assert chosen(page).startswith("insert src/list.c:42 with callees 1.2 ms → 411 ms (+410 ms)")
    assert chosen(page).endswith("itself 1.2 ms → 411 ms (+410 ms) in detail its lines")
    page.keyboard.press("ArrowRight")
    assert chosen(page).startswith("table_find")
    page.keyboard.press("ArrowRight")
    assert chosen(page).startswith("table_find"), "there is none further on"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert places(page) == roughly(table_grow=(0, 100), insert=(0, 100))
    page.keyboard.press("Escape")
    assert len(places(page)) > 2
    page.keyboard.press("ArrowUp")
    assert chosen(page).startswith("table_grow")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#function-1-lines"
    assert page.locator("#function-1-lines").is_visible()
    assert page.locator("#flame .chosen").get_attribute("role") == "status"


@pytest.mark.browser
@in_browser
def test_widths_are_those_of_either_side_and_of_counts(page: Page) -> None:
    page.locator("[data-by=base]").click()
    of_base = {"insert": (0, 100 * 1.2 / 9.3), "table_find": (100 * 1.2 / 9.3, 100 * 6.1 / 9.3)}
    assert places(page) == roughly(table_grow=(0, 100 * 9.3 / 10.3), **of_base, **{OUTSIDE: (100 * 9.3 / 10.3, 100 / 10.3)})
    page.locator("[data-by=head]").click()
    assert places(page)["insert"] == pytest.approx((0, 100 * 411.2 / 418.8), abs=0.01)
    assert OUTSIDE not in places(page), "head spends nothing there"
    page.locator("[data-quantity='2']").click()
    assert page.locator("[data-quantity='2']").get_attribute("aria-pressed") == "true"
    assert page.locator("[data-quantity='0']").get_attribute("aria-pressed") == "false"
    assert places(page) == roughly(table_grow=(0, 100), insert=(0, 90))
    page.locator("[data-by=both]").click()
    assert places(page)["insert"] == pytest.approx((0, 90), abs=0.01)


@pytest.mark.browser
@in_browser
def test_a_search_marks_frames_and_says_their_part_of_both_sides(page: Page) -> None:
    page.locator("#find").fill("LIST.c")
    assert page.locator("output[for=find]").inner_text() == f"1 of 4 frames, {100 * 1.2 / 10.3:.3g} % → {100 * 411.2 / 418.8:.3g} % of all"
    assert page.locator("#flame svg.frame.hit > text").all_text_contents()[0] == "▲ insert"
    page.locator("#find").fill("table")
    said = page.locator("output[for=find]").inner_text()
    assert said.startswith("2 of 4 frames"), said
    assert said.endswith("→ 100 % of all"), "a frame within another one counts once"
    page.locator("#find").fill("")
    assert page.locator("#flame .searched").count() == 0


@pytest.mark.browser
@in_browser
def test_names_that_do_not_fit_are_cut(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, saved(tmp_path, html.render(build(whole()))), width=420)
    page.locator("[data-by=base]").click()
    shown = page.locator("#flame svg.frame > text").evaluate_all("""(all) => all
        .filter((each) => each.getAttribute("display") !== "none")
        .map((each) => [each.textContent, each.getComputedTextLength() <= each.parentNode.width.baseVal.value])""")
    assert [name for name, fits in shown if not fits] == []
    assert any(re.fullmatch("▲ in[a-z]*…", name) for name, _ in shown), shown
    page.context.close()


@pytest.mark.browser
@in_browser
def test_lines_of_a_function_that_is_folded_away_are_reached(browser: Browser, tmp_path: Path) -> None:
    findings = whole()
    folded = replace(findings.functions[0], verdict=Verdict.UNCHANGED, rank=None)
    page, _ = opened(
        browser, saved(tmp_path, html.render(build(replace(findings, functions=(folded, *findings.functions[1:]))))), width=1300
    )
    assert page.locator("#function-1-lines").is_hidden()
    page.locator("#flame .flames").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.locator("#flame .chosen a").last.click()
    assert page.locator("#function-1-lines").is_visible()
    page.context.close()
