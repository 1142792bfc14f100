"""Feed damaged inputs to every reader of foreign files, and count how they end: whole, refused with a typed error, or a bug.

    scripts/bench fuzz [--minutes 15] [--only recordings] [--seed 1] [--keep FOLDER]

Each reader works in a process of its own, with a limit on memory, and on the time of an input. What is neither read nor refused by
a PerfdiffError is a bug: its input is kept, and the command exits with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import stored_experiments
import test_freud_log
import test_log
import test_recording
import tool_results
import trends
from perfdiff import accepted, configuration
from perfdiff.errors import PerfdiffError
from perfdiff.models import language
from perfdiff.records import freud_log, pairing, placestore, recorded, recording, store
from perfdiff.records.freud_blocks import encode
from perfdiff.records.results import reading
from perfdiff.records.results.experiment import from_results
from perfdiff.records.schema import Side
from perfdiff.report.trends.json_document import json_document
from perfdiff.report.trends.saved import saved_trends
from perfdiff.searches import state
from studies.support import figures, fuzz_seeds, mutation

SECONDS_AN_INPUT = 2.0  # of CPU time; inputs have some kilobytes
MEMORY_BYTES = 512 * 2**20  # beyond what the process has when it starts: no input of some kilobytes may ask for that
AT_ONCE = 200  # inputs between two looks at the clock
MOST_KEPT = 20  # inputs of bugs, of one reader


class TooSlowError(Exception):
    """Reading one input takes longer than it may."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What is fuzzed: `inputs` makes the next damaged input, `read` reads it; both work in a folder of their own."""

    name: str
    inputs: Callable[[random.Random], bytes]
    read: Callable[[bytes], object]


@dataclass(slots=True)
class Ends:
    """How many inputs were read whole, and were refused by the slug of the error; bugs by what was raised and where."""

    whole: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    bugs: Counter[str] = field(default_factory=Counter)

    @property
    def inputs(self) -> int:
        """Return how many inputs there were."""
        return self.whole + self.refused.total() + self.bugs.total()


def recordings(folder: Path) -> Reader:
    """Read recordings of processes."""
    path = folder / "one.pdrec"
    seeds = [test_recording.two_threads(), test_recording.file(test_recording.extent(1))]
    return Reader("recordings", lambda rng: mutation.changed_bytes(rng, seeds), lambda data: recording.read(written(path, data)))


def logs(folder: Path) -> Reader:
    """Read logs of Freud."""
    path = folder / "idcm_f_1.bin"
    seeds = [test_freud_log.handmade(), encode(test_freud_log.blocks_of("f", "g"))]
    return Reader("Freud's logs", lambda rng: mutation.changed_bytes(rng, seeds), lambda data: freud_log.read(written(path, data)))


def experiments(folder: Path) -> Reader:
    """Read the JSON of stored experiments, its digest made to fit, and pair them with a whole one."""
    whole, place = saved(folder / "whole"), saved(folder / "one")
    text = (place / "experiment.json").read_text(encoding="utf-8")
    document = json.loads(text)
    document["experiment"]["functions"] = document["experiment"]["functions"][:2]
    document["experiment"]["runs"] = document["experiment"]["runs"][:3]
    seeds = [json.dumps(document), text]

    def read(data: bytes) -> object:
        stored_experiments.put(place, "experiment.json", data)
        return pairing.paired(whole_of(place), whole_of(whole))

    return Reader("stored experiments", lambda rng: mutation.changed_json(rng, seeds), read)


def tables(folder: Path) -> Reader:
    """Read all files of stored experiments, one of them damaged and its digests made to fit."""
    wholes = [stored_experiments.saved(folder / "one"), stored_experiments.saved(folder / "parts", part_rows=200)]
    seeds = {path: path.read_bytes() for whole in wholes for path in whole.rglob("*") if path.is_file()}
    paths = sorted(seeds)

    def inputs(rng: random.Random) -> bytes:
        path = rng.choice(paths)
        return str(path).encode() + b"\0" + damaged(rng, path.name, seeds[path])

    def read(data: bytes) -> None:
        name, _, changed = data.partition(b"\0")
        whole = next(whole for whole in wholes if Path(name.decode()).is_relative_to(whole))
        try:
            stored_experiments.put(whole, Path(name.decode()).relative_to(whole).as_posix(), changed)
            stored_experiments.read(whole)
        finally:
            for path, content in seeds.items():
                if path == Path(name.decode()) or path.name == "digests.json":
                    path.write_bytes(content)

    return Reader("files of experiments", inputs, read)


def damaged(rng: random.Random, name: str, content: bytes) -> bytes:
    """Return a file of an experiment with something changed."""
    if name.endswith(".json"):
        return mutation.changed_json(rng, [content.decode()])
    return stored_experiments.other_columns(rng, content) if rng.random() < 0.3 else mutation.changed_bytes(rng, [content])


def annotation_texts(folder: Path) -> Reader:
    """Read texts of annotations, which are what is checked against."""
    return Reader(
        "annotations",
        lambda rng: mutation.changed_text(rng, fuzz_seeds.ANNOTATIONS),
        lambda data: language.parse_all(data.decode("utf-8", "replace")),
    )


def configurations(folder: Path) -> Reader:
    """Read perfdiff.toml."""
    path = folder / "perfdiff.toml"
    overrides = configuration.Overrides(file=path)

    def read(data: bytes) -> object:
        return configuration.load(folder, overrides=overrides, environment={}) if written(path, data) else None

    return Reader("perfdiff.toml", lambda rng: mutation.changed_text(rng, [fuzz_seeds.CONFIGURATION]), read)


def known_costs(folder: Path) -> Reader:
    """Read perfdiff-accepted.toml."""
    path = folder / "perfdiff-accepted.toml"
    return Reader(
        "perfdiff-accepted.toml",
        lambda rng: mutation.changed_text(rng, [fuzz_seeds.ACCEPTED]),
        lambda data: accepted.read(written(path, data)),
    )


def searches(folder: Path) -> Reader:
    """Read states of searches for a commit."""
    path = folder / "state.json"
    return Reader(
        "states of searches", lambda rng: mutation.changed_json(rng, [fuzz_seeds.STATE]), lambda data: state.load(written(path, data))
    )


def places(folder: Path) -> Reader:
    """Read counts of places, their digests made to fit: what stands beside the table, its bytes, and whole tables of other columns."""
    place = folder / "counts"
    placestore.save(place, next(iter(trends.instantiated().experiment.sides.values())))
    seeds = {name: (place / name).read_bytes() for name in ("places.json", "places.parquet", "instances.parquet")}

    def inputs(rng: random.Random) -> bytes:
        name = rng.choice(sorted(seeds))
        return name.encode() + b"\0" + damaged(rng, name, seeds[name])

    def read(data: bytes) -> object:
        name, _, content = data.partition(b"\0")
        stored_experiments.put(place, name.decode(), content)
        try:
            return placestore.load(place)
        finally:
            stored_experiments.put(place, name.decode(), seeds[name.decode()])

    return Reader("counts of places", inputs, read)


def trends_to_check(folder: Path) -> Reader:
    """Read trends that were written as JSON, which are what is checked against."""
    seeds = [json.dumps(json_document(found)) for found in (trends.one(), trends.two())]
    return Reader(
        "trends to check",
        lambda rng: mutation.changed_json(rng, seeds),
        lambda data: saved_trends(data.decode("utf-8", "replace"), "trends.json"),
    )


def other_results(folder: Path) -> Reader:
    """Read results of other tools, and hold them against themselves."""
    path, seeds = folder / "results", list(tool_results.ALL.values())

    def inputs(rng: random.Random) -> bytes:
        text = rng.choice(seeds)
        is_json = text.startswith(("{", "["))
        return mutation.changed_json(rng, [text]) if is_json and rng.random() < 0.7 else mutation.changed_text(rng, [text])

    def read(data: bytes) -> object:
        results = (reading.read(written(path, data)),)
        return from_results({Side.BASE: results, Side.HEAD: results}, {Side.BASE: "a", Side.HEAD: "b"})

    return Reader("results of other tools", inputs, read)


READERS: dict[str, Callable[[Path], Reader]] = {
    "recordings": recordings,
    "logs": logs,
    "experiments": experiments,
    "tables": tables,
    "annotations": annotation_texts,
    "configurations": configurations,
    "known-costs": known_costs,
    "searches": searches,
    "places": places,
    "trends": trends_to_check,
    "results": other_results,
}


def written(path: Path, data: bytes) -> Path:
    """Write an input where its reader looks for it."""
    path.write_bytes(data)
    return path


def saved(folder: Path) -> Path:
    """Return the folder of a small stored experiment."""
    _, found = test_log.recording(np.random.default_rng(1), "v1", calls=2)
    assert isinstance(found, recorded.RecordedExperiment)
    table = found.samples(1, Side.BASE)
    assert table is not None
    store.save(folder, found.experiment, [table])
    return folder


def whole_of(folder: Path) -> recorded.RecordedExperiment:
    """Return a stored experiment, one that has been read once."""
    return recorded.load(folder)


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlowError where what is inside takes too long."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS_AN_INPUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def too_slow(number: int, frame: object) -> None:
    """Take the alarm of an input's time."""
    raise TooSlowError


def fuzz(reader: Reader, rng: random.Random, seconds: float, last: Path, keep: Path) -> Ends:
    """Read damaged inputs for some time; `last` holds the one at work, should the process die of it."""
    ends = Ends()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(AT_ONCE):
            data = reader.inputs(rng)
            last.write_bytes(data)
            try:
                with limited():
                    reader.read(data)
                ends.whole += 1
            except PerfdiffError as error:
                ends.refused[error.slug] += 1
            except Exception as error:  # noqa: BLE001 - to count what must not be raised is what this is for
                ends.bugs[where(error)] += 1
                if ends.bugs.total() <= MOST_KEPT:
                    (keep / f"{reader.name.replace(' ', '-')}-{ends.bugs.total()}").write_bytes(data)
    return ends


def where(error: Exception) -> str:
    """Return what was raised, and in which line of perfdiff."""
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if "/perfdiff/" in frame.filename]
    place = f"{Path(places[-1].filename).name}:{places[-1].lineno}" if places else "?"
    return f"{type(error).__name__} at {place}"


def apart(make: Callable[[Path], Reader], seed: int, seconds: float, keep: Path) -> tuple[str, Ends]:
    """Fuzz a reader in a process of its own; one that dies has a bug of its own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as room:
        folder = Path(room)
        reader, result, last = make(folder), folder / "result", folder / "last"
        child = os.fork()
        if not child:
            try:
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
                signal.signal(signal.SIGPROF, too_slow)
                ends = fuzz(reader, random.Random(f"{seed} {reader.name}"), seconds, last, keep)
                result.write_text(json.dumps([ends.whole, ends.refused, ends.bugs]))
            finally:
                if sys.exc_info()[0]:
                    traceback.print_exc()
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if result.exists():
            whole, refused, bugs = json.loads(result.read_text())
            return reader.name, Ends(whole, Counter(refused), Counter(bugs))
        if last.exists():
            (keep / f"{reader.name.replace(' ', '-')}-died").write_bytes(last.read_bytes())
        return reader.name, Ends(bugs=Counter([f"the process died, status {status}"]))


def main() -> int:
    """Fuzz all readers for equal times and print how their inputs ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="of all readers together")
    parser.add_argument("--only", choices=READERS, help="this reader alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where inputs of bugs are kept")
    asked = parser.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    chosen = [make for name, make in READERS.items() if asked.only in (None, name)]
    sums, found = Counter[str](), []
    with figures.printed("Damaged inputs", "reader", "inputs", "read whole", "refused", "slugs", "bugs") as table:
        for make in chosen:
            name, ends = apart(make, asked.seed, asked.minutes * 60 / len(chosen), asked.keep)
            slugs = ", ".join(slug for slug, _ in ends.refused.most_common())
            table.add(name, f"{ends.inputs:,}", f"{ends.whole:,}", f"{ends.refused.total():,}", slugs, ends.bugs.total())
            sums["inputs"] += ends.inputs
            found += [f"{name}: {bug}, {count} times" for bug, count in ends.bugs.most_common()]
        table.remarks.append(f"{sums['inputs']:,} inputs in all, seed {asked.seed}.")
        table.remarks += found
    return 1 if found else 0
