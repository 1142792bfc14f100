"""Inputs that lie about in a project: seeds of its fuzz targets and samples of its tests, by what their folders are called."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from perfdiff.languages.c.suites.checkout import SOURCES, Folder, nearness

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


def seeds(project: Path, source: Path, folders: Sequence[Folder]) -> tuple[str, ...]:
    """Return the seeds of a fuzz target among the `folders` of a project: some of one, or a zip of them, else samples of its tests."""
    zips = [folder.path / name for folder in folders for name in folder.names if name.endswith(".zip")]
    ranks = {
        place: (match, nearness(place.parent, source.parent), len(place.parts))
        for place in (*zips, *(folder.path for folder in folders))
        if (match := _match(place, source))
    }
    for place in sorted(ranks, key=ranks.__getitem__, reverse=True):
        if place in zips:
            return (place.as_posix(),)
        below = [file for folder in folders if folder.path.is_relative_to(place) for file in folder.files if _may_be_sample(file)]
        if chosen := spread(sizes(project, below)):
            return chosen
    return samples_of_tests(project, folders)


def samples_of_tests(project: Path, folders: Sequence[Folder]) -> tuple[str, ...]:
    """Return files of one suffix that tests of a project take, from the folder that has most of them."""
    kinds: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in folders:
        parts = [part.lower() for part in folder.path.parts]
        if parts and (_TESTS.intersection(parts) or parts[-1] in _SAMPLES):
            for file in filter(_may_be_sample, folder.files):
                kinds[folder.path.as_posix(), file.suffix].append(file)
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
    if any(name.replace("-", "_").replace(".", "_") in (f"{its}_{kind}", f"{kind}_{its}") for its in own for kind in _COLLECTIONS):
        return 3
    if name in own and _COLLECTIONS.intersection(upper):
        return 3
    is_of_fuzzing = any("fuzz" in part for part in (*upper, name)) or name in ("corpus", "corpora", "seed_corpus", "seeds")
    return 1 if name in _COLLECTIONS and is_of_fuzzing else 0


def _may_be_sample(file: Path) -> bool:
    name, _, _ = file.name.lower().partition(".")
    return file.suffix.lower() not in _NO_SAMPLES and name not in _NO_SAMPLE_NAMES
