"""Functions with parameters, called by keyword."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from .trials import Attempt, Label, command, listed, point, took


def resolve(target: str) -> Any:
    """Return the object that is named `package.module:function`."""
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def list_function(target: str, text: str) -> dict[str, object]:
    """Return what there is to tell of a function with parameters."""
    import json

    parameters = json.loads(text)
    points, failures, start_s = [], {}, 0.0
    with Attempt() as whole:
        function, start_s = resolve(target), time.process_time()
        for values in itertools.product(*parameters.values()):
            with Attempt() as attempt:
                arguments = dict(zip(parameters, values, strict=True))
                points.append([values, *took(partial(function, **arguments))])
            if attempt.failure:
                failures[point(target, parameters, values)] = attempt.failure
    if whole.failure:
        failures[target] = whole.failure
    texts = [name for name, values in parameters.items() if all(isinstance(value, str) for value in values)]
    run = command("run", "callable", target, ",".join(texts), places=list(parameters))
    return {"benchmarks": [listed(target, run, parameters, points)] if points else [], "failures": failures, "start_s": start_s}


def run(target: str, texts: str, given: Mapping[str, str], calls: int) -> int:
    """Call a function so many times; the parameters in `texts` are texts, even where they look like numbers."""
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
