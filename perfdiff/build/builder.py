"""Builds: the user's own command, run in a fresh tree under the compiler masquerade."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from perfdiff import processes, seals, temporary
from perfdiff.build import compilers
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache, place, remove_folder
from perfdiff.build.commands import read_compile_log
from perfdiff.build.failures import read_failure
from perfdiff.build.holdings import BUILD, OUTCOME, SOURCE
from perfdiff.build.jobs import Job, name, prepare
from perfdiff.build.links import read_links
from perfdiff.build.masquerade import Partner
from perfdiff.build.variants import BuildRequest, build_environment, build_key
from perfdiff.errors import BuildError, StoreError
from perfdiff.records.schema import Note, Phase, Side

_EARLIER = 32  # builds whose objects may serve: the variants of both sides of some comparisons


def build(request: BuildRequest, cache: BuildCache) -> Built:
    """Return the build that `request` asks for, from the cache where it was made before.

    Lays out the tree, inserts the probes, runs the command. BuildError (`build-failed`, `build-timeout`, `no-compiler`,
    `compiler-not-found`) names the side, the command and what is missing; its detail is what the log says there. `no-compile-commands`: the
    build ended well, but no compiler was seen at work.
    """
    return _obtained(request, _key(request, cache), cache)


def _obtained(request: BuildRequest, key: str, cache: BuildCache) -> Built:
    environment, changed = build_environment(request.environment), list[str]()

    def is_whole(folder: Path) -> bool:
        what = seals.broken(folder) or (request.workplace.broken(folder) if request.workplace else None)
        changed.extend([what] if what else [])
        return what is None

    def make(folder: Path) -> None:
        _make(_with_earlier(request, cache), environment, folder, cache.logs / f"{key}.log")

    # What is laid beside a tree, such as an environment of packages, leads to files of this machine.
    neighbours = cache.neighbours if request.workplace is None else None
    entry = cache.obtain(key, (lambda folder: neighbours.obtain(key, folder, make)) if neighbours else make, is_whole)
    built = _kept(entry, request.variant, request.pin.repository.folder)
    return replace(built, notes=(*built.notes, _changed(request, changed[0]))) if changed else built


def build_all(requests: Mapping[Side, BuildRequest], cache: BuildCache, ended: Callable[[Side], None]) -> dict[Side, Built]:
    """Return the builds of several sides, which are made at the same time if all they do is to compile; `ended` is called for each.

    As `build` otherwise: what fails at the same time is made again by itself, and so are all further builds with this cache. What
    neighbours may have is asked for one by one.
    """
    keys = {side: _key(request, cache) for side, request in requests.items()}
    requests, order, announced = _partnered(requests, keys, cache), list(requests), set[Side]()

    def tell(side: Side) -> None:
        if side not in announced:
            ended(side)
        announced.add(side)

    is_compiled = all(request.workplace is None and request.config.command for request in requests.values())
    if is_compiled and not cache.apart and cache.neighbours is None:
        failed = _make_together({keys[side]: request for side, request in requests.items()}, cache, tell)
        if failed is not None:
            cache.apart = True
            order.sort(key=lambda side: side is not failed)
    builds = {}
    for side in order:
        builds[side] = _obtained(requests[side], keys[side], cache)
        tell(side)
    return {side: builds[side] for side in requests}


def _partnered(requests: Mapping[Side, BuildRequest], keys: Mapping[Side, str], cache: BuildCache) -> Mapping[Side, BuildRequest]:
    """Return requests of two sides that know of each other's builds; others as they are."""
    if len(requests) != len(Side):
        return requests
    places = {side: place(cache.root, key) for side, key in keys.items()}
    partners = {side: Partner(places[other] / BUILD) for side, other in zip(Side, reversed(Side), strict=True)}
    return {side: replace(request, partner=partners[side]) for side, request in requests.items()}


def _changed(request: BuildRequest, what: str) -> Note:
    return Note(
        "build-changed",
        f"the kept build of {request.side} ({name(request)}) was made again: {what}; a perfdiff that was killed may have left it so, "
        "else see which workload or program writes to built trees",
    )


def is_kept(request: BuildRequest, cache: BuildCache) -> bool:
    """Return whether the build that `request` asks for was made before."""
    return cache.has(_key(request, cache))


def _key(request: BuildRequest, cache: BuildCache) -> str:
    return build_key(request, compilers.identity(build_environment(request.environment)), cache.root.absolute())


def verify(entry: Path) -> None:
    """Raise StoreError where what is known of a kept build cannot be read, its tree is gone, or what it executes is not as it was built."""
    if not _kept(entry, Phase.PLAIN, Path()).tree.is_dir():
        raise StoreError(f"the build kept in {entry} has lost its tree; `perfdiff cache verify --remove` clears it", slug="damaged-build")
    changed = seals.broken(entry)
    if changed is not None:
        raise StoreError(
            f"the build kept in {entry} is damaged: {changed}; `perfdiff cache verify --remove` clears it", slug="damaged-build"
        )


def _kept(entry: Path, variant: Phase, folder: Path) -> Built:
    tree = (entry / SOURCE).resolve()
    try:
        outcome = json.loads((entry / OUTCOME).read_text())
        log, links = read_compile_log(entry / BUILD / "calls", tree), read_links(entry / BUILD / "links")
        notes = tuple(Note(**note) for note in outcome["notes"])
        duration_s, anew = float(outcome["duration_s"]), str(outcome.get("anew", ""))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"the build kept in {entry} is damaged: {error}; `perfdiff cache verify --remove` clears it", slug="damaged-build"
        ) from error
    return Built(
        variant=variant,
        tree=tree,
        folder=tree / folder,
        commands=log.commands,
        dropped=log.dropped,
        notes=notes,
        duration_s=duration_s,
        uncounted=log.uncounted,
        links=links,
        anew=anew,
    )


def _make(request: BuildRequest, environment: Mapping[str, str], folder: Path, log: Path) -> None:
    job, started = prepare(request, environment, folder, log), time.monotonic()
    if job.repeats and _failure(job):
        why = f"repeating the plain build failed: {read_failure(log, job.tree).cause or 'its log tells nothing'}"
        for path in folder.iterdir():
            remove_folder(path)
        job = prepare(request, environment, folder, log, anew=why)
    if not job.repeats and job.request.config.command and (failure := _failure(job)):
        raise failure
    job.finish(time.monotonic() - started)


def _failure(job: Job) -> BuildError | None:
    """Run the command of a build; return what is wrong where it fails or does not end in time."""
    with job.running() as command:
        ended = any(True for _ in processes.ends([command], job.request.config.timeout_s))
    return None if ended and not command.returncode else job.failure(command.returncode if ended else None)


def _make_together(requests: Mapping[str, BuildRequest], cache: BuildCache, ended: Callable[[Side], None]) -> Side | None:
    """Make the builds, by their keys, that are not kept yet at the same time, where they are several; `ended` is called as each ends.

    Returns None, or the side to begin with when they are made one by one: if one fails, which may be the other's doing, or if compilers
    work in folders where builds would meet. Then none of them is kept.
    """
    missing = {key: _with_earlier(request, cache) for key, request in requests.items() if not cache.has(key)}
    if len(missing) < 2:
        return None
    with suppress(_ApartError), ExitStack() as rooms:
        claims = rooms.enter_context(temporary.folder())
        entered = {key: rooms.enter_context(cache.making(key)) for key in sorted(missing)}
        jobs = [
            prepare(_claiming(request, claims), build_environment(request.environment), folder, cache.logs / f"{key}.log")
            for key, request in missing.items()
            if (folder := entered[key]) is not None  # another process may have made it meanwhile
        ]
        started, failed = time.monotonic(), _run_together(jobs, ended)
        running_s = time.monotonic() - started
        failed = failed or next((job for job in jobs if job.writes_elsewhere()), None)
        if failed is not None:
            raise _ApartError
        for job in jobs:
            job.finish(running_s / len(jobs))
    return failed.request.side if failed else None


def _with_earlier(request: BuildRequest, cache: BuildCache) -> BuildRequest:
    """Return a request that knows of the kept builds whose objects may serve."""
    return replace(request, earlier=tuple(folder / BUILD for folder in cache.latest(_EARLIER)))


def _claiming(request: BuildRequest, claims: Path) -> BuildRequest:
    return replace(request, partner=replace(request.partner, claims=claims)) if request.partner else request


def _run_together(jobs: Sequence[Job], ended: Callable[[Side], None]) -> Job | None:
    """Run the commands of several builds at the same time; return one that failed, or did not end in time, and stop the others."""
    with ExitStack() as stack:
        commands = [stack.enter_context(job.running()) for job in jobs]
        for at in processes.ends(commands, min((job.request.config.timeout_s for job in jobs), default=0.0)):
            if commands[at].returncode:
                return jobs[at]
            ended(jobs[at].request.side)
        return next((job for job, command in zip(jobs, commands, strict=True) if command.returncode is None), None)


class _ApartError(Exception):
    """Builds were made at the same time that have to be made one by one."""
