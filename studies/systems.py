"""Compare two revisions of a large system by perfdiff's own command, and hold the answer against the kept one.

A system is a folder of `fixtures/systems`, laid out as CONTRIBUTING.md says of pairs: what is compared, how it is built, what is run. Its
sources are not fetched: name a git repository that holds both revisions, or a folder of unpacked releases, each of which becomes a commit,
in the order of their names. `--plain` builds both revisions by hand as well, which the time to the answer is held against; `--keep` writes
the answer down as the kept one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from programs import FIXTURES, empty, git
from studies.support import figures, upstream
from studies.support.upstream import Pair, Project

SYSTEMS = FIXTURES / "systems"
KEPT = SYSTEMS / "kept.json"
COLUMNS = (
    "system",
    "verdict",
    "first",
    "by hand",
    "s",
    "CPU, s",
    "plain builds, s",
    "CPU, s",
    "largest process, MiB",
    "disk, MiB",
    "load",
)
BUILDS, BEYOND_S = 4, 180  # the bar: so many times the plain builds' time, and so many seconds beyond
RELEASER, RELEASED = "Releases <releases@example.org>", "2020-01-01T00:00:00Z"  # of commits that are the same at each time and place
COMMITTER = {"GIT_COMMITTER_NAME": "Releases", "GIT_COMMITTER_EMAIL": "releases@example.org", "GIT_COMMITTER_DATE": RELEASED}
LEAST_STAGE_S = 1.0  # shorter stages are not worth a word


def answer(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a JSON report: the verdict, its sentence, and the functions that got slower, the guilty one first."""
    slower = sorted((each for each in report["functions"] if each["rank"] is not None), key=lambda each: int(each["rank"]))
    return {
        "verdict": report["verdict"],
        "sentence": report["sentence"],
        "slower": [each["name"] for each in slower if each["verdict"] == "regression"],
        "functions": len(report["functions"]),
        "stages": {stage: round(seconds) for stage, seconds in report["stages"].items() if seconds >= LEAST_STAGE_S},
    }


def differences(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Say where an answer differs from the kept one: by its verdict, or by the function that it names first."""
    told = [("verdict", answer["verdict"], answer["slower"][:1]) for answer in (before, now)]
    changes = []
    if told[0][1] != told[1][1]:
        changes.append(f"the verdict was {told[0][1]}, and is {told[1][1]}")
    if told[0][2] != told[1][2]:
        changes.append(f"first came {', '.join(told[0][2]) or 'no function'}, and now {', '.join(told[1][2]) or 'none'}")
    return changes


def is_right(now: Mapping[str, Any], pair: Pair) -> bool:
    """Return whether an answer is a regression and the first function is one of the guilty."""
    return now["verdict"] == "regression" and any(name in pair.guilty for name in now["slower"][:1])


def repository(folder: Path, room: Path) -> Path:
    """Return a git repository as it is; else one of the releases in a folder, whose commits are the same at each time and place."""
    if (folder / ".git").exists() or (folder / "HEAD").exists():
        return folder
    checkout = room / "releases"
    checkout.mkdir()
    git(checkout, "init", "-q")
    for release in sorted(path for path in folder.iterdir() if path.is_dir()):
        empty(checkout)
        shutil.copytree(release, checkout, dirs_exist_ok=True)
        git(checkout, "read-tree", "--empty")  # files of one size and time look alike to an index
        git(checkout, "add", "-A", "-f")
        words = ["-c", "core.autocrlf=false", "commit", "-q", "-m", release.name, "--author", RELEASER, "--date", RELEASED]
        subprocess.run(["git", *words], cwd=checkout, check=True, env=dict(os.environ) | COMMITTER)
    return checkout


def plain_builds(project: Project, pair: Pair, folder: Path, room: Path) -> tuple[float, float]:
    """Build both revisions by hand, one after the other; return seconds by the clock and of CPU."""
    command = tomllib.loads(project.configuration.read_text(encoding="utf-8")).get("build", {}).get("command", "true")
    wall_s = used_s = 0.0
    for revision in (pair.base, pair.head):
        place = room / f"plain-{revision[:10]}"
        git(room, "clone", "-q", "--shared", "--no-checkout", str(folder), str(place))
        git(place, "checkout", "-q", revision)
        project.furnish(place)
        started, used = time.monotonic(), figures.cpu_s()
        with (room / "plain.log").open("ab") as log:
            subprocess.run(["sh", "-c", command], cwd=place, check=True, stdout=log, stderr=log)
        wall_s, used_s = wall_s + time.monotonic() - started, used_s + figures.cpu_s() - used
    return wall_s, used_s


def disk_mib(folder: Path) -> float:
    """Return what the files of a folder take on the disk."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*") if not path.is_dir()) * 512 / 2**20


def compare(project: Project, pair: Pair, folder: Path, room: Path, options: Sequence[str]) -> dict[str, Any]:
    """Clone the sources into `room`, ask perfdiff there, and return its answer with what it took."""
    checkout, report, cache = room / project.name, room / "report.json", room / "cache"
    git(room, "clone", "-q", "--shared", "--no-checkout", str(folder), str(checkout))
    git(checkout, "checkout", "-q", pair.base)
    project.furnish(checkout)
    load, started, used = os.getloadavg()[0], time.monotonic(), figures.cpu_s()
    command = [
        sys.executable,
        "-m",
        "perfdiff",
        pair.base,
        pair.head,
        "--repo",
        str(checkout),
        "--cache",
        str(cache),
        "-o",
        str(report),
        *options,
    ]
    status = subprocess.run([*command, "--config", str(project.configuration)], check=False).returncode
    wall_s, used_s = time.monotonic() - started, figures.cpu_s() - used
    if not report.exists():
        raise SystemExit(f"perfdiff ended with {status} and wrote no report")
    return answer(json.loads(report.read_text(encoding="utf-8"))) | {
        "wall_s": round(wall_s),
        "cpu_s": round(used_s),
        "largest_process_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "disk_mib": round(disk_mib(cache)),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "date": time.strftime("%Y-%m-%d"),
    }


def main() -> None:
    """Ask perfdiff about one system."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=upstream.names(SYSTEMS))
    parser.add_argument("folder", type=Path, help="a git repository that holds both revisions")
    parser.add_argument("--plain", action="store_true", help="build both revisions by hand first")
    parser.add_argument("--keep", action="store_true", help="write the answer down as the kept one")
    parser.add_argument("--room", type=Path, help="work in this folder, and leave everything there")
    parser.add_argument("options", nargs="*", help="options for perfdiff, behind --; options of this command come first")
    options = parser.parse_args()
    project = upstream.project(SYSTEMS / options.name)
    (pair,) = project.pairs
    with tempfile.TemporaryDirectory() as passing, figures.printed(f"{project.name}: {pair.why}", *COLUMNS) as table:
        room = options.room or Path(passing)
        room.mkdir(parents=True, exist_ok=True)
        folder = repository(options.folder.absolute(), room)
        plain = plain_builds(project, pair, folder, room) if options.plain else None
        now = compare(project, pair, folder, room, options.options) | ({"plain_s": [round(part) for part in plain]} if plain else {})
        builds = [f"{part:.0f}" for part in plain] if plain else ["-", "-"]
        took = (now["wall_s"], now["cpu_s"], *builds, now["largest_process_mib"], now["disk_mib"], ", ".join(map(str, now["load"])))
        by_hand = "-" if pair.ratio is None else f"×{pair.ratio[0]:g} to {pair.ratio[1]:g}"
        table.add(project.name, now["verdict"], ", ".join(now["slower"][:1]) or "-", by_hand, *took)
        table.remarks.append(now["sentence"])
        table.remarks.append(", ".join(f"{stage} {seconds} s" for stage, seconds in now["stages"].items()))
        table.remarks.append("Right." if is_right(now, pair) else f"**Not right**: guilty is {' or '.join(pair.guilty)}.")
        if plain:
            bar_s = BUILDS * plain[0] + BEYOND_S
            table.remarks.append(f"Time to the answer, at most {bar_s:.0f} s: {figures.against(now['wall_s'], bar_s)}.")
        answers = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        if before := answers.get(project.name):
            table.remarks.append("; ".join(differences(now, before)) or "As it was kept.")
        if options.keep:
            KEPT.write_text(json.dumps(dict(sorted((answers | {project.name: now}).items())), indent=1) + "\n", encoding="utf-8")
