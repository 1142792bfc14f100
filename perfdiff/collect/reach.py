"""Whether the workloads reach what was probed: a comparison of code that never ran must not read as "no regression"."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from perfdiff.build.builder import Built
from perfdiff.collect.subjects import Subjects
from perfdiff.collect.workshop import Probes
from perfdiff.errors import MeasurementError, WorkloadError
from perfdiff.records.schema import Side


def require_probes(probes: Probes, subjects: Subjects) -> None:
    """Raise MeasurementError where a side has no function that can be measured."""
    for side in probes:
        if not probes[side]:
            reasons = sorted({f"{skip.name}: {skip.reason}" for skip in subjects.obstacles(())})
            raise MeasurementError(
                f"no function of {side} can be measured: none was found, or none can carry a probe; "
                "check that the build makes the program from sources in the repository",
                slug="nothing-to-probe",
                detail="\n".join(reasons),
            )


def require_calls(called: Mapping[Side, Collection[int]], probes: Probes, built: Mapping[Side, Built]) -> None:
    """Raise WorkloadError where no function at all was called on a side, MeasurementError where none of its probes compiled."""
    for side in probes:
        if not called[side]:
            if probes[side].keys() <= {drop.probe for drop in built[side].dropped}:
                reasons = sorted({f"{drop.file}: {drop.reason}" for drop in built[side].dropped})
                raise MeasurementError(
                    f"no function of {side} can be measured: none of {len(probes[side])} probes compiles; look at what the compiler says",
                    slug="nothing-to-probe",
                    detail="\n".join(reasons),
                )
            raise WorkloadError(
                f"no workload called any of the {len(probes[side])} functions probed in {side}: nothing is measured; workloads run in the "
                "built tree, so name the program by its path there, such as ./build/program",
                slug="nothing-called",
            )


def require_tree(misplaced: Mapping[str, str], ran: Collection[int], subjects: Subjects) -> None:
    """Raise WorkloadError where the code of a changed file was loaded from another place, and nothing that changed was called.

    `misplaced` gives for files of the tree where their code was loaded from instead; `ran` are the functions that were called. Where
    something that changed did run, another module of the same name, such as `utils`, is likelier than another copy of the project.
    """
    changed = {id_: pair for id_, pair in subjects.pairs.items() if pair.change.is_suspect}
    lost = {pair.shown.file for pair in changed.values()} & misplaced.keys()
    if lost and not changed.keys() & set(ran):
        file = min(lost)
        raise WorkloadError(
            f"the workload loads another copy of {file}, {misplaced[file]}, not the one of the revisions: what changed in it is not "
            "measured; have it load the built tree's (sys.path, PYTHONPATH, include paths, copies that are installed or vendored)",
            slug="another-copy",
        )
