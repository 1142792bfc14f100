"""Python's search for cycles of objects that nobody holds: it walks all that there are, again and again while many are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unsearched() -> Iterator[None]:
    """Search for no garbage during a block, and never among what it leaves: its values stay until nobody holds them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
