"""What whole runs ask of the kernel, as it counts that for each process anyway."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelUse:
    """What a run's program, and the processes that it waited for, asked of the kernel.

    `reads` and `writes` are system calls that read or write anything: files, pipes, sockets; `read_bytes` and `written_bytes` what they
    moved. `faults` are pages that the kernel had to lay in.
    """

    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    faults: int
