"""Start a program whose system calls are reported: run by a bare interpreter (`python -I -S`), of perfdiff's modules it needs none.

Called with NAME PROGRAM ARGUMENTS…: NAME is an abstract socket, which sends the number of seccomp(2) and a filter, and gets the
descriptor that the kernel reports to. A machine that allows no such filter has the program start without one.
"""

import ctypes
import os
import socket
import struct
import sys

_NO_NEW_RIGHTS = 38  # prctl(2): without it only root may have filters
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _listener(number: int, steps: bytes) -> int:
    """Install a filter for this process and all that it starts; return the descriptor of its reports, -1 where that is not allowed."""
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0):
        return -1
    program = _FilterProgram(len(steps) // 8, steps)
    return int(kernel.syscall(number, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(program)))


def main(name: str, program: list[str]) -> None:
    """Have this process's calls reported, and become the program."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as supervisor:
        supervisor.connect("\0" + name)
        message = supervisor.recv(1 << 16)
        (number,) = struct.unpack_from("=I", message)
        listener = _listener(number, message[4:])
        if listener < 0:
            supervisor.send(b"0")
        else:
            socket.send_fds(supervisor, [b"1"], [listener])
            os.close(listener)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
