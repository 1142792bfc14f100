"""A small autoencoder: what base's calls have in common passes its bottleneck, and what does not is error (AutoPerf §4.3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perfdiff.models.detectors.detector import Training
from perfdiff.records.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Sequential

LEARNING_RATE = 0.03
EPOCHS = 150  # at most, each over all rows at once
PATIENCE = 15  # epochs without a gain on held-out runs after which training ends
HELD_OUT = 5  # one run in so many says when to stop
# Rows that are learnt from at most: a network of some hundred weights learns no more from further ones.
ROWS = 1000


@dataclass(frozen=True, slots=True)
class Autoencoder:
    """A trained network c → c/2 → c/3 → c/2 → c with tanh between."""

    network: Sequential

    @classmethod
    def learn(cls, training: Training) -> Autoencoder:
        """Train on base's calls by Adam until the error of held-out runs no longer falls; one thread, seeded, the same bytes each time."""
        import torch

        held = np.isin(training.runs, np.unique(training.runs)[::HELD_OUT])
        if held.all():
            held = np.arange(len(training.rows)) % HELD_OUT == 0
        with _alone(training.seed):
            network = _network(training.rows.shape[1])
            rows = training.blurred()
            inputs, checks = (_thinned(rows[which]) for which in (~held, held))
            _train(network, torch.from_numpy(inputs), torch.from_numpy(checks))
        return cls(network)

    def errors(self, rows: Floats) -> Floats:
        """Return the reconstruction error ‖x − A(x)‖₂ of each call (n,), equation 1."""
        return np.asarray(np.linalg.norm(self.parts(rows), axis=1))

    def parts(self, rows: Floats) -> Floats:
        """Return the reconstruction error of each counter (n, c), in standardised units."""
        import torch

        with _one_thread(), torch.no_grad():
            return np.asarray(np.abs(rows - self.network(torch.from_numpy(rows)).numpy()))


@contextmanager
def _alone(seed: int) -> Iterator[None]:
    """Use one thread and a seed of our own, and leave the program's settings as they were."""
    import torch

    with _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread, whose sums are the same on any number of cores."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _network(counters: int) -> Sequential:
    from torch import float64, nn

    wide, narrow = max(counters // 2, 2), max(counters // 3, 1)
    sizes = (counters, wide, narrow, wide, counters)
    layers: list[nn.Module] = []
    for inside, outside in pairwise(sizes):
        layers += [nn.Linear(inside, outside, dtype=float64), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def _thinned(rows: Floats) -> Floats:
    step = -(-len(rows) // ROWS)
    return np.ascontiguousarray(rows[::step])


def _train(network: Sequential, inputs: Tensor, checks: Tensor) -> None:
    import torch

    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    best, since, best_state = float("inf"), 0, network.state_dict()
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = ((network(inputs) - inputs) ** 2).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            error = float(((network(checks) - checks) ** 2).mean())
        since += 1
        if error < best:
            best, since, best_state = error, 0, {name: value.clone() for name, value in network.state_dict().items()}
        if since == PATIENCE:
            break
    network.load_state_dict(best_state)
