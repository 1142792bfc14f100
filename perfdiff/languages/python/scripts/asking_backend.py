"""Ask the back end of the project in this folder (PEP 517) what it needs to build it, and what its metadata says; print that as JSON."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import re
import sys
import tempfile
from pathlib import Path


def _backend(named: str) -> object:
    module, _, attributes = named.partition(":")
    backend = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        backend = getattr(backend, attribute)
    return backend


def _is_missing(requirement: str) -> bool:
    name = re.match(r"[\w.-]+", requirement.strip())
    try:
        return name is not None and importlib.metadata.version(name[0]) is None
    except importlib.metadata.PackageNotFoundError:
        return True


def _answer(backend: object) -> dict[str, object]:
    """Return what is missing to build the project; the metadata where nothing is, and the back end can tell it without building."""
    for kind in ("editable", "wheel"):
        requires: list[str] = getattr(backend, f"get_requires_for_build_{kind}", list)()
        missing = [requirement for requirement in requires if _is_missing(requirement)]
        if missing:
            return {"missing": missing}
        tell = getattr(backend, f"prepare_metadata_for_build_{kind}", None)
        if tell is not None:
            with tempfile.TemporaryDirectory() as folder:
                distribution = importlib.metadata.Distribution.at(Path(folder, tell(folder)))
                return {"name": distribution.metadata["Name"], "version": distribution.version, "requirements": distribution.requires or []}
    return {}


def main() -> None:
    """Ask the back end that is named; further arguments are folders that it may lie in.

    What the back end prints goes to standard error, and the folder of this file is none that it finds modules in.
    """
    sys.path[:1] = sys.argv[2:]
    answers = os.dup(1)
    os.dup2(2, 1)
    answer = _answer(_backend(sys.argv[1]))
    with os.fdopen(answers, "w") as output:
        json.dump(answer, output)


if __name__ == "__main__":
    main()
