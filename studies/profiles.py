"""Open exported profiles in the viewers that they are for, and compare head's own times there with those that were written.

Speedscope and Firefox Profiler's command line come from npm (with Node.js 24, which the latter wants), pprof is the Go distribution's, and
`flamegraph.pl` is taken where it is on `PATH`. Speedscope is asked in Chromium for the functions that it shows at the top of its table.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import findings as made
from perfdiff import units
from perfdiff.analysis.findings import Findings
from perfdiff.report.document import build
from perfdiff.report.profiles.stacks import EXPORTED, call_stacks
from perfdiff.report.renderers import RENDERERS
from studies.support import figures
from test_report_profiles import compared

PACKAGES = ("speedscope@1.25.0", "@firefox-devtools/profiler-cli@0.10.0", "node@24")
FORMS = {"speedscope": "speedscope.json", "pprof": "pb.gz", "firefox": "firefox.json", "folded": "folded", "folded-head": "head.folded"}
FUNCTIONS = 800
SEEN_MS = 0.1  # viewers round
Times = Mapping[str, float]  # head's own time by function, in ms


def program(functions: int, seed: int = 3) -> Findings:
    """Return findings on a program whose functions have one or two callers each, at random."""
    rng = np.random.default_rng(seed)
    own = {number: (float(base), float(head)) for number, (base, head) in enumerate(rng.lognormal(12, 2, (functions, 2)), start=1)}
    pairs = {(int(rng.integers(1, number)), number) for number in range(2, functions + 1) for _ in range(2)}
    calls = [(*pair, float(rng.integers(1, 9)), float(rng.lognormal(14, 2))) for pair in sorted(pairs)]
    return compared(own, (None, 1, 1.0, 1e9), *calls)


def own_times(findings: Findings) -> Times:
    """Return what perfdiff writes of head, by the names of frames."""
    stacks = call_stacks(findings, EXPORTED)
    sums: dict[str, float] = defaultdict(float)
    for stack, own in zip(stacks.frame, stacks.own[:, 0, 1].tolist(), strict=True):
        sums[stacks.frames[stack].name] += own / 1e6
    return sums


def in_speedscope(file: Path, modules: Path) -> Times:
    """Return what speedscope shows at the top of its table."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((modules / "speedscope" / "dist" / "release" / "index.html").as_uri())
        page.set_input_files("input[type=file]", str(file))
        page.get_by_text("Sandwich").click(timeout=120_000)
        if file.suffix == ".json":
            page.keyboard.press("n")  # base's time comes first
        page.get_by_text("Symbol Name").wait_for()
        page.wait_for_timeout(1_000)
        lines = page.inner_text("body").split("Symbol Name\n")[1].splitlines()
        browser.close()
    rows = zip(lines[1::3], lines[2::3], strict=False)
    return {name.strip(): in_ms(own.split("(")[0].strip()) for own, name in rows}


def in_pprof(file: Path, _: Path) -> Times:
    """Return what pprof says of all functions."""
    command = ["go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-sample_index=time_head", "-unit=ns", str(file)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^ *(\d+)(?:ns)? +\S+% +\S+% +\d+(?:ns)? +\S+% +(.+)$", said, re.MULTILINE)
    return {name: float(own) / 1e6 for own, name in rows}


def in_firefox(file: Path, modules: Path) -> Times:
    """Return what Firefox Profiler says of all functions of the thread that is selected: head's time."""
    command = [str(modules / ".bin" / "node"), str(modules / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js")]
    try:
        subprocess.run([*command, "load", str(file)], check=True, capture_output=True)
        said = subprocess.run(
            [*command, "thread", "functions", "--limit", "0", "--json"], check=True, capture_output=True, text=True
        ).stdout
    finally:
        subprocess.run([*command, "stop"], check=False, capture_output=True)
    return {function["name"]: function["selfSamples"] for function in json.loads(said)["functions"]}


def in_flamegraph(file: Path, _: Path) -> Times:
    """Return what `flamegraph.pl` draws: with callees, less that of the frames within, which stand in no order; here the frames alone."""
    drawn = subprocess.run(["flamegraph.pl", "--minwidth", "0", str(file)], check=True, capture_output=True, text=True)
    if drawn.stderr:
        raise ValueError(drawn.stderr)
    return {name: float("nan") for name in re.findall(r"<title>(.*?) \(", drawn.stdout)}


def in_ms(text: str) -> float:
    """Return a time as speedscope writes it in milliseconds; folded stacks have no unit, ours are in nanoseconds."""
    number, unit = re.fullmatch(r"([\d.,]+) ?([a-zµμ]*)", text).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * {"": 1e-6, "s": 1e3, "ms": 1.0, "µs": 1e-3, "μs": 1e-3, "us": 1e-3, "ns": 1e-6}[unit]


VIEWERS: Mapping[str, tuple[str, str, Callable[[Path, Path], Times]]] = {
    "speedscope 1.25.0": ("speedscope", "chromium", in_speedscope),
    "speedscope 1.25.0, folded": ("folded-head", "chromium", in_speedscope),
    "go tool pprof": ("pprof", "go", in_pprof),
    "Firefox Profiler's CLI 0.10.0": ("firefox", "npm", in_firefox),
    "flamegraph.pl, differential": ("folded", "flamegraph.pl", in_flamegraph),
}


def main() -> None:
    """Print the table."""
    programs = {"three functions": made.findings(), f"{FUNCTIONS} functions": program(FUNCTIONS)}
    columns = ("program", "viewer", "file", "functions told", "largest difference", "opened in")
    with tempfile.TemporaryDirectory() as room, figures.printed("Exported profiles in their viewers", *columns) as table:
        subprocess.run(["npm", "install", "--silent", "--prefix", room, *PACKAGES], check=True)
        for title, findings in programs.items():
            expected = own_times(findings)
            for viewer, (form, needs, times) in VIEWERS.items():
                if not shutil.which(needs):
                    table.add(title, viewer, "–", f"{needs} is not installed", "–", "–")
                    continue
                rendered = RENDERERS[form](build(findings))
                file = Path(room) / f"perf.{FORMS[form]}"
                file.write_bytes(rendered if isinstance(rendered, bytes) else rendered.encode())
                start = time.perf_counter()
                told = times(file, Path(room) / "node_modules")
                taken = time.perf_counter() - start
                apart = [abs(own / expected[name] - 1) for name, own in told.items() if expected.get(name, 0.0) > SEEN_MS]
                worst = f"{100 * np.nanmax(apart):.2g} %" if np.isfinite(apart).any() else "no times are told"
                table.add(
                    title,
                    viewer,
                    units.size(file.stat().st_size),
                    f"{len(told.keys() & expected.keys())} of {len(expected)}",
                    worst,
                    f"{taken:.1f} s",
                )
