"""HTML reports on wide and narrow screens: nothing scrolls sideways or runs off the page, however long names are.

Screenshots are taken with a font of the tests' own, in which every character is the same box, so that they do not depend on the fonts of
a machine. They are compared as pictures of a fifth of their size: of what a page shows they hold where things stand, not how letters look.
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import findings as made
import long_names
import trends
from browsing import in_browser, saved
from perfdiff.report import html
from perfdiff.report.chart import MAIN
from perfdiff.report.document import build
from perfdiff.report.page import long
from perfdiff.report.plotdata import plot_data
from perfdiff.report.trends.page import page as page_of_trends

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENS = Path(__file__).parent / "screens"
WIDE, NARROW = 1200, 390
PAGES: dict[str, Callable[[], str]] = {
    "short": lambda: html.render(build(made.findings(), made.Samples(made.findings()))),
    "long": lambda: html.render(build(long_names.findings(), long_names.samples)),
    "unchanged": lambda: html.render(build(long_names.unchanged(), long_names.samples)),
    "trends": lambda: page_of_trends(trends.two()),
    "long-trends": lambda: page_of_trends(long_names.grown()),
}
# Of a page as long as that of long names, the first lines hold one of each kind of block.
MOST_HEIGHT = 9_000
SCALE = 5
# Out of 255, on average: lines as thin as a hair that another version of the browser draws half a pixel aside make less than one.
ALIKE = 2.0


@functools.cache
def font() -> str:
    """Return a font as base64 in which every character but blanks is a box of 0.5 by 0.7 em, and all are 0.6 em wide."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((50, 0))
    for place in ((50, 700), (550, 700), (550, 0)):
        pen.lineTo(place)
    pen.closePath()
    empty = TTGlyphPen(None).glyph()
    built = FontBuilder(1_000)
    built.setupGlyphOrder([".notdef", "space", "box"])
    built.setupCharacterMap({code: "space" if chr(code).isspace() else "box" for code in range(0x20, 0x3000)})
    built.setupGlyf({".notdef": empty, "space": empty, "box": pen.glyph()})
    built.setupHorizontalMetrics({".notdef": (600, 0), "space": (600, 0), "box": (600, 50)})
    built.setupHorizontalHeader(ascent=900, descent=-300)
    built.setupNameTable({"familyName": "Boxes", "styleName": "Regular"})
    built.setupOS2(sTypoAscender=900, sTypoDescender=-300, usWinAscent=900, usWinDescent=300)
    built.setupPost()
    file = io.BytesIO()
    built.save(file)
    return base64.b64encode(file.getvalue()).decode()


@contextmanager
def unfolded(browser: Browser, folder: Path, name: str, width: int, *, boxes: bool = False) -> Iterator[Page]:
    """Open a page with all that is folded, laid out to its end, with the font of boxes where asked for."""
    context = browser.new_context(viewport={"width": width, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.goto(saved(folder, PAGES[name]()).as_uri())
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.add_style_tag(content="article { content-visibility: visible !important; }")  # what was never in view would have no layout
    if boxes:
        page.add_style_tag(
            content=f"@font-face {{ font-family: Boxes; src: url(data:font/ttf;base64,{font()}); }} * {{ font-family: Boxes !important; }}"
        )
        page.evaluate("document.fonts.load('16px Boxes').then(() => document.fonts.ready)")
    yield page
    context.close()


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways_or_runs_off_the_page(browser: Browser, tmp_path: Path, name: str, width: int) -> None:
    with unfolded(browser, tmp_path, name, width) as page:
        assert page.evaluate("innerWidth") == width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        scrolling = page.evaluate("""() => [...document.querySelectorAll("body *")]
            .filter((each) => ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && each.scrollWidth > each.clientWidth + 1)
            .map((each) => `${each.tagName} in #${each.closest("section, article")?.id}: ${each.textContent.trim().slice(0, 40)}`)""")
        assert scrolling == []
        beyond = page.evaluate("""() => [...document.querySelectorAll("body :not(.skip, .skip *)")]
            .map((each) => [each, each.getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.left < 0 || box.right > innerWidth + 0.5))
            .map(([each]) => `${each.tagName} ${each.getAttribute("class")}: ${each.textContent.trim().slice(0, 40)}`)""")
        assert beyond == []


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", PAGES)
def test_screenshots_look_as_they_did(browser: Browser, tmp_path: Path, name: str, width: int) -> None:
    with unfolded(browser, tmp_path, name, width, boxes=True) as page:
        height = min(page.evaluate("document.documentElement.scrollHeight"), MOST_HEIGHT)
        page.set_viewport_size({"width": width, "height": height})
        shot = Image.open(io.BytesIO(page.screenshot())).convert("L")
    seen = shot.resize((width // SCALE, height // SCALE), Image.Resampling.BOX)
    file = SCREENS / f"{name}-{width}.png"
    seen.save(tmp_path / file.name)
    hint = f"look at {tmp_path / file.name}; where it is what a change is to make, copy it to {file}"
    assert file.exists(), hint
    kept = Image.open(file)
    assert seen.size == kept.size, hint
    assert np.abs(np.asarray(seen, float) - np.asarray(kept, float)).mean() <= ALIKE, hint


@pytest.mark.browser
@in_browser
def test_a_tall_table_on_a_narrow_screen_tells_the_column_of_each_cell(browser: Browser, tmp_path: Path) -> None:
    with unfolded(browser, tmp_path, "short", NARROW) as page:
        row = page.locator("#coverage table.many tbody tr").first
        assert page.locator("#coverage table.many thead").is_hidden()
        titles = row.locator("td").evaluate_all("cells => cells.map((cell) => getComputedStyle(cell, '::before').content)")
        assert titles[1:3] == ['"base"', '"head"']
        tops = row.locator("td").evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().top)")
        assert tops == sorted(set(tops))


@pytest.mark.browser
@in_browser
def test_names_beside_axes_stay_in_the_plot_where_an_axis_changes_its_scale(browser: Browser, tmp_path: Path) -> None:
    with unfolded(browser, tmp_path, "long", NARROW) as page:
        plot = page.locator("#function-1 figure.plot").first
        name = plot.locator("svg.main .name.x")
        before = name.text_content()
        plot.locator("[data-axis=x]").click()
        assert name.text_content() == (before or "").removesuffix(" (log)")
        box = name.bounding_box()
        assert box is not None
        assert box["x"] >= 0


def test_words_of_tables_stay_whole_but_for_names() -> None:
    document = build(long_names.findings())
    assert document.skipped is not None
    assert long(document.skipped) == {1, 2}
    short = build(made.findings())
    assert short.end_to_end is not None
    assert long(short.end_to_end) == frozenset()


def test_names_beside_axes_are_as_long_as_a_plot_is_wide() -> None:
    plot = build(long_names.findings(), long_names.samples).functions[0].plot
    assert plot is not None
    axis = plot_data(plot)["x"]
    assert axis["label"] == long_names.FEATURE
    assert len(axis["name"]) == 40 < MAIN.right / 14
    assert axis["name"].startswith("feature")
