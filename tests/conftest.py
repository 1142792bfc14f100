"""What all tests need."""

from __future__ import annotations

import signal

import pytest

# Of the integration tests those of these modules measure no time closely, nor how threads meet: they run side by side with others.
UNTIMED = frozenset(
    {
        "test_bad_input",
        "test_bisect_programs",
        "test_build",
        "test_c_branches",
        "test_c_features",
        "test_c_probes",
        "test_counted_programs",
        "test_counters",
        "test_dry_run",
        "test_emulated_pmu",
        "test_masquerade",
        "test_measuring",
        "test_papi",
        "test_places",
        "test_ticket",
        "test_toolchain",
        "test_upkeep",
    }
)

# A shell starts background jobs with Ctrl-C ignored, and programs pass that on to theirs: tests that interrupt would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in UNTIMED:
            item.add_marker("untimed")
