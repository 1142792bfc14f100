"""What stations deliver: experiments as the files of the folder that they keep them in."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from perfdiff.cluster.protocol import Delivery
from perfdiff.errors import RecordingError
from perfdiff.records import tables


def delivered(key: str, folder: Path) -> Delivery:
    """Return an experiment with the key that it has on this machine."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return Delivery(key, tuple((path.relative_to(folder).as_posix(), path.read_bytes()) for path in files))


def kept(delivery: Delivery, folder: Path, machine: str) -> None:
    """Keep an experiment in a folder; raise RecordingError or StoreError."""
    with tables.written(folder) as draft:
        for name, content in delivery.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise RecordingError(f"{machine} sent a file that leads out of its folder: '{name}'", slug="damaged-recording")
            if name == tables.DIGESTS:
                continue  # they are made anew
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(content)
