"""Sending planned requests, one after the other or at a rate, to one server or in turns to two, and timing each."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as LateError

from perfdiff.config import RequestMix
from perfdiff.load.delays import Delays
from perfdiff.load.plan import Planned

OPEN = 32  # requests under way at most where they come at a rate
_LATE = "no answer in time"
_BROKEN = "connection broken"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request: how long it was waited for, the status or None, and why it failed, "" where it did not."""

    latency_ns: int
    status: int | None
    failure: str
    body: bytes


@dataclass(slots=True)
class Client:
    """Sends requests over connections that are kept open, by as many threads as may wait at the same time.

    Those at a `rate` are due at fixed times, and waited for from then on, whether or not they could be sent then: what a server delays, its
    users wait for (coordinated omission: Tene 2013). `servers` are the processes that answer.
    """

    url: str
    mix: RequestMix
    servers: Sequence[int] = ()
    answers: list[Answer | None] = field(default_factory=list)
    elapsed_ns: int = 0
    late_ns: int = 0  # of this time: for a CPU that client or servers waited for, where they take turns with others
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, requests: Sequence[Planned]) -> list[Answer]:
        """Send all requests and return their answers in the same order."""
        threads = self.mix.concurrency or (OPEN if self.mix.rate else 1)
        answered = [threading.Event() for _ in requests]
        self.answers = [None] * len(requests)
        with self._pool(threads) as pool:
            started = time.perf_counter_ns()
            if threads == 1:
                self._work(pool, requests, answered, started)
            else:
                workers = [threading.Thread(target=self._work, args=(pool, requests, answered, started)) for _ in range(threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
            self.elapsed_ns = time.perf_counter_ns() - started
        return [answer for answer in self.answers if answer is not None]

    def _pool(self, connections: int) -> urllib3.HTTPConnectionPool:
        parts = urlsplit(self.url)
        host = parts.hostname or "127.0.0.1"
        return urllib3.HTTPConnectionPool(host, parts.port, maxsize=connections, timeout=self.mix.timeout_s, retries=False)

    def _work(
        self, pool: urllib3.HTTPConnectionPool, requests: Sequence[Planned], answered: Sequence[threading.Event], started: int
    ) -> None:
        while (number := self._take(len(requests))) is not None:
            request = requests[number]
            if request.needs is not None:
                answered[request.needs].wait()
            due = started + int(number * 1e9 / self.mix.rate) if self.mix.rate else None
            if due is not None:
                time.sleep(max(0.0, (due - time.perf_counter_ns()) / 1e9))
            self.answers[number] = self._answer(pool, request, due)
            answered[number].set()

    def _take(self, count: int) -> int | None:
        with self._lock:
            number = self._next
            self._next += 1
        return number if number < count else None

    def _answer(self, pool: urllib3.HTTPConnectionPool, request: Planned, due: int | None) -> Answer:
        status, body, failure = None, b"", ""
        began = time.perf_counter_ns()
        try:
            found = pool.urlopen(
                request.method, request.target, body=request.body or None, headers=dict(request.headers), redirect=False, retries=False
            )
            body, status = found.data, found.status
        except LateError:
            failure = _LATE
        except HTTPError:
            failure = _BROKEN
        latency_ns = time.perf_counter_ns() - (began if due is None else due)
        expected = self.mix.requests[request.kind].expect
        if status is not None and not (status in expected if expected else 200 <= status < 400):
            failure = str(status)
        return Answer(latency_ns, status, failure, body)


def send_in_turns(clients: Sequence[Client], planned: Sequence[Sequence[Planned]]) -> list[list[Answer]]:
    """Send the requests of each client, one of each at a time, and return their answers; a client's time is that of its own turns.

    What the machine does meanwhile, it does to all of them. The order turns around from one request to the next (ABBA).
    """
    answers: list[list[Answer]] = [[] for _ in clients]
    with ExitStack() as stack:
        pools = [stack.enter_context(client._pool(1)) for client in clients]
        delays = [Delays(client.servers) for client in clients]
        order = list(range(len(clients)))
        for number in range(max(map(len, planned))):
            for place in order:
                if number < len(planned[place]):
                    late_ns = delays[place].ns
                    answer = clients[place]._answer(pools[place], planned[place][number], None)
                    clients[place].elapsed_ns += answer.latency_ns
                    clients[place].late_ns += delays[place].ns - late_ns
                    answers[place].append(answer)
            order.reverse()
    return answers
