"""What the measured programs are made of: flags by how many files have them, libraries by the files behind their names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from perfdiff.build.built import Built
from perfdiff.collect.built import toolchain
from perfdiff.config import WorkloadConfig
from perfdiff.languages.protocol import Declaration, Program
from perfdiff.records.differences import Entity, EntityKind
from perfdiff.records.schema import Phase, Side


def _flags(file: str) -> Entity:
    return Entity(EntityKind.FLAGS, "compile flags of", file)


def program(*flags: str) -> Program:
    declarations = {
        f"flags:{number}.c": Declaration(f"flags:{number}.c", _flags(f"{number}.c"), "", summary, f"{number}.c", 1)
        for number, summary in enumerate(flags)
    }
    other = Declaration("macro:HASH", Entity(EntityKind.MACRO, "macro", "HASH"), "", "31", "a.c", 1)
    return Program({}, {**declarations, "macro:HASH": other}, ())


def built(folder: Path) -> Built:
    return Built(Phase.PLAIN, folder, folder, (), (), (), 0.0)


def look(base: Program, head: Program, folder: Path, *commands: str) -> toolchain.Toolchain:
    workloads = [WorkloadConfig(f"w{number}", command) for number, command in enumerate(commands)]
    trees = {Side.BASE: built(folder), Side.HEAD: built(folder)}
    return toolchain.look({Side.BASE: base, Side.HEAD: head}, trees, workloads, dict(os.environ))


def test_flags_are_told_once_where_both_sides_have_the_same(tmp_path: Path) -> None:
    same = program("-O2 -std=c99", "-O2 -std=c99", "-O0")
    assert look(same, same, tmp_path).flags == ("-O2 -std=c99 (2 files)", "-O0 (1 file)")


def test_flags_that_differ_are_told_of_both_sides(tmp_path: Path) -> None:
    assert look(program("-O2"), program("-O1"), tmp_path).flags == ("base: -O2 (1 file)", "head: -O1 (1 file)")


def test_of_many_sets_of_flags_the_rest_is_counted(tmp_path: Path) -> None:
    many = program(*(f"-DN={number}" for number in range(5)))
    assert look(many, many, tmp_path).flags[-1] == "and 2 other sets of flags"


@pytest.mark.integration
def test_libraries_are_those_that_the_program_loads(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("#include <math.h>\nint main(int n, char **words) { return (int)cos(n + words[0][0]); }\n")
    subprocess.run(["cc", "-O0", "a.c", "-o", "prog", "-lm"], cwd=tmp_path, check=True)
    (tmp_path / "script").write_text("#!/bin/sh\n")
    found = look(program(), program(), tmp_path, "MODE=fast ./prog {n}", "./script", "./gone", "echo 'unclosed").libraries
    assert any(library.startswith("libm.so.6") for library in found)
    assert all("/" not in library for library in found)


def test_a_workload_without_a_program_of_its_own_has_no_libraries(tmp_path: Path) -> None:
    assert look(program(), program(), tmp_path, "true", "./gone").libraries == ()
