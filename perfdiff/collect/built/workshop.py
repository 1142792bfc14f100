"""Where both revisions are built in every variant and made ready to run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from perfdiff import units
from perfdiff.build import userhome
from perfdiff.build.builder import build_all, is_kept
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.holdings import BUILD
from perfdiff.build.layouts import Layouts
from perfdiff.build.masquerade import FlagKind, Plain
from perfdiff.build.variants import BuildRequest, Instrumentation
from perfdiff.collect.choosing import subjects
from perfdiff.collect.choosing.subjects import Probes
from perfdiff.collect.counts.counting import fixes_layout
from perfdiff.collect.runs.targets import Target
from perfdiff.config import BuildConfig
from perfdiff.deadline import Deadline
from perfdiff.errors import TooLittleTimeError, store_errors
from perfdiff.languages.packs import Packs
from perfdiff.progress import Progress
from perfdiff.records import plan
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.pins import Pin

LAYOUTS_SHARE = 0.1  # of the time that is left, where it is limited, for making layouts of a side: runs tell more
_BUILDS_FOR_USE = {Phase.SURVEY: 2}  # what the survey chooses takes another build to be counted or timed
_KINDS = {Phase.SURVEY: FlagKind.SURVEYED, Phase.TIMED: FlagKind.PROBED, Phase.COUNTED: FlagKind.COUNTED}


@dataclass(frozen=True, slots=True)
class Workshop:
    """Builds variants of each side that has a pin. `root` is the cache folder, `plans` an own folder for the files that steer probes."""

    pins: Mapping[Side, Pin]
    config: BuildConfig
    environment: Mapping[str, str]
    cache: BuildCache
    root: Path
    plans: Path
    packs: Packs
    progress: Progress
    deadline: Deadline = field(default_factory=Deadline)

    def plain(self) -> dict[Side, Built]:
        """Build all sides as they are; raise BuildError."""
        self.progress.stage(f"building ({Phase.PLAIN})", len(self.pins))
        return self._build(Phase.PLAIN, dict.fromkeys(self.pins), {})

    def layouts(self, plain: Mapping[Side, Built], most: int) -> dict[Side, Layouts]:
        """Return makers of the plain builds' layouts, at most `most` of each side."""
        layouts = {}
        for side in self.pins:
            room = self.plans / f"layouts-{side}"
            room.mkdir()
            layouts[side] = Layouts(plain[side], self.environment, room, most, LAYOUTS_SHARE * self.deadline.left_s)
        return layouts

    def probed(self, phase: Phase, probes: Probes, plain: Mapping[Side, Built]) -> dict[Side, Built]:
        """Build all sides with those `probes` in their sources that belong there; one that does not compile is dropped.

        Raise BuildError, or TooLittleTimeError where that would take longer than there is time. Where none does, the plain builds serve.
        """
        inserted = {side: self.packs.inserted(probes[side].values()) for side in self.pins}
        if not any(inserted.values()):
            return {side: replace(plain[side], variant=phase) for side in self.pins}
        self.progress.stage(f"building ({phase})", len(self.pins))
        files = frozenset(probe.definition.file for of_side in inserted.values() for probe in of_side)
        instrumentation = {
            side: Instrumentation(
                digest=subjects.digest(inserted[side]),
                insert=partial(self.packs.compiled.insert, probes=inserted[side], plain_tree=plain[side].tree),
                runtime=self.packs.compiled.runtime(_compiler(plain[side]), self.root / "runtime"),
                kind=_KINDS[phase],
                plain=replace(_plain(side, plain), probed=files if phase is Phase.TIMED else frozenset()),
            )
            for side in self.pins
        }
        return self._build(phase, instrumentation, plain)

    def placed(self, plain: Mapping[Side, Built], files: Collection[str] | None = None) -> dict[Side, Built]:
        """Build all sides with the compilers' own counters of lines; what does not take them is compiled without; raise BuildError.

        Of two revisions' units that are the same, those alone are counted that have text of `files`, paths in the tree, if these are given.
        Where nothing is compiled, the plain builds serve.
        """
        if not any(built.commands for built in plain.values()):
            return {side: replace(plain[side], variant=Phase.PLACED) for side in self.pins}
        self.progress.stage(f"building ({Phase.PLACED})", len(self.pins))
        instrumentation = {
            side: Instrumentation(
                digest="",
                insert=None,
                runtime=self.packs.compiled.runtime(_compiler(plain[side]), self.root / "runtime"),
                kind=FlagKind.PLACED_IN_THREADS if self.packs.compiled.has_threads(plain[side].tree) else FlagKind.PLACED,
                plain=_plain(side, plain, None if files is None else {Path(file).name for file in files}),
            )
            for side in self.pins
        }
        return self._build(Phase.PLACED, instrumentation, plain)

    def lost(self, built: Mapping[Side, Built], probes: Probes) -> frozenset[int]:
        """Return the functions whose probes are not in the built sources of a side: each build makes another text of their files."""
        missing: set[int] = set()
        for side in self.pins:
            inserted = self.packs.inserted(probes[side].values())
            missing |= {probe.id for probe in inserted} - self.packs.compiled.carried(built[side].tree, inserted)
        return frozenset(missing)

    def targets(
        self,
        phase: Phase,
        built: Mapping[Side, Built],
        modes: Mapping[int, plan.ProbePlan],
        probes: Probes,
        steering: Mapping[str, str] | None = None,
    ) -> dict[tuple[Phase, Side], Target]:
        """Return where to run each side; `modes` say what each probe does and are written to a plan per side."""
        fixed = phase is Phase.COUNTED and fixes_layout()
        targets = {}
        for side in self.pins:
            path, variables = None, dict(steering or {})
            if phase is not Phase.PLAIN:
                entries = {
                    id_: mode.sized(features=len(probe.features), branches=len(probe.branches))
                    for id_, probe in probes[side].items()
                    if (mode := modes.get(id_)) is not None
                }
                name = hashlib.blake2b(repr(sorted(entries.items())).encode(), digest_size=8).hexdigest()  # the survey has several plans
                path = self.plans / f"{phase}-{side}-{name}.plan"
                plan.write(path, entries)
                variables |= self.packs.attach(phase, built[side], [probes[side][id_] for id_ in entries], self.plans)
            targets[phase, side] = self._target(built[side], path, variables, fixed)
        return targets

    def counting_lines(self, built: Mapping[Side, Built]) -> dict[tuple[Phase, Side], Target]:
        """Return where to run each side of placed builds; raise RecordingError where the compilers' tools are missing."""
        return {
            (Phase.PLACED, side): replace(self._target(build, None, {}, fixed=False), places=self.packs.places(build))
            for side, build in built.items()
        }

    def _target(self, built: Built, plan_: Path | None, steering: Mapping[str, str], fixed: bool) -> Target:
        with store_errors(built.beside):
            userhome.lay_out(built.beside, self.environment)
        return Target(
            directory=built.folder,
            plan=plan_,
            steering=steering,
            fixed_layout=fixed,
            tree=built.tree,
            home=built.beside / userhome.NAME,
            variables=self.packs.variables(built, self.environment),
            draws=self.packs.draws(self.environment),
            calm=self.packs.calm(built, self.environment),
            byte_code=self.packs.byte_code(built) if built.variant is Phase.PLAIN else (),
        )

    def _build(
        self, phase: Phase, instrumentation: Mapping[Side, Instrumentation | None], plain: Mapping[Side, Built]
    ) -> dict[Side, Built]:
        requests = {
            side: BuildRequest(pin, side, phase, self.config, self.environment, instrumentation[side], self.packs.workplace)
            for side, pin in self.pins.items()
        }
        missing = {side for side, request in requests.items() if not is_kept(request, self.cache)}
        missing_s = sum(built.duration_s for side, built in plain.items() if side in missing)
        needed_s = missing_s * _BUILDS_FOR_USE.get(phase, 1)
        if missing_s and not self.deadline.allows(needed_s):
            raise TooLittleTimeError(
                f"building ({phase}) and what follows would take {units.duration(needed_s * 1e9)} or more, by the plain builds, and "
                f"{units.duration(max(self.deadline.left_s, 0.0) * 1e9)} are left; give the comparison more with --time",
                slug="too-little-time",
            )
        built = build_all(requests, self.cache, self.progress.advance)
        for side, why in ((side, built[side].anew) for side in built if side in missing):
            if why and why not in self.cache.reasons:
                self.cache.reasons.add(why)
                self.progress.advance(f"{side} was built anew, by its command, as its plain build cannot be repeated: {why}")
        return built


def dropped(built: Mapping[Side, Built], probes: Probes) -> tuple[SkippedFunction, ...]:
    """Return the functions whose probes did not compile, with what the compiler said."""
    skipped = []
    for side in built:
        for drop in built[side].dropped:
            probe = None if drop.probe is None else probes[side].get(drop.probe)
            name = probe.definition.name if probe else f"every function of {drop.file}"
            skipped.append(SkippedFunction(name, drop.file, f"its probe does not compile in {side}: {drop.reason}"))
    return tuple(skipped)


def _plain(side: Side, plain: Mapping[Side, Built], line_files: Collection[str] | None = None) -> Plain:
    """Return where the plain builds of a side, and of the other if there is one, were recorded."""
    other = next((built.beside / BUILD for other, built in plain.items() if other is not side), None)
    return Plain(plain[side].beside / BUILD, other, line_files, plain[side].used)


def _compiler(built: Built) -> str:
    return built.commands[0].compiler if built.commands else "cc"
