"""What a folder of the cache holds, by the names of its entries."""

from __future__ import annotations

from dataclasses import dataclass

KEY = "[0-9a-f]{32}"
# What a process writes that has not ended, here and by earlier versions, with the names of `tempfile` alone. One in sixteen of those
# names has neither digit nor underscore, and is left: so is `.htaccess`.
DRAFT = r"|\.writing-[a-z0-9_]{8}|\.(?=[a-z]*[0-9_])[a-z0-9_]{8}|tmp(?=[a-z]*[0-9_])[a-z0-9_]{8}"


@dataclass(frozen=True, slots=True)
class Holding:
    """A folder of the cache: what it holds, in words, and the patterns of its entries' names, one for each level of folders.

    Entries are folders where `holds_folders`, else files. Those that are `ageing` go by the time since they were used. Files whose names
    `beside` matches lie beside the entries.
    """

    says: str
    names: tuple[str, ...]
    holds_folders: bool
    ageing: bool = True
    beside: str | None = None


def parsed(says: str) -> Holding:
    """Return a folder of what was read off sources: files of JSON in folders, both by digests; of short ones, the first two digits."""
    return Holding(says, (rf"[0-9a-f]{{2}}|{KEY}", rf"[0-9a-f]{{30}}(?:[0-9a-f]{{2}})?\.json{DRAFT}"), holds_folders=False)
