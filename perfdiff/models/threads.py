"""How many threads linear algebra may take."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Solve on the caller's thread alone; entering takes 0.02 ms.

    Models have some dozen columns. BLAS deals even these to all cores and lets each thread spin until the last one is done: where other
    programs share the cores, a fit was seen to take 3.5 times the CPU time. It also makes sums, to the bit, independent of the number of
    cores.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
