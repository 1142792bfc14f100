"""Whether base and head are proved to do the same: all that a run can observe is the same, or no run meets what is not."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from perfdiff import units
from perfdiff.collect.built.reach import nothing_called
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.trees.accesses import Accesses
from perfdiff.collect.trees.differences import Differences, elsewhere, is_at_work
from perfdiff.collect.trees.watched import Watched
from perfdiff.errors import WorkloadError
from perfdiff.languages import kept_files
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Note, Phase, Point, Side
from perfdiff.records.testfiles import is_of_tests

_COMPILED = (b"\x7fELF", b"\xca\xfe\xba\xbe", b"PK\x03\x04")  # how programs, classes and archives of classes begin
_LOOKED_AT = 1 << 12  # bytes that tell a text
PROOF_SHARE = 0.25  # of a limited time, for the runs that may prove that nothing differs: others must answer where these do not
_SHOWN = 3  # files that a sentence lists before it only counts


def marked(bench: Bench, site: Site) -> Site:
    """Return the same site, or that nothing that runs differs, where that is proved: by the trees, or by one run of each point and side.

    Where functions of the project changed, that is no answer: of what no run meets nothing is known. Raise WorkloadError where a workload
    runs nothing of what was built.
    """
    if bench.request.wants_calls or site.code is None or not site.code.in_tree or has_changed(site):
        return site
    differences = _differences(site)
    if differences.are_none:
        return replace(site, same_code=True)
    if not may_be_watched(bench):
        return site
    bench.progress.stage("looking which files runs meet", None)
    met = _met(bench, site, differences, bench.points, PROOF_SHARE * bench.request.deadline.left_s)
    if met is None or met:
        return site
    return replace(site, same_code=True, notes=(*site.notes, _not_met(differences)))


def met(bench: Bench, site: Site, points: Sequence[Point]) -> tuple[str, ...]:
    """Return which files that differ between base and head runs meet, without those of code that changed; none where that is not known."""
    if site.code is None or not may_be_watched(bench):
        return ()
    bench.progress.stage("looking which files runs meet", None)
    names = _met(bench, site, _differences(site).written, points) or frozenset()
    changed = has_changed(site)
    return tuple(sorted({_source(name) for name in names if not (changed and _is_code(site, name))}))


def _source(name: str) -> str:
    """Return the source of byte code that an interpreter keeps in a folder beside it; other files as they are."""
    return kept_files.source_of(name) or name


def _is_code(site: Site, name: str) -> bool:
    """Return whether a file holds functions, as a text or as something that is run."""
    definitions = (definition for pair in site.subjects.pairs.values() for definition in (pair.base, pair.head) if definition is not None)
    if kept_files.is_byte_code(name) or name in {definition.file for definition in definitions}:
        return True
    paths = (built.tree / name for built in site.plain.values())
    return any(map(is_compiled, paths))


def is_compiled(path: Path) -> bool:
    """Return whether a file is a program, a class, or an archive of classes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(_LOOKED_AT).startswith(_COMPILED)


def has_changed(site: Site) -> bool:
    """Return whether a function changed that workloads may call, those of tests apart, but for what macros of a library make of them."""
    subjects = site.subjects
    return any(not is_of_tests(subjects.pairs[id_].shown.file) or subjects.expands(id_) for id_ in subjects.suspects)


def may_be_watched(bench: Bench) -> bool:
    """Return whether all that a run depends on is met by its own processes: nothing is done before it, or beside it."""
    config = bench.request.config
    return not config.services and not any(workload.setup or workload.prepare or workload.requests for workload in config.workloads)


def _met(bench: Bench, site: Site, differences: Differences, points: Sequence[Point], limit_s: float = math.inf) -> frozenset[str] | None:
    """Return what of the differences the first run meets that meets any; None where a run fails, or what it meets cannot be told.

    The same where by the first runs all of them will take longer than `limit_s`.

    Raise WorkloadError where a workload's run meets nothing of what was built.
    """
    outside: dict[int, frozenset[str]] = {}  # both sides must open the same
    deadline, runs = bench.request.deadline, len(points) * len(Side)
    began_s = deadline.left_s
    for number, (slot, accesses) in enumerate(watched(bench, site, points), 1):
        if accesses is None:
            return None
        if deadline.is_limited and (began_s - deadline.left_s) * runs / number > limit_s:
            deadline.is_short = True
            return None
        if not is_at_work(site.plain[slot.side], accesses):
            raise nothing_called(slot.point.workload, f"opened a file of {slot.side}'s build")
        if names := differences.met(slot.side, accesses):
            return names
        others = elsewhere(site.plain[slot.side], accesses)
        if outside.setdefault(slot.point.id, others) != others:
            return None
    return frozenset()


def watched(bench: Bench, site: Site, points: Sequence[Point]) -> Iterator[tuple[Slot, Accesses | None]]:
    """Yield a run of each point on both sides with what it met, the points in the order of the configuration; None of one that fails."""
    watching = Watched(bench.executor)
    collector = replace(bench.collector(site.targets), executor=watching)
    for slot in (Slot(Phase.PLAIN, point, side, 0) for point in points for side in Side):
        try:
            list(collector.collect([slot], bench.progress.advance))
        except WorkloadError:  # it is told where it fails again, without a filter of its calls
            yield slot, None
        else:
            yield slot, watching.accesses


def laid_out(bench: Bench, site: Site, point: Point) -> frozenset[str]:
    """Return which files that differ the setups of services meet before a run of each side; none where one fails."""
    if site.code is None:
        return frozenset()
    differences, names = _differences(site), frozenset[str]()
    for side in Side:
        watching = Watched(bench.executor)
        collector = replace(bench.collector(site.targets), executor=watching)
        with contextlib.suppress(WorkloadError):  # it is told where it fails again
            list(collector.collect([Slot(Phase.PLAIN, point, side, 0)], bench.progress.advance))
        names = names.union(*(differences.met(side, accesses) for accesses in watching.of_services))
    return names


def contradicted(point: Point) -> Note:
    """Tell that whole runs of a point seem slower although nothing that runs was seen to differ."""
    text = f"runs were seen to meet nothing that differs, and those at {point.label} took longer all the same: everything was measured"
    return Note("proof-contradicted", text)


def _not_met(differences: Differences) -> Note:
    """Tell which files differ though no run meets them, but for those of version control and what interpreters keep of sources."""
    names = sorted(differences.names)
    shown = [name for name, after in zip(names, [*names[1:], ""], strict=True) if not after.startswith(f"{name}/") and _is_written(name)]
    return Note("changes-not-met", f"no run opens, lists or asks after what differs{f' ({units.listed(shown, _SHOWN)})' if shown else ''}")


def _is_written(name: str) -> bool:
    """Return whether people write a file, and neither version control nor an interpreter keeps it for itself."""
    return not name.startswith(".git/") and not kept_files.is_kept(name)


def _differences(site: Site) -> Differences:
    """Return what differs between the builds; what is the same for the engine that runs it is alike, a text if it is opened but once."""
    code, tree = site.code, site.plain[Side.BASE].tree
    assert code is not None, "there are two sides"
    lying = (name for name in code.alike if (tree / name).is_file())  # byte code that no run left was set aside
    alike = {name: 1.0 if _is_text(tree / name) else math.inf for name in lying}
    return Differences.between(site.plain, alike | dict.fromkeys(code.compiled, 0.0))


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" not in file.read(_LOOKED_AT)
