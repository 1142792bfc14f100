"""`perfdiff BASE HEAD --dry-run`: what a comparison would build, probe and run, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perfdiff import units
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.outlook import Outlook
    from perfdiff.report.blocks import Fact
    from perfdiff.request import Request

_MOST_NAMES = 8


def rehearsed(request: Request, progress: Progress, *, width: int, colour: bool) -> str:
    """Return a text on what the comparison would build and run."""
    from perfdiff.outlook import outlook
    from perfdiff.report import wording
    from perfdiff.report.blocks import Facts, Sentence
    from perfdiff.report.printable import printable_values
    from perfdiff.report.terminal import render_blocks

    expected: Outlook = printable_values(outlook(request, progress))
    title = f"Would compare {wording.revision(expected.base)} with {wording.revision(expected.head)}"
    facts = [*_facts(expected), *_limit(request.config.measure.time_s)]
    return render_blocks([Sentence(title), Facts(tuple(facts))], width=width, colour=colour)


def _limit(time_s: float | None) -> Iterator[Fact]:
    from perfdiff.report.blocks import Fact

    if time_s is not None:
        yield Fact("limit", f"{units.duration(time_s * 1e9)} in all: what does not fit is left out, the most telling evidence first")


def _facts(expected: Outlook) -> Iterator[Fact]:
    from perfdiff.records.schema import Phase
    from perfdiff.report.blocks import Fact
    from perfdiff.report.wording import plural, threshold

    if expected.measured:
        yield Fact("measured", "already: nothing would be built or run, only the report written")
        return
    yield Fact("builds", _builds(expected))
    yield Fact("probes", _probes(expected))
    if expected.suites:
        yield Fact("benchmarks", f"of {', '.join(expected.suites)}: known once both sides are built; each suite counts as one point here")
    yield Fact("runs", f"{_between(sum(expected.fewest.values()), sum(expected.most.values()))} at {plural(len(expected.points), 'point')}")
    kinds = [f"{_between(expected.fewest.get(phase, 0), expected.most[phase])} {phase}" for phase in Phase if phase in expected.most]
    yield Fact("of these", ", ".join(kinds))
    if expected.counting_s:
        yield Fact("counting", f"up to {units.duration(expected.counting_s * 1e9)} of runs without a clock")
    if any(point.min_effect is not None for point in expected.points):
        yield Fact("threshold", threshold(expected.min_effect, expected.points))
    yield Fact("time", _time(expected))


def _builds(expected: Outlook) -> str:
    sides = [side.value for side, built in expected.built.items() if built]
    text = f"{expected.builds}; kept from before: plain {' and '.join(sides)}" if sides else f"{expected.builds}, none is kept from before"
    return f"{text}; probed builds that are kept as well are not made again"


def _probes(expected: Outlook) -> str:
    from perfdiff.records.testfiles import sources_first

    if expected.functions is None:
        return "known once both sides are built"
    kinds = ", ".join(f"{count} {change.value}" for change, count in expected.changes.most_common())
    suspects = sources_first((info for info in expected.functions if info.change.is_suspect), lambda info: info.file)
    shown = ", ".join(info.name for info in suspects[:_MOST_NAMES])
    names = f": {shown}{' and more' if len(suspects) > _MOST_NAMES else ''}" if suspects else ""
    return f"{len(expected.functions)} functions ({kinds}){names}; the survey drops those that never run or cost too much to probe"


def _between(fewest: int, most: int) -> str:
    return f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"


def _by(outlook: Outlook) -> str:
    if not outlook.tried:
        return "the longest runs of the last comparison"
    points = len(outlook.points)
    which = "each point" if outlook.tried == points else f"{outlook.tried} of {points} points, as more would take too long now"
    return f"a run of {which}"


def _time(expected: Outlook) -> str:
    """Say how long it should take; what is not known is said."""
    if expected.failure:
        runs = f"runs: none, as one fails: {expected.failure}"
    elif expected.fewest_s is None or expected.most_s is None:
        when = "once both sides are built" if expected.suites else "once a side is built: a dry run then runs each point once"
        runs = f"runs: known {when}; `perfdiff BASE HEAD --time 2m` builds, and answers within a time"
    else:
        low, high = units.duration(expected.fewest_s * 1e9), units.duration((expected.most_s + expected.counting_s) * 1e9)
        about = "at least" if 0 < expected.tried < len(expected.points) else "about"
        runs = f"runs: {about} {low} to {high}, by {_by(expected)}"
    if expected.build_s is None:
        return f"{runs}; builds: unknown, as none is kept"
    builds = units.duration(expected.build_s * expected.builds * 1e9)
    return f"{runs}; builds: about {builds}, if each takes as long as the plain one; the analysis comes on top"
