"""What is said of the programs of the two families is true: as it was measured by hand, and as it is measured again of one of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hidden_truth
from programs import HIDDEN, LESS, Case, cases, git, repository

CASES = [*cases(HIDDEN), *cases(LESS)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_recorded_ratio_is_within_the_bounds_of_what_is_said(case: Case) -> None:
    least, most = hidden_truth.BOUNDS[case.expected["verdict"]]
    assert least <= case.expected["ratio"] <= most


@pytest.mark.integration
def test_a_slower_head_is_slower_by_hand_as_well(tmp_path: Path) -> None:
    [case] = [case for case in CASES if case.name == "c-number-argument"]
    truth = hidden_truth.measured(case, tmp_path, runs=5)
    assert truth.holds(case), truth
    assert truth.outputs["base"] == truth.outputs["head"]


def test_sides_share_common_files_and_have_their_own_links_and_permissions(tmp_path: Path) -> None:
    by_name = {case.name: case for case in CASES}
    linked = repository(by_name["py-same-symlink"], tmp_path / "linked")
    assert [git(linked, "show", f"{side}:alphabet") for side in ("base", "head")] == ["v1/letters", "v2/letters"]
    absent = repository(by_name["py-absent-marker"], tmp_path / "absent")
    listed = {side: git(absent, "ls-tree", "-r", "--name-only", side).split() for side in ("base", "head")}
    assert listed["head"] == ["driver.py", "perfdiff.toml"]
    assert listed["base"] == ["driver.py", "ledger.verified", "perfdiff.toml"]
    modes = repository(by_name["php-permissions"], tmp_path / "modes")
    assert [git(modes, "ls-tree", side, "hooks/after-write").split()[0] for side in ("base", "head")] == ["100644", "100755"]


def test_a_link_to_another_file_is_another_link_though_its_time_and_length_are_the_same(tmp_path: Path) -> None:
    for side, target in (("base", "v1"), ("head", "v2")):
        link = tmp_path / "case" / side / "link"
        link.parent.mkdir(parents=True)
        link.symlink_to(target)
        os.utime(link, (1, 1), follow_symlinks=False)
    (tmp_path / "case" / "perfdiff.toml").touch()
    linked = repository(Case(tmp_path / "case", {}), tmp_path / "repository")
    assert [git(linked, "show", f"{side}:link") for side in ("base", "head")] == ["v1", "v2"]
