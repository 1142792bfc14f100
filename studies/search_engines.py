"""Print what AFL++, libFuzzer and Hypothesis find in the same time as a search: of the inputs that each keeps, the one head is slowest on.

They run as they come, on head alone, with the samples as seeds, which Hypothesis cannot take: it has their tokens. What each keeps is run
in plain builds of both sides. Needs Debian's afl++ and clang (`scripts/packages afl-fuzz:afl++ clang`).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfdiff.fuzzing.findings import SearchFindings
from perfdiff.report import slow_inputs
from programs import SEARCH, Case, cases, environment, git
from studies.search import SIZE, searched
from studies.support import figures

_SUPPORT = Path(__file__).parent / "support"
_LIMIT_S = 3  # of CPU time, of a run in a plain build
_SLOWEST, _AGAIN = 10, 9  # inputs that are run again on both sides, and how often: the least time counts
_FLAGS = {"AFL_SKIP_CPUFREQ": "1", "AFL_NO_UI": "1", "AFL_NO_AFFINITY": "1", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1"}


@dataclass(frozen=True, slots=True)
class _Subject:
    """A case with a tree for each side, what makes a build, what runs it, and an empty folder."""

    case: Case
    trees: dict[str, Path]
    build: str
    command: list[str]
    room: Path

    def built(self, name: str, *settings: str) -> Path:
        """Return a copy of head, built with some settings of make."""
        tree = self.room / name
        subprocess.run(["cp", "-r", self.trees["head"], tree], check=True)
        subprocess.run(["make", "-s", "-B", "-C", tree, *settings], check=True, capture_output=True, env=environment() | _FLAGS)
        return tree


@dataclass(frozen=True, slots=True)
class _Kept:
    """The inputs that an engine kept of those that it `tried`."""

    inputs: list[Path]
    tried: int


def by_afl(subject: _Subject, seconds: float) -> _Kept:
    """Run AFL++ for some seconds."""
    tree, out = subject.built("afl", "CC=afl-clang-fast", "CXX=afl-clang-fast++"), subject.room / "afl-out"
    words = ["afl-fuzz", "-i", "samples", "-o", f"{out}", "-V", f"{seconds:.0f}", "-G", f"{SIZE}", "--"]
    program = [*subject.command[:-1], "@@"]
    subprocess.run([*words, *program], cwd=tree, check=True, capture_output=True, env=environment() | _FLAGS)
    stats = (out / "default" / "fuzzer_stats").read_text()
    inputs = [path for folder in ("queue", "hangs") for path in (out / "default" / folder).glob("id*")]
    return _Kept(inputs, int(re.search(r"execs_done *: (\d+)", stats)[1]))  # type: ignore[index]


def by_libfuzzer(subject: _Subject, seconds: float) -> _Kept:
    """Run libFuzzer for some seconds."""
    driver = f"-fsanitize=fuzzer -fno-strict-return -Dmain=searched_main -D_GNU_SOURCE -w {_SUPPORT / 'fuzzer_main.c'}"
    tree, corpus = subject.built("fuzzer", f"CC=clang {driver}", f"CXX=clang++ {driver}"), subject.room / "corpus"
    corpus.mkdir()
    options = [f"-max_len={SIZE}", f"-max_total_time={seconds:.0f}", "-close_fd_mask=1", "-print_final_stats=1"]
    words = [subject.command[0], *options, f"-artifact_prefix={corpus}/", f"{corpus}", "samples"]
    ran = subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True, errors="replace", env=environment())
    return _Kept(list(corpus.iterdir()), int(re.search(r"number_of_executed_units: (\d+)", ran.stderr)[1]))  # type: ignore[index]


def by_hypothesis(subject: _Subject, seconds: float) -> _Kept:
    """Run Hypothesis for some seconds."""
    corpus = subject.room / "hypothesis"
    corpus.mkdir()
    given = [f"{subject.trees['head']}", subject.command[1], f"{subject.trees['head'] / 'samples'}", f"{seconds}", f"{corpus}"]
    ran = subprocess.run([sys.executable, "-m", "studies.support.by_hypothesis", *given], check=True, capture_output=True, text=True)
    return _Kept(list(corpus.iterdir()), int(ran.stdout.split()[-1]))


_ENGINES: dict[str, dict[str, Callable[[_Subject, float], _Kept]]] = {
    "c": {"AFL++": by_afl, "libFuzzer": by_libfuzzer},
    "c++": {"AFL++": by_afl, "libFuzzer": by_libfuzzer},
    "python": {"Hypothesis": by_hypothesis},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all that an engine is there for)")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="for each engine (default: %(default)s)")
    options = parser.parse_args()
    hidden = [case for case in cases(SEARCH) if case.expected["verdict"] == "slower" and case.expected["language"] in _ENGINES]
    chosen = [case for case in hidden if not options.only or case.name in options.only]
    columns = ("program", "engine", "inputs tried", "kept", "bytes", "base", "head", "")
    with tempfile.TemporaryDirectory() as room, figures.printed("Engines, side by side", *columns) as table:
        for case in chosen:
            findings = searched(case, Path(room), options.seconds)
            table.add(case.name, "perfdiff", *_own(findings))
            print(f"{case.name}: {slow_inputs.answer(findings)}", file=sys.stderr, flush=True)
            subject = _subject(case, Path(room))
            for name, engine in _ENGINES[case.expected["language"]].items():
                row = _replayed(subject, engine(subject, options.seconds))
                table.add(case.name, name, *row)
                print(case.name, name, *row, file=sys.stderr, flush=True)
        table.remarks.append(
            f"{options.seconds:.0f} s each. Times are the least of {_AGAIN}; runs above a second are made once, and end at {_LIMIT_S} s."
        )


def _subject(case: Case, room: Path) -> _Subject:
    """Build both sides plainly, of the repository in which a search ran."""
    config = tomllib.loads((case.folder / "perfdiff.toml").read_text())
    trees = {side: room / f"{case.name}-{side}" for side in ("base", "head")}
    for side, tree in trees.items():
        git(room / case.name, "worktree", "add", "-q", "--detach", str(tree), side)
        if "build" in config:
            subprocess.run(["sh", "-c", config["build"]["command"]], cwd=tree, check=True, capture_output=True, env=environment())
    own = room / f"{case.name}-engines"
    own.mkdir()
    return _Subject(case, trees, config.get("build", {}).get("command", ""), shlex.split(config["workload"][0]["command"]), own)


def _own(findings: SearchFindings) -> tuple[str, ...]:
    """Return the cells of what the search found that is slowest in whole runs."""
    timed = [(shown, shown.run) for shown in findings.inputs if shown.run is not None and shown.run.ratio is not None]
    if not timed:
        return f"{findings.tried:,}", f"{len(findings.inputs)}", "", "", "", ""
    shown, run = max(timed, key=lambda pair: pair[1].ratio.value if pair[1].ratio else 0.0)
    assert run.ratio is not None
    largest = max((path.stat().st_size for path in shown.files.values()), default=0)
    times = (f"{side_ns / 1e6:.1f} ms" for side_ns in (run.base_ns, run.head_ns))
    return f"{findings.tried:,}", f"{len(findings.inputs)}", f"{largest:,}", *times, f"×{run.ratio.value:.3g}"


def _replayed(subject: _Subject, kept: _Kept) -> tuple[str, ...]:
    """Run what an engine kept on head, then the slowest of it again on both sides; return the cells of that with the largest ratio."""
    once = sorted(((_cpu_s(subject, "head", path), path) for path in kept.inputs), reverse=True)[:_SLOWEST]
    again = {
        path: [min(_cpu_s(subject, side, path) for _ in range(_AGAIN if cpu_s < 1.0 else 1)) for side in subject.trees]
        for cpu_s, path in once
    }
    cells = f"{kept.tried:,}", f"{len(kept.inputs):,}"
    if not again:
        return *cells, "", "", "", ""
    path, (base, head) = max(again.items(), key=lambda row: row[1][1] / row[1][0])
    return *cells, f"{path.stat().st_size:,}", f"{1e3 * base:.1f} ms", f"{1e3 * head:.1f} ms", f"×{head / base:.3g}"


def _cpu_s(subject: _Subject, side: str, path: Path) -> float:
    """Return the CPU seconds of a run, which is ended at the limit."""
    words = [str(path) if word == "{input}" else word for word in subject.command]
    limited = ["prlimit", f"--cpu={_LIMIT_S}", *words]
    with subprocess.Popen(
        limited, cwd=subject.trees[side], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime
