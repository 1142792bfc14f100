"""What passed between a run and a service, at the proxy between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Sums over the connections of a run.

    An exchange is a turn: bytes of the program's, or its connecting where the service speaks first, and the service's answer. These turns
    lasted `waited_ns`, and their answers came by `late_ns` later, in all, than they would have without a proxy. `failures` are connections
    that the proxy reset.
    """

    connections: int = 0
    exchanges: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    waited_ns: int = 0
    late_ns: int = 0
    failures: int = 0
