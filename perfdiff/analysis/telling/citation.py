"""Changes of a function as sentences cite them."""

from __future__ import annotations

from perfdiff.analysis.blame.texts import changed_lines
from perfdiff.records.schema import NEWLY, Change, FunctionInfo

DEPENDENCY = "dependency"  # name of the cause that tells what differs though a function's text does not
SHOWN_LINES = 4
SHOWN_REASONS = 3  # of a change that is elsewhere; a header of macros may give a dozen, which the function's entry lists
CODE_WIDTH = 60  # characters of a line of code that a sentence can hold; the diff in the report has them all


def because(info: FunctionInfo) -> str:
    """Return what changed as it is cited in a sentence: lines of the function, or what it depends on."""
    return cited_lines(info) or (f" ({'; '.join(info.reasons)})" if info.change is Change.AFFECTED and info.reasons else "")


def cited_lines(info: FunctionInfo) -> str:
    """Return the changed lines of a function as they are cited in a sentence, or ""; mere brackets tell nothing beside others.

    What the function's text newly does comes first, where that has a name, such as a module that it imports.
    """
    lines = changed_lines(info)
    changed = [(line, text) for line, text in lines if any(map(str.isalnum, text))] or list(lines)
    if not changed or info.head is None or info.change is Change.ADDED:
        return ""
    shown = "; ".join(f"{line}: `{excerpt(text)}`" for line, text in changed[:SHOWN_LINES])
    more = f" and {len(changed) - SHOWN_LINES} more" if len(changed) > SHOWN_LINES else ""
    newly = "".join(f"{reason}; " for reason in info.reasons if reason.startswith(NEWLY))
    return f" ({newly}{info.head.file}, line {shown}{more})"


def depends(info: FunctionInfo) -> str:
    """Say what differs though the function's text does not: the reasons name what it depends on, as clauses about it."""
    reasons = [f"was {reason}" if reason.startswith(("moved", "renamed")) else reason for reason in info.reasons]
    if reasons and info.culprits:
        more = f"; and {len(reasons) - SHOWN_REASONS} more like that" if len(reasons) > SHOWN_REASONS else ""
        return f"its text is the same, but it {'; it '.join(reasons[:SHOWN_REASONS])}{more}"
    return "; ".join(reasons) or f"its text is the same, but {', '.join(info.culprits) or 'something it depends on'} changed"


def excerpt(code: str) -> str:
    """Return a line of code, cut at a word where it is longer than a sentence can hold."""
    if len(code) <= CODE_WIDTH:
        return code
    kept = code[: CODE_WIDTH - 1]
    return f"{kept[: kept.rfind(' ') if ' ' in kept[CODE_WIDTH // 2 :] else None].rstrip()}…"
