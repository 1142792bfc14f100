"""Programs of a target, such as its interpreter, that are asked something and answer on their standard output."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STARTS_WITHIN_S = 60.0  # an interpreter or a JVM starts within a second; on a network drive, not yet cached, it may take several


def answer(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    within_s: float = STARTS_WITHIN_S,
) -> subprocess.CompletedProcess[str]:
    """Return how a program ended and what it printed; raise OSError or TimeoutExpired. Without an `environment` it has ours."""
    return subprocess.run(
        command,
        env=None if environment is None else dict(environment),
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=within_s,
        stdin=subprocess.DEVNULL,
    )
