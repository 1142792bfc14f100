"""Inputs that lie about in a project: seeds of its fuzz targets and samples of its tests, by what their folders are called."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from perfdiff.languages.c.suites.checkout import SOURCES, nearness

MOST_INPUTS = 12  # points of a workload: four in each tenfold of three, which is what growth is told by
_FEWEST_SAMPLES = 3  # files of one suffix in a folder, of which growth can be told
_COLLECTIONS = frozenset(
    ("corpus", "corpora", "seed", "seeds", "seed_corpus", "seed_corpora", "testcases", "inputs", "input", "in", "dictionaries", "samples")
)
_SAMPLES = frozenset(("data", "testdata", "test_data", "test-data", "samples", "examples", "example", "inputs", "fixtures", "files"))
_TESTS = frozenset(("test", "tests", "t", "check", "checks", "testing", "testsuite"))
_CALLED_FUZZ = re.compile(r"(?i:(^|[-_.])(libfuzzer|fuzz(er|ing|test)?|target|test)(?=[-_.]|$)|fuzz(er|ing)?$)|^[Ff]uzz(er)?(?=[A-Z])")
# Files that no program under test reads, and what it shall print.
_NO_SAMPLES = SOURCES | {
    *(".h", ".hh", ".hpp", ".hxx", ".inc", ".py", ".sh", ".pl", ".am", ".in", ".mk", ".cmake", ".build", ".o", ".a", ".so", ".dict"),
    *(".options", ".md", ".rst", ".out", ".expected", ".ref", ".log"),
}
_NO_SAMPLE_NAMES = frozenset(("makefile", "readme", "license", "copying", "cmakelists", "authors", "changelog"))


def spread(sizes: Mapping[str, int], most: int = MOST_INPUTS) -> tuple[str, ...]:
    """Return files by their sizes in bytes, `most` of them, spread as evenly over the logarithm of their size as they allow.

    Files that are empty, and all but one of a size, tell nothing of growth: they are left out where there are others.
    """
    by_size: dict[int, str] = {}
    for name, size in sorted(sizes.items()):
        by_size.setdefault(size, name)
    there = sorted(size for size in by_size if size > 0) or sorted(by_size)
    if len(there) <= most:
        return tuple(by_size[size] for size in there)
    lowest, highest = (math.log(size) for size in (there[0], there[-1]))
    taken: list[int] = []
    for place in range(most):
        wanted = lowest + (highest - lowest) * place / (most - 1)
        taken.append(min((size for size in there if size not in taken), key=lambda size: abs(math.log(size) - wanted)))
    return tuple(by_size[size] for size in sorted(taken))


def called(source: Path) -> str:
    """Return what a fuzz target is about, by the name of its source: `parse` of `parse_fuzzer.c`."""
    return _CALLED_FUZZ.sub("", source.stem).strip("-_.").lower() or source.stem.lower()


def seeds(project: Path, source: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """Return the seeds of a fuzz target among the `files` of a project: some of a folder's, or a zip of them, else samples of its tests."""
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    best: tuple[tuple[int, int, int], Path] | None = None
    for file in files:
        if file.suffix == ".zip" and (match := _match(file, source)):
            rank = (match, nearness(file.parent, source.parent), 0)
            best = max(best, (rank, file)) if best else (rank, file)
        elif _may_be_sample(file):
            for folder in file.parents[:-1]:
                by_folder[folder].append(file)
    for folder in by_folder:
        if match := _match(folder, source):
            rank = (match, nearness(folder.parent, source.parent), len(folder.parts))
            best = max(best, (rank, folder)) if best else (rank, folder)
    if best is None:
        return samples(project, by_folder)
    place = best[1]
    return (place.as_posix(),) if place not in by_folder else spread(sizes(project, by_folder[place]))


def samples(project: Path, by_folder: Mapping[Path, Sequence[Path]]) -> tuple[str, ...]:
    """Return files of one suffix that tests of a project take, from the folder that has most of them."""
    kinds: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder, below in by_folder.items():
        parts = [part.lower() for part in folder.parts]
        if not (_TESTS.intersection(parts) or parts[-1] in _SAMPLES):
            continue
        for file in below:
            if file.parent == folder:
                kinds[folder.as_posix(), file.suffix].append(file)
    best = max(kinds.items(), key=lambda item: (len(item[1]), item[0]), default=((), []))[1]
    return spread(sizes(project, best)) if len(best) >= _FEWEST_SAMPLES else ()


def sizes(project: Path, files: Iterable[Path]) -> dict[str, int]:
    """Return the sizes of files by their paths in a project, without those that cannot be asked."""
    size_by_name = {}
    for file in files:
        try:
            size_by_name[file.as_posix()] = os.stat(project / file).st_size  # noqa: PTH116 - files that went meanwhile, and links to nothing
        except OSError:
            continue
    return size_by_name


def _match(place: Path, source: Path) -> int:
    """Return how well a folder, or a zip, is named for seeds of a target: 0 where it is not."""
    name, own = place.name.lower().removesuffix(".zip"), {source.stem.lower(), called(source)}
    upper = [part.lower() for part in place.parts[:-1]]
    if any(name in (f"{own_name}{mark}{kind}", f"{kind}{mark}{own_name}") for own_name in own for mark in "_-." for kind in _COLLECTIONS):
        return 3
    if name in own and _COLLECTIONS.intersection(upper):
        return 3
    is_of_fuzzing = any("fuzz" in part for part in (*upper, name)) or name in ("corpus", "corpora", "seed_corpus", "seeds")
    return 1 if name in _COLLECTIONS and is_of_fuzzing else 0


def _may_be_sample(file: Path) -> bool:
    name, _, _ = file.name.lower().partition(".")
    return file.suffix.lower() not in _NO_SAMPLES and name not in _NO_SAMPLE_NAMES
