"""What this machine counts: its caches, its events by trying them, and what is said where one cannot be counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfdiff.cli.exits import ExitCode
from perfdiff.collect.counts.attached import attached
from perfdiff.collect.hosts import counters, machine
from perfdiff.collect.hosts.counters import State
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.config import CacheSize, CountersConfig
from perfdiff.errors import MeasurementError, UsageError

ROOT = Path(__file__).parent.parent


def cache(place: Path, level: int, kind: str, size: str, ways: int) -> None:
    place.mkdir(parents=True)
    told = {"level": level, "type": kind, "size": size, "ways_of_associativity": ways, "coherency_line_size": 128}
    for name, value in told.items():
        (place / name).write_text(f"{value}\n")


def test_caches_are_those_that_the_kernel_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache(tmp_path / "cache" / "index0", 1, "Data", "48K", 12)
    cache(tmp_path / "cache" / "index1", 1, "Instruction", "32K", 8)
    cache(tmp_path / "cache" / "index2", 2, "Unified", "2048K", 16)
    cache(tmp_path / "cache" / "index3", 3, "Unified", "36864K", 18)
    (tmp_path / "online").write_text("0-1,4\n")
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "cache")
    monkeypatch.setattr(machine, "_NODES", tmp_path / "online")
    found = machine.memory(CountersConfig())
    assert found.setting() == "l1d=49152/12,l2=2097152/16,llc=37748736/18,line=64,nodes=3"
    chosen = machine.memory(CountersConfig(l1d=CacheSize(1024, 1), nodes=1))
    assert chosen.setting() == "l1d=1024/1,l2=2097152/16,llc=37748736/18,line=64,nodes=1"


def test_caches_that_the_kernel_does_not_tell_are_usual_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "nowhere")
    monkeypatch.setattr(machine, "_NODES", tmp_path / "nowhere")
    assert machine.memory(CountersConfig()).setting() == "l1d=32768/8,l2=1048576/16,llc=33554432/16,line=64,nodes=1"


# A libpapi of our own: it knows some events, counts fewer, and dies or stays away on others.
LIBPAPI = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define VERSION 0x07000000
struct component { char name[128], short_name[64], description[128], versions[3][64], reason[1024]; int disabled, rest[300]; };
static struct component components[] = {{.name = "perf_event"}, {.name = "sde", .reason = "not today", .disabled = -4}, {.name = "rapl"}};
static const char *const names[] = {"PAPI_TOT_INS", "PAPI_L3_TCM", "PAPI_BR_MSP", "PAPI_CRASH", "PAPI_HANG", "PAPI_TOT_CYC"};
static int added[9], many;
int PAPI_get_opt(int option, void *value) { return VERSION; }
int PAPI_library_init(int version) { return version; }
int PAPI_multiplex_init(void) { return 0; }
int PAPI_num_components(void) { return 3; }
void *PAPI_get_component_info(int index) { return &components[index]; }
char *PAPI_strerror(int code) { return "no such luck"; }
int PAPI_event_name_to_code(const char *name, int *code)
{
    for (*code = 0; *code < 6; ++*code) if (!strcmp(name, names[*code])) return 0;
    return -7;
}
int PAPI_get_event_info(int code, char *info) { strcpy(info + 4 + 1024 + 64, "what it counts"); return 0; }
int PAPI_enum_event(int *code, int step) { *code = step == 1 ? 0 : *code + 1; return *code < 6 ? 0 : -7; }
int PAPI_enum_cmp_event(int *code, int step, int component) { return -7; }
int PAPI_event_code_to_name(int code, char *name) { strcpy(name, names[code]); return 0; }
int PAPI_create_eventset(int *set) { *set = many = 0; return 0; }
int PAPI_add_named_event(int set, const char *name)
{
    int code;
    if (PAPI_event_name_to_code(name, &code)) return -7;
    if (code == 3) raise(SIGSEGV);
    if (code == 4) pause();
    if (many == 2) return -8;
    added[many++] = code;
    return code == 2 ? -7 : 0;
}
int PAPI_start(int set) { return 0; }
int PAPI_stop(int set, long long *values) { values[0] = added[0] == 1 ? 0 : 1000; return 0; }
int PAPI_cleanup_eventset(int set) { return 0; }
int PAPI_destroy_eventset(int *set) { return 0; }
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the stand-in."""
    folder = tmp_path_factory.mktemp("papi")
    (folder / "papi.c").write_text(LIBPAPI)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", folder / "papi.c", "-o", folder / "libpapi.so.7.2"], check=True)
    return folder


@pytest.fixture
def other_papi(stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in before the real library, on a machine with a PMU."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stand_in))
    monkeypatch.setattr(machine, "pmu", lambda: Pmu.PRESENT)


@pytest.mark.integration
@pytest.mark.usefixtures("other_papi")
@pytest.mark.parametrize(
    ("event", "state", "says", "remedy"),
    [
        ("PAPI_TOT_INS", State.COUNTED, "what it counts", ""),
        ("PAPI_BR_MSP", State.ABSENT, "does not count it (no such luck)", "counters --all"),
        ("PAPI_TOT_INZ", State.UNKNOWN, "no event is named 'PAPI_TOT_INZ'", "did you mean PAPI_TOT_INS"),
        ("PAPI_CRASH", State.ABSENT, "was ended by SIGSEGV while it was tried", "leave it out"),
        ("rapl:::ENERGY", State.ABSENT, "counts the whole machine", "leave it out"),
        ("cuda:::X", State.UNKNOWN, "no component 'cuda'", "perfdiff counters"),
    ],
)
def test_each_event_is_counted_or_told_why_not(event: str, state: State, says: str, remedy: str) -> None:
    (trial,) = counters.attempt([event])
    assert (trial.event, trial.state) == (event, state)
    assert says in trial.says
    assert remedy in trial.remedy
    assert trial.value == (1000 if state is State.COUNTED else None)


@pytest.mark.integration
@pytest.mark.usefixtures("other_papi")
def test_library_that_dies_or_hangs_on_one_event_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_TIMEOUT_S", 2.0)
    trials = counters.attempt(["PAPI_TOT_INS", "PAPI_CRASH", "PAPI_HANG", "PAPI_TOT_CYC"])
    assert [trial.state for trial in trials] == [State.COUNTED, State.ABSENT, State.ABSENT, State.COUNTED]
    assert "did not answer" in trials[2].says


@pytest.mark.integration
@pytest.mark.usefixtures("other_papi")
def test_event_that_stays_zero_over_a_loop_full_of_it_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_IN_THE_LOOP", {"PAPI_L3_TCM"})
    (trial,) = counters.attempt(["PAPI_L3_TCM"])
    assert (trial.state, trial.value) == (State.ABSENT, 0)
    assert "stays 0" in trial.says


@pytest.mark.integration
@pytest.mark.usefixtures("other_papi")
def test_events_beyond_what_fits_at_once_are_told_to_be_estimates() -> None:
    chosen = counters.choose(CountersConfig(events=("PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_L3_TCM")))
    assert chosen.events == ("PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_L3_TCM")
    (note,) = chosen.notes
    assert note.slug == "events-multiplexed"
    assert "PAPI_L3_TCM cannot be counted at the same time as PAPI_TOT_INS, PAPI_TOT_CYC" in note.text


@pytest.mark.integration
@pytest.mark.usefixtures("other_papi")
def test_usual_events_are_those_that_fit_at_once() -> None:
    assert counters.choose(CountersConfig()).events == ("PAPI_TOT_INS", "PAPI_TOT_CYC")


@pytest.mark.integration
@pytest.mark.usefixtures("other_papi")
def test_unknown_name_ends_a_comparison_and_absent_event_is_noted() -> None:
    with pytest.raises(UsageError, match=r"no event is named 'PAPI_TOT_INZ'; did you mean PAPI_TOT_INS") as raised:
        counters.choose(CountersConfig(events=("PAPI_TOT_INS", "PAPI_TOT_INZ")))
    assert raised.value.slug == "event-unknown"
    chosen = counters.choose(CountersConfig(events=("PAPI_BR_MSP", "PAPI_TOT_INS", "sde:::a::B")))
    assert chosen.events == ("PAPI_TOT_INS",)
    assert [note.slug for note in chosen.notes] == ["event-absent", "event-absent"]


def test_without_libpapi_nothing_is_counted_and_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_ask", lambda *_: ([], ""))
    (trial,) = counters.attempt(["PAPI_TOT_INS"])
    assert (trial.state, trial.says) == (State.ABSENT, "libpapi is not installed")
    assert "apt-get install libpapi-dev" in trial.remedy
    assert counters.library().version is None


@pytest.mark.parametrize(("pmu", "remedy"), [(Pmu.ABSENT, "software PMU"), (Pmu.FORBIDDEN, "perf_event_paranoid")])
def test_machine_without_counters_counts_none_by_default_and_says_why(monkeypatch: pytest.MonkeyPatch, pmu: Pmu, remedy: str) -> None:
    monkeypatch.setattr(machine, "pmu", lambda: pmu)
    assert counters.choose(CountersConfig()) == counters.ChosenEvents()
    assert remedy in counters.hardware_reason(None)[1]


@pytest.mark.skipif(not shutil.which("papi_avail"), reason="needs PAPI: apt-get install libpapi-dev libsde1 papi-tools")
@pytest.mark.integration
def test_real_library_counts_what_this_machine_has() -> None:
    events = ["PAPI_TOT_INS", "perf::PAGE-FAULTS", "perf::MINOR-FAULTS", "sde:::program::X"]
    trials = {trial.event: trial for trial in counters.attempt(events)}
    assert trials["sde:::program::X"].state is State.OPEN
    faults = trials["perf::PAGE-FAULTS"]
    if faults.state is State.COUNTED:
        assert 2048 <= (faults.value or 0) < 2200  # 8 MiB of new memory
        assert 2048 <= (trials["perf::MINOR-FAULTS"].value or 0) < 2200  # and again
    instructions = trials["PAPI_TOT_INS"]
    if machine.pmu() is Pmu.PRESENT:
        assert instructions.state is State.COUNTED
        assert (instructions.value or 0) > 1e6
    else:
        assert instructions.state is State.ABSENT
        assert instructions.remedy


@pytest.mark.integration
@pytest.mark.skipif(machine.pmu() is not Pmu.PRESENT, reason="needs a PMU")
def test_process_is_counted_from_outside() -> None:
    busy = [sys.executable, "-c", "import sys; sys.stdin.read(1); sum(range(10**6))"]
    with subprocess.Popen(busy, stdin=subprocess.PIPE) as process, attached(process.pid, ["PAPI_TOT_INS"]) as counts:
        process.communicate(b"x", timeout=60)
        assert counts()["PAPI_TOT_INS"] > 1e6


@pytest.mark.skipif(machine.pmu() is Pmu.PRESENT, reason="this machine has a PMU")
def test_process_that_cannot_be_counted_from_outside_is_told_with_the_reason() -> None:
    with pytest.raises(MeasurementError, match="cannot be counted from outside") as raised, attached(os.getpid(), ["PAPI_TOT_INS"]):
        pass
    assert raised.value.slug == "attach-unavailable"
    assert counters.hardware_reason(None)[1] in str(raised.value)


def run_counters(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfdiff", "counters", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.integration
def test_table_and_exit_codes(stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stand_in))
    good = run_counters("PAPI_TOT_INS", folder=tmp_path)
    assert (good.returncode, good.stderr) == (ExitCode.FINE, "")
    assert "PAPI_TOT_INS  counted            1,000  what it counts" in good.stdout
    missing = run_counters("PAPI_TOT_INS", "sde:::a::B", folder=tmp_path)
    assert missing.returncode == ExitCode.NOT_MEASURED
    unknown = run_counters("PAPI_TOT_INZ", folder=tmp_path)
    assert unknown.returncode == ExitCode.USAGE
    assert "[event-unknown]" in unknown.stderr
    (tmp_path / "perfdiff.toml").write_text('[counters]\nevents = ["PAPI_BR_MSP"]\n')
    configured = run_counters("--format", "json", folder=tmp_path)
    assert configured.returncode == ExitCode.NOT_MEASURED
    answer = json.loads(configured.stdout)
    assert answer["schema"] == "perfdiff.counters/1"
    assert [(one["event"], one["state"]) for one in answer["events"]] == [("PAPI_BR_MSP", "absent")]
