"""Recordings of processes that are running: what each has gained since it was last looked at, until it has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.errors import RecordingError
from perfdiff.records import recording
from perfdiff.records.recording import Recording
from perfdiff.records.standing import RunningSums

_ENDED = ("Z", "X", "")


@dataclass(slots=True)
class Live:
    """The recordings in a folder that processes write to. One whose process has ended is removed once all of it was read."""

    folder: Path
    problems: dict[str, str] = field(default_factory=dict)  # by slug: the first that could not be read
    _standing: dict[Path, RunningSums] = field(default_factory=dict)

    def gained(self) -> list[Recording]:
        """Return the additions to all recordings since the last look; recordings without any are left out."""
        gains = []
        for path in sorted(self.folder.glob("*.pdrec")):
            before = self._standing.get(path)
            has_ended = not _is_running(path)
            try:
                gain, now = recording.read_since(path, before)
            except RecordingError as error:
                self.problems.setdefault(error.slug, str(error))
                if has_ended:
                    self._forget(path)
                continue
            self._standing[path] = now
            if len(gain.totals):
                gains.append(gain)
            # A process of another namespace, as in a container, has a number that says nothing here: it tells by gaining calls.
            if has_ended and (gain.complete or (before is not None and now.calls == before.calls)):
                self._forget(path)
        return gains

    def _forget(self, path: Path) -> None:
        self._standing.pop(path, None)
        path.unlink(missing_ok=True)


def _is_running(path: Path) -> bool:
    """Return whether the process runs that a recording is of, by the number that begins its file's name."""
    try:
        state = Path(f"/proc/{path.name.partition('-')[0]}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(state) and state[0] not in _ENDED
