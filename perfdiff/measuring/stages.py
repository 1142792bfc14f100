"""The stages of measuring a comparison, or one revision, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from perfdiff import temporary
from perfdiff.deadline import CutShortError
from perfdiff.errors import DiskFilledError, RunFailedError
from perfdiff.measuring import later, unaltered
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.dropping import without_case
from perfdiff.measuring.guesses import EarlyRuns, prepared
from perfdiff.measuring.making import Makers, OwnMachine
from perfdiff.measuring.rounds import Rounds
from perfdiff.measuring.site import Site


def measure(bench: Bench, folder: Path, makers: Makers = OwnMachine) -> Path:
    """Gather evidence, the cheapest and most certain first, until the question is answered; return where the experiment was left.

    That is `folder`, or where measuring was cut short a temporary one, which lasts as long as this process: nobody shall take it for the
    whole. Where other machines are the `makers` of the pairs of runs, this one counts, and decides. Raise CutShortError where nothing is
    known yet.
    """
    try:
        with closing(bench.upkeep):
            written = [workload.name for workload in bench.request.config.workloads if not workload.suite]
            early = EarlyRuns()
            try:
                rounds = _of_all(bench, makers, written, early)
            except CutShortError:
                if early.answer is None:
                    raise
                rounds = _ended(*early.answer)
            if bench.request.deadline.is_cut:
                folder = temporary.make() / folder.name
            rounds.save(folder)
            return folder
    except DiskFilledError:
        bench.cache.discard()
        raise


def _of_all(bench: Bench, makers: Makers, written: Sequence[str], early: EarlyRuns) -> Rounds:
    """Build both sides, choose what is run, and return all rounds of runs; raise CutShortError where nothing is known but by early runs."""
    bench, site = prepared(bench, early)
    if site.first_runs:
        return _ended(bench, site)
    bench, site = later.with_later_runs(bench, site, written)
    while True:
        try:
            return _measured(bench, site, makers)
        except RunFailedError as error:
            if makers is not OwnMachine:  # stations have begun, and their pairs are lost with the error
                raise
            bench, site = without_case(bench, site, error, written)


def _measured(bench: Bench, site: Site, makers: Makers) -> Rounds:
    """Return all rounds of runs, or those that are complete where measuring is cut short; raise CutShortError where nothing is known."""
    rounds = Rounds(bench, unaltered.marked(bench, site), makers)
    try:
        with closing(bench.services):
            _gather(bench, rounds)
        bench.request.deadline.reached()
    except CutShortError:
        if not rounds.tell_something:
            raise
        rounds.end_here()
    return rounds


def _ended(bench: Bench, site: Site) -> Rounds:
    """Return what is known where measuring was ended while cases were chosen."""
    rounds = Rounds(bench, site, runs=list(site.first_runs))
    rounds.end_here()
    return rounds


def _gather(bench: Bench, rounds: Rounds) -> None:
    if not bench.points:
        rounds.end_without_runs()
        return
    rounds.confirm()
    if len(bench.sides) > 1 and not rounds.are_answered:
        rounds.compare_whole_runs()
        if bench.request.config.measure.fast:
            _end_with_whole_runs(rounds)
            return
        rounds.look_what_runs_use()
        rounds.count_all()
    if not rounds.are_answered:
        rounds.locate()
        if len(bench.sides) > 1 and rounds.hang_on_whole_runs:
            rounds.compare_whole_runs()
    if len(bench.sides) > 1 and rounds.ask_for_files:
        rounds.look_for_files()
    if len(bench.sides) > 1 and rounds.bring_good_news:
        rounds.look_outside()
    if len(bench.sides) > 1 and rounds.ask_for_lines:
        rounds.count_lines()


def _end_with_whole_runs(rounds: Rounds) -> None:
    rounds.end_with_whole_runs()
    if rounds.bring_good_news:
        rounds.look_outside()
