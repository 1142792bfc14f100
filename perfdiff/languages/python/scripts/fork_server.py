"""Keeps an interpreter ready with the modules that a program imports, and forks for each of its runs: run by that interpreter.

Requests come from standard input, answers go to standard output, a line each; runs find neither. A request is a JSON object: the `words` of
a command behind the interpreter's options, a file for its standard `input`, and the `environment` of the run. The number of this process
is told first, and that of each run's when it begins; when it has ended, its status as wait(2) has it, its CPU time in seconds and its most
memory in KiB. The first run says in the end what it has imported, which is imported here before all further ones. Where threads came of
that, nothing is forked any more.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any


def serve() -> "dict[str, Any] | None":
    """Answer requests to their end; in the process of a run, return its request."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    print(os.getpid(), file=answers, flush=True)
    is_ready = False
    for line in requests:
        request: dict[str, Any] = json.loads(line)
        source, sink = os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            if not is_ready:
                atexit.register(_tell_modules, sink, frozenset(sys.modules))
            return request
        os.close(sink)
        print(child, file=answers, flush=True)
        with os.fdopen(source) as names:
            imported = names.read().split() if not is_ready else []
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what the run has left; its number is still its own
        _, status, usage = os.wait4(child, 0)
        _import(imported, request["words"])
        is_ready = True
        if threading.active_count() > 1:
            return None
        print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=answers, flush=True)
    return None


def _tell_modules(sink: int, before: "frozenset[str]") -> None:
    os.write(sink, "\n".join(name for name in sys.modules if name not in before).encode())


def _import(names: "Iterable[str]", words: "list[str]") -> None:
    """Import modules in their order; where one of them throws, there is no server."""
    sys.path.insert(0, _folder(words))
    for name in names:
        with contextlib.suppress(ImportError):  # of what others of these made
            __import__(name)
    sys.path.pop(0)
    gc.collect()
    gc.freeze()


def _folder(words: "list[str]") -> str:
    """Return where a program's modules are looked for first."""
    return str(Path.cwd() if words[0] == "-m" else Path(words[0]).resolve().parent)


def run(request: "dict[str, Any]") -> None:
    """Run a program as the interpreter would, as `__main__`."""
    words: list[str] = request["words"]
    os.dup2(os.open(request["input"], os.O_RDONLY), 0)
    os.environ.update(request["environment"])
    sys.path.insert(0, _folder(words))
    sys.modules["__main__"] = program = ModuleType("__main__")
    if words[0] == "-m":
        sys.argv[:] = ["-m", *words[2:]]
        vars(runpy)["_run_module_as_main"](words[1])  # what `-m` does itself
    else:
        sys.argv[:] = words
        path = Path(words[0]).absolute()
        program.__file__ = str(path)
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        program.__dict__["__builtins__"] = __builtins__
        exec(code, program.__dict__)


sys.path.pop(0)  # this file's folder
_served = serve()
if _served is not None:
    run(_served)
