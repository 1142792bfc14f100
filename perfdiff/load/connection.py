"""A connection to a server of HTTP/1.1, which is opened anew where it was closed, and one request with its answer on it."""

from __future__ import annotations

import re
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from perfdiff.load.answers import BROKEN, LATE, AnswerError, Buffered, ResponseBody, read_body, read_head
from perfdiff.load.plan import Planned

UNSENDABLE = "request that cannot be sent"
_HAS_BODY = ("PATCH", "POST", "PUT")
_REPEATABLE = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")  # twice they do what they do once (RFC 9110, section 9.2.2)
_IN_TARGET = "!$%&'()*+,/:;=?@[]~"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(slots=True)
class Connection:
    """A connection, on which an answer is waited for `timeout_s` in all, however it comes."""

    url: str
    timeout_s: float
    _socket: socket.socket | None = None
    _until: float = 0.0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def ask(self, request: Planned) -> tuple[int, ResponseBody]:
        """Send a request and return the status of the answer with its body; raise AnswerError."""
        self._until = time.perf_counter() + self.timeout_s
        stays_open = False
        try:
            source = self._sent(request)
            head = read_head(source)
            body = ResponseBody(head.fields.get("content-encoding", "").strip().lower())
            stays_open = read_body(source, head, request.method, body.add) and head.stays_open and source.is_empty
        except TimeoutError as error:
            raise AnswerError(LATE) from error
        except OSError as error:
            raise AnswerError(BROKEN) from error
        finally:
            if not stays_open:
                self.close()
        return head.status, body

    def receive(self, most: int) -> bytes:
        """Return the next bytes, none where the connection has ended; raise OSError."""
        return self._ready().recv(most)

    def _sent(self, request: Planned) -> Buffered:
        """Send a request and return its answer, of which nothing may be there; raise AnswerError or OSError.

        A server may close a connection at any time between two requests. Where one breaks that served others before, what may be repeated
        is sent once more on a new one (RFC 9112, section 9.3.1).
        """
        message = _message(request, self.url)
        is_reused = self._send(message)
        source = Buffered(self)
        if is_reused and request.method in _REPEATABLE:
            try:
                source.begin()
            except (AnswerError, ConnectionError):
                self.close()
                self._send(message)
                return Buffered(self)
        return source

    def _send(self, message: bytes) -> bool:
        """Send a message and return whether the connection has served others before."""
        if self._socket is not None and _is_readable(self._socket):  # it was closed, or sent what nobody asked for
            self.close()
        is_reused = self._socket is not None
        if self._socket is None:
            place = urlsplit(self.url)
            self._socket = socket.create_connection((place.hostname or "127.0.0.1", place.port or 80), self.timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(BrokenPipeError, ConnectionResetError):  # who refuses a body may answer before it has come
            self._ready().sendall(message)
        return is_reused

    def _ready(self) -> socket.socket:
        left = self._until - time.perf_counter()
        if left <= 0 or self._socket is None:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket


def _is_readable(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _message(request: Planned, url: str) -> bytes:
    """Return a request as it is sent; raise AnswerError where it would be read as something else."""
    given = {name.lower() for name in request.headers}
    own = {"Host": urlsplit(url).netloc.rpartition("@")[2], "Accept-Encoding": "identity", "User-Agent": "perfdiff"}
    if "transfer-encoding" not in given and (request.body or request.method in _HAS_BODY):
        own["Content-Length"] = str(len(request.body))
    headers = {**{name: value for name, value in own.items() if name.lower() not in given}, **request.headers}
    target = quote(request.target.partition("#")[0], safe=_IN_TARGET)
    are_names = all(_TOKEN.fullmatch(name) for name in (request.method, *headers))
    if not are_names or any(set(value) & set("\r\n\0") for value in headers.values()) or not target.startswith("/"):
        raise AnswerError(UNSENDABLE)
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + request.body
