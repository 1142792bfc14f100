"""A profile for Firefox Profiler (profiler.firefox.com), in its processed format: base and head as threads, times first, then counts.

The format is described in https://github.com/firefox-devtools/profiler/blob/main/src/types/profile.ts; the viewer brings older versions up
to its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from perfdiff.report.document import Document, headline
from perfdiff.report.profiles.stacks import EXPORTED, METHOD, StackCosts, Stacks, call_stacks

_VERSION, _GECKO_VERSION = 61, 31
_MS = 1e-6  # of a nanosecond
_PROJECT, _OTHER = 0, 1  # places in the list of categories


def render(document: Document) -> str:
    """Return the profile as JSON, with the answer and how stacks are made among what the viewer tells of it."""
    stacks = call_stacks(document.findings, EXPORTED)
    span_ms = _MS * max(float(cost.own.sum()) for cost in stacks.costs if cost.quantity.unit == "ns")
    value = {
        "meta": _meta(document, len(stacks.costs)),
        "libs": [],
        "pages": [],
        "shared": _shared(stacks),
        "threads": [_thread(cost, number, span_ms) for number, cost in enumerate(stacks.costs)],
    }
    return json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n"


def _meta(document: Document, threads: int) -> dict[str, Any]:
    entries = [("answer", headline(document.findings)), ("stacks", METHOD)]
    details = [{"label": label, "format": "string", "value": text} for label, text in entries]
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _VERSION,
        "interval": 1,
        "startTime": 0,
        "processType": 0,
        "product": f"perfdiff {document.title}",
        "importedFrom": document.findings.environment.perfdiff,
        "stackwalk": 1,
        "debug": False,
        "symbolicated": True,
        "sourceCodeIsNotOnSearchfox": True,
        "keepProfileThreadOrder": True,
        "initialVisibleThreads": list(range(threads)),
        "initialSelectedThreads": [1],
        "markerSchema": [],
        "categories": [
            {"name": "Probed functions", "color": "orange", "subcategories": ["Other"]},
            {"name": "Other", "color": "grey", "subcategories": ["Other"]},
        ],
        "extra": [{"label": "perfdiff", "entries": details}],
    }


def _shared(stacks: Stacks) -> dict[str, Any]:
    """Return the tables of frames and stacks; each frame has a function of its own."""
    frames, count = stacks.frames, len(stacks.frames)
    files = list(dict.fromkeys(frame.file for frame in frames if frame.file))
    texts = {text: place for place, text in enumerate(dict.fromkeys([*files, *(frame.name for frame in frames)]))}
    lines = [frame.line or None for frame in frames]
    nothing = [None] * count
    return {
        "stringArray": list(texts),
        "sources": _table(
            len(files),
            id=[None] * len(files),
            filename=[texts[file] for file in files],
            startLine=[1] * len(files),
            startColumn=[1] * len(files),
            sourceMapURL=[None] * len(files),
        ),
        "funcTable": _table(
            count,
            name=[texts[frame.name] for frame in frames],
            isJS=[False] * count,
            relevantForJS=[False] * count,
            resource=[-1] * count,
            source=[files.index(frame.file) if frame.file else None for frame in frames],
            lineNumber=lines,
            columnNumber=nothing,
        ),
        "frameTable": _table(
            count,
            address=[-1] * count,
            inlineDepth=[0] * count,
            category=[_OTHER if frame.function is None else _PROJECT for frame in frames],
            subcategory=[0] * count,
            func=list(range(count)),
            nativeSymbol=nothing,
            innerWindowID=nothing,
            line=lines,
            column=nothing,
        ),
        "stackTable": _table(len(stacks.frame), frame=list(stacks.frame), prefix=list(stacks.above)),
        "resourceTable": _table(0, lib=[], name=[], host=[], type=[]),
        "nativeSymbols": _table(0, libIndex=[], address=[], name=[], functionSize=[]),
    }


def _thread(cost: StackCosts, number: int, span_ms: float) -> dict[str, Any]:
    """Return a thread whose samples follow each other for as long as their own cost; all of a count lasts for the whole span."""
    is_time = cost.quantity.unit == "ns"
    samples = np.flatnonzero(cost.own > 0)
    weights = cost.own[samples] * (_MS if is_time else 1.0)
    lengths = weights if is_time else weights * span_ms / weights.sum()
    ends = np.cumsum(lengths)
    return {
        "name": cost.says,
        "processName": cost.side.value,
        "processType": "default",
        "isMainThread": True,
        "pid": str(number),
        "tid": number,
        "processStartupTime": 0,
        "processShutdownTime": span_ms,
        "registerTime": 0,
        "unregisterTime": span_ms,
        "pausedRanges": [],
        "samples": _table(
            len(samples),
            stack=samples.tolist(),
            time=(ends - lengths).tolist(),
            weight=weights.tolist(),
            weightType="tracing-ms" if is_time else "samples",
        ),
        "markers": _table(0, data=[], name=[], startTime=[], endTime=[], phase=[], category=[]),
    }


def _table(length: int, **columns: Iterable[Any]) -> dict[str, Any]:
    return {"length": length, **columns}
