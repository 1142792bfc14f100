"""What runs ask of the kernel, and what they have open as they end."""

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


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """File descriptors and threads that the processes of a run had when they ended, those of their start and of the runtime among them."""

    descriptors: int
    threads: int
