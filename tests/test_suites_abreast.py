"""Listings of both sides at the same time: what one side's tests keep the other's from is tried again, and no case is lost by it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff.collect.execution import kernel
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs.suites import ListedCases, Suites
from perfdiff.collect.runs.targets import Target
from perfdiff.config import Suite, WorkloadConfig
from perfdiff.errors import WorkloadError
from perfdiff.records.schema import Side

# A suite whose listing tells how many others were at work with it, and whose tests fail where they cannot have a file outside their trees.
LISTS = """
import json, os, pathlib, sys, time

ours, place, how = pathlib.Path.cwd().name, pathlib.Path(sys.argv[1]), sys.argv[2]
(place / f"began-{ours}").touch()
is_again = (place / "told").exists()
until = time.monotonic() + (0.0 if is_again else float(os.environ["MEETS_S"]))
while len(list(place.glob("began-*"))) < 2 and time.monotonic() < until:
    time.sleep(0.01)
is_alone = len(list(place.glob("began-*"))) < 2
passes = is_alone or (how == "first" and ours == "base") or (how == "last" and ours == "head") or how == "none"
tests = ["other"] + ["shared"] * passes
why = f"{ours} found it taken" if how == "both" else f"broken after {os.getpid()} s"
listing = {
    "benchmarks": [
        {"name": name, "command": "true", "setup": "", "parameters": {}, "points": [[[], 0.01, True]]} for name in tests
    ],
    "failures": {} if passes else {"shared": why},
    "start_s": 0.0,
}
time.sleep(0.3)
pathlib.Path(os.environ["PERFDIFF_LISTING"]).write_text(json.dumps(listing))
(place / f"began-{ours}").unlink()
(place / "told").open("a").write(f"{ours} {'alone' if is_alone else 'beside'}\\n")
"""


def listed(folder: Path, how: str, *, abreast: bool = True, alone: bool = False) -> tuple[ListedCases, list[str]]:
    """List a suite of two sides; return what is in it, and how each listing ran."""
    targets: Mapping[Side, Target] = {side: Target(folder / side / side, None, tree=folder / side / side) for side in Side}
    for side in Side:
        (folder / side / side).mkdir(parents=True)
    (folder / "lists.py").write_text(LISTS)
    (folder / "room").mkdir()
    command = f"{sys.executable} {folder}/lists.py {folder} {how}"
    config = WorkloadConfig("suite", command, suite=Suite("asv", ""), alone=alone)
    environment = {"PATH": os.environ["PATH"], "MEETS_S": "10" if abreast and not alone else "0"}
    cases = Suites(targets, environment, folder / "room", abreast=abreast).cases(config, ProcessExecutor())
    return cases, sorted((folder / "told").read_text().splitlines())


def names(cases: ListedCases) -> list[str]:
    return sorted(case.name for case in cases.cases)


def test_both_sides_are_listed_at_the_same_time(tmp_path: Path) -> None:
    cases, told = listed(tmp_path, "none")
    assert names(cases) == ["other", "shared"]
    assert told == ["base beside", "head beside"]


@pytest.mark.parametrize("how", ["first", "last"])
def test_what_fails_beside_the_other_side_on_one_side_alone_is_tried_again(tmp_path: Path, how: str) -> None:
    cases, told = listed(tmp_path, how)
    assert names(cases) == ["other", "shared"]
    assert not cases.notes
    assert len(told) == 2, "the case alone ran again"


def test_what_fails_on_both_sides_for_other_reasons_has_each_listed_alone(tmp_path: Path) -> None:
    cases, told = listed(tmp_path, "both")
    assert told == ["base alone", "base beside", "head alone", "head beside"]
    assert names(cases) == ["other", "shared"]


def test_what_fails_on_both_sides_for_one_reason_fails(tmp_path: Path) -> None:
    cases, told = listed(tmp_path, "same")
    assert names(cases) == ["other"]
    assert told == ["base beside", "head beside"]


@pytest.mark.parametrize(("abreast", "alone"), [(False, False), (True, True)])
def test_sides_are_listed_one_after_the_other_where_cpus_are_few_or_somebody_denies_it(tmp_path: Path, abreast: bool, alone: bool) -> None:
    cases, told = listed(tmp_path, "none", abreast=abreast, alone=alone)
    assert names(cases) == ["other", "shared"]
    assert told == ["base alone", "head alone"]


def test_a_listing_that_fails_beside_the_other_is_told_as_it_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    targets = {side: Target(tmp_path / side, None, tree=tmp_path / side) for side in Side}
    for side in Side:
        (tmp_path / side).mkdir()
    config = WorkloadConfig("suite", "echo no such framework >&2; exit 3", suite=Suite("asv", ""))
    with pytest.raises(WorkloadError, match="no such framework"):
        Suites(targets, {"PATH": os.environ["PATH"]}, tmp_path / "room", abreast=True).cases(config, ProcessExecutor())


@pytest.mark.parametrize(
    ("quota", "busy_share", "expected"),
    [("max 100000", 0.0, 4.0), ("max 100000", 0.5, 2.0), ("150000 100000", 0.0, 1.5), ("", 0.0, 4.0)],
)
def test_cpus_are_idle_as_far_as_others_and_a_containers_quota_leave_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, busy_share: float, expected: float
) -> None:
    ticks = iter([(100, 0, 1000), (100 + round(80 * busy_share), 0, 1080)])
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(kernel, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(kernel, "machine_ticks", lambda: next(ticks))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert kernel.idle_cpus() == pytest.approx(expected)


def test_no_cpu_is_known_to_be_idle_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "machine_ticks", lambda: None)
    assert kernel.idle_cpus() == 0.0
