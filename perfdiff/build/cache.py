"""A cache of folders by key, shared between processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self


class BuildCache:
    """Folders `<root>/trees/<key>`, each made once and then only read.

    A folder that was obtained is locked against `prune` until the cache is closed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the folders that were obtained."""
        raise NotImplementedError

    def obtain(self, key: str, make: Callable[[Path], None]) -> Path:
        """Return the folder of `key` (32 hexadecimal digits), made by `make` if it is not there yet; StoreError."""
        raise NotImplementedError

    def prune(self, *, max_bytes: int | None = None, max_age_s: float | None = None) -> tuple[str, ...]:
        """Remove folders not used for `max_age_s`, then the longest unused ones above `max_bytes`; return their keys."""
        raise NotImplementedError
