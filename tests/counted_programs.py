"""Small projects built twice, plain and over the software PMU, and what their programs do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.commands import CompileLog, read_compile_log
from perfdiff.build.masquerade import FlagKind, Flags, Masquerade, set_up_masquerade
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording

# Included ahead of every unit: probe 1 counts calls of the function that it stands in, and `count` reads the thread's own counts.
HEADER = """\
#pragma GCC system_header
#ifndef PERFDIFF_TEST_PROBES_H
#define PERFDIFF_TEST_PROBES_H
#ifdef PD_CALLED
#include "perfdiff_probe.h"
#define PD_1 PD_FRAME(1); int pd_probe_ __attribute__((unused)) = PD_ENTER(1) ? pd_start(&pd_frame_) : 0;
#else
#define PD_1
#endif
#ifdef __cplusplus
extern "C"
#endif
void pd_pmu_read(unsigned long *events) __attribute__((weak));
#define COUNTS(events) (pd_pmu_read ? pd_pmu_read(events) : (void)0)
enum { BLOCKS, LOADS, STORES, ATOMICS, DIVISIONS, L1D, L2, LLC, HITM, HITM_FALSE, REMOTE, EVENTS };
#endif
"""
PMU = "l1d=32768/8,l2=1048576/16,llc=8388608/16,line=64,nodes=1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did."""

    status: int
    output: str
    errors: str
    recordings: tuple[Path, ...] = ()

    @property
    def recording(self) -> Recording:
        """Return the recording of the only process."""
        (path,) = self.recordings
        return recording.read(path)


@dataclass(frozen=True, slots=True)
class Project:
    """A project's plain and counted builds. `tree` is the counted one's root."""

    folder: Path
    masquerade: Masquerade

    @property
    def tree(self) -> Path:
        return self.folder / "counted"

    @property
    def log(self) -> CompileLog:
        return read_compile_log(self.masquerade.calls, self.tree)

    @property
    def uncounted(self) -> dict[str, str]:
        return {one.file: one.reason for one in self.log.uncounted}

    def same(self, command: str = "./program", **environment: str) -> Outcome:
        """Run a command in both builds, assert that it does the same, and return what it did in the counted one."""
        expected = self.run(command, self.folder / "plain", environment)
        outcome = self.counted(command, **environment)
        assert (outcome.status, outcome.output) == (expected.status, expected.output), (outcome, expected)
        return outcome

    def counted(self, command: str = "./program", **environment: str) -> Outcome:
        """Run a command in the counted build."""
        number = len(list(self.folder.glob("out-*")))
        out = self.folder / f"out-{number}"
        out.mkdir()
        plan.write(self.folder / "plan", {1: ProbePlan(Mode.SAMPLE, reservoir=64, own=True)})
        steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(self.folder / "plan"), "PERFDIFF_PMU": PMU}
        outcome = self.run(command, self.tree, steering | environment)
        return Outcome(outcome.status, outcome.output, outcome.errors, tuple(sorted(out.glob("*.pdrec"))))

    def run(self, command: str, folder: Path, environment: Mapping[str, str]) -> Outcome:
        words = ["setarch", "-R", "sh", "-c", command]
        ended = subprocess.run(words, cwd=folder, env={**os.environ, **environment}, capture_output=True, timeout=120, check=False)
        return Outcome(ended.returncode, ended.stdout.decode("latin-1"), ended.stderr.decode("latin-1"))


def project(folder: Path, runtime: Path, files: Mapping[str, str], command: str) -> Project:
    """Write the files to two folders and build them there, plain and counted; `$F` is to stand in the command with all compiles."""
    header = folder / "header.h"
    header.write_text(HEADER)
    for name in ("plain", "counted"):
        for file, text in files.items():
            path = folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    _build(command, folder / "plain", {"PATH": os.environ["PATH"], "F": f"-include {header}"})
    return _counted(folder, runtime, header, command)


def counted(folder: Path, runtime: Path, tree: Path, command: str) -> Project:
    """Copy a tree with probes in it and build it counted."""
    shutil.copytree(tree, folder / "counted")
    return _counted(folder, runtime, folder / "counted/.perfdiff/probes.h", command)


def _counted(folder: Path, runtime: Path, header: Path, command: str) -> Project:
    probes = Flags(header, runtime, kind=FlagKind.COUNTED)
    masquerade = set_up_masquerade(folder / "build", folder / "counted", {"PATH": os.environ["PATH"], "LC_ALL": "C"}, probes)
    _build(command, folder / "counted", {**masquerade.environment, "F": ""})
    return Project(folder, masquerade)


def _build(command: str, folder: Path, environment: Mapping[str, str]) -> None:
    ended = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
