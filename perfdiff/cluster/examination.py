"""What can be measured on a worker: `perfdiff doctor`, asked by a program of its own beside it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from perfdiff.build import holdings
from perfdiff.collect.hosts import doctor


def main() -> None:
    """Write the checks of this machine as JSON, without the variables that Dask's nanny sets."""
    nannys = json.loads(sys.argv[1])
    environment = {name: value for name, value in os.environ.items() if nannys.get(name) != value}
    checks = doctor.examine(holdings.folder(environment), environment, Path())
    json.dump([asdict(check) for check in checks], sys.stdout)


if __name__ == "__main__":
    main()
