"""Cases of suites that ran when they were listed, and fail or hang in a run that is measured: these cost only themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.suites import does_not_end
from perfdiff.errors import RunFailedError, RunTimeoutError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.endless import EndlessCase
from perfdiff.records.schema import Note, Phase, Point, Side


def without_case(bench: Bench, site: Site, error: RunFailedError, written: Sequence[str]) -> tuple[Bench, Site]:
    """Return the bench without the case whose run failed, and the site with what is told of it; raise the error where it is no case.

    Workloads that are `written` are what the user asked for. One that does not end on head, and does on base, is evidence.
    """
    point = next((point for point in bench.points if point.id == error.point), None)
    if point is None or point.workload in written:
        raise error
    endless = _endless(bench, site, error, point)
    workloads = tuple(workload for workload in bench.request.config.workloads if workload.name != point.workload)
    if endless is None and not workloads and not site.endless:
        raise error
    left_out = Note("benchmarks-left-out", f"it ran when it was listed, and is left out: {error}")
    site = replace(
        site,
        notes=(*site.notes, left_out if endless is None else does_not_end(endless)),
        endless=(*site.endless, *((endless,) if endless else ())),
    )
    bench.progress.note(site.notes[-1].text)
    config = replace(bench.request.config, workloads=workloads)
    room = bench.room / "again"  # layouts of these runs stay in the other
    room.mkdir()
    return replace(bench, request=replace(bench.request, config=config), room=room), site


def _endless(bench: Bench, site: Site, error: RunFailedError, point: Point) -> EndlessCase | None:
    """Return the case if it hangs on head alone: base is run once more, as its last runs may be of quieter times."""
    if not isinstance(error, RunTimeoutError) or error.side != Side.HEAD or len(bench.sides) < 2:
        return None
    collector = bench.collector(site.targets)
    slot = Slot(Phase.PLAIN, point, Side.BASE, 0)
    try:
        ((run, _),) = collector.collect([slot], bench.progress.advance)
    except RunFailedError:
        return None
    case = EndlessCase(point.label, 1e-9 * run.took_ns, collector.limit_s(slot))
    return case if case.tells else None
