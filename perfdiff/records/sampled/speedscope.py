"""Profiles for speedscope: https://www.speedscope.app/file-format-schema.json, sampled ones and those of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfdiff.records.results.series import NANOSECONDS, number
from perfdiff.records.sampled.samples import FunctionSamples, by_function

FORM = "speedscope"
_UNITS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}


def read(data: Any) -> FunctionSamples | None:
    """Return the samples of all profiles of speedscope's JSON, None for other data; raise ValueError and the like if it is damaged."""
    if not isinstance(data, dict) or "profiles" not in data or "shared" not in data:
        return None
    names = [str(frame["name"]) for frame in data["shared"]["frames"]]
    profiles = data["profiles"]
    units = {profile["unit"] for profile in profiles}
    if len(units) != 1:
        raise ValueError("its profiles are of several units")
    own = by_function((names[frame], amount) for profile in profiles for frame, amount in _amounts(profile))
    unit = _UNITS.get(units.pop())
    return FunctionSamples(FORM, own, NANOSECONDS[unit] if unit else None)


def _amounts(profile: dict[str, Any]) -> Iterator[tuple[int, float]]:
    """Yield innermost frames with what was spent in each of them itself."""
    if profile["type"] == "sampled":
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            if stack:
                yield _place(stack[-1]), number(weight)
        return
    stack, since = list[int](), number(profile["startValue"])
    for event in profile["events"]:
        at = number(event["at"])
        if stack:
            yield stack[-1], at - since
        since = at
        if event["type"] == "O":
            stack.append(_place(event["frame"]))
        elif not stack or stack.pop() != event["frame"]:
            raise ValueError("a frame is left that was not entered")


def _place(frame: Any) -> int:
    if not isinstance(frame, int) or frame < 0:
        raise ValueError(f"'{str(frame)[:40]}' is no frame")
    return frame
