"""What can be measured on a worker: `perfdiff doctor`, asked by a program of its own beside it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from perfdiff import storage
from perfdiff.collect import doctor


def main() -> None:
    """Write the checks of this machine as JSON."""
    checks = doctor.examine(storage.folder(os.environ), os.environ, Path())
    json.dump([asdict(check) for check in checks], sys.stdout)


if __name__ == "__main__":
    main()
