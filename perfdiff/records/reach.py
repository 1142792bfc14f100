"""How much of what changed the runs executed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """How many of the functions that changed, or depend on what did, ran: `changed` are all of these, without those of tests that did not.

    Of `unknown` ones nobody can say whether they ran, as they carry no probe. `idle` names those that did not run, those of tests last.
    """

    changed: int
    ran: int
    unknown: int = 0
    idle: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """Return whether certainly nothing that changed ran, though something did change."""
        return self.changed > 0 and not self.ran and not self.unknown
