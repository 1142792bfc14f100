"""Calls are listed with what they compute and wait for, in each language, but not with what others do on their CPU meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perfdiff.languages.c import suites as of_c
from perfdiff.languages.java import suites as of_java
from perfdiff.languages.php import suites as of_php

OTHERS = 3  # that compute on the same CPU: what computes there takes four times as long by the clock
CALL_S = 0.2  # many of the kernel's slices, and of the ticks in which some clocks go
PYTHON = """
import sys, time
from perfdiff.languages.python.benchmarks import trials

def burn():
    ends = time.thread_time() + {seconds}
    while time.thread_time() < ends:
        pass

print(trials.took(burn if sys.argv[1] == "burn" else lambda: time.sleep({seconds}), is_test=True)[0])
"""
PHP = """
require '{drivers}/telling.php';
$started = Perfdiff\\now_s();
$ends = Perfdiff\\cpu_s() + {seconds};
if ($argv[1] === 'burn') { while (Perfdiff\\cpu_s() < $ends); } else { usleep((int) ({seconds} * 1e6)); }
echo Perfdiff\\now_s() - $started;
"""
JAVA = """
package perfdiff.suites;

public final class Timed {
    public static void main(String[] words) throws Exception {
        java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
        long ends = threads.getCurrentThreadCpuTime() + (long) ({seconds} * 1e9), start = Suite.ownNanos();
        if (words[0].equals("burn")) {
            while (threads.getCurrentThreadCpuTime() < ends) {}
        } else {
            Thread.sleep((long) ({seconds} * 1e3));
        }
        System.out.println((Suite.ownNanos() - start) / 1e9);
    }
}
"""
C = """
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
static double cpu(void) { struct timespec now; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); return now.tv_sec + 1e-9 * now.tv_nsec; }
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double ends = cpu() + {seconds};
    if (size && *data == 'b')
        while (cpu() < ends) {}
    else
        usleep((useconds_t)({seconds} * 1e6));
    return 0;
}
"""


@pytest.fixture
def crowded() -> Iterator[None]:
    """Have what the test starts share one CPU with others that compute."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(OTHERS)]
    yield
    for other in others:
        other.kill()
        other.wait()
    os.sched_setaffinity(0, before)


def written(folder: Path, name: str, template: str, **values: object) -> Path:
    file = folder / name
    for key, value in {"seconds": CALL_S, **values}.items():
        template = template.replace(f"{{{key}}}", str(value))
    file.write_text(template)
    return file


def of_python(folder: Path) -> Callable[[str], list[str]]:
    file = written(folder, "timed.py", PYTHON)
    return lambda what: [sys.executable, str(file), what]


def of_php_driver(folder: Path) -> Callable[[str], list[str]]:
    file = written(folder, "timed.php", f"<?php{PHP}", drivers=Path(of_php.__file__).parent / "drivers")
    return lambda what: ["php", str(file), what]


def of_java_driver(folder: Path) -> Callable[[str], list[str]]:
    driver = Path(of_java.__file__).parent / "driver"
    sources = [str(written(folder, "Timed.java", JAVA)), *(str(driver / f"{name}.java") for name in ("Suite", "Report"))]
    subprocess.run(["javac", "-d", str(folder), *sources], check=True)
    return lambda what: ["java", "-cp", str(folder), "perfdiff.suites.Timed", what]


def of_fuzz_target(folder: Path) -> Callable[[str], list[str]]:
    sources, program, told = (
        [written(folder, "target.c", C), Path(of_c.__file__).parent / "fuzz_main.c"],
        folder / "target",
        folder / "told",
    )
    subprocess.run(["gcc", *map(str, sources), "-o", str(program)], check=True)
    for what in ("burn", "wait"):
        (folder / what).write_text(what)
    return lambda what: ["sh", "-c", f"{program} {folder / what} 0 {told} && cut -d' ' -f2 {told}"]


@pytest.mark.integration
@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize(
    ("made", "needs"),
    [(of_python, "python3"), (of_php_driver, "php"), (of_java_driver, "javac"), (of_fuzz_target, "gcc")],
    ids=["python", "php", "java", "c"],
)
def test_a_call_is_listed_with_what_it_computes_or_waits_for_on_a_crowded_cpu(
    tmp_path: Path, made: Callable[[Path], Callable[[str], list[str]]], needs: str
) -> None:
    if not shutil.which(needs):
        pytest.skip(f"needs {needs}")
    command = made(tmp_path)
    computes, waits = (float(subprocess.run(command(what), check=True, capture_output=True).stdout) for what in ("burn", "wait"))
    assert computes == pytest.approx(CALL_S, rel=0.5)
    assert waits >= 0.9 * CALL_S
