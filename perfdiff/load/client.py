"""Sending planned requests, one after the other or at a rate, to one server or in turns to two, and timing each."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from perfdiff.config import RequestMix
from perfdiff.load.answers import AnswerError
from perfdiff.load.connection import Connection
from perfdiff.load.delays import Delays
from perfdiff.load.plan import Planned

OPEN = 32  # requests under way at most where they come at a rate


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request: how long it was waited for, the status or None, and why it failed, "" where it did not.

    Of its body, only the bytes that came and a digest are kept.
    """

    latency_ns: int
    status: int | None
    failure: str
    size: int
    digest: bytes


@dataclass(slots=True)
class Client:
    """Sends requests over connections that are kept open, by as many threads as may wait at the same time.

    Those at a `rate` are due at fixed times, and waited for from then on, whether or not they could be sent then: what a server delays, its
    users wait for (coordinated omission: Tene 2013). `servers` are the processes that answer.
    """

    url: str
    mix: RequestMix
    servers: Sequence[int] = ()
    answers: list[RequestOutcome | None] = field(default_factory=list)
    elapsed_ns: int = 0
    late_ns: int = 0  # of this time: for a CPU that client or servers waited for, where they take turns with others
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, requests: Sequence[Planned]) -> list[RequestOutcome]:
        """Send all requests and return their answers in the same order."""
        threads = self.mix.concurrency or (OPEN if self.mix.rate else 1)
        answered = [threading.Event() for _ in requests]
        self.answers = [None] * len(requests)
        started = time.perf_counter_ns()
        if threads == 1:
            self._work(requests, answered, started)
        else:
            workers = [threading.Thread(target=self._work, args=(requests, answered, started)) for _ in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        self.elapsed_ns = time.perf_counter_ns() - started
        return [answer for answer in self.answers if answer is not None]

    def connection(self) -> Connection:
        """Return a connection to the server, which the first request opens."""
        return Connection(self.url, self.mix.timeout_s)

    def answer(self, connection: Connection, request: Planned, due: int | None) -> RequestOutcome:
        """Send a request and return what became of it, waited for since it was sent, or was `due`."""
        status, size, digest, failure, body = None, 0, b"", "", None
        began = time.perf_counter_ns()
        try:
            status, body = connection.ask(request)
        except AnswerError as error:
            failure = str(error)
        latency_ns = time.perf_counter_ns() - (began if due is None else due)
        if body is not None:
            try:
                size, digest = body.size, body.digest()
            except AnswerError as error:
                status, failure = None, str(error)
        expected = self.mix.requests[request.kind].expect
        if status is not None and not (status in expected if expected else 200 <= status < 400):
            failure = str(status)
        return RequestOutcome(latency_ns, status, failure, size, digest)

    def _work(self, requests: Sequence[Planned], answered: Sequence[threading.Event], started: int) -> None:
        with self.connection() as connection:
            while (number := self._take(len(requests))) is not None:
                request = requests[number]
                if request.needs is not None:
                    answered[request.needs].wait()
                due = started + int(number * 1e9 / self.mix.rate) if self.mix.rate else None
                if due is not None:
                    time.sleep(max(0.0, (due - time.perf_counter_ns()) / 1e9))
                self.answers[number] = self.answer(connection, request, due)
                answered[number].set()

    def _take(self, count: int) -> int | None:
        with self._lock:
            number = self._next
            self._next += 1
        return number if number < count else None


def send_in_turns(clients: Sequence[Client], planned: Sequence[Sequence[Planned]]) -> list[list[RequestOutcome]]:
    """Send the requests of each client, one of each at a time, and return their answers; a client's time is that of its own turns.

    What the machine does meanwhile, it does to all of them. The order turns around from one request to the next (ABBA).
    """
    answers: list[list[RequestOutcome]] = [[] for _ in clients]
    with ExitStack() as stack:
        connections = [stack.enter_context(client.connection()) for client in clients]
        delays = [Delays(client.servers) for client in clients]
        order = list(range(len(clients)))
        for number in range(max(map(len, planned))):
            for place in order:
                if number < len(planned[place]):
                    late_ns = delays[place].ns
                    answer = clients[place].answer(connections[place], planned[place][number], None)
                    clients[place].elapsed_ns += answer.latency_ns
                    clients[place].late_ns += delays[place].ns - late_ns
                    answers[place].append(answer)
            order.reverse()
    return answers
