"""Short digests of texts and of what was read off them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(parts: Iterable[str]) -> str:
    """Return a short digest of a sequence of strings; the borders between them count."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(part.encode("utf-8", "surrogateescape"))
        state.update(b"\0")
    return state.hexdigest()
