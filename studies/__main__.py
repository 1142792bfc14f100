"""`scripts/bench [NAME [OPTION…]]`: run the study of this name, or list all."""

from __future__ import annotations

import importlib
import sys

from studies.support.catalogue import FOLDERS, names


def main() -> None:
    """Run what the command line names, and exit as it does."""
    if len(sys.argv) == 1:
        print("\n".join(f"{name:16} {line}" for name, line in names().items()))
        return
    name = sys.argv.pop(1)
    sys.argv[0] = f"scripts/bench {name}"
    if name.partition(".")[0] not in names():
        sys.exit(f"there is no study '{name}'; `scripts/bench` lists all")
    sys.exit(FOLDERS[name]() if name in FOLDERS else importlib.import_module(f"studies.{name}").main())


main()
