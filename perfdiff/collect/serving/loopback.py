"""The loopback address: ports of it that are free, and whether somebody answers there."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

HOST = "127.0.0.1"
ANSWER_S = 5.0  # that a server may take to answer whether it is ready
NOT_READY = 500  # statuses from here on say that it is not


def accepts(port: int) -> bool:
    """Return whether a port accepts connections."""
    try:
        socket.create_connection((HOST, port), ANSWER_S).close()
    except OSError:
        return False
    return True


def answers(url: str) -> bool:
    """Return whether a server answers a request, in whatever way but that it is not ready."""
    code = status(url)
    return code is not None and code < NOT_READY


def status(url: str) -> int | None:
    """Return the status by which a server answers a request, None where nobody does."""
    import http.client  # ssl comes with it, 30 ms of a start

    parts = urlsplit(url)
    try:
        with closing(http.client.HTTPConnection(parts.hostname or HOST, parts.port, timeout=ANSWER_S)) as connection:
            connection.request("GET", url.partition(parts.netloc)[2] or "/", headers={"Host": parts.netloc})
            return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for endpoint in sockets:
            endpoint.bind((HOST, 0))
        return [endpoint.getsockname()[1] for endpoint in sockets]


def is_taken(port: int) -> bool:
    """Return whether somebody listens at a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
        return False
