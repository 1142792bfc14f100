"""Inputs that earlier searches found, in a file beside them: later ones try them first, in any size, whatever became of the seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfdiff.errors import store_errors
from perfdiff.fuzzing.families import InputFamily, Segment

INDEX = "families.json"

_NAME_BYTES = 4  # of a family's name


def name(family: InputFamily) -> str:
    """Return a name that the same family always has."""
    return hashlib.blake2b(json.dumps(_written(family), sort_keys=True).encode(), digest_size=_NAME_BYTES).hexdigest()


def families(folder: Path) -> tuple[InputFamily, ...]:
    """Return the families that a folder keeps, none where it has none; raise ValueError where its file is damaged."""
    try:
        text = (folder / INDEX).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    try:
        return tuple(map(_read, json.loads(text).values()))
    except (AttributeError, KeyError, TypeError, UnicodeError) as error:
        raise ValueError(f"{folder / INDEX} is no list of inputs") from error


def add(folder: Path, others: Iterable[InputFamily]) -> None:
    """Keep families in a folder, beside those that it has; raise StoreError, ValueError."""
    every = {name(family): _written(family) for family in (*families(folder), *others)}
    with store_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / INDEX).write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")


def _written(family: InputFamily) -> dict[str, Any]:
    segments = [{**asdict(segment), "text": segment.text.decode("latin-1")} for segment in family.segments]
    return {**asdict(family), "values": dict(family.values), "segments": segments}


def _read(written: dict[str, Any]) -> InputFamily:
    segments = (Segment(**{**segment, "text": segment["text"].encode("latin-1")}) for segment in written["segments"])
    return InputFamily(**{**written, "segments": tuple(segments)})
