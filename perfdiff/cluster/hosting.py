"""What a Dask worker runs for us: it keeps a station beside it, and passes questions and answers on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import weakref
from dataclasses import replace
from multiprocessing.connection import Connection

from perfdiff.build import cache, holdings, parcels
from perfdiff.build.kinds import kind_of
from perfdiff.build.parcels import Parcel
from perfdiff.cluster import protocol
from perfdiff.cluster.protocol import Answer, Failure, Handed, Opening, Question, Reply, Shelf
from perfdiff.languages.check import Check

_LOOK_S = 0.1  # between two looks whether the answer is still wanted
_CLEARING_S = 30.0  # a station that is told to end has so long to clear away what it started


class Hosted:
    """A station beside this worker, as long as anybody wants it: as the result of a task it stays in the worker's memory."""

    def __init__(self) -> None:
        """Start the process."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "perfdiff.cluster.station", str(theirs.fileno()), json.dumps(_nannys())]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._connection = Connection(ours.detach())
        weakref.finalize(self, _let_go, self._connection, self._process)

    def __reduce__(self) -> str:
        raise TypeError("a station stays in its worker")

    def ask(self, request: protocol.Request | Reply) -> Answer | Question:
        """Return the answer to a request, or what the station asks before it goes on.

        Where nobody wants it any more, the station ends, and what it runs.
        """
        try:
            self._connection.send(request)
            while not self._connection.poll(_LOOK_S):
                if not _is_wanted():
                    self._connection.close()
                    _reap(self._process)
                    return _gone("it was not wanted any more")
            answer: Answer | Question = self._connection.recv()
        except (EOFError, OSError):
            return _gone("its station ended unexpectedly; the worker's log says more")
        return answer


def opened(bundle: bytes, opening: Opening) -> tuple[Hosted, Answer | Question]:
    """Return a new station, and whether it is ready for what it is to measure; a `Bundle` comes as it was pickled."""
    hosted = Hosted()
    return hosted, hosted.ask(replace(opening, checkout=replace(opening.checkout, bundle=pickle.loads(bundle))))


def first_answer(opened: tuple[Hosted, Answer | Question]) -> Answer | Question:
    """Return whether a station is ready."""
    return opened[1]


def asked(opened: tuple[Hosted, Answer | Question], request: protocol.Request | Reply) -> Answer | Question:
    """Pass a request to a station, and return its answer."""
    return opened[0].ask(request)


def handed(opened: tuple[Hosted, Answer | Question], parcel: Parcel | None) -> Answer | Question:
    """Hand a station the build of another worker, or None if that failed, and return its answer."""
    return opened[0].ask(Handed(parcel))


def fetched(parcel: Parcel | None) -> Parcel | None:
    """Return a build of another worker: as a task's argument it has been transferred to this one."""
    return parcel


def packed(key: str) -> Parcel | None:
    """Return a build of this worker's cache, None where it cannot be handed on."""
    return parcels.packed(cache.place(holdings.folder(os.environ), key))


async def shelf() -> bytes:
    """Return a pickled `Shelf`: what builds depend on on this worker, and which it has."""
    return await asyncio.to_thread(_shelf)  # the worker's own thread has others to answer meanwhile


def _shelf() -> bytes:
    folder, nannys = holdings.folder(os.environ), _nannys()
    environment = {name: value for name, value in os.environ.items() if nannys.get(name) != value}
    return pickle.dumps(Shelf(kind_of(folder, environment), cache.kept(folder)))


def examined() -> tuple[Check, ...]:
    """Return the checks of what this worker can measure."""
    command = [sys.executable, "-m", "perfdiff.cluster.examination", json.dumps(_nannys())]
    output = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    return tuple(Check(**check) for check in json.loads(output))


def _gone(why: str) -> Failure:
    return Failure("MeasurementError", why, "worker-lost")


def _is_wanted() -> bool:
    """Return whether anybody waits for the task that this thread carries out."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state == "executing" and worker.status.name in ("running", "paused")


def _nannys() -> dict[str, str]:
    """Return the variables that Dask's nanny sets for its worker, and that programs are not to inherit."""
    import dask

    variables: dict[str, str] = {}
    for kind in ("pre-spawn-environ", "environ"):
        variables |= {name: str(value) for name, value in (dask.config.get(f"distributed.nanny.{kind}", {}) or {}).items()}
    return variables


def _let_go(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    with contextlib.suppress(RuntimeError):  # at the end of the interpreter; the station sees that by itself
        threading.Thread(target=_reap, args=(process,), daemon=True).start()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_CLEARING_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
