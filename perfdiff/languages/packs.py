"""The language packs that serve one tree, as one: each function belongs to the pack that found it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfdiff.config import Config
from perfdiff.errors import RecordingError
from perfdiff.languages.installed import installed, loaded
from perfdiff.languages.protocol import (
    CodeComparison,
    Compiled,
    Counterpart,
    Language,
    PlaceReader,
    PlainBuild,
    Prepared,
    Probe,
    ProbeCosts,
    Program,
    Surroundings,
    Workplace,
)
from perfdiff.languages.tree_files import all_differing
from perfdiff.records.arrays import Ints
from perfdiff.records.places import Place
from perfdiff.records.schema import Note, Phase
from perfdiff.records.uncompared import ComparisonGap


@dataclass(frozen=True, slots=True)
class Packs:
    """The packs of a tree: one whose programs are compiled, which serves every tree, and `others`."""

    compiled: Compiled
    others: tuple[Language, ...] = ()

    @classmethod
    def serving(cls, config: Config, project: Path, cache: Path, environment: Mapping[str, str]) -> Packs:
        """Return the packs for a project's folder; `cache` keeps what they find, from one revision to the next.

        A language without a section of the configuration is compiled, and serves every project.
        """
        surroundings = Surroundings(project, cache, environment)
        compiled: list[Compiled] = [loaded(traits.pack)(config, surroundings) for traits in installed() if traits.settings is None]
        return cls(
            compiled[0], tuple(loaded(traits.pack)(config, surroundings) for traits in installed() if traits.name in config.languages)
        )

    @property
    def workplace(self) -> Workplace | None:
        """Return what the packs put beside a tree, None if they put nothing there."""
        wanted = [pack.workplace for pack in self._all if pack.workplace is not None]
        return _Workplaces(tuple(wanted)) if wanted else None

    @property
    def identity(self) -> str:
        """Return the part of an experiment's key that the packs determine."""
        return self.workplace.identity if self.workplace else ""

    @property
    def rebuilds(self) -> bool:
        """Return whether probes and counters make builds of their own, as far as that is known before anything is built."""
        return not self.others

    @property
    def counts(self) -> bool:
        """Return whether work is counted without a clock, as far as that is known before anything is built."""
        return any(pack.counts for pack in self.others or (self.compiled,))

    def slowdown(self, built: PlainBuild) -> float:
        """Return how many times longer than a plain run a counted one of a build takes, as a rule."""
        return max(pack.slowdown for pack in self._serving(built))

    def probe_costs(self, built: PlainBuild) -> dict[str, ProbeCosts]:
        """Return what probes cost in the functions of each language."""
        return {pack.name: pack.probe_costs(built) for pack in self._serving(built)}

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Return the functions and declarations of all packs; `others` are builds that it is compared with, itself among them.

        What cannot be parsed is no problem where all have it alike; what is compiled depends on more than its own file.
        """
        serving = self._serving(built)
        programs = [pack.index(built, depth=depth, others=others) for pack in serving]
        return Program(
            functions={key: value for program in programs for key, value in program.functions.items()},
            declarations={key: value for program in programs for key, value in program.declarations.items()},
            problems=tuple(
                problem
                for pack, program in zip(serving, programs, strict=True)
                for problem in program.problems
                if pack is self.compiled or not _is_alike(problem.file, others)
            ),
        )

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions, those of each pack with each other, and say how each differs."""
        return tuple(pair for pack in self._all for pair in pack.match(_of(pack, base), _of(pack, head)))

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the interpreters and packages that a build's programs run on, with versions."""
        return tuple(name for pack in self._all for name in pack.runs_on(built))

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return what else a reader must know of how two builds differ."""
        return tuple(note for pack in self._all for note in pack.told(base, head))

    def absent(self, base: PlainBuild, head: PlainBuild, met: Collection[str]) -> tuple[str, ...]:
        """Return what files that differ, and that runs `met`, use where there is any, where the user has it and the builds have not."""
        differing = {name: places for name, places in all_differing(base.tree, head.tree) if name in met}
        return tuple(name for pack in self._serving(head) for name in pack.absent(base, head, differing))

    def unfollowed(self, base: PlainBuild, head: PlainBuild, met: Collection[str] | None) -> tuple[ComparisonGap, ...]:
        """Return the files that differ and say what users install, where both builds have the same installed.

        `met` are the files that runs met, those in trees by their names there, None where that is not known.
        """
        differing = dict(all_differing(base.tree, head.tree))
        return tuple(difference for pack in self._serving(head) for difference in pack.unfollowed(base, head, differing, met))

    def same_code(self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> CodeComparison:
        """Compare the code of two plain builds whose functions are `pairs`, as it is run."""
        serving = [pack for pack in self._all if pack in (*self._serving(base), *self._serving(head))]
        differing = dict(all_differing(base.tree, head.tree))
        return _joined(
            {pack.name: pack.same_code(base, head, [pair for pair in pairs if _owns(pack, pair)], differing) for pack in serving}
        )

    def compared(self, pairs: Sequence[Counterpart], code: CodeComparison) -> tuple[Counterpart, ...]:
        """Return the pairs of functions that are worth measuring.

        Left out are those that are compiled, where all that is compiled is the same and serves programs of another language: their time is
        that of who calls them, as a library's is, and no build is made for them.
        """
        own = [pair for pair in pairs if _owns(self.compiled, pair)]
        is_same = len(own) < len(pairs) and all(code.is_same(pair) and not pair.change.is_suspect for pair in own)
        return tuple(pair for pair in pairs if not (is_same and _owns(self.compiled, pair)))

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that workloads of a build run with, besides their `environment`."""
        variables: dict[str, str] = {}
        for pack in self._all:
            variables |= pack.variables(built, {**environment, **variables})
        return variables

    def byte_code(self, built: PlainBuild) -> tuple[str, ...]:
        """Return files of a tree that packs compiled, and that runs leave by themselves if the program lets them."""
        return tuple(path for pack in self._all for path in pack.byte_code(built))

    def calm(self, built: PlainBuild, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables with which threads of a runtime's own work while the program waits for them."""
        return {name: value for pack in self._all for name, value in pack.calm(built, environment).items()}

    def attach(self, phase: Phase, built: PlainBuild, probes: Iterable[Probe], folder: Path) -> dict[str, str]:
        """Return the variables that put probes into the processes of a run, those that are not in its sources; files go to `folder`."""
        probes = list(probes)
        return {
            name: value
            for pack in self._serving(built)
            for name, value in pack.attach(
                phase, built, [probe for probe in probes if probe.definition.language == pack.name], folder
            ).items()
        }

    def draws(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the variables that are drawn anew for each pair of runs, but for those that the user has set."""
        return tuple(name for pack in self._all for name in pack.draws if name not in environment)

    def inserted(self, probes: Iterable[Probe]) -> list[Probe]:
        """Return the probes that are written into sources."""
        return [probe for probe in probes if probe.definition.language == self.compiled.name]

    def countable(self, probes: Mapping[int, Probe]) -> dict[int, Probe]:
        """Return the probes of functions whose work can be counted without a clock."""
        counting = {pack.name for pack in self._all if pack.counts}
        return {id_: probe for id_, probe in probes.items() if probe.definition.language in counting}

    def places(self, built: PlainBuild) -> PlaceReader:
        """Return what reads the counts of a placed build's lines, of all packs that count them; raise RecordingError where none does."""
        readers = [reader for pack in self._serving(built) if (reader := pack.places(built)) is not None]
        if not readers:
            raise RecordingError("how often lines run cannot be counted in this language yet", slug="no-line-counts")
        return readers[0] if len(readers) == 1 else _Places(tuple(readers))

    @property
    def _all(self) -> tuple[Language, ...]:
        return (self.compiled, *self.others)

    def _serving(self, built: PlainBuild) -> tuple[Language, ...]:
        """Return the packs that have to do with a build: where nothing was compiled, and others are there, those alone."""
        return self._all if built.commands or not self.others else self.others


def _of(pack: Language, program: Program) -> Program:
    own = {key: value for key, value in program.functions.items() if value.language == pack.name}
    return Program(own, program.declarations, program.problems)


def _owns(pack: Language, pair: Counterpart) -> bool:
    return pair.shown.language == pack.name


@dataclass(frozen=True, slots=True)
class _Workplaces:
    """What several packs lay beside a tree, one after the other."""

    workplaces: tuple[Workplace, ...]

    @property
    def identity(self) -> str:
        return "\n".join(workplace.identity for workplace in self.workplaces)

    def prepare(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> Prepared:
        variables: dict[str, str] = {}
        commands = []
        for workplace in self.workplaces:
            prepared = workplace.prepare(beside, tree, place, {**environment, **variables})
            variables |= prepared.variables
            commands.append(prepared.command)
        return Prepared(variables, " && ".join(filter(None, commands)))

    def broken(self, beside: Path) -> str | None:
        return next(filter(None, (workplace.broken(beside) for workplace in self.workplaces)), None)

    def finish(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> tuple[Note, ...]:
        return tuple(note for workplace in self.workplaces for note in workplace.finish(beside, tree, place, environment))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparisons(CodeComparison):
    """What two builds have in common, by pack: each knows the files that its own engine runs or loads, and its own functions."""

    by_pack: Mapping[str, CodeComparison]

    def is_same(self, pair: Counterpart) -> bool:
        pack = self.by_pack.get(pair.shown.language)
        return pack is not None and pack.is_same(pair)

    def is_unlike(self, pair: Counterpart) -> bool:
        pack = self.by_pack.get(pair.shown.language)
        return pack is not None and pack.is_unlike(pair)


def _joined(by_pack: Mapping[str, CodeComparison]) -> _Comparisons:
    packs = by_pack.values()
    return _Comparisons(
        alike=frozenset(file for pack in packs for file in pack.alike),
        by_function=frozenset(file for pack in packs for file in pack.by_function),
        compiled=frozenset(file for pack in packs for file in pack.compiled),
        in_tree=all(pack.in_tree for pack in packs),
        by_pack=by_pack,
    )


@dataclass(frozen=True, slots=True)
class _Places:
    """Reads the counts of all packs' lines."""

    readers: tuple[PlaceReader, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        places = self._unordered
        return tuple(places[index] for index in self._order)

    @property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        return {file: lines for reader in self.readers for file, lines in reader.sources.items()}

    def environment(self, folder: Path) -> dict[str, str]:
        return {name: value for reader in self.readers for name, value in reader.environment(folder).items()}

    def read(self, folder: Path) -> Ints:
        return np.concatenate([reader.read(folder) for reader in self.readers])[self._order]

    def lost(self, folder: Path) -> int:
        return sum(reader.lost(folder) for reader in self.readers)

    @property
    def _unordered(self) -> list[Place]:
        return [place for reader in self.readers for place in reader.places]

    @property
    def _order(self) -> list[int]:
        places = self._unordered
        return sorted(range(len(places)), key=lambda index: (places[index].file, places[index].line, places[index].function))


def _is_alike(file: str, builds: Sequence[PlainBuild]) -> bool:
    """Return whether several builds have the same file, to the byte."""
    files = [build.tree / file for build in builds]
    return len(files) > 1 and all(path.is_file() for path in files) and len({path.read_bytes() for path in files}) == 1
