"""Print how large pages are, how long they take to be written, and when a browser shows the first of them.

In the report of 50 functions every one has regressed, with its plot of 2,000 calls, and a change of 120 lines: more than real reports hold.
The history is that of 500 functions over 10,000 revisions.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import findings as made
from perfdiff import units
from perfdiff.records.schema import Revision, Side
from perfdiff.report import document, history_page, html
from studies.support import figures

FUNCTIONS = 50
LOADS = 5
SERIES, REVISIONS = 500, 10_000
RENDERED_BAR_S, OPENED_BAR_S = 2.0, 1.0


def opened(file: Path) -> list[tuple[float, float]]:
    """Return the seconds to a page's first paint, and until it answers to its user, for several loads by a browser that runs already."""
    loads = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(LOADS):
            page = browser.new_page(viewport={"width": 1300, "height": 900})
            page.goto(file.as_uri())
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            first, ready = page.evaluate(
                "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
                " performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd]"
            )
            loads.append((first / 1000, ready / 1000))
            page.close()
        browser.close()
    return loads


def made_history() -> str:
    """Return the page of a history whose costs wander, with a change point in each third function."""
    rng = np.random.default_rng(1)
    series = []
    for number in range(SERIES):
        costs = 1e6 * np.exp(np.cumsum(0.002 * rng.standard_normal(REVISIONS)))
        changes = (history_page.PlottedChange(REVISIONS // 2, "a call ×1.50 [1.45, 1.55]", is_rise=True),) if number % 3 == 0 else ()
        series.append(history_page.CostSeries(f"function_{number}", f"src/file_{number % 20}.c", "ns", costs, changes))
    revisions = [Revision(f"{number:010x}", None, f"Change something for the {number}th time") for number in range(REVISIONS)]
    return history_page.page(history_page.PageHeading("profile", "own time", "Made up"), revisions, series, ())


def measured(title: str, size_bar_bytes: float, write: Callable[[], str]) -> None:
    """Write a page twice, open it, and print what that took."""
    with tempfile.TemporaryDirectory() as folder, figures.printed(title, "what", "figure", "bar") as table:
        for how in ("at first", "again"):
            start, worked = time.perf_counter(), time.process_time()
            said = write()
            taken, worked = time.perf_counter() - start, time.process_time() - worked
            verdict = f"{RENDERED_BAR_S:.0f} s, {figures.against(taken, RENDERED_BAR_S)}"
            table.add(f"written, {how}", f"{taken:.2f} s, of these {worked:.2f} s of CPU", verdict)
        file = Path(folder) / "page.html"
        file.write_text(said, encoding="utf-8")
        size = len(said.encode())
        table.add("size", units.size(size), f"{units.size(size_bar_bytes)}, {figures.against(size, size_bar_bytes)}")
        for what, seen in zip(("first paint", "ready"), zip(*opened(file), strict=True), strict=True):
            worst = f"{statistics.median(seen):.2f} s, at worst {max(seen):.2f} s"
            table.add(f"{what} in Chromium, {LOADS} loads", worst, f"{OPENED_BAR_S:.0f} s, {figures.against(max(seen), OPENED_BAR_S)}")


def main() -> None:
    """Print a table of each page."""
    findings = made.many(FUNCTIONS)
    load = made.Samples(findings)
    tables = {(finding.info.id, side): load(finding.info.id, side) for finding in findings.functions for side in Side}

    def report() -> str:
        return html.render(document.build(findings, lambda function, side: tables[function, side]))

    measured(f"A report of {FUNCTIONS} functions", 2e6, report)
    measured(f"A history of {SERIES} functions over {REVISIONS:,} revisions", 30e6, made_history)
