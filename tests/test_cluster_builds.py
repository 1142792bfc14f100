"""Builds that one worker makes and others of its kind are handed."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import dask_lab
from dask_lab import Lab
from perfdiff import seals
from perfdiff.build import kinds, parcels
from perfdiff.cluster.handing import Given, Handing
from perfdiff.cluster.protocol import Shelf
from perfdiff.records.schema import Phase
from programs import git
from test_cluster import PROGRAM, TOML, Comparison, committed, require_pairs, wait_until

HERE, THERE = {"processor": "a", "cache folder": "a"}, {"processor": "b", "cache folder": "a"}


def handing(**shelves: Shelf) -> Handing:
    made = Handing({name: f"worker {name}" for name in shelves})
    made.begin(shelves)
    return made


def shelf(kind: dict[str, str] | None = HERE, *keys: str) -> Shelf:
    return Shelf(kind, frozenset(keys))


def test_the_first_worker_makes_a_build_and_those_of_its_kind_wait_for_it() -> None:
    made = handing(one=shelf(), two=shelf(), other=shelf(THERE), blind=shelf(None))
    assert made.seek("one", "k", (), is_patient=True) == [Given("one", "k", None)]
    assert made.seek("two", "k", ("one",), is_patient=False) == []
    assert made.seek("other", "k", ("one",), is_patient=True) == [Given("other", "k", None)]
    assert made.seek("blind", "k", ("one",), is_patient=True) == [Given("blind", "k", None)]
    made.built("one", "k")
    assert made.heard("one", (), is_patient=True) == [Given("two", "k", "one")]
    made.took("two", "k", "one")
    made.built("other", "k")
    assert made.told("two") == "; 1 build handed on by worker one"
    assert made.told("one") == ""
    assert made.told("other") == "; builds for itself, as processor there and on worker one differ"


def test_a_build_that_was_kept_is_waited_for_only_where_nothing_is_measured() -> None:
    made = handing(one=shelf(HERE, "k"), two=shelf(), three=shelf())
    assert made.seek("two", "k", ("one",), is_patient=True) == []
    assert made.heard("one", (), is_patient=True) == [Given("two", "k", "one")]
    assert made.seek("three", "k", ("one",), is_patient=False) == [Given("three", "k", None)]


@pytest.mark.parametrize("is_lost", [False, True])
def test_where_the_maker_fails_the_next_one_makes_it(is_lost: bool) -> None:
    made = handing(one=shelf(), two=shelf(), three=shelf())
    made.seek("one", "k", (), is_patient=True)
    assert made.seek("two", "k", ("one",), is_patient=True) == made.seek("three", "k", ("one",), is_patient=True) == []
    given = made.gone("one", (), is_patient=True) if is_lost else made.heard("one", (), is_patient=True)
    assert given == [Given("two", "k", None)]
    made.built("two", "k")
    assert made.heard("two", (), is_patient=True) == [Given("three", "k", "two")]


def test_what_cannot_be_handed_on_is_asked_for_once() -> None:
    made = handing(one=shelf(HERE, "k"), two=shelf(), three=shelf())
    assert made.seek("two", "k", (), is_patient=True) == [Given("two", "k", "one")]
    made.refused("two", "k", "one")
    made.built("two", "k")
    assert made.seek("three", "k", (), is_patient=True) == [Given("three", "k", "two")]
    assert made.told("two") == "; 1 build made again that others could not hand on"


def test_a_machine_is_of_another_kind_where_anything_differs_that_builds_depend_on(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    found = dict(os.environ) | {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    here = kinds.kind(tmp_path / "cache", found)
    assert kinds.differences(here, kinds.kind(tmp_path / "cache", found | {"HOSTNAME": "another", "SSH_TTY": "1"})) == ()
    assert kinds.differences(here, kinds.kind(tmp_path / "other", found)) == ("cache folder",)
    assert kinds.differences(here, kinds.kind(tmp_path / "cache", found | {"CFLAGS": "-O3"})) == ("CFLAGS",)
    (bin_ / "bison").write_text("#!/bin/sh\n")
    assert kinds.differences(here, kinds.kind(tmp_path / "cache", found)) == ("programs",)
    (bin_ / "bison").unlink()
    gcc = bin_ / "gcc"
    gcc.write_text("#!/bin/sh\necho gcc 99\n")
    gcc.chmod(0o755)
    assert set(kinds.differences(here, kinds.kind(tmp_path / "cache", found | {"CC": "gcc"}))) == {"compilers", "programs", "CC"}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """The folder of a finished build, as far as a parcel knows of it."""
    folder = tmp_path / "made" / "key"
    tree = folder / "source"
    tree.mkdir(parents=True)
    git(tree, "init", "-q")
    (folder / "build").mkdir()
    (folder / "outcome.json").write_text("{}")
    (tree / "program").write_text("#!/bin/sh\n")
    (tree / "program").chmod(0o755)
    (tree / "object.o").write_bytes(b"code")
    (tree / "libadd.so").symlink_to("program")
    (tree / "elsewhere").symlink_to("/usr/include")
    os.utime(tree / "object.o", ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    os.utime(tree, ns=(1_600_000_000_000_000_001, 1_600_000_000_000_000_001))
    seals.close(folder)
    return folder


def test_a_parcel_is_laid_out_as_it_was_built_to_the_nanosecond(finished: Path, tmp_path: Path) -> None:
    parcel = parcels.packed(finished)
    assert parcel is not None
    there = tmp_path / "there"
    there.mkdir()
    assert parcels.unpacked(parcel, there)
    tree = there / "source"
    assert (tree / "object.o").stat().st_mtime_ns == 1_700_000_000_123_456_789
    assert tree.stat().st_mtime_ns == 1_600_000_000_000_000_001 or (tree / ".git" / "index").exists()
    assert os.access(tree / "program", os.X_OK)
    assert not os.access(tree / "object.o", os.X_OK)
    assert ((tree / "libadd.so").readlink(), (tree / "elsewhere").readlink()) == (Path("program"), Path("/usr/include"))
    assert seals.broken(there) is None
    (tree / "program").write_text("#!/bin/bash\n")
    assert seals.broken(there) is not None


def test_what_is_in_use_changed_or_large_is_not_packed(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = finished / "source.running"
    running.touch()
    assert parcels.packed(finished) is None
    running.unlink()
    assert parcels.packed(finished) is not None
    with monkeypatch.context() as small:
        small.setattr(parcels, "MOST_BYTES", 10)
        assert parcels.packed(finished) is None
    (finished / "source" / "program").write_text("#!/bin/bash\n")
    assert parcels.packed(finished) is None
    shutil.rmtree(finished)
    assert parcels.packed(finished) is None


def test_a_parcel_that_was_changed_on_its_way_or_leads_out_of_its_folder_is_refused(finished: Path, tmp_path: Path) -> None:
    parcel = parcels.packed(finished)
    assert parcel is not None
    damaged = parcels.Parcel(parcel.content.replace(b"#!/bin/sh", b"#!/bin/no"), parcel.digest)
    outside = parcel.content.replace(b"source/object.o", b"../../../obje.o")
    for number, each in enumerate((damaged, parcels.Parcel(outside, parcels.digest(outside)))):
        there = tmp_path / f"there{number}"
        there.mkdir()
        assert not parcels.unpacked(each, there)
    assert not (tmp_path.parent / "obje.o").exists()
    assert not any((tmp_path / "there1").iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A path at which each worker sees a cache of its own."""
    if dask_lab.obstacle():
        pytest.skip(dask_lab.obstacle())
    folder = tmp_path / "root"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def alike(tmp_path: Path, root: Path) -> Iterator[Lab]:
    with dask_lab.lab(tmp_path / "lab") as lab:
        yield lab


def built_by(log: Path, *words: str) -> dict[str, list[str]]:
    """Return what each worker's builds have told, by the namespace of its mounts."""
    found: dict[str, list[str]] = {}
    for line in log.read_text().splitlines():
        word, _, name = line.partition(" ")
        if not words or word in words:
            found.setdefault(name, []).append(word)
    found.pop(str(Path("/proc/self/ns/mnt").readlink()), None)
    return found


def logging(toml: str, log: Path, pause_s: int = 0) -> str:
    """Return a configuration whose builds tell who makes them."""
    tells = " && ".join(f"echo {word} $(readlink /proc/self/ns/mnt) >> {log}" for word in ("begins",))
    return toml.replace("gcc -O1", f"{tells} && sleep {pause_s} && gcc -O1", 1).replace(
        '-o add add.c"', f'-o add add.c && echo ended $(readlink /proc/self/ns/mnt) >> {log}"', 1
    )


def test_a_build_is_made_once_for_workers_of_one_kind_and_kept_for_others(tmp_path: Path, alike: Lab, root: Path) -> None:
    log = tmp_path / "log"
    project = committed(
        tmp_path / "project", logging(TOML, log), {f"v{rounds}": PROGRAM.replace("ROUNDS", str(rounds)) for rounds in (1, 2)}
    )
    for name in ("w1", "w2"):
        alike.add_alike(name, root)
    alike.add_alike("other", root, variables={"LAB": "other"})
    alike.wait()
    asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--cluster", alike.address)
    assert asked.end() == 1, asked.told
    require_pairs(asked.experiment)
    machines = Counter(run.machine for run in asked.experiment.runs if run.phase is Phase.PLAIN)
    assert len(machines) == 3
    builds = {name: len(words) for name, words in built_by(log, "ended").items()}
    assert sum(builds.values()) == 4, asked.told  # two by each of two kinds, of two revisions; variants are made from these
    assert sum(count for count in builds.values() if count < 2) in (0, 2)
    assert len(re.findall(r"; \d builds? handed on by w[12]", asked.told)) >= 1
    assert re.search(r"; builds for itself, as LAB there and on w[12] differ", asked.told)
    # Another one of that kind, which has nothing yet, gets what these have kept, once nothing runs in it any more.
    alike.kill("w2")
    kept = alike.folder / "w1" / "cache" / "trees"
    wait_until(lambda: not [*kept.glob("*/source.running")], "the station on w1 has left its trees")
    alike.add_alike("w3", root)
    alike.wait()
    again = Comparison(project, tmp_path / "again", "v1", "v2", "--cluster", alike.address)
    assert again.end() == 1, again.told
    opened = again.told.partition("comparing whole runs")[0]  # then other probes may be chosen than before
    assert re.search(r"\(w3\); 2 builds handed on by w1", opened), again.told


def test_where_the_worker_is_lost_that_makes_a_build_another_one_makes_it(tmp_path: Path, alike: Lab, root: Path) -> None:
    log = tmp_path / "log"
    project = committed(
        tmp_path / "project", logging(TOML, log, pause_s=2), {f"v{rounds}": PROGRAM.replace("ROUNDS", str(rounds)) for rounds in (1, 2)}
    )
    for name in ("w1", "w2"):
        alike.add_alike(name, root)
    alike.wait()
    spaces = {name: str(Path(f"/proc/{process.pid}/ns/mnt").readlink()) for name, process in alike.workers.items()}
    asked = Comparison(project, tmp_path / "cache", "v1", "v2", "--cluster", alike.address)
    asked.until("building on workers")
    wait_until(lambda: built_by(log), "a worker builds")
    (maker,) = built_by(log)
    (lost,) = (name for name, space in spaces.items() if space == maker)
    alike.kill(lost)
    assert asked.end() == 1, asked.told
    assert f"worker {lost} at" in asked.told
    (other,) = set(built_by(log, "ended")) - {maker}
    assert len(built_by(log, "ended")[other]) == 2
