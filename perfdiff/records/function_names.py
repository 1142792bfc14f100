"""Which functions a name means that people wrote: `parse`, `json.c:parse`, with its scope and parameters or without."""

from __future__ import annotations

_SCOPES = ("::", "\\", ".")  # what stands between a name and its scope, in one language or another


def is_named(given: str, name: str, file: str) -> bool:
    """Return whether what a user wrote, `NAME` or `FILE:NAME`, means a function; its parameters and scope may be left out."""
    folder, colon, bare = given.rpartition(":")
    if colon and not folder.endswith(":"):
        return file.endswith(folder) and is_named(bare, name, file)
    return any(whole == given or whole.endswith(tuple(f"{mark}{given}" for mark in _SCOPES)) for whole in (name, name.partition("(")[0]))
