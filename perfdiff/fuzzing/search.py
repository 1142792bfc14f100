"""The search: seeds, then what they suggest, then random changes of what was worth keeping, for as long as it may take."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfdiff.fuzzing import reduction
from perfdiff.fuzzing.corpus import Corpus
from perfdiff.fuzzing.families import Family, Segment
from perfdiff.fuzzing.mutations import Mutator
from perfdiff.fuzzing.proposals import proposals
from perfdiff.fuzzing.trials import Entry, Failure, Oracle, Trial
from perfdiff.records.schema import Side

MOST_SHOWN = 3  # inputs that are reported, of functions of their own
CONVINCING = 2.0  # times base's work: who has such an input looks for a worse one only while there are such

_PATIENCE = 20.0  # times a seed's time, after which a run hangs, but never less than:
_LEAST_PATIENCE_S = 1.0
_SHRINK = 4  # an input that hangs is tried again at a quarter of its size
_BETWEEN = 3  # sizes between the largest that ends and the smallest that hangs
_REPEATS = 2  # of a run that seems slower; the least of its times counts
_STEP_BYTES = 400  # of an input that reaches something new and becomes a seed itself
_SWEEP = 0.7  # of the time, at most, for what seeds suggest
_SETTLED = 150  # inputs since the last that was clearly worse than all before
_WORSE = 1.25  # times: clearly
_REDUCE = 0.15  # of the time for making the inputs that were found smaller


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a search goes: bytes of an input, seconds, inputs tried (None: as many as the time allows), and the seed of its chance."""

    size: int
    seconds: float
    inputs: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Mishap:
    """An input with which a side did not come to an end, while the other side may have."""

    family: Family
    times: int
    failures: dict[Side, Failure]


@dataclass(slots=True)
class Search:
    """A search with its corpus; `advance` is told of each input, `words` are those of the program."""

    oracle: Oracle
    limits: Limits
    words: Sequence[bytes]
    advance: Callable[[str], None]
    least_ratio: float
    tried: int = 0
    mishaps: list[Mishap] = field(default_factory=list)
    corpus: Corpus = field(init=False)
    _started: float = field(default_factory=time.monotonic)
    _patience_s: float = _LEAST_PATIENCE_S
    _worst_factor: float = 1.0
    _worsened: int = 0  # how many had been tried when that was met
    _later: list[Family] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.corpus = Corpus(self.oracle.comparison)

    def found(self, seeds: Sequence[Family]) -> list[Entry]:
        """Return the inputs on which head does more than base, as small as they can be made, the worst first, each of another function."""
        self._learn_patience(seeds)
        known: set[tuple[Segment, ...]] = set()
        for family in self._suggested(seeds):
            if self._is_over(_SWEEP) or self._is_settled:
                break
            if family.dial or family.segments not in known:
                known.add(family.segments)
                self._try(family)
        mutator = Mutator(self.words, random.Random(self.limits.seed))
        while self.corpus.parents and not self._is_over(1 - _REDUCE) and not self._is_settled:
            parents = self.corpus.parents
            chosen = mutator.chance.choice(parents)
            self._try(mutator.mutated(chosen.family, [parent.family for parent in parents]))
        return [self._reduced(entry) for entry in self._worst]

    @property
    def _is_settled(self) -> bool:
        return self._worst_factor >= CONVINCING and self.tried - self._worsened >= _SETTLED

    def _is_over(self, share: float) -> bool:
        is_late = time.monotonic() - self._started > share * self.limits.seconds
        return is_late or (self.limits.inputs is not None and self.tried >= share * self.limits.inputs)

    def _learn_patience(self, seeds: Sequence[Family]) -> None:
        """Try the seeds, and learn how long a run may take."""
        took: list[float] = []
        for seed in seeds:
            began = time.monotonic()
            self._try(seed)
            took.append(time.monotonic() - began)
        self._patience_s = max(_LEAST_PATIENCE_S, _PATIENCE * statistics.median(took)) if took else _LEAST_PATIENCE_S

    def _suggested(self, seeds: Sequence[Family]) -> Iterator[Family]:
        """Yield what seeds suggest, in turns, then what those inputs suggest that reached something new."""
        turns = itertools.zip_longest(*(proposals(seed, self.words) for seed in seeds if not seed.dial))
        yield from (family for turn in turns for family in turn if family is not None)
        while self._later:
            yield from proposals(self._later.pop(0), self.words)

    def _try(self, family: Family) -> None:
        """Try an input in the largest size at which it ends, and keep it where it is worth it."""
        tried = self._largest(family)
        if tried is None:
            return
        times, trial = tried
        slowdown = self._slowdown(family, times, trial) if trial.seems_slower else 1.0
        entry = Entry(family, times, trial, self.oracle.comparison.ratio(trial), slowdown)
        if entry.factor > _WORSE * self._worst_factor:
            self._worst_factor, self._worsened = entry.factor, self.tried
        if self.corpus.add(entry) and not family.dial:
            text = family.content(min(times, 2))[:_STEP_BYTES]
            self._later.append(replace(family, segments=(Segment(text),)))

    def _largest(self, family: Family) -> tuple[int, Trial] | None:
        """Return the most repetitions of a family's input that both sides end with, and what they did; None where there are none."""
        times, hanging = family.times_within(self.limits.size), 0
        ended: tuple[int, Trial] | None = None
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

    def _trial(self, family: Family, times: int) -> Trial:
        self.tried += 1
        self.advance(f"{self.tried:,} inputs, at most ×{self._worst_factor:.3g}")
        return self.oracle.trial(family, times, self._patience_s)

    def _slowdown(self, family: Family, times: int, trial: Trial) -> float:
        """Return head's CPU time over base's, by the least of some runs; 1 where it is not slower after all."""
        least = dict(trial.cpu_ns)
        for _ in range(_REPEATS):
            again = self.oracle.trial(family, times, self._patience_s)
            if not again.is_whole:
                return 1.0
            least = {side: min(ns, again.cpu_ns[side]) for side, ns in least.items()}
        return least[Side.HEAD] / least[Side.BASE] if replace(trial, cpu_ns=least).seems_slower else 1.0

    def _tell(self, family: Family, times: int, trial: Trial) -> None:
        if trial.failures and all(mishap.failures != trial.failures for mishap in self.mishaps):
            self.mishaps.append(Mishap(family, times, dict(trial.failures)))

    @property
    def _worst(self) -> list[Entry]:
        return [entry for entry in self.corpus.leading if entry.factor >= self.least_ratio][:MOST_SHOWN]

    def _reduced(self, entry: Entry) -> Entry:
        """Return an input without what is not needed to be as much worse."""
        smallest = entry
        for family in reduction.smaller(entry.family, lambda: smallest.family):
            if self._is_over(1.0):
                break
            trial = self._trial(family, entry.times)
            if trial.is_whole:
                ratio = self.oracle.comparison.ratio(trial)
                slowdown = trial.cpu_ns[Side.HEAD] / trial.cpu_ns[Side.BASE] if entry.slowdown > 1.0 else 1.0
                reduced = Entry(family, entry.times, trial, ratio, slowdown)
                if reduced.value >= reduction.KEPT * entry.value:
                    smallest = reduced
        return smallest
