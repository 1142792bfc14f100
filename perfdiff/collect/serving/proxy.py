"""A TCP proxy between a program and a service, which makes the service far away: late answers, a narrow line, failures.

A program of its own, so that its CPU time is not the program's: it reads its settings from standard input as a line of JSON, answers with
its port, and then answers each further line: `{"take": true}` with what has passed since the last one, settings with what it is set to.
It ends with its input. Everything binds to the loopback address.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import json
import os
import random
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import count
from time import monotonic_ns
from typing import Any

HOST = "127.0.0.1"
# Of an answer that waits to be delivered; from there on its service is not read, and waits in turn.
MOST_HELD_BYTES = 4 << 20
# Connections whose own counts are kept; all count in the sums.
MOST_CONNECTIONS = 1000
_CLOCK_MONOTONIC, _NONBLOCK, _CLOEXEC, _ABSOLUTE = 1, 0o4000, 0o2000000, 1  # timerfd_create(2), timerfd_settime(2)
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: a close that resets the connection
_BACKLOG = 1024


@dataclass(slots=True)
class Settings:
    """How far away the service at `target` is.

    Each answer comes late by `delay_ns`, drawn evenly from within `jitter_ns` around it by `seed`, of which the way through the proxy takes
    `own_ns` already, `hops_ns` of it before bytes come and after they leave. A connection carries `bytes_per_s` each way, 0 for as many as
    it can. Of the connections a share of `refused` is reset at once, of the answers a share of `failing` is lost with their connection, and
    each connection is reset after `reset_after` bytes of answers, where that is above 0.
    """

    target: int
    delay_ns: int = 0
    jitter_ns: int = 0
    own_ns: int = 0
    hops_ns: int = 0
    bytes_per_s: float = 0.0
    refused: float = 0.0
    failing: float = 0.0
    reset_after: int = 0
    seed: int = 0


@dataclass(slots=True)
class PassedTotals:
    """What has passed: `exchanges` are turns, bytes of the program's or its connecting and an answer.

    `waited_ns` lasted these turns, and by `late_ns` in all their answers really came later than without a proxy.
    """

    exchanges: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    waited_ns: int = 0
    late_ns: int = 0

    def add(self, other: PassedTotals) -> None:
        """Add what has passed elsewhere."""
        for counter in fields(self):
            setattr(self, counter.name, getattr(self, counter.name) + getattr(other, counter.name))


@dataclass(slots=True)
class Counts:
    """What has passed in all, and on each connection, as far as those are kept; `unreachable` connections found no service."""

    passed: PassedTotals = field(default_factory=PassedTotals)
    connections: int = 0
    failures: int = 0
    unreachable: int = 0
    reason: str = ""
    each: list[PassedTotals] = field(default_factory=list)


class Alarm:
    """Calls back at times of the monotonic clock, to some microseconds: a loop's own timers are rounded up to milliseconds by epoll."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK | _CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = count()
        loop.add_reader(self._descriptor, self._ring)

    def at(self, due_ns: int, call: Callable[[int], None]) -> None:
        """Call with the time, at a time."""
        heapq.heappush(self._due, (due_ns, next(self._order), call))
        if self._due[0][0] == due_ns:
            self._set(due_ns)

    def _set(self, due_ns: int) -> None:
        seconds, rest = divmod(max(due_ns, 1), 1_000_000_000)
        self._libc.timerfd_settime(self._descriptor, _ABSOLUTE, struct.pack("4q", 0, 0, seconds, rest), None)

    def _ring(self) -> None:
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:  # it was set anew meanwhile
            return
        now = monotonic_ns()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2](now)
        if self._due:
            self._set(self._due[0][0])


class DelayedStream:
    """One way of a connection: bytes that leave when they are due, in order, to a transport that may not take more just now."""

    def __init__(self, proxy: Proxy, settle: Callable[[], None]) -> None:
        self.to: asyncio.Transport | None = None  # None until it is connected
        self.source: asyncio.Transport | None = None
        self.is_over = False
        self._proxy = proxy
        self._settle = settle
        self._held: deque[tuple[int, bytes | None, Callable[[int], None] | None]] = deque()
        self._held_bytes = 0
        self._last_ns = 0
        self._is_full = False

    def send(self, data: bytes | None, due_ns: int, left: Callable[[int], None] | None = None) -> int:
        """Send data at a time, behind all that is held; None is the end. Return when it should leave; `left` is called as it does."""
        rate = self._proxy.settings.bytes_per_s
        taken_ns = int(len(data) / rate * 1e9) if data and rate > 0 else 0
        due_ns = max(due_ns, self._last_ns) + taken_ns
        self._last_ns = due_ns
        if self.to is not None and not self._held and due_ns <= monotonic_ns():
            self._leave(data, left)
            return due_ns
        self._held.append((due_ns, data, left))
        self._held_bytes += len(data or b"")
        self._proxy.alarm.at(due_ns, self.deliver)
        self.regulate()
        return due_ns

    def deliver(self, now_ns: int) -> None:
        """Let go what is due."""
        while self.to is not None and self._held and self._held[0][0] <= now_ns:
            _, data, left = self._held.popleft()
            self._held_bytes -= len(data or b"")
            self._leave(data, left)
        self.regulate()

    def drop(self) -> None:
        """Forget what is held."""
        self._held.clear()
        self._held_bytes = 0

    def regulate(self, *, full: bool | None = None) -> None:
        """Read on from the source only while what was read can leave."""
        self._is_full = self._is_full if full is None else full
        if self.source is None or self.source.is_closing():
            return
        if self._is_full or self._held_bytes > MOST_HELD_BYTES:
            self.source.pause_reading()
        else:
            self.source.resume_reading()

    def _leave(self, data: bytes | None, left: Callable[[int], None] | None) -> None:
        assert self.to is not None, "what leaves has somewhere to go"
        self.is_over = data is None
        if self.to.is_closing():
            return
        if data is None:
            try:
                self.to.write_eof()
            except OSError:  # who was there has reset the connection, and nobody has read that yet
                self.to.abort()
            self._settle()
        else:
            self.to.write(data)
            if left is not None:
                left(monotonic_ns())


class ProxiedConnection:
    """A connection of the program's and one to the service, of which each byte of one goes to the other."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.up, self.down = DelayedStream(proxy, self.settle), DelayedStream(proxy, self.settle)
        self.passed = PassedTotals()
        self._asked_ns: int | None = None  # when the program last sent, or connected, and is not answered yet
        self._delay_ns = 0  # of the answer that comes
        self._is_counted = self._has_failed = False

    def opened(self, client: asyncio.Transport) -> None:
        """Connect to the service for a program that has connected."""
        self.up.source = self.down.to = client
        client.pause_reading()
        self._asked_ns = monotonic_ns()
        self.proxy.counts.connections += 1
        settings = self.proxy.settings
        if settings.refused and self.proxy.random.random() < settings.refused:
            self.fail()
            return
        self.proxy.background(self._reach(client))

    async def _reach(self, client: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(lambda: End(self, of_program=False), HOST, self.proxy.settings.target)
        except OSError as error:
            self.proxy.counts.unreachable += 1
            self.proxy.counts.reason = error.strerror or str(error)
            reset(client)
            return
        if client.is_closing():
            transport.abort()
            return
        self.down.source = self.up.to = transport
        self.up.deliver(monotonic_ns())
        client.resume_reading()

    def asked(self, data: bytes) -> None:
        """Pass on what the program sends."""
        self._asked_ns = monotonic_ns()
        self.passed.bytes_up += len(data)
        self.up.send(data, self._asked_ns)

    def answered(self, data: bytes) -> None:
        """Pass on, when it is due, what the service sends: all of an answer comes equally late."""
        settings, now = self.proxy.settings, monotonic_ns()
        asked_ns, self._asked_ns = self._asked_ns, None
        if asked_ns is not None:
            if settings.failing and self.proxy.random.random() < settings.failing:
                self.fail()
                return
            self._delay_ns = self.proxy.delay_ns()
        if settings.reset_after:
            data = data[: max(0, settings.reset_after - self.passed.bytes_down)]
        self.passed.bytes_down += len(data)

        def left(at_ns: int) -> None:
            assert asked_ns is not None, "only the first bytes of an answer are waited for"
            self.passed.waited_ns += at_ns - asked_ns
            self.passed.late_ns += at_ns - now + settings.hops_ns

        due_ns = self.down.send(data, now + self._delay_ns, left if asked_ns is not None else None)
        self.passed.exchanges += asked_ns is not None
        if settings.reset_after and self.passed.bytes_down >= settings.reset_after:
            self.proxy.alarm.at(due_ns, lambda _: self.fail())

    def fail(self) -> None:
        """Reset the connection, once."""
        if not self._has_failed:
            self._has_failed = True
            self.proxy.counts.failures += 1
            self.reset()

    def reset(self) -> None:
        """Reset both of its ends, whatever is on the way."""
        for line in (self.up, self.down):
            line.drop()
            if line.to is not None:
                reset(line.to)

    def ended(self, *, of_program: bool) -> None:
        """Pass on that one end sends no more; the other may go on."""
        if of_program:
            self.up.send(None, monotonic_ns())
        else:
            self.down.send(None, monotonic_ns() + (self._delay_ns if self._asked_ns is None else self.proxy.delay_ns()))

    def lost(self, error: Exception | None) -> None:
        """Close the other end where one was lost; a reset is passed on."""
        if not self._is_counted:
            self._is_counted = True
            self.proxy.keep(self)
        if error is not None:
            self.reset()

    def settle(self) -> None:
        """Close both ends once both have said all, and all has left."""
        if self.up.is_over and self.down.is_over:
            for line in (self.up, self.down):
                if line.to is not None:
                    line.to.close()


class End(asyncio.Protocol):
    """One end of a connection, that of the program or of the service."""

    def __init__(self, connection: ProxiedConnection, *, of_program: bool) -> None:
        self._connection = connection
        self._of_program = of_program

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the other end for a program."""
        assert isinstance(transport, asyncio.Transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._of_program:
            self._connection.opened(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        if self._of_program:
            self._connection.asked(data)
        else:
            self._connection.answered(data)

    def eof_received(self) -> bool:
        """Pass the end on, and stay: the other direction may be open still."""
        self._connection.ended(of_program=self._of_program)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other end, too."""
        self._connection.lost(exc)

    def pause_writing(self) -> None:
        """Read no more of what this end does not take."""
        (self._connection.down if self._of_program else self._connection.up).regulate(full=True)

    def resume_writing(self) -> None:
        """Read on."""
        (self._connection.down if self._of_program else self._connection.up).regulate(full=False)


class Proxy:
    """All connections to one service."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.alarm = Alarm(loop)
        self.counts = Counts()
        self.random = random.Random(settings.seed)
        self.live: set[ProxiedConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = loop

    def connection(self) -> End:
        """Return the end for a program that connects."""
        connection = ProxiedConnection(self)
        self.live.add(connection)
        return End(connection, of_program=True)

    def delay_ns(self) -> int:
        """Return how late an answer comes, beside the way through the proxy."""
        settings = self.settings
        jitter = self.random.uniform(-settings.jitter_ns, settings.jitter_ns) if settings.jitter_ns else 0.0
        return max(0, int(settings.delay_ns + jitter) - settings.own_ns)

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Let work go on beside the rest."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def keep(self, connection: ProxiedConnection) -> None:
        """Keep the counts of a connection that is closed."""
        self.live.discard(connection)
        self._count(connection)

    def _count(self, connection: ProxiedConnection) -> None:
        self.counts.passed.add(connection.passed)
        if len(self.counts.each) < MOST_CONNECTIONS:
            self.counts.each.append(connection.passed)
        connection.passed = PassedTotals()

    def take(self) -> dict[str, Any]:
        """Return what has passed since this was last asked, on connections that are still open as well."""
        for connection in list(self.live):
            if connection.passed != PassedTotals():
                self._count(connection)
        taken, self.counts = self.counts, Counts()
        return asdict(taken)

    def set(self, values: dict[str, Any]) -> dict[str, Any]:
        """Change settings; what is drawn starts anew from the seed."""
        for name, value in values.items():
            setattr(self.settings, name, value)
        self.random = random.Random(self.settings.seed)
        return asdict(self.settings)


def reset(transport: asyncio.Transport) -> None:
    """Close a connection with a reset, so that its other end sees a failure."""
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def be_prompt() -> None:
    """Ask the kernel not to put off timers of this process to save power (by 50 µs, as a rule), and to run it first where we may."""
    ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    asking = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asking), sys.stdin)
    proxy = Proxy(Settings(**json.loads(await asking.readline())), loop)
    listening = socket.socket()
    listening.bind((HOST, 0))
    server = await loop.create_server(proxy.connection, sock=listening, backlog=_BACKLOG)
    _say({"port": server.sockets[0].getsockname()[1]})
    while line := await asking.readline():
        asked = json.loads(line)
        _say(proxy.take() if asked.pop("take", False) else proxy.set(asked))


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    be_prompt()
    asyncio.run(_serve())
