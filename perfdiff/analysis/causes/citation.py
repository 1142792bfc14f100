"""Changes of a function as causes cite them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from perfdiff.analysis.blame.texts import changed_lines, dropped_lines
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Cause
from perfdiff.records.differences import ReasonKind
from perfdiff.records.schema import Change, FunctionInfo

DEPENDENCY = "dependency"  # name of the cause that tells what differs though a function's text does not
SHOWN_LINES = 4
NOT_COUNTED: Mapping[int, float] = MappingProxyType({})
SHOWN_REASONS = 3  # of a change that is elsewhere; a header of macros may give a dozen, which the function's entry lists

Line = tuple[int, str]  # number and text


def because(info: FunctionInfo) -> Claim | None:
    """Return a claim that cites the change: lines of the function, or reasons in what it depends on."""
    if info.change is Change.AFFECTED and info.reasons:
        return cited_lines(info) or claim("cites-reasons", reasons=tuple(map(str, info.reasons)))
    return cited_lines(info)


def cited_lines(info: FunctionInfo, runs: Mapping[int, float] = NOT_COUNTED) -> Claim | None:
    """Return the changed lines of a function, None where there are none; mere brackets tell nothing beside others.

    Where head only lacks code, the lines of base that are gone are cited. What the function's text newly does comes first, where that has
    a name, such as a module that it imports. Of more lines than are shown, those are that head `runs` most often, by number.
    """
    if info.head is None or info.change is Change.ADDED:
        return None
    newly = tuple(str(reason) for reason in info.reasons if reason.kind is ReasonKind.NEWLY)
    lines, gone = changed_lines(info), _telling(dropped_lines(info))
    if gone and info.base is not None and not _telling(lines):
        return cited(info.base.file, gone, newly, are_gone=True)
    shown = sorted(_telling(lines) or lines, key=lambda line: -runs.get(line[0], 0.0))
    shown[:SHOWN_LINES] = sorted(shown[:SHOWN_LINES])
    return cited(info.head.file, shown, newly) if lines else None


def cited(file: str, lines: Sequence[Line], newly: tuple[str, ...] = (), are_gone: bool = False) -> Claim:
    """Return the first of some lines of a file as they are cited."""
    shown = lines[:SHOWN_LINES]
    numbers, texts = tuple(number for number, _ in shown), tuple(text for _, text in shown)
    return claim("cites", newly=newly, gone=are_gone, file=file, numbers=numbers, texts=texts, more=len(lines) - len(shown))


def citing(cause: Cause, lines: Claim | None) -> Cause:
    """Return a cause with cited source lines behind its words."""
    return replace(cause, says=claim("citing", says=cause.says, lines=lines)) if lines else cause


def _telling(lines: Sequence[Line]) -> list[Line]:
    return [(line, text) for line, text in lines if any(map(str.isalnum, text))]


def depends(info: FunctionInfo) -> Claim:
    """Tell what differs though the function's text does not: the reasons name what it depends on, as clauses about it."""
    reasons = tuple(claim("moved" if reason.kind is ReasonKind.MOVED else "differs", reason=str(reason)) for reason in info.reasons)
    if reasons and not info.culprits:
        return claim("is-elsewhere", reasons=reasons)
    if reasons:
        return claim("depends", reasons=reasons[:SHOWN_REASONS], more=max(len(reasons) - SHOWN_REASONS, 0))
    return claim("depends-on", culprits=tuple(map(str, info.culprits)))
