"""Short digests of texts and of what was read off them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(parts: Iterable[str]) -> str:
    """Return a short digest of a sequence of strings; the borders between them count."""
    text = "\0".join((*parts, ""))
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
