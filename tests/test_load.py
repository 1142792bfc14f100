"""perfdiff's own load: the same requests by seed, sent one after the other or at a rate, and failures that never count as fast."""

from __future__ import annotations

import gzip
import json
import math
import select
import socket
import threading
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import findings as examples
from experiments import Made, World, same
from perfdiff import configuration
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import PointStanding, Ratio, RequestFinding
from perfdiff.analysis.sums.ledger import open_counts
from perfdiff.analysis.verdicts.requests import request_findings, waiting_notes, without_waiting
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, whole_runs
from perfdiff.collect.serving.requests import Failures
from perfdiff.config import CompareConfig, RequestConfig, RequestMix
from perfdiff.errors import ConfigError, WorkloadError
from perfdiff.load import results
from perfdiff.load.client import Client, RequestOutcome, send_in_turns
from perfdiff.load.plan import Planned, plan
from perfdiff.records.requests import RequestTimes
from perfdiff.records.schema import Edges, Experiment, Phase, Point, Run, Side, Totals
from perfdiff.report import document, html, json_report, terminal
from perfdiff.report.sentences.catalogue import noted
from test_schemas import VALIDATORS

LIST = RequestConfig("list", "/files/{user}/?page={page}", draw={"user": ("1..100",), "page": (1, 2, 3)}, weight=5)
CREATE = RequestConfig("create", "/files/f{i}", "PUT", {"X-Url": "{url}/f{i}"}, body_bytes="100..10000", first=3)
MOVE = RequestConfig("move", "/files/f{i}", "MOVE", {"Destination": "{url}/files/g{i}"}, after="create")
DELETE = RequestConfig("delete", "/files/g{i}", "DELETE", after="move")
URL = "http://127.0.0.1:1"


def mix(*requests: RequestConfig, **changes: Any) -> RequestMix:
    return replace(RequestMix("requests.toml", "http://127.0.0.1:{app.port}", requests), **changes)


def test_a_seed_gives_the_same_requests_and_another_one_others() -> None:
    asked = mix(LIST, CREATE, count="200")
    assert plan(asked, {}, URL) == plan(asked, {}, URL)
    assert plan(asked, {}, URL) != plan(replace(asked, seed=2), {}, URL)


def test_requests_are_drawn_by_weight_range_and_list() -> None:
    requests = plan(mix(LIST, replace(LIST, name="other", path="/other", draw={}, weight=1), count="3000"), {}, URL)
    kinds = Counter(request.kind for request in requests)
    assert kinds[0] / kinds[1] == pytest.approx(5, rel=0.2)
    users = {int(request.target.split("/")[2]) for request in requests if request.kind == 0}
    assert (min(users), max(users), len(users)) == (1, 100, 100)
    assert {request.target[-1] for request in requests if request.kind == 0} == {"1", "2", "3"}


def test_what_comes_after_others_is_never_sent_before_them() -> None:
    requests = plan(mix(DELETE, MOVE, CREATE, count="500"), {}, URL)
    assert [request.kind for request in requests[:3]] == [2, 2, 2]
    done: dict[str, int] = {}
    for number, request in enumerate(requests):
        name = request.target.rpartition("/")[2]
        if request.needs is not None:
            before = requests[request.needs]
            assert request.needs < number
            assert before.headers.get("Destination", f"{URL}{before.target}").rpartition("/")[2] == name
        done[name] = number
    assert Counter(request.kind for request in requests).keys() == {0, 1, 2}


def test_sizes_of_bodies_spread_over_orders_of_magnitude() -> None:
    sizes = [len(request.body) for request in plan(mix(CREATE, count="2000"), {}, URL)]
    assert (min(sizes) >= 100, max(sizes) <= 10000) == (True, True)
    assert np.median(sizes) == pytest.approx(1000, rel=0.15)


def test_parameters_of_the_workload_reach_all_texts() -> None:
    asked = RequestConfig("get", "/{n}/{k}", headers={"N": "{n}"}, body="x{n}", draw={"k": ("{n}..{n}",)})
    (first, *_) = requests = plan(mix(asked, count="{n}"), {"n": 7}, URL)
    assert len(requests) == 7
    assert first == Planned(0, "GET", "/7/7", {"N": "7"}, b"x7")
    (sized,) = plan(mix(RequestConfig("put", "/", body_bytes="{n}"), count="1"), {"n": 300000}, URL)
    assert len(sized.body) == 300000


def test_values_in_paths_are_quoted() -> None:
    (request,) = plan(mix(RequestConfig("get", "/{name}", draw={"name": ("a b/c",)}), count="1"), {}, URL)
    assert request.target == "/a%20b%2Fc"


def test_numbers_that_are_none_are_told() -> None:
    with pytest.raises(WorkloadError, match="'count' of the requests is 'many', but must be a whole number"):
        plan(mix(LIST, count="{n}"), {"n": "many"}, URL)
    with pytest.raises(WorkloadError, match="no request may be next"):
        plan(mix(replace(CREATE, weight=0.0, first=1), MOVE, count="2"), {}, URL)


class Server(ThreadingHTTPServer):
    """Answers after a while; `/500` with that status; `/hang` never, `/cut` breaks the connection."""

    daemon_threads = True
    seen: list[tuple[str, str, int]]
    wait_s = 0.0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, len(body)))
        if self.path == "/hang":
            time.sleep(1)
        if self.path == "/cut":
            self.close_connection = True
            return
        time.sleep(self.server.wait_s)
        self.send_response(int(self.path[1:]) if self.path[1:].isdigit() else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_PUT = do_MOVE = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as found:
        found.seen = []
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def sent(server: Server, asked: RequestMix) -> tuple[results.Results, list[Planned]]:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    requests, client = plan(asked, {}, url), Client(url, asked)
    answers = client.send(requests)
    return results.results(asked, requests, answers, float(client.elapsed_ns)), requests


def test_requests_are_sent_in_order_and_timed(server: Server) -> None:
    server.wait_s = 0.01
    found, requests = sent(server, mix(LIST, CREATE, MOVE, DELETE, count="30"))
    assert [(command, path) for command, path, _ in server.seen] == [(request.method, request.target) for request in requests]
    assert [size for _, _, size in server.seen] == [len(request.body) for request in requests]
    assert {kind.name for kind in found.kinds} == {"list", "create", "move", "delete"}
    assert all(kind.median_ns is not None and 1e7 <= kind.median_ns < 1e9 for kind in found.kinds)
    assert found.elapsed_ns >= len(requests) * 1e7


def test_two_servers_are_asked_in_turns_and_each_is_timed_by_itself(server: Server) -> None:
    with Server(("127.0.0.1", 0), Handler) as slow:
        slow.seen, slow.wait_s = server.seen, 0.1  # both in one list
        threading.Thread(target=slow.serve_forever, args=(0.01,)).start()
        urls = [f"http://127.0.0.1:{each.server_address[1]}" for each in (server, slow)]
        asked = [mix(replace(LIST, path=f"/{name}/{{i}}", draw={}), count="6") for name in ("base", "head")]
        clients = [Client(url, each) for url, each in zip(urls, asked, strict=True)]
        answers = send_in_turns(clients, [plan(each, {}, url) for url, each in zip(urls, asked, strict=True)])
        slow.shutdown()
    order = [path for _, path, _ in server.seen]
    assert order[:4] == ["/base/0", "/head/0", "/head/1", "/base/1"]  # neither is always the first
    assert len(order) == 12
    assert [[answer.status for answer in each] for each in answers] == [[200] * 6] * 2
    base_ns, head_ns = (client.elapsed_ns for client in clients)
    assert head_ns >= 6e8, "it waits 0.1 s with each answer"
    assert base_ns < 5e8, "what the other one takes is none of its time"


def test_what_comes_after_others_waits_for_them_where_several_are_under_way(server: Server) -> None:
    server.wait_s = 0.01
    sent(server, mix(CREATE, MOVE, DELETE, count="60", concurrency=8))
    order = {(command, path): number for number, (command, path, _) in enumerate(server.seen)}
    assert all(order["PUT", path] < number for (command, path), number in order.items() if command == "MOVE")


@pytest.mark.parametrize(
    ("path", "expect", "failed"),
    [
        ("/200", (), {}),
        ("/302", (), {}),
        ("/404", (404,), {}),
        ("/200", (404,), {"200": 5}),
        ("/500", (), {"500": 5}),
        ("/cut", (), {"connection broken": 5}),
        ("/hang", (), {"no answer in time": 5}),
    ],
)
def test_requests_that_fail_are_counted_and_have_no_time(
    server: Server, path: str, expect: tuple[int, ...], failed: dict[str, int]
) -> None:
    found, _ = sent(server, mix(RequestConfig("one", path, expect=expect), count="5", timeout_s=0.1))
    (kind,) = found.kinds
    assert (kind.made, kind.failed) == (5, failed)
    assert (kind.median_ns is None) == bool(failed)
    assert kind.example == (f"GET {path}" if failed else "")


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ZEROS = gzip.compress(bytes(2**20), mtime=0)
PACKED = HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n"


@contextmanager
def serving(*parts: bytes, repeated: bytes = b"", stays: bool = False) -> Iterator[Client]:
    """Yield a client of a server that answers each request with these bytes, then with others until the client has had enough."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                while connection.recv(2**16):
                    for part in parts:
                        connection.sendall(part)
                    while repeated:
                        connection.sendall(repeated)
                    if not stays:
                        break

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        asked = mix(RequestConfig("one", "/x"), count="1", timeout_s=2.0)
        yield Client(f"http://127.0.0.1:{listener.getsockname()[1]}", asked)
        listener.shutdown(socket.SHUT_RDWR)


def answered(client: Client, method: str = "GET", count: int = 1) -> list[RequestOutcome]:
    return client.send([Planned(0, method, "/x", {}, b"")] * count)


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ((CHUNKED, b"0000000000000005\r\nhello\r\n0\r\n\r\n"), 5),
        ((CHUNKED, b'5;name=value;other="x"\r\nhello\r\n0;last\r\nTrailer: x\r\n\r\n'), 5),
        ((CHUNKED, b"5 \r\nhel", b"lo\r", b"\n1\r\n!\r\n0\r\n\r", b"\n"), 6),
        ((HEAD + b"Content-Length: 5\r\n\r\n", b"hello"), 5),
        ((HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", b"hello"), 5),
        ((HEAD + b"Content-Length:  005 \r\nX: a\r\n folded\r\n\r\nhello",), 5),
        ((CHUNKED.replace(b": ", b":\r\n\t"), b"5\r\nhello\r\n0\r\n\r\n"), 5),
        ((HEAD + b"\r\n", b"hello"), 5),
        ((b"HTTP/1.0 200 \n\n", b"hello"), 5),
        ((b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", HEAD + b"Content-Length: 2\r\n\r\nok"), 2),
        ((b"HTTP/1.1 204 None\r\nContent-Length: 7\r\n\r\n",), 0),
        ((HEAD + b"Content-Length: 0\r\n\r\n",), 0),
    ],
)
def test_answers_are_read_as_their_lengths_say(parts: tuple[bytes, ...], size: int) -> None:
    with serving(*parts) as client:
        (answer,) = answered(client)
    assert (answer.failure, answer.size) == ("", size)


@pytest.mark.parametrize(
    ("parts", "repeated", "failure"),
    [
        ((CHUNKED, b"FFFFFFFFFFFFFFFF\r\nx"), b"", "malformed chunk"),
        ((CHUNKED, b"8000000000000000\r\nx"), b"", "malformed chunk"),
        ((CHUNKED, b"fffffffffffffff\r\nx"), b"", "connection broken"),
        ((CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n"), b"", "malformed chunk"),
        ((CHUNKED, b"0x5\r\nhello\r\n0\r\n\r\n"), b"", "malformed chunk"),
        ((CHUNKED, b"\r\n"), b"", "malformed chunk"),
        ((CHUNKED, b"5\r\nhello world\r\n0\r\n\r\n"), b"", "malformed chunk"),
        ((CHUNKED, b"5\r\nhello\r\n0\r\n"), b"", "connection broken"),
        ((CHUNKED, b"5\r\nhello\r\n0"), b"", "connection broken"),
        ((CHUNKED, b"5;"), b"x" * 999, "malformed chunk"),
        ((CHUNKED, b"0\r\n"), b"Trailer: x\r\n", "header too long"),
        ((CHUNKED,), b"1\r\nx\r\n", "no answer in time"),
        ((HEAD + b"Content-Length: 9\r\n\r\n", b"hello"), b"", "connection broken"),
        ((HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", b"hello!"), b"", "contradicting lengths of the body"),
        ((HEAD + b"Content-Length: 5, 6\r\n\r\n", b"hello!"), b"", "contradicting lengths of the body"),
        ((HEAD + b"Content-Length: -1\r\n\r\n",), b"", "contradicting lengths of the body"),
        ((HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",), b"x", "contradicting lengths of the body"),
        ((CHUNKED[:-2] + b"Content-Length: 5\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"), b"", "contradicting lengths of the body"),
        ((HEAD,), b"X: y\r\n", "header too long"),
        ((HEAD, b"X: "), b"y" * 999, "header too long"),
        ((HEAD, b"X:"), b" " * 999, "header too long"),
        ((b"HTTP/1.1 200 ",), b"O" * 999, "header too long"),
        ((), b"HTTP/1.1 100 Continue\r\n\r\n", "too many interim answers"),
        ((), b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "too many interim answers"),
        ((b"HTTP/1.1 101 Switching\r\n\r\n", b"x"), b"", "101"),
        ((HEAD + b"no field\r\n\r\n",), b"", "malformed answer"),
        ((HEAD + b" folded\r\n\r\n",), b"", "malformed answer"),
        ((HEAD + b"Content-Length: 3\r\n 4\r\n\r\nhello",), b"", "contradicting lengths of the body"),
        ((b"hello\r\n\r\n",), b"", "malformed answer"),
        ((b"HTTP/1.1 99999 OK\r\n\r\n",), b"", "malformed answer"),
        ((), b"", "connection broken"),
        ((HEAD + b"\r\n",), b"x" * 2**16, "no answer in time"),
        ((PACKED,), ZEROS, "body too large when unpacked"),
        ((PACKED, b"hello"), b"", "malformed compressed body"),
        ((PACKED, ZEROS[:-9]), b"", "malformed compressed body"),
    ],
)
def test_answers_of_no_good_end_in_a_failed_request(parts: tuple[bytes, ...], repeated: bytes, failure: str) -> None:
    began = time.monotonic()
    tracemalloc.start()
    with serving(*parts, repeated=repeated) as client:
        (answer,) = answered(client)
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.failure == failure
    assert time.monotonic() - began < 8, "it is given 2 s"
    assert peak < 16 * 2**20


def test_a_body_that_comes_byte_by_byte_is_waited_for_no_longer_than_another() -> None:
    with serving(HEAD + b"\r\n", repeated=b"x") as client:
        client.mix = replace(client.mix, timeout_s=0.3)
        (answer,) = answered(client)
    assert answer.failure == "no answer in time"
    assert 0.3e9 <= answer.latency_ns < 2e9


def test_what_comes_behind_an_answer_is_none_to_the_next_request() -> None:
    with serving(HEAD + b"Content-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", stays=True) as client:
        assert [answer.failure for answer in answered(client, count=4)] == [""] * 4


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew() -> None:
    with serving(HEAD + b"Content-Length: 2\r\n\r\nok") as client, client.connection() as connection:
        assert client.answer(connection, Planned(0, "GET", "/x", {}, b""), None).failure == ""
        assert connection._socket is not None
        assert select.select([connection._socket], [], [], 5)[0], "the server has closed it"
        assert client.answer(connection, Planned(0, "GET", "/x", {}, b""), None).failure == ""


@pytest.mark.parametrize(("method", "failures"), [("GET", ["", ""]), ("PUT", ["", ""]), ("POST", ["", "connection broken"])])
def test_what_may_be_repeated_is_sent_again_where_a_kept_connection_breaks(method: str, failures: list[str]) -> None:
    """Each connection answers one request, takes another and closes."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(2**16)
                    connection.sendall(HEAD + b"Content-Length: 2\r\n\r\nok")
                    connection.recv(2**16)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", mix(RequestConfig("one", "/x"), count="1", timeout_s=5.0))
        assert [answer.failure for answer in answered(client, method, 2)] == failures
        listener.shutdown(socket.SHUT_RDWR)


def test_an_answer_to_head_has_no_body_and_the_connection_stays() -> None:
    with serving(HEAD + b"Content-Length: 7\r\n\r\n", stays=True) as client:
        assert [(answer.failure, answer.size) for answer in answered(client, "HEAD", 3)] == [("", 0)] * 3


def test_bodies_are_the_same_however_they_come() -> None:
    text = b"hello" * 1000
    ways = [
        HEAD + b"Connection: close\r\n\r\n" + text,
        CHUNKED + b"1388\r\n" + text + b"\r\n0\r\n\r\n",
    ]
    packed = [gzip.compress(text, mtime=1), gzip.compress(text, 1, mtime=2), gzip.compress(text[:9]) + gzip.compress(text[9:])]
    deflated = [zlib.compress(text), zlib.compress(text)[2:-4]]
    ways += [PACKED + body for body in packed] + [PACKED.replace(b"gzip", b"deflate") + body for body in deflated]
    digests = set()
    for way in ways:
        with serving(way) as client:
            (answer,) = answered(client)
        assert answer.failure == ""
        digests.add(answer.digest)
    assert len(digests) == 1


@pytest.mark.parametrize("packing", ["raw deflate", "deflate", "gzip"])
def test_a_body_that_is_longer_unpacked_than_one_piece_is_whole(packing: str) -> None:
    text = bytes(2**16 + 1)
    packed = {"raw deflate": zlib.compress(text)[2:-4], "deflate": zlib.compress(text), "gzip": gzip.compress(text)}[packing]
    with serving(PACKED.replace(b"gzip", packing.rsplit(maxsplit=1)[-1].encode()) + packed) as client:
        (answer,) = answered(client)
    with serving(HEAD + b"Connection: close\r\n\r\n" + text) as client:
        (plain,) = answered(client)
    assert (answer.failure, answer.digest) == ("", plain.digest)


@pytest.mark.parametrize("request_", [Planned(0, "GET", "/x", {"A": "b\r\nC: d"}, b""), Planned(0, "GET /y", "/x", {}, b"")])
def test_a_request_that_would_be_read_as_another_is_not_sent(request_: Planned) -> None:
    with serving(HEAD + b"\r\n") as client:
        (answer,) = client.send([request_])
    assert answer.failure == "request that cannot be sent"


@pytest.mark.parametrize("size", [50_000, 20_000_000])
def test_a_refusal_before_the_whole_request_has_come_is_its_answer(size: int) -> None:
    with serving(b"HTTP/1.1 413 Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") as client:
        (answer,) = client.send([Planned(0, "PUT", "/x", {}, bytes(size))])
    assert answer.failure == "413"


def test_at_a_rate_latency_counts_from_when_a_request_was_due(server: Server) -> None:
    """One worker that needs 20 ms each falls behind 100 requests a second by 10 ms each."""
    server.wait_s = 0.02
    found, _ = sent(server, mix(RequestConfig("one", "/x"), count="21", rate=100.0, concurrency=1))
    (kind,) = found.kinds
    assert kind.median_ns is not None
    assert kind.median_ns / 1e6 >= 20 + 10 * 10
    assert kind.tail_ns is not None
    assert kind.tail_ns > kind.median_ns


def test_at_a_rate_requests_do_not_wait_for_each_other(server: Server) -> None:
    server.wait_s = 0.05
    found, _ = sent(server, mix(RequestConfig("one", "/x"), count="20", rate=100.0))
    assert found.elapsed_ns / 1e6 < 20 * 50


def times(failed: int, how: str = "500", name: str = "list") -> tuple[RequestTimes, ...]:
    return (RequestTimes(name, 40, {how: failed} if failed else {}, None, None, "GET /x" if failed else ""),)


def test_failures_of_one_side_alone_are_an_error_that_says_whose() -> None:
    point = Point(0, "w", {"n": 9}, "")
    for first, second in ((Side.BASE, Side.HEAD), (Side.HEAD, Side.BASE)):
        failures = Failures()
        failures.add(point, first, times(12 * (first is Side.HEAD)), f"{first} says")
        with pytest.raises(
            WorkloadError, match=r"^head answers 500 to GET /x, 12 of 40 requests 'list', base fails none of them \(w n=9\)"
        ) as caught:
            failures.add(point, second, times(12 * (second is Side.HEAD)), f"{second} says")
        assert caught.value.detail == "head says"


def test_failures_that_come_and_go_are_an_error() -> None:
    failures = Failures()
    failures.add(Point(0, "w", {}, ""), Side.BASE, times(0))
    with pytest.raises(WorkloadError, match=r"base fails \(no answer in time\) at GET /x, 3 of 40 .*, an earlier run of base fails none"):
        failures.add(Point(0, "w", {}, ""), Side.BASE, times(3, "no answer in time"))


def test_equal_failures_of_both_sides_are_told_once() -> None:
    failures = Failures()
    for side in (*Side, *Side):
        failures.add(Point(0, "w", {}, ""), side, times(2, "404"))
    (note,) = failures.notes
    assert note.text.startswith("answers 404 to GET /x, 2 of 40 requests 'list' on both sides (w)")


def test_nothing_is_compared_where_no_request_succeeds_on_either_side() -> None:
    failures, point = Failures(), Point(0, "w", {"n": 9}, "")
    failures.add(point, Side.BASE, (*times(40, "502"), *times(40, "502", "make")))
    with pytest.raises(WorkloadError, match=r"no request succeeds, on both sides: head answers 502 to GET /x, 40 of 40") as caught:
        failures.add(point, Side.HEAD, (*times(40, "502"), *times(40, "502", "make")), "connect() failed")
    assert (caught.value.slug, caught.value.detail) == ("requests-failed", "connect() failed")
    some = Failures()
    for side in Side:
        some.add(point, side, (*times(40, "502"), *times(0, name="make")))
    assert [note.slug for note in some.notes] == ["requests-failed"]


def run(side: Side, block: int, wall_ms: float, cpu_ms: float, latency_ms: float) -> Run:
    requests = (RequestTimes("list", 40, {}, latency_ms * 1e6, 2 * latency_ms * 1e6),)
    return Run(block, Phase.PLAIN, 0, side, block, wall_ms * 1e6, cpu_ms * 1e6, 1e6, None, None, "", requests=requests)


def measured(point: Point, head_wall: float, head_cpu: float) -> Experiment:
    rng = np.random.default_rng(3)
    noise = rng.normal(1.0, 0.01, (20, 4))
    runs = [run(Side.BASE, i, 100 * one[0], 30 * one[1], 2 * one[0]) for i, one in enumerate(noise)]
    runs += [run(Side.HEAD, i, head_wall * one[2], head_cpu * one[3], 2 * head_wall / 100 * one[2]) for i, one in enumerate(noise)]
    return SimpleNamespace(points=(point,), runs=tuple(runs))  # all that is looked at


@pytest.mark.parametrize(
    ("outside", "head", "expected"),
    [
        (("db",), (200.0, 30.0), ("not slower", "cpu_ns", True)),
        ((), (200.0, 30.0), ("slower", "wall_ns", False)),
        (("db",), (200.0, 60.0), ("slower", "cpu_ns", False)),
        (("db",), (100.0, 30.0), ("not slower", "cpu_ns", False)),
    ],
    ids=["waits for db", "waits by itself", "works more", "the same"],
)
def test_what_waits_for_services_outside_is_judged_by_its_work(
    outside: tuple[str, ...], head: tuple[float, float], expected: tuple[str, str, bool]
) -> None:
    experiment = measured(Point(0, "w", {}, "", outside), *head)
    (end,) = whole_runs(experiment.points, experiment.runs, CompareConfig()).ends
    notes = list(map(noted, waiting_notes(experiment, WholeRuns((end,)), None, CompareConfig())))
    assert (end.standing.value, end.by, bool(notes)) == expected
    assert all("runs of w take ×2.0" in note.text and "as where db, which is outside the revisions" in note.text for note in notes)


SAME = WorkDifference(more=0.0, less=0.0, waiting=0.0, outside=0.0, repeats=True, is_bounded=False)


@pytest.mark.parametrize(
    ("head_cpu", "work", "remains"),
    [
        (36.0, SAME, False),
        (36.0, replace(SAME, more=0.2), True),
        (36.0, None, True),
        (90.0, SAME, True),
    ],
    ids=["cold caches", "works more", "not counted", "takes CPU time"],
)
def test_the_same_work_that_waits_longer_is_no_slower_program(head_cpu: float, work: WorkDifference | None, remains: bool) -> None:
    """CPU time that grows by a fifth beside waits that double is theirs where exact counts are the same."""
    experiment = measured(Point(0, "w", {}, "", ("db",)), 200.0, head_cpu)
    runs = whole_runs(experiment.points, experiment.runs, CompareConfig())
    assert [end.standing for end in runs.ends] == [PointStanding.SLOWER]
    assert bool(without_waiting(runs, experiment, work, CompareConfig()).ends) is remains
    assert bool(list(waiting_notes(experiment, runs, work, CompareConfig()))) is not remains


def test_latencies_are_compared_pair_by_pair() -> None:
    (found,) = request_findings(measured(Point(0, "w", {}, ""), 300.0, 30.0), CompareConfig())
    assert (found.name, found.made, found.failed) == ("list", 40, 0)
    assert found.base_ns == pytest.approx(2e6, rel=0.05)
    assert found.head_ns == pytest.approx(6e6, rel=0.05)
    assert found.head_tail_ns == pytest.approx(12e6, rel=0.05)
    assert found.ratio is not None
    assert found.ratio.low < 3.0 < found.ratio.high


def test_latencies_of_one_host_of_many_are_one_pair() -> None:
    experiment = measured(Point(0, "w", {}, ""), 300.0, 30.0)
    in_tens = SimpleNamespace(
        points=experiment.points, runs=tuple(replace(run, block=run.block % 10, layout=run.block % 3) for run in experiment.runs)
    )
    (found,) = request_findings(in_tens, CompareConfig())
    assert found.ratio is not None
    assert found.ratio.low < 3.0 < found.ratio.high
    assert found.ratio.runs_base == 10


def test_requests_stand_in_the_reports() -> None:
    found = RequestFinding(Point(0, "w", {"n": 9}, ""), "list", 40, 2, 2.1e6, 8.4e6, 3.0e6, None, Ratio(4.0, 3.9, 4.1, 10, 10))
    findings = replace(examples.findings(), requests=(found,))
    text = terminal.render(document.build(findings), width=120)
    rows = text.partition("Requests, without probes: median latency\n")[2].splitlines()
    assert rows[1].split() == ["list", "w", "n=9", "40", "2", "2.1", "ms", "8.4", "ms", "×4.0", "[3.9,", "4.1]", "3", "ms", "–"]
    assert "750 a request" in text
    assert "10.2 ms more a request, over all kinds" in text
    report = json.loads(json_report.render(document.build(findings)))
    (request,) = report["requests"]
    assert (request["name"], request["failed"], request["base_ns"], request["head_tail_ns"], request["ratio"]) == (
        "list",
        2,
        2.1e6,
        None,
        4.0,
    )
    VALIDATORS["report-1"].validate(report)
    assert "Requests, without probes" in html.render(document.build(findings))


CONFIG = """
[build]
command = "true"
[[service]]
name = "app"
command = "serve {port}"
[[workload]]
name = "w"
requests = "requests.toml"
parameters = { n = [1, 2] }
"""
REQUESTS = 'url = "http://127.0.0.1:{app.port}"\ncount = 5\n[[request]]\nname = "list"\npath = "/{n}"\n'


def load(folder: Path, requests: str, config: str = CONFIG) -> RequestMix:
    (folder / "perfdiff.toml").write_text(config)
    (folder / "requests.toml").write_text(requests)
    found = configuration.load(folder, environment={}).workloads[0].requests
    assert found is not None
    return found


def test_a_file_of_requests_is_read(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"\xff\x00")
    found = load(
        tmp_path, REQUESTS + 'body_file = "body"\ndraw = { k = "1..9", m = ["a", "b"] }\nheaders = { Depth = "{k}" }\nexpect = [207]\n'
    )
    (request,) = found.requests
    assert (found.count, request.draw, request.expect) == ("5", {"k": ("1..9",), "m": ("a", "b")}, (207,))
    assert plan(found, {"n": 1}, URL)[0].body == b"\xff\x00"


@pytest.mark.parametrize(
    ("requests", "config", "says"),
    [
        (REQUESTS.replace("{n}", "{m}"), CONFIG, "line 3: '{m}' in '/{m}' is neither drawn nor a parameter of workload 'w'; there"),
        (REQUESTS.replace("{app.port}", "80"), CONFIG, "'url' must name the server by its service's port"),
        (REQUESTS.replace("127.0.0.1", "example.org"), CONFIG, "it must be the address of a service"),
        (REQUESTS.replace("{app.port}", "{web.port}"), CONFIG, "no service is named 'web'; there are app"),
        (REQUESTS.split("[[", maxsplit=1)[0], CONFIG, "there is no [[request]]"),
        (REQUESTS + 'body = "x"\nbody_bytes = 3\n', CONFIG, "exclude each other"),
        (REQUESTS + 'after = "put"\n', CONFIG, "line 6: 'put' is no other request; there are list"),
        (REQUESTS + 'body_file = "nothing"\n', CONFIG, "cannot be read: No such file"),
        (REQUESTS + "wait = 3\n", CONFIG, "line 6: unknown key 'wait'; in [request] there are name, path"),
        (REQUESTS + "expect = [20]\n", CONFIG, "must be a list of statuses"),
        (REQUESTS.replace('path = "/{n}"', ""), CONFIG, "this [[request]] has no 'path'"),
        (REQUESTS.replace("{n}", ""), CONFIG, "parameter 'n' has no place"),
        (REQUESTS, CONFIG + 'command = "x"\n', "has both 'requests' and a command"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_told_with_its_line(tmp_path: Path, requests: str, config: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, requests, config)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "served", "known"),
    [
        (((5.0, 5.0), (math.nan, math.nan)), True, True),
        (((5.0, 5.0), (math.nan, math.nan)), False, False),
        (((5.0, 5.0), (math.nan, 7.0)), True, False),
    ],
    ids=["never ends", "no server", "ends in head"],
)
def test_counts_of_a_loop_that_a_signal_ends_are_nobodys(lines: tuple[tuple[float, float], ...], served: bool, known: bool) -> None:
    """Where a server's main loop never ends, the counts of all others still tell that the work is the same."""
    point = Point(0, "w", {}, "", (), served)
    runs = tuple(Run(number, Phase.COUNTED, 0, side, 0, 1e6, 1e6, 1e6, None, None, "") for number, side in enumerate(Side))
    places = [(run, function) for function in range(2) for run in range(2)]
    run, function = (np.array(column) for column in zip(*places, strict=True))
    values = np.array([lines[each][side] for side, each in places])
    counts = Totals(run, function + 1, np.ones(4), np.ones(4), np.ones(4), {"lines": values})
    world = World((Made("a", same(1e3)), Made("b", same(1e3)))).experiment()
    edges = Edges(*(np.array([], dtype=np.int64) for _ in range(3)), *(np.array([]) for _ in range(2)))
    experiment = replace(world, points=(point,), runs=runs, counts=counts, totals=counts, edges=edges)
    ledger = open_counts(experiment)
    assert ledger is not None
    assert ("lines" in ledger.pair(0)[0].other) is known
