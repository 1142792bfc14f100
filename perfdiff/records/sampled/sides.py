"""Profiles of both sides as an experiment: what each function took of a run, beside what base's took of it.

Profiles know shares and no work: one function that gets faster makes the shares of all others larger. So costs are told beside a reference,
more than half of the functions, those whose shares moved most alike; they are taken to have done the same work. That is the shortest half
(Rousseeuw 1984) of the logarithms of ratios, which is how parts of a whole are compared (Aitchison 1982).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff import units
from perfdiff.errors import UsageError
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.results.experiment import from_results
from perfdiff.records.results.series import BenchmarkSeries, ToolResults
from perfdiff.records.sampled.samples import FunctionSamples
from perfdiff.records.schema import ComparedUnit, Note, Side

MATERIAL = 0.01  # of the samples of a side, below which nobody looks at a function, as in the analysis (`POLICY.material`)
RUN_NS = 1e9  # of base, where nothing says what a sample is worth
_SHOWN = 3
_FEWER = 0.5  # samples, where a function has none: its cost is not known to be nothing

SideProfiles = Sequence[FunctionSamples]


def from_profiles(sides: Mapping[Side, SideProfiles], names: Mapping[Side, str]) -> RecordedExperiment:
    """Return the experiment that profiles of both sides make, a run for each.

    Raise UsageError where they have no form, or no function, in common.
    """
    base, head = sides[Side.BASE], sides[Side.HEAD]
    if base[0].form != head[0].form:
        raise UsageError(f"base's profile is of {base[0].form}, and head's of {head[0].form}; give two of one form", slug="results-apart")
    shares = {side: _shares(profiles) for side, profiles in sides.items()}
    union = {*shares[Side.BASE], *shares[Side.HEAD]}
    material = sorted(name for name in union if max(own.get(name, 0.0) for own in shares.values()) >= MATERIAL)
    reference = _alike(material, shares[Side.BASE], shares[Side.HEAD])
    reference_ns = _reference_ns(base, reference)
    results = {side: [_results(profile, material, reference, reference_ns) for profile in profiles] for side, profiles in sides.items()}
    recorded = from_results(results, names)
    notes = (*recorded.experiment.notes, *_notes(base, reference, shares))
    return replace(recorded, experiment=replace(recorded.experiment, compared=ComparedUnit.PROFILES, notes=notes))


def _shares(profiles: SideProfiles) -> dict[str, float]:
    """Return the part of each function of all that the profiles of a side have, each profile having the same weight."""
    names = dict.fromkeys(name for profile in profiles for name in profile.own)
    return {name: math.fsum(profile.own.get(name, 0.0) / profile.total for profile in profiles) / len(profiles) for name in names}


def _alike(material: Sequence[str], base: Mapping[str, float], head: Mapping[str, float]) -> list[str]:
    """Return more than half of the functions that both sides have, those whose shares moved by the most similar ratios."""
    common = [name for name in material if base.get(name, 0.0) > 0 and head.get(name, 0.0) > 0]
    if not common:
        raise UsageError("no function has samples on both sides; give profiles of one program, with its symbols", slug="results-apart")
    moved = {name: math.log(head[name] / base[name]) for name in common}
    order, most = sorted(common, key=lambda name: moved[name]), len(common) // 2 + 1
    stretches = [order[first : first + most] for first in range(len(order) - most + 1)]
    return min(stretches, key=lambda stretch: moved[stretch[-1]] - moved[stretch[0]])


def _reference_ns(base: SideProfiles, reference: Sequence[str]) -> float:
    """Return what the functions of the reference take in a run of base, in the mean of its profiles."""
    parts = [math.fsum(profile.own.get(name, 0.0) for name in reference) for profile in base]
    if all(profile.unit_ns is not None for profile in base):
        return math.fsum(part * (profile.unit_ns or 0.0) for part, profile in zip(parts, base, strict=True)) / len(base)
    return RUN_NS * math.fsum(part / profile.total for part, profile in zip(parts, base, strict=True)) / len(base)


def _results(profile: FunctionSamples, material: Sequence[str], reference: Sequence[str], reference_ns: float) -> ToolResults:
    """Return what each function cost in the run of a profile in which the reference cost `reference_ns`."""
    sampled = math.fsum(profile.own.get(name, 0.0) for name in reference)
    least = min(amount for amount in profile.own.values() if amount > 0)
    scale = reference_ns / (sampled or least)
    lacks = "samples of one run alone"
    costs = {name: scale * (profile.own.get(name, 0.0) or _FEWER * least) for name in material}
    return ToolResults(profile.form, tuple(BenchmarkSeries(name, {}, ((ns,),), lacks) for name, ns in costs.items()))


def _notes(base: SideProfiles, reference: Sequence[str], shares: Mapping[Side, Mapping[str, float]]) -> Iterator[Note]:
    largest = sorted(reference, key=lambda name: -shares[Side.BASE][name])
    before, after = (math.fsum(own[name] for name in reference) for own in shares.values())
    yield Note(
        "profiles-relative",
        f"costs are told as if {units.listed(largest, _SHOWN)} did the same work on both sides ({before:.0%} of base's samples,"
        f" {after:.0%} of head's), as a profile tells shares alone, and all that a function takes of a run as one call; a whole run of head"
        f" then takes {units.ratio(before / after)}",
    )
    if any(profile.unit_ns is None for profile in base):
        yield Note("profiles-relative", "what a sample is worth is not known, so that a run of base is taken for 1 s")
