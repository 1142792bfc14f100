"""The sheet: the text that tells a process which PHP functions are probed under which numbers, and what is read.

perfdiff php 1
alias <name>                                     another name that a method of a trait may be called by
file <name>                                      a file of the tree, relative to it
place <path>                                     an absolute path that it may be compiled from; one line each
probe <number> <first line> <last line> <name>   a function of it, by the engine's lines and name; the file's own: `{main}`
read <how> <path>                                its features, in the order of their cells
branch <number> <of> <first line> <last line> <number> <of>
                                                 its conditions: each one's number among the jumps that the compiler writes for the
                                                 function, its lines, and its number among the jumps of its line; 0 of 0: not told
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from perfdiff.languages.interpreter_parts import write_probes
from perfdiff.languages.protocol import Probe

_MAGIC = "perfdiff php 1"


def write(path: Path, probes: Sequence[Probe], places: Mapping[str, Sequence[Path]], aliases: Iterable[str] = ()) -> None:
    """Write `probes` to the sheet at `path`, whose form is shown above; raise StoreError where it cannot be written.

    `places` gives for each file of the tree all absolute paths that it may be loaded from. A line of the sheet cannot hold a path with a
    line break, so functions loaded from there are not probed. `aliases` are all names that classes of the tree may give to methods of
    traits.
    """
    write_probes(path, (_MAGIC, *(f"alias {name}" for name in sorted(set(aliases)))), probes, places)
