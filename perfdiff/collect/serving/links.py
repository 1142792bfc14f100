"""Proxies before services, each a process of its own: started, told how far away a service is, asked what has passed, and ended."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

from perfdiff.config import ServiceLink
from perfdiff.errors import WorkloadError
from perfdiff.records.exchanges import Exchanges

HOST = "127.0.0.1"
_MODULE = "perfdiff.collect.serving.proxy"
_END_S = 5.0  # for a proxy to end, and to answer
_TURNS, _WARM = 100, 20  # of bytes there and back, of which the first are not looked at, to tell what the way through a proxy takes …
_TRIED_NS = 1_000_000  # … with a delay: processes that slept wake up later than those that are at work


class ProxyProcess:
    """A proxy that runs, at `port`."""

    def __init__(self, process: subprocess.Popen[bytes], name: str) -> None:
        self.process = process
        self._name = name
        self.port = 0

    def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Send a line and return the answer; raise WorkloadError where the proxy has ended."""
        assert self.process.stdin is not None, "it is asked through a pipe"
        assert self.process.stdout is not None, "it answers through a pipe"
        try:
            self.process.stdin.write(json.dumps(document).encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except OSError:
            answer = b""
        if not answer:
            raise WorkloadError(
                f"the proxy before service {self._name} ended with status {self.process.wait(_END_S)}; run perfdiff again, with fewer "
                "connections if it ended for want of memory or of open files",
                slug="proxy-ended",
            )
        reply: dict[str, Any] = json.loads(answer)
        return reply

    def take(self, where: str) -> Exchanges:
        """Return what has passed since it was last asked; raise WorkloadError where the service could not be reached."""
        reply = self.ask({"take": True})
        if reply["unreachable"]:
            raise WorkloadError(
                f"the proxy before service {self._name} could not reach it for {reply['unreachable']} of {reply['connections']} "
                f"connections ({where}): {reply['reason']}; look whether the service ends, or takes no more connections, during a run",
                slug="proxy-target-gone",
            )
        return Exchanges(connections=reply["connections"], failures=reply["failures"], **reply["passed"])


@contextmanager
def proxied(name: str, target: int, settings: Mapping[str, Any]) -> Iterator[ProxyProcess]:
    """Have a proxy before the port `target` for the length of a `with` block; `settings` are those of `collect.proxy`."""
    process = subprocess.Popen([sys.executable, "-P", "-m", _MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    proxy = ProxyProcess(process, name)
    try:
        proxy.port = proxy.ask({"target": target, **settings})["port"]
        yield proxy
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close a proxy's input, which ends it; kill it where it does not."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # it ended before it had read all
                pipe.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def settings(link: ServiceLink, own: OwnDelay, seed: int) -> dict[str, Any]:
    """Return a link's settings for the proxy; the proxy's own time is taken off the delays."""
    return {
        "delay_ns": int(link.delay_s * 1e9),
        "jitter_ns": int(link.jitter_s * 1e9),
        "own_ns": own.whole_ns,
        "hops_ns": own.hops_ns,
        "bytes_per_s": link.bytes_per_s,
        "refused": link.refused,
        "failing": link.failing,
        "reset_after": link.reset_after,
        "seed": seed,
    }


@dataclass(frozen=True, slots=True)
class OwnDelay:
    """How much later than asked answers come through a proxy, in all, and of that on the way to it and from it, which it does not see."""

    whole_ns: int
    hops_ns: int


def own_delay() -> OwnDelay:
    """Return how late answers come through a proxy by itself, on this machine, now."""
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_echo, args=(server, 3), daemon=True).start()
        direct = _turn_ns(port)
        with proxied("for calibration", port, {}) as proxy:
            hops_ns = _turn_ns(proxy.port) - direct
            proxy.ask({"delay_ns": _TRIED_NS})
            late_ns = _turn_ns(proxy.port) - direct
        return OwnDelay(max(0, int(late_ns - _TRIED_NS)), max(0, int(hops_ns)))


def _echo(server: socket.socket, connections: int) -> None:
    for _ in range(connections):
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while data := connection.recv(1 << 10):
                connection.sendall(data)


def _turn_ns(port: int) -> float:
    """Return the median time of a byte there and back."""
    times = []
    with closing(socket.create_connection((HOST, port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_TURNS):
            start = perf_counter_ns()
            connection.sendall(b"?")
            connection.recv(1)
            times.append(perf_counter_ns() - start)
    return float(median(times[_WARM:]))
