"""Which function a counted line is told of, by the names that users write: the engine calls all closures and all files' own code alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from perfdiff.languages.php.facts import CLOSURE, MAIN
from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.records.places import Place

_NAMELESS = (CLOSURE, MAIN)


def named(places: Iterable[Place], functions: Iterable[FunctionDefinition]) -> tuple[Place, ...]:
    """Return the same places, those in closures and in files' own code under the names of these functions, the innermost around each."""
    inside: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for function in functions:
        first, last, name = function.linkage[0].split(" ", 2)
        if name.endswith(_NAMELESS):
            inside[function.file].append((int(first), int(last), function.name))
    return tuple(_named(place, inside[place.file]) for place in places)


def _named(place: Place, around: Iterable[tuple[int, int, str]]) -> Place:
    kind = next((kind for kind in _NAMELESS if kind.rstrip("}") in place.function), None)  # from PHP 8.4 on `{closure:Space\\f():12}`
    if kind is None:
        return place
    candidates = [(last - first, name) for first, last, name in around if first <= place.line <= last and kind in name.rpartition("::")[2]]
    return replace(place, function=min(candidates)[1]) if candidates else place
