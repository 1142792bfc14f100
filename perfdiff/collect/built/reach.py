"""Whether the workloads reach what was probed: a comparison of code that never ran must not read as "no regression"."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from perfdiff import units
from perfdiff.build.built import Built
from perfdiff.collect.choosing.subjects import Probes, Subjects
from perfdiff.errors import MeasurementError, NothingCalledError, WorkloadError
from perfdiff.languages.protocol import Counterpart, FunctionDefinition
from perfdiff.records.reach import Reach
from perfdiff.records.schema import Side
from perfdiff.records.testfiles import is_of_tests, sources_first

_SHOWN = 3  # files in a message
_NAMED = 20  # functions that did not run, by name


def reached(subjects: Subjects, ran: Collection[int], probed: Collection[int]) -> Reach:
    """Return how many of the changed functions are among those that `ran`; of those that were not `probed` nobody knows it.

    What loads a file runs all definitions in it, and says nothing of them: it counts only where nothing else changed.
    """
    changed = {id_: pair for id_, pair in subjects.pairs.items() if pair.change.is_suspect}
    called = {id_: pair for id_, pair in changed.items() if not pair.shown.loads} or changed
    counted = [id_ for id_, pair in called.items() if id_ in ran or not is_of_tests(pair.shown.file)]
    idle = sources_first((pair.shown for id_, pair in called.items() if id_ not in ran and id_ in probed), lambda shown: shown.file)
    unknown = sum(id_ not in ran and id_ not in probed for id_ in counted)
    return Reach(len(counted), sum(id_ in ran for id_ in counted), unknown, tuple(definition.name for definition in idle[:_NAMED]))


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


def require_calls(called: Mapping[tuple[str, Side], Collection[int]], probes: Probes, built: Mapping[Side, Built]) -> None:
    """Raise WorkloadError where a workload called no function at all on a side, MeasurementError where none of its probes compiled."""
    for (workload, side), functions in called.items():
        files = {probes[side][id_].definition.file for id_ in functions if probes[side][id_].definition.declares}
        if len(files) < len(functions):
            continue
        if files:
            raise NothingCalledError(
                f"workload {workload} never called a function in {side}: it loads {units.listed(sorted(files), _SHOWN)}, and what a file "
                "declares runs where somebody calls it, as a framework does with benchmarks and tests; nothing is measured: name the "
                'framework instead of a command, as in phpbench = "" or pytest = "", or run a script that calls what is in the file',
                slug="nothing-called",
            )
        if probes[side].keys() <= {drop.probe for drop in built[side].dropped}:
            reasons = sorted({f"{drop.file}: {drop.reason}" for drop in built[side].dropped})
            raise MeasurementError(
                f"no function of {side} can be measured: none of {len(probes[side])} probes compiles; look at what the compiler says",
                slug="nothing-to-probe",
                detail="\n".join(reasons),
            )
        raise nothing_called(workload, f"called any of the {len(probes[side])} functions probed in {side}")


def nothing_called(workload: str, what: str) -> NothingCalledError:
    """Return the error that a workload has no part of the project at work; `what` it never did."""
    return NothingCalledError(
        f"workload {workload} never {what}: nothing is measured; workloads run in the built tree, so name the program by its path "
        "there, such as ./build/program",
        slug="nothing-called",
    )


def require_tree(misplaced: Mapping[str, str], ran: Collection[int], subjects: Subjects) -> None:
    """Raise WorkloadError where another copy of a changed file was loaded in its place, and nothing that changed was called.

    `misplaced` gives for files of the tree where their code was loaded from instead; `ran` are the functions that were called. Where
    something that changed did run, another module of the same name, such as `utils`, is likelier than another copy of the project.
    """
    changed = {id_: pair for id_, pair in subjects.pairs.items() if pair.change.is_suspect}
    if not changed.keys().isdisjoint(ran):
        return
    files = {pair.shown.file for pair in changed.values()}
    lost = {file: place for file, place in misplaced.items() if file in files}
    lost = lost or dict(_copies(changed.values(), ran, subjects))
    if lost:
        file = min(lost)
        raise WorkloadError(
            f"the workload loads another copy of {file}, {lost[file]}, not the one that changed: what changed in it is not "
            "measured; have it load the built tree's (sys.path, PYTHONPATH, include paths, copies that are installed or vendored)",
            slug="another-copy",
        )


def _copies(changed: Iterable[Counterpart], ran: Collection[int], subjects: Subjects) -> Iterator[tuple[str, str]]:
    """Yield files of changed functions with a copy in the same tree whose functions of the same names were called in their place.

    A copy has the file's name, and at least half of its functions are the same, by what they do: other files of that name have not.
    """
    files: dict[str, list[FunctionDefinition]] = {}
    for pair in subjects.pairs.values():
        for function in filter(None, (pair.base, pair.head)):
            files.setdefault(function.file, []).append(function)
    called: dict[str, list[FunctionDefinition]] = {}
    for function in (subjects.pairs[id_].shown for id_ in ran):
        called.setdefault(function.file, []).append(function)
    for function in (pair.shown for pair in changed):
        for file, others in called.items():
            is_namesake = file != function.file and PurePosixPath(file).name == PurePosixPath(function.file).name
            if is_namesake and any(_is_named_as(function, other) for other in others) and _is_copied(files[function.file], files[file]):
                yield function.file, file


def _is_copied(functions: Sequence[FunctionDefinition], others: Sequence[FunctionDefinition]) -> bool:
    """Return whether at least half of a file's functions are the same in another file on some side."""
    tokens = {function.tokens for function in others}
    names = {function.name for function in functions if not function.loads}
    return 2 * len({function.name for function in functions if function.tokens in tokens and not function.loads}) >= max(len(names), 1)


def _is_named_as(function: FunctionDefinition, other: FunctionDefinition) -> bool:
    """Return whether two functions have the same name, but for the packages that they lie in."""
    first, second = f".{function.name}", f".{other.name}"
    return function.language == other.language and (first.endswith(second) or second.endswith(first))
