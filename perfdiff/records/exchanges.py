"""What passed between a run and a service, at the proxy between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Sums over the connections of a run.

    An exchange is a turn: bytes of the program's, or its connecting where the service speaks first, and the service's answer; `waited_ns`
    lasted these turns. `failures` are connections that the proxy reset.
    """

    connections: int = 0
    exchanges: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    waited_ns: int = 0
    failures: int = 0
