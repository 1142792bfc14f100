"""Links along which a change can make unchanged code slower.

Those who make its calls, return what it works with, write what it reads, or allocate what it frees; else those it calls, or who call it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from perfdiff.analysis.blame.newcalls import NewCalls, new_calls
from perfdiff.analysis.blame.texts import Texts, frees
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.languages.installed import installed
from perfdiff.records.differences import EntityKind
from perfdiff.records.schema import Change, Feature, FunctionInfo, Origin

_MOST_NAMED = 3  # names of shared data that a link tells
_SIZES = tuple(traits.wording.sizes for traits in installed() if traits.wording.sizes is not None)


class LinkKind(StrEnum):
    """How a change reaches a place where its cost shows, strongest evidence first."""

    OWN = "own"
    CALLS = "calls"
    CALLED = "called"  # makes most of the calls of the place where it shows
    RETURN = "return"
    DATA = "data"
    MEMORY = "memory"  # allocates what is freed there
    CALLEE = "callee"
    INPUTS = "inputs"
    ANCESTOR = "ancestor"


@dataclass(frozen=True, slots=True)
class BlameLink:
    """A way from a suspect to where cost shows; `weight` is its part among all suspects behind the same cost, `through` the data."""

    suspect: int
    kind: LinkKind
    weight: float
    through: str = ""


@dataclass(frozen=True, slots=True)
class PassedNames:
    """The names of what a suspect passes on: what it writes, or of one that does the same work what changed in its types.

    Those are `mentioned` that its changed lines name; `structures` are what they are parts of.
    """

    names: frozenset[str]
    structures: frozenset[str]
    mentioned: frozenset[str]

    @classmethod
    def of(cls, names: frozenset[str], words: Collection[str]) -> PassedNames:
        """Return them of `names`, with the `words` of the changed lines."""
        structures = frozenset(_structure(name) for name in names)
        return cls(names, structures, frozenset(name for name in names if name.rsplit(".", 1)[-1] in words))

    def exactly(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the names that are wanted."""
        return self.names & wanted

    def by_structure(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the names whose structures are wanted."""
        if self.structures.isdisjoint(wanted):
            return frozenset()
        return frozenset(name for name in self.names if _structure(name) in wanted)

    def weight(self, names: frozenset[str]) -> float:
        """Return the weight of a suspect that passes on these names: higher if its changed lines mention them."""
        return len(names) + (POLICY.mentioned - 1.0) * len(names & self.mentioned)


@dataclass(frozen=True, slots=True)
class Web:
    """What ties functions together: calls seen on either side (`callers` and `callees` of each; 0 starts a thread), and shared data.

    `new` are the calls and allocations that head alone makes, `works_more` the functions that work more a call, by counts,
    `laid_out_anew` those of which only types' sizes differ, `reading_other_data` those of which only variables that they read do. Those
    `of_another_version` only tell another one, and are behind nothing that others do.
    """

    functions: Mapping[int, FunctionInfo]
    callers: Mapping[int, frozenset[int]]
    callees: Mapping[int, frozenset[int]]
    ran: frozenset[int]
    new: NewCalls = field(default_factory=NewCalls)
    works_more: frozenset[int] = frozenset()
    laid_out_anew: frozenset[int] = frozenset()
    of_another_version: frozenset[int] = frozenset()
    reading_other_data: frozenset[int] = frozenset()
    texts: Texts = field(init=False, repr=False, compare=False)
    _passed: dict[int, PassedNames] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", Texts(self.functions))

    @property
    def passed(self) -> Mapping[int, PassedNames]:
        """Return the names that each suspect passes on to others, for those that ran, by id."""
        if not self._passed:
            for function in sorted(self.functions):
                if self.acts(function):
                    info = self.functions[function]
                    culprits = frozenset(map(str, info.culprits))  # a type is named as the data in it are
                    names = culprits if function in self.laid_out_anew else info.writes | culprits
                    self._passed[function] = PassedNames.of(names, self.texts.words(function))
        return self._passed

    def suspect(self, function: int) -> bool:
        """Return whether the function's own change can be guilty, and ran."""
        return function in self.ran and self.functions[function].change.is_suspect

    def has_new_text(self, function: int) -> bool:
        """Return whether a suspect does something else than before, not the same with types of another size."""
        return self.acts(function) and function not in self.laid_out_anew

    def acts(self, function: int) -> bool:
        """Return whether a suspect may be behind what others do."""
        return self.suspect(function) and function not in self.of_another_version

    def is_known_to_differ(self, function: int) -> bool:
        """Return whether something of the function or of what it depends on is known to differ, not only possible."""
        info = self.functions[function]
        return info.change.is_suspect and (info.change is not Change.AFFECTED or bool(info.culprits))

    def is_root(self, function: int) -> bool:
        """Return whether nothing that is probed calls the function: what it hands on is the workload itself."""
        return self.functions[function].name == "main" or self.callers.get(function, frozenset()) <= {0, function}


def spin(ledger: Ledger, functions: Mapping[int, FunctionInfo], works_more: Collection[int] = ()) -> Web:
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
        new=new_calls(ledger),
        works_more=frozenset(works_more),
        laid_out_anew=frozenset(function for function, info in functions.items() if is_laid_out_anew(info)),
        of_another_version=_of_another_version(functions, ran, works_more),
        reading_other_data=frozenset(function for function, info in functions.items() if reads_other_data(info)),
    )


def _of_another_version(functions: Mapping[int, FunctionInfo], ran: Collection[int], works_more: Collection[int]) -> frozenset[int]:
    """Return the suspects that differ in the program's version alone and do no more work; none if all suspects are such."""
    suspects = {function for function, info in functions.items() if function in ran and info.change.is_suspect}
    versions = {function for function in suspects - {*works_more} if _tells_another_version(functions[function])}
    return frozenset(versions) if versions < suspects else frozenset()


def _tells_another_version(info: FunctionInfo) -> bool:
    """Return whether all that differs are versions of the program."""
    return info.change is Change.AFFECTED and bool(info.culprits) and all(culprit.kind is EntityKind.VERSION for culprit in info.culprits)


def is_laid_out_anew(info: FunctionInfo) -> bool:
    """Return whether all that differs is where the fields of types lie: the function then does the same work, at other addresses.

    What reckons with a type's size, as in how many fit into a block, may do something else.
    """
    types = all(culprit.kind.is_laid_out for culprit in info.culprits)
    reckons = any(sizes.search(source.text) for sizes in _SIZES for source in (info.base, info.head) if source is not None)
    return info.change is Change.AFFECTED and bool(info.culprits) and types and not reckons


def reads_other_data(info: FunctionInfo) -> bool:
    """Return whether all that differs are definitions of variables that the function reads."""
    return info.change is Change.AFFECTED and bool(info.culprits) and all(culprit.kind is EntityKind.VARIABLE for culprit in info.culprits)


def behind_some_new_calls(web: Web, function: int) -> list[BlameLink]:
    """Return links to the changed functions that make the new calls of a function whose text is the same and that reads changed data."""
    if not web.suspect(function) or function not in web.reading_other_data:
        return []
    return _weighted(
        web.new.makers(function, lambda caller: web.has_new_text(caller) and caller not in web.reading_other_data), LinkKind.CALLED
    )


def behind_new_calls(web: Web, function: int) -> list[BlameLink]:
    """Return who makes most of the calls of a function that changed in nothing but, at most, its types' layout; none where few are new."""
    if web.has_new_text(function) or not web.new.is_mostly_new(function):
        return []
    return _weighted(web.new.makers(function, web.has_new_text), LinkKind.CALLED)


def behind_state(web: Web, function: int) -> list[BlameLink]:
    """Return who is behind an unchanged function that costs more at equal inputs, or calls others more often.

    Who makes calls that are mostly new first, for that is proved. Then data, the most specific: a suspect that returns what the function
    works with, or writes what it reads, even if it ran only once, or allocates what it frees. Then the nearest suspects among its callees,
    which may return more, and among its callers.
    """
    return behind_new_calls(web, function) or _by_specific_data(web, function) or _by_structure_or_calls(web, function)


def behind_sharing(web: Web, function: int) -> list[BlameLink]:
    """Return who is behind lines that an unchanged function now fetches from other threads or nodes: who placed them, else the nearest."""
    return _shares(_by_data(web, function)) or _by_structure_or_calls(web, function)


def _by_specific_data(web: Web, function: int) -> list[BlameLink]:
    """Return the suspects behind the very data that a function works on, each way weighted by what speaks for it."""
    return _shares([*_returns(web, function), *_by_data(web, function), *_by_memory(web, function)])


def _by_structure_or_calls(web: Web, function: int) -> list[BlameLink]:
    return (
        _by_structure(web, function)
        or _nearest(web, function, web.callees, LinkKind.CALLEE)
        or _ancestors(web, function, LinkKind.ANCESTOR)
    )


def introducers(web: Web, function: int) -> set[int]:
    """Return the changed functions behind an added one's calls: its callers; of callers that are added themselves, theirs, if any changed.

    What was added in many parts costs little in each: it is the change that calls for all of them that adds it up. A caller whose own text
    is the same calls for nothing: what it depends on, such as the bases of its class, leads its call elsewhere. Where all callers are such,
    the added function has nobody behind it.
    """
    changed: set[int] = set()
    seen, frontier = {0, function}, {function}
    while frontier:
        above = frozenset().union(*(web.callers.get(callee, frozenset()) for callee in frontier)) - seen
        seen |= above
        frontier = {caller for caller in above if web.functions[caller].change is Change.ADDED}
        changed |= {caller for caller in above - frontier if web.suspect(caller)}
    if changed:
        return {caller for caller in changed if web.functions[caller].change is not Change.AFFECTED}
    return {caller for caller in web.callers.get(function, frozenset()) - {0, function} if web.suspect(caller)}


def behind_inputs(web: Web, function: int, grown: Collection[Feature]) -> list[BlameLink]:
    """Return who is behind larger inputs of a function; none where they come from the workload.

    Arguments are passed by callers; fields and globals are written by anyone.
    """
    passed = [link for link in _ancestors(web, function, LinkKind.INPUTS) if not web.is_root(link.suspect)]
    if not any(web.suspect(caller) for caller in web.callers.get(function, frozenset())):
        passed = _shares(_returns(web, function)) or passed
    written = _shares(_by_data(web, function)) or _by_structure(web, function)
    stored = any(feature.origin in (Origin.FIELD, Origin.GLOBAL) for feature in grown)
    return written or passed if stored else passed or written


def _shares(links: Collection[BlameLink]) -> list[BlameLink]:
    whole = sum(link.weight for link in links)
    return [BlameLink(link.suspect, link.kind, link.weight / whole, link.through) for link in links]


def _returns(web: Web, function: int) -> list[BlameLink]:
    """Return suspects whose values a function gets: it calls them, or unchanged code that calls both hands the value on.

    What its callers' callers may hand down to it counts where nobody is nearer, and only of changes that touch what is returned.
    Weights are evidence, not yet shares: does the change touch what is returned, and has it another way to act?
    """
    below = {link.suspect for link in _nearest(web, function, web.callees, LinkKind.RETURN)}
    around = _around(web, function)
    near = [suspect for suspect in sorted(below | next(around)) if _hands_out(web, suspect)]
    suspects = near or next(
        (sure for level in around if (sure := [suspect for suspect in sorted(level) if _hands_out_another(web, suspect)])), []
    )
    links = []
    for suspect in suspects:
        touched = POLICY.mentioned if _hands_out_another(web, suspect) else 1.0
        weight = touched * (POLICY.near if suspect in below else 1.0) * (1.0 if web.functions[suspect].writes else POLICY.pure)
        links.append(BlameLink(suspect, LinkKind.RETURN, weight))
    return links


def _around(web: Web, function: int) -> Iterator[set[int]]:
    """Yield the suspects that are called beside a function by unchanged code above it: by its callers, by theirs, and so on."""
    above = {function}
    for _ in range(POLICY.handed_down):
        callers = {caller for callee in above for caller in web.callers.get(callee, frozenset()) if caller and not web.suspect(caller)}
        yield {
            neighbour
            for caller in callers - {function}
            for neighbour in web.callees.get(caller, frozenset()) - {function}
            if web.suspect(neighbour)
        }
        above = callers


def _hands_out(web: Web, suspect: int) -> bool:
    return web.has_new_text(suspect) and bool(web.texts.returned(suspect)) and not web.texts.only_sets_aside(suspect)


def _hands_out_another(web: Web, suspect: int) -> bool:
    """Return whether the change touches what a suspect returns."""
    return _hands_out(web, suspect) and not web.texts.returned(suspect).isdisjoint(web.texts.words(suspect))


def _by_memory(web: Web, function: int) -> list[BlameLink]:
    """Return suspects that allocate what a function frees, where runs allocate more: their counts are exact. Weights are evidence."""
    if not frees(web.functions[function]):
        return []
    roots = [root for root in web.ran if web.is_root(root)]
    owners = web.new.owners(roots, web.has_new_text, lambda caller: reached(web.callees, caller))
    return [BlameLink(owner, LinkKind.MEMORY, POLICY.mentioned * POLICY.near) for owner in sorted(owners)]


def _by_data(web: Web, function: int) -> list[BlameLink]:
    """Return suspects that write exactly what the function reads, weighted by evidence.

    A suspect that does the same work on types laid out anew writes the same as before; it cannot make others execute more.
    """
    shared = _shared(web, function, PassedNames.exactly, web.functions[function].reads)
    return [BlameLink(suspect, LinkKind.DATA, weight, _named(shared[suspect])) for suspect, weight in _data_weights(web, function, shared)]


def _by_structure(web: Web, function: int) -> list[BlameLink]:
    """Return suspects that write other parts of the structures that the function reads, weighted by their shares.

    Other parts are not what the function reads: suspects that it calls are linked by that instead, the others by the structure.
    """
    wanted = frozenset(_structure(name) for name in web.functions[function].reads)
    shared = _shared(web, function, PassedNames.by_structure, wanted)
    if not shared:
        return []
    callees = _near(web, function, web.callees)
    links = _weighted(dict(_data_weights(web, function, shared)), LinkKind.DATA)
    return [
        replace(link, kind=LinkKind.CALLEE)
        if link.suspect in callees
        else replace(link, through=_named({_structure(name) for name in shared[link.suspect]}))
        for link in links
    ]


def _shared(
    web: Web, function: int, among: Callable[[PassedNames, frozenset[str]], frozenset[str]], wanted: frozenset[str]
) -> dict[int, frozenset[str]]:
    """Return what suspects pass on `among` what is wanted of the function's data, by suspect, of those that pass on any."""
    others = web.laid_out_anew if function in web.works_more else frozenset()
    passed_on = ((suspect, among(passed, wanted)) for suspect, passed in web.passed.items() if suspect not in others)
    return {suspect: names for suspect, names in passed_on if names} if wanted else {}


def _data_weights(web: Web, function: int, shared: Mapping[int, frozenset[str]]) -> Iterator[tuple[int, float]]:
    """Yield how much speaks for each suspect that shares data with a function: what its changed lines mention, and how near it is."""
    near = _near(web, function, web.callees) | _near(web, function, web.callers) if shared else set()
    for suspect, names in shared.items():
        yield suspect, web.passed[suspect].weight(names) * (POLICY.near if suspect in near else 1.0)


def _near(web: Web, function: int, steps: Mapping[int, frozenset[int]]) -> set[int]:
    return {link.suspect for link in _nearest(web, function, steps, LinkKind.DATA)}


def _structure(name: str) -> str:
    return name.rsplit(".", 1)[0]


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)[:_MOST_NAMED])


def _nearest(web: Web, function: int, steps: Mapping[int, frozenset[int]], kind: LinkKind) -> list[BlameLink]:
    """Return the nearest suspects along `steps`, through functions that are none; all at the same distance count alike."""
    seen = {function, 0}
    frontier = {function}
    while frontier:
        frontier = {neighbour for at in frontier for neighbour in steps.get(at, frozenset())} - seen
        seen |= frontier
        suspects = [at for at in frontier if web.acts(at)]
        if suspects:
            return _weighted(dict.fromkeys(suspects, 1.0), kind)
    return []


def _ancestors(web: Web, function: int, kind: LinkKind) -> list[BlameLink]:
    return _nearest(web, function, web.callers, kind)


def _weighted(weights: Mapping[int, float], kind: LinkKind) -> list[BlameLink]:
    whole = sum(weights.values())
    return [BlameLink(suspect, kind, weights[suspect] / whole) for suspect in sorted(weights)]


def is_named_in(callee: FunctionInfo, caller: FunctionInfo) -> bool:
    """Return whether a caller's text names a function: else the calls go through others, which have no probe, or a pointer."""
    name = re.sub(r"<.*", "", callee.name.partition("(")[0]).rsplit("::", 1)[-1]
    return any(re.search(rf"\b{re.escape(name)}\b", source.text) for source in (caller.base, caller.head) if source is not None)


def work_moved(web: Web, cheaper: int, dearer: int) -> bool:
    """Return whether work may have gone from one function to the other.

    It has if lines that one dropped stand in the other's changes, or if one of them was added or removed and they are neighbours: one
    calls the other, or both are called by the same function. What several parts of a program need is loaded by whichever comes first.
    """
    first, second = web.functions[cheaper], web.functions[dearer]
    if first.loads and second.loads:
        return True
    if not web.texts.dropped(cheaper).isdisjoint(web.texts.added(dearer)):
        return True
    if not {first.change, second.change} & {Change.ADDED, Change.REMOVED}:
        return False
    return are_neighbours(web, cheaper, dearer)


def are_neighbours(web: Web, function: int, other: int) -> bool:
    """Return whether one function calls the other, or the same function calls both."""
    callers = [web.callers.get(callee, frozenset()) for callee in (function, other)]
    return function in callers[1] or other in callers[0] or bool((callers[0] & callers[1]) - {0})
