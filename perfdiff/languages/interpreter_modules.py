"""What is loaded into an interpreter: the sources of a pack's own, and those that packs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

_SHARED = Path(__file__).parent / "interpreted"
_ENTRY = "module.c"  # where a module begins


def sources(pack: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the sources of a module that is made of parts (`runtime`, `counting`, `lines`) of the pack in a folder, and of what is shared.

    The first part says how the module begins.
    """
    for part in parts:
        for folder in (pack / part, _SHARED / part):
            found = (path for path in sorted(folder.iterdir()) if path.suffix in (".c", ".h"))
            yield from (path for path in found if part == parts[0] or path.name != _ENTRY)


def over(runtime: Path) -> tuple[str, ...]:
    """Return the compiler's options for a module over the runtime library in a folder, which it finds there when it is loaded."""
    return (f"-L{runtime}", "-isystem", str(runtime), f"-Wl,-rpath,{runtime}", "-lperfdiff")
