"""Print how long the commands take that somebody types first, in a small project of C and one of Python with nothing configured.

Commands that only print run once before: an installation has the byte code of what they load.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from studies.support import figures

COMMANDS = ("", "--help", "version", "help", "doctor", "--dry-run HEAD~1 HEAD", "HEAD~1 HEAD", "explain total", "cache", "init")
PRINTING_BAR_S = 1.0  # of CPU time, for commands that build and run nothing
MEASURING = ("doctor", "HEAD~1 HEAD", "init")
ONCE, TWICE = "sum += i % 7;", "sum += i % 7 + i % 11;"
C_PROJECT = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.13)\nproject(sums C)\nenable_testing()\n"
    "add_executable(check check.c sums.c)\nadd_test(NAME check COMMAND check)\n",
    "check.c": "long total(long n);\nint main(void) { return total(20000000) < 0; }\n",
    "sums.c": f"long total(long n) {{ long sum = 0; for (long i = 0; i < n; i++) {{ {ONCE} }} return sum; }}\n",
}
PYTHON_PROJECT = {
    "pyproject.toml": '[project]\nname = "sums"\nversion = "1"\n',
    "sums.py": f"def total(n):\n    sum = 0\n    for i in range(n):\n        {ONCE.rstrip(';')}\n    return sum\n",
    "tests/test_sums.py": "import pytest\nimport sums\n\n\n@pytest.mark.parametrize('n', [1000, 100000])\ndef test_total(n):\n"
    "    assert sums.total(n) > 0\n",
}


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """Return a repository of two commits, of which the second is slower."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    for change in (ONCE, TWICE):
        for source in folder.glob("sums.*"):
            source.write_text(files[source.name].replace(ONCE.rstrip(";"), change.rstrip(";")))
        git(folder, "add", "-A")
        git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", change)
    return folder


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def taken(project: Path, command: str, cache: Path) -> tuple[float, float, int]:
    """Return the seconds that a command takes, those of CPU time, and its exit code."""
    words = [sys.executable, "-m", "perfdiff", *command.split()]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables = {**kept, "PERFDIFF_CACHE": str(cache), "PYTHONPYCACHEPREFIX": str(cache.parent / "byte-code")}
    if command not in MEASURING:
        subprocess.run(words, cwd=project, env=variables, capture_output=True, check=False)
    started_s, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=project, env=variables, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - started_s, cpu_s, done.returncode


def main() -> None:
    """Run all commands in both projects."""
    columns = ("command", *(f"{language}: {what}" for language in ("C", "Python") for what in ("s", "CPU s", "exit code")))
    with tempfile.TemporaryDirectory() as room, figures.printed("What a newcomer types", *columns) as table:
        kinds = {"c": C_PROJECT, "python": PYTHON_PROJECT}
        projects = [(written(Path(room) / name, files), Path(room) / f"{name}-cache") for name, files in kinds.items()]
        slowest_s = 0.0
        for command in COMMANDS:
            results = [taken(project, command, cache) for project, cache in projects]
            table.add(
                f"`perfdiff {command}`".replace(" `", "`"),
                *(f"{cell:.2f}" if isinstance(cell, float) else cell for row in results for cell in row),
            )
            if command not in MEASURING:
                slowest_s = max(slowest_s, *(cpu_s for _, cpu_s, _ in results))
        bar = figures.against(slowest_s, PRINTING_BAR_S)
        table.remarks.append(f"Commands that only print take {slowest_s:.2f} s of CPU time at most (bar {PRINTING_BAR_S:.0f} s, {bar}).")
