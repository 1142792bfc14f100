"""Which languages there are: perfdiff's own, and those of packages that are installed beside it.

Nothing of a pack but its traits is loaded, so that all of perfdiff may ask.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib.metadata import entry_points
from typing import Any

from perfdiff.languages.traits import Traits

GROUP = "perfdiff.languages"  # of entry points, each the `Traits` of a language
# In the order in which their packs are asked. Not entry points: perfdiff runs from a checkout as well, where nothing is installed.
_OWN = ("c", "python", "java", "php")


@functools.cache
def installed() -> tuple[Traits, ...]:
    """Return the traits of all languages, perfdiff's own first, others in the order of their names."""
    own = [pkgutil.resolve_name(f"perfdiff.languages.{name}.traits:TRAITS") for name in _OWN]
    others = [point.load() for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]
    return (*own, *others)


def traits_of(language: str) -> Traits | None:
    """Return the traits of a language by its name, None where its package is not installed."""
    return next((traits for traits in installed() if traits.name == language), None)


def loaded(named: str) -> Any:
    """Return what `module:object` names, with the module loaded."""
    return pkgutil.resolve_name(named)
