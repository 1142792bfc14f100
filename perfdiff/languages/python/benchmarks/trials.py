"""What is told of a benchmark: how long a call of it takes, and how it and its parameters are named."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

MODULE = __package__  # as it is called where it was copied to
TRIAL_S = 0.02  # in which calls are timed at most: how often a benchmark is called is a round number that follows from it
LONG_S = 1.0  # a call that takes so long fills a run by itself, so that nobody asks whether it can be made again
LONG_TEST_S = 0.25  # a test that takes so long is run once: starting pytest takes not much longer, and a listing is to take one run of all
_LONGEST = 60  # characters of a value as it is shown
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

Label = float | str


def command(task: str, kind: str, *words: str, places: Sequence[str] = ()) -> str:
    """Return the shell command of a task, with a place for the value of each parameter, and for the calls of what is run."""
    calls = ["--calls {calls}"] if task == "run" else []
    return " ".join(["python", "-m", MODULE, task, kind, *map(shlex.quote, words), *(f"{name}={{{name}}}" for name in places), *calls])


class Attempt:
    """Lets a block fail, and keeps why: benchmarks are code of others, which may raise anything."""

    def __init__(self) -> None:
        self.failure: str | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        # A test that fails or is skipped by pytest's own functions raises what is no Exception.
        if error is None or isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            return False
        self.failure = f"{type(error).__name__}: {error}".partition("\n")[0]
        return True


def own_s() -> float:
    """Return a clock's seconds, which stands still while this thread waits for a CPU, as far as the kernel tells."""
    while True:
        waited_ns, now_s = _waited_ns(), time.perf_counter()
        if _waited_ns() == waited_ns:  # what it waits between the two would count twice, or not at all
            return now_s - 1e-9 * waited_ns


def _waited_ns() -> int:
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)  # a tenth of what a `Path` takes to read it
    except OSError:
        return 0
    try:
        return int(os.read(file, 100).split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(file)


def took(call: Callable[[], object], trial_s: float = TRIAL_S, *, is_test: bool = False) -> tuple[float, bool]:
    """Return the seconds of a call, and whether it can be made again: of several trials the least, as others share the machine.

    A short test is called a second time and no more, as there may be thousands. What the first call raises is the caller's.
    """
    started = own_s()
    call()
    first, calls = own_s() - started, 1
    least = first
    while first < (LONG_TEST_S if is_test else LONG_S):
        began, started = time.perf_counter(), own_s()
        with Attempt() as again:
            for _ in range(calls):
                call()
        spent, passed = own_s() - started, time.perf_counter() - began  # a busy machine must not have a listing take longer
        if again.failure:
            return first, False
        least = min(least, spent / calls)
        if is_test or passed >= trial_s:
            return least, True
        calls *= 2
    return first, not is_test


def labels(values: Sequence[object]) -> list[Label]:
    """Return how values are named, alike in both revisions: numbers and short texts as they are, all else as text.

    Of texts that are too long, those that begin alike are told apart by a digest of the rest: their places in the list are other ones
    where a revision has more of them. Equal texts are numbered.
    """
    labels: list[Label] = []
    texts = [_text(value) for value in values]
    beginnings = Counter(map(_shortened, dict.fromkeys(text for text in texts if isinstance(text, str))))
    for index, text in enumerate(texts):
        label: Label = text
        if isinstance(text, str):
            label = shown = _shortened(text)
            if beginnings[shown] > 1:
                label = f"{shown} {hashlib.blake2b(text.encode(errors='surrogateescape'), digest_size=4).hexdigest()}"
        labels.append(label if str(label) not in map(str, labels) else f"{label} #{index + 1}")
    return labels


def _text(value: Any) -> Label:
    """Return a number as it is, and all else as text, without the folder of the revision's tree, which is another one on each side."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return value
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or _ADDRESS.sub("", repr(value))
    text = text.replace(f"{Path.cwd()}{os.sep}", "")
    return text if text.strip() and text.isprintable() else repr(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def identifiers(names: Sequence[object]) -> list[str]:
    """Return names as they can stand in a command's places."""
    identifiers: list[str] = []
    for name in names:
        word = re.sub(r"\W", "_", str(name), flags=re.ASCII)
        word = word if word[:1].isalpha() else f"_{word}"
        identifiers.append(word if word not in identifiers else f"{word}_{len(identifiers) + 1}")
    return identifiers


def described(name: str, kind: str, *words: str, places: Sequence[str] = (), setup: str = "", is_test: bool = False) -> dict[str, object]:
    """Return what is told of a benchmark beside its points; `words` name it, the last one among others of the same suite."""
    batch = {"command": f"{command('batch', kind, *words[:-1])} {{calls}} {{cases}}", "case": shlex.quote(words[-1]), "joint": " "}
    run = command("run", kind, *words, places=places)
    return {"name": name, "command": run, "setup": setup, "parameters": list(places), "batch": batch if is_test else None}


def point(name: str, parameters: Iterable[str], values: Iterable[object]) -> str:
    """Return how a benchmark at values of its parameters is called."""
    return " ".join([name, *(f"{parameter}={value}" for parameter, value in zip(parameters, values, strict=True))])
