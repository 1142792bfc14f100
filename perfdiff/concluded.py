"""What an analysis concluded, kept in the cache, so that an experiment is analysed once as long as nothing that decides changes."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from perfdiff.analysis.findings import Findings
from perfdiff.config import CompareConfig
from perfdiff.errors import RecordingError
from perfdiff.records import bounds, codec, entry, tables
from perfdiff.records.schema import Experiment

_MOST_BYTES = 256 * 1024 * 1024  # of findings: some 20 kB a function
_DECIDES = ("analysis", "models", "records", "units.py")  # the code that findings follow from


@dataclass(frozen=True, slots=True)
class StoredFindings:
    """The place in the cache of the findings on one experiment. What cannot be read or written there counts as absent."""

    path: Path

    def load(self) -> Findings | None:
        """Return the stored findings, None if there are none."""
        try:
            findings = codec.decode(Findings, bounds.parsed(bounds.content(self.path, _MOST_BYTES)))
        except (OSError, ValueError, RecordingError):
            return None
        with contextlib.suppress(OSError):  # only `cache prune` asks
            os.utime(self.path)
        return findings

    def save(self, findings: Findings) -> None:
        """Keep findings, without the costs that are known and accepted, which are looked up each time."""
        text = json.dumps(codec.encode(findings), default=_plain, separators=(",", ":"))
        with contextlib.suppress(OSError):
            entry.write(self.path, text)


def concluded(cache: Path, folder: Path, experiment: Experiment, config: CompareConfig) -> StoredFindings:
    """Return where the findings on the experiment in `folder` are kept, as it is judged by `config` and its revisions are named."""
    named = codec.encode((experiment.base, experiment.head, experiment.notes, [point.min_effect for point in experiment.points]))
    parts = [_code(), dict(tables.digests(folder)), codec.encode(config), named]
    key = blake2b(json.dumps(parts, sort_keys=True).encode(errors="surrogateescape"), digest_size=16).hexdigest()
    return StoredFindings(cache / "findings" / f"{key}.json")


@functools.cache
def _code() -> str:
    """Return a digest of the code that concludes: findings of another version of it are never used."""
    root, content = Path(__file__).parent, blake2b(digest_size=16)
    for part in _DECIDES:
        path = root / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            content.update(file.read_bytes())
    return content.hexdigest()


def _plain(value: object) -> object:
    """Return a number of numpy as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is nothing that findings are made of")
