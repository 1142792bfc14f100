"""Events of PAPI in calls of Python functions: those of a library everywhere, the kernel's and hardware's where they can be had."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import python_programs
from perfdiff.collect.hosts import machine
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording
from test_papi import counted

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("papi_avail"), reason="needs PAPI: apt-get install libpapi-dev libsde1 papi-tools"),
]

COUNTED = ProbePlan(Mode.SAMPLE, detail=True, reservoir=1000)
PROGRAM = """
import ctypes, threading

sde = ctypes.CDLL("libsde.so.1", mode=ctypes.RTLD_GLOBAL)
sde.papi_sde_init.restype = ctypes.c_void_p
total = ctypes.c_longlong()
sde.papi_sde_register_counter(ctypes.c_void_p(sde.papi_sde_init(b"program")), b"TOTAL", 0, 0, ctypes.byref(total))

def work(n):
    for _ in range(n):
        total.value += 3

def touch(pages):
    block = bytearray(4096 * pages)
    work(5)
    return block

def rounds(sizes):
    for n in sizes:
        work(n)

rounds(range(0, 500, 10))
for pages in (1000, 3000):
    touch(pages)
thread = threading.Thread(target=rounds, args=([700],))
thread.start()
thread.join()
"""
EVENT, FAULTS, INSTRUCTIONS = "sde:::program::TOTAL", "perf::PAGE-FAULTS", "PAPI_TOT_INS"
WORK, TOUCH, ROUNDS = 1, 2, 3  # their probes


@pytest.fixture(params=python_programs.VERSIONS)
def record(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """Return what the program recorded, under each version of the interpreter in turn."""
    if not python_programs.interpreter(request.param):
        pytest.skip(f"no Python {request.param}")
    monkeypatch.setenv("PERFDIFF_EVENTS", f"{EVENT},{FAULTS},{INSTRUCTIONS}")
    python = python_programs.environment(tmp_path / "environment", python_programs.interpreter(request.param))
    functions = {"main.py::work": ["number n"], "main.py::touch": ["number pages"], "main.py::rounds": []}
    outcome = python_programs.program(tmp_path, python, {"main.py": PROGRAM}, functions).run(mode=COUNTED)
    assert (outcome.status, outcome.errors) == (0, "")
    return outcome.only


def test_events_of_a_library_are_exact_in_each_call_and_in_its_callers(record: Recording) -> None:
    sizes = record.samples[WORK].cells[:, 0].view(np.float64)
    assert counted(record, EVENT, WORK) == (3 * sizes).tolist()
    assert sizes.tolist() == [*range(0, 500, 10), 5, 5, 700]
    assert counted(record, EVENT, ROUNDS) == [3 * sum(range(0, 500, 10)), 3 * 700]


def test_events_of_the_kernel_are_those_of_the_thread(record: Recording) -> None:
    own = counted(record, "page_faults", TOUCH)  # told by the kernel, without PAPI
    assert [round(value / 1000) for value in own] == [1, 3]
    if FAULTS not in record.samples[TOUCH].counters:
        pytest.skip("PAPI counts nothing of the kernel's here")
    assert counted(record, FAULTS, TOUCH) == pytest.approx(own, abs=2)


def test_instructions_of_a_call_grow_by_those_of_a_round(record: Recording) -> None:
    if machine.pmu() is not Pmu.PRESENT:
        assert INSTRUCTIONS not in record.samples[WORK].counters
        return
    slopes = np.diff(counted(record, INSTRUCTIONS, WORK)[10:50]) / 10
    assert 100 < np.median(slopes) < 2000  # of a round: some bytecodes, of some dozens of instructions each
    assert np.abs(slopes / np.median(slopes) - 1).max() < 0.2
