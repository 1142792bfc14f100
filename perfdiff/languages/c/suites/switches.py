"""Listings that have nothing, with the options of the build that may be the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfdiff.configuration import switches
from perfdiff.languages.listing import SuiteListing


def with_switches(listing: SuiteListing) -> SuiteListing:
    """Return a listing that tells, where it has nothing, which options of the build are off that may be the reason."""
    if listing.benchmarks:
        return listing
    off = switches.switched_off(Path())
    says = "is off in {}: add it to the build command, if benchmarks or tests wait for it"
    return replace(listing, failures={**listing.failures, **{option: says.format(file) for option, file in off.items()}})


def build_folders(file: str) -> Iterator[Path]:
    """Yield the folders of the project one stands in that hold a file which a build system leaves in its builds."""
    return switches.build_folders(Path(), file)
