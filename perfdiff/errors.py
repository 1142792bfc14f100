"""Everything that perfdiff can fail with. `cli` turns each kind into an exit code; `docs/messages.md` explains each slug."""

from __future__ import annotations


class PerfdiffError(Exception):
    """An expected failure: its text says what failed, where, and what to do next.

    `slug` names the entry of `docs/messages.md` that explains it; `detail` holds longer evidence, such as the end of a build log.
    """

    def __init__(self, message: str, *, slug: str, detail: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.detail = detail


class UsageError(PerfdiffError):
    """The command line or the configuration cannot be followed (exit code 2)."""


class ConfigError(UsageError):
    """The configuration is wrong; the message names file, line and key (exit code 2)."""


class RevisionError(UsageError):
    """A revision, repository or worktree cannot be had (exit code 2)."""


class MeasurementError(PerfdiffError):
    """Something needed for the measurement failed (exit code 3)."""


class BuildError(MeasurementError):
    """A build failed on one side."""


class WorkloadError(MeasurementError):
    """A workload failed, hung or crashed on one side."""


class RecordingError(MeasurementError):
    """A recording or sample table is damaged, or of a format this version cannot read."""


class StoreError(MeasurementError):
    """The cache cannot be written or read."""
