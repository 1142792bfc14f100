"""What all tests need."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from browsing import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Of the integration tests those of these modules measure no time closely, nor how threads meet: they run side by side with others.
UNTIMED = frozenset(
    {
        "test_bad_input",
        "test_bisect_programs",
        "test_build",
        "test_c_branches",
        "test_c_features",
        "test_c_probes",
        "test_counted_lines",
        "test_counted_programs",
        "test_counters",
        "test_dry_run",
        "test_emulated_pmu",
        "test_growth_programs",
        "test_inputs",
        "test_java_builds",
        "test_java_counting",
        "test_java_places",
        "test_layouts",
        "test_masquerade",
        "test_measuring",
        "test_outside_calls",
        "test_papi",
        "test_php_lines",
        "test_places",
        "test_python_lines",
        "test_ticket",
        "test_toolchain",
        "test_trend_programs",
        "test_upkeep",
    }
)

# These look at how threads meet, which takes several CPUs.
THREADED = frozenset({"test_pmu_counts", "test_runtime_threads", "test_sharing_programs"})

# What lasts in a cache that tests share: our own programs, compiled, and packages of Python.
LASTING = frozenset({"runtime", "python"})

# How long made-up inputs take tells what else the machine does.
settings.register_profile("perfdiff", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("perfdiff")

# A shell starts background jobs with Ctrl-C ignored, and programs pass that on to theirs: tests that interrupt would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--threaded", action="store_true", help="read no test modules but those that look at how threads meet")
    parser.addoption("--one-cpu", action="store_true", help="bind each of xdist's workers to a CPU of its own, as far as there are CPUs")


def pytest_configure(config: pytest.Config) -> None:
    name = os.environ.get("PYTEST_XDIST_WORKER", "")
    if config.getoption("--one-cpu") and name:
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpus[int(name.removeprefix("gw")) % len(cpus)]})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.suffix != ".py":
        return None
    is_threaded, is_timed = config.getoption("--threaded"), config.option.markexpr.startswith("integration and not untimed")
    is_left_out = (is_threaded and collection_path.stem not in THREADED) or (is_timed and not may_be_timed(collection_path))
    return is_left_out or None


def may_be_timed(module: Path) -> bool:
    """Return whether a module may have integration tests that measure time: reading all the others takes as long as many of these."""
    return module.stem not in UNTIMED and "mark.integration" in module.read_text()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in UNTIMED:
            item.add_marker("untimed")
        if item.path.stem in THREADED:
            item.add_marker("threaded")


@pytest.fixture(scope="session")
def lasting_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import runtimes

    return runtimes.lent_to(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def shared_cache(lasting_cache: Path) -> Path:
    """A cache in which what comparisons need beside builds is made once; neither builds nor what was measured is that of another test."""
    for entry in lasting_cache.iterdir():
        if entry.name not in LASTING:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return lasting_cache


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser; tests that ask for it are marked `browser` and `in_browser`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
