"""An emulated arm64 machine with a PMU that counts exactly: runs probed programs and returns what their processes recorded.

qemu executes one instruction every 2 ns of the machine's own time (`-icount`), so its counts of instructions and cycles, and its times, are
the same in every run. It emulates no caches and no branch predictor: their events are accepted and stay 0.
"""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
INIT = Path(__file__).parent / "emulated" / "init.c"
COMPILER = "aarch64-linux-gnu-gcc"
_CROSS = Path("/usr/aarch64-linux-gnu/lib")
_C_LIBRARY = ("ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")
_PAPI = ("libpapi.so.7.0", "libpfm.so.4", "libsde.so.1")
_LIMIT_S = 120.0
_QEMU = (
    *("qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-smp", "1", "-m", "256", "-nic", "none", "-icount", "shift=1,sleep=off"),
    *("-display", "none", "-monitor", "none", "-no-reboot"),
)
_KERNEL_LINE = "quiet console=ttyS0 sysctl.kernel.perf_event_paranoid=-1 panic=-1"  # a panic ends the machine


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run in the machine. `name` has no spaces; files of the machine are named by absolute paths."""

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a job left: its exit status, and the files of `/out`."""

    status: int
    files: tuple[bytes, ...]


@functools.cache
def packages() -> Path | str:
    """Return the folder with the machine's kernel and libraries, or why it cannot be had."""
    made = subprocess.run([ROOT / "scripts" / "emulated-machine"], capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return Path(made.stdout.strip())
    return f"no emulated machine: {made.stderr.strip().splitlines()[-1:] or 'scripts/emulated-machine failed'}"


def run(folder: Path, files: Mapping[str, Path | bytes], jobs: Sequence[Job]) -> dict[str, Result]:
    """Boot a machine with `files` at the given paths, run the jobs in it, one after the other, and return their results by name."""
    parts = packages()
    assert isinstance(parts, Path), parts
    init = folder / "init"
    subprocess.run([COMPILER, "-O2", "-Wall", "-Wextra", "-Werror", "-static", INIT, "-o", init], check=True)
    libraries = {f"lib/{name}": _CROSS / name for name in _C_LIBRARY} | {f"lib/{name}": parts / name for name in _PAPI}
    everything = {**libraries, **{name.lstrip("/"): content for name, content in files.items()}}
    lines = (" ".join((job.name, *(f"{name}={value}" for name, value in job.environment.items()), *job.words)) for job in jobs)
    (folder / "initramfs").write_bytes(_archive({**everything, "init": init, "jobs": "".join(f"{line}\n" for line in lines).encode()}))
    wire, console = folder / "wire", folder / "console"
    serial = ("-serial", f"file:{wire}", "-chardev", f"file,id=log,path={console}", "-device", "pci-serial,chardev=log")
    image = ("-kernel", str(parts / "kernel"), "-initrd", str(folder / "initramfs"), "-append", _KERNEL_LINE)
    subprocess.run([*_QEMU, *serial, *image], check=True, timeout=_LIMIT_S, stdin=subprocess.DEVNULL)
    results = dict(_results(wire.read_bytes()))
    assert list(results) == [job.name for job in jobs], console.read_text(errors="replace")[-2000:]
    return results


def available() -> bool:
    """Return whether the machine's programs are here, or could be installed."""
    return isinstance(packages(), Path) and shutil.which(_QEMU[0]) is not None


def _results(data: bytes) -> Iterator[tuple[str, Result]]:
    """Yield what came over the wire, as `init.c` sends it; what a machine that died left unfinished is dropped."""
    place = 0

    def number() -> int:
        nonlocal place
        place += 4
        return int(struct.unpack_from("<i", data, place - 4)[0])

    def text(size: int) -> bytes:
        nonlocal place
        place += size
        return data[place - size : place]

    try:
        while place < len(data):
            name, status, files = text(number()).decode(), number(), []
            while size := number():
                files.append(text(size) + bytes(number()))
            yield name, Result(status, tuple(files))
    except struct.error:
        return


def _archive(files: Mapping[str, Path | bytes]) -> bytes:
    """Return a cpio archive (newc, Linux's `Documentation/driver-api/early-userspace/buffer-format.rst`) with folders as needed."""
    folders = sorted(
        {str(parent) for name in (*files, "proc/x", "sys/x", "dev/x", "out/x") for parent in Path(name).parents if parent.name}
    )
    entries = [_entry(name, 0o040755, b"") for name in folders]
    for name, content in files.items():
        entries.append(_entry(name, 0o100755, content if isinstance(content, bytes) else content.read_bytes()))
    return b"".join((*entries, _entry("TRAILER!!!", 0, b"")))


def _entry(name: str, mode: int, content: bytes) -> bytes:
    encoded = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    header = b"070701" + "".join(f"{number:08X}" for number in numbers).encode() + encoded
    return _padded(header) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
