"""Print which inputs a search finds where fixes of upstream projects are reversed: base is the fix of a slow-down, head its parent.

`fixtures/search-upstream` has the projects. They are cloned from GitHub, or from bare repositories OWNER+NAME in a folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from perfdiff import configuration, searching
from perfdiff.analysis.findings import Verdict
from perfdiff.errors import PerfdiffError
from perfdiff.fuzzing.findings import SearchFindings
from perfdiff.fuzzing.search import SearchLimits
from perfdiff.progress import Silent
from perfdiff.report import slow_inputs
from perfdiff.request import Request
from programs import git
from studies import FIXTURES
from studies.support import figures

_PROJECTS = FIXTURES / "search-upstream"
_SIZE = 64 << 10


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="PROJECT", help="projects (default: all)")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="for each search (default: %(default)s)")
    parser.add_argument("--mirrors", type=Path, metavar="FOLDER", help="of bare repositories OWNER+NAME (default: they are cloned)")
    options = parser.parse_args()
    found = tried = 0
    with tempfile.TemporaryDirectory() as room, figures.printed("Upstream fixes, reversed", "fix", "answer", "input", "s") as table:
        for folder in sorted(path.parent for path in _PROJECTS.glob("*/fixes.toml")):
            if options.only and folder.name not in options.only:
                continue
            project = tomllib.loads((folder / "fixes.toml").read_text())
            for fix in project["fix"]:
                label, tried = f"{folder.name} {fix['commit'][:7]}", tried + 1
                try:
                    checkout = _checkout(folder, project, fix["commit"], Path(room), options.mirrors)
                    findings = _searched(checkout, fix["commit"], Path(room), options.seconds)
                except PerfdiffError as error:
                    print(f"{label}: {error}", file=sys.stderr, flush=True)
                    continue
                found += findings.verdict is Verdict.REGRESSION
                table.add(label, findings.verdict.value, *_shown(findings), f"{findings.seconds:.0f}")
                print(f"{label}: {slow_inputs.answer(findings)}", file=sys.stderr, flush=True)
        table.remarks.append(f"{found} of {tried} told as slower on an input that was found.")


def _checkout(folder: Path, project: dict[str, str], fix: str, room: Path, mirrors: Path | None) -> Path:
    """Return a checkout of a fix, with the program that runs the project, and its samples."""
    checkout = room / f"{folder.name}-{fix[:7]}"
    owner, name = project["repository"].split("/")[-2:]
    source = project["repository"] if mirrors is None else str(mirrors / f"{owner}+{name}" / "repo")
    git(room, "clone", "-q", "--no-checkout", source, checkout.name)
    git(checkout, "checkout", "-q", fix)
    for file in ("perfdiff.toml", "searched.py"):
        shutil.copy(folder / file, checkout / file)
    shutil.copytree(folder / project["samples"], checkout / "samples")
    return checkout


def _searched(checkout: Path, fix: str, room: Path, seconds: float) -> SearchFindings:
    config = configuration.load(checkout, environment={})
    asked = Request(checkout, (fix, f"{fix}^1"), config, room / "cache", dict(os.environ))
    limits = SearchLimits(_SIZE, seconds, seed=config.compare.seed)
    return searching.search(asked, Silent(), limits, room / f"{checkout.name}-kept")


def _shown(findings: SearchFindings) -> tuple[str]:
    shown = next((shown for shown in findings.inputs if shown.verdict is findings.verdict), None)
    return (slow_inputs.described(shown.entry.family, shown.entry.times) if shown else "",)
