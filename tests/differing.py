"""What differs, given and compared in the words that people read."""

from __future__ import annotations

from collections.abc import Iterable

from perfdiff.records import codec
from perfdiff.records.differences import ChangeReason, Entity


def entities(names: Iterable[object]) -> tuple[Entity, ...]:
    """Return what functions depend on by what it is called: `struct list`."""
    return tuple(codec.decode(Entity, name) for name in names)


def reasons_of(texts: Iterable[str]) -> tuple[ChangeReason, ...]:
    """Return reasons by their words: `body changed`."""
    return tuple(codec.decode(ChangeReason, text) for text in texts)


def words(values: Iterable[Entity | ChangeReason]) -> tuple[str, ...]:
    """Return what people read of them."""
    return tuple(map(str, values))
