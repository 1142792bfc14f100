"""What may have to do with a change: the functions within which large programs are looked at first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from perfdiff.collect.choosing.calling import callers
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.languages.protocol import Counterpart

# Sources that are compiled from which on probes are not put into all: to compile fewer takes seconds.
LARGE = 20
_CALLERS = 2  # steps up from a change: guilt goes along calls, and whoever calls often or with larger inputs is seldom further away
_START = "main"  # what is done outside of the vicinity counts as its part


def vicinity(subjects: Subjects, compiled: Collection[str]) -> frozenset[int] | None:
    """Return the functions to look at first in a program of these `compiled` files, None where all are looked at.

    The functions are the suspects, what calls them, what they call, what reads fields that they write, the start of programs, and all
    whose probes need no build. Of others that did not change, those of files that are not compiled by themselves are left out: a probe in
    a header has all that includes it compiled. All functions are looked at where nothing changed, where few files are compiled, and where
    the change has to do with more than half of them.
    """
    pairs, suspects = subjects.pairs, subjects.suspects
    if len(compiled) < LARGE or not suspects:
        return None
    above, near = callers(subjects.calls), set(suspects)
    step = suspects
    for _ in range(_CALLERS):
        step = frozenset[int]().union(*(above.get(id_, ()) for id_ in step))
        near |= step
    near |= frozenset[int]().union(*(subjects.calls[id_] for id_ in suspects))
    written = _fields(pairs, suspects)
    near |= {id_ for id_, pair in pairs.items() if pair.shown.name == _START or not written.isdisjoint(_read(pair))}
    languages = {pair.shown.language for pair in pairs.values() if pair.shown.file in compiled}
    chosen = {
        id_
        for id_, pair in pairs.items()
        if id_ in suspects or pair.shown.language not in languages or (id_ in near and pair.shown.file in compiled)
    }
    files = {pairs[id_].shown.file for id_ in chosen}.intersection(compiled)
    return frozenset(chosen) if 2 * len(files) <= len(compiled) else None


def _fields(pairs: Mapping[int, Counterpart], ids: Iterable[int]) -> frozenset[str]:
    return frozenset[str]().union(*(side.writes for id_ in ids for side in (pairs[id_].base, pairs[id_].head) if side))


def _read(pair: Counterpart) -> frozenset[str]:
    return frozenset[str]().union(*(side.reads for side in (pair.base, pair.head) if side))
