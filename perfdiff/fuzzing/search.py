"""The search: seeds, then what they suggest, then random changes of what was worth keeping, for as long as it may take."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfdiff.errors import WorkloadError
from perfdiff.fuzzing import reduction
from perfdiff.fuzzing.corpus import Corpus
from perfdiff.fuzzing.families import InputFamily, Segment, joined
from perfdiff.fuzzing.mutations import Mutator
from perfdiff.fuzzing.proposals import proposals
from perfdiff.fuzzing.trials import CorpusEntry, Mishap, Oracle, PairedRun
from perfdiff.records.arrays import Ints
from perfdiff.records.schema import Side

MOST_SHOWN = 3  # inputs that are reported, of functions of their own
CONVINCING = 2.0  # times base's work: who has such an input looks for a worse one only while there are such

_PATIENCE = 10.0  # times a seed's time, after which a run hangs, but never less than:
_LEAST_PATIENCE_S = 1.0
_SHRINK = 4  # an input that hangs is tried again at a quarter of its size
_BETWEEN = 3  # sizes between the largest that ends and the smallest that hangs
_REPEATS = 2  # of a run that seems slower; the least of its times counts
_KEPT = 0.9  # of what an input shows, which a smaller one has to show as well
_REDUCING_TRIALS, _STEP_TRIALS = 120, 40  # for making an input smaller, and one that only reaches something new
_STEP_BYTES = 4096  # of an input that reaches something new and becomes a seed itself
_TOGETHER = 8  # small inputs that are first tried as one
_LESS = 16  # times smaller than the largest inputs are those that are tried first
_SWEEP, _SWEEP_AGAIN = 0.4, 0.7  # of the time, until when seeds' suggestions are tried at most, in small inputs and in large ones
_SETTLED = 150  # inputs since the last that was clearly worse than all before
_WORSE = 1.25  # times: clearly
_RESERVE = 0.15  # of the time for making the inputs that were found smaller


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far a search goes: bytes of an input, seconds, inputs tried (None: as many as the time allows), and the seed of its chance."""

    size: int
    seconds: float
    inputs: int | None = None
    seed: int = 0


@dataclass(slots=True)
class InputSearch:
    """A search with its corpus; `advance` is told of each input, `words` are those of the program, `attacks` parts of inputs to try.

    What is `derived` from grammars is tried ahead of what seeds suggest.
    """

    oracle: Oracle
    limits: SearchLimits
    words: Sequence[bytes]
    attacks: Sequence[tuple[Segment, ...]]
    advance: Callable[[str], None]
    least_ratio: float
    derived: Sequence[InputFamily] = ()
    tried: int = 0
    mishaps: list[Mishap] = field(default_factory=list)
    corpus: Corpus = field(init=False)
    _started: float = field(default_factory=time.monotonic)
    _patience_s: float = _LEAST_PATIENCE_S
    _are_seeds_tried: bool = False
    _worst_factor: float = 1.0
    _worsened: int = 0  # how many had been tried when that was met
    _steps: list[InputFamily] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.corpus = Corpus(self.oracle.comparison)

    def worst_inputs(self, seeds: Sequence[InputFamily], earlier: Sequence[InputFamily] = ()) -> list[CorpusEntry]:
        """Return the inputs on which head does more than base, as small as they can be made, the worst first, each of another function.

        Those that `earlier` searches found are tried first. Raises WorkloadError where no seed can be run.
        """
        self._learn_patience(seeds)
        if not self.corpus.worst:
            raise WorkloadError(
                "no seed runs to its end, in the same way on both sides: search from inputs that the program takes", slug="no-seeds"
            )
        for family in earlier:
            self._try(family, self.limits.size)
        for size, share in ((self._small, _SWEEP), (self.limits.size, _SWEEP_AGAIN)):
            self._sweep(seeds, size, share)
        mutator = Mutator(self.words, random.Random(self.limits.seed))
        while not self._is_over(1 - _RESERVE) and not self._is_settled:
            parents = [entry for entry in self.corpus.parents if not entry.family.dial]
            if not parents:
                break
            chosen = mutator.chance.choice(parents)
            size = mutator.chance.choice((self._small, self.limits.size))
            self._try(mutator.mutated(chosen.family, [parent.family for parent in parents]), size)
        return [self._reduced(entry) for entry in self._worst]

    def _sweep(self, seeds: Sequence[InputFamily], size: int, share: float) -> None:
        """Try what seeds suggest, each once, in inputs of a size, until a share of the time is over; small ones in groups first."""
        for group in self._groups(seeds, _TOGETHER if size < self.limits.size else 1):
            if self._is_over(share) or self._is_settled:
                return
            if len(group) == 1 or self._is_promising(group, size):
                for family in group:
                    self._try(family, size)

    def _groups(self, seeds: Sequence[InputFamily], most: int) -> Iterator[list[InputFamily]]:
        """Yield what seeds suggest, each once, in groups that share a workload and its parameters; what has no text comes alone.

        So does what grammars derive, which nothing may follow, and so do attacks, one after each group: what follows one of them in a text
        would be the end that it must not have.
        """
        seen: set[tuple[tuple[Segment, ...], int]] = set()
        groups: dict[str, list[InputFamily]] = defaultdict(list)
        attacks = self._attacking(seeds)
        yield from ([family] for family in self.derived)
        for family in self._suggested(seeds):
            if (family.segments, family.most) in seen:
                continue
            seen.add((family.segments, family.most))
            group = groups[f"{family.workload} {sorted(family.values.items())}"]
            group.append(family)
            if len(group) == most or family.dial:
                yield group.copy()
                group.clear()
                yield from ([attack] for attack in itertools.islice(attacks, 1))
        yield from filter(None, groups.values())
        yield from ([attack] for attack in attacks)

    def _is_promising(self, group: Sequence[InputFamily], size: int) -> bool:
        """Return whether one of several inputs may be worth a run of its own, by one run of all together (group testing, Dorfman 1943).

        Counts are exact, so that little more is enough; what some inputs hide of others, as by what nothing closes, larger ones show alone.
        """
        whole = joined(group)
        trial = self._trial(whole, whole.times_within(len(group) * size // 2))
        if not trial.is_whole or trial.seems_slower or self.corpus.would_gain(trial):
            return True
        return self.oracle.comparison.ratio(trial) - 1 >= (self.least_ratio - 1) / len(group)

    @property
    def _small(self) -> int:
        """Return the size of inputs at which counts, which are exact, already show what time does not."""
        return max(1, self.limits.size // _LESS)

    @property
    def _is_settled(self) -> bool:
        return self._worst_factor >= CONVINCING and self.tried - self._worsened >= _SETTLED

    def _is_over(self, share: float) -> bool:
        is_late = time.monotonic() - self._started > share * self.limits.seconds
        return is_late or (self.limits.inputs is not None and self.tried >= share * self.limits.inputs)

    def _learn_patience(self, seeds: Sequence[InputFamily]) -> None:
        """Try the seeds, and learn how long a run may take."""
        took: list[float] = []
        for seed in seeds:
            began = time.monotonic()
            self._try(seed, self.limits.size)
            took.append(time.monotonic() - began)
        self._are_seeds_tried = True
        self._patience_s = max(_LEAST_PATIENCE_S, _PATIENCE * statistics.median(took)) if took else _LEAST_PATIENCE_S

    def _suggested(self, seeds: Sequence[InputFamily]) -> Iterator[InputFamily]:
        """Yield what seeds suggest, in turns, and from when it is met on what those inputs suggest that reached something new."""
        turns = deque(proposals(seed, self.words) for seed in seeds)
        while turns:
            turns.extendleft(proposals(step, self.words) for step in self._steps)
            self._steps.clear()
            suggestions = turns.popleft()
            family = next(suggestions, None)
            if family is not None:
                turns.append(suggestions)
                yield family

    def _attacking(self, seeds: Sequence[InputFamily]) -> Iterator[InputFamily]:
        """Yield the attacks, each in all ways to run an input that seeds have."""
        ways = list({f"{seed.workload} {seed.values}": seed for seed in seeds if not seed.dial}.values())
        yield from (replace(way, segments=attack) for attack in self.attacks for way in ways)

    def _try(self, family: InputFamily, size: int) -> None:
        """Try an input of a size, or the largest below at which it ends, and keep it where it is worth it.

        Where head does more, it is tried in the largest size as well.
        """
        entry = self._entry(family, size)
        if entry is not None and size < self.limits.size and entry.ratio >= self.least_ratio:
            larger = self._entry(family, self.limits.size)
            entry = larger if larger is not None and larger.factor > entry.factor else entry
        if entry is None:
            return
        if entry.factor > _WORSE * self._worst_factor:
            self._worst_factor, self._worsened = entry.factor, self.tried
        new = self.corpus.add(entry)
        if len(new) and not family.dial and self._are_seeds_tried:
            self._steps.append(self._step(family, new))

    def _step(self, family: InputFamily, new: Ints) -> InputFamily:
        """Return a single input, as small as it can be made, that reaches places which only one of a family did."""

        def reaches(smaller: InputFamily) -> bool:
            trial = self._trial(smaller, 1)
            return trial.is_whole and bool(trial.counts[Side.HEAD][new].any())

        whole = replace(family, segments=(Segment(family.content(2)[:_STEP_BYTES]),))
        return reduction.reduced(whole, reaches, _STEP_TRIALS)

    def _entry(self, family: InputFamily, size: int) -> CorpusEntry | None:
        ended = self._largest(family, family.times_within(size))
        if ended is None:
            return None
        times, trial = ended
        slowdown = self._slowdown(family, times, trial) if trial.seems_slower else 1.0
        return CorpusEntry(family, times, trial, self.oracle.comparison.ratio(trial), slowdown)

    def _largest(self, family: InputFamily, times: int) -> tuple[int, PairedRun] | None:
        """Return the most repetitions of a family's input, up to `times`, that both sides end with, and what they did; else None."""
        hanging = 0
        ended: tuple[int, PairedRun] | None = None
        while ended is None:
            trial = self._trial(family, times)
            if trial.is_whole:
                ended = times, trial
            elif not trial.hangs or times == 1:
                self._tell(family, times, trial)
                return None
            else:
                hanging, times = times, max(1, times // _SHRINK)
        for _ in range(_BETWEEN if hanging else 0):
            middle = round((ended[0] * hanging) ** 0.5)
            if middle in {ended[0], hanging}:
                break
            trial = self._trial(family, middle)
            if trial.is_whole:
                ended = middle, trial
            else:
                hanging = middle
        return ended

    def _trial(self, family: InputFamily, times: int) -> PairedRun:
        self.tried += 1
        self.advance(f"{self.tried:,} inputs, at most ×{self._worst_factor:.3g}")
        return self.oracle.trial(family, times, self._patience_s)

    def _slowdown(self, family: InputFamily, times: int, trial: PairedRun) -> float:
        """Return head's CPU time over base's, by the least of some runs; 1 where it is not slower after all."""
        least = dict(trial.cpu_ns)
        for _ in range(_REPEATS):
            again = self.oracle.trial(family, times, self._patience_s)
            if not again.is_whole:
                return 1.0
            least = {side: min(ns, again.cpu_ns[side]) for side, ns in least.items()}
        return least[Side.HEAD] / least[Side.BASE] if replace(trial, cpu_ns=least).seems_slower else 1.0

    def _tell(self, family: InputFamily, times: int, trial: PairedRun) -> None:
        if trial.failures and all(mishap.failures != trial.failures for mishap in self.mishaps):
            self.mishaps.append(Mishap(family, times, dict(trial.failures)))

    @property
    def _worst(self) -> list[CorpusEntry]:
        return [entry for entry in self.corpus.leading if entry.factor >= self.least_ratio][:MOST_SHOWN]

    def _reduced(self, entry: CorpusEntry) -> CorpusEntry:
        """Return an input without what is not needed to be as much worse."""
        smallest, times = entry, entry.times

        def shows_as_much(smaller: InputFamily) -> bool:
            nonlocal smallest
            if self._is_over(1.0):
                return False
            trial = self._trial(smaller, times)
            if not trial.is_whole:
                return False
            ratio = self.oracle.comparison.ratio(trial)
            slowdown = self._slowdown(smaller, times, trial) if entry.slowdown > 1.0 and trial.seems_slower else 1.0
            reduced = CorpusEntry(smaller, times, trial, ratio, slowdown)
            if reduced.value < _KEPT * entry.value:
                return False
            smallest = reduced
            return True

        reduction.reduced(entry.family, shows_as_much, _REDUCING_TRIALS)
        for finer, longer in reduction.finer(smallest.family):
            times = longer * entry.times
            if shows_as_much(finer):
                break
        return smallest
