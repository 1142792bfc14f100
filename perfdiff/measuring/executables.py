"""What runs use of all that a build makes: variants with probes are made of these programs and libraries alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfdiff.build.built import Built
from perfdiff.build.holdings import BUILD
from perfdiff.build.repeatable import UnrepeatableError, read_recipe
from perfdiff.collect.counts import counting
from perfdiff.collect.trees.differences import inside
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.measuring.unaltered import may_be_watched, watched
from perfdiff.records.schema import Run

_SHARE = 0.1  # of the time that the plain builds took, for looking what runs use: variants can be spared more than that
_WATCHED_S = 0.2  # that a run whose calls are reported takes more, for the start of an interpreter before it


def with_used(bench: Bench, site: Site, runs: Sequence[Run]) -> Site:
    """Return the same site with what runs use of the plain builds, as a run of each point and side tells; the site where that is unknown.

    It is not looked for where that would take much beside building, by these `runs`.
    """
    looking_s = len(bench.sides) * (counting.plain_s(bench.points, runs) + _WATCHED_S * len(bench.points))
    if not may_be_watched(bench) or looking_s > min(_SHARE * site.built_s, bench.request.deadline.left_s):
        return site
    try:
        outputs = {name for built in site.plain.values() for name in _outputs(built)}
    except UnrepeatableError:
        return site
    bench.progress.stage("looking which programs runs use", None)
    used = set[str]()
    for slot, accesses in watched(bench, site, bench.points):
        if accesses is None:
            return site
        used |= outputs & inside(site.plain[slot.side], accesses)
    return replace(site, plain={side: replace(built, used=frozenset(used)) for side, built in site.plain.items()})


def _outputs(built: Built) -> set[str]:
    """Return the names in its tree of all that a plain build has made; raise UnrepeatableError."""
    recipe, tree = read_recipe(built.beside / BUILD), built.tree.resolve()
    return {str(path.relative_to(tree)) for step in recipe.steps for path in recipe.places(step) if path.is_relative_to(tree)}
