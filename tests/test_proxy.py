"""The proxy before a service: answers that come late, narrow lines, failures, ends and resets of connections, and what it counts."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import mean, median
from time import perf_counter_ns

import pytest

from perfdiff.collect.serving import links
from perfdiff.collect.serving.links import HOST, proxied
from perfdiff.collect.serving.proxy import Proxy, Settings
from perfdiff.errors import WorkloadError

Serve = Callable[[socket.socket], None]
MS = 1_000_000

pytestmark = pytest.mark.integration  # how late answers come is measured


def echo(connection: socket.socket) -> None:
    """Answer with what was sent, then end where the other side has."""
    while data := connection.recv(1 << 16):
        connection.sendall(data)


@contextmanager
def serving(serve: Serve) -> Iterator[int]:
    """Have a server for the length of a `with` block; return its port."""
    server = socket.create_server((HOST, 0))

    def handle(connection: socket.socket) -> None:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                serve(connection)
            except ConnectionError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, port), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield client


def read(client: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size and (data := client.recv(1 << 16)):
        found += data
    return bytes(found)


def turn_ns(client: socket.socket) -> int:
    start = perf_counter_ns()
    client.sendall(b"?")
    assert client.recv(1) == b"?"
    return perf_counter_ns() - start


def test_answers_come_late_by_the_delay() -> None:
    own = links.own_delay()
    with serving(echo) as target:
        with connected(target) as client:
            direct = median(turn_ns(client) for _ in range(50))
        with (
            proxied("db", target, {"delay_ns": 2 * MS, "own_ns": own.whole_ns, "hops_ns": own.hops_ns}) as proxy,
            connected(proxy.port) as client,
        ):
            late = sorted(turn_ns(client) - direct for _ in range(100))
            seen = proxy.take("here")
    assert 1.9 * MS <= seen.late_ns / seen.exchanges <= mean(late) + 0.3 * MS
    assert late[10] >= 1.9 * MS
    assert late[50] <= 3 * MS  # 0.05 ms off on a quiet machine


def test_an_answer_of_several_bursts_is_late_once_and_bytes_keep_their_order() -> None:
    def bursts(connection: socket.socket) -> None:
        connection.recv(1)
        for part in (b"a" * 70_000, b"b" * 70_000, b"c"):
            connection.sendall(part)

    with serving(bursts) as target, proxied("db", target, {"delay_ns": 50 * MS}) as proxy, connected(proxy.port) as client:
        start = perf_counter_ns()
        client.sendall(b"?")
        assert read(client, 140_001) == b"a" * 70_000 + b"b" * 70_000 + b"c"
        assert 50 * MS <= perf_counter_ns() - start < 100 * MS
        assert proxy.take("here").exchanges == 1


def test_pipelined_questions_are_answered_in_order_and_wait_together() -> None:
    settings = {"delay_ns": 40 * MS, "jitter_ns": 20 * MS, "seed": 3}
    with serving(echo) as target, proxied("db", target, settings) as proxy, connected(proxy.port) as client:
        sent = b"".join(b"%04d" % number for number in range(500))
        start = perf_counter_ns()
        for place in range(0, len(sent), 4):
            client.sendall(sent[place : place + 4])
        assert read(client, len(sent)) == sent
        assert perf_counter_ns() - start < 500 * 20 * MS


def test_jitter_is_drawn_from_the_seed_within_its_bounds() -> None:
    def delays(seed: int) -> list[int]:
        with closing(asyncio.new_event_loop()) as loop:
            drawing = Proxy(Settings(1, delay_ns=10 * MS, jitter_ns=8 * MS, own_ns=MS, seed=seed), loop)
            return [drawing.delay_ns() for _ in range(1000)]

    first = delays(1)
    assert first == delays(1) != delays(2)
    assert MS <= min(first) < 2 * MS  # 1 ms of them is the proxy's own
    assert 16 * MS < max(first) <= 17 * MS


def test_a_narrow_line_takes_its_time_each_way() -> None:
    with serving(echo) as target, proxied("db", target, {"bytes_per_s": 1e6}) as proxy, connected(proxy.port) as client:
        start = perf_counter_ns()
        client.sendall(b"x" * 100_000)
        assert len(read(client, 100_000)) == 100_000
        assert 100 * MS <= perf_counter_ns() - start < 1000 * MS


def test_what_passes_is_counted_by_connection_and_in_all() -> None:
    with ExitStack() as stack:
        proxy = stack.enter_context(proxied("db", stack.enter_context(serving(echo)), {"delay_ns": 5 * MS}))
        first, second = (stack.enter_context(connected(proxy.port)) for _ in range(2))
        for client, turns in ((first, 3), (second, 7)):
            for _ in range(turns):
                turn_ns(client)
        every = proxy.ask({"take": True})
        assert sorted(each["exchanges"] for each in every["each"]) == [3, 7]
        turn_ns(first)
        found = proxy.take("here")
    assert (found.exchanges, found.bytes_up, found.bytes_down, found.connections) == (1, 1, 1, 0)
    assert 5 * MS <= found.waited_ns < 100 * MS


def test_a_service_that_speaks_first_answers_the_connecting() -> None:
    def greeting(connection: socket.socket) -> None:
        connection.sendall(b"hello")
        echo(connection)

    with serving(greeting) as target, proxied("db", target, {"delay_ns": 20 * MS}) as proxy:
        start = perf_counter_ns()
        with connected(proxy.port) as client:
            assert read(client, 5) == b"hello"
            assert perf_counter_ns() - start >= 20 * MS
            turn_ns(client)
            assert proxy.take("here").exchanges == 2


def test_a_half_open_connection_carries_the_other_direction() -> None:
    def count(connection: socket.socket) -> None:
        size = 0
        while data := connection.recv(1 << 16):
            size += len(data)
        connection.sendall(str(size).encode())

    with serving(count) as target, proxied("db", target, {"delay_ns": 10 * MS}) as proxy, connected(proxy.port) as client:
        client.sendall(b"x" * 200_000)
        client.shutdown(socket.SHUT_WR)
        assert read(client, 100) == b"200000"
        assert client.recv(1) == b""


@pytest.mark.parametrize("delay_ns", [0, 20 * MS])
def test_a_service_that_ends_its_answers_leaves_the_program_its_direction(delay_ns: int) -> None:
    got: list[bytes] = []
    ended = threading.Event()

    def last_words(connection: socket.socket) -> None:
        connection.sendall(b"bye")
        connection.shutdown(socket.SHUT_WR)
        while data := connection.recv(100):
            got.append(data)
        ended.set()

    with serving(last_words) as target, proxied("db", target, {"delay_ns": delay_ns}) as proxy, connected(proxy.port) as client:
        assert read(client, 100) == b"bye"
        client.sendall(b"more")
        client.shutdown(socket.SHUT_WR)
        assert ended.wait(10)
    assert b"".join(got) == b"more"


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_resets_are_passed_on_both_ways() -> None:
    lost = threading.Event()

    def serve(connection: socket.socket) -> None:
        if connection.recv(1) == b"r":
            reset(connection)
            return
        try:
            connection.recv(1)
        except ConnectionResetError:
            lost.set()

    with serving(serve) as target, proxied("db", target, {}) as proxy:
        with connected(proxy.port) as client:
            client.sendall(b"r")
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        client = socket.create_connection((HOST, proxy.port))
        client.sendall(b"w")
        reset(client)
        assert lost.wait(10)


def test_an_end_that_a_reset_overtakes_holds_up_no_other_connection() -> None:
    gone, ended = threading.Event(), threading.Event()

    def serve(connection: socket.socket) -> None:
        if connection.recv(1) == b"f":  # reads no more, so that the proxy does not, and sees no reset
            assert gone.wait(20)
            connection.shutdown(socket.SHUT_WR)
            ended.set()
            gone.clear()
            gone.wait(20)
        else:
            connection.sendall(b"!")

    with serving(serve) as target, proxied("db", target, {"delay_ns": 200 * MS}) as proxy, connected(proxy.port) as other:
        client = socket.create_connection((HOST, proxy.port))
        client.settimeout(1.0)
        with pytest.raises(TimeoutError):
            client.sendall(b"f" * (64 << 20))
        reset(client)
        gone.set()
        assert ended.wait(20)
        other.settimeout(10)
        other.sendall(b"?")
        assert other.recv(1) == b"!"
        gone.set()


def test_connections_are_refused_and_answers_lost_as_often_as_asked() -> None:
    with serving(echo) as target:
        for settings, least, most in (({"refused": 0.5, "seed": 1}, 30, 70), ({"failing": 0.5, "seed": 1}, 30, 70)):
            with proxied("db", target, settings) as proxy:
                failed = 0
                for _ in range(100):
                    try:  # a reset may come before the client has its connection
                        with connected(proxy.port) as client:
                            client.sendall(b"?")
                            failed += client.recv(1) != b"?"
                    except ConnectionError:
                        failed += 1
                assert least <= failed <= most
                assert proxy.take("here").failures == failed


def test_a_connection_is_reset_after_so_many_bytes() -> None:
    with serving(echo) as target, proxied("db", target, {"reset_after": 3, "delay_ns": MS}) as proxy, connected(proxy.port) as client:
        turn_ns(client)
        client.sendall(b"12345")
        with pytest.raises(ConnectionError):
            assert len(read(client, 5)) <= 2
        assert proxy.take("here").bytes_down == 3


def test_who_does_not_read_holds_up_the_service_and_not_the_proxys_memory() -> None:
    sent = threading.Semaphore(0)

    def flood(connection: socket.socket) -> None:
        connection.recv(1)
        for _ in range(64):
            connection.sendall(b"x" * (1 << 20))
            sent.release()

    with serving(flood) as target, proxied("db", target, {"delay_ns": 1 * MS}) as proxy, connected(proxy.port) as client:
        client.sendall(b"?")
        got = 0
        while sent.acquire(timeout=1.0):
            got += 1
        assert got < 40  # buffers of two connections and of the proxy hold no more
        assert len(read(client, 64 << 20)) == 64 << 20


def test_a_service_that_is_gone_is_told_and_its_clients_are_reset() -> None:
    with socket.create_server((HOST, 0)) as server:
        gone = server.getsockname()[1]
    with proxied("db", gone, {}) as proxy:
        with pytest.raises(ConnectionError), connected(proxy.port) as client:
            client.recv(1)
        with pytest.raises(WorkloadError, match=r"before service db could not reach it for 1 of 1 connections \(head, list\)") as caught:
            proxy.take("head, list")
    assert caught.value.slug == "proxy-target-gone"


def test_a_proxy_that_ended_is_told() -> None:
    with proxied("db", 1, {}) as proxy:
        os.kill(proxy.process.pid, signal.SIGKILL)
        with pytest.raises(WorkloadError) as caught:
            proxy.take("here")
    assert caught.value.slug == "proxy-ended"


def test_a_proxy_ends_with_its_block_and_listens_at_the_loopback_address_alone() -> None:
    with serving(echo) as target:
        with proxied("db", target, {}) as proxy:
            pid, port = proxy.process.pid, proxy.port
            listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
            assert f"0100007F:{port:04X}" in listening
            assert f"00000000:{port:04X}" not in listening
        assert not Path(f"/proc/{pid}").exists()
