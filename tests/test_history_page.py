"""The page of a history: complete without its script, searched and walked through by keyboard with it, and safe whatever it is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from browsing import in_browser, opened, saved
from perfdiff import cli
from perfdiff.analysis.annotations.profiles import profiles
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Revision
from perfdiff.report import history_page
from perfdiff.report.blocks import Items
from perfdiff.report.history_page import CostSeries, PlottedChange
from test_log import recording
from test_log import told as history_of
from test_profile import recorder  # noqa: F401 (a fixture)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FACTORS = (1.0, 1.0, 1.4, 1.4, 0.7)
HOSTILE = "<script>alert(1)</script>\x1b"


def grown() -> str:
    """Return the page of five revisions in which `insert` gets slower, then faster, and a function of an evil name stays as it is."""
    rng = np.random.default_rng(7)
    functions = [{"insert": factor, HOSTILE: 0.5} for factor in FACTORS]
    recordings = [recording(rng, f"r{number}", functions=costs) for number, costs in enumerate(functions)]
    return history_page.render(profiles(recordings, CompareConfig(), lambda _: None))


def test_the_table_tells_all_without_a_script_and_names_stay_texts() -> None:
    page = grown()
    assert page.count('<svg class="course"') == 4
    assert "1 MB → 1 MB" in page
    assert re.search(r'class="regression">r2: a call ×1\.4\d? \[', page)
    assert re.search(r'class="improvement">r4: a call ×0\.5\d? \[', page)
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "script-src &#39;sha256-" in page


def test_a_function_alone_has_a_line_for_each_metric() -> None:
    rng = np.random.default_rng(8)
    found = history_of(*(recording(rng, f"r{number}", drift=factor, alloc=16.0) for number, factor in enumerate(FACTORS)))
    page = history_page.render(found)
    names = [json.loads(text)["name"] for text in re.findall(r'<script type="application/json">(.+?)</script>', page)]
    assert len(names) > 1
    assert all(name.startswith("insert: ") for name in names)


@pytest.mark.parametrize(
    ("values", "line"),
    [([1, 2], "M2 12.0L118 2.0"), ([np.nan, np.nan], ""), ([0], "M2 22.0"), ([1, np.nan, 1], "M2 2.0L118 2.0")],
)
def test_a_line_in_the_table_starts_at_nothing(values: list[float], line: str) -> None:
    assert CostSeries("f", "a.c", "ns", np.array(values, float), ()).line == line


def test_a_line_of_many_revisions_has_two_points_a_pixel_at_most() -> None:
    values = np.arange(10_000.0) % 7
    assert CostSeries("f", "a.c", "ns", values, ()).line.count("L") < 2 * 120


def test_a_cost_that_begins_with_nothing_has_no_ratio() -> None:
    series = CostSeries("f", "a.c", "ns", np.array([0.0, 5.0]), (PlottedChange(1, "from nothing", is_rise=True),))
    assert series.ratio is None
    assert series.says == "0 ns → 5 ns"


@pytest.mark.usefixtures("recorder")
@pytest.mark.parametrize("arguments", [["profile", "v1", "HEAD"], ["profile", "v1"], ["log", "insert", "v1", "HEAD"]])
def test_both_commands_write_it(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([*arguments, "-q", "-o", "history.html", "--build", "make", "--", "./a"])
    assert left.value.code is None or left.value.code == 0
    assert "insert" in Path("history.html").read_text(encoding="utf-8")


def opened_page(browser: Browser, tmp_path: Path, width: int = 1200) -> Page:
    page, seen = opened(browser, saved(tmp_path, grown()), width=width)
    assert seen == []
    return page


@pytest.mark.browser
@in_browser
def test_the_function_that_changed_is_drawn_first_and_keys_walk_its_changes(browser: Browser, tmp_path: Path) -> None:
    page = opened_page(browser, tmp_path)
    assert page.inner_text("#drawn") == "insert"
    assert page.locator(".drawn circle.rise").count() == 1
    assert page.locator(".drawn circle.fall").count() == 1
    page.focus(".drawn svg")
    for key, revision in (
        ("ArrowRight", "r0"),
        ("ArrowDown", "r2"),
        ("ArrowDown", "r4"),
        ("ArrowUp", "r2"),
        ("ArrowLeft", "r1"),
        ("End", "r4"),
    ):
        page.keyboard.press(key)
        assert page.inner_text(".drawn output").startswith(f"{revision} · "), key
    assert "a call ×0.5" in page.inner_text(".drawn output")
    page.context.close()


@pytest.mark.browser
@in_browser
def test_a_history_without_any_costs_is_a_page_as_well(browser: Browser, tmp_path: Path) -> None:
    heading = history_page.PageHeading("log", "cost of a call", "insert: No change")
    said = history_page.page(heading, [Revision("r0", None, "")], [], [Items("Without costs", ("r0: does not build",))])
    page, seen = opened(browser, saved(tmp_path, said), width=1200)
    assert seen == []
    assert "r0: does not build" in page.inner_text("main")
    page.context.close()


@pytest.mark.browser
@in_browser
def test_another_function_is_chosen_searched_and_sorted(browser: Browser, tmp_path: Path) -> None:
    page = opened_page(browser, tmp_path)
    page.get_by_role("button", name="all functions").click()
    assert page.inner_text("#drawn") == "all functions"
    page.fill("#find", "INS")
    assert page.locator(".histories tbody tr:visible").count() == 1
    assert page.inner_text("output[for='find changed']") == "1 of 4"
    page.fill("#find", "")
    page.get_by_role("button", name="ratio").click()
    ratios = [float(cell.get_attribute("data-value") or "nan") for cell in page.locator(".histories tbody td:nth-child(4)").all()]
    assert ratios == sorted(ratios, reverse=True)
    page.context.close()


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_never_scrolls_sideways(browser: Browser, tmp_path: Path, width: int) -> None:
    page = opened_page(browser, tmp_path, width)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.context.close()
