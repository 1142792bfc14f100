"""How each function differs between base and head, with the reasons in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfdiff.languages.dialect import Dialect, Renames, is_renamed
from perfdiff.languages.garbage import unsearched
from perfdiff.languages.pairing import FunctionPair, pair
from perfdiff.languages.protocol import Counterpart, Declaration, FunctionDefinition, Program
from perfdiff.records.differences import ChangeReason, Entity, ReasonKind, depends_reason, function_entity, other_reason
from perfdiff.records.schema import Change

FLAGS = "flags:"  # begins the keys of declarations that are compile flags of a file
_HAPPENED = {Change.CHANGED: "changed", Change.ADDED: "was added", Change.REMOVED: "was removed"}


@dataclass(frozen=True, slots=True)
class _Verdict:
    change: Change
    reasons: tuple[ChangeReason, ...] = ()
    culprits: tuple[Entity, ...] = ()


@unsearched()
def match(base: Program, head: Program, dialect: Dialect) -> tuple[Counterpart, ...]:
    """Pair the functions of both revisions and say how each differs; functions without any difference are returned as well."""
    pairs = pair(base, head, dialect)
    renames = frozenset(
        (pair.base.name, pair.head.name)
        for pair in pairs
        if pair.base is not None and pair.head is not None and pair.base.name != pair.head.name
    )
    comparison = _FunctionComparison(base, head, renames, dialect)
    verdicts = [comparison.verdict(pair) for pair in pairs]
    graph = _Graph(pairs)
    _stand_in_for_unprobed(pairs, verdicts, graph)
    _callers(pairs, verdicts, graph, dialect)
    return tuple(
        Counterpart(pair.base, pair.head, verdict.change, verdict.reasons, verdict.culprits)
        for pair, verdict in zip(pairs, verdicts, strict=True)
    )


class _FunctionComparison:
    """Compares single functions: their text, and what the text depends on."""

    def __init__(self, base: Program, head: Program, renames: Renames, dialect: Dialect) -> None:
        self._base, self._head, self._renames, self._dialect = base.declarations, head.declarations, renames, dialect
        self._base_entities = {declaration.entity for declaration in base.declarations.values()}
        self._head_entities = {declaration.entity for declaration in head.declarations.values()}
        self._differing = {key for key in self._base.keys() & self._head.keys() if not _is_same(self._base[key], self._head[key])}

    def verdict(self, pair: FunctionPair) -> _Verdict:
        """Return how a function differs, its callees left out of account."""
        if pair.base is None:
            return _Verdict(Change.ADDED, (ChangeReason(ReasonKind.ONE_SIDED, "added"),))
        if pair.head is None:
            return _Verdict(Change.REMOVED, (ChangeReason(ReasonKind.ONE_SIDED, "removed"),))
        base, head = pair.base, pair.head
        text = self._dialect.text_reasons(base, head, self._renames)
        uses, culprits = self._dependencies(base, head, same_text=not text)
        moved = _moved(base, head)
        if text:
            return _Verdict(Change.CHANGED, (*moved, *text, *uses), culprits)
        if uses:
            return _Verdict(Change.AFFECTED, (*moved, *uses), culprits)
        return _Verdict(Change.RENAMED, moved) if moved else _Verdict(Change.UNCHANGED)

    def _dependencies(
        self, base: FunctionDefinition, head: FunctionDefinition, *, same_text: bool
    ) -> tuple[tuple[ChangeReason, ...], tuple[Entity, ...]]:
        """Return reasons and culprits: declarations that a function uses on both sides and that differ."""
        if base.uses == head.uses and self._differing.isdisjoint(base.uses):
            return (), ()
        before, after = _by_name(base, self._base), _by_name(head, self._head)
        differences = []
        for entity in sorted(before.keys() & after.keys(), key=str):
            first, second = before[entity][0], after[entity][0]
            if {declaration.fingerprint for declaration in before[entity]} == {declaration.fingerprint for declaration in after[entity]}:
                continue
            if not is_renamed(first, second, self._renames):
                differences.append((f"{self._dialect.uses(second)}, whose {self._dialect.difference(first, second)} {_at(second)}", entity))
        if same_text:
            gone, new = before.keys() - after.keys() - self._head_entities, after.keys() - before.keys() - self._base_entities
            removed = [
                (f"{self._dialect.uses(before[entity][0])}, which was removed {_at(before[entity][0])}", entity)
                for entity in _without_equals(gone, new, before, after)
            ]
            added = [
                (f"{self._dialect.uses(after[entity][0])}, which is new {_at(after[entity][0])}", entity)
                for entity in _without_equals(new, gone, after, before)
            ]
            # Beside a declaration that differs, which may be what else is used now, only what the text itself names is sure to matter.
            words = set(self._dialect.tokens(head)) if differences else set()
            differences = [difference for difference in (*removed, *added) if not differences or difference[1].name in words] + differences
        differences += self._flag_changes(base, head)
        return tuple(depends_reason(says) for says, _ in differences), tuple(entity for _, entity in differences)

    def _flag_changes(self, base: FunctionDefinition, head: FunctionDefinition) -> list[tuple[str, Entity]]:
        before = {key: self._base[key] for key in base.uses if key.startswith(FLAGS)}
        after = {key: self._head[key] for key in head.uses if key.startswith(FLAGS)}
        common = sorted(before.keys() & after.keys())
        differences = [
            (_flag_difference(before[key], after[key]), after[key].entity)
            for key in common
            if before[key].fingerprint != after[key].fingerprint
        ]
        if (
            not common
            and before
            and after
            and {declaration.fingerprint for declaration in before.values()}.isdisjoint(
                declaration.fingerprint for declaration in after.values()
            )
        ):
            first, second = min(before.items())[1], min(after.items())[1]
            differences.append((_flag_difference(first, second), second.entity))
        return differences


def _is_same(base: Declaration, head: Declaration) -> bool:
    return base.fingerprint == head.fingerprint and base.entity == head.entity


def _by_name(definition: FunctionDefinition, declarations: Mapping[str, Declaration]) -> dict[Entity, list[Declaration]]:
    by_entity: dict[Entity, list[Declaration]] = defaultdict(list)
    for key in sorted(definition.uses):
        if not key.startswith(FLAGS):
            by_entity[declarations[key].entity].append(declarations[key])
    return by_entity


def _without_equals(
    entities: set[Entity], others: set[Entity], own: Mapping[Entity, list[Declaration]], other: Mapping[Entity, list[Declaration]]
) -> list[Entity]:
    """Return the entities whose declaration does not live on as one of the others."""
    fingerprints = {declaration.fingerprint for entity in others for declaration in other[entity]}
    return sorted((entity for entity in entities if own[entity][0].fingerprint not in fingerprints), key=str)


def _at(declaration: Declaration) -> str:
    return f"({declaration.file}:{declaration.line})"


def _flag_difference(base: Declaration, head: Declaration) -> str:
    before, after = base.summary.split(), head.summary.split()
    gone = " ".join(flag for flag in before if flag not in after)
    new = " ".join(flag for flag in after if flag not in before)
    differ = f"{gone} became {new}" if gone and new else f"now with {new}" if new else f"no longer with {gone}"
    return f"is compiled with other flags: {differ} ({head.file})"


def _moved(base: FunctionDefinition, head: FunctionDefinition) -> tuple[ChangeReason, ...]:
    reasons = []
    if base.name != head.name and base.name not in head.names and head.name not in base.names:
        reasons.append(ChangeReason(ReasonKind.MOVED, f"renamed from {base.name}"))
    if base.file != head.file:
        reasons.append(ChangeReason(ReasonKind.MOVED, f"moved from {base.file}"))
    return tuple(reasons)


class _Graph:
    """Which pairs call which, on either side, by position in the list of pairs."""

    def __init__(self, pairs: list[FunctionPair]) -> None:
        base = {pair.base.key: index for index, pair in enumerate(pairs) if pair.base is not None}
        head = {pair.head.key: index for index, pair in enumerate(pairs) if pair.head is not None}
        self.callers: dict[int, set[int]] = defaultdict(set)
        for index, sides in enumerate(pairs):
            callees = {base[key] for key in sides.base.calls if key in base} if sides.base is not None else set[int]()
            callees |= {head[key] for key in sides.head.calls if key in head} if sides.head is not None else set[int]()
            for callee in callees - {index}:
                self.callers[callee].add(index)


def _stand_in_for_unprobed(pairs: list[FunctionPair], verdicts: list[_Verdict], graph: _Graph) -> None:
    """Make those that call a changed function which can carry no probe affected by it: its cost can only show in them."""
    waiting = [index for index, verdict in enumerate(verdicts) if verdict.change.is_suspect and pairs[index].shown.obstacle]
    while waiting:
        callee = waiting.pop()
        definition = pairs[callee].shown
        culprit = function_entity(definition.name)
        reason = depends_reason(f"uses {culprit}, which {_happened(verdicts[callee])} ({definition.file}:{definition.line})")
        for caller in sorted(graph.callers[callee]):
            verdict = verdicts[caller]
            if culprit in verdict.culprits or verdict.change in (Change.ADDED, Change.REMOVED):
                continue
            change = verdict.change if verdict.change.is_suspect else Change.AFFECTED
            verdicts[caller] = _Verdict(change, (*verdict.reasons, reason), (*verdict.culprits, culprit))
            if not verdict.change.is_suspect and pairs[caller].shown.obstacle:
                waiting.append(caller)


def _callers(pairs: list[FunctionPair], verdicts: list[_Verdict], graph: _Graph, dialect: Dialect) -> None:
    reasons: dict[int, list[str]] = defaultdict(list)
    for callee, verdict in enumerate(verdicts):
        if verdict.change.is_suspect and not pairs[callee].shown.obstacle:
            for caller in graph.callers[callee]:
                reasons[caller].append(f"calls {dialect.parts(pairs[callee].shown.name)[-1]}, which {_happened(verdict)}")
    for caller, says in reasons.items():
        verdict = verdicts[caller]
        if verdict.change is Change.UNCHANGED:
            verdicts[caller] = _Verdict(Change.CALLER, _calling(says))
        elif verdict.change is Change.RENAMED:
            verdicts[caller] = _Verdict(Change.RENAMED, (*verdict.reasons, *_calling(says)))


def _calling(says: Iterable[str]) -> tuple[ChangeReason, ...]:
    return tuple(map(other_reason, sorted(set(says))))


def _happened(verdict: _Verdict) -> str:
    """Return what became of a suspect, in words that follow `which`; one that is affected depends on something."""
    return _HAPPENED.get(verdict.change) or f"depends on {', '.join(map(str, verdict.culprits))}"
