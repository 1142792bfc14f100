"""Sources that a build makes: where probes are to be in one, its text with them takes its place right before it is compiled.

Beside the header with the probes such sources lie in `made`, by their paths in the tree, under names that no build takes for sources: as a
build without probes made them (`….plain`), and with probes (`….probed`). One that this build made otherwise is compiled as it is.
"""

# Part of the masquerade: importing pathlib would take longer than all the rest.
# ruff: noqa: PTH101, PTH105, PTH112, PTH113, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import os

from perfdiff.build.calls import Build, ParsedCall


def put_probes(call: ParsedCall, build: Build) -> None:
    """Give the sources of a call their probes, with their times kept: `make` would make anew what is newer than all that depends on it."""
    room = os.path.join(os.path.dirname(build.header), "made")
    if not (build.header and call.compiles and os.path.isdir(room)):
        return
    for source, _ in call.sources:
        path = os.path.realpath(source)
        name = os.path.join(room, os.path.relpath(path, build.tree))
        plain, probed = f"{name}.plain", f"{name}.probed"
        if os.path.isfile(plain) and os.path.isfile(probed) and _content(path) == _content(plain):
            _replace(path, _content(probed))


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # the compiler says more about it
        return b""


def _replace(path: str, content: bytes) -> None:
    before, aside = os.stat(path), f"{path}.perfdiff-{os.getpid()}"
    with open(aside, "wb") as file:
        file.write(content)
    os.chmod(aside, before.st_mode & 0o7777)
    os.utime(aside, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(aside, path)  # another call may compile it at the same time
