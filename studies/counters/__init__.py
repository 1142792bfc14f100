"""Measure what counts are worth: defects found and causes named, what counting costs, and whether counts repeat."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import sharing
from studies.counters import detection, repeats, slowdown, tiny


def _run(name: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "studies", name, *arguments], check=True)


def _detection(options: argparse.Namespace, room: Path) -> None:
    detection.study(options.case, detection.SIZES[options.size], room)


def _slowdown(options: argparse.Namespace, room: Path) -> None:
    _run("counted")
    slowdown.study(options.case, room)


def _probes(options: argparse.Namespace, room: Path) -> None:
    _run("probe_counters", "--size", options.size)


def _detectors(options: argparse.Namespace, room: Path) -> None:
    plots = ("--plots", str(options.plots)) if options.plots else ()
    _run("counters.detectors", "--size", options.size, *plots)


def _repeats(options: argparse.Namespace, room: Path) -> None:
    repeats.study(options.case, room)


def _tiny(options: argparse.Namespace, room: Path) -> None:
    tiny.study(room / "tiny")


PARTS: Mapping[str, Callable[[argparse.Namespace, Path], None]] = {
    "detection": _detection,  # defects and harmless changes, perfdiff and the detectors alone
    "tiny": _tiny,  # functions of some nanoseconds whose threads get in each other's way
    "slowdown": _slowdown,  # the counted build beside callgrind: kernels, and the programs as they are compared
    "probes": _probes,  # a probe with 0, 1, 4 and 8 counters
    "detectors": _detectors,  # training time, shared models, ROC
    "repeats": _repeats,  # counts of one thread, run after run
}


def main() -> None:
    """Print the tables of all parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [program.name for program in sharing.programs()]
    parser.add_argument(
        "--part", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--size", choices=detection.SIZES, default="short", help="how much is run (default: short)")
    parser.add_argument("--case", nargs="+", choices=names, default=names, metavar="NAME", help="programs (default: all)")
    parser.add_argument("--room", type=Path, help="keep repositories, builds and measurements in this folder, and go on from there")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw ROC curves into this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        for part in options.part:
            PARTS[part](options, options.room or Path(passing))
