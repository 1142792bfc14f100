"""Which languages there are: perfdiff's own, and those of packages that are installed beside it.

Nothing of a pack but its traits is loaded, so that all of perfdiff may ask.
"""

from __future__ import annotations

import functools
import pkgutil
import warnings
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from perfdiff.languages.traits import Traits

GROUP = "perfdiff.languages"  # of entry points, each the `Traits` of a language
# In the order in which their packs are asked. Not entry points: perfdiff runs from a checkout as well, where nothing is installed.
_OWN = ("c", "python", "java", "php")


@functools.cache
def installed() -> tuple[Traits, ...]:
    """Return the traits of all languages, perfdiff's own first, others in the order of their names."""
    own = [pkgutil.resolve_name(f"perfdiff.languages.{name}.traits:TRAITS") for name in _OWN]
    others = [
        traits for point in sorted(entry_points(group=GROUP), key=lambda point: point.name) if (traits := _brought(point)) is not None
    ]
    return (*own, *others)


def _brought(point: EntryPoint) -> Traits | None:
    """Return the traits of a language that a package brings, None with a warning where they cannot be had: the others go on."""
    try:
        traits = point.load()
    except (ImportError, AttributeError) as error:
        problem = str(error)
    else:
        if isinstance(traits, Traits):
            return traits
        problem = f"{point.value} is no `Traits`"
    warnings.warn(f"the language {point.name} is left out: {problem}; update or uninstall the package that brings it", stacklevel=2)
    return None


def loaded(named: str) -> Any:
    """Return what `module:object` names, with the module loaded."""
    return pkgutil.resolve_name(named)
