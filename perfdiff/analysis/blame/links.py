"""Who can be behind a change that shows in unchanged code: those who write what it reads, those it calls, those who call it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.records.schema import Change, Feature, FunctionInfo, Origin

# A suspect whose changed lines mention the shared field by name is so many times likelier behind it than one that only writes it; so is
# the nearest change among the callers or callees of the reader.
MENTIONED = 10.0
NEAR = 10.0


class LinkKind(StrEnum):
    """How a change reaches a place where its cost shows, strongest evidence first."""

    OWN = "own"
    CALLS = "calls"
    DATA = "data"
    CALLEE = "callee"
    INPUTS = "inputs"
    ANCESTOR = "ancestor"


@dataclass(frozen=True, slots=True)
class Link:
    """A way from a suspect to where cost shows; `weight` is its part among all suspects with the same evidence, `through` the data."""

    suspect: int
    kind: LinkKind
    weight: float
    through: str = ""


@dataclass(frozen=True, slots=True)
class Web:
    """What ties functions together: calls seen on either side (`callers` and `callees` of each; 0 starts a thread), and shared data."""

    functions: Mapping[int, FunctionInfo]
    callers: Mapping[int, frozenset[int]]
    callees: Mapping[int, frozenset[int]]
    ran: frozenset[int]

    def suspect(self, function: int) -> bool:
        """Return whether the function's own change can be guilty, and ran."""
        return function in self.ran and self.functions[function].change.is_suspect

    def is_root(self, function: int) -> bool:
        """Return whether nothing that is probed calls the function: what it hands on is the workload itself."""
        return self.functions[function].name == "main" or self.callers.get(function, frozenset()) <= {0, function}


def spin(ledger: Ledger, functions: Mapping[int, FunctionInfo]) -> Web:
    """Return the web of an experiment's functions."""
    ids = np.array([*ledger.ids, 0])
    callers: dict[int, set[int]] = {}
    callees: dict[int, set[int]] = {}
    ran: set[int] = set()
    for book in ledger.books.values():
        ran |= set(ids[:-1][book.calls.any(axis=0)].tolist())
        for callee, caller in book.edges:
            callers.setdefault(int(ids[callee]), set()).add(int(ids[caller]))
            callees.setdefault(int(ids[caller]), set()).add(int(ids[callee]))
    return Web(
        functions=functions,
        callers={key: frozenset(value) for key, value in callers.items()},
        callees={key: frozenset(value) for key, value in callees.items()},
        ran=frozenset(ran),
    )


def behind_state(web: Web, function: int) -> list[Link]:
    """Return who is behind an unchanged function that costs more at equal inputs, or calls others more often.

    Data first, for it is the most specific: a suspect that writes what the function reads, even if it ran only once. Then the
    nearest suspects among its callees, which may return more, and among its callers.
    """
    return _by_data(web, function) or _nearest(web, function, web.callees, LinkKind.CALLEE) or _ancestors(web, function, LinkKind.ANCESTOR)


def behind_inputs(web: Web, function: int, grown: Collection[Feature]) -> list[Link]:
    """Return who is behind larger inputs of a function; none where they come from the workload.

    Arguments are passed by callers; fields and globals are written by anyone.
    """
    passed = [link for link in _ancestors(web, function, LinkKind.INPUTS) if not web.is_root(link.suspect)]
    written = _by_data(web, function)
    stored = any(feature.origin in (Origin.FIELD, Origin.GLOBAL) for feature in grown)
    return written or passed if stored else passed or written


def _by_data(web: Web, function: int) -> list[Link]:
    """Return suspects that write exactly what the function reads, or else other parts of the same structures.

    Other parts are not what the function reads: suspects that it calls are linked by that instead, the others by the structure.
    """
    reads = web.functions[function].reads
    for name_of in (str, _structure):
        wanted = {name_of(name) for name in reads}
        shared: dict[int, set[str]] = {}
        for each, info in web.functions.items():
            if web.suspect(each):
                common = {name for name in info.writes | set(info.culprits) if name_of(name) in wanted}
                if common:
                    shared[each] = common
        if shared:
            callees, callers = (
                {link.suspect for link in _nearest(web, function, steps, LinkKind.DATA)} for steps in (web.callees, web.callers)
            )
            near = callees | callers
            weights = {each: _data_weight(web.functions[each], common) * (NEAR if each in near else 1.0) for each, common in shared.items()}
            if name_of is str:
                return _weighted(weights, LinkKind.DATA, shared)
            links = _weighted(weights, LinkKind.DATA, {each: {_structure(name) for name in common} for each, common in shared.items()})
            return [replace(link, kind=LinkKind.CALLEE, through="") if link.suspect in callees else link for link in links]
    return []


def _structure(name: str) -> str:
    return name.rsplit(".", 1)[0]


def _data_weight(info: FunctionInfo, shared: Iterable[str]) -> float:
    """Return how much speaks for a suspect: its changed lines mention what it writes."""
    words = set(re.findall(r"\w+", "\n".join(line for _, line in changed_lines(info))))
    return sum(MENTIONED if name.rsplit(".", 1)[-1] in words else 1.0 for name in shared)


def _nearest(web: Web, function: int, steps: Mapping[int, frozenset[int]], kind: LinkKind) -> list[Link]:
    """Return the nearest suspects along `steps`, through functions that are none; all at the same distance count alike."""
    seen = {function, 0}
    frontier = {function}
    while frontier:
        frontier = {each for at in frontier for each in steps.get(at, frozenset())} - seen
        seen |= frontier
        found = [each for each in frontier if web.suspect(each)]
        if found:
            return _weighted(dict.fromkeys(found, 1.0), kind)
    return []


def _ancestors(web: Web, function: int, kind: LinkKind) -> list[Link]:
    return _nearest(web, function, web.callers, kind)


def _weighted(weights: Mapping[int, float], kind: LinkKind, through: Mapping[int, Iterable[str]] | None = None) -> list[Link]:
    whole = sum(weights.values())
    return [
        Link(each, kind, weights[each] / whole, ", ".join(f"`{name}`" for name in sorted(through[each])[:3]) if through else "")
        for each in sorted(weights)
    ]


def reached(steps: Mapping[int, frozenset[int]], function: int) -> set[int]:
    """Return all functions that `steps`, such as a web's callers, lead to from one, without itself and the start of threads."""
    seen: set[int] = set()
    frontier = {function}
    while frontier:
        frontier = {each for at in frontier for each in steps.get(at, frozenset())} - seen - {0}
        seen |= frontier
    return seen - {function}


def is_named_in(callee: FunctionInfo, caller: FunctionInfo) -> bool:
    """Return whether a caller's text names a function: else the calls go through others, which have no probe, or a pointer."""
    name = re.sub(r"<.*", "", callee.name.partition("(")[0]).rsplit("::", 1)[-1]
    return any(re.search(rf"\b{re.escape(name)}\b", source.text) for source in (caller.base, caller.head) if source is not None)


def changed_lines(info: FunctionInfo) -> list[tuple[int, str]]:
    """Return the lines of head's text that base's lacks, as (line of the file, text)."""
    if info.head is None:
        return []
    return _lines_missing(info.head.text, info.base.text if info.base else "", info.head.line)


def dropped_lines(info: FunctionInfo) -> list[tuple[int, str]]:
    """Return the lines of base's text that head's lacks, as (line of the file, text)."""
    if info.base is None:
        return []
    return _lines_missing(info.base.text, info.head.text if info.head else "", info.base.line)


def _lines_missing(text: str, other: str, first: int) -> list[tuple[int, str]]:
    here, there = ([line.strip() for line in each.splitlines()] for each in (text, other))
    matcher = difflib.SequenceMatcher(a=there, b=here, autojunk=False)
    return [
        (first + place, here[place])
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for place in range(start, end)
        if here[place]
    ]


def work_moved(web: Web, cheaper: int, dearer: int) -> bool:
    """Return whether work may have gone from one function to the other.

    It has if lines that one dropped stand in the other's changes, or if one of them was added or removed and they are neighbours: one
    calls the other, or both are called by the same function.
    """
    first, second = web.functions[cheaper], web.functions[dearer]
    moved = {line for _, line in dropped_lines(first) if _tells(line)} & {line for _, line in changed_lines(second)}
    if moved:
        return True
    if not {first.change, second.change} & {Change.ADDED, Change.REMOVED}:
        return False
    callers = [web.callers.get(each, frozenset()) for each in (cheaper, dearer)]
    return cheaper in callers[1] or dearer in callers[0] or bool((callers[0] & callers[1]) - {0})


def _tells(line: str) -> bool:
    """Return whether a line says enough to be recognised elsewhere; braces and returns stand everywhere."""
    return len(re.findall(r"\w+", line)) >= 3
