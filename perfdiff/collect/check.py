"""One answer of the doctor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a comparison needs or profits from. `says` is what was found; `remedy` what to do where `found` is false."""

    name: str
    needed: bool  # whether no comparison is possible without it
    found: bool
    says: str
    remedy: str = ""
