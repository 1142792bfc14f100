"""Tasks for a scheduler that has no perfdiff: it reads what it passes on, so they name what the worker calls, and hold bytes."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfdiff.cluster import RESOURCE

if TYPE_CHECKING:
    from distributed import Client, Future


def submitted(client: Client, address: str, name: str, *arguments: Any, held: Sequence[Future] = ()) -> Future:
    """Have a worker, and no other, call a function of `perfdiff.cluster.hosting`; what other tasks left are its first arguments."""

    # Within a function Dask sends the code of a function, elsewhere its name.
    def call(function: str, given: bytes, *first: Any) -> Any:
        import pickle
        import pkgutil

        return pkgutil.resolve_name(f"perfdiff.cluster.hosting:{function}")(*first, *pickle.loads(given))

    return client.submit(
        call,
        name,
        pickle.dumps(arguments),
        *held,
        workers=[address],
        allow_other_workers=False,
        resources={RESOURCE: 1},
        key=f"perfdiff-{name}-{uuid.uuid4().hex}",
        retries=0,
    )
