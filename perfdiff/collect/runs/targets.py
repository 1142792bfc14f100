"""What workloads run in: a folder of a built tree, and what its runs are given."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.build import userhome
from perfdiff.collect.execution.terminals import Keyboard
from perfdiff.collect.runs.schedule import Slot
from perfdiff.languages.protocol import PlaceReader
from perfdiff.records.schema import Phase, Side

# The environment lies above the stack, so its size moves all that is on the stack (Mytkowicz et al. 2009); where the kernel draws
# addresses anew for each run it does the same. A page holds every place within lines and pages; stacks are aligned to 16 bytes.
PADDING = "PERFDIFF_PADDING"
_MOST_PADDING, _PADDING_STEP = 4096, 16
_DRAWN = (Phase.PLAIN, Phase.TIMED)  # counted runs are to be equal


@dataclass(frozen=True, slots=True)
class Target:
    """A folder of a built tree that workloads run in; `plan` steers its probes and is None for a plain build.

    `steering` is what its runtime is told beside that; with `fixed_layout` its programs lie at the same addresses in every run. `tree` is
    all that is put back between runs, None where nothing is, as is the `home` beside it, where its commands have one. `places` reads what
    runs of a placed build leave. `variables` are those that its workloads need in any case; of those in `draws`, each pair of runs gets a
    number of its own. With `calm`, threads of the runtime's own, such as those that compile, work while the program waits for them; nothing
    where it has none. Of the `byte_code` in the tree, which was compiled for it, a run finds what earlier runs left by themselves. Runs
    with a `keyboard` are as by hand: on a terminal, and without what only measuring needs. Its workloads run its own `command` in place of
    theirs, where it has one.
    """

    directory: Path
    plan: Path | None
    steering: Mapping[str, str] = field(default_factory=dict)
    fixed_layout: bool = False
    tree: Path | None = None
    home: Path | None = None
    places: PlaceReader | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    draws: tuple[str, ...] = ()
    calm: Mapping[str, str] = field(default_factory=dict)
    byte_code: tuple[str, ...] = ()
    keyboard: Keyboard | None = None
    command: str | None = None

    def surroundings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of its commands in that of the user."""
        home = userhome.variables(self.home, environment) if self.home is not None else {}
        needed = {name: value for name, value in self.variables.items() if not (self.keyboard and name in self.draws)}
        return {**environment, **home, **needed}

    def drawn(self, slot: Slot, seed: str) -> dict[str, str]:
        """Return the variables that differ from run to run so that no single order of things, or place of the stack, decides: none of runs
        by hand, which draw these themselves.
        """
        if self.keyboard is not None:
            return {}
        if slot.phase not in _DRAWN:
            return dict.fromkeys(self.draws, "0")
        padding = "-" * random.Random(seed).randrange(0, _MOST_PADDING, _PADDING_STEP)
        return {**dict.fromkeys(self.draws, str(slot.block + 1)), PADDING: padding}


Targets = Mapping[tuple[Phase, Side], Target]
