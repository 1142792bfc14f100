"""The steps of a plain build: what was recorded of each call that made an object, an archive, a program or a shared library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.calls import ARCHIVE, ASSEMBLER, COMPILE, HEADER, LINK


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One call that ended well, by the record's name; `size` and `digest` (CRC-32) are its output's as the call left it.

    `changes` is what the build changed of its environment for the call, `inputs` the files that it was given, `files` those of the tree
    that its sources include, relative to it. `text` is the digest under which the object may serve other builds, None where it may not;
    `call` is the name of the compile's record.
    """

    record: str
    kind: str
    name: str
    directory: Path
    arguments: tuple[str, ...]
    changes: Mapping[str, str | None]
    output: Path
    size: int
    digest: int
    existed: bool  # the output, before
    started_ns: int
    ended_ns: int
    inputs: tuple[Path, ...]
    files: tuple[str, ...] = ()
    text: str | None = None
    reads_more: bool = False
    call: str | None = None

    @property
    def is_compile(self) -> bool:
        """Return whether it makes an object, and nothing else."""
        return self.kind == COMPILE

    @property
    def is_archive(self) -> bool:
        """Return whether it writes a static archive."""
        return self.kind == ARCHIVE

    @property
    def is_header(self) -> bool:
        """Return whether it precompiles a header."""
        return self.kind == HEADER

    @property
    def is_assembler(self) -> bool:
        """Return whether assembler text comes out, be it on standard output."""
        return self.kind == ASSEMBLER

    @property
    def is_link(self) -> bool:
        """Return whether a program or a shared library comes out."""
        return self.kind == LINK

    @property
    def command(self) -> tuple[object, ...]:
        """Return a key that is the same for each repetition of the same step."""
        return self.kind, self.name, self.directory, self.arguments, tuple(sorted(self.changes.items(), key=str))


def read_steps(build: Path, *, moved: tuple[str, str] = ("", "")) -> tuple[BuildStep, ...]:
    """Return the recorded steps of a build in the order in which they were recorded.

    `moved` are the parts of paths that are the build's alone and another one's, for which the steps are given. Raise OSError, ValueError,
    KeyError or TypeError where a record is damaged.
    """
    steps = []
    for file in sorted((*(build / "steps").glob("*.json"), *(build / "links").glob("*.json")), key=lambda file: file.name):
        text = file.read_text(encoding="utf-8")
        content = json.loads(text.replace(*moved) if moved[0] else text)
        steps.append(
            BuildStep(
                record=file.name,
                kind=content["kind"],
                name=content["name"],
                directory=Path(content["directory"]),
                arguments=tuple(content["arguments"]),
                changes=content["changes"],
                output=Path(content["output"]),
                size=content["size"],
                digest=content["digest"],
                existed=content["existed"],
                started_ns=content["started_ns"],
                ended_ns=content["ended_ns"],
                inputs=tuple(map(Path, content["inputs"])),
                files=tuple(content.get("files", ())),
                text=content.get("text"),
                reads_more=content.get("reads_more", False),
                call=content.get("call"),
            )
        )
    return tuple(steps)
