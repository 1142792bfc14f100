"""Print how large a page of 50 functions is, how long it takes to be written, and when a browser shows the first of it.

Every function has regressed, with its plot of 2,000 calls, and a change of 120 lines: more than real reports hold.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import findings as made
from perfdiff import units
from perfdiff.records.schema import Side
from perfdiff.report import document, html
from studies.support import figures

FUNCTIONS = 50
LOADS = 5
SIZE_BAR_BYTES, RENDERED_BAR_S, PAINT_BAR_S = 2e6, 2.0, 1.0


def paints(file: Path) -> list[float]:
    """Return the seconds from asking for a page to its first paint, for several loads by a browser that runs already."""
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(LOADS):
            page = browser.new_page(viewport={"width": 1300, "height": 900})
            page.goto(file.as_uri())
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            found.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            page.close()
        browser.close()
    return found


def main() -> None:
    """Print the table."""
    findings = made.many(FUNCTIONS)
    load = made.Samples(findings)
    tables = {(finding.info.id, side): load(finding.info.id, side) for finding in findings.functions for side in Side}
    with tempfile.TemporaryDirectory() as folder, figures.printed("A page of 50 functions", "what", "figure", "bar") as table:
        for how in ("at first", "again"):
            start, worked = time.perf_counter(), time.process_time()
            said = html.render(document.build(findings, lambda function, side: tables[function, side]))
            taken, worked = time.perf_counter() - start, time.process_time() - worked
            verdict = f"{RENDERED_BAR_S:.0f} s, {figures.against(taken, RENDERED_BAR_S)}"
            table.add(f"written, {how}", f"{taken:.2f} s, of these {worked:.2f} s of CPU", verdict)
        file = Path(folder) / "report.html"
        file.write_text(said, encoding="utf-8")
        size = len(said.encode())
        table.add("size", units.size(size), f"2 MB, {figures.against(size, SIZE_BAR_BYTES)}")
        seen = paints(file)
        worst = f"{statistics.median(seen):.2f} s, at worst {max(seen):.2f} s"
        table.add(f"first paint in Chromium, {LOADS} loads", worst, f"{PAINT_BAR_S:.0f} s, {figures.against(max(seen), PAINT_BAR_S)}")
