"""What is fixed in the JVMs of all runs, plain ones among them, so that runs of a pair do not differ by it."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "JAVA_TOOL_OPTIONS"


def fixed(environment: Mapping[str, str]) -> str:
    """Return the options that are set beside the user's own, nothing where those say it all."""
    given = environment.get(VARIABLE, "")
    ours = {"-XX:ActiveProcessorCount=": str(len(os.sched_getaffinity(0)))}
    return " ".join(f"{option}{value}" for option, value in ours.items() if option not in given)


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable of the JVMs' options: ours, then the user's, which prevail."""
    found = " ".join(filter(None, [fixed(environment), environment.get(VARIABLE, "")]))
    return {VARIABLE: found} if found else {}
