"""Nothing is left of temporary folders, however perfdiff ends, and those of living processes stay."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfdiff import processes, storage, temporary
from perfdiff.progress import Silent

PACKAGE = Path(temporary.__file__).parent
HOLDS = """
import sys, threading
from pathlib import Path
from perfdiff import temporary
here = Path(sys.argv[1])
one, other = temporary.make("one-", within=here), temporary.make("other\\n-", within=here)
(other / "deep").mkdir()
(other / "deep" / "file").touch()
(other / "deep").chmod(0o500)
with temporary.folder("third-", within=here):
    print("made", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Have another process make temporary folders in one."""
    with subprocess.Popen([sys.executable, "-c", HOLDS, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "made\n"
        yield process


def test_folders_of_a_process_that_is_killed_are_cleared_and_those_of_others_stay(tmp_path: Path) -> None:
    killed, living = tmp_path / "killed", tmp_path / "living"
    for folder in (killed, living):
        folder.mkdir()
    with holding(living):
        with holding(killed) as process:
            assert len(list(killed.iterdir())) == 3
            process.kill()
        assert processes.holds(lambda: not any(killed.iterdir()), 20, 0.01)
        assert len(list(living.iterdir())) == 3


def test_a_folder_lasts_for_its_block_with_nothing_left_of_it(tmp_path: Path) -> None:
    with temporary.folder("work-", within=tmp_path) as folder:
        assert (folder.parent, folder.name[:5], stat.S_IMODE(folder.stat().st_mode)) == (tmp_path, "work-", 0o700)
        (folder / "deep").mkdir(mode=0o500)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        temporary.make(within=tmp_path / "missing")


def test_all_temporary_folders_are_made_so() -> None:
    """But for those of programs of their own, which ask back ends and list suites: their own temporary folder is one of these."""
    makers = [path for path in PACKAGE.rglob("*.py") if re.search(r"mkdtemp|TemporaryDirectory", path.read_text())]
    folders = {path.parent.name for path in makers if path.name != "asking_backend.py"}
    assert folders == {"suites", "benchmarks"}


def test_what_a_killed_process_left_in_the_cache_is_cleared_by_the_next(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    left = [tmp_path / name for name in ("room/x", "experiments/.writing-1234abcd/draft", "stations/3/room/live")]
    for folder in left:
        folder.mkdir(parents=True)
    with storage.at_work(tmp_path, Silent(), wait_s=1):
        storage.prune(tmp_path, max_age_s=1e9)
        assert (tmp_path / "room").is_dir()
        assert not any(folder.exists() for folder in left)
