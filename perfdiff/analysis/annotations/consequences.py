"""What a comparison means for who uses the program: its costs at the inputs in use, and against their budgets. Values alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfdiff.analysis.findings import Ratio
from perfdiff.config import CostBudget


@dataclass(frozen=True, slots=True)
class Concentration:
    """Inputs `above` a value of a feature, which are a share of the `calls`, make a share of what head `added`."""

    feature: str
    above: float
    calls: float
    added: float


@dataclass(frozen=True, slots=True)
class Beyond:
    """A share of the `calls` in use has more of a feature than the `largest` that was measured, up to `met`."""

    feature: str
    largest: float
    met: float
    calls: float


@dataclass(frozen=True, slots=True)
class FunctionInUse:
    """A function at the inputs in use: its `share` of all own time there, head over base, and by what share of all own time head `adds`."""

    name: str
    file: str
    share: float
    ratio: Ratio
    adds: Ratio
    concentration: Concentration | None
    beyond: tuple[Beyond, ...]


@dataclass(frozen=True, slots=True)
class InUse:
    """What head costs in use, over base, for all own time that was recorded; `unknown` is the share of functions that were not compared.

    `runs` were recorded. Functions come in the order of what they add, or save.
    """

    ratio: Ratio
    functions: tuple[FunctionInUse, ...]
    unknown: float
    runs: int


class BudgetStanding(StrEnum):
    """How a cost stands to its budget."""

    KEPT = "kept"
    EXCEEDED = "exceeded"
    OPEN = "open"  # the limit lies within the interval
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class BudgetFinding:
    """A budget, how it stands, and the cost with its interval (value, low, high); None with the reason why it is not known."""

    budget: CostBudget
    standing: BudgetStanding
    cost: tuple[float, float, float] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Consequences:
    """How budgets stand, and head's cost in use: None where that was not asked for, or is not known, `unweighed` for a reason."""

    budgets: tuple[BudgetFinding, ...] = ()
    in_use: InUse | None = None
    unweighed: str = ""

    def __bool__(self) -> bool:
        """Return whether there is anything to tell."""
        return bool(self.budgets or self.in_use or self.unweighed)

    def some(self, *standings: BudgetStanding) -> tuple[BudgetFinding, ...]:
        """Return the budgets that stand in one of some ways."""
        return tuple(finding for finding in self.budgets if finding.standing in standings)
