"""Print how often perfdiff is right: annotations, false alarms, power, intervals, and the same questions put to other tools.

Without options, the whole study: most of a day on a quiet machine; `--size long` takes an hour or two. Everything is seeded; a line is
printed per measurement, a table per part. With `--room`, repositories, builds and measurements are kept there, and the same command goes
on where it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from studies.accuracy import classes, null, peers, power, recovery, usleep
from studies.support.sizes import Size

PARTS = {
    "a": usleep.run,
    "b": classes.run,
    "c": null.run,
    "d": power.run,
    "e": recovery.run,
    "f": peers.run,
}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), metavar="LETTER", help="parts of the study (default: all)")
    parser.add_argument(
        "--size", type=Size, choices=list(Size), default=Size.FULL, help="how much is measured (default: full, most of a day)"
    )
    parser.add_argument("--quick", action="store_const", const=Size.QUICK, dest="size", help="the same as --size quick")
    parser.add_argument("--room", type=Path, help="keep repositories, builds and measurements in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        for part in options.part:
            PARTS[part](options.size, options.room or Path(passing))
