"""What a client and the stations of workers say to each other: plain values, which Dask carries."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.kinds import Kind
from perfdiff.build.parcels import Parcel
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.runs.schedule import Made, Pair
from perfdiff.config import Config
from perfdiff.errors import (
    BuildError,
    DiskFilledError,
    InputChangedError,
    MeasurementError,
    PerfdiffError,
    RevisionError,
    StoreError,
    WorkloadError,
)
from perfdiff.measuring.site import Recipe
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Environment, Note
from perfdiff.revisions.bundles import Bundle, Sent, SentFile

NOTHING = Bundle((), "", b"", "")


@dataclass(frozen=True, slots=True)
class Checkout:
    """What stands in for the client's checkout: the `tree` of a revision, with `files` that no revision has.

    `folder` is where the project lies below the top. `bundle` travels apart.
    """

    repository: str
    folder: Path
    tree: str
    files: tuple[SentFile, ...]
    bundle: Bundle = NOTHING


@dataclass(frozen=True, slots=True)
class Commission:
    """What a station is to measure of a comparison: everything that is not the worker's own.

    `numbering` is that of the client's functions.
    """

    checkout: Checkout
    config: Config
    base: Sent
    head: Sent
    followed: frozenset[tuple[str, int]]
    numbering: str


@dataclass(frozen=True, slots=True)
class Series:
    """That a station is to measure revisions of a history by itself, as it is asked for them; for `followed` see `Request`."""

    checkout: Checkout
    config: Config
    followed: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Record:
    """One revision, to be recorded with all functions that its workloads call, or two, to be compared."""

    revisions: tuple[Sent, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """A pair to be made; of `planned` runs in all those that other work disturbed are made again."""

    pair: Pair
    planned: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A station that has made its plain builds: its host, and what it measures on."""

    host: str
    environment: Environment


@dataclass(frozen=True, slots=True)
class Fitted:
    """A station that has made the builds with probes; `skipped` are functions whose probes do not compile there."""

    skipped: tuple[SkippedFunction, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """A pair that was made, and all that the station has to tell so far."""

    made: Made
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What was recorded: the files of the folder that it is kept in, by their names; `key` is that of the worker's cache."""

    key: str
    files: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a station, in values: exceptions of ours have no form in which they travel."""

    kind: str
    text: str
    slug: str
    detail: str = ""

    @classmethod
    def of(cls, error: PerfdiffError) -> Failure:
        """Return an error as values."""
        return cls(type(error).__name__, str(error), error.slug, error.detail)

    @property
    def error(self) -> PerfdiffError:
        """Return the error."""
        kinds = {kind.__name__: kind for kind in (BuildError, DiskFilledError, InputChangedError, RevisionError, StoreError, WorkloadError)}
        return kinds.get(self.kind, MeasurementError)(self.text, slug=self.slug, detail=self.detail)


@dataclass(frozen=True, slots=True)
class Shelf:
    """What builds depend on on a worker, None where nothing can be built, and the keys of those that it has."""

    kind: Kind | None
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seeking:
    """In the midst of a request: the station needs a build that it has not; it goes on with `Handed`."""

    key: str


@dataclass(frozen=True, slots=True)
class Handed:
    """A build of another station; None asks this station to make it, and to answer `BuildReady` then."""

    parcel: Parcel | None


@dataclass(frozen=True, slots=True)
class BuildReady:
    """In the midst of a request: the station has made a build, which nothing has used yet; it goes on with `GoOn`."""

    key: str


@dataclass(frozen=True, slots=True)
class GoOn:
    """Nothing more is wanted of what a station has built."""


Opening = Commission | Series  # what a station hears first
Request = Commission | Recipe | Order | Series | Record
Question = Seeking | BuildReady  # of a station that is at a request, which is then not answered yet
Reply = Handed | GoOn
Answer = Ready | Fitted | Finished | Delivery | Failure


def numbering(subjects: Subjects) -> str:
    """Return a digest of the functions under their numbers, and of where each stands: probes for one machine then fit another."""
    places = [
        (id_, *((side.name, side.file, side.start, side.body, side.end, side.made) if side else None for side in (pair.base, pair.head)))
        for id_, pair in sorted(subjects.pairs.items())
    ]
    return hashlib.blake2b(repr(places).encode(), digest_size=16).hexdigest()
