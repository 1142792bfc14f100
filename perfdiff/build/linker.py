"""Running compilers once more: in the environment of a build, until a deadline."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

from perfdiff import processes, temporary

_SPECIAL = frozenset("\\'\" \t\n\r\f\v")


@dataclass(frozen=True, slots=True)
class Linker:
    """Runs commands with this environment, none of them beyond `deadline` (of the monotonic clock); nobody reads what they print."""

    environment: Mapping[str, str]
    deadline: float

    def run(self, program: str, arguments: Sequence[str], directory: Path, more: Mapping[str, str] | None = None) -> bool:
        """Run a compiler, or what reads response files as it does; return whether it ended well and in time."""
        with temporary.folder() as room:
            response = room / "arguments"  # the shell's command line has a most length
            response.write_text("\n".join(map(quoted, arguments)), encoding="utf-8", errors="surrogateescape")
            environment = {**self.environment, "TMPDIR": str(room), **(more or {})}
            command = shlex.join([program, f"@{response}"])
            with processes.running(command, directory, environment, stdout=DEVNULL, stderr=DEVNULL) as process:
                return processes.succeeds(process, self.deadline - time.monotonic())

    @property
    def is_late(self) -> bool:
        """Return whether the deadline is over."""
        return time.monotonic() >= self.deadline


def quoted(word: str) -> str:
    """Return a word as a response file holds it: a backslash before each character that would part it, two quotes for nothing."""
    return "".join(f"\\{character}" if character in _SPECIAL else character for character in word) or '""'
