"""What servers record that end by a signal: each worker its own calls, all that were answered."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import python_programs
from perfdiff.records.plan import Mode, ProbePlan

PREFORK = """
    import os, signal, socket

    def work(n):
        return sum(range(n))

    def serve(listening):
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(str(work(int(connection.recv(100)))).encode())

    listening = socket.create_server(("127.0.0.1", 0))
    workers = []
    for _ in range(3):
        worker = os.fork()
        if not worker:
            serve(listening)
        workers.append(worker)
    for n in range(60):
        with socket.create_connection(listening.getsockname()) as connection:
            connection.sendall(str(n).encode())
            assert int(connection.recv(100)) == sum(range(n))
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
        assert os.waitpid(worker, 0)[1] == signal.SIGTERM
"""


@pytest.mark.parametrize("entry", [ProbePlan(Mode.SAMPLE, reservoir=1000), ProbePlan.sums()], ids=["timed", "sums"])
def test_workers_that_a_signal_ends_have_recorded_all_that_they_answered(tmp_path: Path, entry: ProbePlan) -> None:
    python = python_programs.interpreter()
    assert python is not None
    own = python_programs.environment(tmp_path / "environment", python)
    program = python_programs.program(tmp_path, own, {"main.py": textwrap.dedent(PREFORK)}, {"main.py::work": ["number n"]})
    outcome = program.run(mode=entry)
    assert outcome.status == 0, outcome.errors
    workers = [record for record in outcome.recordings if record.totals.calls.sum()]
    assert sum(float(record.totals.calls.sum()) for record in workers) == 60
    assert sum(float(record.totals.unfinished.sum()) for record in workers) == 0
    assert all(record.whole and not record.complete for record in workers)
    if entry.mode is Mode.SAMPLE:
        values = sorted(value for record in workers for (value,) in program.values(record, "work"))
        assert values == list(range(60))
