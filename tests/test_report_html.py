"""The HTML report: one inert file, drawn by itself, readable in any browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findings as made
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.report import html
from perfdiff.report.document import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def page_of(findings: Findings, *, drawn: bool = True) -> str:
    return html.render(build(findings, made.Samples(findings) if drawn else None))


def test_points_and_curves_of_both_sides_are_drawn() -> None:
    said = page_of(made.findings())
    article = said[said.index('id="function-1"') : said.index('id="function-2"')]
    drawn = re.findall(r'<g class="(base|head)"><path class="(points|line)" d="M\d', article)
    assert sorted(drawn[-4:]) == [("base", "line"), ("base", "points"), ("head", "line"), ("head", "points")]
    assert "<title id=" in article
    assert "logarithmic" in article


def test_changed_lines_stand_beside_the_plot_with_their_numbers() -> None:
    said = page_of(made.findings())
    assert re.search(r'<tbody class="removed">\s*<tr><td>46<td><td>-     if \(!list-&gt;tail\)', said)
    assert re.search(r'<tbody class="added">\s*<tr><td><td>49<td>\+     while \(\*place\)', said)


def test_the_file_asks_for_nothing_and_runs_nothing() -> None:
    said = page_of(made.findings())
    assert re.findall(r"(?:src|href)=\"(?!#)", said) == []
    assert re.findall(r"url\(|@import|<script|javascript:|\son\w+=", said) == []
    assert "default-src 'none'" in said


def test_hostile_names_stay_text() -> None:
    said = page_of(made.hostile())
    assert "<script" not in said
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_code_that_a_sentence_quotes_is_set_as_code() -> None:
    assert "The new loop <code>while (*place)</code> (src/list.c:49) runs" in page_of(made.findings())


def test_fifty_functions_stay_under_two_megabytes() -> None:
    assert len(page_of(made.many(50)).encode()) < 2_000_000


def test_a_report_of_hundreds_of_functions_says_what_it_leaves_out() -> None:
    said = page_of(made.many(150), drawn=False)
    assert said.count("<article") == 100
    assert "50 more functions are in the table above only" in said


def test_the_same_findings_give_the_same_bytes() -> None:
    assert page_of(made.findings()) == page_of(made.findings())


def test_without_samples_everything_but_the_plots_is_there() -> None:
    said = page_of(made.findings(), drawn=False)
    assert '<figure class="plot">' not in said
    assert '<figure class="diff">' in said


def test_no_regression_says_what_was_measured_in_front() -> None:
    said = page_of(replace(made.findings(Verdict.UNCHANGED, made.others()[1:2]), sentence="no function got slower"))
    assert "<h1>No regression: no function got slower</h1>" in said
    assert said.index("not measured") < said.index("<main>")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def opened(browser: Browser, file: Path, *, width: int, dark: bool = False, script: bool = True) -> tuple[Page, list[str]]:
    """Open a page and return it with everything it logged or requested beyond itself."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", java_script_enabled=script
    )
    page = context.new_page()
    seen: list[str] = []
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("request", lambda request: seen.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    return page, seen


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("hostile", [False, True])
def test_a_browser_shows_it_without_errors_or_requests(browser: Browser, tmp_path: Path, hostile: bool) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(made.hostile() if hostile else made.findings()), encoding="utf-8")
    page, seen = opened(browser, file, width=1300)
    assert seen == []
    plot = page.locator("#function-1 .plot > svg")
    assert plot.bounding_box()["width"] > 400  # type: ignore[index]
    assert plot.locator(".head .line").count() == 1
    assert hostile or plot.locator(".head .points").get_attribute("d").count("h0") > 200  # type: ignore[union-attr]
    page.context.close()


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_readable_without_script_on_a_narrow_screen(browser: Browser, tmp_path: Path, dark: bool) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(made.findings()), encoding="utf-8")
    page, _ = opened(browser, file, width=400, dark=dark, script=False)
    assert page.locator("h1").inner_text().startswith("Regression: insert")
    assert page.locator("#function-1 .diff").is_visible()
    assert page.locator("#function-1 .evidence .blocks").is_visible()
    for selector in ("header", "main", "#function-1", "#function-1 .plot > svg", ".overview tr >> nth=1"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400, selector
    page.context.close()


@pytest.mark.browser
@in_browser
def test_dark_and_light_follow_the_reader(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(made.findings()), encoding="utf-8")
    grounds = []
    for dark in (False, True):
        page, _ = opened(browser, file, width=1300, dark=dark)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert grounds == ["rgb(251, 251, 250)", "rgb(20, 23, 26)"]


@pytest.mark.browser
@in_browser
def test_paper_is_white_and_holds_everything_even_for_a_reader_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(made.findings()), encoding="utf-8")
    page, _ = opened(browser, file, width=760, dark=True)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('article')).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 760
    page.context.close()
