"""The parts that a fleet recorded: which there are, which of them are of base and of head, and which cannot be compared."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff.errors import RecordingError, UsageError
from perfdiff.records import parts
from perfdiff.records.parts import Part
from perfdiff.records.schema import Environment, Note, Revision, Side

_AHEAD_NS = 300 * 10**9  # clocks of hosts differ by less, where anything sets them
_SHORTEST = 4  # digits by which a commit, or content, may be named
_NAMED = 3  # examples in a note
_NO_PART = "holding no part"
_UNREADABLE = "unreadable"

Resolve = Callable[[str], str | None]  # the commit that a word means in a repository at hand


@dataclass(frozen=True, slots=True)
class FleetPart:
    """The description of a part, without its functions, and the folder that holds it."""

    folder: Path
    part: Part


@dataclass(slots=True)
class LeftOut:
    """The parts that are not compared, by reason, some of them by name."""

    reasons: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        """Count a part."""
        self.reasons.setdefault(reason, []).append(name)

    def notes(self) -> tuple[Note, ...]:
        """Return a note a reason, the most frequent first."""
        return tuple(
            Note(
                "fleet-left-out", f"{_parts(len(names)) if reason != _NO_PART else _folders(len(names))} left out, {reason}: {_some(names)}"
            )
            for reason, names in sorted(self.reasons.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        )


@dataclass(frozen=True, slots=True)
class Fleet:
    """All parts that can be read, each once, in an order that the folders they lie in do not decide; and what was left out."""

    parts: tuple[FleetPart, ...]
    left_out: LeftOut
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetChoice:
    """The parts that are compared, of both sides, under the revisions that they are of."""

    sides: Mapping[Side, tuple[FleetPart, ...]]
    revisions: Mapping[Side, Revision]
    notes: tuple[Note, ...]


def find(folders: Iterable[Path], advance: Callable[[str], None] = lambda _: None) -> Fleet:
    """Return the parts at and below folders; what is damaged, of another format, or there twice is left out and told, never an error."""
    left_out, by_id, doubles = LeftOut(), dict[str, FleetPart](), 0
    for folder in folders:
        places = list(parts.below(folder))
        if not places:
            left_out.add(_NO_PART, folder.name)
        for place in places:
            try:
                part = parts.load(place)
            except RecordingError as error:
                left_out.add("of another format" if error.slug == "format-version" else _UNREADABLE, place.name)
                continue
            doubles += part.id in by_id
            by_id.setdefault(part.id, FleetPart(place, replace(part, functions=())))
            advance(place.name)
    ordered = tuple(by_id[id_] for id_ in sorted(by_id))
    notes = [*_clock_notes(ordered)]
    if doubles:
        notes.append(Note("fleet-doubles", f"{_parts(doubles)} were there twice, as copies; each counts once"))
    return Fleet(ordered, left_out, tuple(notes))


def _clock_notes(members: Sequence[FleetPart]) -> Iterable[Note]:
    now = time.time_ns()
    hosts = {member.part.host for member in members if member.part.runs_backwards or member.part.ended_unix_ns > now + _AHEAD_NS}
    if hosts:
        yield Note(
            "fleet-clocks",
            f"clocks of {_some(sorted(hosts))} were set while they recorded, or are ahead of this one: times of day are not used",
        )


@dataclass(frozen=True, slots=True)
class FleetSelection:
    """Which parts are compared: of the revisions `base` and `head`, as words; those that bear `labels`, and whatever those in `pooled` say.

    `resolve` is git's where a repository is at hand.
    """

    base: str | None = None
    head: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    pooled: tuple[str, ...] = ()
    resolve: Resolve | None = None


def choose(fleet: Fleet, selection: FleetSelection) -> FleetChoice:
    """Return the parts of both revisions that can be compared; raise UsageError where there are none, or it is not said which those are.

    Parts are compared that have the same labels, and were built alike. RecordingError where those that can be read are of fewer than two
    revisions, and others cannot be.
    """
    unreadable = fleet.left_out.reasons.get(_UNREADABLE, ())
    if unreadable and len({member.part.tree for member in fleet.parts}) < len(Side):
        others = f"there are only those of {_revisions(fleet.parts)} beside" if fleet.parts else "there are no others"
        raise RecordingError(
            f"{_parts(len(unreadable))} cannot be read ({_some(unreadable)}), and {others}: copy them once more, or record anew",
            slug="fleet-damaged",
        )
    left_out = LeftOut({reason: list(names) for reason, names in fleet.left_out.reasons.items()})
    labelled = []
    for member in fleet.parts:
        if all(member.part.labels.get(name) == value for name, value in selection.labels.items()):
            unlabelled = {name: value for name, value in member.part.labels.items() if name not in selection.pooled}
            labelled.append(replace(member, part=replace(member.part, labels=unlabelled)))
        else:
            left_out.add("bearing other labels", member.folder.name)
    if not labelled:
        raise UsageError(_nothing(fleet, left_out), slug="fleet-empty")
    trees = _trees(labelled, selection)
    sides = {side: [member for member in labelled if member.part.tree == trees[side]] for side in Side}
    for member in labelled:
        if member.part.tree not in trees.values():
            left_out.add(f"of another revision ({member.part.revision.rev})", member.folder.name)
    for says, key in _COMPARABLE:
        sides = _common(sides, says, key, left_out)
    revisions = {side: _usual([member.part.revision for member in members]) for side, members in sides.items()}
    notes = (*fleet.notes, *left_out.notes(), *_host_notes(sides))
    return FleetChoice({side: tuple(members) for side, members in sides.items()}, revisions, notes)


def _labels(member: FleetPart) -> object:
    return tuple(sorted(member.part.labels.items()))


def _build(member: FleetPart) -> object:
    return member.part.build, member.part.environment.compiler


def _recorder(member: FleetPart) -> object:
    return member.part.environment.perfdiff


_COMPARABLE: tuple[tuple[str, Callable[[FleetPart], object]], ...] = (
    ("bearing labels that no part of the other revision bears", _labels),
    ("built by another compiler or with other flags than any part of the other revision", _build),
    ("recorded by another version of perfdiff than any part of the other revision", _recorder),
)


def _common(
    sides: Mapping[Side, list[FleetPart]], says: str, key: Callable[[FleetPart], object], left_out: LeftOut
) -> dict[Side, list[FleetPart]]:
    """Return the parts whose key both sides have; raise UsageError where there is none."""
    shared = set.intersection(*({key(member) for member in members} for members in sides.values()))
    common = {side: [member for member in members if key(member) in shared] for side, members in sides.items()}
    for side, members in sides.items():
        for member in members:
            if key(member) not in shared:
                left_out.add(f"of {side}, {says}", member.folder.name)
    if not all(common.values()):
        detail = "\n".join(note.text for note in left_out.notes())
        raise UsageError(
            f"nothing of base and head can be compared, each side's parts are left out: {says}", slug="fleet-apart", detail=detail
        )
    return common


def _trees(members: Sequence[FleetPart], selection: FleetSelection) -> dict[Side, str]:
    """Return the contents that stand for base and head: those that the words mean; of one word, the other is the only one left."""
    by_tree = Counter(member.part.tree for member in members)
    words = {Side.BASE: selection.base, Side.HEAD: selection.head}
    trees = {side: _named(members, word, selection.resolve) for side, word in words.items() if word is not None}
    rest = [tree for tree in by_tree if tree not in trees.values()]
    if len(trees) == 1 and len(rest) == 1:
        trees |= {side: rest[0] for side in Side if side not in trees}
    if len(trees) < len(Side):
        raise UsageError(
            f"parts of {_revisions(members)} are there: say which are compared, with --base REV and --head REV", slug="fleet-revisions"
        )
    if trees[Side.BASE] == trees[Side.HEAD]:
        raise UsageError(
            f"'{selection.base}' and '{selection.head}' are the same content: there is nothing to compare", slug="fleet-revisions"
        )
    return trees


def _named(members: Sequence[FleetPart], word: str, resolve: Resolve | None) -> str:
    """Return the content that a word means: a recorded name of a revision, how its commit or content begins, or what git says."""
    commit = resolve(word) if resolve else None
    matching = {
        member.part.tree: None
        for member in members
        if word == member.part.revision.rev
        or (len(word) >= _SHORTEST and ((member.part.revision.commit or "").startswith(word) or member.part.tree.startswith(word)))
        or (commit is not None and member.part.revision.commit == commit)
    }
    if len(matching) == 1:
        return next(iter(matching))
    if not matching:
        raise UsageError(f"no part is of '{word}'; there are parts of {_revisions(members)}", slug="fleet-revisions")
    raise UsageError(f"'{word}' stands for {len(matching)} contents; name the commit", slug="fleet-revisions")


def revisions(fleet: Fleet) -> dict[str, Revision]:
    """Return the revisions that there are parts of, by content; a content that goes by several names has the most frequent."""
    named: dict[str, list[Revision]] = {}
    for member in fleet.parts:
        named.setdefault(member.part.tree, []).append(member.part.revision)
    return {tree: _usual(same_content) for tree, same_content in named.items()}


def _usual(same_content: Sequence[Revision]) -> Revision:
    counted = Counter((revision.rev, revision.commit) for revision in same_content)
    rev, commit = min(counted, key=lambda pair: (-counted[pair], pair[0], pair[1] or ""))
    return Revision(rev, commit, "")


def _revisions(members: Sequence[FleetPart]) -> str:
    counted = Counter(member.part.revision.rev for member in members)
    return ", ".join(f"{name} ({_parts(count)})" for name, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _host_notes(sides: Mapping[Side, Sequence[FleetPart]]) -> Iterable[Note]:
    hosts = {side: {member.part.host for member in members} for side, members in sides.items()}
    both = hosts[Side.BASE] & hosts[Side.HEAD]
    if not both:
        yield Note(
            "fleet-hosts-apart",
            f"no host recorded both revisions: {len(hosts[Side.BASE])} recorded base, {len(hosts[Side.HEAD])} others head, so that what "
            "differs between them counts as head's, as far as their kind does not tell it apart",
        )


def machine_key(part: Part) -> tuple[str, Environment]:
    """Return a key that two parts share if one machine recorded them: its name, and all of its environment that changes times."""
    environment = part.environment
    return part.host, replace(environment, created="", flags=(), clock="", pmu=False)


def _nothing(fleet: Fleet, left_out: LeftOut) -> str:
    reasons = "; ".join(note.text for note in left_out.notes()[:_NAMED])
    return "there is no part to compare" + (f": {reasons}" if reasons else "; `perfdiff record REV -- COMMAND` leaves some")


def _parts(count: int) -> str:
    return f"{count:,} {'part' if count == 1 else 'parts'}"


def _folders(count: int) -> str:
    return f"{count:,} {'folder' if count == 1 else 'folders'}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
