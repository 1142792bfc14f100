"""What was recorded of a request: from the cache, or measured now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from perfdiff import clustered, storage
from perfdiff.build.cache import BuildCache
from perfdiff.errors import RecordingError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.stages import measure
from perfdiff.progress import Progress, Silent
from perfdiff.records import recorded, store
from perfdiff.records.recorded import Recorded
from perfdiff.request import Request


def measured(asked: storage.Asked, request: Request, bench: Callable[[BuildCache, Path], Bench], progress: Progress) -> Recorded:
    """Return the stored recording, or measure now with a bench that gets the cache of builds and a folder to work in."""
    cache, wait_s = request.cache, request.config.measure.wait_s
    folder = storage.experiment(cache, asked)
    found = _kept(folder, progress)
    if found is None:
        with storage.at_work(cache, progress, wait_s=wait_s) as room, BuildCache(cache) as builds:
            found = _kept(folder, Silent())  # whoever was waited for may have asked the same
            if found is None:
                at_work = bench(builds, room)
                with clustered.makers(at_work) as makers:
                    folder = measure(at_work, folder, makers)
    found = found or recorded.load(folder)
    return replace(found, experiment=asked.names(found.experiment))


def _kept(folder: Path, progress: Progress) -> Recorded | None:
    """Return the stored recording, or None if there is none or it is damaged."""
    if not store.exists(folder):
        return None
    try:
        store.verify(folder)
        found = recorded.load(folder)
    except RecordingError as error:
        progress.note(f"{error}; measuring again")
        return None
    progress.note(f"measured already, at {found.experiment.environment.created}")
    return found
