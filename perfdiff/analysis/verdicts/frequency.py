"""How often head does what got dearer: a program that takes less for doing so less often may do less work."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.witnessed import PointBehaviour
from perfdiff.config import CompareConfig
from perfdiff.records.metrics import METRICS
from perfdiff.records.testfiles import is_of_tests

_TIMES = ("self_ns", "wall_ns")


def of_what_is_done_as_often(
    conclusion: Conclusion, functions: Sequence[FunctionFinding], witnessed: Sequence[PointBehaviour], config: CompareConfig
) -> Conclusion:
    """Return a conclusion that is no improvement where a changed function is called less and each call is dearer, by counts or by time.

    A benchmark with fewer rounds, or a smaller file of data, hides a slower function so, and so does a test that asks for less: where tests
    that ran have changed, a changed function must take less at equal inputs. Where it is meant, as of calls that are put together, a
    `check` of the workload or `[compare] outputs` says so.
    """
    is_meant = config.outputs == "differ" or (bool(witnessed) and all(point.checked for point in witnessed))
    if conclusion.verdict is not Verdict.IMPROVEMENT or is_meant:
        return conclusion
    dearer = [(ratio, finding) for finding in functions if (ratio := _dearer(finding, config)) is not None]
    if not dearer:
        return _of_the_same_tests(conclusion, functions)
    ratio, finding = max(dearer, key=lambda pair: pair[0])
    facts = {"name": finding.info.name, "base": finding.calls_base, "head": finding.calls_head, "ratio": ratio}
    return conclusion.opened(claim("fewer-dearer-calls", **facts))


def _of_the_same_tests(conclusion: Conclusion, functions: Sequence[FunctionFinding]) -> Conclusion:
    suspects = [finding for finding in functions if finding.info.change.is_suspect and finding.calls_base and finding.calls_head]
    tests = [finding for finding in suspects if is_of_tests(finding.info.file)]
    others = [finding for finding in suspects if finding not in tests]
    if not tests or not others or any(map(_takes_less, others)):
        return conclusion
    return conclusion.opened(claim("tests-differ", test=tests[0].info.name, name=others[0].info.name))


def _takes_less(finding: FunctionFinding) -> bool:
    """Return whether calls take less time at equal inputs; counts are of calls with whatever inputs."""
    ratios = [metric.ratio for name, metric in finding.metrics.items() if name in _TIMES]
    return any(ratio is not None and ratio.high < 1 for ratio in ratios)


def _dearer(finding: FunctionFinding, config: CompareConfig) -> float | None:
    """Return how many times as dear a call of a changed function is, by exact counts or by time, where it is by more than is of interest.

    None where it is called as often, or where all calls together cost more.
    """
    base, head = finding.calls_base, finding.calls_head
    if not finding.info.change.is_suspect or not base or not head or head >= base:
        return None
    counted = [count.ratio for name, count in finding.counts.items() if METRICS[name].executed and count.exact and count.grew]
    timed = [metric.ratio for name, metric in finding.metrics.items() if name in _TIMES and metric.ratio is not None]
    dearer = (ratio.value for ratio in (*counted, *timed) if ratio.low > 1 + config.min_effect and head * ratio.value < base)
    return next(dearer, None)
