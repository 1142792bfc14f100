"""Functions with parameters, called by keyword."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from .reporting import Report
from .trials import Attempt, Label, described, point, took


def resolve(target: str) -> Any:
    """Return the object that is named `package.module:function`."""
    module, _, path = target.partition(":")
    target_object: Any = importlib.import_module(module)
    for part in path.split("."):
        target_object = getattr(target_object, part)
    return target_object


def try_all(report: Report, target: str, text: str) -> None:
    """Try a function with all its parameters' values."""
    parameters = json.loads(text)
    texts = [name for name, values in parameters.items() if all(isinstance(value, str) for value in values)]
    benchmark = described(target, "callable", target, ",".join(texts), places=list(parameters))
    report.plan(point(target, parameters, values) for values in itertools.product(*parameters.values()))
    if not report.enter(target):
        return
    with Attempt() as attempt:
        function = resolve(target)
    if attempt.failure:
        report.fail(target, attempt.failure)
        return
    report.start()
    for values in itertools.product(*parameters.values()):
        name = point(target, parameters, values)
        if not report.begin(name):
            continue
        with Attempt() as attempt:
            seconds, again = took(partial(function, **dict(zip(parameters, values, strict=True))), report.trial_s)
            report.point(benchmark, values, seconds, again=again)
        if attempt.failure:
            report.fail(name, attempt.failure)


def run(target: str, texts: str, given: Mapping[str, str], calls: int) -> int:
    """Call a function `calls` times; the parameters in `texts` are texts, even if they look like numbers."""
    function, arguments = resolve(target), {name: text if name in texts.split(",") else number(text) for name, text in given.items()}
    for _ in range(calls):
        function(**arguments)
    return 0


def number(text: str) -> Label:
    """Return the number that a text is, else the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
