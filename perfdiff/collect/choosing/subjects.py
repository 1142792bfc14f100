"""The functions of both revisions under one set of numbers: what is compared, what is probed, and what the report says of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, replace
from fnmatch import fnmatch

from perfdiff.collect.choosing.calling import callers, nearest
from perfdiff.collect.choosing.survey import Fold, ProbeChoice
from perfdiff.languages.protocol import CodeComparison, Counterpart, FunctionDefinition, Probe
from perfdiff.records.differences import Entity, EntityKind, SkipKind, SkippedFunction, function_entity, other_reason
from perfdiff.records.function_names import is_named, readings
from perfdiff.records.schema import Change, FunctionInfo, Side, Source
from perfdiff.records.testfiles import sources_first

Probes = Mapping[Side, Mapping[int, Probe]]


@dataclass(frozen=True, slots=True)
class Subjects:
    """Pairs of functions by number; a number is the probe's in both builds and starts at 1.

    Where it is said `within` which of them is looked, no others get probes.
    """

    pairs: Mapping[int, Counterpart]
    calls: Mapping[int, frozenset[int]]  # what each can call, on either side
    within: frozenset[int] | None = None

    @classmethod
    def number(cls, pairs: Sequence[Counterpart], followed: Collection[tuple[str, int]] = (), budgeted: Collection[str] = ()) -> Subjects:
        """Number the pairs, by base's order first: what is built of base for one head then serves for the next one.

        `followed` are files and first lines, in base, of functions that are measured in any case, `budgeted` names of others in head.
        """
        names = [name for subject in budgeted for name, _ in readings(subject)]
        marked = (replace(pair, followed=True) if _is_followed(pair, followed, names) else pair for pair in pairs)
        numbered = dict(enumerate(sorted(marked, key=_place), start=1))
        base = {pair.base.key: id_ for id_, pair in numbered.items() if pair.base}
        head = {pair.head.key: id_ for id_, pair in numbered.items() if pair.head}
        calls = {
            id_: frozenset(
                numbers[key]
                for definition, numbers in ((pair.base, base), (pair.head, head))
                if definition is not None
                for key in definition.calls
                if key in numbers
            )
            for id_, pair in numbered.items()
        }
        return cls(numbered, calls)

    @classmethod
    def alone(cls, functions: Iterable[FunctionDefinition]) -> Subjects:
        """Number the functions of one revision, which stands for base; each is looked at for its own sake."""
        return cls.number([Counterpart(function, None, Change.CHANGED, (other_reason("measured alone"),), ()) for function in functions])

    def as_seen(self, probed: Set[int], edges: Iterable[tuple[int, int]]) -> Subjects:
        """Return the same with the calls that were seen, (caller, callee), in place of those that are possible by functions' texts.

        What a text may call counts where nothing is seen of it, because one of both was not `probed`.
        """
        seen: dict[int, set[int]] = {id_: set() for id_ in (0, *self.pairs)}
        for caller, callee in edges:
            seen[caller].add(callee)
        ran = set[int]().union(*seen.values())
        calls = {id_: (may - probed) | (seen[id_] if id_ in probed else may & ran) for id_, may in self.calls.items()}
        return replace(self, calls=calls)

    @property
    def suspects(self) -> frozenset[int]:
        """Return the functions that changed, or depend on what did."""
        return frozenset(id_ for id_, pair in self.pairs.items() if pair.change.is_suspect)

    def expands(self, id_: int) -> bool:
        """Return whether a function depends on a macro that changed."""
        return any(culprit.kind is EntityKind.MACRO for culprit in self.pairs[id_].culprits)

    def probeable(self, exclude: Sequence[str]) -> dict[int, Counterpart]:
        """Return the pairs that can carry probes on every side where they exist, without those in excluded paths."""
        looked_at = self.pairs if self.within is None else {id_: self.pairs[id_] for id_ in sorted(self.within)}
        return {id_: pair for id_, pair in looked_at.items() if not _obstacle(pair, exclude)}

    def unprobed(self, exclude: Sequence[str]) -> dict[int, tuple[int, ...]]:
        """Return the suspects that cannot carry a probe, each with the nearest functions that call it and can."""
        above = callers(self.calls)
        probeable = self.probeable(exclude)
        return {
            id_: tuple(sorted(nearest(id_, above, probeable)))
            for id_, pair in self.pairs.items()
            if pair.change.is_suspect and id_ not in probeable
        }

    def obstacle(self, id_: int, exclude: Sequence[str]) -> str:
        """Return why a function carries no probe, "" where it can."""
        obstacle = _obstacle(self.pairs[id_], exclude)
        return obstacle.says if obstacle else ""

    def obstacles(self, exclude: Sequence[str]) -> tuple[SkippedFunction, ...]:
        """Return the suspects that cannot be probed, with their reasons; those that are excluded come last."""
        obstacles = [
            SkippedFunction(pair.shown.name, pair.shown.file, obstacle.says, obstacle.kind is SkipKind.EXCLUDED, obstacle.kind)
            for pair in self.pairs.values()
            if pair.change.is_suspect and (obstacle := _obstacle(pair, exclude))
        ]
        return tuple(sorted(obstacles, key=lambda skip: skip.whole))

    def untouched(self, ran: Collection[int], probeable: Collection[int]) -> tuple[SkippedFunction, ...]:
        """Return the suspects that no workload ever called; those of files that nothing ran of come behind the others."""
        files = {definition.file for id_ in ran for definition in _sides(self.pairs[id_])}
        idle = [pair.shown for id_, pair in self.pairs.items() if pair.change.is_suspect and id_ in probeable and id_ not in ran]
        near = [
            SkippedFunction(shown.name, shown.file, "never called by any workload", kind=SkipKind.NEVER_CALLED)
            for shown in idle
            if shown.file in files
        ]
        reason = "no workload runs anything of its file"
        far = (SkippedFunction(shown.name, shown.file, reason, True, SkipKind.FILE_NOT_RUN) for shown in idle if shown.file not in files)
        return (*near, *far)

    def unfinished(self, ids: Collection[int]) -> tuple[SkippedFunction, ...]:
        """Return the suspects among `ids`, functions that were called, but none of whose calls ended while it was recorded."""
        return self._skipped(ids, "no call of it had ended when its process was killed")

    def generated(self, ids: Collection[int]) -> tuple[SkippedFunction, ...]:
        """Return the suspects among `ids`, functions whose files each build makes otherwise, so that no text with probes is theirs."""
        return self._skipped(ids, "each build makes another text of its file, so that it carries no probe")

    def _skipped(self, ids: Collection[int], reason: str) -> tuple[SkippedFunction, ...]:
        """Return the suspects among `ids`, which are not measured for one reason."""
        pairs = (self.pairs[id_] for id_ in sorted(self.suspects.intersection(ids)))
        return tuple(SkippedFunction(pair.shown.name, pair.shown.file, reason) for pair in pairs)

    def survey_probes(self, side: Side, ids: Iterable[int]) -> dict[int, Probe]:
        """Return probes that count and time, and read what may take long; suspects and their callers also count outcomes of conditions."""
        probes: dict[int, Probe] = {}
        for id_, definition in self._definitions(side, ids):
            watched = self.pairs[id_].change.is_suspect or self.pairs[id_].change is Change.CALLER
            probes[id_] = Probe(id_, definition, _far(definition), tuple(range(len(definition.branches))) if watched else ())
        return probes

    def sampled_in_survey(self, ids: Iterable[int]) -> frozenset[int]:
        """Return of the functions `ids` those of which the survey looks at single calls."""
        return frozenset(id_ for id_ in ids if self.pairs[id_].change.is_suspect or any(map(_far, _sides(self.pairs[id_]))))

    def timed_probes(self, side: Side, choices: Sequence[ProbeChoice]) -> dict[int, Probe]:
        """Return the chosen probes with the features of their functions, as far as they are read, and the chosen conditions."""
        by_id = {choice.id: choice for choice in choices}
        probes: dict[int, Probe] = {}
        for id_, definition in self._definitions(side, by_id):
            unread = () if by_id[id_].far else _far(definition)
            features = tuple(index for index in range(len(definition.features)) if index not in unread)
            probes[id_] = Probe(id_, definition, features, by_id[id_].branches[side])
        return probes

    def counted_probes(self, side: Side, choices: Sequence[ProbeChoice], folds: Iterable[Fold]) -> dict[int, Probe]:
        """Return the same probes and those of `folds`, without conditions: watching these would be counted as blocks of the function."""
        probes = {id_: replace(probe, branches=()) for id_, probe in self.timed_probes(side, choices).items()}
        return probes | self.census_probes(side, [fold.id for fold in folds])

    def census_probes(self, side: Side, ids: Iterable[int]) -> dict[int, Probe]:
        """Return probes that read nothing: of calls that are only counted no inputs are told."""
        return {id_: Probe(id_, definition, (), ()) for id_, definition in self._definitions(side, ids)}

    def conditions(self) -> dict[tuple[Side, int], tuple[str, ...]]:
        """Return the texts of the conditions of each function that can be watched."""
        return {
            (side, id_): tuple(branch.text for branch in definition.branches)
            for side in Side
            for id_, definition in self._definitions(side, self.pairs)
        }

    def unread(self, choices: Iterable[ProbeChoice]) -> tuple[str, ...]:
        """Return the names of the functions of which texts and files are not read, those of tests last."""
        pairs = [self.pairs[choice.id] for choice in choices if not choice.far]
        shown = [pair.shown for pair in pairs if any(map(_far, _sides(pair)))]
        return tuple(definition.name for definition in sources_first(shown, lambda definition: definition.file))

    def infos(self, ids: Collection[int]) -> tuple[FunctionInfo, ...]:
        """Return the descriptions of the probed functions, whose ids are given, for the report."""
        return tuple(self._info(id_, frozenset(ids)) for id_ in sorted(ids))

    def by_file(self, side: Side) -> Mapping[str, Sequence[FunctionDefinition]]:
        """Return all functions of a side by the files that they stand in."""
        by_file: dict[str, list[FunctionDefinition]] = {}
        for _, definition in self._definitions(side, self.pairs):
            by_file.setdefault(definition.file, []).append(definition)
        return by_file

    def _definitions(self, side: Side, ids: Iterable[int]) -> Iterable[tuple[int, FunctionDefinition]]:
        for id_ in ids:
            pair = self.pairs[id_]
            definition = pair.base if side is Side.BASE else pair.head
            if definition is not None:
                yield id_, definition

    def _info(self, id_: int, probed: frozenset[int]) -> FunctionInfo:
        pair = self.pairs[id_]
        shown = pair.shown
        own = self._with_unprobed_callees(id_, probed)
        return FunctionInfo(
            id=id_,
            name=shown.name,
            file=shown.written.file if shown.written else shown.file,
            line=shown.written.line if shown.written else shown.line,
            language=shown.language,
            change=pair.change,
            reasons=pair.reasons,
            culprits=pair.culprits,
            base=_source(pair.base),
            head=_source(pair.head),
            calls=frozenset().union(*(self.calls[part] for part in own)),
            reads=frozenset().union(*(definition.reads for part in own for definition in _sides(self.pairs[part]))),
            writes=frozenset().union(*(definition.writes for part in own for definition in _sides(self.pairs[part]))),
            loads=shown.loads,
        )

    def _with_unprobed_callees(self, id_: int, probed: frozenset[int]) -> set[int]:
        """Return the function and all that count as part of it: what it calls, as far as that carries no probe of its own."""
        parts = {id_}
        open_ends = [id_]
        while open_ends:
            fresh = self.calls[open_ends.pop()] - probed - parts
            parts |= fresh
            open_ends += fresh
        return parts


def _is_followed(pair: Counterpart, places: Collection[tuple[str, int]], names: Collection[str]) -> bool:
    """Return whether a function stands at one of some places in base, or has one of some names in head."""
    base, head = pair.base, pair.head
    is_there = base is not None and (base.file, base.first_line) in places
    return is_there or (head is not None and any(is_named(name, head.name, head.file) for name in names))


def cleared(pairs: Sequence[Counterpart], code: CodeComparison) -> list[Counterpart]:
    """Return the functions, those not suspected any more that changed and whose machine code is the same.

    One that uses a type or a variable that changed stays under suspicion: the same instructions then may meet other data, as counters
    that share a line. So does one that stands in for a function without a probe, whose own code is not the same.
    """
    behind = _without_probe_and_unlike(pairs, code)
    return [_cleared(pair) if pair.change.is_suspect and code.is_same(pair) and _may_clear(pair, behind) else pair for pair in pairs]


def _cleared(pair: Counterpart) -> Counterpart:
    return replace(pair, change=Change.UNCHANGED, reasons=(*pair.reasons, other_reason("its machine code is the same")), culprits=())


def _may_clear(pair: Counterpart, behind: Collection[Entity]) -> bool:
    return all(culprit.kind.is_in_code and culprit not in behind for culprit in pair.culprits)


def _without_probe_and_unlike(pairs: Iterable[Counterpart], code: CodeComparison) -> set[Entity]:
    """Return, as culprits, the suspects that carry no probe and have other code than before, or stand in for such."""
    hidden = [pair for pair in pairs if pair.change.is_suspect and _obstacle(pair, ())]
    culprits = {_culprit(pair) for pair in hidden if code.is_unlike(pair)}
    while more := {_culprit(pair) for pair in hidden if not culprits.isdisjoint(pair.culprits)} - culprits:
        culprits |= more
    return culprits


def _place(pair: Counterpart) -> tuple[bool, str, int, str]:
    """Return where a pair comes among others: by place in base, then what head alone has, by place there."""
    definition = pair.base or pair.shown
    return pair.base is None, definition.file, definition.start, definition.key


def _culprit(pair: Counterpart) -> Entity:
    return function_entity(pair.shown.name)


def digest(probes: Iterable[Probe]) -> str:
    """Return a digest of everything that inserting `probes` depends on."""
    rows = [
        (
            probe.id,
            probe.definition.file,
            probe.definition.body,
            [probe.definition.name, astuple(probe.definition.made)] if probe.definition.made else [],
            [probe.definition.features[i].expression for i in probe.features],
            [(branch.start, branch.end) for branch in (probe.definition.branches[i] for i in probe.branches)],
        )
        for probe in probes
    ]
    return hashlib.blake2b(json.dumps(rows).encode(), digest_size=16).hexdigest()


def _far(definition: FunctionDefinition) -> tuple[int, ...]:
    """Return the places of the features that may take long to read."""
    return tuple(index for index, feature in enumerate(definition.features) if feature.is_far)


def _sides(pair: Counterpart) -> Iterable[FunctionDefinition]:
    return (definition for definition in (pair.base, pair.head) if definition is not None)


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why a function carries no probe."""

    kind: SkipKind
    says: str


def _obstacle(pair: Counterpart, exclude: Sequence[str]) -> _Obstacle | None:
    for definition in _sides(pair):
        if definition.obstacle:
            return _Obstacle(SkipKind.OBSTACLE, definition.obstacle)
        for pattern in exclude:
            if fnmatch(definition.file, pattern):
                return _Obstacle(SkipKind.EXCLUDED, f"excluded by {pattern}")
    return None


def _source(definition: FunctionDefinition | None) -> Source | None:
    if definition is None:
        return None
    if definition.written is not None:
        return Source(definition.written.file, definition.written.line, definition.written.text)
    return Source(definition.file, definition.first_line, definition.text, definition.no_code)
