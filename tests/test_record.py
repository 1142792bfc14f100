"""`perfdiff record`: a small server in real use, on hosts by other names, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import programs
import runtimes
from perfdiff import cli
from perfdiff.collect.choosing.rates import Rate
from perfdiff.collect.runs.pacing import SLOWEST, leaves, paced
from perfdiff.languages.protocol import ProbeCosts
from perfdiff.records import parts, plan, recording
from perfdiff.records.parts import Numbers, Part
from perfdiff.records.plan import Mode, ProbePlan

pytestmark = pytest.mark.integration

SECRETS = ("argument-hunter2", "variable-hunter3", "input-hunter4", "path-hunter5", "message-hunter6", "source-hunter7", "printed-hunter8")
SERVER = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;
static const char *hidden = "source-hunter7";

static void stop(int number)
{
    stopped = number;
}

__attribute__((noinline)) uint64_t fold(const char *text, size_t length)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < length; i++)
        STEP;
    return sum;
}

__attribute__((noinline)) uint64_t serve(const char *request, size_t length)
{
    return fold(request, length) + strlen(hidden);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* server SECONDS [crash | fork | wait] [WORD]: answers requests of random length. */
int main(int argc, char **argv)
{
    double end = now() + atof(argv[1]);
    unsigned seed = (unsigned)getpid();
    uint64_t sum = 0;
    char line[8192], input[64] = "";

    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    memset(line, 'x', sizeof(line));
    if (argc > 2 && !strcmp(argv[2], "read") && !fgets(input, sizeof(input), stdin))
        return 9;
    if (argc > 2 && !strcmp(argv[2], "fork"))
        for (int i = 0; i < 3; i++)
            if (!fork())
                break;
    if (argc > 2 && !strcmp(argv[2], "wait"))
        puts("ready"), fflush(stdout);
    while (now() < end && !stopped) {
        for (int i = 0; i < 50; i++) {
            seed = seed * 1103515245u + 12345u;
            sum += serve(line, 500 + (seed >> 8) % 6000);
        }
        usleep(200);
    }
    if (argc > 2 && !strcmp(argv[2], "crash"))
        abort();
    while (wait(NULL) > 0)
        ;
    printf("printed-hunter8 %s%d\n", input, (int)(sum & 1));
    return stopped ? 5 : 0;
}
"""
STEPS = {"v1": "sum = sum * 31 + (unsigned char)text[i]", "v2": "sum = (sum * 31 + (unsigned char)text[i]) % 1000003"}
MAKEFILE = "server: server.c\n\tcc -O2 -g -o $@ $<\n"
HOSTS = ("one", "two", "three")


@dataclass(frozen=True)
class Workshop:
    """A repository with two revisions of the server, and a cache that keeps their builds."""

    repository: Path
    cache: Path

    def arguments(self, to: Path, revision: str, *command: str, options: Sequence[str] = ()) -> list[str]:
        given = ["--to", str(to), "--repo", str(self.repository), "--cache", str(self.cache), "--build", "make", "--every", "1"]
        return [sys.executable, "-m", "perfdiff", "record", revision, *given, *options, "--", *command]

    def record(
        self,
        to: Path,
        revision: str,
        *command: str,
        options: Sequence[str] = (),
        text: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(to, revision, *command, options=options),
            input=text,
            capture_output=True,
            text=True,
            env=os.environ | (variables or {}),
            check=False,
            timeout=120,
        )


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    repository = tmp_path_factory.mktemp("path-hunter5") / "repository"
    repository.mkdir()
    programs.git(repository, "init", "-q")
    for name, step in STEPS.items():
        (repository / "server.c").write_text(SERVER.replace("STEP", step))
        (repository / "Makefile").write_text(MAKEFILE)
        programs.git(repository, "add", "-A")
        programs.git(repository, "commit", "-q", "-m", f"message-hunter6 {name}")
        programs.git(repository, "tag", name)
    return Workshop(repository, runtimes.lent_to(tmp_path_factory.mktemp("cache") / "stations" / "1").parent.parent)


def recorded(arguments: Sequence[str]) -> int:
    """Record in this process and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments[3:])
    return int(left.value.code or 0)


def numbers(folder: Path) -> list[tuple[Part, Numbers]]:
    loaded = [(place, parts.load(place)) for place in parts.below(folder)]
    return [(part, parts.numbers(place, part)) for place, part in sorted(loaded, key=lambda pair: pair[1].number)]


def calls(folder: Path, function: str) -> float:
    return sum(
        float(found.sums.calls[found.sums.function == each.id].sum())
        for part, found in numbers(folder)
        for each in part.functions
        if each.name == function
    )


def test_a_fleet_of_three_hosts_finds_the_function_that_became_slower(workshop: Workshop, tmp_path: Path) -> None:
    for host in HOSTS:
        for revision in STEPS:
            for _ in range(1 if host == "three" else 2):
                assert recorded(workshop.arguments(tmp_path / host, revision, "./server", "1", options=["--host", host, "-q"])) == 0
    compared = [sys.executable, "-m", "perfdiff", "compare", "--format", "json", "-q", "--repo", str(workshop.repository)]
    done = subprocess.run([*compared, *(str(tmp_path / host) for host in HOSTS)], capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 1, done.stdout
    assert (report["base"]["rev"], report["head"]["rev"]) == ("v1", "v2")
    assert report["functions"][0]["name"] == "fold"
    assert report["functions"][0]["verdict"] == "regression"


def test_no_text_leaves_the_host(workshop: Workshop, tmp_path: Path) -> None:
    to = tmp_path / "parts"
    done = workshop.record(
        to, "v1", "./server", "1.2", "read", "argument-hunter2", text="input-hunter4\n", variables={"SECRET": "variable-hunter3"}
    )
    assert "printed-hunter8 input-hunter4" in done.stdout
    assert calls(to, "serve") > 0
    told = [str(path.relative_to(to)).encode() + path.read_bytes() for path in to.rglob("*") if path.is_file()]
    words = [*SECRETS, str(Path.home()), str(workshop.repository), str(workshop.cache), str(to)]
    assert [(word, number) for word in words for number, content in enumerate(told) if word.encode() in content] == []
    assert all(b"hunter" not in content for content in told)


def test_parts_add_up_to_what_the_program_did(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.record(tmp_path, "v1", "./server", "3.3", options=["--functions", "fold", "--functions", "serve"])
    found = numbers(tmp_path)
    assert done.returncode == 0
    assert [part.number for part, _ in found] == list(range(len(found)))
    assert len(found) > 2
    assert len({part.session for part, _ in found}) == 1
    assert calls(tmp_path, "fold") == pytest.approx(calls(tmp_path, "serve"), rel=0.05)  # the last calls may pass unseen
    for part, each in found[1:]:
        fold = next(function.id for function in part.functions if function.name == "fold")
        rows = each.samples[fold]
        own = float(each.sums.self_ns[each.sums.function == fold][0] / each.sums.calls[each.sums.function == fold][0])
        assert len(rows) > 0
        assert float(np.average(rows.metrics["self_ns"], weights=rows.weight)) == pytest.approx(own, rel=0.5)
        assert rows.weight.sum() == pytest.approx(float(each.sums.calls[each.sums.function == fold][0]))
    numbered = [set(each.samples[fold].call.tolist()) for _, each in found]
    assert not numbered[1] & numbered[2], "each part has calls of its own time"


def test_forked_workers_are_recorded(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.record(tmp_path, "v1", "./server", "1.5", "fork")
    assert done.returncode == 0
    assert max(part.processes for part, _ in numbers(tmp_path)) == 4


def test_a_crash_keeps_what_was_recorded_and_is_the_exit_code(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.record(tmp_path, "v1", "./server", "1.2", "crash")
    assert done.returncode == 128 + signal.SIGABRT
    assert calls(tmp_path, "fold") > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on_and_keep_what_was_recorded(workshop: Workshop, tmp_path: Path, number: signal.Signals) -> None:
    command = workshop.arguments(tmp_path, "v1", "./server", "60", "wait")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(60) == 5
    assert "printed-hunter8" in rest
    assert [part.number for part, _ in numbers(tmp_path)] == [0]


def test_nothing_runs_where_no_function_matches(workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recorded(workshop.arguments(tmp_path, "v1", "./server", "1", options=["--functions", "nothing_*"])) == 3
    assert "nothing-to-record" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "slug"),
    [(["--size", "many"], "bad-option"), (["--label", "x"], "bad-option"), (["--host", "a/b"], "bad-option"), (["--survey"], "no-survey")],
)
def test_wrong_options_are_told_before_anything_is_built(
    workshop: Workshop, tmp_path: Path, options: Sequence[str], slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recorded(workshop.arguments(tmp_path, "v1", "./server", "1", options=options)) == 2
    assert slug in capsys.readouterr().err


def test_a_plan_that_turns_has_other_periods(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    entries = {1: ProbePlan(Mode.SAMPLE, 64, reservoir=10, features=2), 2: ProbePlan(Mode.SAMPLE, 256, reservoir=10, passing=True)}
    plan.write(path, entries)
    before = path.read_bytes()
    plan.turn(path, {1: (4, False), 2: (16, True)})
    plan.turn(path, {})
    plan.write(
        tmp_path / "other",
        {1: ProbePlan(Mode.SAMPLE, 4, reservoir=10, features=2), 2: ProbePlan(Mode.SAMPLE, 16, reservoir=10, passing=True)},
    )
    after, other = path.read_bytes(), (tmp_path / "other").read_bytes()
    assert after[16:] == other[16:]
    assert (before[12:16], after[12:16]) == (b"\0\0\0\0", b"\2\0\0\0")


def test_probes_keep_to_their_budget_and_the_cheap_are_served_first() -> None:
    costs = dict.fromkeys((1, 2, 3), ProbeCosts(timed_ns=100.0, counted_ns=10.0, passed_ns=1.0))
    found = paced({1: 1e3, 2: 1e5, 3: 1e6}, 1.0, costs, {2, 3}, 0.02)
    assert found.rates[1] == Rate(1)
    assert found.rates[2] == Rate(1)
    assert found.rates[3].passing
    assert found.overhead <= 0.02
    hot = paced({3: 1e9}, 1.0, costs, {3}, 0.02)
    assert hot.rates[3] == SLOWEST
    assert hot.overhead > 0.02


def test_only_functions_that_call_no_other_probed_one_let_calls_pass() -> None:
    assert leaves([1, 2, 3], {1: {2, 4}, 4: {3}, 3: {3}}) == {2}


def test_two_looks_at_a_recording_add_up_to_it(workshop: Workshop, tmp_path: Path) -> None:
    """The recordings of two processes, one of them read before it began to differ: nothing is gained twice."""
    out = tmp_path / "out"
    out.mkdir()
    library = runtimes.library()
    source = tmp_path / "p.c"
    source.write_text(
        '#include "perfdiff_probe.h"\n#include <stdio.h>\n'
        "static void f(void) { PD_FRAME(1); if (PD_ENTER(1)) pd_start(&pd_frame_); }\n"
        'int main(void) { for (int i = 0; i < 1000; i++) f(); puts("half"); fflush(stdout); getchar();'
        "for (int i = 0; i < 500; i++) f(); }\n"
    )
    subprocess.run(
        [
            "gcc",
            "-O1",
            "-I",
            str(library),
            "-o",
            str(tmp_path / "p"),
            str(source),
            "-L",
            str(library),
            "-lperfdiff",
            f"-Wl,-rpath,{library}",
        ],
        check=True,
    )
    plan.write(tmp_path / "plan", {1: ProbePlan(Mode.SAMPLE, reservoir=200)})
    environment = os.environ | {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(tmp_path / "plan")}
    with subprocess.Popen([str(tmp_path / "p")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        [path] = out.glob("*.pdrec")
        first, standing = recording.read_since(path, None)
        plan.turn(tmp_path / "plan", {})
        process.stdin.write(b"\n")
        process.stdin.close()
        process.wait(30)
    second, standing = recording.read_since(path, standing)
    whole = recording.read(path)
    assert (first.totals.calls.tolist(), second.totals.calls.tolist(), whole.totals.calls.tolist()) == ([1000.0], [500.0], [1500.0])
    assert standing.calls == 1500
    assert len(second.samples[1]) == 200
    assert second.samples[1].call.min() > 1000
    assert second.samples[1].weight.sum() == pytest.approx(500.0)
    assert float((first.totals.wall_ns + second.totals.wall_ns)[0]) == pytest.approx(float(whole.totals.wall_ns[0]), rel=0.01)
