"""The file that `perf record` writes, which only `perf` itself reads: its text is asked for, each sample with its innermost function."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from perfdiff.errors import UsageError
from perfdiff.records.bounds import BoundError

MAGIC = b"PERFILE2"
_SHOWN = 200
# Symbols are those of this machine: no server is asked for others, and inlined functions, each of which takes a look-up, count for their
# callers, as without debugging information.
_COMMAND = ("env", "-u", "DEBUGINFOD_URLS", "perf", "script", "--hide-call-graph", "--no-inline", "-i")
_NOT_FOUND = 127  # by env(1)


def text_of(path: Path, largest_bytes: int) -> str:
    """Return the samples of a file as text; raise UsageError without `perf`, ValueError where it does not read the file."""
    with tempfile.TemporaryFile() as complaints:  # of any length, while the text is read
        command = [*_COMMAND, str(path.absolute())]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints) as process:
            assert process.stdout is not None, "it goes to a pipe"
            text = process.stdout.read(largest_bytes + 1)
            if len(text) > largest_bytes:
                process.kill()
                raise BoundError(f"its text has more than {largest_bytes:,} bytes")
        complaints.seek(0)
        complaint = complaints.read(_SHOWN).decode(errors="replace").strip()
    if process.returncode == _NOT_FOUND:
        by_hand = f"perf script -i {path.name} > {path.stem}.txt"
        raise UsageError(
            f"'{path}' is what `perf record` writes, and `perf` is not installed here; make a text of it where it is: `{by_hand}`",
            slug="profile-binary",
        )
    if process.returncode:
        raise ValueError(f"`perf script` exited {process.returncode}: {complaint}")
    return text.decode(errors="replace")
