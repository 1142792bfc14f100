"""Changes of a function as sentences cite them."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.analysis.blame.texts import changed_lines, dropped_lines
from perfdiff.records.differences import ReasonKind
from perfdiff.records.schema import Change, FunctionInfo

DEPENDENCY = "dependency"  # name of the cause that tells what differs though a function's text does not
SHOWN_LINES = 4
SHOWN_REASONS = 3  # of a change that is elsewhere; a header of macros may give a dozen, which the function's entry lists
CODE_WIDTH = 60  # characters of a line of code that a sentence can hold; the diff in the report has them all


def because(info: FunctionInfo) -> str:
    """Return what changed as it is cited in a sentence: lines of the function, or what it depends on."""
    return cited_lines(info) or (f" ({'; '.join(map(str, info.reasons))})" if info.change is Change.AFFECTED and info.reasons else "")


def cited_lines(info: FunctionInfo) -> str:
    """Return the changed lines of a function as they are cited in a sentence, or ""; mere brackets tell nothing beside others.

    Where head only lacks code, the lines of base that are gone are cited. What the function's text newly does comes first, where that has
    a name, such as a module that it imports.
    """
    if info.head is None or info.change is Change.ADDED:
        return ""
    newly = "".join(f"{reason}; " for reason in info.reasons if reason.kind is ReasonKind.NEWLY)
    lines, gone = changed_lines(info), _telling(dropped_lines(info))
    if changed := _telling(lines):
        return f" ({newly}{info.head.file}, line {_listed(changed)})"
    if gone and info.base is not None:
        return f" ({newly}gone from {info.base.file}, line {_listed(gone)})"
    return f" ({newly}{info.head.file}, line {_listed(lines)})" if lines else ""


def _telling(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(line, text) for line, text in lines if any(map(str.isalnum, text))]


def _listed(lines: Sequence[tuple[int, str]]) -> str:
    shown = "; ".join(f"{line}: `{excerpt(text)}`" for line, text in lines[:SHOWN_LINES])
    return shown + (f" and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else "")


def depends(info: FunctionInfo) -> str:
    """Say what differs though the function's text does not: the reasons name what it depends on, as clauses about it."""
    reasons = [f"was {reason}" if reason.kind is ReasonKind.MOVED else str(reason) for reason in info.reasons]
    if reasons and info.culprits:
        more = f"; and {len(reasons) - SHOWN_REASONS} more like that" if len(reasons) > SHOWN_REASONS else ""
        return f"its text is the same, but it {'; it '.join(reasons[:SHOWN_REASONS])}{more}"
    return "; ".join(reasons) or f"its text is the same, but {', '.join(map(str, info.culprits)) or 'something it depends on'} changed"


def excerpt(code: str) -> str:
    """Return a line of code, cut at a word where it is longer than a sentence can hold."""
    if len(code) <= CODE_WIDTH:
        return code
    kept = code[: CODE_WIDTH - 1]
    return f"{kept[: kept.rfind(' ') if ' ' in kept[CODE_WIDTH // 2 :] else None].rstrip()}…"
