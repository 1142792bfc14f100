"""Everything that perfdiff can fail with. `cli` turns each kind into an exit code; `docs/messages.md` explains each slug."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


class PerfdiffError(Exception):
    """An expected failure: its text says what failed, where, and what to do next.

    `slug` names the entry of `docs/messages.md` that explains it; `detail` holds longer evidence, such as the end of a build log.
    """

    def __init__(self, message: str, *, slug: str, detail: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to make it again in the process that asked: constructors of these take more than a text."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[PerfdiffError], texts: tuple[object, ...], fields: dict[str, object]) -> PerfdiffError:
    error = kind.__new__(kind, *texts)
    error.__dict__.update(fields)
    return error


class UsageError(PerfdiffError):
    """The command line or the configuration cannot be followed (exit code 2)."""


class ConfigError(UsageError):
    """The configuration is wrong; the message names file, line and key (exit code 2)."""


class AnnotationSyntaxError(UsageError):
    """The text of an annotation cannot be read; the message names line and column (1-based) and what was expected (exit code 2)."""

    def __init__(self, line: int, column: int, expected: str, actual: str) -> None:
        super().__init__(
            f"annotation, line {line}, column {column}: expected {expected}, found {actual}; correct it there, or write the annotation anew"
            " with `perfdiff annotate`",
            slug="annotation-syntax",
        )
        self.line = line
        self.column = column
        self.expected = expected


class RevisionError(UsageError):
    """A revision, repository or worktree cannot be had (exit code 2)."""


class MeasurementError(PerfdiffError):
    """Something needed for the measurement failed (exit code 3)."""


class OutOfTimeError(MeasurementError):
    """The time that a comparison may take was over before anything was known (exit code 4)."""


class BuildError(MeasurementError):
    """A build failed on one side."""


class NothingCompiledError(BuildError):
    """A build compiled nothing; `switches` are options that are off and may be the reason."""

    def __init__(self, message: str, *, detail: str, switches: tuple[str, ...]) -> None:
        super().__init__(message, slug="no-compile-commands", detail=detail)
        self.switches = switches


class TooLittleTimeError(BuildError):
    """A stage was not begun, as it would not end in the time that is left."""


class WorkloadError(MeasurementError):
    """A workload failed, hung or crashed on one side."""


class NothingToRunError(WorkloadError):
    """Of what a project seemed to have nothing was built that runs."""

    def __init__(self, message: str) -> None:
        super().__init__(message, slug="no-benchmarks")


class RunFailedError(WorkloadError):
    """A run of a workload, or a service of it, crashed, failed or hung; `point` and `side` are those of a lone one without probes."""

    point: int | None = None
    side: str | None = None


class RunTimeoutError(RunFailedError):
    """A run of a workload did not end in its time, whatever comes before it did."""


class ServiceError(WorkloadError):
    """A service of a workload ended, or was not ready: the error tells which."""


class ServiceFailedError(ServiceError, RunFailedError):
    """A run failed by one of its services."""


class NothingCalledError(WorkloadError):
    """A workload has no part of the project at work, as far as probes and the files that it opens tell."""


class StraysError(WorkloadError):
    """Runs made together left processes, `names` in words, and nobody can tell which of the runs started them."""

    def __init__(self, names: str) -> None:
        super().__init__(
            f"runs made at the same time leave processes ({names}), and nobody can tell which of the runs started them; let the workload "
            "wait for what it starts, or set `alone = true`",
            slug="processes-left",
        )
        self.names = names


class DiskFilledError(WorkloadError):
    """A workload wrote so much that the disk got full; what it wrote lies in the built tree."""


class InputChangedError(WorkloadError):
    """An input file of a workload is not what it was when measuring began."""


class RecordingError(MeasurementError):
    """A recording or sample table is damaged, or of a format this version cannot read."""


class DamageError(Exception):
    """The byte at `offset` of a recording cannot be part of it; who knows the file's name makes a RecordingError of it."""

    def __init__(self, offset: int, says: str, slug: str = "recording-damaged") -> None:
        super().__init__(says)
        self.offset = offset
        self.slug = slug


class StoreError(MeasurementError):
    """The cache cannot be written or read."""

    @classmethod
    def about(cls, folder: Path, error: OSError) -> StoreError:
        """Return the error for a failure of the file system in the cache that is, or contains, `folder`."""
        if error.errno in _FULL:
            return cls(f"no space left in {folder}; run `perfdiff cache prune`, or put the cache elsewhere with --cache", slug="disk-full")
        if error.errno == errno.EFBIG:
            return cls(
                f"a file in {folder} reached the limit on file sizes of this process; raise it with `ulimit -f unlimited`", slug="disk-full"
            )
        where = f" ({error.filename})" if error.filename and Path(str(error.filename)) != folder else ""
        return cls(
            f"{folder} cannot be used: {error.strerror or error}{where}; make it writable, or put the cache elsewhere with --cache",
            slug="cache-unwritable",
        )


class BusyError(StoreError):
    """Another process holds the cache, or a part of it, for longer than is waited for."""


@contextmanager
def store_errors(folder: Path) -> Iterator[None]:
    """Tell any failure of the file system as the cache's, which `folder` is or lies in."""
    try:
        yield
    except OSError as error:
        raise StoreError.about(folder, error) from error
