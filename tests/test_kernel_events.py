"""Events that the kernel counts of a thread, which need neither a PMU nor libpapi: tried, chosen, and read call by call."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import runtimes
from perfdiff.collect.hosts import counters, perf_events
from perfdiff.collect.hosts.counters import State
from perfdiff.config import CountersConfig
from perfdiff.records import plan, recording
from perfdiff.records.metrics import KERNEL_EVENTS, metric_of
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording

FAULTS, CLOCK, SWITCHES = "perf::PAGE-FAULTS", "perf::TASK-CLOCK", "perf::CONTEXT-SWITCHES"
NEAR = 3  # faults of a thread's first reading, and of the stack
SAMPLED = ProbePlan(Mode.SAMPLE, 1, True, 100_000, 1, 0)  # so many that counters are read in all calls
PROBES = """
#pragma GCC system_header
#include "perfdiff_probe.h"
#define PD_1 PD_FRAME(1); int pd_probe_ __attribute__((unused)) = \
    pd_enter(&pd_frame_) ? (pd_signed(&pd_frame_, 0, (pd_signed_t)(n)), pd_start(&pd_frame_)) : 0;
"""
WORK = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void touch(int n) {PD_1
    char *pages = mmap(0, 4096UL * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < n; i++) pages[4096 * i] = 1;
    munmap(pages, 4096UL * n);
    if (n == 7) usleep(1000);
}
"""


@pytest.fixture
def no_papi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take libpapi away."""
    monkeypatch.setattr(counters, "_ask", lambda *_: ([], ""))


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return how to forbid the kernel's part of events, or all of them."""

    def forbid(user_too: bool) -> None:
        opened = perf_events.opened

        def refusing(kind: int, event: int, *, user_only: bool) -> int:
            if user_too or not user_only:
                raise PermissionError
            return opened(kind, event, user_only=user_only)

        monkeypatch.setattr(perf_events, "opened", refusing)

    return forbid


def is_counted(event: str) -> bool:
    return perf_events.count(event, lambda: None).value is not None


needs_faults = pytest.mark.skipif(not is_counted(FAULTS), reason="this kernel permits no perf_event_open")


@needs_faults
@pytest.mark.usefixtures("no_papi")
def test_events_of_the_kernel_are_counted_without_libpapi() -> None:
    asked = counters.attempt([FAULTS, "PAPI_TOT_INS", CLOCK])
    assert [trial.state for trial in asked] == [State.COUNTED, State.ABSENT, State.COUNTED]
    assert 2048 <= (asked[0].value or 0) < 2200  # 8 MiB of new memory
    assert (asked[2].value or 0) > 1e6
    chosen = counters.choose(CountersConfig(events=(FAULTS, "sde:::a::B")))
    assert chosen.steering() == {"PERFDIFF_KERNEL_EVENTS": f"{FAULTS}=2"}


@needs_faults
@pytest.mark.usefixtures("no_papi")
def test_what_happens_inside_the_kernel_is_absent_where_its_part_may_not_be_counted(forbidden: Callable[[bool], None]) -> None:
    forbidden(False)
    faults, switches = counters.attempt([FAULTS, SWITCHES])
    assert faults.state is State.COUNTED
    assert (switches.state, switches.says) == (State.ABSENT, "perf_event_open is not permitted")
    assert "perf_event_paranoid=1" in switches.remedy
    forbidden(True)
    (faults,) = counters.attempt([FAULTS])
    assert faults.state is State.ABSENT


def test_a_kernel_without_an_event_is_no_matter_of_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(kind: int, event: int, *, user_only: bool) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(perf_events, "opened", unknown)
    (trial,) = counters.attempt([FAULTS])
    assert (trial.state, trial.says) == (State.ABSENT, "this kernel does not count it")


def test_every_name_has_a_unit_and_says_what_it_is() -> None:
    assert {metric_of(name).unit for name in KERNEL_EVENTS} == {"ns", "count"}
    assert metric_of("perf::CS").what == metric_of(SWITCHES).what == "context switches by the kernel's count"
    assert "hardware" in metric_of("perf::INSTRUCTIONS").what


@pytest.fixture(scope="module")
def library() -> Path:
    return runtimes.library()


Run = Callable[..., list[Recording]]


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Run:
    """Return how to run a `main` with events, and read what it recorded."""

    def recorded(main: str, *events: str) -> list[Recording]:
        (tmp_path / "probes.h").write_text(PROBES)
        (tmp_path / "program.c").write_text(WORK + main)
        sources = ["-I", library, "-include", tmp_path / "probes.h", tmp_path / "program.c"]
        program = tmp_path / "program"
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", *sources, "-o", program, "-L", library, "-lperfdiff"], check=True)
        folder = tmp_path / "out"
        folder.mkdir()
        plan.write(folder / "plan", {1: SAMPLED})
        steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), "PERFDIFF_SEED": "7"}
        steering |= counters.ChosenEvents(events).steering() | {"LD_LIBRARY_PATH": str(library)}
        ended = subprocess.run([program], env=os.environ | steering, capture_output=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, b"")
        return [recording.read(path) for path in sorted(folder.glob("*.pdrec"))]

    return recorded


def counted(record: Recording, event: str) -> list[float]:
    return record.samples[1].counters[event].tolist()


@needs_faults
@pytest.mark.integration
def test_calls_count_what_their_own_thread_does(run: Run) -> None:
    main = """
    static void *thread(void *data) { for (int i = 0; i < 3; i++) touch(300); return data; }
    int main(void) {
        pthread_t other;
        pthread_create(&other, 0, thread, 0); for (int i = 0; i < 3; i++) touch(100); pthread_join(other, 0);
        return 0;
    }
    """
    [record] = run(main, FAULTS, CLOCK)
    assert counted(record, FAULTS) == pytest.approx(counted(record, "page_faults"), abs=NEAR)
    assert sorted(round(value / 100) for value in counted(record, FAULTS)) == [1, 1, 1, 3, 3, 3]
    assert counted(record, CLOCK) == pytest.approx(counted(record, "cpu_ns"), rel=0.3, abs=50_000)


@pytest.mark.integration
@pytest.mark.skipif(not is_counted(SWITCHES), reason="the kernel's part may not be counted here")
def test_a_call_that_sleeps_is_switched_out(run: Run) -> None:
    [record] = run("int main(void) { for (int i = 0; i < 20; i++) { touch(1); touch(7); } return 0; }", SWITCHES)
    sizes, switches = record.samples[1].cells[:, 0], record.samples[1].counters[SWITCHES]
    assert (switches[sizes == 7] >= 1).all()
    assert (switches[sizes == 1] == 0).mean() > 0.5


@needs_faults
@pytest.mark.integration
def test_the_child_of_a_fork_counts_for_itself(run: Run) -> None:
    main = """
    int main(void) {
        touch(200);
        if (fork() == 0) { touch(50); touch(60); _exit(0); }
        touch(25);
        wait(0);
        return 0;
    }
    """
    records = run(main, FAULTS)
    assert sorted(len(counted(record, FAULTS)) for record in records) == [2, 2]
    for record in records:
        assert counted(record, FAULTS) == pytest.approx(counted(record, "page_faults"), abs=NEAR)


@needs_faults
@pytest.mark.integration
@pytest.mark.parametrize("closing", ["for (int i = 3; i < 256; i++) close(i);", "closefrom(3);", "close_range(3, ~0U, 0);"])
def test_a_target_that_closes_all_it_has_is_counted_no_more(run: Run, closing: str) -> None:
    main = f"""
    #include <string.h>
    int main(void) {{
        char text[9] = "";
        touch(100);
        {closing}
        int own = memfd_create("own", 0);
        if (write(own, "12345678", 8) != 8 || lseek(own, 0, SEEK_SET)) return 1;
        touch(50);
        return read(own, text, 8) != 8 || strcmp(text, "12345678");
    }}
    """
    [record] = run(main, FAULTS)
    first, *others = counted(record, FAULTS)
    assert first == pytest.approx(100, abs=NEAR)
    assert np.isnan(others).all()


@needs_faults
@pytest.mark.integration
def test_threads_that_end_give_their_descriptors_back(run: Run) -> None:
    main = """
    #include <dirent.h>
    static int open_now(void) {
        int many = 0;
        DIR *folder = opendir("/proc/self/fd");
        while (readdir(folder)) many++;
        closedir(folder);
        return many;
    }
    static void *thread(void *data) { touch(3); return data; }
    int main(void) {
        pthread_t other;
        touch(1);
        int before = open_now();
        for (int i = 0; i < 500; i++) { pthread_create(&other, 0, thread, 0); pthread_join(other, 0); }
        return open_now() > before + 4;
    }
    """
    [record] = run(main, FAULTS, CLOCK)
    assert len(counted(record, FAULTS)) == 501
    assert not np.isnan(counted(record, FAULTS)).any()
