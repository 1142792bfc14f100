"""What a search for inputs starts from: the inputs that workloads have, and the values of their numeric parameters."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from perfdiff.config import INPUT, WorkloadConfig
from perfdiff.errors import UsageError
from perfdiff.fuzzing.families import InputFamily, Segment, Values, plain
from perfdiff.languages.installed import installed

MOST_SEEDS = 24  # of a workload, the smallest: what they suggest is made of their parts
_LARGEST = 4096  # bytes of a seed that are used
DIAL_SPAN = 4  # times a numeric parameter's largest value
_PROGRAMS = frozenset(("", ".sh", ".jar")).union(*(traits.files.sources for traits in installed()))  # suffixes of what commands run


@dataclass(frozen=True, slots=True)
class Seeds:
    """Families of single inputs and of numeric parameters, with their workloads by name and the suffix that each one's inputs have.

    The commands of workloads with inputs have a place for one, and no `inputs` of their own. What is `derived` follows from grammars.
    """

    families: tuple[InputFamily, ...]
    workloads: Mapping[str, WorkloadConfig]
    suffixes: Mapping[str, str]
    derived: tuple[InputFamily, ...] = ()


def seeds(
    configs: Sequence[WorkloadConfig],
    project: Path,
    tree: Path,
    grammars: Mapping[str, Sequence[tuple[Segment, ...]]] = MappingProxyType({}),
) -> Seeds:
    """Return what workloads have to start from, in the checkout `project` or a built `tree`; raise UsageError where that is nothing.

    `grammars` are the inputs that follow from those of workloads, by name."""
    families: list[InputFamily] = []
    workloads: dict[str, WorkloadConfig] = {}
    suffixes: dict[str, str] = {}
    derived: list[InputFamily] = []
    for source, workload, files in ((config, *placed) for config in configs for placed in _placed(config, project, tree)):
        smallest = sorted(files, key=lambda path: path.stat().st_size)[:MOST_SEEDS]
        own = list(_of_files(workload, smallest) if files else _of_numbers(workload))
        if parts := grammars.get(source.name):
            if not files:
                raise UsageError(
                    f"workload '{source.name}' has a grammar and no file as its input: write {{input}} where one goes", slug="no-seeds"
                )
            derived += (InputFamily(workload.name, segments, values) for segments in parts for values in _one_by_one(workload))
        if own:
            families += own
            workloads[workload.name] = replace(workload, inputs=())
            suffixes[workload.name] = smallest[0].suffix if smallest else ""
    if not families:
        raise UsageError(
            "no workload has an input that could be another: give one with files, as in command = './program {input}' and "
            "inputs = ['samples/*'], or with a numeric parameter",
            slug="no-seeds",
        )
    return Seeds(tuple(families), workloads, suffixes, tuple(derived))


def _of_files(workload: WorkloadConfig, files: Sequence[Path]) -> Iterator[InputFamily]:
    for path in files:
        text = path.read_bytes()[:_LARGEST]
        yield from (plain(workload.name, text, values) for values in _one_by_one(workload))


def _one_by_one(workload: WorkloadConfig) -> Iterator[Values]:
    """Yield the first value of each parameter, and each further one beside the first ones of all others."""
    usual = {name: values[0] for name, values in workload.parameters.items()}
    yield usual
    yield from ({**usual, name: value} for name, values in workload.parameters.items() for value in values[1:])


def _of_numbers(workload: WorkloadConfig) -> Iterator[InputFamily]:
    """Yield each parameter that has numbers alone, as what may take any whole number."""
    for dial, values in workload.parameters.items():
        numbers = [value for value in values if isinstance(value, int | float) and value >= 1]
        if len(numbers) == len(values):
            others = replace(workload, parameters={name: other for name, other in workload.parameters.items() if name != dial})
            yield from (
                InputFamily(workload.name, values=fixed, dial=dial, most=int(DIAL_SPAN * max(numbers))) for fixed in _one_by_one(others)
            )


def _placed(config: WorkloadConfig, project: Path, tree: Path) -> Iterator[tuple[WorkloadConfig, list[Path]]]:
    """Yield a workload whose commands have a place for its input, and the files that are its inputs so far.

    These are its `inputs`, a parameter's values that are files, or a file that its command names. Of several parameters each has its turn,
    and then all of them, by the same input, in workloads of other names.
    """
    if config.inputs:
        yield config, [project / name for name in config.inputs]
        return
    of_parameters: dict[str, list[Path]] = {}
    for name, values in config.parameters.items():
        files = [path for value in values if (path := _file(str(value), tree, project)) is not None]
        if len(files) == len(values):
            of_parameters[name] = files
    together = [tuple(of_parameters)] if len(of_parameters) > 1 else []
    for number, names in enumerate([*((name,) for name in of_parameters), *together]):
        own = config if not number else replace(config, name=f"{config.name} ({', '.join(names)})")
        yield _in_place_of(names, own), of_parameters[names[0]]
    if of_parameters:
        return
    for word in _words(config.command):
        if (path := _file(word, tree, project)) is not None:
            yield replace(config, command=config.command.replace(word, f"{{{INPUT}}}", 1)), [path]
            return
    yield config, []


def _in_place_of(names: Sequence[str], config: WorkloadConfig) -> WorkloadConfig:
    """Return a workload with its input in place of some parameters; an input lies elsewhere, and no folder leads to it."""
    placed = partial(re.sub, rf"[^\s'\"=<]*\{{(?:{'|'.join(names)})\}}", f"{{{INPUT}}}")
    others = {name: values for name, values in config.parameters.items() if name not in names}
    setup, prepare = (text and placed(text) for text in (config.setup, config.prepare))
    return replace(config, command=placed(config.command), setup=setup, prepare=prepare, parameters=others)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _file(word: str, *folders: Path) -> Path | None:
    """Return the file that a word names in one of some folders, None where it names none, or a program."""
    paths = (folder / word for folder in folders)
    return next((path for path in paths if path.suffix not in _PROGRAMS and path.is_file()), None)
