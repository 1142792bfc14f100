"""What counted runs had still allocated at their ends, by the lines of the project that asked for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LastingSite:
    """A line of the project whose memory was still allocated at a run's end: its function, blocks, and their bytes in all.

    `line` is None and `text` empty where a library asked for the memory while the function was open, and the line is not known.
    """

    function: str
    file: str
    line: int | None
    text: str
    blocks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LastingMemory:
    """What the processes of each of some counted runs still had allocated when they ended: the same in all these runs."""

    runs: tuple[int, ...]
    sites: tuple[LastingSite, ...]

    @property
    def bytes(self) -> int:
        """Return the bytes of all sites."""
        return sum(site.bytes for site in self.sites)
