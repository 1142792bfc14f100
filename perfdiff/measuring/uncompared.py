"""What differs between base and head, and is not compared: good news must not be told of it."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff.build.decided import decided
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Side
from perfdiff.records.uncompared import Difference, Uncompared


def uncompared(bench: Bench, site: Site) -> Iterator[Difference]:
    """Yield what differs and is not compared, where there is any."""
    if dirty := bench.pins.dirty:
        yield Difference(Uncompared.SUBMODULE, dirty)
    guessed_from = bench.request.config.build_guessed_from
    if guessed_from and (files := decided(guessed_from, [site.plain[side].tree for side in Side])):
        yield Difference(Uncompared.BUILD, files)
