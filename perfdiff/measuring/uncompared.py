"""What differs between base and head, and is not compared: good news must not be told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from perfdiff.build.decided import decided
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Side
from perfdiff.records.uncompared import Difference, Uncompared

_OF_GIT = ".git/"


def uncompared(bench: Bench, site: Site, met: Collection[str]) -> Iterator[Difference]:
    """Yield what differs and is not compared, where there is any; `met` are files of the trees that runs met."""
    if dirty := bench.pins.dirty:
        yield Difference(Uncompared.SUBMODULE, dirty)
    base, head = bench.pins.base, bench.pins.head
    if base.tree == head.tree and base.commit != head.commit and any(name.startswith(_OF_GIT) for name in met):
        yield Difference(Uncompared.COMMIT, (base.commit, head.commit))
    if names := bench.packs.absent(site.plain[Side.BASE], site.plain[Side.HEAD], met):
        yield Difference(Uncompared.ABSENT, names)
    guessed_from = bench.request.config.build_guessed_from
    if guessed_from and (files := decided(guessed_from, [site.plain[side].tree for side in Side])):
        yield Difference(Uncompared.BUILD, files)
